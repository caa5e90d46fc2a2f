//! A graph of ONNX operators, written node by node.

use foveate_core::PolicyError;

use super::wire::Message;
use super::{OnnxModel, Port, PortNumbers};
use crate::config::bad;
use crate::params::Params;

/// The version of the operators: ONNX 1.8 of 2020.
const OPSET: i64 = 13;
/// The version of the file format that came with it.
const IR_VERSION: i64 = 7;

/// A tensor of the graph, by its name.
#[derive(Debug, Clone)]
pub(crate) struct Edge(String);

/// An attribute of an operator.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Attribute<'a> {
    Int(i64),
    Ints(&'a [i64]),
}

/// A graph that is being written; its weights are the tensors of `params`, under their names.
pub(crate) struct Graph<'a> {
    params: &'a Params,
    nodes: Vec<Message>,
    constants: Vec<Message>,
    /// Names of the parameters that are among the constants.
    used: Vec<String>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    edges: usize,
    /// True if numbers are computed in double precision, and rounded where they leave.
    doubles: bool,
}

/// The code of double precision in ONNX; it is no [`PortNumbers`], since no input or output has it.
const DOUBLE: i64 = 11;

/// A constant of these little-endian numbers.
fn tensor(name: &str, shape: &[usize], numbers: PortNumbers, bytes: impl IntoIterator<Item = u8>) -> Message {
    Message::default()
        .ints(1, shape.iter().map(|&n| n as i64))
        .int(2, numbers.code())
        .bytes(8, name)
        .bytes(9, bytes.into_iter().collect::<Vec<u8>>())
}

impl<'a> Graph<'a> {
    pub(crate) fn new(params: &'a Params) -> Self {
        Graph {
            params,
            nodes: vec![],
            constants: vec![],
            used: vec![],
            inputs: vec![],
            outputs: vec![],
            edges: 0,
            doubles: false,
        }
    }

    /// The same in double precision: for small recurrent networks, whose errors grow from step to step.
    #[must_use]
    pub(crate) fn in_doubles(self) -> Self {
        Graph { doubles: true, ..self }
    }

    /// `edge` in the precision in which numbers are computed.
    fn widened(&mut self, edge: Edge) -> Edge {
        if self.doubles { self.op_with("Cast", &[&edge], &[("to", Attribute::Int(DOUBLE))]) } else { edge }
    }

    fn edge(&mut self) -> Edge {
        self.edges += 1;
        Edge(format!("_{}", self.edges))
    }

    /// An input of the model; a size is a number, or a name for a size that may be any.
    pub(crate) fn input(&mut self, name: &str, numbers: PortNumbers, shape: &[String], about: &str) -> Edge {
        self.inputs.push(Port { name: name.into(), numbers, shape: shape.to_vec(), about: about.into() });
        let edge = Edge(name.into());
        if numbers == PortNumbers::F32 { self.widened(edge) } else { edge }
    }

    /// An output of the model.
    pub(crate) fn output(
        &mut self,
        name: &str,
        numbers: PortNumbers,
        shape: &[String],
        edge: &Edge,
        about: &str,
    ) {
        let edge = if numbers == PortNumbers::F32 { &self.as_floats(edge) } else { edge };
        self.nodes.push(node("Identity", std::slice::from_ref(edge), &[Edge(name.into())], &[]));
        self.outputs.push(Port { name: name.into(), numbers, shape: shape.to_vec(), about: about.into() });
    }

    /// A state: an input called `name` that starts as zeros.
    pub(crate) fn state(&mut self, name: &str, shape: &[String]) -> Edge {
        self.input(
            name,
            PortNumbers::F32,
            shape,
            &format!("the last step's next_{name}; zeros at the start of an episode"),
        )
    }

    /// What a state is in the next step.
    pub(crate) fn next_state(&mut self, name: &str, shape: &[String], edge: &Edge) {
        self.output(
            &format!("next_{name}"),
            PortNumbers::F32,
            shape,
            edge,
            &format!("{name} of the next step"),
        );
    }

    /// The parameter called `name`.
    pub(crate) fn param(&mut self, name: &str) -> Edge {
        if !self.used.iter().any(|used| used == name) {
            let numbers = self.params.get(name);
            let shape = self.params.tensors().iter().find(|tensor| tensor.name == name);
            let shape = shape.map_or(&[][..], |tensor| &tensor.shape);
            self.constants.push(tensor(
                name,
                shape,
                PortNumbers::F32,
                numbers.iter().flat_map(|x| x.to_le_bytes()),
            ));
            self.used.push(name.into());
        }
        self.widened(Edge(name.into()))
    }

    /// Returns whether there is a parameter called `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.params.tensors().iter().any(|tensor| tensor.name == name)
    }

    /// A constant.
    pub(crate) fn floats(&mut self, shape: &[usize], numbers: impl IntoIterator<Item = f32>) -> Edge {
        let edge = self.edge();
        let bytes = numbers.into_iter().flat_map(f32::to_le_bytes);
        self.constants.push(tensor(&edge.0, shape, PortNumbers::F32, bytes));
        self.widened(edge)
    }

    /// A constant of one number.
    pub(crate) fn number(&mut self, number: f32) -> Edge {
        self.floats(&[], [number])
    }

    /// A constant list of whole numbers.
    pub(crate) fn ints(&mut self, numbers: impl IntoIterator<Item = usize>) -> Edge {
        let numbers: Vec<usize> = numbers.into_iter().collect();
        let edge = self.edge();
        let bytes = numbers.iter().flat_map(|&n| (n as i64).to_le_bytes());
        self.constants.push(tensor(&edge.0, &[numbers.len()], PortNumbers::I64, bytes));
        edge
    }

    /// The only output of an operator.
    pub(crate) fn op(&mut self, kind: &str, inputs: &[&Edge]) -> Edge {
        self.op_with(kind, inputs, &[])
    }

    /// The only output of an operator with attributes.
    pub(crate) fn op_with(
        &mut self,
        kind: &str,
        inputs: &[&Edge],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Edge {
        let output = self.edge();
        let inputs: Vec<Edge> = inputs.iter().map(|&edge| edge.clone()).collect();
        self.nodes.push(node(kind, &inputs, std::slice::from_ref(&output), attributes));
        output
    }

    /// The outputs of an operator that has so many.
    pub(crate) fn ops<const N: usize>(
        &mut self,
        kind: &str,
        inputs: &[&Edge],
        attributes: &[(&str, Attribute<'_>)],
    ) -> [Edge; N] {
        let outputs = std::array::from_fn(|_| self.edge());
        let inputs: Vec<Edge> = inputs.iter().map(|&edge| edge.clone()).collect();
        self.nodes.push(node(kind, &inputs, &outputs, attributes));
        outputs
    }

    pub(crate) fn add(&mut self, a: &Edge, b: &Edge) -> Edge {
        self.op("Add", &[a, b])
    }

    pub(crate) fn sub(&mut self, a: &Edge, b: &Edge) -> Edge {
        self.op("Sub", &[a, b])
    }

    pub(crate) fn mul(&mut self, a: &Edge, b: &Edge) -> Edge {
        self.op("Mul", &[a, b])
    }

    pub(crate) fn div(&mut self, a: &Edge, b: &Edge) -> Edge {
        self.op("Div", &[a, b])
    }

    pub(crate) fn matmul(&mut self, a: &Edge, b: &Edge) -> Edge {
        self.op("MatMul", &[a, b])
    }

    /// `edge` times a constant.
    pub(crate) fn times(&mut self, edge: &Edge, factor: f64) -> Edge {
        let factor = self.number(factor as f32);
        self.mul(edge, &factor)
    }

    /// In single precision.
    pub(crate) fn as_floats(&mut self, edge: &Edge) -> Edge {
        self.op_with("Cast", &[edge], &[("to", Attribute::Int(PortNumbers::F32.code()))])
    }

    pub(crate) fn reshape(&mut self, edge: &Edge, shape: &[usize]) -> Edge {
        let shape = self.ints(shape.iter().copied());
        self.op("Reshape", &[edge, &shape])
    }

    pub(crate) fn transpose(&mut self, edge: &Edge, order: &[i64]) -> Edge {
        self.op_with("Transpose", &[edge], &[("perm", Attribute::Ints(order))])
    }

    pub(crate) fn concat(&mut self, edges: &[&Edge], axis: i64) -> Edge {
        if let [one] = edges {
            return (*one).clone();
        }
        self.op_with("Concat", edges, &[("axis", Attribute::Int(axis))])
    }

    /// Elements `begin..end` of an axis.
    pub(crate) fn slice(&mut self, edge: &Edge, axis: usize, begin: usize, end: usize) -> Edge {
        let [begin, end, axis] = [begin, end, axis].map(|n| self.ints([n]));
        self.op("Slice", &[edge, &begin, &end, &axis])
    }

    /// Rows `indices` of `edge`.
    pub(crate) fn rows(&mut self, edge: &Edge, indices: &Edge) -> Edge {
        self.op_with("Gather", &[edge, indices], &[("axis", Attribute::Int(0))])
    }

    /// Sums over an axis, which is left out, or kept with a size of 1.
    pub(crate) fn sum(&mut self, edge: &Edge, axis: i64, keep: bool) -> Edge {
        let name = self.edge();
        self.constants.push(tensor(&name.0, &[1], PortNumbers::I64, axis.to_le_bytes()));
        self.op_with("ReduceSum", &[edge, &name], &[("keepdims", Attribute::Int(keep.into()))])
    }

    pub(crate) fn mean(&mut self, edge: &Edge, axes: &[i64]) -> Edge {
        self.op_with("ReduceMean", &[edge], &[("axes", Attribute::Ints(axes))])
    }

    pub(crate) fn softmax(&mut self, edge: &Edge) -> Edge {
        self.op_with("Softmax", &[edge], &[("axis", Attribute::Int(-1))])
    }

    /// The layer `name` on the last axis: `weight` is `[outputs, inputs]`; without a tensor for the bias, none is added.
    pub(crate) fn linear(&mut self, name: &str, x: &Edge) -> Edge {
        self.layer([&format!("{name}.weight"), &format!("{name}.bias")], x)
    }

    /// The layer of these two tensors, weight and bias, as [`Graph::linear`].
    pub(crate) fn layer(&mut self, [weight, bias]: [&str; 2], x: &Edge) -> Edge {
        let weight = self.param(weight);
        let weight = self.transpose(&weight, &[1, 0]);
        let sums = self.matmul(x, &weight);
        if !self.has(bias) {
            return sums;
        }
        let bias = self.param(bias);
        self.add(&sums, &bias)
    }

    /// (x − mean) / √(variance + ε) over `axes`.
    pub(crate) fn normalise(&mut self, x: &Edge, axes: &[i64]) -> Edge {
        let mean = self.mean(x, axes);
        let x = self.sub(x, &mean);
        let squares = self.mul(&x, &x);
        let variance = self.mean(&squares, axes);
        let epsilon = self.number(1e-5);
        let variance = self.add(&variance, &epsilon);
        let deviation = self.op("Sqrt", &[&variance]);
        self.div(&x, &deviation)
    }

    /// h and c after the sums of the gates i, f, g, o on the last axis, and c before.
    pub(crate) fn gates(&mut self, sums: &Edge, c: &Edge) -> [Edge; 2] {
        let [i, f, g, o] = self.ops("Split", &[sums], &[("axis", Attribute::Int(-1))]);
        let [i, f, o] = [i, f, o].map(|gate| self.op("Sigmoid", &[&gate]));
        let g = self.op("Tanh", &[&g]);
        let (kept, new) = (self.mul(&f, c), self.mul(&i, &g));
        let c = self.add(&kept, &new);
        let tanh = self.op("Tanh", &[&c]);
        [self.mul(&o, &tanh), c]
    }

    /// A step of the LSTM whose tensors are called `lstm`: its new h and c.
    pub(crate) fn lstm(&mut self, x: &Edge, [h, c]: [&Edge; 2]) -> [Edge; 2] {
        let ih = self.layer(["lstm.weight_ih", "lstm.bias_ih"], x);
        let hh = self.layer(["lstm.weight_hh", "lstm.bias_hh"], h);
        let sums = self.add(&ih, &hh);
        self.gates(&sums, c)
    }

    /// The model of all that was written; the graph is then empty.
    ///
    /// # Errors
    /// When there are more bytes than ONNX allows in a file.
    pub(crate) fn finish(&mut self, name: &str, about: &str) -> Result<OnnxModel, PolicyError> {
        let [nodes, constants] = [&mut self.nodes, &mut self.constants].map(std::mem::take);
        let [inputs, outputs] = [&mut self.inputs, &mut self.outputs].map(std::mem::take);
        let all = nodes.iter().fold(Message::default(), |graph, node| graph.message(1, node));
        let all = constants.iter().fold(all.bytes(2, name), |graph, constant| graph.message(5, constant));
        let all = inputs.iter().fold(all, |graph, port| graph.message(11, &port.message()));
        let all = outputs.iter().fold(all, |graph, port| graph.message(12, &port.message()));
        if all.0.len() > MAX_BYTES {
            return bad(format!("{} bytes; an ONNX file holds at most {MAX_BYTES}", all.0.len()));
        }
        let model = Message::default()
            .int(1, IR_VERSION)
            .bytes(2, "foveate")
            .bytes(3, env!("CARGO_PKG_VERSION"))
            .bytes(6, about)
            .message(7, &all)
            .message(8, &Message::default().bytes(1, "").int(2, OPSET));
        Ok(OnnxModel { bytes: model.0, inputs, outputs })
    }
}

/// Most bytes of a file that Protocol Buffers read.
const MAX_BYTES: usize = (1 << 31) - (1 << 20);

fn node(kind: &str, inputs: &[Edge], outputs: &[Edge], attributes: &[(&str, Attribute<'_>)]) -> Message {
    let node = inputs.iter().fold(Message::default(), |node, edge| node.bytes(1, &edge.0));
    let node = outputs.iter().fold(node, |node, edge| node.bytes(2, &edge.0)).bytes(4, kind);
    attributes.iter().fold(node, |node, (name, attribute)| {
        let named = Message::default().bytes(1, name);
        let whole = match *attribute {
            Attribute::Int(number) => named.int(3, number).int(20, 2),
            Attribute::Ints(numbers) => named.ints(8, numbers.iter().copied()).int(20, 7),
        };
        node.message(5, &whole)
    })
}

impl Port {
    fn message(&self) -> Message {
        let size = |size: &String| match size.parse::<i64>() {
            Ok(size) => Message::default().int(1, size),
            Err(_) => Message::default().bytes(2, size),
        };
        let shape = self.shape.iter().fold(Message::default(), |shape, n| shape.message(1, &size(n)));
        let tensor = Message::default().int(1, self.numbers.code()).message(2, &shape);
        let kind = Message::default().message(1, &tensor);
        Message::default().bytes(1, &self.name).message(2, &kind).bytes(3, &self.about)
    }
}

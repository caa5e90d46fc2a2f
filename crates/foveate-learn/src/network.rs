//! Networks: layers in the order in which they compute.

use std::ops::Range;

use foveate_core::{Rng, Seed, SparseRows, TensorShape};
use foveate_kernels::Level;
use foveate_kernels::elementwise::Function;
use foveate_kernels::rows::{self, Turned};

use crate::layer::{Backward, FEW, Forward, Layer, MAX_INPUTS, Work, len_of};

/// Most numbers that one tensor of one sample may have.
const MAX_LEN: usize = 1 << 28;

/// Fewest numbers of a row whose zeros are looked for.
const MANY: usize = 256;

/// A network is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("layer {layer}: {why}")]
pub struct NetworkError {
    /// The layer's name, or its place if it has none.
    pub layer: String,
    /// What is wrong, with the shapes.
    pub why: String,
}

/// A tensor of a network: the handle that [`Builder`] hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node(usize);

/// What a builder hands out after an error.
const NOWHERE: Node = Node(usize::MAX);

/// Builds a [`Network`] from the inputs on, in the order in which it computes. The first error is kept and returned by
/// [`Builder::build`].
#[derive(Debug, Default)]
pub struct Builder {
    entries: Vec<Entry>,
    tensors: Vec<TensorShape>,
    params: usize,
    error: Option<NetworkError>,
}

/// A node, and how it is computed.
#[derive(Debug)]
struct Entry {
    kind: Kind,
    inputs: Vec<usize>,
    shape: Vec<usize>,
    params: Range<usize>,
    kept: usize,
    /// The node whose buffer holds the numbers: itself, or its input for what happens in place.
    buffer: usize,
    /// True if a gradient with respect to it is needed.
    differentiable: bool,
    /// Of an input that may be read without its zeros, the numbers of a row; 0 otherwise.
    terms: usize,
}

#[derive(Debug)]
enum Kind {
    Input {
        name: String,
    },
    Layer(Box<dyn Layer>),
    /// Overwrites the input if nothing else reads that.
    Map(Function),
    /// The same numbers in another shape.
    Reshape,
}

impl Builder {
    /// An input of this shape, without the batch.
    pub fn input(&mut self, name: &str, shape: impl Into<Vec<usize>>) -> Node {
        self.any_input(name, shape.into(), false)
    }

    /// An input whose gradient is wanted, such as the state of a recurrent network.
    pub fn state(&mut self, name: &str, shape: impl Into<Vec<usize>>) -> Node {
        self.any_input(name, shape.into(), true)
    }

    fn any_input(&mut self, name: &str, shape: Vec<usize>, differentiable: bool) -> Node {
        self.check_len(name, &shape);
        let kind = Kind::Input { name: name.into() };
        self.push(kind, vec![], shape, 0..0, 0, differentiable)
    }

    /// The output of `layer`, whose parameters are called `name.weight` and so on.
    pub fn layer<const N: usize>(
        &mut self,
        name: &str,
        layer: impl Layer + 'static,
        inputs: [Node; N],
    ) -> Node {
        self.boxed_layer(name, Box::new(layer), &inputs)
    }

    /// The output of a layer without parameters.
    pub fn then<const N: usize>(&mut self, layer: impl Layer + 'static, inputs: [Node; N]) -> Node {
        self.boxed_layer("", Box::new(layer), &inputs)
    }

    fn boxed_layer(&mut self, name: &str, layer: Box<dyn Layer>, inputs: &[Node]) -> Node {
        if self.error.is_some() {
            return NOWHERE;
        }
        let known = inputs.iter().all(|node| node.0 < self.entries.len());
        let shapes: Vec<&[usize]> =
            if known { inputs.iter().map(|node| &*self.entries[node.0].shape).collect() } else { vec![] };
        let twice = (1..inputs.len()).any(|i| inputs[..i].contains(&inputs[i]));
        let output = match inputs.len() {
            _ if !known => Err("an input belongs to another network".to_owned()),
            0 => Err("it has no input".to_owned()),
            n if n > MAX_INPUTS => Err(format!("it has {n} inputs; at most {MAX_INPUTS} are possible")),
            _ if twice => Err("the same tensor is given twice".to_owned()),
            _ => layer.output(&shapes),
        };
        let shape = match output {
            Ok(shape) => shape,
            Err(why) => return self.fail(name, why),
        };
        if let Err(why) = fits(&shape) {
            return self.fail(name, why);
        }
        let (tensors, kept) = (layer.tensors(&shapes), layer.kept(&shapes));
        let begin = self.params;
        for tensor in tensors {
            self.check_len(name, &tensor.shape);
            self.params = self.params.saturating_add(tensor.len());
            let name = if name.is_empty() { tensor.name } else { format!("{name}.{}", tensor.name) };
            if self.tensors.iter().any(|other| other.name == name) {
                self.fail(&name, "another tensor has that name".to_owned());
            }
            self.tensors.push(TensorShape { name, shape: tensor.shape });
        }
        let inputs: Vec<usize> = inputs.iter().map(|node| node.0).filter(|_| known).collect();
        let differentiable =
            self.params > begin || inputs.iter().any(|&input| self.entries[input].differentiable);
        self.push(Kind::Layer(layer), inputs, shape, begin..self.params, kept, differentiable)
    }

    /// `function` of every number of `input`.
    pub fn map(&mut self, function: Function, input: Node) -> Node {
        let Some(entry) = self.entries.get(input.0) else { return self.stranger() };
        let (shape, differentiable) = (entry.shape.clone(), entry.differentiable);
        self.push(Kind::Map(function), vec![input.0], shape, 0..0, 0, differentiable)
    }

    /// The numbers of `input` in another shape.
    pub fn reshape(&mut self, input: Node, shape: impl Into<Vec<usize>>) -> Node {
        let Some(entry) = self.entries.get(input.0) else { return self.stranger() };
        let (shape, given, differentiable) = (shape.into(), entry.shape.clone(), entry.differentiable);
        if len_of(&given) != len_of(&shape) {
            self.fail("", format!("{given:?} cannot be reshaped to {shape:?}, which has another length"));
        }
        self.push(Kind::Reshape, vec![input.0], shape, 0..0, 0, differentiable)
    }

    /// The shape of `node`, without the batch.
    pub fn shape(&self, node: Node) -> &[usize] {
        self.entries.get(node.0).map_or(&[], |entry| &entry.shape)
    }

    /// The finished network. `outputs` are the tensors that are read after [`Network::forward`].
    ///
    /// # Errors
    /// The first error of the layers that were added.
    pub fn build(mut self, outputs: &[Node]) -> Result<Network, NetworkError> {
        if let Some(output) = outputs.iter().find(|node| node.0 >= self.entries.len()) {
            self.fail("", format!("output {} belongs to another network", output.0));
        }
        if let Some(error) = self.error {
            return Err(error);
        }
        let outputs: Vec<usize> = outputs.iter().map(|node| node.0).collect();
        // Which nodes read a buffer; outputs are read by the caller.
        let mut readers = vec![0_usize; self.entries.len()];
        for &output in &outputs {
            readers[output] += 1;
        }
        for entry in &self.entries {
            for &input in &entry.inputs {
                readers[input] += 1;
            }
        }
        for i in 0..self.entries.len() {
            let Some(&input) = self.entries[i].inputs.first() else { continue };
            let from = &self.entries[input];
            let buffer = from.buffer;
            let keeps_input = match &from.kind {
                Kind::Layer(layer) => !layer.reads_output(),
                Kind::Input { .. } | Kind::Map(_) | Kind::Reshape => false,
            };
            self.entries[i].buffer = match self.entries[i].kind {
                Kind::Reshape => buffer,
                Kind::Map(_) if readers[input] == 1 && keeps_input => buffer,
                _ => i,
            };
        }
        for i in 0..self.entries.len() {
            let (shape, differentiable) = (&*self.entries[i].shape, self.entries[i].differentiable);
            let is_input = matches!(self.entries[i].kind, Kind::Input { .. }) && !outputs.contains(&i);
            let terms_of = |entry: &Entry| match &entry.kind {
                Kind::Layer(layer) => layer.terms(&[shape]),
                _ => 0,
            };
            let mut terms = self.entries.iter().filter(|entry| entry.inputs.contains(&i)).map(terms_of);
            let first = terms.next().filter(|&first| first >= MANY && terms.all(|other| other == first));
            self.entries[i].terms = first.filter(|_| is_input && !differentiable).unwrap_or(0);
        }
        // Gradients with respect to all inputs are borrowed at once.
        for (i, entry) in self.entries.iter().enumerate() {
            let buffer = |slot: usize| self.entries[entry.inputs[slot]].buffer;
            if (1..entry.inputs.len()).any(|slot| (0..slot).any(|other| buffer(slot) == buffer(other))) {
                let why = "the same tensor is given twice, once reshaped".to_owned();
                return Err(NetworkError { layer: format!("number {i}"), why });
            }
        }
        let Builder { entries, tensors, params, .. } = self;
        Ok(Network { entries, tensors, params, outputs })
    }

    fn push(
        &mut self,
        kind: Kind,
        inputs: Vec<usize>,
        shape: Vec<usize>,
        params: Range<usize>,
        kept: usize,
        differentiable: bool,
    ) -> Node {
        let buffer = self.entries.len();
        self.entries.push(Entry { kind, inputs, shape, params, kept, buffer, differentiable, terms: 0 });
        Node(buffer)
    }

    fn stranger(&mut self) -> Node {
        self.fail("", "an input belongs to another network".to_owned())
    }

    /// Keeps the first error.
    fn fail(&mut self, layer: &str, why: String) -> Node {
        let layer =
            if layer.is_empty() { format!("number {}", self.entries.len()) } else { layer.to_owned() };
        self.error.get_or_insert(NetworkError { layer, why });
        NOWHERE
    }

    fn check_len(&mut self, name: &str, shape: &[usize]) {
        if let Err(why) = fits(shape) {
            self.fail(name, why);
        }
    }
}

/// Checks that a tensor has at least one number, and not too many.
fn fits(shape: &[usize]) -> Result<(), String> {
    let len = shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n));
    match len {
        Some(1..=MAX_LEN) => Ok(()),
        _ => Err(format!("a tensor of shape {shape:?}; 1 to {MAX_LEN} numbers are possible")),
    }
}

/// A network: a function of its inputs and of one flat vector of parameters, with its gradient.
///
/// ```
/// use foveate_kernels::Level;
/// use foveate_kernels::elementwise::Function;
/// use foveate_learn::{Builder, Linear};
///
/// let mut net = Builder::default();
/// let x = net.input("x", [4]);
/// let hidden = net.layer("hidden", Linear::new(8), [x]);
/// let hidden = net.map(Function::Tanh, hidden);
/// let y = net.layer("output", Linear::new(2), [hidden]);
/// let net = net.build(&[y])?;
/// assert_eq!(net.params(), 4 * 8 + 8 + 8 * 2 + 2);
///
/// let params = vec![0.1; net.params()];
/// let mut acts = net.activations(3);
/// net.forward(Level::best(), &params, &[&[1.0; 3 * 4]], 3, &mut acts);
/// assert_eq!(acts.get(y).len(), 3 * 2);
///
/// // The gradient of the sum of all outputs.
/// let mut gradient = vec![0.0; net.params()];
/// acts.clear_gradients();
/// acts.gradient_mut(y).fill(1.0);
/// net.backward(Level::best(), &params, &mut acts, &mut gradient);
/// assert_eq!(gradient[net.params() - 1], 3.0, "the bias of an output");
/// # Ok::<(), foveate_learn::NetworkError>(())
/// ```
#[derive(Debug)]
pub struct Network {
    entries: Vec<Entry>,
    tensors: Vec<TensorShape>,
    params: usize,
    outputs: Vec<usize>,
}

/// The weights of a network, laid out for few samples, see [`Network::prepare`].
#[derive(Debug, Clone, Default)]
pub struct Prepared(Vec<Turned>);

/// The parameters of a network.
#[derive(Debug, Clone, Copy)]
pub struct NetworkWeights<'a> {
    params: &'a [f32],
    prepared: Option<&'a Prepared>,
}

impl<'a> From<&'a [f32]> for NetworkWeights<'a> {
    fn from(params: &'a [f32]) -> Self {
        NetworkWeights { params, prepared: None }
    }
}

impl<'a> From<&'a Vec<f32>> for NetworkWeights<'a> {
    fn from(params: &'a Vec<f32>) -> Self {
        NetworkWeights { params, prepared: None }
    }
}

impl<'a> From<(&'a [f32], &'a Prepared)> for NetworkWeights<'a> {
    fn from((params, prepared): (&'a [f32], &'a Prepared)) -> Self {
        NetworkWeights { params, prepared: Some(prepared) }
    }
}

/// The inputs of a network for a batch.
#[derive(Clone, Copy)]
enum Inputs<'a> {
    /// Each `[batch, …]`.
    Numbers(&'a [&'a [f32]]),
    /// One, of these rows.
    Rows(&'a SparseRows, &'a [usize]),
}

impl Inputs<'_> {
    const fn count(&self) -> usize {
        match self {
            Inputs::Numbers(all) => all.len(),
            Inputs::Rows(..) => 1,
        }
    }
}

/// All tensors of a network for a batch, their gradients, and scratch space. Nothing is allocated after it was made for
/// the largest batch, but for scratch space in the first pass.
#[derive(Debug, Clone)]
pub struct Activations {
    capacity: usize,
    batch: usize,
    /// Of each node: the node whose buffer it uses, and its numbers per sample.
    places: Vec<(usize, usize)>,
    values: Vec<Vec<f32>>,
    gradients: Vec<Vec<f32>>,
    kept: Vec<Vec<f32>>,
    /// Of each input, its rows without their zeros, and whether they are read in place of its values.
    rows: Vec<(SparseRows, bool)>,
    work: Work,
}

/// The rows of the first input of a layer, if they are read in place of its values.
fn rows_of<'a>(rows: &'a [(SparseRows, bool)], inputs: &[usize]) -> Option<&'a SparseRows> {
    inputs.first().and_then(|&input| rows[input].1.then_some(&rows[input].0))
}

impl Activations {
    /// The numbers of `node` in the last forward pass, `[batch, …]`. An activation may have overwritten those of its
    /// input, unless that is an output of the network; those of an input are not kept.
    ///
    /// # Panics
    /// When the node belongs to another network.
    pub fn get(&self, node: Node) -> &[f32] {
        let (buffer, len) = self.places[node.0];
        &self.values[buffer][..self.batch * len]
    }

    /// The gradient with respect to `node`, `[batch, …]`, to which the caller adds that of the loss.
    ///
    /// # Panics
    /// When the node belongs to another network, or no gradient with respect to it exists: it depends on no parameter.
    pub fn gradient_mut(&mut self, node: Node) -> &mut [f32] {
        let (buffer, len) = self.places[node.0];
        &mut self.gradients[buffer][..self.batch * len]
    }

    /// What `node` computed and the gradient with respect to it, `[batch, …]` both, for a loss that reads the one and
    /// writes the other.
    ///
    /// # Panics
    /// As [`Activations::gradient_mut`].
    pub fn output_and_gradient(&mut self, node: Node) -> (&[f32], &mut [f32]) {
        let (buffer, len) = self.places[node.0];
        let len = self.batch * len;
        (&self.values[buffer][..len], &mut self.gradients[buffer][..len])
    }

    /// The gradient with respect to `node`, `[batch, …]`.
    ///
    /// # Panics
    /// As [`Activations::gradient_mut`].
    pub fn gradient(&self, node: Node) -> &[f32] {
        let (buffer, len) = self.places[node.0];
        &self.gradients[buffer][..self.batch * len]
    }

    /// What the layer of `node` kept of the forward pass, `[batch, …]`, such as the weights of an attention.
    ///
    /// # Panics
    /// When the node belongs to another network.
    pub fn kept(&self, node: Node) -> &[f32] {
        let per_sample = self.kept[node.0].len() / self.capacity.max(1);
        &self.kept[node.0][..self.batch * per_sample]
    }

    /// Sets all gradients to zero, before the caller adds that of the loss.
    pub fn clear_gradients(&mut self) {
        for gradient in &mut self.gradients {
            gradient.fill(0.0);
        }
    }

    /// Exchanges the buffers of the gradients and the scratch space with those of `other`, of the same network and capacity:
    /// several forward passes can then share them, and they stay in the caches. Buffers that are never used take no memory.
    ///
    /// # Panics
    /// When the buffers have other sizes.
    pub fn swap_gradients(&mut self, other: &mut Activations) {
        assert_eq!((self.capacity, &self.places), (other.capacity, &other.places), "buffers of one network");
        std::mem::swap(&mut self.gradients, &mut other.gradients);
        std::mem::swap(&mut self.work, &mut other.work);
    }

    /// Exchanges the scratch space with `work`: that of several passes, one after the other, then stays in the caches.
    pub(crate) const fn swap_work(&mut self, work: &mut Work) {
        std::mem::swap(&mut self.work, work);
    }

    /// Number of samples in the last forward pass.
    pub const fn batch(&self) -> usize {
        self.batch
    }
}

impl Network {
    /// Number of parameters.
    pub const fn params(&self) -> usize {
        self.params
    }

    /// Name and shape of every parameter tensor, in the order of the flat vector.
    pub fn tensors(&self) -> &[TensorShape] {
        &self.tensors
    }

    /// The tensors that are read after [`Network::forward`].
    pub fn outputs(&self) -> impl Iterator<Item = Node> {
        self.outputs.iter().copied().map(Node)
    }

    /// Name and shape of every input, in the order of [`Network::forward`].
    pub fn inputs(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.entries.iter().filter_map(|entry| match &entry.kind {
            Kind::Input { name } => Some((&**name, &*entry.shape)),
            _ => None,
        })
    }

    /// The shape of `node`, without the batch.
    ///
    /// # Panics
    /// When the node belongs to another network.
    pub fn shape(&self, node: Node) -> &[usize] {
        &self.entries[node.0].shape
    }

    /// First parameters as PyTorch draws them: uniform in ±1/√(inputs) for weights and biases, ones and zeros for
    /// the weights and biases of a normalisation. Each tensor has a seed of its own.
    pub fn initial(&self, seed: Seed) -> Vec<f32> {
        self.drawn(seed, |rng, inputs, _| {
            let bound = 1.0 / inputs.sqrt();
            rng.uniform(-bound, bound)
        })
    }

    /// First parameters after He et al. 2015: weights normal with the standard deviation √(2 / inputs), so that features
    /// keep their size through layers with `ReLU`, and biases zero; normalisations as in [`Network::initial`].
    pub fn initial_he(&self, seed: Seed) -> Vec<f32> {
        self.drawn(
            seed,
            |rng, inputs, is_weight| {
                if is_weight { rng.normal() * (2.0 / inputs).sqrt() } else { 0.0 }
            },
        )
    }

    /// `draw` gets the inputs of the layer, and whether the tensor is its weight.
    fn drawn(&self, seed: Seed, draw: impl Fn(&mut Rng, f64, bool) -> f64) -> Vec<f32> {
        let mut params = Vec::with_capacity(self.params);
        for (index, tensor) in self.tensors.iter().enumerate() {
            let (layer, kind) = tensor.name.rsplit_once('.').unwrap_or(("", &tensor.name));
            let len = tensor.len();
            match kind {
                "scale" => params.resize(params.len() + len, 1.0),
                "shift" => params.resize(params.len() + len, 0.0),
                _ => {
                    let weight = format!("{layer}.weight");
                    let weight = self.tensors.iter().find(|other| other.name == weight).unwrap_or(tensor);
                    let inputs = weight.shape.get(1..).map_or(1, len_of).max(1) as f64;
                    let mut rng = seed.child("tensor", index as u64).rng();
                    params.extend((0..len).map(|_| draw(&mut rng, inputs, kind == "weight") as f32));
                }
            }
        }
        params
    }

    /// Buffers for batches of up to `capacity` samples.
    pub fn activations(&self, capacity: usize) -> Activations {
        let len = |entry: &Entry| len_of(&entry.shape);
        let places = self.entries.iter().map(|entry| (entry.buffer, len(entry))).collect();
        let own = |i: usize, entry: &Entry| if entry.buffer == i { capacity * len(entry) } else { 0 };
        let of = |f: &dyn Fn(usize, &Entry) -> usize| {
            self.entries.iter().enumerate().map(|(i, entry)| vec![0.0; f(i, entry)]).collect::<Vec<_>>()
        };
        Activations {
            capacity,
            batch: 0,
            places,
            values: of(&own),
            gradients: of(&|i, entry| if entry.differentiable { own(i, entry) } else { 0 }),
            kept: of(&|_, entry| capacity * entry.kept),
            rows: vec![(SparseRows::default(), false); self.entries.len()],
            work: Work::default(),
        }
    }

    /// Lays the weights of `params` out for [`Network::forward`] of few samples, such as one decision. It takes about as long
    /// as one decision without.
    ///
    /// # Panics
    /// When the length is wrong.
    pub fn prepare(&self, level: Level, params: &[f32]) -> Prepared {
        assert_eq!(params.len(), self.params, "parameters");
        let turn = |entry: &Entry| {
            let Kind::Layer(layer) = &entry.kind else { return Turned::default() };
            let shapes: Vec<&[usize]> =
                entry.inputs.iter().map(|&input| &*self.entries[input].shape).collect();
            let mut turned = Turned::default();
            layer.turn(level, &shapes, &params[entry.params.clone()], &mut turned);
            turned
        };
        Prepared(self.entries.iter().map(turn).collect())
    }

    /// Computes all tensors for a batch of `batch` samples. `weights` are the parameters, or a pair of them and what
    /// [`Network::prepare`] made of them. `inputs` are in the order in which the inputs were added, each `[batch, …]`.
    ///
    /// # Panics
    /// When a length is wrong, or the batch is larger than `acts` was made for.
    pub fn forward<'a>(
        &self,
        level: Level,
        weights: impl Into<NetworkWeights<'a>>,
        inputs: &[&[f32]],
        batch: usize,
        acts: &mut Activations,
    ) {
        self.forward_of(level, weights.into(), Inputs::Numbers(inputs), batch, acts);
    }

    /// The same of a network with one input, whose rows have no zeros: the samples are the rows `chosen` of `rows`. The numbers are
    /// those of [`Network::forward`].
    ///
    /// # Panics
    /// When a row is missing or of another width, or there are more than `acts` was made for.
    pub fn forward_rows<'a>(
        &self,
        level: Level,
        weights: impl Into<NetworkWeights<'a>>,
        rows: &SparseRows,
        chosen: &[usize],
        acts: &mut Activations,
    ) {
        self.forward_of(level, weights.into(), Inputs::Rows(rows, chosen), chosen.len(), acts);
    }

    fn forward_of(
        &self,
        level: Level,
        NetworkWeights { params, prepared }: NetworkWeights<'_>,
        inputs: Inputs<'_>,
        batch: usize,
        acts: &mut Activations,
    ) {
        assert!(prepared.is_none_or(|all| all.0.len() == self.entries.len()), "prepared for another network");
        assert_eq!(params.len(), self.params, "parameters");
        assert!(batch <= acts.capacity, "{batch} samples; the buffers hold {}", acts.capacity);
        acts.batch = batch;
        let Activations { places, values, kept, rows, work, .. } = acts;
        let mut given = 0;
        for (i, entry) in self.entries.iter().enumerate() {
            let len = batch * places[i].1;
            match &entry.kind {
                Kind::Input { name } => {
                    let (own, read) = &mut rows[i];
                    // An input that is read without its zeros need not be copied.
                    match inputs {
                        Inputs::Numbers(all) => {
                            let input =
                                all.get(given).unwrap_or_else(|| panic!("no numbers for the input {name}"));
                            assert_eq!(input.len(), len, "numbers of the input {name} for {batch} samples");
                            *read = entry.terms > 0 && {
                                let most = if prepared.is_some() && batch <= FEW { len } else { len / 4 };
                                own.clear(entry.terms);
                                rows::append_within(level, own, input, most)
                            };
                            if !*read {
                                values[i][..len].copy_from_slice(input);
                            }
                        }
                        Inputs::Rows(all, chosen) => {
                            *read = entry.terms == all.width();
                            if *read {
                                own.clear(entry.terms);
                                for &row in chosen {
                                    own.push_row_of(all, row);
                                }
                            } else {
                                let samples = values[i][..len].chunks_exact_mut(places[i].1);
                                for (&row, to) in chosen.iter().zip(samples) {
                                    all.write(row, to);
                                }
                            }
                        }
                    }
                    given += 1;
                }
                Kind::Reshape => {}
                Kind::Map(function) => {
                    if entry.buffer == i {
                        let (before, own) = values.split_at_mut(i);
                        own[0][..len].copy_from_slice(&before[places[entry.inputs[0]].0][..len]);
                    }
                    function.apply(level, &mut values[entry.buffer][..len]);
                }
                Kind::Layer(layer) => {
                    let (before, own) = values.split_at_mut(i);
                    let mut inputs = [&[] as &[f32]; MAX_INPUTS];
                    let mut shapes = [&[] as &[usize]; MAX_INPUTS];
                    for (slot, &input) in entry.inputs.iter().enumerate() {
                        let (buffer, len) = places[input];
                        inputs[slot] = &before[buffer][..batch * len];
                        shapes[slot] = &self.entries[input].shape;
                    }
                    let count = entry.inputs.len();
                    layer.forward(Forward {
                        level,
                        batch,
                        shapes: &shapes[..count],
                        params: &params[entry.params.clone()],
                        turned: prepared.map(|all| &all.0[i]).filter(|turned| turned.columns() > 0),
                        inputs: &inputs[..count],
                        rows: rows_of(rows, &entry.inputs),
                        output: &mut own[0][..len],
                        kept: &mut kept[i][..batch * entry.kept],
                        work,
                    });
                }
            }
        }
        assert_eq!(given, inputs.count(), "inputs of the network");
    }

    /// Adds the gradient of the loss with respect to the parameters to `d_params`, and computes that with respect to
    /// all tensors. The caller has added the gradient with respect to the outputs, see
    /// [`Activations::gradient_mut`].
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn backward(&self, level: Level, params: &[f32], acts: &mut Activations, d_params: &mut [f32]) {
        assert_eq!(params.len(), self.params, "parameters");
        assert_eq!(d_params.len(), self.params, "gradient of the parameters");
        let Activations { batch, places, values, gradients, kept, rows, work, .. } = acts;
        let batch = *batch;
        for (i, entry) in self.entries.iter().enumerate().rev() {
            if !entry.differentiable {
                continue;
            }
            let len = batch * places[i].1;
            match &entry.kind {
                Kind::Input { .. } | Kind::Reshape => {}
                Kind::Map(function) => {
                    let (before, own) = gradients.split_at_mut(i);
                    if entry.buffer == i {
                        let d_output = &mut own[0][..len];
                        function.backward(level, &values[i][..len], d_output);
                        foveate_kernels::elementwise::add(
                            &mut before[places[entry.inputs[0]].0][..len],
                            d_output,
                        );
                    } else {
                        let at = entry.buffer;
                        function.backward(level, &values[at][..len], &mut before[at][..len]);
                    }
                }
                Kind::Layer(layer) => {
                    let (before, own) = gradients.split_at_mut(i);
                    let mut inputs = [&[] as &[f32]; MAX_INPUTS];
                    let mut shapes = [&[] as &[usize]; MAX_INPUTS];
                    // Taken for the call, since two inputs may be borrowed at once.
                    let mut taken: [Vec<f32>; MAX_INPUTS] = Default::default();
                    for (slot, &input) in entry.inputs.iter().enumerate() {
                        let (buffer, len) = places[input];
                        inputs[slot] = &values[buffer][..batch * len];
                        shapes[slot] = &self.entries[input].shape;
                        if self.entries[input].differentiable {
                            taken[slot] = std::mem::take(&mut before[buffer]);
                        }
                    }
                    let mut d_inputs = [const { None }; MAX_INPUTS];
                    for ((slot, &input), taken) in entry.inputs.iter().enumerate().zip(&mut taken) {
                        if self.entries[input].differentiable {
                            d_inputs[slot] = Some(&mut taken[..batch * places[input].1]);
                        }
                    }
                    let count = entry.inputs.len();
                    layer.backward(Backward {
                        level,
                        batch,
                        shapes: &shapes[..count],
                        params: &params[entry.params.clone()],
                        inputs: &inputs[..count],
                        rows: rows_of(rows, &entry.inputs),
                        output: &values[i][..len],
                        kept: &kept[i][..batch * entry.kept],
                        d_output: &mut own[0][..len],
                        d_inputs,
                        d_params: &mut d_params[entry.params.clone()],
                        work,
                    });
                    for (&input, taken) in entry.inputs.iter().zip(taken) {
                        if self.entries[input].differentiable {
                            before[places[input].0] = taken;
                        }
                    }
                }
            }
        }
    }

    /// All tensors for one sample, in double precision by [`Layer::exact`], for tests.
    ///
    /// # Panics
    /// When a length is wrong.
    pub fn exact(&self, params: &[f64], inputs: &[&[f64]]) -> Vec<Vec<f64>> {
        assert_eq!(params.len(), self.params, "parameters");
        let mut given = inputs.iter();
        let mut values: Vec<Vec<f64>> = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let of = |slot: usize| -> &[f64] { &values[entry.inputs[slot]] };
            values.push(match &entry.kind {
                Kind::Input { name } => given.next().unwrap_or_else(|| panic!("input {name}")).to_vec(),
                Kind::Reshape => of(0).to_vec(),
                Kind::Map(function) => of(0).iter().map(|&x| exact_function(*function, x)).collect(),
                Kind::Layer(layer) => {
                    let shapes: Vec<&[usize]> =
                        entry.inputs.iter().map(|&input| &*self.entries[input].shape).collect();
                    let inputs: Vec<&[f64]> = (0..entry.inputs.len()).map(of).collect();
                    layer.exact(&shapes, &params[entry.params.clone()], &inputs)
                }
            });
        }
        values
    }

    /// Returns whether a gradient with respect to `node` is computed though it is an input, see [`Builder::state`].
    pub(crate) fn is_state(&self, node: Node) -> bool {
        self.entries[node.0].differentiable
    }

    /// The number of a node in [`Network::exact`].
    pub(crate) const fn index(node: Node) -> usize {
        node.0
    }
}

fn exact_function(function: Function, x: f64) -> f64 {
    match function {
        Function::Relu => x.max(0.0),
        Function::Elu => {
            if x > 0.0 {
                x
            } else {
                x.exp_m1()
            }
        }
        Function::Tanh => x.tanh(),
        Function::Sigmoid => 1.0 / (1.0 + (-x).exp()),
    }
}

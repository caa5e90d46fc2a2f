//! Agents as ONNX models: what any runtime of ONNX computes without this library.
//!
//! A model is one decision, from an observation as the world shows it to the action as the world takes it, with the agent's
//! attention and its state beside it. The world is not in it, nor are draws of actions. Weights keep their names.
//!
//! `wire` writes the bytes of a file, `graph` a graph, operator by operator. What an agent computes is beside the agent, in
//! a file `graph.rs`.
//!
//! Sums are in another order than in our kernels, so numbers differ in the last digits; where two patches have almost as many
//! votes, another one may be selected.

mod graph;
mod wire;

use foveate_core::{EnvSpec, PolicyError};

use serde::Serialize;

use crate::config::bad;
use crate::params::Params;

pub(crate) use graph::{Attribute, Edge, Graph};

/// An ONNX model.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxModel {
    /// The file.
    pub bytes: Vec<u8>,
    /// What it takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
}

/// An input or an output of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What its numbers are.
    pub numbers: PortNumbers,
    /// Its sizes; a name stands for a size that may be any.
    pub shape: Vec<String>,
    /// What it is, with its unit.
    pub about: String,
}

/// The numbers of an input or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PortNumbers {
    /// In single precision.
    #[serde(rename = "float32")]
    F32,
    /// Bytes.
    #[serde(rename = "uint8")]
    U8,
    /// Whole numbers.
    #[serde(rename = "int64")]
    I64,
}

impl PortNumbers {
    /// Its name in NumPy.
    pub const fn name(self) -> &'static str {
        match self {
            PortNumbers::F32 => "float32",
            PortNumbers::U8 => "uint8",
            PortNumbers::I64 => "int64",
        }
    }

    /// Its code in ONNX.
    const fn code(self) -> i64 {
        match self {
            PortNumbers::F32 => 1,
            PortNumbers::U8 => 2,
            PortNumbers::I64 => 7,
        }
    }
}

/// Sizes as text.
pub(crate) fn sizes(of: &[usize]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// The tensors of `params`, which are those of an agent's configuration.
pub(crate) fn params(tensors: Vec<foveate_core::TensorShape>, flat: &[f32]) -> Result<Params, PolicyError> {
    let mut params = Params::zeros(tensors);
    params.set(flat)?;
    Ok(params)
}

/// The name of an input: that of a part of the observation, or `observation` where it has no parts.
fn input_name<'n>(spec: &EnvSpec, part: &'n str) -> &'n str {
    if spec.observation.part(part).is_some() { part } else { "observation" }
}

/// The picture of the world, `[frames, height, width, channels]`, as it is shown.
pub(crate) fn picture(
    graph: &mut Graph<'_>,
    spec: &EnvSpec,
    wanted: &str,
) -> Result<(Edge, [usize; 4]), PolicyError> {
    let Some(is) = spec.observation.image() else { return Err(misfit(spec, wanted)) };
    let all = [is.frames, is.height, is.width, is.channels];
    let shown = &all[usize::from(is.frames == 1)..];
    let layout = if is.frames == 1 {
        "[height, width, channels]"
    } else {
        "[frames, height, width, channels], oldest first"
    };
    let about = format!("the picture as the world shows it, bytes, {layout}");
    let edge = graph.input(input_name(spec, foveate_core::IMAGE), PortNumbers::U8, &sizes(shown), &about);
    Ok((edge, all))
}

/// The error for a world that shows something else than `wanted`.
pub(crate) fn misfit(spec: &EnvSpec, wanted: &str) -> PolicyError {
    let given = spec.observation.image().map_or_else(
        || format!("{} numbers", spec.observation.numbers()),
        |is| format!("{} picture(s) of {}x{} with {} channels", is.frames, is.width, is.height, is.channels),
    );
    PolicyError::ObservationShape { wanted: wanted.into(), given }
}

/// The outputs for an action: numbers `raw` in −1 ..= 1 for each of `bounds`.
pub(crate) fn act(
    graph: &mut Graph<'_>,
    spec: &EnvSpec,
    raw: &Edge,
    bounds: &[[f64; 2]],
) -> Result<(), PolicyError> {
    let half = graph.floats(&[bounds.len()], bounds.iter().map(|[low, high]| ((high - low) / 2.0) as f32));
    let middle =
        graph.floats(&[bounds.len()], bounds.iter().map(|[low, high]| f64::midpoint(*low, *high) as f32));
    let scaled = graph.mul(raw, &half);
    let action = graph.add(&scaled, &middle);
    give(graph, spec, &action, bounds.len())
}

/// The outputs for an action of the world, or for scores of its choices.
pub(crate) fn give(
    graph: &mut Graph<'_>,
    spec: &EnvSpec,
    action: &Edge,
    len: usize,
) -> Result<(), PolicyError> {
    if len != spec.action.len() {
        return bad(format!("the agent acts by {len} numbers, the world takes {}", spec.action.len()));
    }
    if !spec.action.is_discrete() {
        graph.output("action", PortNumbers::F32, &sizes(&[len]), action, "the action in the world's units");
        return Ok(());
    }
    graph.output("scores", PortNumbers::F32, &sizes(&[len]), action, "a score for each choice");
    let choice = first_largest(graph, action);
    graph.output(
        "choice",
        PortNumbers::I64,
        &[],
        &choice,
        "the choice of the highest score, the first of equal ones",
    );
    Ok(())
}

/// The index of the largest number, the first of equal ones.
pub(crate) fn first_largest(graph: &mut Graph<'_>, numbers: &Edge) -> Edge {
    graph.op_with("ArgMax", &[numbers], &[("axis", Attribute::Int(0)), ("keepdims", Attribute::Int(0))])
}

/// 1 at `choice` of `len`, 0 elsewhere.
pub(crate) fn one_hot(graph: &mut Graph<'_>, choice: &Edge, len: usize) -> Edge {
    let all = graph.ints(0..len);
    let equal = graph.op("Equal", &[&all, choice]);
    graph.as_floats(&equal)
}

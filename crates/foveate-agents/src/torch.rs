//! Agents as modules of `PyTorch`: the sources of the Python package, and what a module needs beside the weights.

use foveate_core::TensorShape;

/// What all modules share.
const AGENT: &str = include_str!("../../foveate-py/python/foveate/torch/_agent.py");
/// What modules with votes share.
const BOTTLENECK: &str = include_str!("../../foveate-py/python/foveate/torch/_bottleneck.py");
/// How imports of the parts begin, which are one file here.
const OWN_IMPORT: &str = "from foveate.torch.";

/// The module of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct TorchModule {
    /// The name of its class.
    pub class: &'static str,
    /// The name of its file, without ending.
    pub file: &'static str,
    parts: [&'static str; 3],
    /// Numbers that are drawn from a seed: tensors that the module takes beside the weights.
    pub fixed: Vec<(TensorShape, Vec<f32>)>,
}

impl TorchModule {
    /// A module whose own part is `source`; with `votes`, it uses what modules with votes share.
    pub(crate) fn new(class: &'static str, file: &'static str, source: &'static str, votes: bool) -> Self {
        TorchModule {
            class,
            file,
            parts: [AGENT, if votes { BOTTLENECK } else { "" }, source],
            fixed: vec![],
        }
    }

    /// Adds drawn numbers.
    #[must_use]
    pub(crate) fn with_fixed(mut self, name: &str, shape: Vec<usize>, numbers: Vec<f32>) -> Self {
        self.fixed.push((TensorShape { name: name.to_owned(), shape }, numbers));
        self
    }

    /// The whole module in one file, which imports nothing but `PyTorch`.
    pub fn source(&self) -> String {
        let lines = self.parts.iter().flat_map(|part| part.lines().chain(["", ""]));
        let mut whole = String::new();
        for line in lines.filter(|line| !line.starts_with(OWN_IMPORT)) {
            whole.push_str(line);
            whole.push('\n');
        }
        whole.trim_end().to_owned() + "\n"
    }
}

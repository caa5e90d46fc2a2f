//! The two orders in which published weights lie in one flat vector.

use std::fmt;

use foveate_core::{PolicyError, TensorShape};

use crate::params::{check_count, starts};

/// Order of the tensors in a flat vector. Reading one as the other silently gives a broken agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// Layers in order of use, the tensors of a layer by name: bias before weight, for the LSTM `bias_hh`, `bias_ih`,
    /// `weight_hh`, `weight_ih`. The AttentionAgent release; also our own order.
    #[default]
    Sorted,
    /// Layers in order of use, the tensors of a layer as PyTorch registers them: weight before bias, for the LSTM
    /// `weight_ih`, `weight_hh`, `bias_ih`, `bias_hh`. The simplified branch and the AttentionNeuron release.
    Registration,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 2] = [Layout::Sorted, Layout::Registration];

    /// The layout called `sorted` or `registration`.
    pub fn named(name: &str) -> Option<Layout> {
        Layout::ALL.into_iter().find(|layout| layout.name() == name)
    }

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Layout::Sorted => "sorted",
            Layout::Registration => "registration",
        }
    }

    /// `tensors`, which are in sorted order, in this order: positions in `tensors`.
    fn order(self, tensors: &[TensorShape]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..tensors.len()).collect();
        if self == Layout::Registration {
            let layer = |i: usize| tensors[i].name.split('.').next().unwrap_or_default().to_owned();
            let rank = |i: usize| {
                const REGISTERED: [&str; 6] =
                    ["weight", "bias", "weight_ih", "weight_hh", "bias_ih", "bias_hh"];
                let name = tensors[i].name.rsplit('.').next().unwrap_or_default();
                REGISTERED.iter().position(|&known| known == name)
            };
            // Layers stay where they are; inside each run of one layer the tensors are put in order.
            let mut start = 0;
            while start < order.len() {
                let end = (start..order.len()).find(|&i| layer(i) != layer(start)).unwrap_or(order.len());
                order[start..end].sort_by_key(|&i| rank(i));
                start = end;
            }
        }
        order
    }

    /// Brings a vector in this layout into our own order.
    ///
    /// # Errors
    /// When the vector has not as many numbers as the tensors.
    pub fn to_ours(self, tensors: &[TensorShape], flat: &[f32]) -> Result<Vec<f32>, PolicyError> {
        check_count(tensors, flat)?;
        let starts = starts(tensors);
        let mut ours = vec![0.0; flat.len()];
        let mut from = 0;
        for i in self.order(tensors) {
            let len = tensors[i].len();
            ours[starts[i]..starts[i] + len].copy_from_slice(&flat[from..from + len]);
            from += len;
        }
        Ok(ours)
    }

    /// Brings a vector in our own order into this layout.
    ///
    /// # Errors
    /// When the vector has not as many numbers as the tensors.
    pub fn from_ours(self, tensors: &[TensorShape], ours: &[f32]) -> Result<Vec<f32>, PolicyError> {
        check_count(tensors, ours)?;
        let starts = starts(tensors);
        let order = self.order(tensors);
        Ok(order.into_iter().flat_map(|i| &ours[starts[i]..starts[i] + tensors[i].len()]).copied().collect())
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! The history of an episode: everything that is needed to replay it.

use crate::process::StepReply;

/// An episode so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The seed of the reset.
    pub(crate) seed: u64,
    /// Numbers in an action.
    width: usize,
    /// `[steps, width]`
    actions: Vec<f64>,
    outcomes: Vec<StepReply>,
}

impl History {
    /// Begins an episode with actions of `width` numbers. Reserves memory for `steps` steps, up to 1 MiB, so
    /// that adding a step allocates nothing; longer episodes grow beyond that.
    pub(crate) fn begin(&mut self, seed: u64, width: usize, steps: usize) {
        (self.seed, self.width) = (seed, width);
        self.actions.clear();
        self.outcomes.clear();
        let steps = steps.min((1 << 20) / (size_of::<StepReply>() + width * size_of::<f64>()));
        self.actions.reserve(steps * width);
        self.outcomes.reserve(steps);
    }

    pub(crate) fn add(&mut self, action: &[f64], outcome: StepReply) {
        self.actions.extend_from_slice(action);
        self.outcomes.push(outcome);
    }

    pub(crate) fn steps(&self) -> usize {
        self.outcomes.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[f64], StepReply)> {
        self.actions.chunks_exact(self.width.max(1)).zip(self.outcomes.iter().copied())
    }
}

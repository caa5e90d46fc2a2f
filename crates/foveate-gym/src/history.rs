//! The history of an episode: everything that is needed to replay it.

use crate::process::StepReply;

/// An episode so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// The seed of the reset.
    pub(crate) seed: u64,
    /// Numbers in an action.
    width: usize,
    /// `[requests, width]`
    actions: Vec<f64>,
    /// `[requests]`
    outcomes: Vec<Repeated>,
    steps: usize,
}

/// What a request led to: `times` steps with an action, or fewer at the end of an episode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Repeated {
    pub(crate) times: u16,
    pub(crate) outcome: StepReply,
}

impl History {
    /// Begins an episode with actions of `width` numbers. Reserves memory for `steps` steps, up to 1 MiB, so
    /// that adding a step allocates nothing; longer episodes grow beyond that.
    pub(crate) fn begin(&mut self, seed: u64, width: usize, steps: usize) {
        (self.seed, self.width) = (seed, width);
        self.actions.clear();
        self.outcomes.clear();
        self.steps = 0;
        let steps = steps.min((1 << 20) / (size_of::<Repeated>() + width * size_of::<f64>()));
        self.actions.reserve(steps * width);
        self.outcomes.reserve(steps);
    }

    pub(crate) fn add(&mut self, action: &[f64], times: u16, outcome: StepReply) {
        self.actions.extend_from_slice(action);
        self.outcomes.push(Repeated { times, outcome });
        self.steps += usize::from(outcome.steps);
    }

    pub(crate) const fn steps(&self) -> usize {
        self.steps
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[f64], Repeated)> {
        self.actions.chunks_exact(self.width.max(1)).zip(self.outcomes.iter().copied())
    }
}

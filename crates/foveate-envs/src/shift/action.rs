//! Shifts of actions.

use foveate_core::{Action, ActionBuf, ActionSpace, Image, Seed};

use super::operator::{Moment, Operator};

/// Sticky actions: with some probability the previous action is repeated (Machado et al. 2018 use 0.25).
#[derive(Debug, Clone)]
pub(super) struct Sticky {
    before: ActionBuf,
    any: bool,
}

impl Sticky {
    pub(super) const fn new() -> Self {
        Sticky { before: ActionBuf::Discrete(0), any: false }
    }
}

impl Operator for Sticky {
    fn begin(&mut self, _: Image<'_>, _: Seed) {
        self.any = false;
    }

    fn act(&mut self, action: &mut ActionBuf, _: &ActionSpace, now: &Moment<'_>) {
        if self.any && now.dice.rng().next_f64() < now.amount {
            action.set(self.before.as_action());
        }
    }

    fn acted(&mut self, action: Action<'_>) {
        // Allocates in the first step only.
        self.before.set(action);
        self.any = true;
    }
}

/// Noise on every number of the action, clipped to its bounds; of choices, a random one with some probability.
#[derive(Debug, Clone)]
pub(super) struct Unsteady;

impl Operator for Unsteady {
    fn act(&mut self, action: &mut ActionBuf, space: &ActionSpace, now: &Moment<'_>) {
        let mut rng = now.dice.rng();
        match (action, space) {
            (ActionBuf::Continuous(values), ActionSpace::Box { low, high }) => {
                for ((value, &low), &high) in values.iter_mut().zip(low).zip(high) {
                    let range = high - low;
                    let half = if range.is_finite() { range / 2.0 } else { 1.0 };
                    *value = (*value + now.amount * half * rng.normal()).max(low).min(high);
                }
            }
            (ActionBuf::Discrete(choice), ActionSpace::Discrete { n }) if rng.next_f64() < now.amount => {
                *choice = rng.below(*n as u64) as usize;
            }
            // No other choice this time; the world returns the error for an action of another kind.
            _ => {}
        }
    }
}

//! What becomes of an action on its way to the world.

use foveate_core::{Image, Seed};

use super::operator::{Deed, Moment, Operator};

/// Now and then the action before is done again (Machado et al. 2018 use a probability of 0.25).
#[derive(Debug, Clone)]
pub(super) struct Sticky {
    values: Vec<f64>,
    choice: usize,
    any: bool,
}

impl Sticky {
    pub(super) const fn new() -> Self {
        Sticky { values: Vec::new(), choice: 0, any: false }
    }
}

impl Operator for Sticky {
    fn begin(&mut self, _: Image<'_>, _: Seed) {
        self.any = false;
    }

    fn act(&mut self, deed: &mut Deed<'_>, now: &Moment<'_>) {
        if !self.any || now.dice.rng().next_f64() >= now.amount {
            return;
        }
        match deed {
            Deed::Numbers { values, .. } => values.copy_from_slice(&self.values),
            Deed::Choice { choice, .. } => **choice = self.choice,
        }
    }

    fn acted(&mut self, deed: &Deed<'_>) {
        match deed {
            Deed::Numbers { values, .. } => {
                // Takes memory in the first step of all only.
                self.values.clear();
                self.values.extend_from_slice(values);
            }
            Deed::Choice { choice, .. } => self.choice = **choice,
        }
        self.any = true;
    }
}

/// Noise on every number of the action, kept within its bounds; of choices, now and then any other one.
#[derive(Debug, Clone)]
pub(super) struct Unsteady;

impl Operator for Unsteady {
    fn act(&mut self, deed: &mut Deed<'_>, now: &Moment<'_>) {
        let mut rng = now.dice.rng();
        match deed {
            Deed::Numbers { values, low, high } => {
                for ((value, &low), &high) in values.iter_mut().zip(*low).zip(*high) {
                    let range = high - low;
                    let half = if range.is_finite() { range / 2.0 } else { 1.0 };
                    *value = (*value + now.amount * half * rng.normal()).max(low).min(high);
                }
            }
            Deed::Choice { choice, n } => {
                if rng.next_f64() < now.amount {
                    **choice = rng.below(*n as u64) as usize;
                }
            }
        }
    }
}

//! Tells when nothing changes any more in the search of an evolution strategy, as the termination criteria
//! `tolflatfitness`, `tolfun` and `tolx` of pycma do. A run goes on all the same: its budget is the user's.

use crate::event::Event;

/// Generations in a row in which all genomes have the same fitness, after which a run says so.
const FLAT: u64 = 20;

/// Differences of fitness below this share of it, and below this, are none (pycma's `tolfun`).
const LEAST_DIFFERENCE: f64 = 1e-11;

/// The share of its first value at which a standard deviation has become negligible (pycma's `tolx`).
const LEAST_STEP: f64 = 1e-11;

/// Watches the events of a run.
///
/// It knows a run by its events alone, so a resumed run, whose log it reads first, says the same as one that was
/// never stopped.
#[derive(Debug, Clone)]
pub struct Stagnation {
    params: usize,
    /// Stage and start that the rest is about.
    of: (String, usize),
    /// Generations in a row without a difference in fitness.
    flat: u64,
    /// The first standard deviation of the start.
    first: f64,
    /// True if the standard deviation was negligible in the last generation.
    narrow: bool,
}

impl Stagnation {
    /// Watches a run with this many parameters, from its first event on.
    pub const fn new(params: usize) -> Self {
        Stagnation { params, of: (String::new(), 0), flat: 0, first: 0.0, narrow: false }
    }

    /// Receives the next event of the run; returns the event that the run must log after it.
    pub fn after(&mut self, event: &Event) -> Option<Event> {
        let &Event::Generation { generation, steps, ref stage, start, best, mean, norm, sigma, .. } = event
        else {
            return None;
        };
        if (&self.of.0, self.of.1) != (stage, start) {
            *self = Stagnation { of: (stage.clone(), start), first: sigma, ..Stagnation::new(self.params) };
        }
        // Only strategies draw genomes from a distribution.
        if sigma <= 0.0 {
            return None;
        }
        let flat = best - mean <= LEAST_DIFFERENCE * best.abs().max(1.0);
        self.flat = if flat { self.flat + 1 } else { 0 };
        let root_mean_square = norm / (self.params.max(1) as f64).sqrt();
        let least = (LEAST_STEP * self.first).max(f64::from(f32::EPSILON) * root_mean_square);
        let narrows = sigma <= least && !std::mem::replace(&mut self.narrow, sigma <= least);
        let why = if self.flat == FLAT {
            format!(
                "all genomes have had the same fitness for {FLAT} generations, now {best}: nothing is learnt from them"
            )
        } else if narrows {
            format!(
                "the standard deviation of the genomes is {sigma:.1e}, too small to change anything: the search has converged"
            )
        } else {
            return None;
        };
        Some(Event::Stagnation { generation, steps, stage: stage.clone(), start, why })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(generation: u64, (best, mean, sigma): (f64, f64, f64), start: usize) -> Event {
        Event::Generation {
            generation,
            steps: 100 * generation,
            stage: "learn".into(),
            start,
            best,
            mean,
            length: 10.0,
            norm: 2.0,
            sigma,
            replayed: 0,
            tasks: vec![],
            measures: std::collections::BTreeMap::new(),
        }
    }

    /// The generations at which a run of these generations says something, and what.
    fn said(run: impl Iterator<Item = (f64, f64, f64)>) -> Vec<(u64, String)> {
        let mut watch = Stagnation::new(4);
        let events = (1..).zip(run).map(|(i, numbers)| generation(i, numbers, 1));
        events
            .filter_map(|event| match watch.after(&event)? {
                Event::Stagnation { generation, why, .. } => Some((generation, why)),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn what_stands_still_is_said_once() {
        let flat = (0..70).map(|i| if i == 10 { (2.0, 1.0, 0.1) } else { (1.0, 1.0, 0.1) });
        let flat = said(flat);
        assert_eq!(flat.len(), 1, "{flat:?}");
        assert_eq!(flat[0].0, 31);
        assert!(flat[0].1.contains("the same fitness for 20 generations, now 1"), "{flat:?}");
        // Sums of equal numbers may differ in their last bit.
        assert_eq!(said((0..25).map(|_| (0.3, 0.299_999_999_999_999_9, 0.1))).len(), 1);
        let narrow = said((0..70).map(|i| (1.0, 0.5, 0.1_f64.powi(i))));
        assert_eq!(narrow.len(), 1, "{narrow:?}");
        // The root mean square of the weights is 1, whose spacing is 1.2e-7.
        assert_eq!(narrow[0].0, 8, "{narrow:?}");
        assert!(narrow[0].1.contains("is 1.0e-7, too small"), "{narrow:?}");
    }

    #[test]
    fn a_healthy_search_and_learners_by_gradients_say_nothing() {
        assert_eq!(said((0..500).map(|i| (f64::from(i), 0.0, 0.1))), []);
        assert_eq!(said((0..500).map(|i| if i % 20 == 0 { (1.0, 0.0, 0.1) } else { (1.0, 1.0, 0.1) })), []);
        assert_eq!(said((0..500).map(|_| (1.0, 1.0, 0.0))), [], "they have one row of weights");
        // Every start begins anew.
        let mut watch = Stagnation::new(4);
        for i in 0..50 {
            assert_eq!(watch.after(&generation(i, (1.0, 1.0, 0.1), 1 + i as usize / 15)), None);
        }
    }
}

//! Which demonstrated steps are learnt from: those with large errors more often than others (prioritised sampling, as in
//! Schaul et al. 2016, "Prioritized experience replay").

use std::collections::VecDeque;
use std::ops::Range;

use foveate_core::{LearnError, Rng};

use crate::sum_tree::SumTree;

/// Added to every error, so that each step is drawn at times.
const LEAST: f64 = 0.001;
/// The error of a step that nothing was learnt from yet.
const UNKNOWN: f32 = -1.0;

/// The latest errors of the kept steps.
///
/// All steps of a piece that was learnt from take its mean error per step. A new step is drawn like the step of the largest
/// error that there has been in the round.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors {
    /// `[demonstrations, steps]`: of each step the latest error, or [`UNKNOWN`]; oldest first.
    of_steps: VecDeque<Vec<f32>>,
}

impl Errors {
    /// One more demonstration, the newest.
    pub(super) fn push(&mut self, steps: usize) {
        self.of_steps.push_back(vec![UNKNOWN; steps]);
    }

    /// Only the newest `keep` demonstrations are left.
    pub(super) fn keep(&mut self, keep: usize) {
        self.of_steps.drain(..self.of_steps.len().saturating_sub(keep));
    }

    /// All numbers, for a state.
    pub(super) fn flat(&self) -> Vec<f32> {
        self.of_steps.iter().flatten().copied().collect()
    }

    /// The errors of demonstrations of these numbers of steps, from the numbers of a state, as many as steps.
    ///
    /// # Errors
    /// When one of them is no error.
    pub(super) fn from_flat(mut flat: &[f32], steps: &[u64]) -> Result<Self, LearnError> {
        if let Some(error) =
            flat.iter().find(|&&error| !(error == UNKNOWN || (error.is_finite() && error >= 0.0)))
        {
            return Err(LearnError::BadState {
                why: format!("a demonstrated step with an error of {error}"),
            });
        }
        let mut of_steps = VecDeque::with_capacity(steps.len());
        for &steps in steps {
            let (of_this, others) = flat.split_at(steps as usize);
            of_steps.push_back(of_this.to_vec());
            flat = others;
        }
        Ok(Errors { of_steps })
    }

    /// The mean over the steps that something was learnt from; 0 when there are none.
    pub(super) fn mean(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0);
        for &error in self.of_steps.iter().flatten().filter(|&&error| error >= 0.0) {
            (sum, count) = (sum + f64::from(error), count + 1);
        }
        sum / f64::from(count.max(1))
    }
}

/// Draws pieces of a round, and takes their errors.
pub(super) struct Draws {
    /// Exponent of the errors.
    exponent: f64,
    tree: SumTree,
    /// `[demonstrations + 1]`: number of steps in the demonstrations before each.
    starts: Vec<usize>,
}

impl Draws {
    pub(super) fn new(errors: &Errors, exponent: f64) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        for of_demonstration in &errors.of_steps {
            end += of_demonstration.len();
            starts.push(end);
        }
        let mut draws = Draws { exponent, tree: SumTree::new(end), starts };
        for known in [true, false] {
            for (step, &error) in errors.of_steps.iter().flatten().enumerate() {
                if known == (error >= 0.0) {
                    let priority = if known { draws.priority(error) } else { draws.tree.largest };
                    draws.set(step, priority);
                }
            }
        }
        draws
    }

    fn priority(&self, error: f32) -> f64 {
        (f64::from(error) + LEAST).powf(self.exponent)
    }

    fn set(&mut self, step: usize, priority: f64) {
        self.tree.largest = self.tree.largest.max(priority);
        self.tree.set(step, priority);
    }

    /// A demonstration, and a piece of it of at most `piece` steps around a step that is drawn by its priority.
    pub(super) fn draw(&self, rng: &mut Rng, piece: usize) -> (usize, Range<usize>) {
        let all = self.starts[self.starts.len() - 1];
        let drawn = self.tree.find(rng.next_f64() * self.tree.total()).min(all - 1);
        let demonstration = self.starts.partition_point(|&start| start <= drawn) - 1;
        let (start, end) = (self.starts[demonstration], self.starts[demonstration + 1]);
        let before = rng.below(piece as u64) as usize;
        let from = (drawn - start).saturating_sub(before);
        (demonstration, from..(end - start).min(from + piece))
    }

    /// The error of a piece, the sum over its steps.
    pub(super) fn learnt(
        &mut self,
        errors: &mut Errors,
        demonstration: usize,
        steps: Range<usize>,
        error: f64,
    ) {
        let error = (error / steps.len() as f64).clamp(0.0, f64::from(f32::MAX)) as f32;
        let priority = self.priority(error);
        for step in steps {
            errors.of_steps[demonstration][step] = error;
            self.set(self.starts[demonstration] + step, priority);
        }
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    #[test]
    fn steps_are_drawn_by_their_errors() {
        let mut errors = Errors::default();
        errors.push(3);
        errors.push(2);
        let mut draws = Draws::new(&errors, 1.0);
        for (demonstration, step, error) in [(0, 0, 0.0), (0, 1, 1.0), (0, 2, 0.0), (1, 0, 3.0), (1, 1, 0.0)]
        {
            draws.learnt(&mut errors, demonstration, step..step + 1, error);
        }
        assert_eq!(errors.flat(), [0.0, 1.0, 0.0, 3.0, 0.0]);
        assert!((errors.mean() - 0.8).abs() < 1e-9);
        let mut rng = Seed::root(1).rng();
        let mut counts = [0; 5];
        // A round later the same errors count.
        let draws = Draws::new(&errors, 1.0);
        for _ in 0..10_000 {
            let (demonstration, steps) = draws.draw(&mut rng, 1);
            assert_eq!(steps.len(), 1);
            counts[3 * demonstration + steps.start] += 1;
        }
        // 2,500 and 7,500 are expected, with a standard deviation of 43.
        assert!((2_300..2_700).contains(&counts[1]) && (7_300..7_700).contains(&counts[3]), "{counts:?}");
        assert!(counts[0] + counts[2] + counts[4] < 30, "{counts:?}");
    }

    #[test]
    fn new_steps_are_drawn_as_those_of_the_largest_error() {
        let mut errors = Errors::from_flat(&[0.0, 5.0], &[2]).expect("two errors");
        errors.push(1);
        let draws = Draws::new(&errors, 1.0);
        let mut rng = Seed::root(1).rng();
        let of_new = (0..10_000).filter(|_| draws.draw(&mut rng, 1).0 == 1).count();
        assert!((4_800..5_200).contains(&of_new), "{of_new}");
        errors.keep(1);
        assert_eq!(errors.flat(), [UNKNOWN]);
    }

    #[test]
    fn pieces_contain_the_step_and_stay_within_their_demonstration() {
        let mut errors = Errors::from_flat(&[0.0, 0.0, 9.0, 0.0, 0.0, 0.0], &[4, 2]).expect("six errors");
        let mut draws = Draws::new(&errors, 4.0);
        let mut rng = Seed::root(1).rng();
        for _ in 0..100 {
            let (demonstration, steps) = draws.draw(&mut rng, 3);
            assert!(demonstration == 0 && steps.contains(&2) && steps.end <= 4, "{steps:?}");
        }
        draws.learnt(&mut errors, 0, 1..4, 6.0);
        assert_eq!(errors.flat(), [0.0, 2.0, 2.0, 2.0, 0.0, 0.0]);
        assert!(Errors::from_flat(&[-0.5], &[1]).is_err() && Errors::from_flat(&[f32::NAN], &[1]).is_err());
    }
}

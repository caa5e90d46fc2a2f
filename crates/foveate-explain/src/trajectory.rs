//! What happened in an episode, step by step.

use foveate_core::PatchGrid;

/// An episode as an explanation needs it; entry `t` of every list belongs to decision `t`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trajectory {
    /// How the picture was cut into patches; `None` for a policy without attention.
    pub grid: Option<PatchGrid>,
    /// What was decided, in the world's own units.
    pub actions: Vec<Vec<f64>>,
    /// Reward.
    pub rewards: Vec<f64>,
    /// The patches that the controller saw, most important first; empty without attention.
    pub selected: Vec<Vec<u32>>,
    /// How important each of these was, as a share of all importance of its moment.
    pub shares: Vec<Vec<f32>>,
    /// The world itself ended the episode.
    pub ended: bool,
}

impl Trajectory {
    /// Decisions taken.
    pub fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Returns whether none was taken.
    pub fn is_empty(&self) -> bool {
        self.rewards.is_empty()
    }

    /// Sum of rewards.
    pub fn score(&self) -> f64 {
        self.rewards.iter().sum()
    }

    /// Sum of rewards after every decision.
    pub fn scores(&self) -> Vec<f64> {
        let mut sum = 0.0;
        self.rewards
            .iter()
            .map(|reward| {
                sum += reward;
                sum
            })
            .collect()
    }
}

/// How an action dimension is called, and its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    /// Its name.
    pub name: String,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Distance between two actions, in 0.0..=1.0.
#[derive(Debug, Clone, PartialEq)]
pub enum ActionScale {
    /// Mean over dimensions of |difference| divided by the dimension's extent, at most 1 each.
    Box(Vec<[f64; 2]>),
    /// Scores of choices: half the sum of |differences| of the probabilities that a softmax makes of them.
    Choices,
}

impl ActionScale {
    /// The action as people see it: itself, or the probabilities of the choices.
    pub fn shown(&self, action: &[f64]) -> Vec<f64> {
        match self {
            ActionScale::Box(_) => action.to_vec(),
            ActionScale::Choices => softmax(action),
        }
    }

    /// The distance.
    pub fn distance(&self, a: &[f64], b: &[f64]) -> f64 {
        match self {
            ActionScale::Box(bounds) => {
                let apart = |((a, b), [low, high]): ((&f64, &f64), &[f64; 2])| {
                    ((a - b).abs() / (high - low).max(1e-12)).min(1.0)
                };
                a.iter().zip(b).zip(bounds).map(apart).sum::<f64>() / bounds.len().max(1) as f64
            }
            ActionScale::Choices => {
                let (p, q) = (softmax(a), softmax(b));
                p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum::<f64>() / 2.0
            }
        }
    }
}

fn softmax(scores: &[f64]) -> Vec<f64> {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let raised: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
    let sum: f64 = raised.iter().sum();
    raised.iter().map(|r| r / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_parts_of_the_whole_range() {
        let car = ActionScale::Box(vec![[-1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]);
        assert_eq!(car.distance(&[0.0, 0.5, 0.5], &[0.0, 0.5, 0.5]), 0.0);
        assert_eq!(car.distance(&[-1.0, 0.0, 0.0], &[1.0, 1.0, 1.0]), 1.0);
        assert!((car.distance(&[0.0, 0.5, 0.0], &[1.0, 0.5, 0.25]) - 0.25).abs() < 1e-12);
        assert_eq!(ActionScale::Choices.distance(&[1.0, 3.0], &[11.0, 13.0]), 0.0);
        assert!((ActionScale::Choices.distance(&[0.0, 900.0], &[900.0, 0.0]) - 1.0).abs() < 1e-12);
    }
}

//! Actions and action spaces.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{EnvError, PolicyError, Rng};

/// A borrowed action.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Action<'a> {
    /// One number per dimension of a [`ActionSpace::Box`].
    Continuous(&'a [f64]),
    /// An action of [`ActionSpace::Discrete`], from 0.
    Discrete(usize),
}

/// Formats the action as in action files: `[0.5, 1.0]`, or `3`.
impl fmt::Display for Action<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Continuous(numbers) => write!(f, "{numbers:?}"),
            Action::Discrete(choice) => write!(f, "{choice}"),
        }
    }
}

/// An owned action: it can be stored and sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionBuf {
    /// As [`Action::Continuous`].
    Continuous(Vec<f64>),
    /// As [`Action::Discrete`].
    Discrete(usize),
}

impl ActionBuf {
    /// The action, borrowed.
    pub fn as_action(&self) -> Action<'_> {
        match self {
            ActionBuf::Continuous(numbers) => Action::Continuous(numbers),
            ActionBuf::Discrete(choice) => Action::Discrete(*choice),
        }
    }

    /// Copies `action` into `self`. Does not allocate when both have the same length.
    pub fn set(&mut self, action: Action<'_>) {
        match (self, action) {
            (ActionBuf::Continuous(numbers), Action::Continuous(given)) => {
                numbers.clear();
                numbers.extend_from_slice(given);
            }
            (buf, action) => *buf = action.into(),
        }
    }
}

impl From<Action<'_>> for ActionBuf {
    fn from(action: Action<'_>) -> Self {
        match action {
            Action::Continuous(numbers) => ActionBuf::Continuous(numbers.to_vec()),
            Action::Discrete(choice) => ActionBuf::Discrete(choice),
        }
    }
}

/// The set of actions that a world accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionSpace {
    /// Bounds per dimension. A world may accept values outside; each world defines what it does with them.
    Box {
        /// Lower bounds.
        low: Vec<f64>,
        /// Upper bounds.
        high: Vec<f64>,
    },
    /// One of `n` choices.
    Discrete {
        /// Number of choices.
        n: usize,
    },
}

impl ActionSpace {
    /// Number of policy outputs: one per dimension, or one score per choice.
    pub const fn len(&self) -> usize {
        match self {
            ActionSpace::Box { low, .. } => low.len(),
            ActionSpace::Discrete { n } => *n,
        }
    }

    /// Returns whether the number of policy outputs is zero.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the space is discrete.
    pub const fn is_discrete(&self) -> bool {
        matches!(self, ActionSpace::Discrete { .. })
    }

    /// `[low, high]` of each policy output; `[0, 1]` for the score of a choice.
    pub fn bounds(&self) -> Vec<[f64; 2]> {
        match self {
            ActionSpace::Box { low, high } => low.iter().zip(high).map(|(&low, &high)| [low, high]).collect(),
            ActionSpace::Discrete { n } => vec![[0.0, 1.0]; *n],
        }
    }

    /// A name for each policy output: the `known` names of the world if the count matches, else `a0`, `a1`, …
    /// or `choice 0`, `choice 1`, ….
    pub fn names(&self, known: &[&str]) -> Vec<String> {
        let stem = if self.is_discrete() { "choice " } else { "a" };
        let known = if known.len() == self.len() { known } else { &[] };
        let name = |i: usize| known.get(i).map_or_else(|| format!("{stem}{i}"), |name| (*name).to_owned());
        (0..self.len()).map(name).collect()
    }

    /// Converts policy outputs to an action: the numbers themselves, or the choice with the largest score (on
    /// a tie, the first one).
    ///
    /// The numbers of an [`ActionSpace::Box`] are not checked here; [`ActionSpace::check`] and the worlds
    /// check them.
    ///
    /// # Errors
    /// [`PolicyError::Scores`] when the number of scores is not the number of choices, or when all scores are
    /// NaN.
    #[inline]
    pub fn choose<'a>(&self, outputs: &'a [f64]) -> Result<Action<'a>, PolicyError> {
        match *self {
            ActionSpace::Box { .. } => Ok(Action::Continuous(outputs)),
            ActionSpace::Discrete { n } => largest(outputs, n).map(Action::Discrete),
        }
    }

    /// Checks that an action has this kind and length, that its choice exists, and that its numbers are
    /// finite. `env` is the world's name for error messages.
    ///
    /// # Errors
    /// [`EnvError::ActionLength`], [`EnvError::ActionKind`] or [`EnvError::ActionNotFinite`].
    pub fn check(&self, env: &str, action: Action<'_>) -> Result<(), EnvError> {
        let env = || env.to_owned();
        match (self, action) {
            (ActionSpace::Box { low, .. }, Action::Continuous(given)) => {
                if given.len() != low.len() {
                    let (wanted, given) = (low.len(), given.len());
                    return Err(EnvError::ActionLength { env: env(), wanted, given });
                }
                match given.iter().position(|x| !x.is_finite()) {
                    Some(index) => Err(EnvError::ActionNotFinite { env: env(), index, value: given[index] }),
                    None => Ok(()),
                }
            }
            (ActionSpace::Discrete { n }, Action::Discrete(choice)) if choice < *n => Ok(()),
            _ => Err(EnvError::ActionKind {
                env: env(),
                wanted: self.describe(),
                given: format!("{action:?}"),
            }),
        }
    }

    /// Checks the length of the slice that an expert writes its action to.
    ///
    /// # Errors
    /// [`EnvError::ActionLength`].
    pub fn check_len(&self, env: &str, given: usize) -> Result<(), EnvError> {
        if given == self.len() {
            return Ok(());
        }
        Err(EnvError::ActionLength { env: env.to_owned(), wanted: self.len(), given })
    }

    /// Zeros, or choice 0: in most worlds, no operation.
    pub fn zero(&self) -> ActionBuf {
        match self {
            ActionSpace::Box { low, .. } => ActionBuf::Continuous(vec![0.0; low.len()]),
            ActionSpace::Discrete { .. } => ActionBuf::Discrete(0),
        }
    }

    /// Samples an action: uniform within the bounds, or uniform over the choices. A bound that is not finite
    /// counts as −1 or 1.
    pub fn sample(&self, rng: &mut Rng) -> ActionBuf {
        match self {
            ActionSpace::Box { low, high } => {
                let finite = |bound: f64, otherwise| if bound.is_finite() { bound } else { otherwise };
                let draw = |(&low, &high)| rng.uniform(finite(low, -1.0), finite(high, 1.0));
                ActionBuf::Continuous(low.iter().zip(high).map(draw).collect())
            }
            ActionSpace::Discrete { n } => {
                ActionBuf::Discrete((rng.uniform(0.0, *n as f64) as usize).min(n.saturating_sub(1)))
            }
        }
    }

    /// A description in words: `3 numbers`, or `a choice from 0 to 4`.
    pub fn describe(&self) -> String {
        match self {
            ActionSpace::Box { low, .. } if low.len() == 1 => "1 number".to_owned(),
            ActionSpace::Box { low, .. } => format!("{} numbers", low.len()),
            ActionSpace::Discrete { n } => format!("a choice from 0 to {}", n.saturating_sub(1)),
        }
    }
}

/// The choice with the largest score.
fn largest(scores: &[f64], n: usize) -> Result<usize, PolicyError> {
    if scores.len() != n {
        let why = format!("{} scores were given for {n} choices; set actions to {n} ranges", scores.len());
        return Err(PolicyError::Scores { why });
    }
    let scores = scores.iter().enumerate().filter(|(_, score)| !score.is_nan());
    let largest = scores.reduce(|best, next| if next.1 > best.1 { next } else { best });
    largest.map(|(choice, _)| choice).ok_or_else(|| PolicyError::Scores {
        why: format!("all {n} scores are NaN, so none is the largest; the agent's weights are broken"),
    })
}

/// Makes probabilities of scores that are logits, or whose exponentials are probabilities; what sums to about 1 gets that sum
/// exactly. Other scores, such as values of choices, stay as they are.
pub fn as_probabilities(scores: &mut [f64], logits: bool) {
    const ABOUT: f64 = 1e-3;
    let exponentials: f64 = scores.iter().map(|score| score.exp()).sum();
    if logits || (exponentials - 1.0).abs() < ABOUT {
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for score in scores.iter_mut() {
            *score = (*score - most).exp();
        }
    } else if scores.iter().any(|&score| score < 0.0) || (scores.iter().sum::<f64>() - 1.0).abs() >= ABOUT {
        return;
    }
    let sum: f64 = scores.iter().sum();
    for score in scores {
        *score /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    fn car() -> ActionSpace {
        ActionSpace::Box { low: vec![-1.0, 0.0], high: vec![1.0, 0.5] }
    }

    const MOVES: ActionSpace = ActionSpace::Discrete { n: 3 };

    #[test]
    fn a_space_answers_for_itself() {
        assert_eq!((car().len(), MOVES.len()), (2, 3));
        assert_eq!(car().bounds(), [[-1.0, 1.0], [0.0, 0.5]]);
        assert_eq!(MOVES.bounds(), [[0.0, 1.0]; 3]);
        assert_eq!(car().names(&["steer", "gas"]), ["steer", "gas"]);
        assert_eq!(car().names(&["steer"]), ["a0", "a1"], "names of another space");
        assert_eq!(MOVES.names(&[]), ["choice 0", "choice 1", "choice 2"]);
        assert_eq!((car().describe(), MOVES.describe()), ("2 numbers".into(), "a choice from 0 to 2".into()));
        assert_eq!(car().zero(), ActionBuf::Continuous(vec![0.0, 0.0]));
        assert_eq!(MOVES.zero(), ActionBuf::Discrete(0));
    }

    #[test]
    fn scores_become_the_largest_choice_and_all_nan_is_an_error() {
        let nan = f64::NAN;
        for (scores, choice) in [
            ([0.0, 0.0, 0.0], 0),
            ([1.0, 3.0, 2.0], 1),
            ([-5.0, -1.0, -1.0], 1),
            ([nan, nan, -7.0], 2),
            ([nan, 1.0, 2.0], 2),
            ([f64::NEG_INFINITY, nan, f64::INFINITY], 2),
        ] {
            assert_eq!(MOVES.choose(&scores), Ok(Action::Discrete(choice)), "{scores:?}");
        }
        let refused = |scores: &[f64], why: &str| {
            let said = MOVES.choose(scores).expect_err(why).to_string();
            assert!(said.contains(why), "{said}");
        };
        refused(&[nan; 3], "all 3 scores are NaN");
        refused(&[1.0, 2.0], "2 scores were given for 3 choices");
        refused(&[], "0 scores");
        assert_eq!(
            car().choose(&[0.5, nan]).map(|a| a.to_string()),
            Ok("[0.5, NaN]".into()),
            "not checked here"
        );
    }

    #[test]
    fn actions_that_do_not_fit_are_refused() {
        assert!(
            car().check("toy", Action::Continuous(&[9.0, -9.0])).is_ok(),
            "bounds are the world's business"
        );
        assert!(MOVES.check("toy", Action::Discrete(2)).is_ok());
        let refused = |space: ActionSpace, action: Action<'_>, why: &str| {
            let said = space.check("toy", action).expect_err(why).to_string();
            assert!(said.contains(why), "{said}");
        };
        refused(car(), Action::Continuous(&[1.0]), "an action of 1 numbers was given, toy takes 2");
        refused(car(), Action::Continuous(&[0.0, f64::INFINITY]), "action[1] is inf");
        refused(car(), Action::Discrete(0), "it takes 2 numbers");
        refused(MOVES, Action::Discrete(3), "it takes a choice from 0 to 2");
        refused(MOVES, Action::Continuous(&[0.0]), "it takes a choice from 0 to 2");
        assert!(MOVES.check_len("toy", 3).is_ok() && MOVES.check_len("toy", 2).is_err());
    }

    #[test]
    fn owned_actions_are_copies_and_can_be_stored() {
        let mut buf = ActionBuf::from(Action::Continuous(&[0.5, -1.0]));
        for action in [Action::Continuous(&[0.25, 1e-300]), Action::Discrete(7), Action::Continuous(&[1.0])] {
            buf.set(action);
            assert_eq!(buf.as_action(), action);
            let text = serde_json::to_string(&buf).expect("plain values");
            assert_eq!(serde_json::from_str::<ActionBuf>(&text).expect("its own"), buf, "{text}");
        }
        let mut rng = Seed::root(1).rng();
        for _ in 0..100 {
            for space in [car(), MOVES, ActionSpace::Box { low: vec![f64::NEG_INFINITY], high: vec![2.0] }] {
                let drawn = space.sample(&mut rng);
                assert!(space.check("toy", drawn.as_action()).is_ok(), "{drawn:?}");
            }
        }
    }
}

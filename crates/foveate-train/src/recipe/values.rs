//! Values of a recipe.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use toml::{Table, Value};

use crate::summary::grouped;

/// Negative rewards in a row after which a training rollout is cut off; in TOML a number or `"off"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Patience(pub Option<u32>);

impl<'de> Deserialize<'de> for Patience {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::String(word) if word == "off" => Ok(Patience(None)),
            Value::Integer(n) if u32::try_from(n).is_ok() => Ok(Patience(u32::try_from(n).ok())),
            other => Err(de::Error::custom(format!(
                "{other}, expected a number from 0 to {} or \"off\"; correct it",
                u32::MAX
            ))),
        }
    }
}

impl Serialize for Patience {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => to.serialize_str("off"),
            Some(n) => to.serialize_u32(n),
        }
    }
}

/// How tracks are assigned to genomes in a generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrackSeeds {
    /// All genomes run the same tracks: an easy track favours no genome.
    #[default]
    Common,
    /// Every genome has its own tracks: more tracks are seen, but luck is part of the fitness.
    Separate,
}

/// How the returns of a genome's tracks are reduced to a fitness.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fitness {
    /// Their mean.
    #[default]
    Mean,
    /// Their median: robust against single outlier tracks.
    Median,
    /// Conditional value at risk: the mean of the worst share, `cvar = 0.25` for the worst quarter (at least
    /// one track). 1 is the mean.
    Cvar(f64),
}

impl Fitness {
    /// The fitness of episodes of several tasks, each given as its task and its return: the mean of the tasks' own. There is at
    /// least one.
    pub fn of_tasks(self, episodes: &[(usize, f64)]) -> f64 {
        let tasks = grouped(episodes.iter().copied());
        tasks.values().map(|returns| self.of(returns)).sum::<f64>() / tasks.len() as f64
    }

    /// The fitness of these returns, of which there is at least one.
    pub fn of(self, returns: &[f64]) -> f64 {
        let mean = |returns: &[f64]| returns.iter().sum::<f64>() / returns.len() as f64;
        let sorted = || {
            let mut sorted = returns.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let n = returns.len();
        match self {
            Fitness::Mean => mean(returns),
            Fitness::Median => {
                let sorted = sorted();
                if n % 2 == 1 { sorted[n / 2] } else { f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]) }
            }
            // Slightly less, so that a tenth of 30 is 3 in spite of rounding.
            Fitness::Cvar(share) => {
                mean(&sorted()[..((share * n as f64 - 1e-9).ceil() as usize).clamp(1, n)])
            }
        }
    }
}

/// Replay of hard tracks.
///
/// A track is hard when its return is below that of fresh tracks at the same time. Each track of a generation
/// is a kept hard track with probability `share`; a track whose return is no longer below that of fresh ones
/// is removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Share of replayed tracks among the training tracks, above 0 and below 1.
    pub share: f64,
    /// How many hard tracks are kept; the hardest stay.
    #[serde(default = "thirty_two")]
    pub keep: usize,
    /// Which return measures how hard a track is.
    #[serde(default)]
    pub judge: ReplayJudge,
}

const fn thirty_two() -> usize {
    32
}

/// Which weights measure how hard a training track is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayJudge {
    /// The mean return of all genomes: no extra cost.
    #[default]
    Population,
    /// The recommended weights, which run every track once more: measures exactly what is still to be learnt,
    /// at the cost of one more rollout per track.
    Mean,
}

/// A time between two events: training steps, `500_000`, or generations, `{ generations = 10 }`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// Training steps of a start.
    Steps(u64),
    /// Generations of a start.
    Generations(u64),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Generations {
    generations: u64,
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Value::deserialize(from)? {
            Value::Integer(n) if n >= 0 => Ok(Interval::Steps(n.unsigned_abs())),
            Value::Table(table) => {
                let Generations { generations } = part(table)?;
                Ok(Interval::Generations(generations))
            }
            other => Err(de::Error::custom(format!(
                "{other}, expected training steps or {{ generations = 10 }}; correct it"
            ))),
        }
    }
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Interval::Steps(n) => to.serialize_u64(n),
            Interval::Generations(generations) => Generations { generations }.serialize(to),
        }
    }
}

/// The initial weights of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Init {
    /// `"torch"`, or its synonym `"uniform"`: uniform in ±1/√(inputs) of every layer, PyTorch's default,
    /// which AttentionAgent's published training used. Each start draws its own.
    #[default]
    Torch,
    /// `"he"`: weights normal with the standard deviation √(2 / inputs) of every layer, biases zero (He et al. 2015). Each
    /// start draws its own.
    He,
    /// `"zeros"`.
    Zeros,
    /// `{ uniform = 0.1 }`: every parameter uniform in ±0.1. Each start draws its own.
    Uniform(f64),
    /// `{ weights = "FILE" }`: a weight file or the folder of a run. With
    /// `{ weights = "FILE", layers = ["query", "key"] }` these layers come from it, and all others are
    /// initialised as `"torch"` does.
    Weights {
        /// The file or folder.
        weights: PathBuf,
        /// The layers to take; empty for all.
        layers: Vec<String>,
        /// SHA-256 of the parameters. A run records it when it starts, and rejects other weights on resume.
        sha256: Option<String>,
    },
}

/// A trained agent that says in every step of a demonstration what it would do, in place of the world's expert. In TOML
/// `{ weights = "FILE" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Teacher {
    /// A weight file or the folder of a run.
    pub weights: PathBuf,
    /// SHA-256 of the parameters. A run records it when it starts, and rejects other weights on resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct InitTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    uniform: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weights: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
}

impl<'de> Deserialize<'de> for Init {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        const FORMS: &str =
            "choose \"torch\", \"he\", \"zeros\", { uniform = 0.1 } or { weights = \"FILE\" }";
        let fail = |what: String| Err(de::Error::custom(format!("{what}; {FORMS}")));
        match Value::deserialize(from)? {
            Value::String(word) => match &*word {
                "torch" | "uniform" => Ok(Init::Torch),
                "he" => Ok(Init::He),
                "zeros" => Ok(Init::Zeros),
                other => fail(format!("no beginning is called {other:?}")),
            },
            Value::Table(table) => match part(table)? {
                InitTable { uniform: Some(bound), weights: None, layers, sha256: None }
                    if layers.is_empty() =>
                {
                    Ok(Init::Uniform(bound))
                }
                InitTable { uniform: None, weights: Some(weights), layers, sha256 } => {
                    Ok(Init::Weights { weights, layers, sha256 })
                }
                _ => fail("either uniform or weights; layers and sha256 with weights only".into()),
            },
            other => fail(format!("{other} is no beginning")),
        }
    }
}

impl Serialize for Init {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.clone() {
            Init::Torch => to.serialize_str("torch"),
            Init::He => to.serialize_str("he"),
            Init::Zeros => to.serialize_str("zeros"),
            Init::Uniform(bound) => InitTable { uniform: Some(bound), ..InitTable::default() }.serialize(to),
            Init::Weights { weights, layers, sha256 } => {
                InitTable { uniform: None, weights: Some(weights), layers, sha256 }.serialize(to)
            }
        }
    }
}

/// Reads a table within another value.
fn part<T: de::DeserializeOwned, E: de::Error>(table: Table) -> Result<T, E> {
    table.try_into().map_err(|error: toml::de::Error| E::custom(error.message().trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: de::DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(text: &str, expect: &T) {
        #[derive(Serialize, Deserialize)]
        struct Holder<T> {
            x: T,
        }
        let holder: Holder<T> = toml::from_str(&format!("x = {text}")).expect(text);
        assert_eq!(holder.x, *expect, "{text}");
        let again: Holder<T> = toml::from_str(&toml::to_string(&holder).expect("plain")).expect("its own");
        assert_eq!(again.x, *expect, "{text}");
    }

    #[test]
    fn words_and_numbers() {
        check("20", &Patience(Some(20)));
        check("'off'", &Patience(None));
        check("'common'", &TrackSeeds::Common);
        check("'separate'", &TrackSeeds::Separate);
        check("'mean'", &Fitness::Mean);
        check("'median'", &Fitness::Median);
        check("{ cvar = 0.25 }", &Fitness::Cvar(0.25));
        check("5000", &Interval::Steps(5000));
        check("{ generations = 10 }", &Interval::Generations(10));
        check("'torch'", &Init::Torch);
        check("'uniform'", &Init::Torch);
        check("'he'", &Init::He);
        check("'zeros'", &Init::Zeros);
        check("{ uniform = 0.1 }", &Init::Uniform(0.1));
        check("{ weights = 'a' }", &Init::Weights { weights: "a".into(), layers: vec![], sha256: None });
        let layers = vec!["query".to_owned(), "key".to_owned()];
        let some = Init::Weights { weights: "a".into(), layers, sha256: None };
        check("{ weights = 'a', layers = ['query', 'key'] }", &some);
        let hash = Some("ff".to_owned());
        check(
            "{ weights = 'a', sha256 = 'ff' }",
            &Init::Weights { weights: "a".into(), layers: vec![], sha256: hash },
        );
        check("{ share = 0.5 }", &Replay { share: 0.5, keep: 32, judge: ReplayJudge::Population });
        check(
            "{ share = 0.5, keep = 3, judge = 'mean' }",
            &Replay { share: 0.5, keep: 3, judge: ReplayJudge::Mean },
        );
    }

    #[track_caller]
    fn check_err<T: de::DeserializeOwned + std::fmt::Debug>(text: &str, why: &str) {
        let table: Table = format!("x = {text}").parse().expect("TOML");
        let said = table["x"].clone().try_into::<T>().expect_err(text).to_string();
        assert!(said.contains(why), "{text}: {said}");
    }

    #[test]
    fn others_are_refused() {
        check_err::<Patience>("-1", "-1, expected a number from 0 to 4294967295 or \"off\"");
        check_err::<Patience>("'none'", "\"none\", expected");
        check_err::<Patience>("false", "false, expected");
        check_err::<TrackSeeds>("'same'", "unknown variant `same`, expected `common` or `separate`");
        check_err::<Fitness>("'max'", "unknown variant `max`, expected one of `mean`, `median`, `cvar`");
        check_err::<Interval>("-5", "-5, expected training steps or { generations = 10 }");
        check_err::<Interval>("{ hours = 1 }", "unknown field `hours`, expected `generations`");
        check_err::<Init>("'ones'", "no beginning is called \"ones\"; choose \"torch\"");
        check_err::<Init>("{ uniform = 1.0, weights = 'a' }", "either uniform or weights");
        check_err::<Init>("{}", "either uniform or weights");
        check_err::<Init>("{ file = 'a' }", "unknown field `file`, expected one of `uniform`, `weights`");
        check_err::<Replay>("{ share = 0.5, worst = 3 }", "unknown field `worst`, expected one of `share`");
    }

    #[test]
    fn what_returns_come_to() {
        let returns = [900.0, 100.0, 800.0, 300.0];
        for (fitness, expect) in [
            (Fitness::Mean, 525.0),
            (Fitness::Median, 550.0),
            (Fitness::Cvar(0.25), 100.0),
            (Fitness::Cvar(0.3), 200.0),
            (Fitness::Cvar(0.5), 200.0),
            (Fitness::Cvar(0.01), 100.0),
            (Fitness::Cvar(1.0), 525.0),
        ] {
            assert_eq!(fitness.of(&returns), expect, "{fitness:?}");
            assert_eq!(fitness.of(&[7.0]), 7.0, "{fitness:?}");
        }
        assert_eq!(Fitness::Median.of(&returns[..3]), 800.0);
        let thirty: Vec<f64> = (0..30).map(f64::from).collect();
        assert_eq!(Fitness::Cvar(0.1).of(&thirty), 1.0);
    }
}

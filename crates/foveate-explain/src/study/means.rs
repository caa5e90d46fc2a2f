//! Means over episodes, and rank correlations against their nulls.

use foveate_core::statistics;
use serde::Serialize;

use super::Mean;
use super::words::{lies, two, with_interval};
use crate::faithful::{Conclusion, FEWEST_EPISODES};

/// The mean over episodes, with its interval over them.
pub(super) fn over(values: &[f64]) -> Mean {
    (statistics::mean(values), statistics::mean_interval(values))
}

/// For every episode the mean of `of` over its decisions; episodes without any are left out.
pub(super) fn per_episode<T>(episodes: &[Vec<T>], of: &dyn Fn(&T) -> Option<f64>) -> Vec<f64> {
    let mean = |decisions: &Vec<T>| {
        let values: Vec<f64> = decisions.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| statistics::mean(&values))
    };
    episodes.iter().filter_map(mean).collect()
}

/// The paired difference of two numbers of every episode.
pub(super) fn difference(own: &[f64], null: &[f64]) -> Mean {
    over(&own.iter().zip(null).map(|(own, null)| own - null).collect::<Vec<_>>())
}

/// Whether rank correlations of these episodes, as claimed and of the nulls, do not exist: where all weights or all effects of
/// every decision are equal, they and those of weights dealt at random are 0.
fn undefined(ranks: &[&[f64]; 3]) -> bool {
    ranks.iter().all(|ranks| ranks.iter().all(|&rank| rank == 0.0))
}

/// Rank correlation of the sensors' weights and the changes of the action that an intervention on each causes: per
/// decision over the sensors, then the mean over the decisions of an episode.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankTest {
    /// The intervention.
    pub intervention: String,
    /// The correlation.
    pub own: Mean,
    /// Its null: the same weights, dealt to the sensors at random.
    pub dealt: Mean,
    /// Its second null: the weights of a moment of another episode.
    pub other_moment: Mean,
    /// Paired difference from the first null.
    pub above_dealt: Mean,
    /// Paired difference from the second null.
    pub above_other: Mean,
    /// The correlation of agents with random weights, of themselves.
    pub random_agent: Mean,
    /// Whether the paired difference from the first null lies above 0: whether the claim is right, whenever it is made. Whether it is
    /// of its moment is what the second says.
    pub verdict: String,
}

impl RankTest {
    /// The test of these correlations of every episode, of its two nulls and of agents with random weights; `moves` says whether
    /// the action moves enough for an answer.
    pub(super) fn new(intervention: &str, [own, dealt, other, random]: [Vec<f64>; 4], moves: bool) -> Self {
        let (above_dealt, above_other) = (difference(&own, &dealt), difference(&own, &other));
        let above = |(_, interval): Mean| interval.is_some_and(|[low, _]| low > 0.0);
        let verdict = if own.len() < FEWEST_EPISODES || !moves || undefined(&[&own, &dealt, &other]) {
            Conclusion::Undecided
        } else if above(above_dealt) {
            Conclusion::Supported
        } else {
            Conclusion::NotSupported
        };
        RankTest {
            intervention: intervention.into(),
            own: over(&own),
            dealt: over(&dealt),
            other_moment: over(&other),
            above_dealt,
            above_other,
            random_agent: over(&random),
            verdict: verdict.to_string(),
        }
    }

    /// What the intervals say, if there is an order at all: beside `claims`, such as `weights`.
    pub(super) fn sentence(&self, of: &str, claims: &str) -> Option<String> {
        let RankTest { own, dealt, other_moment, .. } = self;
        if undefined(&[&[own.0], &[dealt.0], &[other_moment.0]]) {
            return None;
        }
        Some(format!(
            "rank correlation of {of} and effect is {}; that is {} ({}), and {} ({}).",
            with_interval(*own),
            lies(&format!("that of {claims} dealt at random"), self.above_dealt),
            two(dealt.0),
            lies(&format!("that of the {claims} of another moment"), self.above_other),
            two(other_moment.0),
        ))
    }

    /// Its cells in a table, from the correlation to the verdict.
    pub(super) fn cells(&self) -> [String; 7] {
        let means =
            [self.own, self.dealt, self.other_moment, self.random_agent, self.above_dealt, self.above_other];
        let [a, b, c, d, e, f] = means.map(with_interval);
        [a, b, c, d, e, f, self.verdict.clone()]
    }
}

//! Statistics of returns.

use std::collections::BTreeMap;

use foveate_core::{EpisodeResult, statistics};
use serde::{Deserialize, Serialize};

/// Statistics of a list of returns.
///
/// A single return has neither a standard deviation nor an interval: `std` and `ci95` are then `null` in
/// JSON. Files of older builds have 0 and a zero-width interval there; the reader converts them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct Summary {
    /// Number of returns.
    pub n: usize,
    /// Arithmetic mean; of episodes of several tasks the mean of the tasks' means, however many episodes each has.
    pub mean: f64,
    /// Standard deviation with divisor `n` (not `n − 1`), as in `numpy.std` and in the papers; `None` for
    /// fewer than two returns.
    pub std: Option<f64>,
    /// Median; for an even number of values, the mean of the two in the middle.
    pub median: f64,
    /// First quartile, linear between neighbours as `numpy.quantile`.
    pub q25: f64,
    /// Third quartile.
    pub q75: f64,
    /// 95 % confidence interval of the mean: the 2.5 % and 97.5 % quantiles of the means of 10,000 resamples
    /// (percentile bootstrap, with a fixed seed). Returns cluster at the top with a long tail below, which a
    /// normal interval ignores. With fewer than about ten episodes the interval is too narrow; with one it is
    /// `None`.
    pub ci95: Option<[f64; 2]>,
}

/// The file format of a [`Summary`].
#[derive(Deserialize)]
struct Written {
    n: usize,
    mean: f64,
    std: Option<f64>,
    median: f64,
    q25: f64,
    q75: f64,
    ci95: Option<[f64; 2]>,
}

impl From<Written> for Summary {
    fn from(Written { n, mean, std, median, q25, q75, ci95 }: Written) -> Self {
        let spread = statistics::has_spread(n);
        let (std, ci95) = (std.filter(|_| spread), ci95.filter(|_| spread));
        Summary { n, mean, std, median, q25, q75, ci95 }
    }
}

impl Summary {
    /// Statistics of these returns; all are 0 for an empty list.
    pub fn of(returns: &[f64]) -> Self {
        Summary {
            n: returns.len(),
            mean: statistics::mean(returns),
            std: statistics::std(returns),
            median: statistics::median(returns),
            q25: statistics::quantile(returns, 0.25),
            q75: statistics::quantile(returns, 0.75),
            ci95: statistics::mean_interval(returns),
        }
    }

    /// Statistics of what these episodes count.
    pub fn of_episodes(episodes: &[EpisodeResult]) -> Self {
        let returns: Vec<f64> = episodes.iter().map(|episode| episode.total).collect();
        let tasks = by_task(episodes);
        if tasks.len() < 2 {
            return Summary::of(&returns);
        }
        let groups: Vec<&[f64]> = tasks.values().map(|returns| &**returns).collect();
        let means = groups.iter().map(|returns| statistics::mean(returns));
        Summary {
            mean: means.sum::<f64>() / groups.len() as f64,
            ci95: statistics::mean_of_means_interval(&groups),
            ..Summary::of(&returns)
        }
    }

    /// Mean and standard deviation with `d` decimals, `902.0 ± 38.4`; only the mean for one episode.
    pub fn spread(&self, d: usize) -> String {
        match self.std {
            Some(std) => format!("{:.d$} ± {std:.d$}", self.mean),
            None => format!("{:.d$}", self.mean),
        }
    }
}

/// The returns in one of a world's tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskMean {
    /// Which task, see [`EpisodeResult::task`].
    pub task: usize,
    /// Number of episodes.
    pub n: usize,
    /// Their mean return.
    pub mean: f64,
}

/// The mean return in each task, where there are several.
pub(crate) fn task_means(episodes: &[EpisodeResult]) -> Vec<TaskMean> {
    let mean = |(task, returns): (usize, Vec<f64>)| TaskMean {
        task,
        n: returns.len(),
        mean: statistics::mean(&returns),
    };
    let several = episodes.iter().any(|episode| episode.task > 0);
    if several { by_task(episodes).into_iter().map(mean).collect() } else { vec![] }
}

/// What the episodes of each [task](EpisodeResult::task) count.
pub fn by_task(episodes: &[EpisodeResult]) -> BTreeMap<usize, Vec<f64>> {
    grouped(episodes.iter().map(|episode| (episode.task, episode.total)))
}

/// The returns of each task, from pairs of a task and a return.
pub(crate) fn grouped(episodes: impl IntoIterator<Item = (usize, f64)>) -> BTreeMap<usize, Vec<f64>> {
    let mut tasks: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (task, counted) in episodes {
        tasks.entry(task).or_default().push(counted);
    }
    tasks
}

/// Text of tables where there is no interval.
pub const NO_INTERVAL: &str = "none: one episode";

/// An interval with `d` decimals, `894.7 … 909.4`; [`NO_INTERVAL`] for none.
pub fn interval_text(ci95: Option<[f64; 2]>, d: usize) -> String {
    ci95.map_or_else(|| NO_INTERVAL.to_owned(), |[from, to]| format!("{from:.d$} … {to:.d$}"))
}

/// Number of decimals for returns up to `largest`: more in worlds where a return is at most one.
pub fn decimals(largest: f64) -> usize {
    if largest < 10.0 { 3 } else { 1 }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    #[test]
    fn the_summary_is_numpys() {
        // numpy: r = [3, -1, 10, 7, 7.5]; mean, std, quantile(r, [.25, .5, .75])
        let s = Summary::of(&[3.0, -1.0, 10.0, 7.0, 7.5]);
        assert_eq!((s.n, s.mean, s.q25, s.median, s.q75), (5, 5.3, 3.0, 7.0, 7.5));
        assert!((s.std.expect("five returns") - 3.867_815_921_162_743).abs() < 1e-12, "{s:?}");
        // An even number, and values between neighbours.
        let s = Summary::of(&[4.0, 1.0, 2.0, 3.0]);
        assert_eq!((s.q25, s.median, s.q75), (1.75, 2.5, 3.25));
        // Nothing varies, nothing to estimate.
        let s = Summary::of(&[7.0; 9]);
        assert_eq!((s.std, s.ci95), (Some(0.0), Some([7.0, 7.0])));
        assert_eq!(Summary::of(&[]).n, 0);
    }

    #[test]
    fn tasks_weigh_the_same_however_many_episodes_they_have() {
        let episode = |task, total| EpisodeResult { task, total, ..EpisodeResult::default() };
        let episodes: Vec<_> = [1.0, 2.0, 3.0, 4.0]
            .map(|x| episode(0, x))
            .into_iter()
            .chain([episode(3, 50.0), episode(3, 60.0)])
            .collect();
        let s = Summary::of_episodes(&episodes);
        let plain = Summary::of(&[1.0, 2.0, 3.0, 4.0, 50.0, 60.0]);
        assert_eq!((s.n, s.mean, s.median, s.std), (6, 28.75, plain.median, plain.std));
        let [from, to] = s.ci95.expect("each has several");
        // The largest means that resamples can have.
        assert!((25.5..28.0).contains(&from) && (29.5..=32.0).contains(&to), "{from} {to}");
        assert_eq!(Summary::of_episodes(&episodes[..5]).ci95, None, "one episode has no spread");
        assert_eq!(Summary::of_episodes(&episodes[..4]), Summary::of(&[1.0, 2.0, 3.0, 4.0]));
        assert_eq!(by_task(&episodes)[&3], [50.0, 60.0]);
    }

    #[test]
    fn the_interval_is_that_of_the_mean() {
        // For many values without outliers the bootstrap agrees with mean ± 1.96 std / √n.
        let mut rng = Seed::root(4).rng();
        let returns: Vec<f64> = (0..400).map(|_| 800.0 + 100.0 * rng.normal()).collect();
        let s = Summary::of(&returns);
        let half = 1.96 * s.std.expect("many") / 20.0;
        let [from, to] = s.ci95.expect("many");
        assert!((from - (s.mean - half)).abs() < 0.5, "{s:?} ± {half}");
        assert!((to - (s.mean + half)).abs() < 0.5, "{s:?} ± {half}");
        assert_eq!(s, Summary::of(&returns), "the same digits every time");
    }
}

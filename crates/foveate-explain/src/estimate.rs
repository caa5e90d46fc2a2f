//! Ratios of sums over episodes, with intervals and tests that hold what they promise for the numbers of episodes that people play.
//!
//! Decisions within an episode are not independent, so the episode is the unit. Nor are two decisions that took parts from the same
//! other episode: an episode plays two roles, that of the one that is changed and that of the donor. So each episode is left out
//! in both roles (the jackknife), and the pseudo-values that this gives are what intervals and tests are made of.
//!
//! * A number that may have either sign has the interval that inverts the sign-flip test: the quantiles of the means of random
//!   subsets of the pseudo-values (Hartigan 1969).
//! * A number that cannot be negative has Student's interval of the logarithm, with n − 2 degrees of freedom: an episode has two roles.
//!
//! In the tests' simulations, with donors shared, both hold the truth in 93 to 98 of 100 cases with 10, 20 and 40 episodes.

use foveate_core::Seed;
use foveate_core::statistics::{has_spread, mean, paired, quantile};
use serde::Serialize;

/// Fewer episodes have no interval.
pub const FEWEST_EPISODES: usize = 5;
/// Random subsets behind an interval; of fewer than 13 episodes all of them.
const SUBSETS: usize = 10_000;

/// A number with its 95 % interval over episodes.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its interval; one episode has none, nor have fewer than [`FEWEST_EPISODES`] that differ.
    pub interval: Option<[f64; 2]>,
}

impl Estimate {
    /// The same with the other sign.
    #[must_use]
    pub fn negated(self) -> Estimate {
        Estimate { value: -self.value, interval: self.interval.map(|[low, high]| [-high, -low]) }
    }

    /// Returns whether the whole interval lies above `limit`.
    pub fn is_above(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[low, _]| low > limit)
    }

    /// Returns whether the whole interval lies below `limit`.
    pub fn is_below(&self, limit: f64) -> bool {
        self.interval.is_some_and(|[_, high]| high < limit)
    }

    /// The sum of `above` divided by the sum of `below`, one number of each for every episode; `None` when there is nothing
    /// to divide by. It may have either sign.
    pub fn ratio(above: &[f64], below: &[f64]) -> Option<Estimate> {
        Some(Tested::of(&episodes(above, below), above.len(), Scale::Signed)?.estimate)
    }

    /// The same of numbers that cannot be negative.
    pub fn share(above: &[f64], below: &[f64]) -> Option<Estimate> {
        Some(Tested::of(&episodes(above, below), above.len(), Scale::Positive)?.estimate)
    }

    /// The mean of one number for every episode; 0 of none.
    pub fn mean(numbers: &[f64]) -> Estimate {
        Estimate::ratio(numbers, &vec![1.0; numbers.len()]).unwrap_or(Estimate { value: 0.0, interval: None })
    }

    /// Of a number that lies between these ends: so does its interval, but for a value beyond them.
    #[must_use]
    pub fn within(self, [least, most]: [f64; 2]) -> Estimate {
        let (least, most) = (least.min(self.value), most.max(self.value));
        let interval = self.interval.map(|ends| ends.map(|end| end.clamp(least, most)));
        Estimate { interval, ..self }
    }

    /// With two digits and its interval: `0.45 (0.38 … 0.51)`.
    pub fn plain(&self) -> String {
        self.said(|x| format!("{x:.2}").replace('-', "−"))
    }

    /// In per cent: `7.8 % (6.9 % … 8.8 %)`.
    pub fn percent(&self) -> String {
        self.said(|x| {
            let digits = if x.abs() < 0.001 { 3 } else { 1 };
            format!("{:.digits$} %", 100.0 * x).replace('-', "−")
        })
    }

    fn said(&self, say: impl Fn(f64) -> String) -> String {
        match self.interval {
            Some([low, high]) => format!("{} ({} … {})", say(self.value), say(low), say(high)),
            None => say(self.value),
        }
    }
}

/// One number above and one below the line of a ratio, for an episode and the one that it took parts from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    /// The episode that was changed.
    pub(crate) recipient: usize,
    /// The episode that the parts come from; the same one where there are no donors.
    pub(crate) donor: usize,
    pub(crate) above: f64,
    pub(crate) below: f64,
}

fn episodes(above: &[f64], below: &[f64]) -> Vec<Pair> {
    let pairs = above.iter().zip(below).enumerate();
    pairs.map(|(e, (&above, &below))| Pair { recipient: e, donor: e, above, below }).collect()
}

/// Where a number lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scale {
    /// Anywhere.
    #[default]
    Signed,
    /// Above 0: its logarithm is tested.
    Positive,
}

/// A number that can be tested against a limit.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Tested {
    pub(crate) estimate: Estimate,
    /// `[episodes]`: what each contributes, on the scale.
    contributions: Vec<f64>,
    scale: Scale,
}

impl Tested {
    /// The ratio of the sums of these pairs of `episodes` episodes; `None` when there is nothing to divide by.
    pub(crate) fn of(pairs: &[Pair], episodes: usize, scale: Scale) -> Option<Tested> {
        let (mut above, mut below) = (0.0, 0.0);
        let mut own = vec![[0.0; 2]; episodes];
        let mut seen = vec![false; episodes];
        for pair in pairs {
            above += pair.above;
            below += pair.below;
            for (k, episode) in [pair.recipient, pair.donor].into_iter().enumerate() {
                seen[episode] = true;
                if k == 0 || pair.donor != pair.recipient {
                    own[episode][0] += pair.above;
                    own[episode][1] += pair.below;
                }
            }
        }
        if below == 0.0 || !above.is_finite() || !below.is_finite() {
            return None;
        }
        let value = above / below;
        let rest: Vec<f64> = own
            .iter()
            .zip(seen)
            .filter(|(_, seen)| *seen)
            .map(|([a, b], _)| if below - b == 0.0 { value } else { (above - a) / (below - b) })
            .collect();
        let n = rest.len();
        let is_positive = value > 0.0 && rest.iter().all(|&rest| rest > 0.0);
        let scale = if is_positive { scale } else { Scale::Signed };
        let [onto, back]: [fn(f64) -> f64; 2] = match scale {
            Scale::Signed => [|x| x, |x| x],
            Scale::Positive => [f64::ln, f64::exp],
        };
        let contributions: Vec<f64> =
            rest.iter().map(|&rest| n as f64 * onto(value) - (n as f64 - 1.0) * onto(rest)).collect();
        let error = standard_error(&contributions);
        let interval = if !has_spread(n) {
            None
        } else if error <= 1e-12 * onto(value).abs().max(1e-300) {
            Some([value; 2])
        } else if n < FEWEST_EPISODES {
            None
        } else {
            let ends = match scale {
                Scale::Signed => subset_means(&contributions),
                Scale::Positive => [-1.0, 1.0].map(|sign| onto(value) + sign * student(n - 2, Z_95) * error),
            };
            Some(ends.map(back))
        };
        let interval = interval.map(|[low, high]| [low.min(value), high.max(value)]);
        Some(Tested { estimate: Estimate { value, interval }, contributions, scale })
    }

    /// The two-sided p-value of the sign-flip test that the number is `limit`.
    pub(crate) fn p(&self, limit: f64) -> f64 {
        let limit = match self.scale {
            Scale::Signed => limit,
            Scale::Positive => limit.max(1e-300).ln(),
        };
        let apart: Vec<f64> = self.contributions.iter().map(|x| x - limit).collect();
        sign_flip_p(&apart)
    }

    /// Episodes that would give a p-value of `p` against `limit`, if the numbers stay; `None` where the number lies at its limit.
    pub(crate) fn episodes_for(&self, limit: f64, p: f64) -> Option<f64> {
        let n = self.contributions.len() as f64;
        let onto = |x: f64| if self.scale == Scale::Positive { x.max(1e-300).ln() } else { x };
        let apart = (onto(self.estimate.value) - onto(limit)).abs();
        let spread = standard_error(&self.contributions) * n.sqrt();
        // The sign-flip test of n episodes has no p-value below 2 / 2^n.
        let least = (2.0 / p).log2().ceil();
        (apart > 0.0).then(|| (normal_quantile(p) * spread / apart).powi(2).max(least))
    }

    /// In the same unit and with the same ends, within what is possible.
    pub(crate) fn within(mut self, ends: [f64; 2]) -> Tested {
        self.estimate = self.estimate.within(ends);
        self
    }
}

/// The normal quantile of 97.5 %.
const Z_95: f64 = 1.959_963_984_54;

fn standard_error(numbers: &[f64]) -> f64 {
    let n = numbers.len() as f64;
    let middle = mean(numbers);
    let squares: f64 = numbers.iter().map(|x| (x - middle).powi(2)).sum();
    if n > 1.0 { (squares / (n - 1.0) / n).sqrt() } else { 0.0 }
}

/// The quantile of Student's t whose normal quantile is `z`, by its expansion around that.
fn student(free: usize, z: f64) -> f64 {
    let free = free as f64;
    z + (z.powi(3) + z) / (4.0 * free)
        + (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * free.powi(2))
        + (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * free.powi(3))
}

/// The normal quantile that is exceeded on either side with probability `p` in all (Abramowitz and Stegun 26.2.23).
fn normal_quantile(p: f64) -> f64 {
    let t = (-2.0 * (p / 2.0).clamp(1e-12, 0.5).ln()).sqrt();
    t - (2.515517 + 0.802853 * t + 0.010328 * t * t)
        / (1.0 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t.powi(3))
}

/// The 2.5 % and 97.5 % quantiles of the means of subsets.
fn subset_means(numbers: &[f64]) -> [f64; 2] {
    let n = numbers.len();
    let of = |chosen: &dyn Fn(usize) -> bool| {
        let (mut sum, mut count) = (0.0, 0.0);
        for (i, x) in numbers.iter().enumerate() {
            if chosen(i) {
                sum += x;
                count += 1.0;
            }
        }
        (count > 0.0).then(|| sum / count)
    };
    let means: Vec<f64> = if n <= 12 {
        (1..1_u64 << n).filter_map(|subset| of(&|i| subset >> i & 1 == 1)).collect()
    } else {
        let mut rng = Seed::root(0).child("subsets", 0).rng();
        (0..SUBSETS)
            .filter_map(|_| {
                let words: Vec<u64> = (0..n.div_ceil(64)).map(|_| rng.next_u64()).collect();
                of(&|i| words[i / 64] >> (i % 64) & 1 == 1)
            })
            .collect()
    };
    [quantile(&means, 0.025), quantile(&means, 0.975)]
}

/// The two-sided p-value of the sign-flip test that episodes' numbers are as often above 0 as below; 1 of none.
pub fn sign_flip_p(numbers: &[f64]) -> f64 {
    paired(&vec![0.0; numbers.len()], numbers).map_or(1.0, |found| found.p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_value() {
        let none = Estimate { value: 0.02, interval: Some([-0.1, 0.3]) };
        assert_eq!(none.within([0.0, f64::INFINITY]).interval, Some([0.0, 0.3]));
        // A value beyond its end stays within its interval.
        let beyond = Estimate { value: 1.1, interval: Some([0.9, 1.3]) };
        assert_eq!(beyond.within([0.0, 1.0]).interval, Some([0.9, 1.1]));
    }

    /// Share of worlds whose interval holds the truth, of `n` episodes with these effects of a recipient and a donor, of whom
    /// each of six decisions draws eight among the other episodes.
    fn coverage(
        n: usize,
        worlds: usize,
        scale: Scale,
        truth: f64,
        effect: impl Fn([f64; 2], [f64; 2]) -> [f64; 2],
    ) -> f64 {
        let mut rng = Seed::root(5).child("worlds", n as u64).rng();
        let held = (0..worlds).filter(|_| {
            let own: Vec<[f64; 2]> = (0..n).map(|_| [rng.normal(), rng.normal()]).collect();
            let mut pairs = vec![];
            for recipient in 0..n {
                for _ in 0..6 * 8 {
                    let donor = (recipient + 1 + rng.below(n as u64 - 1) as usize) % n;
                    let noise = -(1.0 - rng.uniform(0.0, 1.0)).ln();
                    let [above, below] = effect(own[recipient], own[donor]).map(|x| x * noise);
                    pairs.push(Pair { recipient, donor, above, below });
                }
            }
            let found = Tested::of(&pairs, n, scale).expect("something to divide by");
            let [low, high] = found.estimate.interval.expect("many episodes");
            (low..=high).contains(&truth)
        });
        held.count() as f64 / worlds as f64
    }

    /// Donors are shared: the same episode's oddity is in many pairs.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        for (n, worlds) in [(10, 800), (20, 600), (40, 600)] {
            // A share of 0.4, with episodes of different weight and different shares, as recipients and as donors.
            let share = coverage(n, worlds, Scale::Positive, 0.4, |[a, b], [c, d]| {
                let below = (0.4 * a + 0.4 * c).exp();
                [0.4 * below * (0.4 * b + 0.4 * d - 0.16).exp(), below]
            });
            // A mean that may have either sign.
            let signed = coverage(n, worlds, Scale::Signed, 0.3, |[a, b], [c, d]| {
                [0.3 + 0.4 * a + 0.4 * c + 0.1 * b * d, 1.0]
            });
            for (name, held) in [("share", share), ("signed", signed)] {
                // The standard error of a coverage of 95 % is 0.8 to 0.9 points.
                assert!(held >= 0.93, "{name}, {n} episodes: {held}");
            }
        }
    }

    /// What an episode does as a donor counts: with the recipients alone the interval would be far too narrow.
    #[test]
    fn one_donor_of_all_makes_a_wide_interval() {
        let pairs = |loud: usize| {
            let mut pairs = vec![];
            for recipient in 0..10 {
                for donor in (0..10).filter(|&donor| donor != recipient) {
                    let above = if donor == loud { 9.0 } else { 0.0 } + 0.01 * recipient as f64;
                    pairs.push(Pair { recipient, donor, above, below: 1.0 });
                }
            }
            pairs
        };
        let [low, high] =
            Tested::of(&pairs(3), 10, Scale::Signed).and_then(|found| found.estimate.interval).expect("ten");
        assert!(low < 0.2 && high > 2.0, "{low} … {high}");
    }

    #[test]
    fn p_values_and_intervals_agree() {
        let numbers = [0.4, -0.1, 0.5, 0.3, 0.2, 0.6, -0.2, 0.3];
        let found = Tested::of(&episodes(&numbers, &[1.0; 8]), 8, Scale::Signed).expect("a mean");
        assert_eq!(found.p(0.0), sign_flip_p(&numbers));
        let [low, high] = found.estimate.interval.expect("eight");
        assert!(found.p(low - 0.05) < 0.05 && found.p(high + 0.05) < 0.05 && found.p(low + 0.05) > 0.05);
        let more = found.episodes_for(0.0, 0.001).expect("apart");
        assert!((8.0..40.0).contains(&more), "{more}");
        assert_eq!(found.episodes_for(found.estimate.value, 0.05), None);
        assert!((normal_quantile(0.05) - Z_95).abs() < 1e-3 && (student(19, Z_95) - 2.093).abs() < 1e-3);
        // A share cannot be negative, and its interval is not.
        let few = [0.01, 0.0, 0.3, 0.02, 0.01, 0.9];
        let share = Estimate::share(&few, &[1.0; 6]).expect("a share");
        assert!(share.interval.is_some_and(|[low, _]| low > 0.0), "{share:?}");
    }

    #[test]
    fn ratios_of_sums() {
        let found = Estimate::ratio(&[1.0, 2.0, 6.0], &[2.0, 4.0, 12.0]).expect("a ratio");
        assert_eq!(found, Estimate { value: 0.5, interval: Some([0.5; 2]) }, "all episodes agree");
        assert_eq!(Estimate::ratio(&[1.0], &[4.0]), Some(Estimate { value: 0.25, interval: None }));
        assert_eq!(Estimate::ratio(&[1.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(Estimate::ratio(&[], &[]), None);
        let wide = Estimate::mean(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        let [low, high] = wide.interval.expect("six");
        assert!(wide.value == 2.5 && low < 1.5 && high > 3.5, "{wide:?}");
        assert_eq!(wide, Estimate::mean(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), "the same digits every time");
    }

    #[test]
    fn an_interval_ends_where_its_number_must() {
        let wide = Estimate::mean(&[0.1, 0.2, 0.15, 2.9, 0.25]);
        let [low, high] = wide.interval.expect("five differ");
        assert!(high > 1.0, "the case is one: {high}");
        assert_eq!(wide.within([0.0, 1.0]), Estimate { interval: Some([low.max(0.0), 1.0]), ..wide });
    }

    #[test]
    fn few_episodes_that_differ_have_no_interval() {
        let below = [1.0; 5];
        for n in 2..FEWEST_EPISODES {
            let found =
                Estimate::ratio(&[3.0, 3.5, 3.2, 3.1][..n], &below[..n]).expect("something to divide by");
            assert_eq!(found.interval, None, "{n} episodes");
        }
        // Nor is an interval infinite because some resamples repeat one episode up to rounding.
        let found =
            Estimate::ratio(&[0.031, 0.035, 0.039, 0.033, 0.032], &below).expect("something to divide by");
        let [low, high] = found.interval.expect("five differ");
        assert!(low > 0.02 && high < 0.06, "{low} … {high}");
    }
}

//! Statistics of lists of returns: averages, spreads, intervals, and paired tests of two lists from the same
//! tracks.
//!
//! Returns of whole episodes cluster near the top with a long lower tail, so nothing here assumes a normal
//! distribution: intervals are percentile bootstraps (Efron and Tibshirani 1993), the test is a sign-flip
//! test (Fisher's randomisation test). Everything is deterministic; random draws use a fixed seed.

use crate::{Rng, Seed};

/// Number of bootstrap resamples.
const RESAMPLES: usize = 10_000;
/// Up to this many differing pairs, all assignments of signs are enumerated.
const EXACT_PAIRS: usize = 16;
/// With more pairs, this many random assignments are drawn.
const SIGN_FLIPS: usize = 100_000;

/// Arithmetic mean; 0 for an empty list.
pub fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() { 0.0 } else { numbers.iter().sum::<f64>() / numbers.len() as f64 }
}

/// Returns whether a list of `n` numbers has a spread. One number gives no information about spread: it has no
/// standard deviation, and its mean has no interval.
pub const fn has_spread(n: usize) -> bool {
    n > 1
}

/// Standard deviation, divided by `n` (not `n − 1`), like `numpy.std` and as the papers report it. `None` for
/// fewer than two numbers, see [`has_spread`].
pub fn std(numbers: &[f64]) -> Option<f64> {
    if !has_spread(numbers.len()) {
        return None;
    }
    let mean = mean(numbers);
    let squares = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>();
    Some((squares / numbers.len() as f64).sqrt())
}

/// The `q`-quantile, `q` in 0.0..=1.0, with linear interpolation like `numpy.quantile`; 0 for an empty list.
pub fn quantile(numbers: &[f64], q: f64) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, q)
}

/// The median; for an even count, the mean of the two middle numbers; 0 for an empty list.
pub fn median(numbers: &[f64]) -> f64 {
    quantile(numbers, 0.5)
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    if sorted.is_empty() {
        return 0.0;
    }
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, share) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + share * (sorted[above] - sorted[below])
}

/// 95 % interval of the mean: the 2.5 % and 97.5 % quantiles of the means of 10,000 resamples (percentile
/// bootstrap, with a fixed seed). With fewer than about ten numbers it is too narrow. `None` for fewer than
/// two numbers, see [`has_spread`].
pub fn mean_interval(numbers: &[f64]) -> Option<[f64; 2]> {
    mean_of_means_interval(&[numbers])
}

/// The same for the mean of the groups' means: each group is resampled by itself. `None` when there is no group, or one of them has
/// fewer than two numbers.
pub fn mean_of_means_interval(groups: &[&[f64]]) -> Option<[f64; 2]> {
    if groups.is_empty() || groups.iter().any(|group| !has_spread(group.len())) {
        return None;
    }
    let mut rng = Seed::root(0).child("bootstrap", 0).rng();
    let mut mean_of_resample = |group: &[f64]| {
        let n = group.len();
        (0..n).map(|_| group[rng.below(n as u64) as usize]).sum::<f64>() / n as f64
    };
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| groups.iter().map(|group| mean_of_resample(group)).sum::<f64>() / groups.len() as f64)
        .collect();
    means.sort_by(f64::total_cmp);
    Some([quantile_of_sorted(&means, 0.025), quantile_of_sorted(&means, 0.975)])
}

/// The comparison of two paired lists, such as returns on the same tracks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paired {
    /// Number of pairs.
    pub n: usize,
    /// Mean of `b − a`.
    pub difference: f64,
    /// 95 % interval of that mean, see [`mean_interval`]; `None` for one pair.
    pub interval: Option<[f64; 2]>,
    /// The two-sided p-value of the sign-flip test: the probability of a mean difference at least this large
    /// in absolute value if neither list tends to be larger. With random flips it is never below 1 / 100,001.
    pub p: f64,
    /// True if all assignments of signs were enumerated; otherwise 100,000 random ones were drawn.
    pub exact: bool,
}

/// Compares `b` with `a`, pair by pair.
///
/// The test assumes no distribution: under the null hypothesis (the change of the world has no effect), each
/// difference is as likely to have the opposite sign. Pairs without a difference do not affect any count.
///
/// ```
/// use foveate_core::statistics::paired;
/// let plain = [912.0, 899.0, 875.0, 921.0, 905.0, 918.0];
/// let foggy = [900.0, 880.0, 874.0, 850.0, 700.0, 899.0];
/// let found = paired(&plain, &foggy).expect("as many of one as of the other");
/// assert_eq!(found.p, 2.0 / 64.0); // all six fell: only all up is as extreme
/// ```
///
/// `None` when the lists are empty, have different lengths, or contain a number that is not finite.
pub fn paired(a: &[f64], b: &[f64]) -> Option<Paired> {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    if a.len() != b.len() || a.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let (p, exact) = sign_flip(&differences);
    Some(Paired {
        n: a.len(),
        difference: mean(&differences),
        interval: mean_interval(&differences),
        p,
        exact,
    })
}

/// Two-sided p-value of the mean of `differences` against random signs, and whether it is exact.
fn sign_flip(differences: &[f64]) -> (f64, bool) {
    let sizes: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let n = sizes.len();
    let observed = sizes.iter().sum::<f64>().abs();
    // Sums of the same numbers in another order may differ in the last digits; they count as equal.
    let least = observed - 1e-12 * sizes.iter().map(|d| d.abs()).sum::<f64>();
    let flipped = |signs: u64| {
        sizes.iter().enumerate().map(|(i, d)| if signs >> i & 1 == 1 { -d } else { *d }).sum::<f64>()
    };
    if n <= EXACT_PAIRS {
        let all = 1_u64 << n;
        let extreme = (0..all).filter(|&signs| flipped(signs).abs() >= least).count();
        return (extreme as f64 / all as f64, true);
    }
    let mut rng = Seed::root(0).child("sign flips", 0).rng();
    let extreme = (0..SIGN_FLIPS).filter(|_| randomly_flipped(&sizes, &mut rng).abs() >= least).count();
    // The observed assignment counts as one of the draws.
    ((extreme + 1) as f64 / (SIGN_FLIPS + 1) as f64, false)
}

fn randomly_flipped(sizes: &[f64], rng: &mut Rng) -> f64 {
    let mut sum = 0.0;
    for part in sizes.chunks(64) {
        let mut signs = rng.next_u64();
        for d in part {
            sum += if signs & 1 == 1 { -d } else { *d };
            signs >>= 1;
        }
    }
    sum
}

/// Holm's correction (1979) for multiple p-values: each becomes the smallest level at which its hypothesis is
/// rejected while the probability of any false rejection stays below that level.
///
/// ```
/// assert_eq!(foveate_core::statistics::holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
/// ```
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut corrected = vec![0.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max(((p.len() - rank) as f64 * p[i]).min(1.0));
        corrected[i] = largest;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_are_numpys() {
        // numpy: r = [3, -1, 10, 7, 7.5]; mean, std, quantile(r, [.25, .5, .75])
        let r = [3.0, -1.0, 10.0, 7.0, 7.5];
        assert_eq!((mean(&r), median(&r), quantile(&r, 0.25), quantile(&r, 0.75)), (5.3, 7.0, 3.0, 7.5));
        assert!((std(&r).expect("five numbers") - 3.867_815_921_162_743).abs() < 1e-12);
        assert_eq!(quantile(&[4.0, 1.0, 2.0, 3.0], 0.25), 1.75);
        assert_eq!((mean(&[]), median(&[])), (0.0, 0.0));
        assert_eq!((std(&[7.0; 9]), mean_interval(&[7.0; 9])), (Some(0.0), Some([7.0; 2])));
    }

    #[test]
    fn one_number_has_no_spread_and_no_interval() {
        for few in [&[][..], &[920.2]] {
            assert_eq!((std(few), mean_interval(few)), (None, None), "{few:?}");
        }
        let one = paired(&[900.0], &[880.0]).expect("a pair");
        assert_eq!((one.n, one.difference, one.interval, one.p), (1, -20.0, None, 1.0));
        assert_eq!((std(&[1.0, 3.0]), mean_interval(&[1.0, 3.0])), (Some(1.0), Some([1.0, 3.0])));
    }

    #[test]
    fn the_test_is_scipys() {
        // scipy.stats.permutation_test((a, b), mean difference, permutation_type="samples", n_resamples=inf)
        for (a, b, difference, p) in [
            (
                &[912.1, 899.4, 875.0, 921.3, 640.2, 905.5, 918.8, 933.0][..],
                &[905.0, 870.3, 880.1, 850.0, 655.9, 700.2, 899.0, 910.4][..],
                -41.8,
                0.0546875,
            ),
            (
                &[0.0; 11],
                &[3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, -6.0, 5.0, 3.0, 5.0],
                20.0 / 11.0,
                0.224609375,
            ),
        ] {
            let found = paired(a, b).expect("pairs");
            assert!((found.difference - difference).abs() < 1e-9, "{found:?}");
            assert_eq!((found.n, found.p, found.exact), (a.len(), p, true));
            let turned = paired(b, a).expect("pairs");
            assert_eq!(turned.p, p, "which list comes first does not matter");
        }
    }

    #[test]
    fn many_pairs_are_flipped_at_random() {
        let a = [0.0; 100];
        let b: Vec<f64> = (0..100).map(|i| 50.0 * (f64::from(i) * 1.7).sin() + 8.0).collect();
        let found = paired(&a, &b).expect("pairs");
        // scipy with 200,000 random flips says 0.0282, Student's t 0.0279; the standard error here is 0.0005.
        assert!(!found.exact && (found.p - 0.0282).abs() < 0.002, "{found:?}");
        let [from, _] = found.interval.expect("many pairs");
        assert!(from > 0.0 && from < found.difference, "{found:?}");
        assert_eq!(found, paired(&a, &b).expect("pairs"), "the same digits every time");
        let far: Vec<f64> = b.iter().map(|d| d + 1000.0).collect();
        assert_eq!(paired(&a, &far).expect("pairs").p, 1.0 / 100_001.0);
    }

    #[test]
    fn exact_and_random_agree() {
        let mut rng = Seed::root(3).rng();
        let d: Vec<f64> = (0..EXACT_PAIRS).map(|_| rng.normal() + 0.4).collect();
        let (exact, true) = sign_flip(&d) else { panic!("few enough") };
        let least = d.iter().sum::<f64>().abs() - 1e-9;
        let extreme = (0..SIGN_FLIPS).filter(|_| randomly_flipped(&d, &mut rng).abs() >= least).count();
        let random = extreme as f64 / SIGN_FLIPS as f64;
        assert!((exact - random).abs() < 0.01, "{exact} {random}");
    }

    #[test]
    fn pairs_without_a_difference_change_nothing() {
        let found = paired(&[5.0; 40], &[5.0; 40]).expect("pairs");
        assert_eq!(
            (found.difference, found.interval, found.p, found.exact),
            (0.0, Some([0.0; 2]), 1.0, true)
        );
        let some = paired(&[0.0; 30], &[vec![0.0; 27], vec![1.0, 2.0, 3.0]].concat()).expect("pairs");
        assert_eq!((some.p, some.exact), (0.25, true), "three that all rose: 2 of 8");
    }

    #[test]
    fn lists_that_do_not_pair() {
        for (a, b) in [(&[][..], &[][..]), (&[1.0], &[1.0, 2.0]), (&[1.0], &[f64::NAN])] {
            assert_eq!(paired(a, b), None);
        }
    }

    #[test]
    fn the_test_keeps_its_level() {
        // Without an effect, p is below 0.05 in about one of twenty cases.
        let mut rng = Seed::root(11).rng();
        let worlds = 400;
        let false_alarms = (0..worlds)
            .filter(|_| {
                let d: Vec<f64> = (0..10).map(|_| rng.normal()).collect();
                sign_flip(&d).0 < 0.05
            })
            .count();
        assert!((8..=34).contains(&false_alarms), "{false_alarms} of {worlds}");
    }

    #[test]
    fn holms_correction() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.2]), [0.2]);
        assert_eq!(holm(&[0.9, 0.6]), [1.0, 1.0]);
        assert_eq!(holm(&[0.001, 0.5, 0.001]), [0.003, 0.5, 0.003]);
    }
}

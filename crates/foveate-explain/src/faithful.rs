//! Faithfulness: whether an agent's actions depend on what it claims to attend to.

use std::fmt;

use foveate_core::Seed;
use foveate_core::statistics::{has_spread, quantile};

/// What covering a claim did in one episode, summed over its tested decisions.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Effect {
    /// Change of the action when the claimed places are covered.
    pub claimed: f64,
    /// Change when as many random other pixels are covered.
    pub elsewhere: f64,
}

/// How faithful a claim is: `(claimed − elsewhere) / (claimed + elsewhere)`, from −1 to 1.
///
/// 1: only what was claimed matters; 0: it matters no more than anything else, or nothing matters at all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Faithfulness {
    /// The figure.
    pub value: f64,
    /// Its 95 % interval: the 2.5 % and 97.5 % quantiles over 10,000 resamples of whole episodes. One episode has none.
    pub interval: Option<[f64; 2]>,
}

/// Resamples behind an interval.
const RESAMPLES: usize = 10_000;
/// With fewer episodes an interval over episodes means little.
pub const FEWEST_EPISODES: usize = 5;

impl Faithfulness {
    /// Of these episodes.
    pub fn of(episodes: &[Effect]) -> Self {
        let mut rng = Seed::root(0).child("faithfulness", 0).rng();
        let n = episodes.len();
        let interval = has_spread(n).then(|| {
            let draws: Vec<f64> = (0..RESAMPLES)
                .map(|_| ratio((0..n).map(|_| episodes[rng.below(n as u64) as usize])))
                .collect();
            [quantile(&draws, 0.025), quantile(&draws, 0.975)]
        });
        Faithfulness { value: ratio(episodes.iter().copied()), interval }
    }
}

fn ratio(episodes: impl Iterator<Item = Effect>) -> f64 {
    let sum = episodes.fold(Effect::default(), |sum, e| Effect {
        claimed: sum.claimed + e.claimed,
        elsewhere: sum.elsewhere + e.elsewhere,
    });
    let all = sum.claimed + sum.elsewhere;
    if all > 0.0 { (sum.claimed - sum.elsewhere) / all } else { 0.0 }
}

/// What the test says of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// Its interval lies wholly above that of its null, for every fill.
    Supported,
    /// It does not.
    NotSupported,
    /// Too few episodes to say.
    Undecided,
}

impl Conclusion {
    /// Compares a claim with its null; each pair is of one fill: (claim, null). The null of a claim is the same kind of
    /// claim taken from other episodes: right places in general, wrong for the moment.
    pub fn of(pairs: &[(Faithfulness, Faithfulness)], episodes: usize) -> Self {
        if episodes < FEWEST_EPISODES {
            return Conclusion::Undecided;
        }
        let above = |(claim, null): &(Faithfulness, Faithfulness)| match (claim.interval, null.interval) {
            (Some([low, _]), Some([_, high])) => low > high && low > 0.0,
            _ => false,
        };
        if !pairs.is_empty() && pairs.iter().all(above) {
            Conclusion::Supported
        } else {
            Conclusion::NotSupported
        }
    }

    /// Both must hold.
    #[must_use]
    pub fn and(self, other: Conclusion) -> Conclusion {
        match (self, other) {
            (Conclusion::Supported, Conclusion::Supported) => Conclusion::Supported,
            (Conclusion::Undecided, _) | (_, Conclusion::Undecided) => Conclusion::Undecided,
            _ => Conclusion::NotSupported,
        }
    }
}

impl fmt::Display for Conclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Conclusion::Supported => "supported",
            Conclusion::NotSupported => "not supported",
            Conclusion::Undecided => "undecided",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn episodes(n: u64, claimed: f64, elsewhere: f64) -> Vec<Effect> {
        let mut rng = Seed::root(4).rng();
        let mut near = |x: f64| x * rng.uniform(0.8, 1.2);
        (0..n).map(|_| Effect { claimed: near(claimed), elsewhere: near(elsewhere) }).collect()
    }

    #[track_caller]
    fn check(claim: [f64; 2], null: [f64; 2], n: u64, expect: Conclusion) {
        let of = |[claimed, elsewhere]: [f64; 2]| Faithfulness::of(&episodes(n, claimed, elsewhere));
        assert_eq!(Conclusion::of(&[(of(claim), of(null))], n as usize), expect);
    }

    #[test]
    fn verdicts() {
        check([1.0, 0.1], [0.5, 0.3], 20, Conclusion::Supported);
        check([0.5, 0.3], [0.5, 0.3], 20, Conclusion::NotSupported);
        check([0.3, 0.5], [0.5, 0.3], 20, Conclusion::NotSupported);
        check([0.3, 0.5], [0.1, 0.5], 20, Conclusion::NotSupported); // above its null, and still below nothing at all
        check([0.0, 0.0], [0.0, 0.0], 20, Conclusion::NotSupported);
        check([1.0, 0.1], [0.5, 0.3], 4, Conclusion::Undecided);
        let good = Faithfulness::of(&episodes(20, 1.0, 0.1));
        let null = Faithfulness::of(&episodes(20, 0.5, 0.3));
        assert_eq!(
            Conclusion::of(&[(good, null), (null, null)], 20),
            Conclusion::NotSupported,
            "one fill is not enough"
        );
    }

    #[test]
    fn the_figure_is_a_share_and_its_interval_holds_it() {
        let f = Faithfulness::of(&episodes(20, 0.9, 0.1));
        let [low, high] = f.interval.expect("twenty episodes");
        assert!((f.value - 0.8).abs() < 0.05 && low < f.value && f.value < high, "{f:?}");
        assert_eq!(f, Faithfulness::of(&episodes(20, 0.9, 0.1)), "the same digits every time");
        assert_eq!(Faithfulness::of(&[]), Faithfulness { value: 0.0, interval: None });
        assert_eq!(Faithfulness::of(&episodes(1, 0.9, 0.1)).interval, None, "one episode has no interval");
        // Episodes count as wholes: one odd one of two makes a wide interval.
        let odd = Faithfulness::of(&[
            Effect { claimed: 1.0, elsewhere: 0.0 },
            Effect { claimed: 0.0, elsewhere: 1.0 },
        ]);
        assert_eq!((odd.value, odd.interval), (0.0, Some([-1.0, 1.0])));
    }
}

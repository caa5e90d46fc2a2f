//! How often a measure tells true claims from false ones.

use serde::Serialize;

/// A measure of a claim of a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredClaim {
    /// The case.
    pub case: &'static str,
    /// The seed of the world.
    pub seed: u64,
    /// The measure.
    pub measure: &'static str,
    /// Its value; none where it is not defined.
    pub value: Option<f64>,
}

/// How often a measure tells true claims from false ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasureTells {
    /// The measure.
    pub measure: &'static str,
    /// True if larger values speak for a claim.
    pub more_is_better: bool,
    /// Pairs of a true and a false claim over the same kind of observation.
    pub pairs: usize,
    /// Share of these pairs in which the true claim has the better value, a tie counting half: the area under the ROC curve,
    /// 0.5 as chance.
    pub auc: Option<f64>,
    /// The same by what is observed.
    pub auc_of: Vec<(&'static str, Option<f64>)>,
    /// Share of claims that the best single threshold over all cases tells rightly, true and false ones weighing equally;
    /// 0.5 as chance.
    pub best_threshold: Option<f64>,
}

/// A claim that is known to be true or false, with the value of a measure, where larger ones speak for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged {
    pub(super) kind: &'static str,
    pub(super) is_true: bool,
    pub(super) value: f64,
}

/// Wins of the true claims, and pairs, within a kind.
fn wins(claims: &[Judged], kind: &str) -> (f64, usize) {
    let of =
        |is_true: bool| claims.iter().filter(move |claim| claim.kind == kind && claim.is_true == is_true);
    let (mut wins, mut pairs) = (0.0, 0);
    for yes in of(true) {
        for no in of(false) {
            pairs += 1;
            wins += match yes.value.total_cmp(&no.value) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    (wins, pairs)
}

/// The mean of the shares of true and of false claims that the best threshold tells.
fn best_threshold(claims: &[Judged]) -> Option<f64> {
    let count = |is_true: bool| claims.iter().filter(|claim| claim.is_true == is_true).count() as f64;
    let [yes, no] = [true, false].map(count);
    if yes == 0.0 || no == 0.0 {
        return None;
    }
    let mut sorted = claims.to_vec();
    sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
    // At first everything passes: all true ones are told, and no false one.
    let (mut told_yes, mut told_no, mut best) = (yes, 0.0, 0.5_f64);
    for (i, claim) in sorted.iter().enumerate() {
        if claim.is_true {
            told_yes -= 1.0;
        } else {
            told_no += 1.0;
        }
        let ends = sorted.get(i + 1).is_none_or(|next| next.value > claim.value);
        if ends {
            best = best.max(f64::midpoint(told_yes / yes, told_no / no));
        }
    }
    Some(best)
}

/// How often a measure tells `claims` apart; those without a value are left out by the caller.
pub(super) fn tells(
    measure: &'static str,
    more_is_better: bool,
    claims: &[Judged],
    kinds: &[&'static str],
) -> MeasureTells {
    let share = |(wins, pairs): (f64, usize)| (pairs > 0).then(|| wins / pairs as f64);
    let each: Vec<(f64, usize)> = kinds.iter().map(|kind| wins(claims, kind)).collect();
    let all = each.iter().fold((0.0, 0), |(a, b), (wins, pairs)| (a + wins, b + pairs));
    MeasureTells {
        measure,
        more_is_better,
        pairs: all.1,
        auc: share(all),
        auc_of: kinds.iter().copied().zip(each.into_iter().map(share)).collect(),
        best_threshold: best_threshold(claims),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted_within_a_kind() {
        let claim = |kind, is_true, value| Judged { kind, is_true, value };
        let claims = [
            claim("a", true, 3.0),
            claim("a", true, 1.0),
            claim("a", false, 2.0),
            claim("a", false, 1.0),
            claim("b", true, -5.0),
        ];
        let told = tells("m", true, &claims, &["a", "b"]);
        // 3 is above both, 1 ties with one and is below the other; b has no pair.
        assert_eq!((told.pairs, told.auc), (4, Some(2.5 / 4.0)));
        assert_eq!(told.auc_of, [("a", Some(2.5 / 4.0)), ("b", None)]);
        // Above 2: one of three true ones and both false ones are told.
        assert_eq!(told.best_threshold, Some(f64::midpoint(1.0 / 3.0, 1.0)));
        assert_eq!(tells("m", true, &claims[..2], &["a"]).best_threshold, None);
    }
}

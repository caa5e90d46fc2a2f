//! The verdict on a row and on an experiment: a test of the numbers.

use foveate_core::statistics::{mean, mean_interval, mean_of_means_interval, std};
use serde::Serialize;

use super::experiment::{PublishedNumber, Rule, Trained};

/// What a comparison with a published number says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "why")]
pub enum Verdict {
    /// Ours agrees with the published number.
    Reproduced,
    /// Ours is better.
    Better,
    /// Ours is worse.
    Worse,
    /// The two do not compare, for this reason.
    NotComparable(String),
}

impl Verdict {
    /// In a word or two.
    pub const fn short(&self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NotComparable(_) => "not comparable",
        }
    }

    /// In words.
    pub fn words(&self) -> String {
        match self {
            Verdict::NotComparable(why) => format!("{} ({why})", self.short()),
            other => other.short().into(),
        }
    }
}

/// What was measured for a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ours {
    /// Mean of the means of all trainings.
    pub mean: f64,
    /// Standard deviation over all episodes, divisor n.
    pub std: Option<f64>,
    /// 95 % interval of the mean, by bootstrap: trainings are not drawn again, their episodes are.
    pub interval: Option<[f64; 2]>,
    /// Number of episodes.
    pub n: usize,
    /// Number of trainings, or 1 for weights that were given.
    pub seeds: usize,
}

impl Ours {
    /// Of the episodes of each training; `None` without any.
    pub fn of(groups: &[Vec<f64>]) -> Option<Self> {
        if groups.is_empty() || groups.iter().any(Vec::is_empty) {
            return None;
        }
        let all = groups.concat();
        let slices: Vec<&[f64]> = groups.iter().map(|group| &**group).collect();
        let means: Vec<f64> = groups.iter().map(|group| mean(group)).collect();
        // One episode of each of several trainings, such as a fixed share of solved ones.
        let interval = mean_of_means_interval(&slices).or_else(|| mean_interval(&means));
        Some(Ours { mean: mean(&means), std: std(&all), interval, n: all.len(), seeds: groups.len() })
    }

    /// Ours minus the published mean, and the 95 % interval of the difference, if both have a spread or the published mean is a
    /// number without one.
    pub fn difference(&self, published: &PublishedNumber) -> (f64, Option<[f64; 2]>) {
        let difference = self.mean - published.mean;
        let theirs = published.half_interval().unwrap_or(0.0);
        let interval = self.interval.map(|[low, high]| {
            [difference - (self.mean - low).hypot(theirs), difference + (high - self.mean).hypot(theirs)]
        });
        (difference, interval)
    }
}

/// What a row is judged by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case<'a> {
    /// What counts.
    pub rule: Rule,
    /// What was published.
    pub published: Option<&'a PublishedNumber>,
    /// From what the published agent learnt.
    pub paper: Option<Trained>,
    /// From what ours learnt.
    pub trained: Trained,
    /// Episodes of each training, and number of trainings, that count.
    pub wanted: [usize; 2],
}

/// The verdict on a row.
pub fn judge(case: &Case<'_>, ours: Option<&Ours>) -> Verdict {
    let Some(ours) = ours else { return Verdict::NotComparable("not run".into()) };
    let [episodes, seeds] = case.wanted;
    if ours.seeds < seeds {
        let counted = plural(ours.seeds, "seed");
        return Verdict::NotComparable(format!("{counted} of {seeds} that count"));
    }
    if ours.n < episodes * ours.seeds {
        return Verdict::NotComparable(format!(
            "{} of {episodes} that count",
            plural(ours.n / ours.seeds, "episode")
        ));
    }
    if (case.trained, case.paper) == (Trained::Taught, Some(Trained::Rewards)) {
        return Verdict::NotComparable("taught; the published agent learnt from rewards".into());
    }
    let above = |mean: f64| if ours.mean > mean { Verdict::Better } else { Verdict::Worse };
    match (case.rule, case.published) {
        (Rule::AtLeast(least), _) if ours.mean < least => Verdict::Worse,
        (Rule::AtLeast(_), published) => {
            let low = ours.interval.map(|[low, _]| low);
            let high = published.map(|p| p.mean + p.half_interval().unwrap_or(0.0));
            let surely = low.zip(high).is_some_and(|(low, high)| low > high);
            if surely { Verdict::Better } else { Verdict::Reproduced }
        }
        (_, None) => Verdict::NotComparable("nothing published".into()),
        (Rule::WithinStd, Some(published)) => match published.std {
            None => Verdict::NotComparable("no published spread".into()),
            Some(std) if (ours.mean - published.mean).abs() <= std => Verdict::Reproduced,
            Some(_) => above(published.mean),
        },
        (Rule::Overlap, Some(published)) => match (ours.interval, published.half_interval()) {
            (Some([low, high]), Some(half)) => {
                let apart = low > published.mean + half || high < published.mean - half;
                if apart { above(published.mean) } else { Verdict::Reproduced }
            }
            _ => Verdict::NotComparable("no interval".into()),
        },
    }
}

/// Returns whether these means, in the order that was published, fall from one to the next; `None` when one was not measured.
pub fn falls(means: &[Option<f64>]) -> Option<bool> {
    let means = means.iter().copied().collect::<Option<Vec<f64>>>()?;
    Some(means.windows(2).all(|pair| pair[0] > pair[1]))
}

/// The verdict on an experiment: that of its rows that are judged and of its order, if that counts.
pub fn overall(rows: &[Verdict], order: Option<Option<bool>>) -> Verdict {
    if rows.is_empty() && order.is_none() {
        return Verdict::NotComparable("nothing is judged".into());
    }
    if rows.contains(&Verdict::Worse) || order == Some(Some(false)) {
        return Verdict::Worse;
    }
    let open: Vec<&String> = rows
        .iter()
        .filter_map(|row| if let Verdict::NotComparable(why) = row { Some(why) } else { None })
        .collect();
    if let Some(first) = open.first() {
        let all_same = open.iter().all(|why| why == first);
        let why = if all_same { first.as_str() } else { "for several reasons" };
        return Verdict::NotComparable(if open.len() == rows.len() {
            why.to_owned()
        } else {
            format!("{} of {}: {why}", open.len(), plural(rows.len(), "row"))
        });
    }
    if order == Some(None) {
        return Verdict::NotComparable("the order needs every row".into());
    }
    let all_better = !rows.is_empty() && rows.iter().all(|row| *row == Verdict::Better);
    if all_better { Verdict::Better } else { Verdict::Reproduced }
}

fn plural(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: PublishedNumber = PublishedNumber { mean: 900.0, std: Some(50.0), n: Some(100) };

    fn ours(mean: f64, half: f64) -> Ours {
        Ours { mean, std: Some(5.0 * half), interval: Some([mean - half, mean + half]), n: 100, seeds: 1 }
    }

    fn case(rule: Rule) -> Case<'static> {
        Case {
            rule,
            published: Some(&PUBLISHED),
            paper: Some(Trained::Rewards),
            trained: Trained::Rewards,
            wanted: [100, 1],
        }
    }

    #[test]
    fn each_rule_is_a_test_of_the_numbers() {
        // The published interval is 900 ± 9.8.
        for (rule, mean, half, expect) in [
            (Rule::WithinStd, 850.0, 1.0, Verdict::Reproduced),
            (Rule::WithinStd, 950.0, 1.0, Verdict::Reproduced),
            (Rule::WithinStd, 849.9, 1.0, Verdict::Worse),
            (Rule::WithinStd, 950.1, 1.0, Verdict::Better),
            (Rule::AtLeast(890.0), 889.9, 1.0, Verdict::Worse),
            (Rule::AtLeast(890.0), 890.0, 1.0, Verdict::Reproduced),
            (Rule::AtLeast(890.0), 911.0, 1.1, Verdict::Better),
            (Rule::AtLeast(890.0), 911.0, 1.3, Verdict::Reproduced),
            (Rule::Overlap, 880.0, 10.3, Verdict::Reproduced),
            (Rule::Overlap, 880.0, 10.1, Verdict::Worse),
            (Rule::Overlap, 920.0, 10.1, Verdict::Better),
        ] {
            assert_eq!(judge(&case(rule), Some(&ours(mean, half))), expect, "{rule:?} {mean} ± {half}");
        }
    }

    #[test]
    fn what_does_not_compare_says_why() {
        let whole = case(Rule::WithinStd);
        let said = |case: &Case<'_>, ours: Option<&Ours>| judge(case, ours).words();
        let few = Ours { n: 2, ..ours(900.0, 1.0) };
        assert_eq!(said(&whole, None), "not comparable (not run)");
        assert_eq!(said(&whole, Some(&few)), "not comparable (2 episodes of 100 that count)");
        let two = Case { wanted: [100, 2], ..whole };
        assert_eq!(said(&two, Some(&ours(900.0, 1.0))), "not comparable (1 seed of 2 that count)");
        let taught = Case { trained: Trained::Taught, ..whole };
        assert_eq!(
            said(&taught, Some(&ours(900.0, 1.0))),
            "not comparable (taught; the published agent learnt from rewards)"
        );
        let alone = Case { published: None, ..whole };
        assert_eq!(said(&alone, Some(&ours(900.0, 1.0))), "not comparable (nothing published)");
    }

    #[test]
    fn an_experiment_is_as_good_as_its_worst_row() {
        use Verdict::{Better, NotComparable, Reproduced, Worse};
        let open = || NotComparable("not run".into());
        for (rows, order, expect) in [
            (vec![Better, Better], None, Better),
            (vec![Better, Reproduced], None, Reproduced),
            (vec![Better, Worse, open()], None, Worse),
            (vec![Better, open()], None, NotComparable("1 of 2 rows: not run".into())),
            (vec![open(), open()], None, NotComparable("not run".into())),
            (vec![Reproduced], Some(Some(false)), Worse),
            (vec![Reproduced], Some(Some(true)), Reproduced),
            (vec![], Some(Some(true)), Reproduced),
            (vec![], Some(None), NotComparable("the order needs every row".into())),
            (vec![], None, NotComparable("nothing is judged".into())),
        ] {
            assert_eq!(overall(&rows, order), expect, "{rows:?} {order:?}");
        }
        assert_eq!(falls(&[Some(3.0), Some(2.0), Some(1.0)]), Some(true));
        assert_eq!(falls(&[Some(3.0), Some(3.0)]), Some(false));
        assert_eq!(falls(&[Some(3.0), None]), None);
    }

    #[test]
    fn a_difference_has_the_uncertainty_of_both_means() {
        let (difference, interval) = ours(890.0, 3.0).difference(&PUBLISHED);
        let half = 3.0_f64.hypot(9.8);
        let [low, high] = interval.expect("both have a spread");
        assert_eq!(difference, -10.0);
        assert!((low + 10.0 + half).abs() < 1e-9 && (high + 10.0 - half).abs() < 1e-9, "{low} {high}");
        let groups = [vec![1.0, 3.0], vec![5.0, 7.0]];
        let two = Ours::of(&groups).expect("episodes");
        assert_eq!((two.mean, two.n, two.seeds), (4.0, 4, 2));
        assert_eq!(Ours::of(&[]), None);
        assert_eq!(Ours::of(&[vec![]]), None);
    }
}

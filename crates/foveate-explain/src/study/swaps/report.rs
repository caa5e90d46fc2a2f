//! What was found, in numbers and in three lines.

use std::fmt;

use foveate_core::Labels;
use foveate_core::statistics::holm;
use serde::Serialize;

use super::Swapped;
use super::effects::{Curves, Regret};
use super::measure::{Measured, Measurement};
use crate::estimate::{Estimate, FEWEST_EPISODES, sign_flip_p};
use crate::study::words::count;
use crate::study::{INTERVAL, ReportHead};

/// Below this much natural variation, in parts of the action's whole range, nothing is claimed.
pub(in crate::study) const FLOOR: f64 = 0.01;

/// Fewer untrained agents give no *yes*: an agent above all of n has the p-value 1 / (n + 1) by its rank, and that must not be
/// above 1 in 20.
pub(in crate::study) const FEWEST_UNTRAINED: usize = 20 - 1;

/// More episodes than this are not advised.
const MOST_ADVISED: f64 = 1000.0;

/// Whether the order of a claim is right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Order {
    /// What is ordered, and what is swapped.
    pub name: String,
    /// True if the parts are all places of the observation; otherwise what is attended.
    pub places: bool,
    /// How many parts.
    pub parts: usize,
    /// F: 0 as random parts, 1 as the best order of single parts, below 0 misleading; `None` where no order is better than
    /// another.
    pub f: Option<Estimate>,
    /// How far the claim is above the order of where the agent attends in other episodes, in the same unit.
    pub above_prior: Option<Estimate>,
    /// How far it is above the claim of the most similar moment of another episode.
    pub above_similar: Option<Estimate>,
    /// p-value of the sign-flip test of F, corrected for the number of tests (Holm).
    pub p: Option<f64>,
    /// Share of the random parts that change the observation as much as the claimed ones, within a tenth; `None` where parts are
    /// all alike.
    pub matched: Option<f64>,
    /// Spearman correlation of claim and single effect, mean over decisions.
    pub rank_correlation: Option<f64>,
}

/// An answer to one of the three questions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictLine {
    /// The question.
    pub question: &'static str,
    /// `yes`, `no`, or `undecided`.
    pub answer: &'static str,
    /// The numbers that say so, in a sentence.
    pub why: String,
}

/// What untrained agents of the same kind get.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Untrained {
    /// Their F of the order that decides; those whose F is not defined are left out.
    pub f: Vec<f64>,
    /// How many there were.
    pub agents: usize,
    /// The agent's F is above those of this share of them; an undefined F counts as 0.
    pub percentile: Option<f64>,
    /// What another untrained agent stays below in 99 of 100 cases, if theirs are normally distributed; `None` of fewer than
    /// two.
    pub limit: Option<f64>,
    /// Of how many the natural variation is above the floor.
    pub moving: usize,
}

/// The agent with a part of its weights drawn at random (cascading randomisation, Adebayo et al. 2018).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Randomised {
    /// The tensors, by their common name; of a cascade all from there to the last.
    pub tensors: String,
    /// True if all tensors behind these are random, too.
    pub cascade: bool,
    /// N.
    pub natural: Estimate,
    /// M.
    pub attended: Option<Estimate>,
    /// F of the order that decides.
    pub f: Option<Estimate>,
}

impl Randomised {
    pub(in crate::study) fn new(tensors: String, cascade: bool, measured: &Measurement) -> Self {
        let Shares { natural, attended, .. } = shares(&measured.episodes);
        let f = order(String::new(), false, measured, deciding(measured)).and_then(|order| order.f);
        Randomised { tensors, cascade, natural, attended, f }
    }
}

/// What was found of an agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SwapReport {
    /// What was studied.
    #[serde(flatten)]
    pub head: ReportHead,
    /// How far apart two actions are, in words.
    pub distance: &'static str,
    /// Units that can be attended to, and how many of them are put in order; `null` without attention that can be opened.
    pub units: Option<[usize; 2]>,
    /// True if units are selected and their weights play no further part.
    pub hard: bool,
    /// N, natural variation, in parts of the action's whole range.
    pub natural: Estimate,
    /// M, the share of it that comes with what the attention hands on.
    pub attended: Option<Estimate>,
    /// The share that comes with the weights alone; not for hard attention.
    pub selection: Option<Estimate>,
    /// The share that comes with the values alone; not for hard attention.
    pub values: Option<Estimate>,
    /// The share that comes with the memory alone.
    pub memory: Option<Estimate>,
    /// M less the share of the memory.
    pub attended_above_memory: Option<Estimate>,
    /// Of choices by the largest score: by how much what is chosen then scores below what was chosen; `null` of other actions.
    pub regret: Option<Regret<Estimate>>,
    /// The order within what is attended, where the agent can be opened, and over all places of the observation.
    pub orders: Vec<Order>,
    /// The same of untrained agents.
    pub untrained: Option<Untrained>,
    /// The agent with parts of its weights at random: each part alone, and from each part on to the last.
    pub randomised: Vec<Randomised>,
    /// Does the input matter, does the attended path carry more of that than the memory, is the order right?
    pub verdict: [VerdictLine; 3],
    /// Confidence level of all intervals, which are not corrected for their number.
    pub interval: f64,
}

/// For every episode, the sum over its decisions.
fn sums(episodes: &[Vec<Measured>], of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
    episodes.iter().map(|all| all.iter().filter_map(&of).sum()).collect()
}

fn area(curve: &[f64]) -> f64 {
    foveate_core::statistics::mean(curve)
}

/// Which curves of a decision.
pub(in crate::study) type Pick = fn(&Measured) -> Option<&Curves>;

/// The curves of what is attended, and of all places.
pub(in crate::study) const PICKS: [Pick; 2] =
    [|measured| measured.values.as_ref(), |measured| measured.inputs.as_ref()];

/// F of some curves, with what it is compared with, before correction.
fn order(name: String, places: bool, measured: &Measurement, pick: Pick) -> Option<Order> {
    let episodes = &measured.episodes;
    let all = || episodes.iter().flatten().filter_map(pick);
    let parts = all().next()?.budgets.last().copied()?;
    let apart = |a: fn(&Curves) -> &[f64], b: fn(&Curves) -> &[f64]| {
        sums(episodes, |measured| pick(measured).map(|curves| area(a(curves)) - area(b(curves))))
    };
    let lead = apart(|curves| &curves.claim, |curves| &curves.null);
    let best = apart(|curves| &curves.best, |curves| &curves.null);
    // Where the best order of single parts is no better than chance, there is no scale to measure on.
    let defined = Estimate::mean(&best).is_above(0.0) || (best.len() == 1 && best[0] > 0.0);
    let on_scale = |of: &[f64]| defined.then(|| Estimate::ratio(of, &best)).flatten();
    let matched: Vec<f64> = all().filter_map(|curves| curves.matched).collect();
    let correlations: Vec<f64> = all()
        .filter(|curves| curves.single.len() > 2)
        .map(|curves| {
            let (claims, effects): (Vec<f64>, Vec<f64>) =
                curves.single.iter().map(|&(_, claim, effect)| (claim, effect)).unzip();
            crate::saliency::rank_correlation(&claims, &effects)
        })
        .collect();
    let mean = |numbers: &[f64]| (!numbers.is_empty()).then(|| foveate_core::statistics::mean(numbers));
    Some(Order {
        name,
        places,
        parts,
        f: on_scale(&lead).map(|f| f.within([f64::NEG_INFINITY, BEST])),
        above_prior: on_scale(&apart(|curves| &curves.claim, |curves| &curves.prior)),
        above_similar: on_scale(&apart(|curves| &curves.claim, |curves| &curves.similar)),
        p: defined.then(|| sign_flip_p(&lead)),
        matched: mean(&matched),
        rank_correlation: mean(&correlations),
    })
}

/// N, and shares of it, by path.
struct Shares {
    natural: Estimate,
    attended: Option<Estimate>,
    selection: Option<Estimate>,
    values: Option<Estimate>,
    memory: Option<Estimate>,
    above_memory: Option<Estimate>,
}

fn shares(episodes: &[Vec<Measured>]) -> Shares {
    let natural = sums(episodes, |m| Some(m.paths.natural));
    let counts = sums(episodes, |_| Some(1.0));
    let difference = |of: &dyn Fn(&Measured) -> Option<f64>| Estimate::ratio(&sums(episodes, of), &natural);
    let share = |of: &dyn Fn(&Measured) -> Option<f64>| Some(difference(of)?.within([0.0, f64::INFINITY]));
    let soft = episodes.iter().flatten().any(|m| m.paths.selection.is_some());
    Shares {
        attended: share(&|m| Some(m.paths.attended)),
        selection: if soft { share(&|m| m.paths.selection) } else { None },
        values: if soft { share(&|m| m.paths.values) } else { None },
        memory: share(&|m| Some(m.paths.memory)),
        above_memory: difference(&|m| Some(m.paths.attended - m.paths.memory)),
        natural: Estimate::ratio(&natural, &counts)
            .map_or(Estimate { value: 0.0, interval: None }, |natural| natural.within([0.0, 1.0])),
    }
}

/// F of the best order, the largest that there is.
const BEST: f64 = 1.0;

/// The mean regret of a decision; `None` where actions are not chosen by the largest score.
fn regret(episodes: &[Vec<Measured>]) -> Option<Regret<Estimate>> {
    let counts = sums(episodes, |m| m.paths.regret.map(|_| 1.0));
    let mean =
        |of: fn(Regret<f64>) -> f64| Estimate::ratio(&sums(episodes, |m| m.paths.regret.map(of)), &counts);
    Some(Regret {
        natural: mean(|regret| regret.natural)?,
        attended: mean(|regret| regret.attended)?,
        memory: mean(|regret| regret.memory)?,
    })
}

/// The order that decides: within what is attended, or over all places where that is not known.
fn deciding(measured: &Measurement) -> Pick {
    if measured.units.is_some() { PICKS[0] } else { PICKS[1] }
}

/// The upper end of a one-sided 99 % prediction interval for one more number like these: their mean and s · √(1 + 1/n) times
/// the quantile of Student's t, by its expansion around the normal quantile.
fn limit(numbers: &[f64]) -> Option<f64> {
    const Z: f64 = 2.326_347_874;
    let n = numbers.len() as f64;
    let spread = foveate_core::statistics::std(numbers)? * (n / (n - 1.0)).sqrt();
    let free = n - 1.0;
    let t = Z
        + (Z.powi(3) + Z) / (4.0 * free)
        + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * free.powi(2));
    Some(foveate_core::statistics::mean(numbers) + t * spread * (1.0 + 1.0 / n).sqrt())
}

/// The same of F, which ends at that of the best order.
fn limit_of_f(numbers: &[f64]) -> Option<f64> {
    limit(numbers).map(|limit| limit.min(BEST))
}

fn untrained(own: Option<f64>, others: &[Measurement]) -> Untrained {
    let fs: Vec<Option<f64>> = others
        .iter()
        .map(|other| {
            order(String::new(), false, other, deciding(other)).and_then(|order| Some(order.f?.value))
        })
        .collect();
    let moving = others.iter().filter(|other| shares(&other.episodes).natural.value >= FLOOR).count();
    let percentile = own
        .filter(|_| !fs.is_empty())
        .map(|own| fs.iter().filter(|f| f.unwrap_or(0.0) < own).count() as f64 / fs.len() as f64);
    let all: Vec<f64> = fs.iter().map(|f| f.unwrap_or(0.0)).collect();
    Untrained {
        agents: others.len(),
        limit: limit_of_f(&all),
        f: fs.into_iter().flatten().collect(),
        percentile,
        moving,
    }
}

/// The head of a report on these decisions.
pub(in crate::study) fn head(labels: &Labels, seed: u64, measured: &Measurement) -> ReportHead {
    let steps = measured.episodes.iter().map(|all| all.last().map_or(0, |last| last.step)).collect();
    let decisions = measured.episodes.iter().map(Vec::len).sum();
    ReportHead::new(labels, seed, measured.scores.clone(), steps, decisions)
}

pub(in crate::study) fn report(of: &ReportHead, swapped: &Swapped) -> SwapReport {
    let Swapped { measured, others, randomised } = swapped;
    let Shares { natural, attended, selection, values, memory, above_memory } = shares(&measured.episodes);
    let names = [
        match measured.units {
            Some([_, tested]) if measured.hard => format!("the {tested} selected, their values swapped"),
            Some([units, tested]) => format!("the {tested} most attended of {units}, their values swapped"),
            None => String::new(),
        },
        format!("all {} places, the observation swapped", measured.places),
    ];
    let mut orders: Vec<Order> = names
        .into_iter()
        .zip(PICKS)
        .enumerate()
        .filter_map(|(i, (name, pick))| order(name, i == 1, measured, pick))
        .collect();
    let p: Vec<f64> = orders.iter().filter_map(|order| order.p).collect();
    let mut corrected = holm(&p).into_iter();
    for order in &mut orders {
        order.p = order.p.and_then(|_| corrected.next());
    }
    let labels = Labels {
        env: of.env.clone(),
        picture: of.picture.clone(),
        variant: of.variant.clone(),
        weights: of.weights.clone(),
    };
    let untrained = (!others.is_empty())
        .then(|| untrained(orders.first().and_then(|order| Some(order.f?.value)), others));
    let verdict = verdict(Grounds {
        episodes: measured.episodes.len(),
        opened: measured.units.is_some(),
        natural: &natural,
        attended,
        memory,
        above_memory,
        order: orders.first(),
        untrained: untrained.as_ref(),
    });
    SwapReport {
        head: head(&labels, of.seed, measured),
        distance: measured.distance.name(),
        units: measured.units,
        hard: measured.hard,
        natural,
        attended,
        selection,
        values,
        memory,
        attended_above_memory: above_memory,
        regret: regret(&measured.episodes),
        orders,
        untrained,
        randomised: randomised.clone(),
        verdict,
        interval: INTERVAL,
    }
}

/// N in per cent.
pub(in crate::study) fn natural_percent(report: &SwapReport) -> String {
    report.natural.percent()
}

/// What the three lines rest on.
#[derive(Clone, Copy)]
pub(in crate::study) struct Grounds<'a> {
    pub(in crate::study) episodes: usize,
    /// True if it could be opened at its attention; otherwise its path is that of what it sees.
    pub(in crate::study) opened: bool,
    pub(in crate::study) natural: &'a Estimate,
    pub(in crate::study) attended: Option<Estimate>,
    pub(in crate::study) memory: Option<Estimate>,
    pub(in crate::study) above_memory: Option<Estimate>,
    /// The order that decides.
    pub(in crate::study) order: Option<&'a Order>,
    pub(in crate::study) untrained: Option<&'a Untrained>,
}

/// `yes` and `no` need an interval on one side; all else is undecided.
const fn answer(yes: bool, no: bool) -> &'static str {
    match (yes, no) {
        (true, _) => "yes",
        (_, true) => "no",
        _ => "undecided",
    }
}

/// The answers to the three questions. A number that is not defined decides nothing.
pub(in crate::study) fn verdict(grounds: Grounds<'_>) -> [VerdictLine; 3] {
    let Grounds { episodes, opened, natural, attended, memory, above_memory, order, .. } = grounds;
    let few = (episodes < FEWEST_EPISODES).then(|| {
        format!(
            "{} {} too few to say; {FEWEST_EPISODES} are the least",
            count(episodes, "episode"),
            if episodes == 1 { "is" } else { "are" }
        )
    });
    let moves = few.is_none() && natural.is_above(FLOOR);
    let stays = few.is_none() && natural.is_below(FLOOR);
    let range =
        format!("between moments the action differs by {} of its range; the floor is 1 %", natural.percent());
    let first = VerdictLine {
        question: "does what it sees and remembers move its action?",
        answer: answer(moves, stays),
        why: match &few {
            _ if moves || stays => range,
            Some(few) => format!("{range}; {few}"),
            None => format!("{range}; {}", would_decide(natural, FLOOR, episodes)),
        },
    };
    let unasked = match few {
        Some(few) => few,
        None if stays => "nothing to explain: the action hardly moves".into(),
        None => "it is open whether the action moves at all".into(),
    };
    let (question, path) = if opened {
        ("does what it attends to carry more of that than its memory?", "what the attention hands on")
    } else {
        ("does what it sees carry more of that than its memory?", "what it sees")
    };
    let second = match (attended, memory, above_memory) {
        (Some(m), Some(memory), Some(apart)) if moves => {
            let answer = answer(apart.is_above(0.0), apart.is_below(0.0));
            let mut why =
                format!("{path} alone makes {} of it, the memory alone {}", m.percent(), memory.percent());
            if answer == "undecided" {
                why += &format!("; {}", would_decide(&apart, 0.0, episodes));
            }
            VerdictLine { question, answer, why }
        }
        _ => {
            let why = if moves { "the paths were not measured".into() } else { unasked.clone() };
            VerdictLine { question, answer: "undecided", why }
        }
    };
    let question = "is the order of what it attends to right?";
    let third = match order {
        Some(order) if moves => of_order(order, grounds),
        Some(_) => VerdictLine { question, answer: "undecided", why: unasked },
        None => VerdictLine {
            question,
            answer: "undecided",
            why: "the agent claims no order, so there is none to test".into(),
        },
    };
    [first, second, third]
}

/// The third answer.
fn of_order(order: &Order, Grounds { episodes, untrained, .. }: Grounds<'_>) -> VerdictLine {
    let question = "is the order of what it attends to right?";
    let (Some(f), Some(prior)) = (&order.f, &order.above_prior) else {
        let why = format!(
            "over {}, no order moves the action measurably more than a random one, so F is not defined; more episodes or \
             decisions may define it",
            order.name
        );
        return VerdictLine { question, answer: "undecided", why };
    };
    let limit = untrained.and_then(Untrained::decides);
    let own = f.is_above(0.0) && prior.is_above(0.0);
    let answer =
        answer(own && limit.is_some_and(|limit| f.value > limit), f.is_below(0.0) || prior.is_below(0.0));
    let mut why = format!(
        "F = {} over {}; above the order of other episodes by {}",
        f.plain(),
        order.name,
        prior.plain()
    );
    if let Some(above) = untrained.and_then(Untrained::above) {
        why += &format!("; above {above}");
    }
    why += &match (limit, answer) {
        (_, "no") => String::new(),
        (_, "undecided") if !f.is_above(0.0) => format!("; {}", would_decide(f, 0.0, episodes)),
        (_, "undecided") if !prior.is_above(0.0) => {
            format!("; as to other episodes, {}", would_decide(prior, 0.0, episodes))
        }
        (None, _) => format!("; at least {FEWEST_UNTRAINED} untrained agents would decide it"),
        (Some(limit), "undecided") if limit >= BEST => {
            "; they differ so much that one more might have F = 1, as the best order has, so that more untrained agents would \
             have to decide it"
                .into()
        }
        (Some(limit), "undecided") => format!(
            "; one more of them would stay below {limit:.2}, which F does not pass; more untrained agents would set that limit \
             better"
        ),
        (Some(limit), _) => format!("; one more of them would stay below {limit:.2}"),
    };
    VerdictLine { question, answer, why }
}

/// What would decide a question that is open because this interval holds the limit: an interval is as wide as one divided by
/// the root of the episodes.
fn would_decide(of: &Estimate, limit: f64, episodes: usize) -> String {
    let Some([low, high]) = of.interval else { return "more episodes would decide it".into() };
    if of.value == limit {
        return "the number lies at its limit, so that more episodes may not decide it".into();
    }
    let (apart, half) = if of.value > limit {
        (of.value - limit, of.value - low)
    } else {
        (limit - of.value, high - of.value)
    };
    // In steps of five, and more than there are.
    let needed = (episodes as f64 * (half / apart).powi(2) / 5.0).ceil() * 5.0;
    let needed = needed.max((episodes + 1) as f64);
    if needed <= MOST_ADVISED {
        format!("about {needed:.0} episodes would decide it, if the numbers stay")
    } else {
        format!("more than {MOST_ADVISED:.0} episodes would have to decide it, if the numbers stay")
    }
}

impl Untrained {
    /// The limit that an agent must pass; `None` of too few agents.
    pub(in crate::study) fn decides(&self) -> Option<f64> {
        self.limit.filter(|_| self.agents >= FEWEST_UNTRAINED)
    }

    /// Above how many the agent is, of how many; `None` where its own F is not defined.
    pub(in crate::study) fn above(&self) -> Option<String> {
        let share = self.percentile?;
        let undefined = self.agents - self.f.len();
        let counted = match undefined {
            0 => String::new(),
            _ => format!(" (F is not defined for {undefined} of them and counts as 0)"),
        };
        let above = (share * self.agents as f64).round();
        let few = if self.agents < FEWEST_UNTRAINED { ", which are too few for a yes" } else { "" };
        Some(format!("{above:.0} of {} untrained agents{counted}{few}", self.agents))
    }
}

impl fmt::Display for SwapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f)?;
        writeln!(f, "  N, natural variation          {}", self.natural.percent())?;
        for (name, share) in [
            ("M, attended path", &self.attended),
            ("  weights alone", &self.selection),
            ("  values alone", &self.values),
            ("memory", &self.memory),
        ] {
            if let Some(share) = share {
                writeln!(f, "  {name:28}  {}", share.plain())?;
            }
        }
        if let Some(Regret { natural, attended, memory }) = &self.regret {
            for (name, regret) in
                [("regret in scores", natural), ("  attended path", attended), ("  memory", memory)]
            {
                writeln!(f, "  {name:28}  {}", regret.plain())?;
            }
        }
        for order in &self.orders {
            let f_of = order.f.as_ref().map_or("not defined".into(), Estimate::plain);
            write!(f, "  F  {f_of}  {}", order.name)?;
            if let Some(matched) = order.matched {
                write!(f, "; {:.0} % of random places matched", 100.0 * matched)?;
            }
            writeln!(f)?;
        }
        if let Some(untrained @ Untrained { f: all, agents, .. }) = &self.untrained {
            let agents =
                untrained.above().map_or_else(|| count(*agents, "agent"), |above| format!("above {above}"));
            let theirs = if all.is_empty() {
                "their F is not defined".into()
            } else {
                format!("their mean F is {:.2}", foveate_core::statistics::mean(all))
            };
            writeln!(f, "  untrained                     {agents}; {theirs}")?;
        }
        for (i, line) in self.verdict.iter().enumerate() {
            let end = if i < 2 { "\n" } else { "" };
            write!(f, "  {:10} {}\n             {}{end}", line.answer, line.question, line.why)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{limit, limit_of_f};

    #[test]
    fn the_limit_of_untrained_agents_is_that_of_students_t() {
        // t(19) is 2.5395 at 99 %, t(4) 3.7469, where the expansion is off by a few hundredths.
        let twenty: Vec<f64> = (0..20).map(f64::from).collect();
        let spread = (665.0_f64 / 19.0).sqrt();
        let expect = 9.5 + 2.5395 * spread * (21.0_f64 / 20.0).sqrt();
        assert!((limit(&twenty).expect("twenty") - expect).abs() < 0.01);
        let five = limit(&[0.0, 1.0, 2.0, 3.0, 4.0]).expect("five");
        assert!((five - (2.0 + 3.7469 * 2.5_f64.sqrt() * 1.2_f64.sqrt())).abs() < 0.25, "{five}");
        assert_eq!((limit(&[1.0]), limit(&[0.5; 9])), (None, Some(0.5)));
        let apart = [-0.6, 0.9, 0.2, 0.4, -0.1, 0.7];
        assert!(limit(&apart).is_some_and(|limit| limit > 1.0));
        assert_eq!((limit_of_f(&apart), limit_of_f(&[0.5; 9])), (Some(1.0), Some(0.5)));
    }
}

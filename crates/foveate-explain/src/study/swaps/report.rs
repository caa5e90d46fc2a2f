//! What was found, in numbers and in answers.

use std::fmt;

use foveate_core::Labels;
use serde::Serialize;

use super::Swapped;
use super::effects::{Curves, OfDonor, Paths, RELIABLE, Regret};
use super::measure::{ClaimSeen, Measured, Measurement};
use super::verdict::{Answer, Asked, FEWEST_UNTRAINED, FLOOR, Ground, LEVEL, VerdictLine, answers};
use super::xrl_bench::XrlBench;
use crate::estimate::{Estimate, Pair, Scale, Tested};
use crate::study::words::count;
use crate::study::{INTERVAL, ReportHead};

/// Whether the order of a claim is right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Order {
    /// What is ordered, and what is swapped.
    pub name: String,
    /// The claim, where somebody else than the agent makes it.
    pub claim: Option<String>,
    /// True if the parts are all places of the observation; otherwise what is attended.
    pub places: bool,
    /// How many parts.
    pub parts: usize,
    /// How many of them are swapped at most.
    pub swapped: usize,
    /// How much further the action moves when named parts are swapped than when as many others are, in parts of the natural
    /// variation.
    pub above_others: Estimate,
    /// The same beside the parts that the claim names at moments of other episodes.
    pub above_other_moments: Estimate,
    /// How far the named parts move the action by themselves, in parts of the natural variation.
    pub named: Estimate,
    /// The first as a share of what the best order gets: 0 as other parts, 1 as the best; `None` where the effects of single
    /// parts are not reliable enough to say what is best.
    pub of_best: Option<Estimate>,
    /// Reliability of the effects of single parts, from 0 to 1; `None` where they were not measured, or none has an effect.
    pub reliability: Option<f64>,
    /// Share of moments at which all parts are claimed alike, which are left out.
    pub flat: f64,
    /// True if the claim is the same at all moments.
    pub constant: bool,
    /// Share of the other parts that change the observation as much as the claimed ones, within a tenth; `None` where parts are
    /// all alike.
    pub matched: Option<f64>,
    /// Spearman correlation of claim and single effect, mean over decisions.
    pub rank_correlation: Option<f64>,
    /// What named parts do above others, above other moments and by themselves, as they are tested.
    #[serde(skip)]
    pub(super) tests: [Tested; 3],
}

/// What untrained agents of the same kind get.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Untrained {
    /// How much further their named parts move their action than others do; 0 where that is not defined.
    pub above_others: Vec<f64>,
    /// How many there were.
    pub agents: usize,
    /// The agent is above this share of them.
    pub percentile: Option<f64>,
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
    /// Natural variation.
    pub natural: Estimate,
    /// The share of the attended path.
    pub attended: Option<Estimate>,
    /// How much further named parts move its action than others do.
    pub above_others: Option<Estimate>,
}

impl Randomised {
    pub(in crate::study) fn new(tensors: String, cascade: bool, measured: &Measurement) -> Self {
        let Shares { natural, attended, .. } = shares(&measured.episodes);
        let above_others = deciding(measured).map(|order| order.above_others);
        Randomised { tensors, cascade, natural, attended, above_others }
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
    /// True if the agent attends to something; otherwise its claim is perturbation saliency.
    pub attends: bool,
    /// Natural variation, in parts of the action's whole range.
    pub natural: Estimate,
    /// How far what it sees, or attends to, moves the action by itself, in the same unit.
    pub seen: Estimate,
    /// The share of the natural variation that comes with what the attention hands on.
    pub attended: Option<Estimate>,
    /// The share that comes with the weights alone; not for hard attention.
    pub selection: Option<Estimate>,
    /// The share that comes with the values alone; not for hard attention.
    pub values: Option<Estimate>,
    /// The share that comes with the memory alone.
    pub memory: Option<Estimate>,
    /// The share of the attended path less that of the memory.
    pub attended_above_memory: Option<Estimate>,
    /// Of choices by the largest score: by how much what is chosen then scores below what was chosen; `null` of other actions.
    pub regret: Option<Regret<Estimate>>,
    /// The order within what is attended, where the agent can be opened, and over all places of the observation.
    pub orders: Vec<Order>,
    /// What XRL-Bench measures of claims that somebody else than the agent makes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub xrl_bench: Vec<XrlBench>,
    /// Beside those of untrained agents of its kind.
    pub untrained: Option<Untrained>,
    /// The agent with parts of its weights at random: each part alone, and from each part on to the last.
    pub randomised: Vec<Randomised>,
    /// The questions with their answers.
    pub verdict: Vec<VerdictLine>,
    /// Confidence level of all intervals, which are not corrected for their number.
    pub interval: f64,
}

/// Which curves of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::study) enum Pick {
    /// Of what is attended.
    Attended,
    /// Of all places, by the claim of this number.
    Places(usize),
}

impl Pick {
    pub(in crate::study) fn of(self, measured: &Measured) -> Option<&Curves> {
        match self {
            Pick::Attended => measured.values.as_ref(),
            Pick::Places(claim) => measured.inputs.get(claim)?.as_ref(),
        }
    }

    /// All of these decisions.
    pub(in crate::study) fn all(measured: &Measurement) -> impl Iterator<Item = (Pick, &ClaimSeen)> {
        let attended = measured.units.map(|_| (Pick::Attended, &measured.attended));
        let places = measured.claims.iter().enumerate().map(|(i, claim)| (Pick::Places(i), claim));
        attended.into_iter().chain(places)
    }
}

/// Two numbers of each donor, by the donor's index.
type OfDonors = Vec<(usize, [f64; 2])>;

/// Pairs of an episode and a donor's, of these decisions: `of` gives the numbers of a decision's donors.
fn pairs(episodes: &[Vec<Measured>], of: &dyn Fn(&Measured) -> OfDonors) -> Vec<Pair> {
    let mut all = vec![];
    for (recipient, decisions) in episodes.iter().enumerate() {
        for measured in decisions {
            let pair = |(donor, [above, below]): (usize, [f64; 2])| Pair {
                recipient,
                donor: measured.donors[donor],
                above,
                below,
            };
            all.extend(of(measured).into_iter().map(pair));
        }
    }
    all
}

/// The same of the paths alone.
fn pairs_of_paths(episodes: &[Vec<Measured>], of: &dyn Fn(&Paths) -> Option<[f64; 2]>) -> Vec<Pair> {
    pairs(episodes, &|measured| {
        measured.paths.iter().enumerate().filter_map(|(donor, paths)| Some((donor, of(paths)?))).collect()
    })
}

/// The order of a claim; `None` where none was measured or the action does not vary.
fn order(measured: &Measurement, pick: Pick, claim: &ClaimSeen) -> Option<Order> {
    let episodes = &measured.episodes;
    let all = || episodes.iter().flatten().filter_map(|measured| pick.of(measured));
    let swapped = all().next()?.budgets.last().copied()?;
    // Of every donor, something of its mean changes beside something else.
    let ratio_of =
        |scale: Scale, above: &dyn Fn(&OfDonor) -> f64, below: &dyn Fn(&OfDonor, &Paths) -> f64| {
            let all = pairs(episodes, &|measured| {
                let donors = pick.of(measured).into_iter().flat_map(|curves| &curves.donors);
                donors.map(|of| (of.donor, [above(of), below(of, &measured.paths[of.donor])])).collect()
            });
            Tested::of(&all, episodes.len(), scale)
        };
    let ratio = |above: &dyn Fn(&OfDonor) -> f64, below: &dyn Fn(&OfDonor, &Paths) -> f64| {
        ratio_of(Scale::Signed, above, below)
    };
    let above_others = ratio(&|of| of.claim - of.null, &|_, paths| paths.natural)?;
    // Of donors without such a claim nothing is counted, above nor below.
    let above_other_moments = ratio(&|of| of.above_elsewhere.unwrap_or(0.0), &|of, paths| {
        of.above_elsewhere.map_or(0.0, |_| paths.natural)
    })
    .unwrap_or_default();
    let named = ratio_of(Scale::Positive, &|of| of.claim, &|_, paths| paths.natural)?;
    let reliabilities: Vec<f64> = all()
        .filter(|curves| !curves.single.is_empty())
        .map(|curves| curves.reliability.unwrap_or(0.0))
        .collect();
    let mean = |numbers: &[f64]| (!numbers.is_empty()).then(|| foveate_core::statistics::mean(numbers));
    let reliability = mean(&reliabilities);
    let best = ratio(&|of| of.best - of.null, &|_, _| 1.0)?;
    let of_best = (reliability.is_some_and(|r| r >= RELIABLE) && best.estimate.is_above(0.0))
        .then(|| ratio(&|of| of.claim - of.null, &|of, _| of.best - of.null))
        .flatten();
    let matched: Vec<f64> = all().filter_map(|curves| curves.matched).collect();
    let correlations: Vec<f64> = all()
        .filter(|curves| curves.single.len() > 2)
        .map(|curves| {
            let (claims, effects): (Vec<f64>, Vec<f64>) =
                curves.single.iter().map(|&(_, claim, effect)| (claim, effect)).unzip();
            crate::saliency::rank_correlation(&claims, &effects)
        })
        .collect();
    let places = pick != Pick::Attended;
    let [units, tested] = measured.units.unwrap_or_default();
    let name = match pick {
        Pick::Attended if measured.hard => format!("the {tested} selected, their values swapped"),
        Pick::Attended => format!("the {tested} most attended of {units}, their values swapped"),
        Pick::Places(_) => format!("all {} places, the observation swapped", measured.places),
    };
    Some(Order {
        name,
        claim: claim.name.clone(),
        places,
        parts: if places { measured.places } else { tested },
        swapped,
        above_others: above_others.estimate,
        above_other_moments: above_other_moments.estimate,
        of_best: of_best.map(|of| of.estimate),
        reliability,
        flat: claim.flat as f64 / claim.moments.max(1) as f64,
        constant: claim.constant,
        matched: mean(&matched),
        rank_correlation: mean(&correlations),
        named: named.estimate,
        tests: [above_others, above_other_moments, named],
    })
}

/// Natural variation, and shares of it, by path.
struct Shares {
    natural: Estimate,
    seen: Tested,
    attended: Option<Estimate>,
    selection: Option<Estimate>,
    values: Option<Estimate>,
    memory: Option<Estimate>,
    above_memory: Option<Tested>,
}

fn shares(episodes: &[Vec<Measured>]) -> Shares {
    let ratio = |scale: Scale, of: &dyn Fn(&Paths) -> Option<[f64; 2]>| {
        Tested::of(&pairs_of_paths(episodes, of), episodes.len(), scale)
    };
    let mean = |of: &dyn Fn(&Paths) -> f64| ratio(Scale::Positive, &|paths| Some([of(paths), 1.0]));
    let share = |of: &dyn Fn(&Paths) -> Option<f64>| {
        let tested = ratio(Scale::Positive, &|paths| Some([of(paths)?, paths.natural]))?;
        Some(tested.estimate.within([0.0, f64::INFINITY]))
    };
    let nothing = || Tested::of(&[Pair { recipient: 0, donor: 0, above: 0.0, below: 1.0 }], 1, Scale::Signed);
    let seen = mean(&|paths| paths.attended).or_else(nothing);
    let natural = mean(&|paths| paths.natural).or_else(nothing);
    let none = Estimate { value: 0.0, interval: None };
    Shares {
        attended: share(&|paths| Some(paths.attended)),
        selection: share(&|paths| paths.selection),
        values: share(&|paths| paths.values),
        memory: share(&|paths| Some(paths.memory)),
        above_memory: ratio(Scale::Signed, &|paths| Some([paths.attended - paths.memory, paths.natural])),
        natural: natural.map_or(none, |natural| natural.estimate.within([0.0, 1.0])),
        seen: seen.map(|seen| seen.within([0.0, 1.0])).unwrap_or_default(),
    }
}

/// The mean regret of a decision; `None` where actions are not chosen by the largest score.
fn regret(episodes: &[Vec<Measured>]) -> Option<Regret<Estimate>> {
    let mean = |of: fn(Regret<f64>) -> f64| {
        let pairs = pairs_of_paths(episodes, &|paths| Some([of(paths.regret?), 1.0]));
        Some(Tested::of(&pairs, episodes.len(), Scale::Positive)?.estimate)
    };
    Some(Regret {
        natural: mean(|regret| regret.natural)?,
        attended: mean(|regret| regret.attended)?,
        memory: mean(|regret| regret.memory)?,
    })
}

/// The order that agents are compared by: within what is attended, or over all places where that is not known.
fn deciding(measured: &Measurement) -> Option<Order> {
    let (pick, claim) = Pick::all(measured).next()?;
    order(measured, pick, claim)
}

fn untrained(own: Option<&Order>, others: &[Measurement]) -> Untrained {
    let above_others: Vec<f64> =
        others.iter().map(|other| deciding(other).map_or(0.0, |order| order.above_others.value)).collect();
    let moving = others.iter().filter(|other| shares(&other.episodes).natural.value >= FLOOR).count();
    let percentile = own.filter(|_| !others.is_empty()).map(|own| {
        let below = above_others.iter().filter(|other| **other < own.above_others.value).count();
        below as f64 / others.len() as f64
    });
    Untrained { agents: others.len(), above_others, percentile, moving }
}

/// The head of a report on these decisions.
pub(in crate::study) fn head(labels: &Labels, seed: u64, measured: &Measurement) -> ReportHead {
    let steps = measured.episodes.iter().map(|all| all.last().map_or(0, |last| last.step)).collect();
    let decisions = measured.episodes.iter().map(Vec::len).sum();
    ReportHead::new(labels, seed, measured.scores.clone(), steps, decisions)
}

pub(in crate::study) fn report(of: &ReportHead, swapped: &Swapped) -> SwapReport {
    let Swapped { measured, others, randomised } = swapped;
    let Shares { natural, seen, attended, selection, values, memory, above_memory } =
        shares(&measured.episodes);
    let orders: Vec<Order> =
        Pick::all(measured).filter_map(|(pick, claim)| order(measured, pick, claim)).collect();
    let labels = Labels {
        env: of.env.clone(),
        picture: of.picture.clone(),
        variant: of.variant.clone(),
        weights: of.weights.clone(),
    };
    let untrained = (!others.is_empty()).then(|| untrained(orders.first(), others));
    let verdict = verdict(&Grounds {
        episodes: measured.episodes.len(),
        opened: measured.units.is_some(),
        remembers: measured.remembers,
        natural,
        seen: &seen,
        attended,
        memory,
        above_memory: above_memory.as_ref(),
        claims: Pick::all(measured).map(|(_, claim)| claim.clone()).collect(),
        orders: &orders,
        untrained: untrained.as_ref(),
    });
    SwapReport {
        head: head(&labels, of.seed, measured),
        distance: measured.distance.name(),
        units: measured.units,
        hard: measured.hard,
        attends: measured.attends,
        natural,
        seen: seen.estimate,
        attended,
        selection,
        values,
        memory,
        attended_above_memory: above_memory.map(|tested| tested.estimate),
        regret: regret(&measured.episodes),
        orders,
        xrl_bench: measured.xrl_bench.clone(),
        untrained,
        randomised: randomised.clone(),
        verdict,
        interval: INTERVAL,
    }
}

impl SwapReport {
    /// The answer to the first question of this key; undecided where it was not asked.
    pub fn answer(&self, question: &str) -> Answer {
        let line = self.verdict.iter().find(|line| line.question == question);
        line.map_or(Answer::Undecided, |line| line.answer)
    }

    /// The answer to the question of this key about a claim that somebody else than the agent makes; undecided where it was not asked.
    pub fn answer_about(&self, question: &str, claim: &str) -> Answer {
        let about = |line: &&VerdictLine| line.question == question && line.claim.as_deref() == Some(claim);
        self.verdict.iter().find(about).map_or(Answer::Undecided, |line| line.answer)
    }
}

/// Natural variation in per cent.
pub(in crate::study) fn natural_percent(report: &SwapReport) -> String {
    report.natural.percent()
}

/// What the answers rest on.
pub(in crate::study) struct Grounds<'a> {
    pub(in crate::study) episodes: usize,
    /// True if it could be opened at its attention; otherwise its path is that of what it sees.
    pub(in crate::study) opened: bool,
    /// False if its action is known to depend on the observation alone.
    pub(in crate::study) remembers: bool,
    pub(in crate::study) natural: Estimate,
    pub(in crate::study) seen: &'a Tested,
    pub(in crate::study) attended: Option<Estimate>,
    pub(in crate::study) memory: Option<Estimate>,
    pub(in crate::study) above_memory: Option<&'a Tested>,
    /// The claims, in the order of [`Pick::all`].
    pub(in crate::study) claims: Vec<ClaimSeen>,
    /// Those of them that have an order, the same.
    pub(in crate::study) orders: &'a [Order],
    pub(in crate::study) untrained: Option<&'a Untrained>,
}

/// The answers to the questions of a report.
pub(in crate::study) fn verdict(of: &Grounds<'_>) -> Vec<VerdictLine> {
    let mut asked = vec![Asked {
        question: "moves",
        claim: None,
        asks: "does anything it sees move its action?",
        ground: Ground::Test {
            tested: of.seen.clone(),
            limit: FLOOR,
            floored: None,
            says: format!(
                "what it sees at moments of other episodes moves the action by {} of its range; the floor is 1 %",
                of.seen.estimate.percent()
            ),
        },
    }];
    asked.push(path(of));
    let places: Vec<&Order> = of.orders.iter().filter(|order| order.places).collect();
    let attended = of.orders.iter().find(|order| !order.places);
    let judged: Vec<&Order> = if places.is_empty() { attended.into_iter().collect() } else { places };
    // Claims without an order are flat.
    let flat = of
        .claims
        .iter()
        .skip(usize::from(of.opened && of.claims.len() > 1))
        .filter(|claim| judged.iter().all(|order| order.claim != claim.name));
    let flat: Vec<&ClaimSeen> = flat.collect();
    for order in &judged {
        asked.extend([right(order), moment(order)]);
    }
    for (question, asks) in [("right", RIGHT), ("moment", MOMENT)] {
        if judged.is_empty() && flat.is_empty() {
            asked.push(unknown(question, asks, None, "it claims nothing, so there is nothing to test"));
        }
        for claim in &flat {
            if question == "moment" && claim.constant {
                asked.push(Asked { question, claim: claim.name.clone(), asks, ground: always() });
                continue;
            }
            let why = match claim {
                ClaimSeen { moments: 0, .. } => "the claim was not made at any tested moment",
                ClaimSeen { moments, flat, .. } if moments == flat => {
                    "it claims all parts alike, so there is nothing to be right or wrong"
                }
                _ => "nothing that it names could be swapped on its own beside as many other parts",
            };
            asked.push(unknown(question, asks, claim.name.clone(), why));
        }
    }
    if let Some(order) = attended.filter(|_| judged.iter().any(|order| order.places)) {
        let ground = right(order).ground;
        asked.push(Asked {
            question: "order",
            claim: None,
            asks: "is the order within what it attends to right?",
            ground,
        });
    }
    if let Some(others) = of.untrained {
        asked.push(beside_untrained(of.orders.first(), others));
    }
    answers(of.episodes, asked)
}

const RIGHT: &str = "do the parts that it names matter more than parts that it does not name?";
const MOMENT: &str = "does it say more about the moment than the same claim of other moments?";

fn unknown(question: &'static str, asks: &'static str, claim: Option<String>, why: &str) -> Asked {
    let ground = Ground::Known { answer: Answer::Undecided, number: None, why: why.into() };
    Asked { question, claim, asks, ground }
}

fn path(of: &Grounds<'_>) -> Asked {
    let (asks, path) = if of.opened {
        ("does what it attends to move its action more than its memory does?", "what the attention hands on")
    } else {
        ("does what it sees move its action more than its memory does?", "what it sees")
    };
    if !of.natural.is_above(FLOOR) {
        return unknown("path", asks, None, "nothing to explain: its action hardly moves");
    }
    let (Some(attended), Some(memory), Some(apart)) = (of.attended, of.memory, of.above_memory) else {
        return unknown("path", asks, None, "the paths were not measured");
    };
    let says = if of.remembers {
        format!(
            "{path} alone makes {} of the natural variation, the memory alone {}",
            attended.percent(),
            memory.percent()
        )
    } else {
        "it answers the same question in the same way, so its action depends on what it sees alone".into()
    };
    Asked {
        question: "path",
        claim: None,
        asks,
        ground: Ground::Test { tested: apart.clone(), limit: 0.0, says, floored: None },
    }
}

fn right(order: &Order) -> Asked {
    let says = format!(
        "with the parts that it names from another moment, up to {} of {}, the action moves by {} of its natural variation more than \
         with as many others",
        order.swapped,
        order.parts,
        order.above_others.percent(),
    );
    let ground = Ground::Test {
        tested: order.tests[0].clone(),
        limit: 0.0,
        says,
        floored: Some(order.tests[2].clone()),
    };
    Asked { question: "right", claim: order.claim.clone(), asks: RIGHT, ground }
}

/// Of a claim that never changes.
fn always() -> Ground {
    Ground::Known {
        answer: Answer::No,
        number: Some(Estimate { value: 0.0, interval: None }),
        why: "it claims the same at every moment".into(),
    }
}

fn moment(order: &Order) -> Asked {
    let ground = if order.constant {
        always()
    } else {
        let says = format!(
            "with the parts that it names, the action moves by {} of its natural variation more than with those that it names at moments of other \
             episodes",
            order.above_other_moments.percent()
        );
        Ground::Test { tested: order.tests[1].clone(), limit: 0.0, says, floored: None }
    };
    Asked { question: "moment", claim: order.claim.clone(), asks: MOMENT, ground }
}

/// An agent above all of n untrained ones has the p-value 1 / (n + 1) by its rank; one whose whole interval lies below their mean
/// has less than they.
fn beside_untrained(own: Option<&Order>, others: &Untrained) -> Asked {
    let asks = "does it say more than untrained agents of its kind?";
    let (Some(own), Some(above)) = (own, others.above()) else {
        return unknown("untrained", asks, None, "it has no order that could be compared");
    };
    let n = others.agents as f64;
    let at_least = n - (others.percentile.unwrap_or(0.0) * n).round();
    let theirs = foveate_core::statistics::mean(&others.above_others);
    let answer = match (1.0 + at_least) / (1.0 + n) {
        p if p <= LEVEL => Answer::Yes,
        _ if own.above_others.is_below(theirs) => Answer::No,
        _ => Answer::Undecided,
    };
    let mut why = format!("{} over {}; above {above}", own.above_others.percent(), own.name);
    if others.agents < FEWEST_UNTRAINED {
        why += &format!("; at least {FEWEST_UNTRAINED} untrained agents would decide it");
    } else if answer == Answer::Undecided {
        why += "; more untrained agents would set the limit better";
    }
    let ground = Ground::Known { answer, number: Some(own.above_others), why };
    Asked { question: "untrained", claim: own.claim.clone(), asks, ground }
}

impl Untrained {
    /// Above how many the agent is, of how many; `None` where it has no order.
    pub(in crate::study) fn above(&self) -> Option<String> {
        let above = (self.percentile? * self.agents as f64).round();
        let few = if self.agents < FEWEST_UNTRAINED { ", which are too few for a yes" } else { "" };
        Some(format!("{above:.0} of {} untrained agents{few}", self.agents))
    }
}

impl fmt::Display for SwapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f)?;
        writeln!(f, "  natural variation             {}", self.natural.percent())?;
        for (name, share) in [
            ("attended path", &self.attended),
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
            if let Some(claim) = &order.claim {
                write!(f, "  {claim}:")?;
            }
            write!(f, "  named above others  {}  {}", order.above_others.plain(), order.name)?;
            if let Some(of_best) = &order.of_best {
                write!(f, "; {} of the best order", of_best.plain())?;
            }
            if let Some(matched) = order.matched {
                write!(f, "; {:.0} % of other parts matched", 100.0 * matched)?;
            }
            writeln!(f)?;
        }
        if let Some(untrained) = &self.untrained {
            let agents = untrained
                .above()
                .map_or_else(|| count(untrained.agents, "agent"), |above| format!("above {above}"));
            let theirs = foveate_core::statistics::mean(&untrained.above_others);
            writeln!(f, "  untrained                     {agents}; their mean is {theirs:.2}")?;
        }
        for (i, line) in self.verdict.iter().enumerate() {
            let end = if i + 1 < self.verdict.len() { "\n" } else { "" };
            write!(f, "  {:10} {}\n             {}{end}", line.answer, line.words(), line.why)?;
        }
        Ok(())
    }
}

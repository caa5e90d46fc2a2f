//! Whether actions depend on what is looked at: places are covered, in single decisions and in whole episodes.

use foveate_core::{Attention, Image, ImageBuf, Seed, Selected, statistics};
use serde::Serialize;

use super::super::conditions::Condition;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::phases::{LookedAt, MeasuredPictures};
use super::super::probes::{CLAIMS, INTERVENTIONS, levels};
use super::super::swaps::{OwnTest, differences};
use super::super::words::{count, dot, intervals, mood, scale_name, two, whole, with_interval};
use super::super::{Mean, StudyError, words};
use super::matters::Swaps;
use crate::charts::{Card, DotPlot, DotRow, cards, curves, dots, percent};
use crate::faithful::{Conclusion, Effect, FEWEST_EPISODES, Faithfulness};
use crate::figure::{Figure, Ink, short};
use crate::page::{Mood, PageTable, Section, Tile};
use crate::trajectory::Dimension;
use crate::{Fill, Mask, whiten};

/// What covering places shows, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Covers {
    /// The distance between two actions, in words.
    pub distance: &'static str,
    /// Whether its decisions depend on what it attends to: `supported`, `not supported`, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// Whether covering attended places costs more score than covering as many other pixels.
    pub driving: String,
    /// The difference in score, for each fill.
    pub cost: Vec<Cost>,
    /// The tested claims; the second is the null.
    pub claims: Vec<Claim>,
    /// Interventions on single decisions.
    pub interventions: Vec<Intervention>,
    /// Interventions on whole episodes.
    pub drives: Vec<Drive>,
    /// Constants of the method.
    pub method: Method,
}

/// Constants of the method, so that the report file holds every number of the page.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Method {
    /// The scale of faithfulness: the claim matters less than, as much as, or to the exclusion of other places.
    pub faithfulness_scale: [i32; 3],
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Standard deviation, in pixels, of the blur that covers.
    pub blur_px: f64,
    /// Standard deviation, in pixels, of the bump of perturbation saliency.
    pub bump_px: f64,
    /// Where perturbation saliency comes from.
    pub saliency: &'static str,
    /// The ranges of importance that sample patches are drawn from.
    pub ranges: [&'static str; 3],
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl Method {
    pub(in crate::study) fn ours() -> Method {
        Method {
            faithfulness_scale: [-1, 0, 1],
            interval: super::super::INTERVAL,
            blur_px: crate::BLUR_PX,
            bump_px: crate::saliency::BUMP_PX,
            saliency: "Greydanus et al. 2018",
            ranges: crate::interest::Range::ALL.map(crate::interest::Range::name),
            fewest_episodes: crate::faithful::FEWEST_EPISODES,
            advised_episodes: super::super::ADVISED_EPISODES,
        }
    }
}

/// Score lost by covering attended places in whole episodes, beyond what covering as many other pixels costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// What covered pixels became.
    pub fill: String,
    /// Mean paired difference of the scores; positive when covering attended places costs more.
    pub difference: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
}

/// A tested claim of what an agent attends to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// Whose claim it is.
    pub name: String,
    /// Its faithfulness when places are covered by blur.
    #[serde(serialize_with = "faithfulness")]
    pub blur: Faithfulness,
    /// The same with the mean colour.
    #[serde(serialize_with = "faithfulness")]
    pub mean: Faithfulness,
    /// Faithfulness of the null, for each fill.
    #[serde(serialize_with = "nulls")]
    pub null: [Faithfulness; 2],
    /// The conclusion; `None` for the null itself.
    #[serde(serialize_with = "verdict")]
    pub verdict: Option<Conclusion>,
}

impl Claim {
    fn new(
        name: &str,
        [blur, mean]: [Faithfulness; 2],
        null: [Faithfulness; 2],
        verdict: Option<Conclusion>,
    ) -> Self {
        Claim { name: name.to_owned(), blur, mean, null, verdict }
    }
}

fn faithfulness<S: serde::Serializer>(of: &Faithfulness, to: S) -> Result<S::Ok, S::Error> {
    (of.value, of.interval).serialize(to)
}

fn nulls<S: serde::Serializer>(of: &[Faithfulness; 2], to: S) -> Result<S::Ok, S::Error> {
    of.map(|of| (of.value, of.interval)).serialize(to)
}

#[expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn verdict<S: serde::Serializer>(of: &Option<Conclusion>, to: S) -> Result<S::Ok, S::Error> {
    of.map(|verdict| verdict.to_string()).serialize(to)
}

/// An intervention on decisions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intervention {
    /// What was done.
    pub name: String,
    /// What covered pixels became.
    pub fill: String,
    /// Mean change of the action, in 0.0..=1.0.
    pub change: f64,
    /// Its 95 % interval over episodes; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// Mean size of the change of the picture, in 0.0..=1.0.
    pub size: f64,
}

/// Whole episodes with an intervention in every step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drive {
    /// What was done.
    pub name: String,
    /// What covered pixels became; empty where nothing was covered.
    pub fill: String,
    /// Mean score.
    pub mean: f64,
    /// Its 95 % interval; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// Score of every episode.
    pub scores: Vec<f64>,
}

/// The test of this report.
pub(in crate::study) const COVERING: OwnTest = OwnTest {
    done: "the test with covers",
    claim: "covering what it looks at at the moment changes its action more than covering where it looks at other moments",
    asks: "for all places that it looks at together, on pictures with covers, which the world never shows",
};

/// Whether it acts on what it looks at.
#[derive(Debug)]
pub(in crate::study) struct CoversTest;

impl Analysis for CoversTest {
    fn name(&self) -> &'static str {
        "true"
    }

    fn find(&self, bench: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredPictures>() else { return Ok(None) };
        let swaps = before.get::<Swaps>().and_then(|swaps| swaps.swaps.as_ref());
        let mut covers = conclude(found);
        covers.differences = differences(&COVERING, &covers.verdict, swaps);
        let n = bench.episodes();
        let section = Section {
            id: "true".into(),
            title: "Is it true?".into(),
            lead: test_lead(&covers, found),
            tables: tables(&covers),
            figures: figures(found, &covers, &bench.dimensions),
            ..Section::default()
        };
        let mut notes = vec![covers_note(&covers)];
        if found.shown.shuffled {
            notes.push(
                "The agent gets its patches in another order than the world's. Pictures and places of this page are in the \
                 world's order."
                    .into(),
            );
        }
        let tiles = tiles(&covers).into_iter().skip(usize::from(swaps.is_some()));
        Ok(Some(Finding {
            tiles: tiles.collect(),
            sentences: covers.sentences(n, found.has_attention),
            lines: covers.lines(),
            section: Some(section),
            notes,
            ..Finding::new(covers)
        }))
    }
}

impl Covers {
    /// What may be concluded, a sentence each.
    pub(in crate::study) fn sentences(&self, episodes: usize, has_attention: bool) -> Vec<String> {
        let mut told = vec![];
        let by = |which: usize| {
            ["blur", "mean"]
                .map(|fill| percent(change(self, INTERVENTIONS[which], fill)))
                .join(" (blur) and ")
        };
        told.push(format!(
        "Covering what it looks at changes its action by {} (mean colour); covering as much elsewhere by {} (mean colour).",
        by(0),
        by(1)
    ));
        let (fill, own, null) = careful(&self.claims[0]);
        let numbers = format!(
            "faithfulness {} against {} for its attention at other moments, both with {}",
            two(own.value),
            two(null.value),
            said(fill)
        );
        told.push(match &*self.verdict {
        "supported" => format!(
            "That is more than its usual places would explain: {numbers}. {}",
            if self.claims[2..5].iter().any(|control| control.verdict == Some(Conclusion::Supported)) {
                "But a control passes the same test, so do not rely on it: see below."
            } else {
                "Shuffled gaze, a random-weight agent and a blind agent do not pass the same test."
            }
        ),
        "not supported" => format!(
            "The test does not show that its usual places would not explain that as well: {numbers}; {}. So this \
             test gives no ground to take its attention at a moment for the reason of its action then.",
            beside_null(&self.claims[0])
        ),
        _ => words::too_few(episodes).unwrap_or_default(),
    });
        told.extend(self.differences.iter().cloned());
        if has_attention {
            told.push(self.driving_sentence());
        }
        told
    }

    /// What covering the attended places costs in score, in a sentence.
    pub fn driving_sentence(&self) -> String {
        let mean = |name: &str, fill: &str| {
            let drive = self.drives.iter().find(|d| d.name == name && d.fill == fill);
            whole(drive.map_or(0.0, |d| d.mean))
        };
        let [attended, random] =
            [Condition::CoverAttended(Fill::Blur), Condition::CoverRandom(Fill::Blur)].map(Condition::name);
        let numbers = format!(
            "with what it looks at covered in every step it scores {} (blur) and {} (mean colour), with as much covered \
         elsewhere {} and {}, untouched {}",
            mean(attended, "blur"),
            mean(attended, "mean"),
            mean(random, "blur"),
            mean(random, "mean"),
            mean("as it is", "")
        );
        let cost = |Cost { fill, difference, interval }: &Cost| {
            let fill = if fill == "blur" { said(Fill::Blur) } else { said(Fill::Mean) };
            match interval {
                Some([low, high]) => {
                    format!(
                        "{} with {fill} (95 % from {} to {})",
                        whole(*difference),
                        whole(*low),
                        whole(*high)
                    )
                }
                None => format!("{} with {fill}", whole(*difference)),
            }
        };
        let costs: Vec<String> = self.cost.iter().map(cost).collect();
        let costs = format!(
            "covering the attended patches costs more score than covering as much elsewhere, by {}",
            costs.join(" and ")
        );
        match &*self.driving {
            "supported" => format!("Its driving rests on it too: {numbers}; {costs}."),
            "not supported" => {
                format!(
                    "Whole episodes do not show it for both fills: {numbers}; {costs}. Why, this test does not say."
                )
            }
            _ => format!("Whole episodes, too few for a verdict: {numbers}; {costs}."),
        }
    }

    /// The lines on a terminal.
    pub(in crate::study) fn lines(&self) -> Vec<String> {
        let told = |of: Faithfulness| match of.interval {
            Some([from, to]) => format!("{:5.2} ({from:5.2} … {to:5.2})", of.value),
            None => format!("{:5.2}", of.value),
        };
        let claims = self.claims.iter().map(|claim| {
            let verdict = claim.verdict.map_or("the null".to_owned(), |verdict| verdict.to_string());
            format!("{:32} blur {}  mean {}  {verdict}", claim.name, told(claim.blur), told(claim.mean))
        });
        let mut lines: Vec<String> = claims.collect();
        lines.push(format!(
            "what it looks at explains more than its usual places: {}; its score rests on it: {}",
            self.verdict, self.driving
        ));
        lines.extend(self.differences.iter().cloned());
        lines
    }
}

/// A claim and its null with the fill in which the claim is smaller: what is said when one number is to be said. Claim
/// and null are always of the same fill.
fn careful(claim: &Claim) -> (Fill, Faithfulness, Faithfulness) {
    let [blur, mean] = claim.null;
    if claim.blur.value <= claim.mean.value {
        (Fill::Blur, claim.blur, blur)
    } else {
        (Fill::Mean, claim.mean, mean)
    }
}

/// How the interval of a claim lies to that of its null, with every fill: what the data say, and nothing else.
fn beside_null(claim: &Claim) -> String {
    let each = [(Fill::Blur, claim.blur, claim.null[0]), (Fill::Mean, claim.mean, claim.null[1])];
    let each = each.map(|(fill, own, null)| {
        let how = match (own.interval, null.interval) {
            (Some([low, _]), Some([_, high])) if low > high && low > 0.0 => "lies above that of its null",
            (Some([low, _]), Some([_, high])) if low > high => {
                "lies above that of its null, but not above zero"
            }
            (Some([_, high]), Some([low, _])) if high < low => "lies below that of its null",
            (Some(_), Some(_)) => "overlaps that of its null",
            _ => "does not exist, as there is one episode only",
        };
        (said(fill), how)
    });
    match each {
        [(_, one), (_, other)] if one == other => format!("its interval {one} with both fills"),
        [(blur, one), (mean, other)] => format!("its interval {one} with {blur} and {other} with {mean}"),
    }
}

fn change(report: &Covers, name: &str, fill: &str) -> f64 {
    report.interventions.iter().find(|i| i.name == name && i.fill == fill).map_or(0.0, |i| i.change)
}

fn tiles(report: &Covers) -> Vec<Tile> {
    let (fill, own, null) = careful(&report.claims[0]);
    let at = |name: &str| change(report, name, "blur");
    vec![
        Tile {
            value: report.verdict.clone(),
            name: "it acts on what it looks at".into(),
            note: "decision by decision; what this cannot show: see “Is it true?”".into(),
            mood: mood(&report.verdict),
        },
        Tile {
            value: two(own.value),
            name: format!("faithfulness, {}", said(fill)),
            note: match own.interval {
                Some([low, high]) => {
                    format!(
                        "{} … {}; null with the same fill {}",
                        two(low),
                        two(high),
                        with_interval((null.value, null.interval))
                    )
                }
                None => format!("one episode has no interval; null with the same fill {}", two(null.value)),
            },
            mood: Mood::Plain,
        },
        Tile {
            value: percent(at(INTERVENTIONS[0])),
            name: "change of action, attended patches blurred".into(),
            note: format!("{} elsewhere", percent(at(INTERVENTIONS[1]))),
            mood: Mood::Plain,
        },
    ]
}

fn test_lead(report: &Covers, found: &MeasuredPictures) -> Vec<String> {
    let mut lead = vec![
        "A picture of where an agent looks is a claim. Here it is put to the test: decisions are taken again, from the \
         very state in which they were taken, on pictures with the claimed places covered, and with as many other pixels \
         covered instead."
            .into(),
        "The null are claims of the same kind from other episodes: right places in general, wrong for the moment. Three \
         controls go through the same test and must fail it: shuffled gaze, the attention of an agent with random weights, and \
         a blind agent that is shown grey."
            .into(),
    ];
    if found.has_attention {
        let limits = if found.shown.looked_at == LookedAt::Chosen { LIMITS } else { LIMITS_OF_WEIGHTS };
        lead.push(limits.into());
    }
    if let Some(itself) = report.claims.last() {
        lead.push(about_itself(itself));
    }
    lead
}

/// What a passed test does not mean.
const LIMITS: &str = "What this test cannot show: The controller of an AttentionAgent is told nothing of the picture but \
                      where its patches lie, so covering them must move its action, trained or not. Untrained agents pass \
                      this test, too: of six AttentionAgents with random weights, two did. And the order of the patches \
                      is not tested: whether the first one, the whitest, matters more than the last one is open.";

/// The same of an agent that gets all patches.
const LIMITS_OF_WEIGHTS: &str = "What this test cannot show: The agent gets all patches, and the claim is only those that \
                                 it looks at. The others act too, each by its weight, so this claim may fail although the \
                                 weights as a whole are right. And the order of the patches is not tested: whether the \
                                 first one, the whitest, matters more than the last one is open.";

/// The agent of random weights, asked about its own decisions.
fn about_itself(claim: &Claim) -> String {
    let numbers = format!(
        "The last line is an agent of random weights asked about its own decisions: faithfulness {} with blur and {} \
         with the mean colour, against {} and {} for its claims of other moments of its own episode",
        two(claim.blur.value),
        two(claim.mean.value),
        two(claim.null[0].value),
        two(claim.null[1].value)
    );
    match claim.verdict {
        Some(Conclusion::Supported) => format!(
            "{numbers}. It never learnt anything and passes: {}. So the test says what actions rest on, not that they are \
             any good.",
            beside_null(claim)
        ),
        Some(Conclusion::NotSupported) => format!("{numbers}. It does not pass: {}.", beside_null(claim)),
        _ => format!("{numbers}. These are too few episodes for a verdict."),
    }
}

fn tables(report: &Covers) -> Vec<PageTable> {
    let faith = |of: Faithfulness| match of.interval {
        Some(_) => with_interval((of.value, of.interval)),
        None => format!("{} (one episode: no interval)", two(of.value)),
    };
    let verdict = |of: Option<Conclusion>| of.map_or("the null".to_owned(), |verdict| verdict.to_string());
    let claims = report
        .claims
        .iter()
        .map(|claim| [claim.name.clone(), faith(claim.blur), faith(claim.mean), verdict(claim.verdict)]);
    let interventions = report.interventions.chunks(2).map(|pair| {
        let [blur, mean] = [&pair[0], &pair[pair.len() - 1]];
        [
            pair[0].name.clone(),
            percent(blur.change),
            percent(blur.size),
            percent(mean.change),
            percent(mean.size),
        ]
    });
    vec![
        PageTable::new(["claim", "faithfulness, blur", "faithfulness, mean colour", "verdict"], claims),
        PageTable::new(
            [
                "intervention",
                "action changes by (blur)",
                "picture changes by (blur)",
                "action (mean colour)",
                "picture (mean colour)",
            ],
            interventions,
        ),
    ]
}

fn covers_note(report: &Covers) -> String {
    format!(
        "A covered pixel becomes the picture blurred with σ = {} pixels, or the picture's mean colour. Neither is neutral: each \
         makes pictures that the agent never met, so a verdict needs both. Random covers have the same number of pixels, none of \
         them claimed. Faithful attention says what a decision rests on, not that the decision is good, nor what the agent would do \
         in worlds that were not tried.",
        report.method.blur_px
    )
}

/// Computes the conclusions.
fn conclude(found: &MeasuredPictures) -> Covers {
    let n = found.episodes.len();
    let sums = [found.claim_sums(0), found.claim_sums(1)];
    let faith = |fill: usize, claim: usize| Faithfulness::of(&sums[fill][claim]);
    let null = [faith(0, 1), faith(1, 1)];
    let mut claims: Vec<Claim> = CLAIMS
        .iter()
        .enumerate()
        .map(|(i, name)| {
            let of = [faith(0, i), faith(1, i)];
            let verdict = Conclusion::of(&[(of[0], null[0]), (of[1], null[1])], n);
            let name = if i == 0 && !found.has_attention { "perturbation saliency" } else { name };
            Claim::new(name, of, null, if i == 1 { None } else { Some(verdict) })
        })
        .collect();
    let column = |fill: usize, which: usize| -> Vec<Effect> {
        found.random_claims.iter().map(|sums| sums[fill][which]).collect()
    };
    let own = [Faithfulness::of(&column(0, 0)), Faithfulness::of(&column(1, 0))];
    let foil = [Faithfulness::of(&column(0, 1)), Faithfulness::of(&column(1, 1))];
    let random_decisions = Conclusion::of(&[(own[0], foil[0]), (own[1], foil[1])], n);
    claims.push(Claim::new("random-weight agent, of itself", own, foil, Some(random_decisions)));

    let interventions = INTERVENTIONS
        .iter()
        .enumerate()
        .flat_map(|(i, name)| Fill::ALL.into_iter().enumerate().map(move |(f, fill)| (i, *name, f, fill)))
        .map(|(i, name, f, fill)| {
            let (change, interval) = found.over_episodes(|p| Some(p.outcomes[f][i].action));
            let (size, _) = found.over_episodes(|p| Some(p.outcomes[f][i].size));
            Intervention { name: name.to_owned(), fill: fill.to_string(), change, interval, size }
        })
        .collect();
    let drive = |(condition, scores): &(Condition, Vec<f64>)| Drive {
        name: condition.name().to_owned(),
        fill: condition.fill().map(|fill| fill.to_string()).unwrap_or_default(),
        mean: statistics::mean(scores),
        interval: statistics::mean_interval(scores),
        scores: scores.clone(),
    };
    let (driving, cost) = driving(&found.scores, n);
    Covers {
        distance: scale_name(&found.scale),
        verdict: claims[0].verdict.unwrap_or(Conclusion::Undecided).to_string(),
        differences: vec![],
        driving: driving.to_string(),
        cost,
        claims,
        interventions,
        drives: found.scores.iter().map(drive).collect(),
        method: Method::ours(),
    }
}

/// Whether covering attended places costs more score than covering as many other pixels, with every fill, and how much
/// more.
fn driving(scores: &[(Condition, Vec<f64>)], episodes: usize) -> (Conclusion, Vec<Cost>) {
    let of = |wanted: Condition| scores.iter().find(|(c, _)| *c == wanted).map(|(_, scores)| scores);
    let cost = |fill: Fill| {
        let found =
            statistics::paired(of(Condition::CoverAttended(fill))?, of(Condition::CoverRandom(fill))?)?;
        Some(Cost { fill: fill.to_string(), difference: found.difference, interval: found.interval })
    };
    let costs: Vec<Cost> = Fill::ALL.into_iter().filter_map(cost).collect();
    if episodes < FEWEST_EPISODES || costs.len() < Fill::ALL.len() {
        return (Conclusion::Undecided, costs);
    }
    let all = costs.iter().all(|cost| cost.interval.is_some_and(|[low, _]| low > 0.0));
    (if all { Conclusion::Supported } else { Conclusion::NotSupported }, costs)
}

fn figures(found: &MeasuredPictures, covers: &Covers, dimensions: &[Dimension]) -> Vec<Figure> {
    let n = found.episodes.len();
    let mut all = vec![
        faithfulness_figure(covers, n),
        cards_figure(found, dimensions),
        interventions_figure(covers, n),
    ];
    if found.has_attention {
        all.push(scores_figure(covers, n));
    }
    all.extend(curve_figures(found));
    all
}

fn faithfulness_figure(findings: &Covers, episodes: usize) -> Figure {
    let mut rows = vec![];
    for claim in &findings.claims {
        for (fill, of) in Fill::ALL.into_iter().zip([claim.blur, claim.mean]) {
            let remark = claim.verdict.filter(|_| fill == Fill::Blur).map(|verdict| {
                let ink = if verdict == Conclusion::Supported { Ink::Other } else { Ink::Muted };
                (ink, verdict.to_string())
            });
            rows.push(DotRow { remark, ..dot(&*claim.name, said(fill), ink(fill), (of.value, of.interval)) });
        }
    }
    let lowest = rows.iter().map(|row| row.interval.map_or(row.value, |[low, _]| low)).fold(0.0, f64::min);
    let null = &findings.claims[1];
    let band = null.blur.interval.zip(null.mean.interval);
    let band = band.map(|(blur, mean)| [blur[0].min(mean[0]), blur[1].max(mean[1])]);
    dots(DotPlot {
        name: "faithfulness",
        title: "Is it true? Faithfulness of every claim",
        caption: format!(
            "How much more the action changes when the claimed places are covered than when as many random other pixels \
             are, in parts of both together: 0 means no more, 1 that covering elsewhere changes nothing. Orange: covered \
             by blur, blue: by the mean colour; {}. A claim is supported when its bar lies above that of the null of the \
             same colour for both; the last line has a null of its own, the attention of that agent at other moments.",
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "faithfulness",
        domain: Some([(lowest * 1.05).clamp(-1.0, -0.1), 1.0]),
        band: band.map(|band| (band, "null")),
        label: short,
        rows,
    })
}

fn interventions_figure(findings: &Covers, episodes: usize) -> Figure {
    let rows = findings.interventions.iter().map(|i| {
        let fill = if i.fill == "blur" { Fill::Blur } else { Fill::Mean };
        dot(&*i.name, said(fill), ink(fill), (i.change, i.interval))
    });
    dots(DotPlot {
        name: "interventions",
        title: "What each intervention does to the action",
        caption: format!(
            "Mean change of the action, in parts of its whole range; {}. How large each change of the picture is, says the \
             table.",
            intervals("bars", episodes)
        ),
        wide: false,
        axis: "change of the action",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn scores_figure(findings: &Covers, episodes: usize) -> Figure {
    let rows = findings.drives.iter().map(|d| {
        let (kind, ink) = match &*d.fill {
            "blur" => (said(Fill::Blur), Ink::Attention),
            "mean" => (said(Fill::Mean), Ink::Control),
            _ => ("", Ink::Text),
        };
        dot(&*d.name, kind, ink, (d.mean, d.interval))
    });
    // Both fills of a condition side by side.
    let mut rows: Vec<DotRow> = rows.collect();
    let order: Vec<String> = Condition::all().iter().map(|c| c.name().to_owned()).collect();
    rows.sort_by_key(|row| order.iter().position(|name| *name == row.name));
    dots(DotPlot {
        name: "scores",
        title: "What each intervention does to whole episodes",
        caption: format!(
            "Score with the intervention in every step of {}; {}.",
            count(episodes, "episode"),
            intervals("bars", episodes)
        ),
        wide: false,
        axis: "score",
        domain: None,
        band: None,
        label: short,
        rows,
    })
}

fn curve_figures(found: &MeasuredPictures) -> Vec<Figure> {
    let levels = levels(found.grid);
    let points = |which: usize, order: usize| -> Vec<Mean> {
        (0..levels.len())
            .map(|level| found.over_episodes(|p| p.curves[which][order].get(level).copied()))
            .collect()
    };
    let figure = |which, name, title, caption: &str, axis| {
        let series = [
            ("most important first", Ink::Attention, points(which, 0)),
            ("in random order", Ink::Control, points(which, 1)),
        ];
        curves(name, title, caption.to_owned(), axis, &levels, &series)
    };
    vec![
        figure(
            0,
            "deletion",
            "Deletion: covering more and more",
            "How far the action moves as patches are blurred; the sooner it moves, the more the first ones mattered.",
            "patches covered (uneven steps)",
        ),
        figure(
            1,
            "insertion",
            "Insertion: uncovering more and more",
            "How far the action is from what it was while only these patches are sharp; the sooner it comes back, the \
             more the first ones suffice.",
            "patches kept (uneven steps)",
        ),
    ]
}

fn cards_figure(found: &MeasuredPictures, dimensions: &[Dimension]) -> Figure {
    let names: Vec<String> = dimensions.iter().map(|d| d.name.clone()).collect();
    let made = found.cards.iter().map(|taken| {
        let picture = taken.seen.newest();
        let (scene, flat) = (taken.editor(Fill::Blur), taken.editor(Fill::Mean));
        let mask = taken.mask(&taken.claim);
        let mut rng = Seed::root(taken.step as u64).child("card", 0).rng();
        let random = Mask::random_elsewhere(&mask, taken.grid, &mut rng);
        let ranks: Vec<u32> = (0..taken.claim.len() as u32).collect();
        let selected = Selected { tokens: &taken.claim, ranks: &ranks };
        let attended = match Attention::patches(taken.grid, &taken.importance, selected) {
            Ok(attention) => whiten(picture, &attention),
            // A claim that fits no grid marks nothing.
            Err(_) => owned(picture),
        };
        let free = (0..taken.grid.len() as u32).rev().find(|&patch| !mask.touches(taken.grid, patch));
        let first = taken.claim.first().copied().unwrap_or(0);
        let changed = [
            ("blur it", scene.cover(&mask)),
            ("blur elsewhere", scene.cover(&random)),
            ("grey it out", flat.cover(&mask)),
            ("grey elsewhere", flat.cover(&random)),
            ("nothing but it", scene.keep(&mask)),
            ("top patch moved", flat.move_patch(taken.grid, first, free.unwrap_or(first))),
        ];
        let mut shots = vec![("what it looks at", attended, found.scale.shown(&taken.action), 0.0)];
        for (name, changed) in changed {
            // It acted on this very picture size before: it takes it again.
            let action = taken.act(changed.as_image()).unwrap_or_else(|_| taken.action.clone());
            let change = found.scale.distance(&action, &taken.action);
            shots.push((name, owned(taken.seen.newest_of(&changed)), found.scale.shown(&action), change));
        }
        Card { step: taken.step, shots }
    });
    let caption = "Decisions of the shown episode, evenly spaced and not chosen, each taken again from the same state of \
                   the agent on a changed picture. The change is in parts of the action's whole range."
        .into();
    cards(&made.collect::<Vec<_>>(), &names, caption)
}

pub(super) fn owned(image: Image<'_>) -> ImageBuf {
    ImageBuf::from_rgb(image.width(), image.height(), image.rgb().to_vec()).expect("it is a picture")
}

fn ink(fill: Fill) -> Ink {
    match fill {
        Fill::Blur => Ink::Attention,
        Fill::Mean => Ink::Control,
    }
}

pub(super) fn said(fill: Fill) -> &'static str {
    match fill {
        Fill::Blur => "blur",
        Fill::Mean => "mean colour",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_claim_names_the_fill_and_the_null() {
        let of = |value: f64, low: f64, high: f64| Faithfulness { value, interval: Some([low, high]) };
        let claim =
            |own: [Faithfulness; 2], null: [Faithfulness; 2], verdict| Claim::new("x", own, null, verdict);
        let (high, low) = (of(0.9, 0.85, 0.95), of(0.5, 0.45, 0.55));
        let wide = of(0.6, 0.5, 0.8);
        for (own, null, verdict, wants) in [
            (
                [high, high],
                [low, low],
                Some(Conclusion::Supported),
                "passes: its interval lies above that of its null with both fills",
            ),
            (
                [high, wide],
                [low, low],
                Some(Conclusion::NotSupported),
                "does not pass: its interval lies above that of its null with blur and overlaps that of its null with mean colour",
            ),
            (
                [low, low],
                [high, high],
                Some(Conclusion::NotSupported),
                "its interval lies below that of its null with both fills",
            ),
            (
                [of(-0.1, -0.2, -0.05), wide],
                [of(-0.5, -0.6, -0.4), low],
                Some(Conclusion::NotSupported),
                "above that of its null, but not above zero with blur",
            ),
            ([high, high], [low, low], Some(Conclusion::Undecided), "too few episodes for a verdict"),
        ] {
            let said = about_itself(&claim(own, null, verdict));
            assert!(said.contains(wants), "{said}");
            assert!(!said.contains("does as well"), "{said}");
        }
        // The number and its null are of the same fill.
        let (fill, own, null) = careful(&claim([high, wide], [low, high], None));
        assert_eq!((fill, own, null), (Fill::Mean, wide, high));
        let (fill, _, null) = careful(&claim([wide, high], [low, high], None));
        assert_eq!((fill, null), (Fill::Blur, low));
    }
}

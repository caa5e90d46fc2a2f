//! What was found, in words and tables. Every number comes from the report, so that `report.json` has it.

use crate::Fill;
use crate::charts::percent;
use crate::faithful::{Conclusion, Faithfulness};
use crate::page::{Mood, ReportPage, Section, Tile, player_data};
use crate::text::{escape, joined};
use crate::trajectory::{ActionScale, Dimension};
use foveate_core::{Image, Labels};

use super::conditions::Condition;
use super::figures::{Figures, said};
use super::phases::{Found, LookedAt};
use super::probes::INTERVENTIONS;
use super::swaps::OwnTest;
use super::{Claim, Cost, Mean, StudyReport, SwapStudy};

/// The page.
pub(super) fn page<'a>(
    labels: &Labels,
    found: &'a Found,
    report: &StudyReport,
    figures: Figures,
    dimensions: &[Dimension],
    swaps: Option<&SwapStudy>,
) -> ReportPage<'a> {
    let film = found.shown.reel.film();
    let mut shown = found.episodes[0].clone();
    for action in &mut shown.actions {
        *action = found.scale.shown(action);
    }
    let name = subject(labels);
    let Figures { looks, interest, tests, world, positions, saliency } = figures;
    let mut sections = vec![];
    if found.has_attention {
        sections.push(Section {
            id: "where".into(),
            title: "Where it looks".into(),
            lead: vec![format!(
                "{} These figures are over {}. In pictures with the attention overlaid, a patch is the whiter the more \
                 important the agent finds it.",
                what_it_gets(found.shown.looked_at, report.looked_at),
                count(report.head.scores.len(), "episode")
            )],
            html: String::new(),
            figures: looks,
        });
        sections.push(Section {
            id: "what".into(),
            title: "What it looks at".into(),
            lead: vec![
                "Patches ranked by the votes that they get. Those on top are what the agent finds most worth a look, \
                 those in the lower half least."
                    .into(),
            ],
            html: String::new(),
            figures: interest,
        });
    }
    sections.push(Section {
        id: "true".into(),
        title: "Is it true?".into(),
        lead: test_lead(report, found),
        html: tables(report),
        figures: tests,
    });
    if !world.is_empty() {
        sections.push(Section {
            id: "without".into(),
            title: "Things taken out of the world".into(),
            lead: vec![
                "A covered patch is a picture that the world never shows. Here the world itself is drawn without a kind of thing, \
                 its physics unchanged, so that “it looks at the kerb” is tested by a road without kerbs."
                    .into(),
            ],
            html: erasures_table(report),
            figures: world,
        });
    }
    if !positions.is_empty() {
        sections.push(Section {
            id: "encoded".into(),
            title: "What the positions say".into(),
            lead: vec![encoded_lead(report)],
            html: String::new(),
            figures: positions,
        });
    }
    if !saliency.is_empty() {
        sections.push(Section {
            id: "saliency".into(),
            title: "What another method says".into(),
            lead: vec![saliency_lead(report)],
            html: String::new(),
            figures: saliency,
        });
    }
    ReportPage {
        title: format!("What {name} looks at"),
        subtitle: format!(
            "{} · {}, picture {}, variant {} · {}",
            labels.weights,
            labels.env,
            labels.picture,
            labels.variant,
            report.head.extent()
        ),
        tiles: tiles(report),
        summary: summary(report, found.has_attention),
        data: player_data(
            &film,
            &shown,
            &found.shown.maps,
            found.shown.picture,
            dimensions,
            swaps.and_then(SwapStudy::film),
        ),
        film,
        seen: if swaps.is_some_and(|swaps| swaps.film().is_some()) {
            "what the agent sees; white: what it attends to, border: what moves its action"
        } else {
            "what the agent sees, and looks at"
        },
        columns: vec![],
        sections,
        notes: notes(report, found.shown.shuffled),
    }
}

/// The name of whom a report is about: that of the file of the weights.
pub(super) fn subject(labels: &Labels) -> String {
    let name = labels.weights.rsplit('/').next().unwrap_or_default().trim_end_matches(".safetensors");
    format!("{}{name}", if name.ends_with(" champion") { "the " } else { "" })
}

/// `1 episode`, `2 episodes`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
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

/// With two decimals and the sign that people write.
pub(super) fn two(value: f64) -> String {
    let text = format!("{value:.2}");
    if text == "-0.00" { "0.00".into() } else { text.replace('-', "−") }
}

pub(super) fn whole(value: f64) -> String {
    let text = format!("{value:.0}");
    if text == "-0" { "0".into() } else { text.replace('-', "−") }
}

/// `0.64 (0.50 … 0.78)`; one episode has no interval.
pub(super) fn with_interval((mean, interval): Mean) -> String {
    match interval {
        Some([low, high]) => format!("{} ({} … {})", two(mean), two(low), two(high)),
        None => two(mean),
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

/// The test of this report.
pub(super) const COVERING: OwnTest = OwnTest {
    done: "the test with covers",
    claim: "covering what it looks at at the moment changes its action more than covering where it looks at other moments",
    asks: "for all places that it looks at together, on pictures with covers, which the world never shows",
};

/// How a verdict looks.
pub(super) fn mood(verdict: &str) -> Mood {
    match verdict {
        "supported" => Mood::Good,
        "not supported" => Mood::Bad,
        _ => Mood::Plain,
    }
}

/// A share with its interval, in percent.
pub(super) fn parts((mean, interval): Mean) -> String {
    match interval {
        Some([low, high]) => format!("{} ({} … {})", percent(mean), percent(low), percent(high)),
        None => percent(mean),
    }
}

fn change(report: &StudyReport, name: &str, fill: &str) -> f64 {
    report.interventions.iter().find(|i| i.name == name && i.fill == fill).map_or(0.0, |i| i.change)
}

fn tiles(report: &StudyReport) -> Vec<Tile> {
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
        report.head.score_tile(),
    ]
}

pub(super) fn summary(report: &StudyReport, has_attention: bool) -> Vec<String> {
    let mut told = vec![];
    if has_attention {
        let [first, second] = [&report.regions[0], &report.regions[1]];
        told.push(format!(
            "It looks mostly at the {} of the picture ({} of all looks), then the {} ({}).",
            first.0,
            percent(first.1),
            second.0,
            percent(second.1)
        ));
        told.push(format!(
            "Half of all looks are part of a hold of at most {} in a row.",
            count(report.typical_hold, "decision")
        ));
    }
    let by = |which: usize| {
        ["blur", "mean"].map(|fill| percent(change(report, INTERVENTIONS[which], fill))).join(" (blur) and ")
    };
    told.push(format!(
        "Covering what it looks at changes its action by {} (mean colour); covering as much elsewhere by {} (mean colour).",
        by(0),
        by(1)
    ));
    let (fill, own, null) = careful(&report.claims[0]);
    let numbers = format!(
        "faithfulness {} against {} for its attention at other moments, both with {}",
        two(own.value),
        two(null.value),
        said(fill)
    );
    told.push(match &*report.verdict {
        "supported" => format!(
            "That is more than its usual places would explain: {numbers}. {}",
            if report.claims[2..5].iter().any(|control| control.verdict == Some(Conclusion::Supported)) {
                "But a control passes the same test, so do not rely on it: see below."
            } else {
                "Shuffled gaze, a random-weight agent and a blind agent do not pass the same test."
            }
        ),
        "not supported" => format!(
            "The test does not show that its usual places would not explain that as well: {numbers}; {}. So this \
             test gives no ground to take its attention at a moment for the reason of its action then.",
            beside_null(&report.claims[0])
        ),
        _ => format!(
            "{} {} too few for a verdict; {} are the least, {} are better.",
            count(report.head.scores.len(), "episode"),
            if report.head.scores.len() == 1 { "is" } else { "are" },
            report.method.fewest_episodes,
            report.method.advised_episodes
        ),
    });
    told.extend(report.differences.iter().cloned());
    if has_attention {
        told.push(driving_sentence(report));
        let (ranks, null) = (report.agreement.ranks, report.agreement.ranks_null);
        told.push(format!(
            "Perturbation saliency, which does not know the attention, {} (rank correlation {}, null {}).",
            match (ranks.1, null.1) {
                (Some([low, _]), Some([_, high])) if low > high => {
                    "ranks the picture more like the attention at the moment than like that at another"
                }
                (Some(_), Some(_)) => {
                    "does not show that it ranks the picture more like the attention at the moment than like that at another"
                }
                _ => "cannot be compared over one episode, which has no interval",
            },
            two(ranks.0),
            two(null.0)
        ));
    }
    told
}

pub(super) fn driving_sentence(report: &StudyReport) -> String {
    let mean = |name: &str, fill: &str| {
        let drive = report.drives.iter().find(|d| d.name == name && d.fill == fill);
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
                format!("{} with {fill} (95 % from {} to {})", whole(*difference), whole(*low), whole(*high))
            }
            None => format!("{} with {fill}", whole(*difference)),
        }
    };
    let costs: Vec<String> = report.cost.iter().map(cost).collect();
    let costs = format!(
        "covering the attended patches costs more score than covering as much elsewhere, by {}",
        costs.join(" and ")
    );
    match &*report.driving {
        "supported" => format!("Its driving rests on it too: {numbers}; {costs}."),
        "not supported" => {
            format!(
                "Whole episodes do not show it for both fills: {numbers}; {costs}. Why, this test does not say."
            )
        }
        _ => format!("Whole episodes, too few for a verdict: {numbers}; {costs}."),
    }
}

/// What the agent gets of a picture, given how many patches it looks at, and how many there are.
fn what_it_gets(how: LookedAt, [looked_at, patches]: [usize; 2]) -> String {
    match how {
        LookedAt::Chosen => format!(
            "At every step the agent is told about {looked_at} of {patches} patches and nothing else of the picture."
        ),
        LookedAt::Marked => format!(
            "At every step the agent gets all {patches} patches, weighted. It looks at those that have the largest weight \
             of at least one of its queries: {looked_at} of them, on average."
        ),
        LookedAt::Weighted => format!(
            "At every step the agent gets all {patches} patches, weighted. It looks at the {looked_at} that have the \
             largest weights."
        ),
    }
}

fn test_lead(report: &StudyReport, found: &Found) -> Vec<String> {
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

/// Which quantities the positions tell, best first.
fn encoded_lead(report: &StudyReport) -> String {
    let mut best: Vec<_> = report.encoded.iter().collect();
    best.sort_by(|a, b| b.r2.value.total_cmp(&a.r2.value));
    let told: Vec<String> = best.iter().map(|of| format!("{} {}", of.quantity, of.r2.plain())).collect();
    format!(
        "All that the controller gets of the picture are the positions of the patches. How much of the world's state a linear \
         function of them tells, in episodes that it was not fitted to (R²; 1 is everything, 0 no more than the mean): {}.",
        told.join(", ")
    )
}

fn erasures_table(report: &StudyReport) -> String {
    let rows = joined(report.erasures.iter().map(|of| {
        let cost = of.cost.map_or("—".into(), |(difference, interval)| match interval {
            Some([low, high]) => {
                format!("{} <small>{} … {}</small>", whole(-difference), whole(-high), whole(-low))
            }
            None => whole(-difference),
        });
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{cost}</td></tr>",
            escape(&of.kind),
            of.pixels.percent(),
            of.looked_at.as_ref().map_or("—".into(), crate::estimate::Estimate::percent),
            of.change.percent(),
            whole(of.score)
        )
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>without</th><th>share of the picture</th><th>share of what it looks \
         at</th><th>action changes by</th><th>score</th><th>more or less than with it</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn saliency_lead(report: &StudyReport) -> String {
    let of = |(mean, interval): Mean| match interval {
        Some([low, high]) => format!("{} ({} … {})", percent(mean), percent(low), percent(high)),
        None => percent(mean),
    };
    format!(
        "Perturbation saliency asks any policy, without knowing its attention: blur the picture softly at one place after \
         another and see how the action changes. Asked about {}, its strongest places overlap the looked-at ones by {}; \
         null, the attention at another moment: {}.",
        count(report.agreement.decisions, "decision"),
        of(report.agreement.overlap),
        of(report.agreement.overlap_null)
    )
}

fn tables(report: &StudyReport) -> String {
    let badge = |verdict: Option<Conclusion>| match verdict {
        Some(Conclusion::Supported) => "<span class=\"verdict yes\">supported</span>".to_owned(),
        Some(verdict) => format!("<span class=\"verdict no\">{verdict}</span>"),
        None => "the null".to_owned(),
    };
    let cell = |f: Faithfulness| {
        let interval = f.interval.map_or_else(
            || "one episode: no interval".to_owned(),
            |[low, high]| format!("{} … {}", two(low), two(high)),
        );
        format!("<td>{} <small>{interval}</small></td>", two(f.value))
    };
    let claims = joined(report.claims.iter().map(|claim| {
        format!(
            "<tr><td>{}</td>{}{}<td>{}</td></tr>",
            escape(&claim.name),
            cell(claim.blur),
            cell(claim.mean),
            badge(claim.verdict)
        )
    }));
    let interventions = joined(report.interventions.chunks(2).map(|pair| {
        let each = joined(
            pair.iter().map(|i| format!("<td>{}</td><td>{}</td>", percent(i.change), percent(i.size))),
        );
        format!("<tr><td>{}</td>{each}</tr>", escape(&pair[0].name))
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>claim</th><th>faithfulness, blur</th><th>faithfulness, mean \
         colour</th><th>verdict</th></tr></thead><tbody>{claims}</tbody></table></div><div \
         class=\"card\"><table><thead><tr><th>intervention</th><th>action changes by (blur)</th><th>picture changes by \
         (blur)</th><th>action (mean colour)</th><th>picture (mean \
         colour)</th></tr></thead><tbody>{interventions}</tbody></table></div>"
    )
}

fn notes(report: &StudyReport, shuffled: bool) -> Vec<String> {
    let mut notes = vec![
        report.head.made_note(),
        format!(
            "A covered pixel becomes the picture blurred with σ = {} pixels, or the picture's mean colour. Neither is \
             neutral: each makes pictures that the agent never met, so a verdict needs both. Random covers have the same \
             number of pixels, none of them claimed. {}",
            report.method.blur_px,
            report.head.interval_note(report.method.interval)
        ),
        "Faithful attention says what a decision rests on, not that the decision is good, nor what the agent would do in \
         worlds that were not tried."
            .into(),
    ];
    if shuffled {
        notes.push(
            "The agent gets its patches in another order than the world's. Pictures and places of this page are in the \
             world's order."
                .into(),
        );
    }
    notes
}

/// The picture as PNG bytes; an empty picture has none.
pub(super) fn png(image: Image<'_>) -> Vec<u8> {
    foveate_film::encode_png(image).unwrap_or_default()
}

/// What an action is, for the JSON.
pub(super) fn scale_name(scale: &ActionScale) -> &'static str {
    match scale {
        ActionScale::Box(_) => "mean part of each dimension's extent",
        ActionScale::Choices => "total variation of the probabilities of the choices",
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

//! What was found, in words and tables.

use foveate_core::{Image, statistics};
use foveate_explain::Fill;
use foveate_explain::charts::percent;
use foveate_explain::episode::{ActionScale, Dimension};
use foveate_explain::faithful::{FEWEST_EPISODES, Faithfulness, Verdict};
use foveate_explain::figure::short;
use foveate_explain::looks::{density, holds, regions, typical_hold};
use foveate_explain::page::{Mood, Page, Section, Tile, player_data};
use foveate_explain::text::{escape, joined};

use super::conclude::Findings;
use super::drives::Condition;
use super::figures::Figures;
use super::phases::Found;
use super::study::INTERVENTIONS;
use super::{Claim, ExplainRequest};

/// The page.
pub(super) fn page<'a>(
    request: &ExplainRequest<'_>,
    found: &'a Found,
    findings: &Findings,
    figures: Figures,
    dimensions: &[Dimension],
) -> Page<'a> {
    let film = found.shown.reel.film();
    let mut shown = found.episodes[0].clone();
    for action in &mut shown.actions {
        *action = found.scale.shown(action);
    }
    let labels = &request.labels;
    let name = labels.weights.rsplit('/').next().unwrap_or_default().trim_end_matches(".safetensors");
    let Figures { looks, interest, tests, saliency } = figures;
    let mut sections = vec![];
    if found.has_gaze {
        sections.push(Section {
            id: "where",
            title: "Where it looks".into(),
            lead: vec![format!(
                "At every step the agent is told about {} of {} patches and nothing else of the picture. These figures \
                 are over {} episodes.",
                found.cards.first().map_or(0, |c| c.claim.len()),
                found.grid.len(),
                found.episodes.len()
            )],
            html: String::new(),
            figures: looks,
        });
        sections.push(Section {
            id: "what",
            title: "What it looks at".into(),
            lead: vec![
                "Patches ranked by the votes that they get. Those on top are what the agent finds worth a look; those \
                 near zero are what it ignores."
                    .into(),
            ],
            html: String::new(),
            figures: interest,
        });
    }
    sections.push(Section {
        id: "true",
        title: "Is it true?".into(),
        lead: test_lead(findings),
        html: tables(findings),
        figures: tests,
    });
    if !saliency.is_empty() {
        sections.push(Section {
            id: "saliency",
            title: "What another method says".into(),
            lead: vec![saliency_lead(findings)],
            html: String::new(),
            figures: saliency,
        });
    }
    Page {
        title: format!("What {name} looks at"),
        subtitle: format!(
            "{} · {}, picture {}, variant {} · seed {} · {} episodes, {} decisions put to the test",
            labels.weights,
            labels.env,
            labels.picture,
            labels.variant,
            request.seed,
            found.episodes.len(),
            found.probed.iter().map(Vec::len).sum::<usize>()
        ),
        tiles: tiles(found, findings),
        summary: summary(found, findings),
        data: player_data(&film, &shown, &found.shown.maps, found.shown.picture, dimensions),
        film,
        sections,
        notes: notes(request),
    }
}

/// A claim's figure with the smaller of both fills: what is said when one number is to be said.
fn careful(claim: &Claim) -> Faithfulness {
    if claim.blur.value <= claim.mean.value { claim.blur } else { claim.mean }
}

fn mood(verdict: Verdict) -> Mood {
    match verdict {
        Verdict::Supported => Mood::Good,
        Verdict::NotSupported => Mood::Bad,
        Verdict::Undecided => Mood::Plain,
    }
}

fn tiles(found: &Found, findings: &Findings) -> Vec<Tile> {
    let own = careful(&findings.claims[0]);
    let null = &findings.claims[1];
    let null = null.blur.interval[1].max(null.mean.interval[1]);
    let score = found.scores.iter().find(|(c, _)| *c == Condition::AsIs).map(|(_, s)| statistics::mean(s));
    let at = |name: &str| {
        findings.interventions.iter().find(|i| i.name == name && i.fill == "blur").map_or(0.0, |i| i.change)
    };
    let mut tiles = vec![
        Tile {
            value: findings.decisions.to_string(),
            name: "it acts on what it looks at".into(),
            note: "decision by decision".into(),
            mood: mood(findings.decisions),
        },
        Tile {
            value: format!("{:.2}", own.value).replace('-', "−"),
            name: "faithfulness, 1 is full".into(),
            note: format!("{:.2} … {:.2}; null below {null:.2}", own.interval[0], own.interval[1]),
            mood: mood(findings.decisions),
        },
        Tile {
            value: percent(at(INTERVENTIONS[0])),
            name: "change of action, gaze blurred".into(),
            note: format!("{} elsewhere", percent(at(INTERVENTIONS[1]))),
            mood: Mood::Plain,
        },
        Tile {
            value: percent(at(INTERVENTIONS[4])),
            name: "change, all else blurred".into(),
            note: format!("{} with other places kept", percent(at(INTERVENTIONS[5]))),
            mood: Mood::Plain,
        },
    ];
    tiles.push(Tile {
        value: format!("{:.0}", found.episodes[0].score()).replace('-', "−"),
        name: "score of this episode".into(),
        note: format!(
            "{} steps; mean of {} is {:.0}",
            found.episodes[0].len(),
            found.episodes.len(),
            score.unwrap_or(0.0)
        ),
        mood: Mood::Plain,
    });
    tiles
}

fn summary(found: &Found, findings: &Findings) -> Vec<String> {
    let n = found.episodes.len();
    let mut said = vec![];
    if found.has_gaze {
        let density = density(&found.episodes, found.grid);
        let mut places = regions(&density, found.grid);
        places.sort_by(|a, b| b.looks.total_cmp(&a.looks));
        said.push(format!(
            "It looks mostly at the {} of the picture ({} of all looks), then the {} ({}).",
            places[0].name,
            percent(places[0].looks),
            places[1].name,
            percent(places[1].looks)
        ));
        let held = holds(&found.episodes);
        said.push(format!(
            "It holds a patch briefly: half of all looks are part of a hold of at most {} decisions in a row.",
            typical_hold(&held)
        ));
    }
    let at = |name: &str, fill: &str| {
        findings.interventions.iter().find(|i| i.name == name && i.fill == fill).map_or(0.0, |i| i.change)
    };
    said.push(format!(
        "Covering what it looks at changes its action {} times as much as covering as much of anything else (blur); {} \
         times with the mean colour.",
        times(at(INTERVENTIONS[0], "blur"), at(INTERVENTIONS[1], "blur")),
        times(at(INTERVENTIONS[0], "mean"), at(INTERVENTIONS[1], "mean"))
    ));
    let [own, null] = [careful(&findings.claims[0]), careful(&findings.claims[1])];
    said.push(match findings.decisions {
        Verdict::Supported => format!(
            "That is more than its usual places would explain: faithfulness {:.2} against {:.2} for its gaze of other \
             moments. {}",
            own.value,
            null.value,
            if findings.claims[2..5].iter().any(|control| control.verdict == Some(Verdict::Supported)) {
                "But a control passes the same test, so do not rely on it: see below."
            } else {
                "Shuffled gaze, a random-weight agent and a blind agent do not pass the same test."
            }
        ),
        Verdict::NotSupported => format!(
            "That is no more than its usual places would explain: faithfulness {:.2} against {:.2} for its gaze of \
             other moments. Do not take its gaze for the reason of its actions.",
            own.value, null.value
        ),
        Verdict::Undecided => {
            format!("{n} episodes are too few for a verdict; {FEWEST_EPISODES} are the least, 20 are better.")
        }
    });
    if found.has_gaze {
        said.push(driving_sentence(findings));
        let [ranks, null, ..] = findings.agreement;
        said.push(format!(
            "Perturbation saliency, which knows nothing of the gaze, ranks the picture {} (rank correlation {:.2}, null \
             {:.2}).",
            if ranks.1[0] > null.1[1] { "more like the gaze of the moment than like that of another" } else { "no more like the gaze of the moment than like that of another" },
            ranks.0,
            null.0
        ));
    }
    said
}

fn driving_sentence(findings: &Findings) -> String {
    let mean = |name: &str, fill: &str| {
        let drive = findings.drives.iter().find(|d| d.name == name && d.fill == fill && !d.random_weights);
        drive.map_or(0.0, |d| d.mean)
    };
    let [gaze, random] =
        [Condition::CoverGaze(Fill::Blur), Condition::CoverRandom(Fill::Blur)].map(Condition::name);
    let numbers = format!(
        "with what it looks at covered in every step it scores {:.0} (blur) and {:.0} (mean colour), with as much covered \
         elsewhere {:.0} and {:.0}, untouched {:.0}",
        mean(gaze, "blur"),
        mean(gaze, "mean"),
        mean(random, "blur"),
        mean(random, "mean"),
        mean("as it is", "")
    );
    match findings.driving {
        Verdict::Supported => format!("Its driving rests on it too: {numbers}."),
        Verdict::NotSupported => {
            format!("Whole episodes do not show it for both fills, since it can look elsewhere: {numbers}.")
        }
        Verdict::Undecided => format!("Whole episodes: {numbers}."),
    }
}

fn times(a: f64, b: f64) -> String {
    if b > 0.0 { short((10.0 * a / b).round() / 10.0) } else { "many".into() }
}

fn test_lead(findings: &Findings) -> Vec<String> {
    let mut lead = vec![
        "A picture of where an agent looks is a claim. Here it is put to the test: decisions are taken again, from the \
         very state in which they were taken, on pictures with the claimed places covered, and with as many other pixels \
         covered instead."
            .into(),
        "The null are claims of the same kind from other episodes: right places in general, wrong for the moment. Three \
         controls go through the same test and must fail it: shuffled gaze, the gaze of an agent of random weights, and \
         a blind agent that is shown grey."
            .into(),
    ];
    let itself = findings.claims.last().and_then(|claim| claim.verdict);
    lead.push(match itself {
        Some(Verdict::Supported) => format!(
            "The last line is an agent of random weights asked about its own decisions. Told about nothing but its \
             patches, it cannot but act on them, and its gaze is faithful to decisions that have no aim: the test says \
             what actions rest on, not that they are any good (that its score rests on its gaze: {}).",
            findings.random_driving
        ),
        _ => "The last line is an agent of random weights asked about its own decisions. Told about nothing but its \
              patches, it cannot but act on them, so the figure is high; but its gaze of other moments does as well: what \
              it looks at says nothing of the moment."
            .into(),
    });
    lead
}

fn saliency_lead(findings: &Findings) -> String {
    let [_, _, overlap, null] = findings.agreement;
    format!(
        "Perturbation saliency asks any policy, without knowing of its gaze: blur the picture softly at one place after \
         another and see how the action changes. Its strongest places overlap the looked-at ones by {} ({} for the gaze of \
         another moment).",
        percent(overlap.0),
        percent(null.0)
    )
}

fn tables(findings: &Findings) -> String {
    let badge = |verdict: Option<Verdict>| match verdict {
        Some(Verdict::Supported) => "<span class=\"verdict yes\">supported</span>".to_owned(),
        Some(verdict) => format!("<span class=\"verdict no\">{verdict}</span>"),
        None => "the null".to_owned(),
    };
    let cell = |f: Faithfulness| {
        format!("<td>{:.2} <small>{:.2} … {:.2}</small></td>", f.value, f.interval[0], f.interval[1])
            .replace('-', "−")
    };
    let claims = joined(findings.claims.iter().map(|claim| {
        format!(
            "<tr><td>{}</td>{}{}<td>{}</td></tr>",
            escape(&claim.name),
            cell(claim.blur),
            cell(claim.mean),
            badge(claim.verdict)
        )
    }));
    let interventions = joined(findings.interventions.chunks(2).map(|pair| {
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

fn notes(request: &ExplainRequest<'_>) -> Vec<String> {
    vec![
        format!(
            "Made by foveate explain, seed {}; the same seed gives the same bytes. Every figure is in the folder figures as \
             SVG, PNG, CSV and JSON, all numbers in report.json.",
            request.seed
        ),
        "A covered pixel becomes the picture blurred with σ = 3 pixels, or the picture's mean colour. Neither is neutral: \
         each makes pictures that the agent never met, so a verdict needs both. Random covers have the same number of \
         pixels, none of them claimed. Intervals resample whole episodes."
            .into(),
        "A faithful gaze says what a decision rests on, not that the decision is good, nor what the agent would do in \
         worlds that were not tried."
            .into(),
    ]
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

//! The page of a report on sensors: every number comes from the report.

use foveate_core::Labels;

use super::super::Mean;
use super::super::report_page::{count, mood, parts, subject, two, with_interval};
use super::super::swaps::OwnTest;
use super::figures::Figures;
use super::{Found, Recovered, SensorReport};
use crate::charts::percent;
use crate::page::{Mood, PageFilm, ReportPage, Section, Tile, player_data};
use crate::text::{escape, joined};
use crate::trajectory::Dimension;

/// Most names of columns that fit below the weights of the film.
const MOST_COLUMN_NAMES: usize = 12;

/// The test of this report.
pub(super) const CHANGING: OwnTest = OwnTest {
    done: "changing single sensors",
    claim: "sensors with larger weights move its action more",
    asks: "for one sensor at a time, and the agent computes everything again, its weights included",
};

pub(super) fn page<'a>(
    labels: &Labels,
    found: &'a Found,
    report: &SensorReport,
    figures: Figures,
    dimensions: &[Dimension],
) -> ReportPage<'a> {
    let shown = &found.records[0];
    let mut episode = shown.trajectory.clone();
    for action in &mut episode.actions {
        *action = found.scale.shown(action);
    }
    let empty = PageFilm { mp4: &[], fps: 1.0, size: [1, 1], world: None, seen: [0, 0, 1, 1] };
    let (film, picture) =
        shown.film.as_ref().map_or((empty, [1, 1]), |(film, picture)| (film.film(), *picture));
    let name = subject(labels);
    let Figures { attention, tests, recovered } = figures;
    let [heads, codes] = report.heads_and_codes;
    let mut sections = vec![
        Section {
            id: "attention".into(),
            title: "Which sensors it attends to".into(),
            lead: vec![format!(
                "{} attend to {}. A weight says how much a code takes of a sensor, and with which sign. In the film, \
                 columns are sensors in the world's order and rows are codes; red is positive, blue negative. All figures \
                 of this section are of the episode shown.",
                count(heads * codes, "code"),
                count(report.sensors.len(), "sensor"),
            )],
            html: String::new(),
            figures: attention,
        },
        Section {
            id: "true".into(),
            title: "Is it true?".into(),
            lead: test_lead(report),
            html: table(report),
            figures: tests,
        },
    ];
    if let Some(recovery) = &report.recovered {
        sections.push(Section {
            id: "message".into(),
            title: "What the message says".into(),
            lead: vec![format!(
                "All that the controller gets are {}. A linear function of them was fitted to each sensor on {} and scored \
                 on {} of other {}.",
                count(recovery.inputs, "number"),
                count(recovery.fitted_on, "step"),
                recovery.scored_on,
                if report.head.scores.len() > 1 { "episodes" } else { "parts of the episode" }
            )],
            html: recovery_table(recovery),
            figures: recovered,
        });
    }
    ReportPage {
        title: format!("What {name} listens to"),
        subtitle: format!(
            "{} · {}, variant {} · {}",
            labels.weights,
            labels.env,
            labels.variant,
            report.head.extent()
        ),
        tiles: tiles(report),
        summary: summary(report),
        data: player_data(&film, &episode, &[], picture, dimensions, None),
        film,
        seen: "weights: a column for each sensor, a row for each code",
        columns: if shown.names.len() <= MOST_COLUMN_NAMES { shown.names.clone() } else { vec![] },
        sections,
        notes: notes(report),
    }
}

/// The sensor with the largest value of `of`.
fn first(report: &SensorReport, of: impl Fn(&super::SensorFinding) -> f64) -> Option<&super::SensorFinding> {
    report.sensors.iter().max_by(|a, b| of(a).total_cmp(&of(b)))
}

fn tiles(report: &SensorReport) -> Vec<Tile> {
    let knocked = &report.ranks[0];
    let mut tiles = vec![
        Tile {
            value: report.verdict.clone(),
            name: "sensors with larger weights move it more".into(),
            note: supported_with(report),
            mood: mood(&report.verdict),
        },
        Tile {
            value: two(knocked.own.0),
            name: "rank correlation, knocked out".into(),
            note: format!("{}; dealt at random {}", with_interval(knocked.own), two(knocked.dealt.0)),
            mood: mood(&knocked.verdict),
        },
        Tile {
            value: percent(report.natural.0),
            name: "change of action, all sensors replaced".into(),
            note: if report.natural.0 < report.method.floor {
                "too little to say anything".into()
            } else {
                "by those of another episode".into()
            },
            mood: Mood::Plain,
        },
    ];
    if let Some(sensor) = first(report, |sensor| sensor.weight.0) {
        tiles.push(Tile {
            value: sensor.name.clone(),
            name: "most attention".into(),
            note: format!("{} of all weights", percent(sensor.weight.0)),
            mood: Mood::Plain,
        });
    }
    tiles.push(report.head.score_tile());
    tiles
}

/// The interventions with which the claim is supported.
fn supported_with(report: &SensorReport) -> String {
    let held = report.ranks.iter().filter(|test| test.verdict == "supported");
    let names: Vec<&str> = held.map(|test| &*test.intervention).collect();
    match names.len() {
        0 => "with none of three interventions".into(),
        3 => "with all three interventions, against both nulls".into(),
        _ => format!("{}, against both nulls; not with the others", names.join(" and ")),
    }
}

fn summary(report: &SensorReport) -> Vec<String> {
    let mut told = vec![];
    if let (Some(weight), Some(effect)) =
        (first(report, |sensor| sensor.weight.0), first(report, |sensor| sensor.change[0].0))
    {
        told.push(format!(
            "It attends most to {} ({} of all weights). Knocked out, {} moves its action most, by {} of its range.",
            weight.name,
            percent(weight.weight.0),
            if weight.name == effect.name { "the same sensor" } else { &effect.name },
            percent(effect.change[0].0)
        ));
    }
    told.push(match report.natural.1 {
        _ if report.natural.0 < report.method.floor => format!(
            "All sensors of another episode together move its action by {} of its range. That is less than {}, so nothing is \
             said about their order.",
            parts(report.natural),
            percent(report.method.floor)
        ),
        _ => format!("All sensors of another episode together move its action by {}.", parts(report.natural)),
    });
    for test in &report.ranks {
        told.push(rank_sentence(test));
    }
    told.extend(report.differences.iter().cloned());
    if let Some(recovered) = &report.recovered {
        let each = recovered.sensors.iter().map(|sensor| format!("{} {}", sensor.name, two(sensor.r2)));
        let all: Vec<String> = each.collect();
        told.push(format!(
            "R² of a sensor, recovered from the message by linear regression: {}.",
            all.join(", ")
        ));
    }
    if report.head.scores.len() < report.method.fewest_episodes {
        told.push(format!(
            "{} {} too few for a verdict; {} are the least, {} are better.",
            count(report.head.scores.len(), "episode"),
            if report.head.scores.len() == 1 { "is" } else { "are" },
            report.method.fewest_episodes,
            report.method.advised_episodes
        ));
    }
    told
}

/// What the intervals of a test say.
fn rank_sentence(test: &super::RankTest) -> String {
    if super::undefined(&[&[test.own.0], &[test.dealt.0], &[test.other_moment.0]]) {
        return format!(
            "Sensors {}: all weights or all effects are equal, so their rank correlation is not defined.",
            test.intervention
        );
    }
    let lies = |what: &str, (_, interval): Mean| match interval {
        Some([low, _]) if low > 0.0 => format!("more than {what}"),
        Some([_, high]) if high < 0.0 => format!("less than {what}"),
        Some(_) => format!("not clearly different from {what}"),
        None => format!("not comparable with {what} over one episode"),
    };
    format!(
        "Sensors {}: the rank correlation of weight and effect is {}; that is {} ({}), and {} ({}).",
        test.intervention,
        with_interval(test.own),
        lies("that of weights dealt at random", test.above_dealt),
        two(test.dealt.0),
        lies("that of the weights of another moment", test.above_other),
        two(test.other_moment.0),
    )
}

fn test_lead(report: &SensorReport) -> Vec<String> {
    vec![
        format!(
            "A weight is a claim: this sensor matters now. Here decisions are taken again, from the very state in which they \
             were taken, with one sensor changed: set to its mean over the episode (knocked out), held at its value of {} \
             steps before (frozen), or replaced by its value at {} moments of other episodes. If the claim holds, sensors \
             with larger absolute weights move the action more.",
            report.method.freeze, report.method.donors
        ),
        "There are two nulls: the same weights dealt to the sensors at random, and the weights of a moment of another \
         episode, which are right in general and wrong for the moment. A claim is supported when its rank correlation lies \
         above both, episode by episode. Agents with random weights go through the same test."
            .into(),
        "What this test cannot show: each decision is changed once. A sensor whose effect builds up in the agent's memory over \
         many steps moves a single decision little."
            .into(),
    ]
}

fn table(report: &SensorReport) -> String {
    let cell = |mean: Mean| format!("<td>{}</td>", parts(mean));
    let sensors = joined(report.sensors.iter().map(|sensor| {
        let changes = joined(sensor.change.iter().map(|&change| cell(change)));
        format!("<tr><td>{}</td>{}{changes}</tr>", escape(&sensor.name), cell(sensor.weight))
    }));
    let heads = joined(report.method.interventions.iter().map(|name| format!("<th>{}</th>", escape(name))));
    let tests = joined(report.ranks.iter().map(|test| {
        let class = if test.verdict == "supported" { "yes" } else { "no" };
        let cells = [test.own, test.dealt, test.other_moment, test.above_dealt, test.above_other];
        let cells = joined(cells.into_iter().map(|mean| format!("<td>{}</td>", with_interval(mean))));
        format!(
            "<tr><td>{}</td>{cells}<td><span class=\"verdict {class}\">{}</span></td></tr>",
            escape(&test.intervention),
            escape(&test.verdict)
        )
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>sensor</th><th>share of \
         attention</th>{heads}</tr></thead><tbody>{sensors}</tbody></table></div><div \
         class=\"card\"><table class=\"many\"><thead><tr><th>sensors</th><th>rank correlation</th><th>dealt at random</th><th>another \
         moment</th><th>above random</th><th>above another moment</th><th>verdict</th></tr></thead><tbody>{tests}</tbody></table></div>"
    )
}

/// R² by each way of fitting and scoring.
fn recovery_table(recovered: &Recovered) -> String {
    let rows = joined(recovered.sensors.iter().map(|sensor| {
        let by_episode = sensor.by_episode.map_or_else(|| "–".to_owned(), two);
        format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{by_episode}</td></tr>",
            escape(&sensor.name),
            with_interval((sensor.r2, sensor.interval)),
            two(sensor.in_sample),
        )
    }));
    format!(
        "<div class=\"card\"><table><thead><tr><th>R² of</th><th>on steps that it was not fitted on</th><th>fitted and scored \
         on all steps</th><th>fitted and scored on each episode by itself</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn notes(report: &SensorReport) -> Vec<String> {
    vec![
        report.head.made_note(),
        report.head.interval_note(report.method.interval),
        "Sensors are named as the world has them; where a shift shows them in another order, everything here is in the world's \
         order."
            .into(),
    ]
}

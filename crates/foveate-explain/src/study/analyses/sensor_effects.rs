//! Whether sensors with larger weights move the action more: one sensor at a time is changed.

use serde::Serialize;

use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::means::{RankTest, over, per_episode};
use super::super::sensors::probe::{Effects, INTERVENTIONS};
use super::super::sensors::record::Record;
use super::super::sensors::{DEALS, DONORS, FLOOR, FREEZE, MeasuredSensors};
use super::super::swaps::{OwnTest, differences};
use super::super::words::{dot, intervals, mood, parts, scale_name, too_few, two, with_interval};
use super::super::{ADVISED_EPISODES, INTERVAL, Mean, StudyError};
use super::matters::Swaps;
use crate::charts::{DotPlot, dots, percent};
use crate::faithful::{Conclusion, FEWEST_EPISODES};
use crate::figure::{Figure, Ink, short};
use crate::page::{Mood, PageTable, Section, Tile};

/// The verdict when interventions disagree.
const IN_PART: &str = "in part";

/// What changing sensors shows, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensorEffects {
    /// The sensors, in the world's order.
    pub sensors: Vec<SensorFinding>,
    /// Mean change of the action when all sensors get their values of another episode.
    pub natural: Mean,
    /// Rank correlation of weight and effect, for each intervention.
    pub ranks: Vec<RankTest>,
    /// Whether sensors with larger weights move the action more: `supported` or `not supported` with all interventions,
    /// `in part` with some of them, `undecided`.
    pub verdict: String,
    /// Where that and a line of `swaps` seem to contradict each other: what the difference is.
    pub differences: Vec<String>,
    /// The distance between two actions, in words.
    pub distance: &'static str,
    /// Constants of the method.
    pub method: SensorMethod,
}

/// Results on one sensor: means over episodes with their intervals.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SensorFinding {
    /// Its name.
    pub name: String,
    /// Its share of all absolute weights.
    pub weight: Mean,
    /// Change of the action, in 0.0..=1.0, for each intervention.
    pub change: Vec<Mean>,
}

/// Constants of the method.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SensorMethod {
    /// The interventions on a sensor.
    pub interventions: [&'static str; 3],
    /// Steps for which a frozen sensor holds its value.
    pub freeze: usize,
    /// Moments of other episodes that values are taken from, per decision and sensor.
    pub donors: usize,
    /// Random orders behind the first null.
    pub deals: usize,
    /// Change of the action, all sensors replaced, below which nothing is said about their order.
    pub floor: f64,
    /// Confidence level of all intervals.
    pub interval: f64,
    /// Fewer episodes give no conclusion.
    pub fewest_episodes: usize,
    /// Recommended number of episodes.
    pub advised_episodes: usize,
}

impl SensorMethod {
    const fn ours() -> Self {
        SensorMethod {
            interventions: INTERVENTIONS,
            freeze: FREEZE,
            donors: DONORS,
            deals: DEALS,
            floor: FLOOR,
            interval: INTERVAL,
            fewest_episodes: FEWEST_EPISODES,
            advised_episodes: ADVISED_EPISODES,
        }
    }
}

/// The test of this report.
const CHANGING: OwnTest = OwnTest {
    done: "changing single sensors",
    claim: "sensors with larger weights move its action more",
    asks: "for one sensor at a time, and the agent computes everything again, its weights included",
};

/// Whether sensors with larger weights move the action more.
#[derive(Debug)]
pub(in crate::study) struct SensorsTest;

impl Analysis for SensorsTest {
    fn name(&self) -> &'static str {
        "sensors-true"
    }

    fn find(&self, bench: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredSensors>() else { return Ok(None) };
        let swaps = before.get::<Swaps>().and_then(|swaps| swaps.swaps.as_ref());
        let mut report = report(found);
        report.differences = differences(&CHANGING, &report.verdict, swaps);
        let n = bench.episodes();
        let section = Section {
            id: "true".into(),
            title: "Is it true?".into(),
            lead: test_lead(&report),
            tables: tables(&report),
            figures: vec![claim_and_effect(&report, n), interventions(&report, n), ranks(&report, n)],
            ..Section::default()
        };
        let note = "Sensors are named as the world has them; where a shift shows them in another order, everything here is in the \
                    world's order.";
        Ok(Some(Finding {
            tiles: tiles(&report).into_iter().skip(usize::from(swaps.is_some())).collect(),
            sentences: summary(&report, n),
            lines: lines(&report),
            section: Some(section),
            notes: vec![note.into()],
            ..Finding::new(report)
        }))
    }
}

fn report(found: &MeasuredSensors) -> SensorEffects {
    let MeasuredSensors { records, effects: [own, random], .. } = found;
    let natural = over(&per_episode(own, &|effects| Some(effects.natural)));
    let ranks: Vec<RankTest> = INTERVENTIONS
        .iter()
        .enumerate()
        .map(|(which, name)| {
            let of = |effects: &[Vec<Effects>], column: usize| {
                per_episode(effects, &|effects| Some(effects.ranks[which][column]))
            };
            RankTest::new(name, [of(own, 0), of(own, 1), of(own, 2), of(random, 0)], natural.0 >= FLOOR)
        })
        .collect();
    let all = |wanted: Conclusion| ranks.iter().all(|test| test.verdict == wanted.to_string());
    let verdict = [Conclusion::Supported, Conclusion::NotSupported, Conclusion::Undecided];
    let verdict =
        verdict.into_iter().find(|&wanted| all(wanted)).map_or(IN_PART.into(), |all| all.to_string());
    let sensors = Record::all_keys(records).into_iter().map(|(key, name)| {
        let of = |value: &dyn Fn(&Effects, usize) -> f64| {
            over(&per_episode(own, &|effects| effects.row(key).map(|row| value(effects, row))))
        };
        SensorFinding {
            name,
            weight: of(&|effects, row| effects.share(row)),
            change: (0..INTERVENTIONS.len())
                .map(|which| of(&|effects, row| effects.change[which][row]))
                .collect(),
        }
    });
    SensorEffects {
        sensors: sensors.collect(),
        natural,
        ranks,
        verdict,
        differences: vec![],
        distance: scale_name(&found.scale),
        method: SensorMethod::ours(),
    }
}

/// The lines on a terminal.
fn lines(report: &SensorEffects) -> Vec<String> {
    let told = |(mean, interval): Mean| match interval {
        Some([low, high]) => format!("{mean:6.3} ({low:6.3} … {high:6.3})"),
        None => format!("{mean:6.3}"),
    };
    let mut lines =
        vec![format!("all sensors of another episode change the action by {}", told(report.natural))];
    lines.extend(report.sensors.iter().map(|sensor| {
        let change = sensor.change.first().copied().unwrap_or_default();
        format!("{:22} weight {}  {} {}", sensor.name, told(sensor.weight), INTERVENTIONS[0], told(change))
    }));
    lines.extend(report.ranks.iter().map(|test| {
        let RankTest { intervention, own, dealt, verdict, .. } = test;
        format!("rank correlation, {intervention:12} {}  null {}  {verdict}", told(*own), told(*dealt))
    }));
    lines.push(format!("sensors with larger weights move the action more: {}", report.verdict));
    lines.extend(report.differences.iter().cloned());
    lines
}

/// The sensor with the largest value of `of`.
fn first(report: &SensorEffects, of: impl Fn(&SensorFinding) -> f64) -> Option<&SensorFinding> {
    report.sensors.iter().max_by(|a, b| of(a).total_cmp(&of(b)))
}

fn tiles(report: &SensorEffects) -> Vec<Tile> {
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
    tiles
}

/// The interventions with which the claim is supported.
fn supported_with(report: &SensorEffects) -> String {
    let held = report.ranks.iter().filter(|test| test.verdict == "supported");
    let names: Vec<&str> = held.map(|test| &*test.intervention).collect();
    match names.len() {
        0 => "with none of three interventions".into(),
        3 => "with all three interventions, against weights dealt at random".into(),
        _ => format!("{}, against weights dealt at random; not with the others", names.join(" and ")),
    }
}

fn summary(report: &SensorEffects, episodes: usize) -> Vec<String> {
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
        let said = test.sentence("weight", "weights").map_or_else(
            || "all weights or all effects are equal, so their rank correlation is not defined.".into(),
            |said| format!("the {said}"),
        );
        told.push(format!("Sensors {}: {said}", test.intervention));
    }
    told.extend(report.differences.iter().cloned());
    told.extend(too_few(episodes));
    told
}

fn test_lead(report: &SensorEffects) -> Vec<String> {
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

fn tables(report: &SensorEffects) -> Vec<PageTable> {
    let mut columns = vec!["sensor".to_owned(), "share of attention".to_owned()];
    columns.extend(report.method.interventions.map(String::from));
    let rows = report.sensors.iter().map(|sensor| {
        let numbers = std::iter::once(&sensor.weight).chain(&sensor.change).copied().map(parts);
        std::iter::once(sensor.name.clone()).chain(numbers).collect()
    });
    let sensors = PageTable { lead: None, columns, rows: rows.collect() };
    let tests = report.ranks.iter().map(|test| {
        let [a, b, c, d, e, f, g] = test.cells();
        [test.intervention.clone(), a, b, c, d, e, f, g]
    });
    let columns = [
        "sensors",
        "rank correlation",
        "dealt at random",
        "another moment",
        "random weights",
        "above random",
        "above another moment",
        "verdict",
    ];
    vec![sensors, PageTable::new(columns, tests)]
}

/// Colours of the interventions.
const INKS: [Ink; 3] = [Ink::Control, Ink::Other, Ink::Extra];

fn claim_and_effect(report: &SensorEffects, episodes: usize) -> Figure {
    let all: f64 = report.sensors.iter().map(|sensor| sensor.change[0].0).sum();
    let part = |(mean, interval): Mean| -> Mean {
        let all = if all > 0.0 { all } else { 1.0 };
        (mean / all, interval.map(|ends: [f64; 2]| ends.map(|end| end / all)))
    };
    let rows = report.sensors.iter().flat_map(|sensor| {
        [
            dot(&*sensor.name, "share of attention", Ink::Attention, sensor.weight),
            dot(&*sensor.name, "share of effect", Ink::Control, part(sensor.change[0])),
        ]
    });
    dots(DotPlot {
        name: "claim-and-effect",
        title: "What it attends to, and what moves it",
        caption: format!(
            "Orange: the sensor's share of all absolute weights. Blue: its share of the change of the action when sensors are \
             knocked out one at a time; {}.",
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn interventions(report: &SensorEffects, episodes: usize) -> Figure {
    let rows = report.sensors.iter().flat_map(|sensor| {
        let each = sensor.change.iter().zip(INTERVENTIONS).zip(INKS);
        each.map(|((&change, kind), ink)| dot(&*sensor.name, kind, ink, change)).collect::<Vec<_>>()
    });
    dots(DotPlot {
        name: "sensor-interventions",
        title: "What each intervention does to the action",
        caption: format!(
            "Mean change of the action, as a part of its whole range, when one sensor is set to its mean over the episode \
             (blue: knocked out), holds its value of {} steps before (green: frozen), or has its value of a moment of \
             another episode (violet: replaced); {}.",
            report.method.freeze,
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "change of the action",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn ranks(report: &SensorEffects, episodes: usize) -> Figure {
    let rows = report.ranks.iter().flat_map(|test| {
        let each = [
            ("its weights", Ink::Attention, test.own),
            ("dealt at random", Ink::Muted, test.dealt),
            ("another moment", Ink::Control, test.other_moment),
            ("random weights", Ink::Other, test.random_agent),
        ];
        each.map(|(kind, ink, mean)| dot(format!("{}: {kind}", test.intervention), "", ink, mean))
    });
    dots(DotPlot {
        name: "rank-correlation",
        title: "Do sensors with larger weights move it more?",
        caption: format!(
            "Rank correlation over sensors of weight and change of the action, the mean over decisions; 1: the same order, 0: \
             none. Nulls: the same weights dealt to the sensors at random, and the weights of a moment of another episode. \
             Last, agents with random weights, of themselves; {}.",
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "rank correlation",
        domain: Some([-1.0, 1.0]),
        band: None,
        label: short,
        rows: rows.collect(),
    })
}

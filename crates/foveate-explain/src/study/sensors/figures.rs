//! The figures of a report on sensors.

use foveate_core::ImageBuf;

use super::super::Mean;
use super::super::report_page::count;
use super::probe::INTERVENTIONS;
use super::record::Record;
use super::{Found, RecoveredSensor, SensorReport};
use crate::charts::{DotPlot, DotRow, WHOLE, dots, percent, traces};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, Scale, short};
use crate::trajectory::Dimension;

/// Most rows of a table of weights; longer episodes are shown at evenly spaced moments.
const ROWS: usize = 40_000;
/// Left and right margin of figures over time.
const LEFT: f64 = 160.0;
const RIGHT: f64 = 52.0;

/// The figures by section of the page.
pub(super) struct Figures {
    pub(super) attention: Vec<Figure>,
    pub(super) tests: Vec<Figure>,
    pub(super) recovered: Vec<Figure>,
}

impl Figures {
    /// All of them, in the order of the page.
    pub(super) fn all(&self) -> impl Iterator<Item = &Figure> {
        self.attention.iter().chain(&self.tests).chain(&self.recovered)
    }
}

pub(super) fn figures(found: &Found, report: &SensorReport, dimensions: &[Dimension]) -> Figures {
    let shown = &found.records[0];
    let mut episode = shown.trajectory.clone();
    for action in &mut episode.actions {
        *action = found.scale.shown(action);
    }
    let mut trace = traces(&episode, dimensions);
    trace.caption = "Action and score at every step of the episode shown.".into();
    Figures {
        attention: vec![weights_over_time(shown), importance_over_time(shown), mean_weights(shown), trace],
        tests: vec![claim_and_effect(report), interventions(report), ranks(report)],
        recovered: report.recovered.iter().map(|recovered| recovery(&recovered.sensors, report)).collect(),
    }
}

/// A value from −1 (blue) over 0 (light) to 1 (red).
pub(super) fn diverging(value: f64) -> [u8; 3] {
    const ZERO: [f64; 3] = [244.0, 243.0, 240.0];
    const LOW: [f64; 3] = [38.0, 84.0, 164.0];
    const HIGH: [f64; 3] = [190.0, 60.0, 18.0];
    let part = if value.is_finite() { value.abs().min(1.0) } else { 0.0 };
    let end = if value < 0.0 { LOW } else { HIGH };
    std::array::from_fn(|i| (ZERO[i] + part * (end[i] - ZERO[i])).round() as u8)
}

/// The steps that are drawn: as many as the table has room for.
fn moments(steps: usize, rows_per_step: usize) -> Vec<usize> {
    let count = (ROWS / rows_per_step.max(1)).clamp(10, 2000).min(steps);
    (0..count).map(|i| i * steps / count.max(1)).collect()
}

/// Steps below a figure over time.
fn time_axis(sheet: &mut Drawing, steps: usize) {
    let bottom = sheet.height - 38.0;
    let x = Scale::new([0.0, steps.saturating_sub(1) as f64], [LEFT, WHOLE - RIGHT]);
    for tick in x.ticks(8) {
        sheet.tick((x.at(tick), bottom + 14.0), LETTERS, Anchor::Middle, short(tick));
    }
    sheet.text(
        (f64::midpoint(LEFT, WHOLE - RIGHT), bottom + 32.0),
        LETTERS,
        Anchor::Middle,
        Ink::Muted,
        "step",
    );
}

/// For every sensor a strip: a row for each code, a column for each step.
fn weights_over_time(record: &Record) -> Figure {
    let (sensors, readers) = (record.keys.len(), record.readers[0] * record.readers[1]);
    let moments = moments(record.len(), sensors * readers);
    let most = moments
        .iter()
        .flat_map(|&t| &record.codes[t])
        .fold(0.0_f32, |most, weight| most.max(weight.abs()))
        .max(f32::MIN_POSITIVE);
    let tall = (640.0 / sensors.max(1) as f64).clamp(16.0, 90.0);
    let mut sheet = Drawing::new(WHOLE, sensors as f64 * (tall + 6.0) + 56.0);
    let mut table = DataTable::new(&["step", "sensor", "head", "code", "weight"]);
    for (row, name) in record.names.iter().enumerate() {
        let mut strip = ImageBuf::black(moments.len().max(1), readers.max(1));
        for (column, &t) in moments.iter().enumerate() {
            for reader in 0..readers {
                let weight = record.codes[t][row * readers + reader];
                let at = 3 * (reader * moments.len() + column);
                strip.rgb_mut()[at..at + 3].copy_from_slice(&diverging(f64::from(weight / most)));
                let (head, code) = (reader / record.readers[1], reader % record.readers[1]);
                table.row([
                    t.into(),
                    name.as_str().into(),
                    head.into(),
                    code.into(),
                    f64::from(weight).into(),
                ]);
            }
        }
        let top = 8.0 + row as f64 * (tall + 6.0);
        sheet.picture([LEFT, top, WHOLE - RIGHT - LEFT, tall], strip);
        sheet.text((LEFT - 12.0, top + tall / 2.0 + 4.0), LETTERS, Anchor::End, Ink::Text, name.as_str());
    }
    time_axis(&mut sheet, record.len());
    Figure {
        name: "sensor-weights",
        title: "Weights of sensors and codes over time".into(),
        caption: format!(
            "For each sensor a row for each of its {readers} codes, a column for each step drawn ({} of {}). Red is \
             positive, blue negative, the strongest colour ±{}.",
            moments.len(),
            record.len(),
            short(f64::from(most))
        ),
        wide: true,
        drawing: sheet,
        table,
    }
}

/// Each sensor's share of all absolute weights, and its value.
fn importance_over_time(record: &Record) -> Figure {
    let sensors = record.keys.len();
    let moments = moments(record.len(), sensors);
    let share = |t: usize, row: usize| {
        let all: f32 = record.weights[t].iter().sum();
        if all > 0.0 { f64::from(record.weights[t][row] / all) } else { 0.0 }
    };
    let most = moments.iter().flat_map(|&t| (0..sensors).map(move |row| share(t, row))).fold(1e-9, f64::max);
    let (tall, gap) = ((560.0 / sensors.max(1) as f64).clamp(18.0, 54.0), 12.0);
    let mut sheet = Drawing::new(WHOLE, sensors as f64 * (tall + gap) + 56.0);
    let x = Scale::new([0.0, record.len().saturating_sub(1) as f64], [LEFT, WHOLE - RIGHT]);
    let mut table = DataTable::new(&["step", "sensor", "share of attention", "value"]);
    for (row, name) in record.names.iter().enumerate() {
        let top = 8.0 + row as f64 * (tall + gap);
        let values: Vec<f64> = moments.iter().map(|&t| f64::from(record.values[t][row])).collect();
        let ends = values
            .iter()
            .fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], &v| [low.min(v), high.max(v)]);
        let ends = if values.is_empty() { [0.0, 1.0] } else { ends };
        let (y, own) = (Scale::new([0.0, most], [top + tall, top]), Scale::new(ends, [top + tall, top]));
        sheet.line(vec![(LEFT, top + tall), (WHOLE - RIGHT, top + tall)], Ink::Grid, 1.0, 1.0);
        let line = |scale: &Scale, of: &dyn Fn(usize) -> f64| {
            moments
                .iter()
                .enumerate()
                .map(|(i, &t)| (x.at(t as f64), scale.within(of(i))))
                .collect::<Vec<_>>()
        };
        sheet.line(line(&own, &|i| values[i]), Ink::Muted, 0.8, 0.55);
        sheet.line(line(&y, &|i| share(moments[i], row)), Ink::Attention, 1.4, 1.0);
        sheet.text((LEFT - 12.0, top + tall / 2.0 + 4.0), LETTERS, Anchor::End, Ink::Text, name.as_str());
        sheet.tick((WHOLE - RIGHT + 8.0, top + 8.0), 11.0, Anchor::Start, percent(most));
        for (i, &t) in moments.iter().enumerate() {
            table.row([t.into(), name.as_str().into(), share(t, row).into(), values[i].into()]);
        }
    }
    time_axis(&mut sheet, record.len());
    Figure {
        name: "sensor-importance",
        title: "Which sensor it attends to, over time".into(),
        caption: "Orange: the sensor's share of all absolute weights, on one scale for all. Grey: its value, from its smallest \
                  to its largest in this episode."
            .into(),
        wide: true,
        drawing: sheet,
        table,
    }
}

/// The mean weight of every sensor for every code.
fn mean_weights(record: &Record) -> Figure {
    /// Most numbers of codes that fit below.
    const MOST: usize = 24;
    let (sensors, readers) = (record.keys.len(), record.readers[0] * record.readers[1]);
    let steps = record.codes.len().max(1) as f64;
    let mut means = vec![0.0; sensors * readers];
    for codes in &record.codes {
        for (mean, &code) in means.iter_mut().zip(codes) {
            *mean += f64::from(code) / steps;
        }
    }
    let most = means.iter().fold(0.0_f64, |most, mean| most.max(mean.abs())).max(1e-300);
    let mut matrix = ImageBuf::black(readers.max(1), sensors.max(1));
    let mut table = DataTable::new(&["sensor", "head", "code", "mean weight"]);
    for (at, &mean) in means.iter().enumerate() {
        let (row, reader) = (at / readers.max(1), at % readers.max(1));
        matrix.rgb_mut()[3 * at..3 * at + 3].copy_from_slice(&diverging(mean / most));
        table.row([
            record.names[row].as_str().into(),
            (reader / record.readers[1]).into(),
            (reader % record.readers[1]).into(),
            mean.into(),
        ]);
    }
    let pitch = (420.0 / sensors.max(1) as f64).clamp(16.0, 40.0);
    let mut sheet = Drawing::new(WHOLE, pitch * sensors as f64 + 54.0);
    sheet.picture([LEFT, 8.0, WHOLE - RIGHT - LEFT, pitch * sensors as f64], matrix);
    let across = (WHOLE - RIGHT - LEFT) / readers.max(1) as f64;
    for reader in (0..readers).step_by(readers.div_ceil(MOST).max(1)) {
        let x = LEFT + (reader as f64 + 0.5) * across;
        let code = (reader % record.readers[1]) as f64;
        sheet.tick((x, 8.0 + pitch * sensors as f64 + 16.0), LETTERS, Anchor::Middle, short(code));
    }
    for (row, name) in record.names.iter().enumerate() {
        let y = 8.0 + pitch * (row as f64 + 0.5) + 4.0;
        sheet.text((LEFT - 12.0, y), LETTERS, Anchor::End, Ink::Text, name.as_str());
    }
    let middle = f64::midpoint(LEFT, WHOLE - RIGHT);
    sheet.text((middle, sheet.height - 10.0), LETTERS, Anchor::Middle, Ink::Muted, "code");
    Figure {
        name: "sensor-codes",
        title: "Which code listens to which sensor".into(),
        caption: format!(
            "Mean weight over the episode. Red is positive, blue negative, the strongest colour ±{}.",
            short(most)
        ),
        wide: true,
        drawing: sheet,
        table,
    }
}

fn row(name: &str, kind: &str, ink: Ink, (value, interval): Mean) -> DotRow {
    DotRow { name: name.into(), kind: kind.into(), ink, value, interval, remark: None }
}

/// What bars show, in words.
fn bars(report: &SensorReport) -> String {
    match report.head.scores.len() {
        1 => "one episode has no interval".into(),
        n => format!("bars: 95 % over {n} episodes"),
    }
}

/// Colours of the interventions.
const INKS: [Ink; 3] = [Ink::Control, Ink::Other, Ink::Extra];

fn claim_and_effect(report: &SensorReport) -> Figure {
    let all: f64 = report.sensors.iter().map(|sensor| sensor.change[0].0).sum();
    let part = |(mean, interval): Mean| -> Mean {
        let all = if all > 0.0 { all } else { 1.0 };
        (mean / all, interval.map(|ends: [f64; 2]| ends.map(|end| end / all)))
    };
    let rows = report.sensors.iter().flat_map(|sensor| {
        [
            row(&sensor.name, "share of attention", Ink::Attention, sensor.weight),
            row(&sensor.name, "share of effect", Ink::Control, part(sensor.change[0])),
        ]
    });
    dots(DotPlot {
        name: "claim-and-effect",
        title: "What it attends to, and what moves it",
        caption: format!(
            "Orange: the sensor's share of all absolute weights. Blue: its share of the change of the action when sensors are \
             knocked out one at a time; {}.",
            bars(report)
        ),
        wide: true,
        axis: "share",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn interventions(report: &SensorReport) -> Figure {
    let rows = report.sensors.iter().flat_map(|sensor| {
        let each = sensor.change.iter().zip(INTERVENTIONS).zip(INKS);
        each.map(|((&change, kind), ink)| row(&sensor.name, kind, ink, change)).collect::<Vec<_>>()
    });
    dots(DotPlot {
        name: "sensor-interventions",
        title: "What each intervention does to the action",
        caption: format!(
            "Mean change of the action, as a part of its whole range, when one sensor is set to its mean over the episode \
             (blue: knocked out), holds its value of {} steps before (green: frozen), or has its value of a moment of \
             another episode (violet: replaced); {}.",
            report.method.freeze,
            bars(report)
        ),
        wide: true,
        axis: "change of the action",
        domain: None,
        band: None,
        label: percent,
        rows: rows.collect(),
    })
}

fn ranks(report: &SensorReport) -> Figure {
    let rows = report.ranks.iter().flat_map(|test| {
        let each = [
            ("its weights", Ink::Attention, test.own),
            ("dealt at random", Ink::Muted, test.dealt),
            ("another moment", Ink::Control, test.other_moment),
            ("random weights", Ink::Other, test.random_agent),
        ];
        each.map(|(kind, ink, mean)| row(&format!("{}: {kind}", test.intervention), "", ink, mean))
    });
    dots(DotPlot {
        name: "rank-correlation",
        title: "Do sensors with larger weights move it more?",
        caption: format!(
            "Rank correlation over sensors of weight and change of the action, the mean over decisions; 1: the same order, 0: \
             none. Nulls: the same weights dealt to the sensors at random, and the weights of a moment of another episode. \
             Last, agents with random weights, of themselves; {}.",
            bars(report)
        ),
        wide: true,
        axis: "rank correlation",
        domain: Some([-1.0, 1.0]),
        band: None,
        label: short,
        rows: rows.collect(),
    })
}

fn recovery(sensors: &[RecoveredSensor], report: &SensorReport) -> Figure {
    let lowest = sensors.iter().filter_map(|sensor| Some(sensor.interval?[0])).fold(0.0, f64::min);
    let rows =
        sensors.iter().map(|sensor| row(&sensor.name, "R²", Ink::Attention, (sensor.r2, sensor.interval)));
    dots(DotPlot {
        name: "recovered",
        title: "What the message still says of each sensor",
        caption: format!(
            "Share of a sensor's variance that a linear function of the controller's inputs explains, on {} that it was not \
             fitted on; 1: all of it, 0 or less: no more than the mean; {}.",
            count(report.recovered.as_ref().map_or(0, |r| r.scored_on), "step"),
            bars(report)
        ),
        wide: true,
        axis: "R²",
        domain: Some([lowest.max(-1.0), 1.0]),
        band: None,
        label: short,
        rows: rows.collect(),
    })
}

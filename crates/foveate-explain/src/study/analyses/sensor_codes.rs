//! Which sensors it attends to: weights over time, of every code.

use foveate_core::ImageBuf;
use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::sensors::MeasuredSensors;
use super::super::sensors::record::Record;
use super::super::words::count;
use crate::charts::{WHOLE, percent, traces};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, Scale, short};
use crate::page::Section;

/// Most rows of a table of weights; longer episodes are shown at evenly spaced moments.
const ROWS: usize = 40_000;
/// Left and right margin of figures over time.
const LEFT: f64 = 160.0;
const RIGHT: f64 = 52.0;

/// The attention to sensors, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SensorCodes {
    /// Heads of the attention, and queries (codes) of each.
    pub heads_and_codes: [usize; 2],
}

/// Which sensors it attends to.
#[derive(Debug)]
pub(in crate::study) struct WhichSensors;

impl Analysis for WhichSensors {
    fn name(&self) -> &'static str {
        "sensors"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredSensors>() else { return Ok(None) };
        let shown = &found.records[0];
        let heads_and_codes = shown.readers;
        let attend = format!(
            "{} attend to {}.",
            count(heads_and_codes[0] * heads_and_codes[1], "code"),
            count(Record::all_keys(&found.records).len(), "sensor"),
        );
        let mut trace = traces(&bench.shown.episode, &bench.dimensions);
        trace.caption = "Action and score at every step of the episode shown.".into();
        let section = Section {
            id: "attention".into(),
            title: "Which sensors it attends to".into(),
            lead: vec![format!(
                "{attend} A weight says how much a code takes of a sensor, and with which sign. In the film, columns are sensors in \
                 the world's order and rows are codes; red is positive, blue negative. All figures of this section are of the \
                 episode shown."
            )],
            figures: vec![weights_over_time(shown), importance_over_time(shown), mean_weights(shown), trace],
            ..Section::default()
        };
        Ok(Some(Finding {
            lines: vec![attend],
            section: Some(section),
            ..Finding::new(SensorCodes { heads_and_codes })
        }))
    }
}

/// A value from −1 (blue) over 0 (light) to 1 (red).
pub(in crate::study) fn diverging(value: f64) -> [u8; 3] {
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

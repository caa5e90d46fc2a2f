//! Sensors as linear functions of the controller's inputs, by least squares on steps that are not scored.

use foveate_core::Seed;
use foveate_core::statistics::{has_spread, mean, quantile};
use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::sensors::MeasuredSensors;
use super::super::sensors::record::{Key, Record};
use super::super::words::{count, dot, intervals, two, with_interval};
use crate::charts::{DotPlot, dots};
use crate::figure::{Figure, Ink, short};
use crate::least_squares::{Normal, Sample, told};
use crate::page::{PageTable, Section};

/// More inputs than this are not fitted: the normal equations take their number squared of memory.
const MOST_INPUTS: usize = 512;
/// Steps for each coefficient that an episode needs for a regression of its own.
const STEPS_PER_COEFFICIENT: usize = 10;
/// Resamples of whole episodes behind an interval.
const RESAMPLES: usize = 2000;
/// How well each sensor can be read from the controller's inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recovered {
    /// Numbers that the controller gets: the message.
    pub inputs: usize,
    /// Steps that the regression was fitted on: of every second episode, or the first half of a single one.
    pub fitted_on: usize,
    /// Steps that it was scored on: all others.
    pub scored_on: usize,
    /// The sensors.
    pub sensors: Vec<RecoveredSensor>,
}

/// How well a sensor can be read from the controller's inputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecoveredSensor {
    /// Its name.
    pub name: String,
    /// Explained share of its variance (R²); 1 = perfect, below 0 = worse than its mean.
    pub r2: f64,
    /// The 95 % interval over resamples of the scored episodes; `null` for one episode.
    pub interval: Option<[f64; 2]>,
    /// R² of one regression fitted on all steps of all episodes and scored on the same steps.
    pub in_sample: f64,
    /// R² of a regression for each episode, fitted on its steps and scored on the same steps: the mean over episodes of at
    /// least ten steps for each coefficient; `null` when there is none.
    pub by_episode: Option<f64>,
}

/// Fits and scores; `None` when there are no inputs, too many, or fewer steps than inputs.
pub(super) fn recover(records: &[Record]) -> Option<Recovered> {
    let inputs = records.first()?.inputs.first()?.len();
    let alike = |record: &Record| {
        record.inputs.len() == record.len() && record.inputs.iter().all(|given| given.len() == inputs)
    };
    if inputs == 0 || inputs > MOST_INPUTS || !records.iter().all(alike) {
        return None;
    }
    // Steps by episode, for fitting and for scoring.
    let steps: [Vec<(usize, std::ops::Range<usize>)>; 2] = if records.len() > 1 {
        [0, 1].map(|side| (side..records.len()).step_by(2).map(|e| (e, 0..records[e].len())).collect())
    } else {
        let (all, half) = (records[0].len(), records[0].len() / 2);
        [vec![(0, 0..half)], vec![(0, half..all)]]
    };
    let count = |side: usize| steps[side].iter().map(|(_, steps)| steps.len()).sum::<usize>();
    let (fitted_on, scored_on) = (count(0), count(1));
    if fitted_on <= inputs + 1 || scored_on < 2 {
        return None;
    }
    let all = steps[0].iter().flat_map(|(e, steps)| records[*e].inputs[steps.clone()].iter());
    let factor = Normal::new(inputs, all.map(Vec::as_slice))?;
    let whole = |record: &Record| 0..record.len();
    let everything = records.iter().flat_map(|record| record.inputs.iter().map(Vec::as_slice));
    let everything = Normal::new(inputs, everything)?;
    let long = |record: &&Record| record.len() >= STEPS_PER_COEFFICIENT * (inputs + 1);
    let each: Vec<(&Record, Normal)> = records
        .iter()
        .filter(long)
        .filter_map(|record| Some((record, Normal::new(inputs, record.inputs.iter().map(Vec::as_slice))?)))
        .collect();
    let own = |factor: &Normal, records: &[&Record], key: Key| {
        let fit = factor.solve(records.iter().flat_map(|record| samples(record, &whole(record), key)));
        let scored: Vec<Vec<Sample<'_>>> =
            records.iter().map(|record| samples(record, &whole(record), key).collect()).collect();
        explained(&mut sums(&fit, &scored).into_iter())
    };
    let records_by_reference: Vec<&Record> = records.iter().collect();
    let sensors = Record::all_keys(records).into_iter().filter_map(|(key, name)| {
        let fit = factor.solve(steps[0].iter().flat_map(|(e, steps)| samples(&records[*e], steps, key)));
        let scored: Vec<Vec<Sample<'_>>> =
            steps[1].iter().map(|(e, steps)| samples(&records[*e], steps, key).collect()).collect();
        let (r2, interval) = score(&fit, &scored)?;
        let in_sample = own(&everything, &records_by_reference, key)?;
        let by_episode: Vec<f64> =
            each.iter().filter_map(|(record, factor)| own(factor, &[*record], key)).collect();
        let by_episode = (!by_episode.is_empty()).then(|| mean(&by_episode));
        Some(RecoveredSensor { name, r2, interval, in_sample, by_episode })
    });
    Some(Recovered { inputs, fitted_on, scored_on, sensors: sensors.collect() })
}

/// The steps of an episode, if it shows the sensor.
fn samples<'a>(
    record: &'a Record,
    steps: &std::ops::Range<usize>,
    key: Key,
) -> impl Iterator<Item = Sample<'a>> + use<'a> {
    let row = record.row(key);
    steps.clone().filter_map(move |t| Some((&record.inputs[t][..], f64::from(record.values[t][row?]))))
}

/// For every episode: the sums of squared errors of the fit, and of the mean of all episodes.
fn sums(fit: &[f64], episodes: &[Vec<Sample<'_>>]) -> Vec<[f64; 2]> {
    let all = || episodes.iter().flatten();
    let count = all().count();
    let mean = all().map(|(_, value)| value).sum::<f64>() / count.max(1) as f64;
    episodes
        .iter()
        .map(|samples| {
            samples.iter().fold([0.0; 2], |[errors, spread], (row, value)| {
                [errors + (value - told(fit, row)).powi(2), spread + (value - mean).powi(2)]
            })
        })
        .collect()
}

/// R² of these sums; `None` without variance.
fn explained(sums: &mut dyn Iterator<Item = [f64; 2]>) -> Option<f64> {
    let [errors, spread] = sums.fold([0.0; 2], |all, sum| [all[0] + sum[0], all[1] + sum[1]]);
    (spread > 0.0).then(|| 1.0 - errors / spread)
}

/// R² and its interval over resamples of the episodes; `None` for a sensor without variance.
fn score(fit: &[f64], episodes: &[Vec<Sample<'_>>]) -> Option<(f64, Option<[f64; 2]>)> {
    let sums = sums(fit, episodes);
    let r2 = explained(&mut sums.iter().copied())?;
    let n = sums.len();
    let interval = has_spread(n).then(|| {
        let mut rng = Seed::root(0).child("recovered", 0).rng();
        let draws: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| explained(&mut (0..n).map(|_| sums[rng.below(n as u64) as usize])))
            .collect();
        [quantile(&draws, 0.025), quantile(&draws, 0.975)]
    });
    Some((r2, interval))
}

/// What the message to the controller says, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// The sensors as linear functions of the controller's inputs; `null` when it has none or too many.
    pub recovered: Option<Recovered>,
}

/// What the message says of each sensor.
#[derive(Debug)]
pub(in crate::study) struct MessageOfSensors;

impl Analysis for MessageOfSensors {
    fn name(&self) -> &'static str {
        "message"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(found) = bench.get::<MeasuredSensors>() else { return Ok(None) };
        let Some(recovered) = recover(&found.records) else {
            return Ok(Some(Finding::new(Message { recovered: None })));
        };
        let n = bench.episodes();
        let section = Section {
            id: "message".into(),
            title: "What the message says".into(),
            lead: vec![format!(
                "All that the controller gets are {}. A linear function of them was fitted to each sensor on {} and scored on {} of \
                 other {}.",
                count(recovered.inputs, "number"),
                count(recovered.fitted_on, "step"),
                recovered.scored_on,
                if n > 1 { "episodes" } else { "parts of the episode" }
            )],
            tables: vec![table(&recovered)],
            figures: vec![figure(&recovered, n)],
            ..Section::default()
        };
        let each: Vec<String> =
            recovered.sensors.iter().map(|sensor| format!("{} {}", sensor.name, two(sensor.r2))).collect();
        let told =
            format!("R² of a sensor, recovered from the message by linear regression: {}.", each.join(", "));
        let line = |sensor: &RecoveredSensor| {
            let r2 = match sensor.interval {
                Some([low, high]) => format!("{:6.3} ({low:6.3} … {high:6.3})", sensor.r2),
                None => format!("{:6.3}", sensor.r2),
            };
            let by_episode =
                sensor.by_episode.map(|r2| format!(", each episode by itself {r2:.3}")).unwrap_or_default();
            format!(
                "recovered from the message: {:22} R² {r2}; in sample {:.3}{by_episode}",
                sensor.name, sensor.in_sample
            )
        };
        Ok(Some(Finding {
            sentences: vec![told],
            lines: recovered.sensors.iter().map(line).collect(),
            section: Some(section),
            ..Finding::new(Message { recovered: Some(recovered) })
        }))
    }
}

/// R² by each way of fitting and scoring.
fn table(recovered: &Recovered) -> PageTable {
    let rows = recovered.sensors.iter().map(|sensor| {
        [
            sensor.name.clone(),
            with_interval((sensor.r2, sensor.interval)),
            two(sensor.in_sample),
            sensor.by_episode.map_or_else(|| "–".to_owned(), two),
        ]
    });
    let columns = [
        "R² of",
        "on steps that it was not fitted on",
        "fitted and scored on all steps",
        "fitted and scored on each episode by itself",
    ];
    PageTable::new(columns, rows)
}

fn figure(recovered: &Recovered, episodes: usize) -> Figure {
    let sensors = &recovered.sensors;
    let lowest = sensors.iter().filter_map(|sensor| Some(sensor.interval?[0])).fold(0.0, f64::min);
    let rows =
        sensors.iter().map(|sensor| dot(&*sensor.name, "R²", Ink::Attention, (sensor.r2, sensor.interval)));
    dots(DotPlot {
        name: "recovered",
        title: "What the message still says of each sensor",
        caption: format!(
            "Share of a sensor's variance that a linear function of the controller's inputs explains, on {} that it was not \
             fitted on; 1: all of it, 0 or less: no more than the mean; {}.",
            count(recovered.scored_on, "step"),
            intervals("bars", episodes)
        ),
        wide: true,
        axis: "R²",
        domain: Some([lowest.max(-1.0), 1.0]),
        band: None,
        label: short,
        rows: rows.collect(),
    })
}

#[cfg(test)]
mod tests {
    use foveate_core::Rng;

    use super::*;

    #[test]
    fn a_linear_function_is_found_and_noise_is_not() {
        let mut rng: Rng = Seed::root(3).rng();
        let rows: Vec<Vec<f32>> =
            (0..300).map(|_| (0..6).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()).collect();
        let linear = |row: &[f32]| 2.0 - 3.0 * f64::from(row[0]) + 0.5 * f64::from(row[5]);
        let noise: Vec<f64> = rows.iter().map(|_| rng.normal()).collect();
        let normal = Normal::new(6, rows[..200].iter().map(Vec::as_slice)).expect("finite");
        let fit = normal.solve(rows[..200].iter().map(|row| (&row[..], linear(row))));
        for (found, expect) in fit.iter().zip([-3.0, 0.0, 0.0, 0.0, 0.0, 0.5, 2.0]) {
            assert!((found - expect).abs() < 1e-5, "{fit:?}");
        }
        let test = |of: &dyn Fn(usize) -> f64, fit: &[f64]| {
            let episodes: Vec<Vec<Sample<'_>>> = (200..300)
                .collect::<Vec<usize>>()
                .chunks(20)
                .map(|steps| steps.iter().map(|&t| (&rows[t][..], of(t))).collect())
                .collect();
            score(fit, &episodes).expect("it varies")
        };
        let (r2, interval) = test(&|t| linear(&rows[t]), &fit);
        assert!(r2 > 0.999_999 && interval.is_some_and(|[low, _]| low > 0.999_99), "{r2} {interval:?}");
        let fit = normal.solve(rows[..200].iter().zip(&noise).map(|(row, &value)| (&row[..], value)));
        let (r2, interval) = test(&|t| noise[t], &fit);
        let [low, high] = interval.expect("five episodes");
        assert!(r2 < 0.1 && low < r2 && r2 < high, "{r2} {interval:?}");
        assert_eq!(
            score(&fit, &[vec![(&rows[0], 1.0), (&rows[1], 1.0)]]),
            None,
            "a constant has no variance"
        );
        assert!(Normal::new(1, [&[f32::NAN][..]].into_iter()).is_none());
        // Two inputs that repeat each other.
        let twice: Vec<Vec<f32>> = rows.iter().map(|row| vec![row[0], row[0]]).collect();
        let normal = Normal::new(2, twice.iter().map(Vec::as_slice)).expect("finite");
        let fit = normal.solve(twice.iter().map(|row| (&row[..], f64::from(row[0]))));
        assert!((fit[0] + fit[1] - 1.0).abs() < 1e-4, "{fit:?}");
    }
}

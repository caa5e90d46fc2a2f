//! An episode as numbers, sensor by sensor.

use foveate_core::episode::{AfterStep, BeforeChoice, BeforeStep, Observer};
use foveate_core::{Attention, Env, EvaluateError, ImageBuf, Observation, Tokens};

use super::super::StudyError;
use super::super::analyses::sensor_codes::diverging;
use super::super::film::{FilmRecorder, FinishedFilm};
use super::super::play::EpisodeStart;
use crate::original_order::sensor_name;
use crate::trajectory::Trajectory;

/// A sensor of the world, and which of several copies: `u32::MAX` is none of the world's, such as a channel of noise.
pub(in crate::study) type Key = (u32, u32);

/// An episode; `rows` are the sensors that are shown, in the world's order.
pub(in crate::study) struct Record {
    /// `[rows]`: which sensors, rising.
    pub(in crate::study) keys: Vec<Key>,
    /// `[rows]`: their names.
    pub(in crate::study) names: Vec<String>,
    /// `[steps, rows]`
    pub(in crate::study) values: Vec<Vec<f32>>,
    /// `[steps, rows]`: absolute weights, summed over heads and queries.
    pub(in crate::study) weights: Vec<Vec<f32>>,
    /// `[steps][rows, heads × queries]`: the weights themselves, of the shown episode alone.
    pub(in crate::study) codes: Vec<Vec<f32>>,
    /// `[steps]`: the controller's inputs.
    pub(in crate::study) inputs: Vec<Vec<f32>>,
    /// Heads, and queries of each.
    pub(in crate::study) readers: [usize; 2],
    pub(in crate::study) trajectory: Trajectory,
    /// The film of the shown episode, and the size of the picture of weights in it.
    pub(in crate::study) film: Option<(FinishedFilm, [usize; 2])>,
}

impl Record {
    /// Decisions.
    pub(in crate::study) fn len(&self) -> usize {
        self.trajectory.len()
    }

    /// The row of a sensor.
    pub(in crate::study) fn row(&self, key: Key) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// Every sensor of any episode with its name, in the world's order.
    pub(in crate::study) fn all_keys(records: &[Record]) -> Vec<(Key, String)> {
        let mut all: Vec<(Key, String)> = records
            .iter()
            .flat_map(|record| record.keys.iter().copied().zip(record.names.iter().cloned()))
            .collect();
        all.sort();
        all.dedup_by_key(|(key, _)| *key);
        all
    }

    /// `[rows]`: the mean of each sensor over the episode.
    pub(in crate::study) fn means(&self) -> Vec<f32> {
        let n = self.values.len().max(1) as f64;
        (0..self.keys.len())
            .map(|row| (self.values.iter().map(|values| f64::from(values[row])).sum::<f64>() / n) as f32)
            .collect()
    }
}

/// For every number that `env` shows now, in the world's order: which sensor it is, and where it is shown.
pub(in crate::study) fn places(env: &dyn Env, shown: usize) -> Result<Vec<(Key, usize)>, StudyError> {
    let order = env.sensor_order();
    if let Some(order) = order
        && order.len() != shown
    {
        let why = format!("{} shows {shown} numbers and an order of {}", env.spec().id, order.len());
        return Err(StudyError::Refused { why });
    }
    let mut places: Vec<(u32, usize)> =
        (0..shown).map(|i| (order.map_or(i as u32, |order| order[i]), i)).collect();
    places.sort_unstable();
    let mut copies = 0;
    let mut before = None;
    Ok(places
        .into_iter()
        .map(|(sensor, at)| {
            copies = if before == Some(sensor) { copies + 1 } else { 0 };
            before = Some(sensor);
            ((sensor, copies), at)
        })
        .collect())
}

/// The numbers that the world shows, and nothing else.
pub(in crate::study) fn numbers(env: &dyn Env) -> Result<&[f32], StudyError> {
    match env.observation() {
        Observation::Vector(numbers) => Ok(numbers),
        other => Err(StudyError::Refused {
            why: format!("{} shows {}, and sensors are numbers alone", env.spec().id, other.describe()),
        }),
    }
}

/// The weights by sensor: `[shown]` absolute sums, and `[heads × queries]` of each number shown.
pub(in crate::study) fn weights(attention: &Attention<'_>, shown: usize) -> Result<Vec<f32>, StudyError> {
    let refused = |what: String| {
        Err(StudyError::Refused {
            why: format!("the agent attends to {what}, and the world shows {shown} numbers"),
        })
    };
    match attention.tokens() {
        Tokens::Named(names) if names.len() == shown => {}
        Tokens::Named(names) => return refused(format!("{} named tokens", names.len())),
        _ => return refused("places of a picture".into()),
    }
    let mut sums = vec![0.0; shown];
    for row in attention.weights().chunks_exact(shown) {
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum += weight.abs();
        }
    }
    Ok(sums)
}

/// Plays an episode and writes it down, with a film if it is to be shown.
pub(in crate::study) fn record(
    mut start: EpisodeStart,
    names: &[String],
    shown: bool,
    stopped: &dyn Fn() -> bool,
) -> Result<Record, StudyError> {
    let places = places(&*start.env, numbers(&*start.env)?.len())?;
    let keys: Vec<Key> = places.iter().map(|(key, _)| *key).collect();
    let record = Record {
        names: keys.iter().map(|&(sensor, copy)| sensor_name(sensor, copy, names)).collect(),
        keys,
        values: vec![],
        weights: vec![],
        codes: vec![],
        inputs: vec![],
        readers: [0; 2],
        trajectory: Trajectory::default(),
        film: None,
    };
    let mut writer = Writer { record, shown, camera: None, matrix: ImageBuf::black(1, 1), stopped };
    start.run(&mut writer)?;
    let Writer { mut record, camera, matrix, .. } = writer;
    if record.len() > 0 {
        record.inputs.push(start.agent.inputs().to_vec());
    }
    if let Some(mut camera) = camera {
        camera.shoot(&*start.env, matrix.as_image())?;
        record.film = Some((camera.finish()?, [matrix.width(), matrix.height()]));
    }
    Ok(record)
}

struct Writer<'a> {
    record: Record,
    shown: bool,
    camera: Option<FilmRecorder>,
    /// The weights as a picture: a column for each sensor, a row for each query.
    matrix: ImageBuf,
    stopped: &'a dyn Fn() -> bool,
}

impl Writer<'_> {
    /// Films the world before this decision beside the weights of it.
    fn film(&mut self, env: &dyn Env, codes: &[f32]) -> Result<(), StudyError> {
        /// Height and width of the picture of weights in the film, about, in pixels: as square as an agent's picture,
        /// however many codes there are for a sensor.
        const SIDE: usize = 176;
        let (columns, rows) = (self.record.keys.len(), self.record.readers[0] * self.record.readers[1]);
        let [across, down] = [columns, rows].map(|cells| (SIDE / cells.max(1)).max(1));
        if self.camera.is_none() {
            self.matrix = ImageBuf::black(columns * across, rows * down);
            self.camera = Some(FilmRecorder::new(env, columns * across, rows * down)?);
        }
        let most = codes.iter().fold(0.0_f32, |most, weight| most.max(weight.abs())).max(f32::MIN_POSITIVE);
        let width = columns * across;
        for (at, pixel) in self.matrix.rgb_mut().as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let (column, row) = (at % width / across, at / width / down);
            *pixel = diverging(f64::from(codes[column * rows + row] / most));
        }
        let matrix = self.matrix.as_image();
        self.camera.as_mut().map_or(Ok(()), |camera| camera.shoot(env, matrix))
    }
}

impl Observer<StudyError> for Writer<'_> {
    fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
        if (self.stopped)() {
            return Err(EvaluateError::Stopped.into());
        }
        if now.step > 0 {
            // Those of the decision before this one.
            self.record.inputs.push(now.agent.map(|agent| agent.inputs().to_vec()).unwrap_or_default());
        }
        Ok(())
    }

    fn before_step(&mut self, BeforeStep { env, chosen, .. }: BeforeStep<'_>) -> Result<(), StudyError> {
        let numbers = numbers(env)?;
        let places = places(env, numbers.len())?;
        let record = &mut self.record;
        if places.iter().map(|(key, _)| key).ne(&record.keys) {
            let why = format!(
                "{} shows other sensors in the middle of an episode than at its start",
                env.spec().id
            );
            return Err(StudyError::Refused { why });
        }
        let Some(decision) = chosen.decision else { return Ok(()) };
        let Some(attention) = decision.attention else {
            return Err(StudyError::Refused {
                why: "the agent attends to nothing in some of its decisions".into(),
            });
        };
        let sums = weights(&attention, numbers.len())?;
        record.readers = [attention.heads(), attention.queries()];
        record.values.push(places.iter().map(|&(_, at)| numbers[at]).collect());
        record.weights.push(places.iter().map(|&(_, at)| sums[at]).collect());
        record.trajectory.actions.push(decision.action.to_vec());
        record.trajectory.selected.push(vec![]);
        record.trajectory.shares.push(vec![]);
        if self.shown {
            let shown = numbers.len();
            let each = |&(_, at): &(Key, usize)| attention.weights().iter().skip(at).step_by(shown).copied();
            let codes: Vec<f32> = places.iter().flat_map(each).collect();
            self.film(env, &codes)?;
            self.record.codes.push(codes);
        }
        Ok(())
    }

    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), StudyError> {
        self.record.trajectory.rewards.push(step.outcome.reward);
        self.record.trajectory.ended = step.outcome.is_over();
        Ok(())
    }
}

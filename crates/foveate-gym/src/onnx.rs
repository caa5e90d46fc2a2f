//! ONNX models as agents, which worker processes answer for.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use foveate_core::{
    ActContext, ActionSpace, Agent, Decision, EnvSpec, Observation, ObservationSpace, PixelShape,
    PolicyError, Seed, TensorShape, Threads, as_probabilities,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::GymError;
use crate::find::find_python;
use crate::process::{MAX_OBSERVATION, NoStart, PROTOCOL, Process, Trouble, granted};
use crate::settings::Settings;

/// The Python program that asks a session of onnxruntime as a policy: the class `OnnxModel`.
pub const ONNX_PROGRAM: &str = include_str!("worker/onnx.py");
/// What makes a worker answer for a model.
const MODEL: &str = concat!(include_str!("worker/onnx.py"), include_str!("worker/model.py"));
/// Largest file of a model, in bytes; the format itself ends there.
const MAX_MODEL: u64 = 2 << 30;
/// Largest recurrent state, in bytes.
const MAX_STATE: usize = 16 << 20;

/// An ONNX model that is known to load, with its worker processes, which onnxruntime runs in.
pub struct OnnxModel {
    /// Of the file, in errors.
    name: String,
    python: PathBuf,
    job: Value,
    start_timeout: Duration,
    timeout: Duration,
    has_state: bool,
    idle: Mutex<Vec<Process>>,
}

impl fmt::Debug for OnnxModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnnxModel").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The worker's answer when it has loaded the model.
#[derive(Deserialize)]
struct Loaded {
    /// How many of its inputs are a state.
    states: usize,
}

impl OnnxModel {
    /// Loads the model of the file at `path` for a world of `spec`. It is shown the observations of the environment of `settings`, if it
    /// acts in one of Gymnasium's, and otherwise those of the world.
    ///
    /// # Errors
    /// When there is no Python with onnxruntime, or when the file is no ONNX model of a policy.
    pub fn load(path: &Path, spec: &EnvSpec, settings: Option<&Settings>) -> Result<Arc<Self>, GymError> {
        let usual = Settings::new("");
        let limits = settings.unwrap_or(&usual);
        let env = settings.map(|settings| {
            json!({
                "id": settings.id, "args": settings.args, "wrapper": settings.wrapper, "path": settings.path,
                "image": settings.image, "more": settings.program.map(|program| program.source),
            })
        });
        let mut parts = vec![];
        list(&spec.observation, "", &mut parts);
        let model = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let job = json!({
            "protocol": PROTOCOL, "job": "model", "more": MODEL, "model": model, "env": env, "parts": parts,
            "megabytes": limits.memory, "most_bytes": MAX_MODEL, "most_state": MAX_STATE,
        });
        let mut made = OnnxModel {
            name: path.display().to_string(),
            python: find_python()?.path,
            job,
            start_timeout: limits.start_timeout,
            timeout: limits.timeout,
            has_state: false,
            idle: Mutex::default(),
        };
        let (process, loaded) = made.start().map_err(|why| match why {
            NoStart::Error(error) => error,
            NoStart::Trouble(trouble) => {
                GymError::NoAnswer { id: made.name.clone(), why: trouble.to_string() }
            }
        })?;
        made.has_state = loaded.states > 0;
        made.idle = Mutex::new(vec![process]);
        Ok(Arc::new(made))
    }

    /// Whether its answers depend on what it saw before.
    pub const fn has_state(&self) -> bool {
        self.has_state
    }

    fn start(&self) -> Result<(Process, Loaded), NoStart> {
        let (process, answer) = Process::begin(&self.python, &self.job, &[], self.start_timeout)?;
        Ok((process, granted(&self.name, answer).map_err(NoStart::Error)?))
    }

    fn answer(&self, seen: &[u8], state: &[u8]) -> Result<Vec<u8>, PolicyError> {
        let failed = |why: String| PolicyError::BadConfig { why };
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // A worker may have been killed from outside, so another is asked once more.
        let mut again = true;
        loop {
            let taken = idle().pop();
            let mut process = match taken {
                Some(process) => process,
                None => match self.start() {
                    Ok((process, _)) => process,
                    Err(NoStart::Error(error)) => return Err(failed(error.to_string())),
                    Err(NoStart::Trouble(trouble)) => return Err(failed(trouble.to_string())),
                },
            };
            match process.question(seen, state, self.timeout) {
                Ok(answer) => {
                    idle().push(process);
                    return Ok(answer);
                }
                Err(Trouble::Gone(_)) if again => again = false,
                Err(trouble) => return Err(failed(trouble.to_string())),
            }
        }
    }
}

/// Lets all workers end at the same time.
impl Drop for OnnxModel {
    fn drop(&mut self) {
        for process in self.idle.get_mut().unwrap_or_else(PoisonError::into_inner) {
            process.hang_up();
        }
    }
}

/// Name, kind of numbers, and shape of every part of an observation, in the order in which [`write`] appends them.
fn list(space: &ObservationSpace, name: &str, parts: &mut Vec<Value>) {
    match space {
        &ObservationSpace::Image(PixelShape { frames, height, width, channels }) => {
            let shape = [frames, height, width, channels];
            parts.push(json!([name, "u1", shape[usize::from(frames == 1)..]]));
        }
        &ObservationSpace::Grid { rows, columns, channels } => {
            parts.push(json!([name, "u1", [rows, columns, channels]]));
        }
        ObservationSpace::Vector { len } => parts.push(json!([name, "<f4", [len]])),
        ObservationSpace::Dict(all) => all.iter().for_each(|(name, part)| list(part, name, parts)),
    }
}

fn write(observation: Observation<'_>, bytes: &mut Vec<u8>) {
    match observation {
        Observation::Image(pixels) => bytes.extend_from_slice(pixels.bytes()),
        Observation::Grid(grid) => bytes.extend_from_slice(grid.codes()),
        Observation::Vector(numbers) => {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        Observation::Dict(parts) => {
            for (_, part) in (0..parts.count()).filter_map(|i| parts.part(i)) {
                write(part, bytes);
            }
        }
    }
}

/// An ONNX model as an agent: an observation in, an action or a score for each choice out.
pub struct OnnxAgent {
    model: Arc<OnnxModel>,
    space: ActionSpace,
    seen: Vec<u8>,
    /// Empty at the beginning of an episode.
    state: Vec<u8>,
    action: Vec<f64>,
}

impl OnnxAgent {
    /// The model as an agent in a world of `spec`.
    pub fn new(model: Arc<OnnxModel>, spec: &EnvSpec) -> Self {
        OnnxAgent { model, space: spec.action.clone(), seen: vec![], state: vec![], action: vec![] }
    }

    /// Reads an answer: whether it is a choice, how many numbers the action has, these numbers, the state.
    fn take(&mut self, answer: &[u8]) -> Result<(), PolicyError> {
        let wrong = |why: String| PolicyError::BadConfig { why };
        let broken = || wrong("its worker's answer is broken".into());
        let (&[a, b, c, d, e, f, g, h], rest) = answer.split_first_chunk::<8>().ok_or_else(broken)?;
        let (choice, count) = (u32::from_le_bytes([a, b, c, d]) == 1, u32::from_le_bytes([e, f, g, h]));
        let (numbers, state) = rest.split_at_checked(8 * count as usize).ok_or_else(broken)?;
        let numbers = numbers.as_chunks::<8>().0.iter().map(|&bytes| f64::from_le_bytes(bytes));
        self.action.clear();
        self.action.extend(numbers);
        if let Some(index) = self.action.iter().position(|number| !number.is_finite()) {
            let why = format!("number {index} of its action is {}; take finite numbers", self.action[index]);
            return Err(wrong(why));
        }
        let described = self.space.describe();
        match self.space {
            ActionSpace::Discrete { n } if choice => {
                let &[given] = &*self.action else { return Err(broken()) };
                let chosen = (0..n).find(|&i| i as f64 == given);
                let chosen =
                    chosen.ok_or_else(|| wrong(format!("it chose {given}; an action is {described}")))?;
                self.action.clear();
                self.action.resize(n, 0.0);
                self.action[chosen] = 1.0;
            }
            ActionSpace::Discrete { n } => {
                if self.action.len() != n {
                    return Err(wrong(format!(
                        "its action has {} numbers; take {described}, or a score for each of {n} choices",
                        self.action.len()
                    )));
                }
                as_probabilities(&mut self.action, false);
            }
            ActionSpace::Box { .. } => {
                let wanted = self.space.len();
                if self.action.len() != wanted {
                    return Err(wrong(format!(
                        "its action has {} numbers; take {wanted}",
                        self.action.len()
                    )));
                }
            }
        }
        self.state.clear();
        self.state.extend_from_slice(state);
        Ok(())
    }
}

impl Agent for OnnxAgent {
    fn begin_episode(&mut self, _: Seed) {
        self.state.clear();
    }

    fn act(&mut self, observation: Observation<'_>, _: &mut ActContext) -> Result<Decision<'_>, PolicyError> {
        self.seen.clear();
        write(observation, &mut self.seen);
        if self.seen.len() > MAX_OBSERVATION {
            let why = format!(
                "an observation of {} bytes; at most {MAX_OBSERVATION} are possible",
                self.seen.len()
            );
            return Err(PolicyError::BadConfig { why });
        }
        let answer = self.model.answer(&self.seen, &self.state)?;
        self.take(&answer)?;
        Ok(Decision::new(&self.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn params(&self) -> Vec<f32> {
        vec![]
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.is_empty() {
            return Ok(());
        }
        Err(PolicyError::ParamCount { wanted: 0, given: flat.len(), tensors: "none".into() })
    }

    fn set_threads(&mut self, _: &Threads) {}

    fn boxed_clone(&self) -> Box<dyn Agent> {
        Box::new(OnnxAgent {
            model: Arc::clone(&self.model),
            space: self.space.clone(),
            seen: vec![],
            state: self.state.clone(),
            action: self.action.clone(),
        })
    }
}

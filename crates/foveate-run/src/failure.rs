//! Failed rollouts, stored so that they can be reproduced.
//!
//! A rollout depends only on its genome and its seed, so a file with both reproduces it. The actions are
//! stored for replays without the agent.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use foveate_core::episode::{ActionRecorder, Episode, EpisodeRules};
use foveate_core::{
    ActMode, Agent, DemonstrationPlan, Env, EvaluateError, FailedJob, Purpose, Record, RolloutJob, one_line,
    run_episode, set_weights,
};
use serde::{Deserialize, Serialize};

use crate::checkpoint::hex;
use crate::config::{AgentSection, EnvSection};
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::input;
use crate::replay;
use crate::trust::WorldSpec;
use crate::worlds;

const FORMAT: &str = "foveate-failure-1";
/// Larger files are refused.
const MAX_FILE: u64 = 256 << 20;

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(x: &f64) -> bool {
    *x == 0.0
}

/// A rollout that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// Identifies the file format.
    format: String,
    /// Version of the program.
    pub version: String,
    /// The error message.
    pub what: String,
    /// The purpose of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Purpose>,
    /// The current generation, or the one after which weights were tested.
    pub generation: u64,
    /// Index of the genome.
    pub genome: usize,
    /// Index of the genome's episode.
    pub episode: usize,
    /// The seed of the world's reset.
    pub env_seed: u64,
    /// The step of the failure.
    pub step: u64,
    /// Steps after which the episode would have been truncated.
    pub max_steps: u64,
    /// Negative rewards in a row after which the rollout would have been cut off.
    pub patience: Option<u32>,
    /// The plan of the demonstration, if it was one.
    #[serde(default, alias = "lesson", skip_serializing_if = "Option::is_none")]
    pub demonstration: Option<DemonstrationPlan>,
    /// Probability with which an ε-greedy agent took a random action in training.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epsilon: f64,
    /// True if an agent that draws its actions did so outside of training.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draw_actions: bool,
    /// The world.
    pub env: EnvSection,
    /// The agent.
    pub agent: AgentSection,
    /// Its parameters as hexadecimal bytes of little-endian `f32`, since they may be NaN or infinite.
    pub weights: String,
    /// The agent's actions in every step up to the failure; empty when the failure did not recur, or in a
    /// demonstration.
    pub actions: Vec<Vec<f64>>,
}

/// A failed rollout that is to be recorded.
pub(crate) struct FailedRollout<'a> {
    pub(crate) generation: u64,
    pub(crate) env: (&'a EnvSection, &'a dyn Env),
    pub(crate) agent: (&'a AgentSection, &'a dyn Agent),
    pub(crate) weights: &'a [f32],
    pub(crate) purpose: Purpose,
    pub(crate) rules: EpisodeRules,
    pub(crate) record: Record,
    pub(crate) epsilon: f64,
    pub(crate) draw_actions: bool,
}

/// The plan of the demonstrations of such a rollout, if it is one.
const fn plan(record: Record) -> Option<DemonstrationPlan> {
    match record {
        Record::Demonstrations(plan) => Some(plan),
        Record::Returns | Record::Derivatives | Record::Window { .. } | Record::Transitions { .. } => None,
    }
}

impl Failure {
    /// Repeats the rollout of `error` to record the agent's actions; `None` when the error does not concern a
    /// rollout.
    pub(crate) fn record(rollout_of: &FailedRollout<'_>, error: &EvaluateError) -> Option<Self> {
        let (job, step, what) = parts(error)?;
        let RolloutJob { genome, episode, env_seed } = job;
        let FailedRollout { generation, env, agent, weights, purpose, rules, record, epsilon, draw_actions } =
            rollout_of;
        let demonstration = plan(*record);
        let mut actions = ActionRecorder::default();
        let again = run_job(
            env.1,
            agent.1,
            weights,
            (*rules, demonstration, purpose.mode(*epsilon, *draw_actions)),
            job,
            &mut actions,
        );
        // In a demonstration the expert and disturbances act as well, so the agent's own actions would not
        // reproduce it.
        let same = demonstration.is_none() && again.is_some_and(|again| parts(&again) == parts(error));
        Some(Failure {
            format: FORMAT.into(),
            version: crate::VERSION.into(),
            what,
            purpose: Some(*purpose),
            generation: *generation,
            genome,
            episode,
            env_seed,
            step,
            max_steps: rules.max_steps,
            patience: rules.patience,
            demonstration,
            epsilon: *epsilon,
            draw_actions: *draw_actions,
            env: env.0.clone(),
            agent: agent.0.clone(),
            weights: hex(&weights.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>()),
            actions: if same { actions.actions } else { Vec::new() },
        })
    }

    /// The name of its file.
    pub fn file_name(&self) -> String {
        let Failure { generation, genome, episode, .. } = self;
        let judges = self.purpose.filter(|purpose| !purpose.trains());
        let what = judges.map_or("generation", Purpose::label);
        format!("{what}-{generation:06}-genome-{genome}-episode-{episode}.json")
    }

    /// Writes its file into `folder` atomically.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, folder: &FolderHandle) -> Result<(), RunError> {
        let name = self.file_name();
        let text = serde_json::to_string(self)
            .map_err(|error| RunError::BadRequest { why: format!("{name}: {error}") })?;
        folder.write(&name, text + "\n")
    }

    /// Reads a file that a run wrote.
    ///
    /// # Errors
    /// When it cannot be read or is not a file of this format.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let bad = |why: String| RunError::BadRequest {
            why: format!("{}: {why}; give a file from the folder `failures` of a run", path.display()),
        };
        let bytes = input::read(path, MAX_FILE)?.map_err(|size| bad(format!("{size} bytes are too many")))?;
        let mut failure: Failure =
            serde_json::from_slice(&bytes).map_err(|error| bad(one_line(&error.to_string())))?;
        failure.env.came_from(path.display(), WorldSpec::default());
        if failure.format != FORMAT {
            return Err(bad(format!("its format is {:?}", failure.format)));
        }
        failure.params().ok_or_else(|| bad("its weights are no hexadecimal numbers".into()))?;
        Ok(failure)
    }

    fn params(&self) -> Option<Vec<f32>> {
        let (numbers, rest) = self.weights.as_bytes().as_chunks::<8>();
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let number = |digits: &[u8; 8]| {
            let mut bytes = [0; 4];
            for (byte, pair) in bytes.iter_mut().zip(digits.as_chunks::<2>().0) {
                *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(f32::from_le_bytes(bytes))
        };
        if rest.is_empty() { numbers.iter().map(number).collect() } else { None }
    }

    fn job(&self) -> RolloutJob {
        RolloutJob { genome: self.genome, episode: self.episode, env_seed: self.env_seed }
    }

    /// Builds world and agent and repeats the rollout; returns the error of this repetition, `None` if it
    /// succeeds.
    ///
    /// # Errors
    /// When world or agent cannot be built.
    pub fn again(&self) -> Result<Option<EvaluateError>, RunError> {
        let (env, agent) = (self.world()?, self.agent.build()?);
        let weights = self.params().unwrap_or_default();
        let rules = EpisodeRules { max_steps: self.max_steps, patience: self.patience };
        // Files from before the purpose was recorded are of training.
        let mode = self.purpose.unwrap_or(Purpose::Training).mode(self.epsilon, self.draw_actions);
        let rules = (rules, self.demonstration, mode);
        Ok(run_job(&*env, &*agent, &weights, rules, self.job(), &mut ActionRecorder::default()))
    }

    /// Returns whether `error` is the recorded failure.
    pub fn is(&self, error: &EvaluateError) -> bool {
        parts(error) == Some((self.job(), self.step, self.what.clone()))
    }

    /// Replays the recorded actions and writes the world's results to `trace`, up to the failing step.
    ///
    /// # Errors
    /// As [`replay::replay`], without the error of the failing step itself.
    pub fn trace(&self, trace: &mut dyn Write) -> Result<(), RunError> {
        let mut env = self.world()?;
        let space = &env.spec().action;
        let line = |action: &Vec<f64>| space.choose(action).map(|action| action.to_string());
        let text = self.actions.iter().map(line).collect::<Result<Vec<_>, _>>()?;
        let text = text.join("\n");
        let mut play = || replay::replay(&mut *env, self.env_seed, "actions", &mut text.as_bytes(), trace);
        match catch_unwind(AssertUnwindSafe(&mut play)) {
            // The step that panicked, or that the world rejected, is the last.
            Err(_) | Ok(Ok(_) | Err(RunError::Actions { .. })) => Ok(()),
            Ok(Err(error)) => Err(error),
        }
    }

    fn world(&self) -> Result<Box<dyn Env>, RunError> {
        worlds::make(self.env.request()?)
    }
}

/// The rollout of an error, its step, and its message.
fn parts(error: &EvaluateError) -> Option<(RolloutJob, u64, String)> {
    error.failed().map(|FailedJob { job, step, what }| (job, step, what))
}

/// The genome of an error.
pub(crate) fn genome(error: &EvaluateError) -> Option<usize> {
    parts(error).map(|(job, ..)| job.genome)
}

/// Runs one rollout as a worker does, and returns its error; `actions` receives the agent's actions.
fn run_job(
    env: &dyn Env,
    agent: &dyn Agent,
    weights: &[f32],
    (rules, demonstration, mode): (EpisodeRules, Option<DemonstrationPlan>, ActMode),
    job: RolloutJob,
    actions: &mut ActionRecorder,
) -> Option<EvaluateError> {
    let mut whole = Episode::new(job, rules).with_mode(mode);
    let rollout = || {
        let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
        set_weights(&mut *agent, weights, job)?;
        match demonstration {
            None => whole.run(&mut *env, &mut *agent, actions),
            Some(plan) => {
                let record = Record::Demonstrations(plan);
                Ok(run_episode(&mut whole, &mut *env, &mut *agent, record)?.0)
            }
        }
    };
    match catch_unwind(AssertUnwindSafe(rollout)) {
        Ok(done) => done.err(),
        Err(panic) => Some(whole.broken(format!("panicked: {}", crate::pool::message(&*panic)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_toy::{ToyWorld, toy_agent};

    const JOB: RolloutJob = RolloutJob { genome: 3, episode: 1, env_seed: 5 };
    const RULES: EpisodeRules = EpisodeRules { max_steps: 40, patience: Some(20) };

    fn sections() -> (EnvSection, AgentSection) {
        let config = crate::config::TrainConfig::load("laptop", None, &[""; 0]).expect("the preset");
        (config.env, config.agent)
    }

    fn recorded(world: &ToyWorld, weights: &[f32]) -> Failure {
        let (env, agent) = sections();
        let toy = toy_agent(0.0);
        let error = run_job(
            world,
            &toy,
            weights,
            (RULES, None, ActMode::Explore { epsilon: 0.0 }),
            JOB,
            &mut ActionRecorder::default(),
        )
        .expect("it fails");
        let rollout_of = FailedRollout {
            generation: 12,
            env: (&env, world),
            agent: (&agent, &toy),
            weights,
            purpose: Purpose::Training,
            rules: RULES,
            record: Record::Returns,
            epsilon: 0.0,
            draw_actions: false,
        };
        let failure = Failure::record(&rollout_of, &error).expect("a rollout");
        assert!(failure.is(&error));
        failure
    }

    #[test]
    fn a_failure_holds_all_that_led_to_it() {
        let panicked = recorded(&ToyWorld::panicking(5, 7), &[-0.5, 0.1, 0.0]);
        assert_eq!((panicked.what.as_str(), panicked.step), ("panicked: the toy broke", 7));
        assert_eq!(panicked.actions.len(), 7, "the action that broke the world is the last");
        assert_eq!(panicked.file_name(), "generation-000012-genome-3-episode-1.json");

        let blind = recorded(&ToyWorld::default(), &[f32::NAN, 0.1, 0.0]);
        assert_eq!((blind.what.as_str(), blind.step), ("the agent's action[0] is NaN", 1));
        assert_eq!(blind.actions.len(), 0, "what is no number is no action");

        let rich = recorded(&ToyWorld::paying(&[1.0, f64::INFINITY]), &[0.0; 3]);
        assert_eq!((rich.what.as_str(), rich.step, rich.actions.len()), ("the reward is inf", 2, 2));

        for failure in [panicked, blind, rich] {
            let dir = tempfile::tempdir().expect("a temporary folder");
            let path = dir.path().join(failure.file_name());
            failure.save(&FolderHandle::open(dir.path()).expect("ours")).expect("writable");
            let read = Failure::read(&path).expect("its own file");
            assert_eq!(read, failure);
            let bits =
                |f: &Failure| f.params().expect("ours").iter().map(|w| w.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&read), bits(&failure));
        }
    }

    #[test]
    fn foreign_files_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let good = recorded(&ToyWorld::panicking(5, 7), &[0.0; 3]);
        let path = dir.path().join(good.file_name());
        good.save(&FolderHandle::open(dir.path()).expect("ours")).expect("writable");
        let text = std::fs::read_to_string(&path).expect("readable");
        for (from, to, wants) in [
            ("\"format\":\"foveate-failure-1\"", "\"format\":\"x\"", "its format is \"x\""),
            ("\"weights\":\"00", "\"weights\":\"0x", "no hexadecimal"),
            ("\"weights\":\"00", "\"weights\":\"0", "no hexadecimal"),
            ("\"weights\":\"00", "\"weights\":\"é", "no hexadecimal"),
            ("\"step\":7", "\"step\":-7", "invalid value"),
            ("\"what\"", "\"why\"", "unknown field"),
        ] {
            assert!(text.contains(from), "{text}");
            std::fs::write(&path, text.replace(from, to)).expect("writable");
            let said = Failure::read(&path).expect_err(wants).to_string();
            assert!(said.contains(wants) && said.contains("; give a file from the folder"), "{said}");
        }
        assert!(Failure::read(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_line_break_in_a_key_stays_within_one_line() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("failure.json");
        std::fs::write(&path, "{\"versi\\n\": 1}").expect("written");
        let said = Failure::read(&path).expect_err("an unknown key").to_string();
        assert!(said.contains("unknown field `versi `") && said.lines().count() == 1, "{said}");
    }
}

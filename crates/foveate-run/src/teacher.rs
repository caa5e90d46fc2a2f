//! The world of a run whose stages learn from a trained agent.

use foveate_core::Env;
use foveate_envs::registry::EnvRequest;
use foveate_envs::taught::Taught;
use foveate_train::Teacher;

use crate::error::RunError;
use crate::weights::AgentFile;
use crate::{initial, worlds};

/// The world of `request`, whose expert is `teacher` if there is one. The teacher sees the world itself, before shifts and
/// wrappers, which are the pupil's.
///
/// # Errors
/// As [`worlds::make`], and when the teacher's weights cannot be read or are not those that a run started with.
pub(crate) fn world(request: EnvRequest, teacher: Option<&Teacher>) -> Result<Box<dyn Env>, RunError> {
    let file = teacher.map(load).transpose()?;
    taught(request, file.as_ref())
}

/// The teacher's weights.
///
/// # Errors
/// When they cannot be read or are not those that a run started with.
pub(crate) fn load(Teacher { weights, sha256 }: &Teacher) -> Result<AgentFile, RunError> {
    initial::load("teacher", weights, sha256.as_deref())
}

/// As [`world`], with the teacher's weights.
///
/// # Errors
/// As [`worlds::make`].
pub(crate) fn taught(request: EnvRequest, teacher: Option<&AgentFile>) -> Result<Box<dyn Env>, RunError> {
    let Some(teacher) = teacher else { return worlds::make(request) };
    let agent = teacher.agent()?;
    worlds::make_around(request, |env| Ok(Box::new(Taught::new(env, agent))))
}

#[cfg(test)]
mod tests {
    use foveate_agents::registry;
    use foveate_core::{ActContext, Action, Seed};
    use serde_json::json;

    use super::*;

    /// A network that minds the order of the five numbers.
    fn file(inputs: usize) -> AgentFile {
        let settings =
            json!({ "observation": vec![[-3.0, 3.0]; inputs], "actions": [[-1.0, 1.0]], "discrete": false });
        let params =
            registry::initial_params("actor-critic", &settings, registry::Init::Torch, Seed::root(4));
        AgentFile::new("actor-critic", &settings, params.expect("good settings")).expect("they fit")
    }

    fn taught(inputs: usize, shifts: &[&str]) -> Result<Box<dyn Env>, RunError> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let weights = dir.path().join("teacher.safetensors");
        file(inputs).save(&weights).expect("writable");
        let shifts = shifts.iter().map(|&shift| shift.to_owned()).collect();
        let request = EnvRequest { id: "cartpole-swingup-harder".into(), shifts, ..EnvRequest::default() };
        world(request, Some(&Teacher { weights, sha256: None }))
    }

    /// The teacher's actions in the first steps of an episode.
    fn advice(env: &mut dyn Env, seed: u64) -> Vec<f64> {
        env.reset(Some(seed));
        let step = |env: &mut dyn Env| {
            let mut action = [0.0];
            env.expert(&mut action).expect("a teacher");
            env.step(Action::Continuous(&action)).expect("it runs");
            action[0]
        };
        (0..15).map(|_| step(env)).collect()
    }

    #[test]
    fn the_expert_is_the_teacher_who_sees_the_world_without_shifts() {
        let mut agent = file(5).agent().expect("an agent");
        let mut plain =
            worlds::make(EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() })
                .expect("native");
        plain.reset(Some(8));
        agent.begin_episode(Seed::root(0));
        let alone: Vec<f64> = (0..15)
            .map(|_| {
                let decision = agent.act(plain.observation(), &mut ActContext::default()).expect("it acts");
                let action = decision.action[0];
                plain.step(Action::Continuous(&[action])).expect("it runs");
                action
            })
            .collect();
        let mut env = taught(5, &[]).expect("it fits");
        assert_eq!(advice(&mut *env, 8), alone);
        assert_ne!(advice(&mut *env, 9), alone);
        assert_eq!(advice(&mut *env.boxed_clone(), 8), alone);
        let mut shuffled = taught(5, &["shuffle:5"]).expect("it fits");
        assert_eq!(advice(&mut *shuffled, 8), alone);
        assert_ne!(shuffled.observation().numbers(), env.observation().numbers());
    }

    #[test]
    fn a_teacher_of_another_world_is_refused() {
        let mut env = taught(4, &[]).expect("only its first decision shows it");
        env.reset(Some(1));
        let said = env.expert(&mut [0.0]).expect_err("other numbers").to_string();
        assert!(said.contains("cartpole-swingup-harder: the teacher cannot act here: "), "{said}");
        let missing = Teacher { weights: "nowhere.safetensors".into(), sha256: None };
        let request = EnvRequest { id: "cartpole-swingup-harder".into(), ..EnvRequest::default() };
        let said = world(request, Some(&missing)).err().expect("no file").to_string();
        assert!(said.contains("nowhere.safetensors"), "{said}");
    }
}

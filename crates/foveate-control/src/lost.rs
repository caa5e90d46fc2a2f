//! A copy that could not be made.

use foveate_core::{Action, Env, EnvError, EnvSpec, Observation, Step};
use foveate_mujoco::{Data, MujocoError};

use crate::drawing::Failure;
use crate::shown::ShownParts;

/// Stands for the copy of a world for which there was not enough memory: it shows what the original shows, and each reset and each
/// step returns the error.
#[derive(Clone)]
pub(crate) struct Lost {
    pub(crate) spec: EnvSpec,
    pub(crate) shown: ShownParts,
    pub(crate) why: Failure,
}

/// A copy of a simulation; a new one for one that failed and must be reset anyway.
pub(crate) fn copy_of(data: &Data) -> Result<Data, MujocoError> {
    match data.copied() {
        Err(MujocoError::Broken { .. }) => Data::new(data.model()),
        copy => copy,
    }
}

impl Lost {
    fn error(&self) -> EnvError {
        let why = format!("no copy can be made: {}; start fewer workers, or close other programs", self.why);
        EnvError::Outside { env: self.spec.id.clone(), why }
    }
}

impl Env for Lost {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, _: Option<u64>) {}

    fn reset_error(&self) -> Option<EnvError> {
        Some(self.error())
    }

    fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
        Err(self.error())
    }

    fn observation(&self) -> Observation<'_> {
        self.shown.observation()
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::ActionSpace;

    use super::*;
    use crate::shown::Shown;

    #[test]
    fn a_copy_without_memory_says_so_at_each_reset_and_step() {
        let spec = EnvSpec {
            id: "cheetah-run".into(),
            observation: Shown::State.space(3, [1, 1]),
            action: ActionSpace::Discrete { n: 2 },
            max_steps: None,
            fps: 1.0,
        };
        let why = MujocoError::Failed { function: "mj_copyData", why: "there is not enough memory".into() };
        let lost = Lost { spec, shown: ShownParts::new(Shown::State, 3, [1, 1]), why: why.into() };
        let mut copy = lost.boxed_clone();
        copy.reset(Some(1));
        let error = copy.step(Action::Discrete(0)).expect_err("there is no simulation");
        assert_eq!(copy.reset_error().as_ref(), Some(&error));
        assert_eq!(copy.observation().numbers(), Some(&[0.0; 3][..]));
        assert_eq!(
            error.to_string(),
            "cheetah-run: no copy can be made: MuJoCo failed in mj_copyData: there is not enough memory; \
             start fewer workers, or close other programs"
        );
    }
}

//! [`Taught`]: a world whose expert is a trained agent.

use foveate_core::{ActContext, Action, Agent, Env, EnvError, EnvSpec, Observation, Seed, Step};

/// A world whose expert is an agent, a teacher for one that sees less, or otherwise.
///
/// The teacher gets the observations of this world; put shifts and wrappers, which are the pupil's, around it. It does not
/// explore. Otherwise it is the world that it holds.
pub struct Taught {
    env: Box<dyn Env>,
    teacher: Box<dyn Agent>,
    /// Of the teacher, who does not explore.
    context: ActContext,
    /// True if the teacher has begun the episode.
    begun: bool,
}

impl Taught {
    /// `env` with `teacher` as its expert; the first decision shows whether it is an agent for this world.
    pub fn new(env: Box<dyn Env>, teacher: Box<dyn Agent>) -> Self {
        Taught { env, teacher, context: ActContext::default(), begun: false }
    }
}

impl Env for Taught {
    fn inner(&self) -> Option<&dyn Env> {
        Some(&*self.env)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Env> {
        Some(&mut *self.env)
    }

    fn spec(&self) -> &EnvSpec {
        self.env.spec()
    }

    fn reset(&mut self, seed: Option<u64>) {
        self.env.reset(seed);
        self.begun = false;
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.env.step(action)
    }

    fn repeat(&mut self, action: Action<'_>, times: u64) -> Result<Step, EnvError> {
        self.env.repeat(action, times)
    }

    fn observation(&self) -> Observation<'_> {
        self.env.observation()
    }

    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let Taught { env, teacher, context, begun } = self;
        let id = &env.spec().id;
        if !*begun {
            // Whatever a teacher draws is the same in every episode: demonstrations depend on nothing but the episode.
            teacher.begin_episode(Seed::root(0));
            (*context, *begun) = (ActContext::default(), true);
        }
        let decision = teacher.act(env.observation(), context).map_err(|error| {
            let why = format!(
                "the teacher cannot act here: {error}; it sees the world without wrappers and shifts"
            );
            EnvError::BadOption { env: id.clone(), why }
        })?;
        if decision.action.len() != action.len() {
            return Err(EnvError::ActionLength {
                env: id.clone(),
                wanted: action.len(),
                given: decision.action.len(),
            });
        }
        if let Some(index) = decision.action.iter().position(|x| !x.is_finite()) {
            return Err(EnvError::ActionNotFinite { env: id.clone(), index, value: decision.action[index] });
        }
        action.copy_from_slice(decision.action);
        Ok(())
    }

    /// None: the world's own expert says what actions cost, and the teacher is another one.
    fn costs(&mut self, _: &mut Vec<f64>) -> Result<(), EnvError> {
        Err(EnvError::NoCosts { env: self.spec().id.clone() })
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(Taught {
            env: self.env.boxed_clone(),
            teacher: self.teacher.boxed_clone(),
            context: self.context.clone(),
            begun: self.begun,
        })
    }
}

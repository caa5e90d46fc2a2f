//! [`Taught`]: a world whose expert is a trained agent.

use foveate_core::{
    ActContext, Action, Agent, Env, EnvError, EnvSpec, Fact, GazePoint, GridView, ImageBuf, Observation,
    Seed, StateEdit, Step, StepDerivatives,
};

/// A world whose expert is an agent, a teacher for one that sees less, or otherwise.
///
/// The teacher gets the observations of this world; put shifts and wrappers, which are the pupil's, around it. It does not
/// explore. Otherwise it is the world that it holds.
pub struct Taught {
    env: Box<dyn Env>,
    teacher: Box<dyn Agent>,
    /// Of the teacher, who does not explore.
    context: ActContext,
    /// Whether the teacher has begun the episode.
    begun: bool,
}

impl Taught {
    /// `env` with `teacher` as its expert; the first decision shows whether it is an agent for this world.
    pub fn new(env: Box<dyn Env>, teacher: Box<dyn Agent>) -> Self {
        Taught { env, teacher, context: ActContext::default(), begun: false }
    }
}

impl Env for Taught {
    fn spec(&self) -> &EnvSpec {
        self.env.spec()
    }

    fn reset(&mut self, seed: Option<u64>) {
        self.env.reset(seed);
        self.begun = false;
    }

    fn reset_error(&self) -> Option<EnvError> {
        self.env.reset_error()
    }

    fn reset_option(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        self.env.reset_option(name, value)
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.env.step(action)
    }

    fn observation(&self) -> Observation<'_> {
        self.env.observation()
    }

    fn score(&self, total: f64) -> f64 {
        self.env.score(total)
    }

    fn task(&self) -> usize {
        self.env.task()
    }

    fn tasks(&self) -> Vec<&'static str> {
        self.env.tasks()
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        self.env.render(view)
    }

    fn state(&self) -> Fact {
        self.env.state()
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

    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        self.env.gaze(points)
    }

    fn derivatives(&self, action: &[f64], derivatives: &mut StepDerivatives) -> Result<(), EnvError> {
        self.env.derivatives(action, derivatives)
    }

    fn sensor_order(&self) -> Option<&[u32]> {
        self.env.sensor_order()
    }

    fn grid_view(&self) -> Option<GridView> {
        self.env.grid_view()
    }

    fn kinds(&self) -> &'static [&'static str] {
        self.env.kinds()
    }

    fn situation(&self, quantities: &mut Vec<(&'static str, f64)>) {
        self.env.situation(quantities);
    }

    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        self.env.edit_state(edit)
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

//! Demonstrations: records, for every step, the action of the world's expert.

use super::{Actor, ActorError, Chosen, RawAction};
use crate::{
    ActContext, ActionSpace, Agent, Demonstration, DemonstrationPlan, Env, EnvError, PolicyError, Rng,
    RolloutJob, Seed, StudyInputs,
};

/// Range of a push's duration in steps.
const PUSH_STEPS: std::ops::Range<u64> = 5..17;
/// Standard deviation of a push, as a share of the action's range.
const PUSH: f64 = 0.3;

/// Acts with the agent or the world's expert, as the plan says, and records a [`Demonstration`] of the
/// expert's actions.
pub struct DemonstrationActor<'a> {
    agent: &'a mut dyn Agent,
    plan: DemonstrationPlan,
    /// Of the pushes.
    rng: Rng,
    /// Of the turns in which the expert takes the learner's place.
    turns: Rng,
    /// True if this turn is the expert's, and how many of its steps are left.
    expert_acts: bool,
    turn_left: u64,
    /// Lower and upper bound of every action.
    range: Vec<[f64; 2]>,
    /// What the current push adds to every action; `left` is the number of steps that it still lasts.
    push: Vec<f64>,
    left: u64,
    /// The expert's action.
    advice: Vec<f64>,
    /// The action taken.
    action: Vec<f64>,
    /// What actions cost.
    costs: Vec<f64>,
    /// A grey picture in colours.
    rgb: Vec<u8>,
    demonstration: &'a mut Demonstration,
}

impl<'a> DemonstrationActor<'a> {
    /// An actor for one episode in a world with the action space `space`. Clears `demonstration`. The pushes, and the turns
    /// in which the expert takes the learner's place, depend on the job's seed alone.
    pub fn new(
        plan: DemonstrationPlan,
        job: RolloutJob,
        space: &ActionSpace,
        agent: &'a mut dyn Agent,
        demonstration: &'a mut Demonstration,
    ) -> Self {
        *demonstration = Demonstration::default();
        // Scores of choices range from 0 to 1.
        let range = space.bounds();
        let zeros = vec![0.0; range.len()];
        DemonstrationActor {
            agent,
            plan,
            rng: Seed::root(job.env_seed).child("pushes", 0).rng(),
            turns: Seed::root(job.env_seed).child("turns", 0).rng(),
            expert_acts: false,
            turn_left: 0,
            push: zeros.clone(),
            left: 0,
            advice: zeros.clone(),
            action: zeros,
            costs: vec![],
            rgb: vec![],
            range,
            demonstration,
        }
    }

    /// Records what the learner's controller gets.
    fn record_inputs(&mut self) -> Result<(), ActorError> {
        let StudyInputs { numbers, picture } = self.agent.study_inputs()?;
        if numbers.is_empty() && picture.is_empty() {
            let why =
                "this agent has no part that learns by gradients, so there are no demonstrations for it"
                    .into();
            return Err(PolicyError::BadConfig { why }.into());
        }
        self.demonstration.inputs.extend_from_slice(numbers);
        if !picture.is_empty() {
            self.demonstration.pictures.push(picture);
        }
        Ok(())
    }

    /// Records the observed picture and where the expert looks on it.
    fn record_gaze(&mut self, env: &mut dyn Env) -> Result<(), ActorError> {
        let mut points = vec![];
        env.gaze(&mut points)?;
        let Some(pixels) = env.observation().image() else {
            return Err(EnvError::NoGaze { env: env.spec().id.clone() }.into());
        };
        self.demonstration.pictures.push(pixels.to_rgb(&mut self.rgb).rgb());
        self.demonstration.gaze.push(points);
        Ok(())
    }

    /// Adds the current push, if any, to the action.
    fn disturb(&mut self) {
        let DemonstrationActor { plan, rng, range, push, left, action, .. } = self;
        // Drawn in every step, so that one push does not shift the random numbers of the others.
        let begins = rng.next_f64() < plan.pushes / 100.0;
        if begins && *left == 0 {
            *left = PUSH_STEPS.start + rng.below(PUSH_STEPS.end - PUSH_STEPS.start);
            for (push, [low, high]) in push.iter_mut().zip(&*range) {
                *push = PUSH * (high - low) * rng.normal();
            }
        }
        if *left > 0 {
            *left -= 1;
            for ((action, push), [low, high]) in action.iter_mut().zip(push).zip(&*range) {
                *action = (*action + *push).clamp(*low, *high);
            }
        }
    }
}

impl Actor for DemonstrationActor<'_> {
    fn begin_episode(&mut self, episode: Seed) {
        self.agent.begin_episode(episode);
    }

    fn act(&mut self, env: &mut dyn Env, _: u64, context: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        env.expert(&mut self.advice)?;
        let by = if self.plan.expert_drives {
            self.agent.observe(env.observation(), context)?;
            &self.advice[..]
        } else {
            if self.turn_left == 0 {
                self.turn_left = self.plan.turn.max(1);
                self.expert_acts = self.turns.next_f64() < self.plan.expert_share;
            }
            self.turn_left -= 1;
            let action = self.agent.act(env.observation(), context)?.action;
            if self.expert_acts { &self.advice } else { action }
        };
        if by.len() != self.action.len() {
            let why = format!("the agent gives {} actions, the world takes {}", by.len(), self.action.len());
            return Err(PolicyError::BadConfig { why }.into());
        }
        self.action.copy_from_slice(by);
        if self.plan.gaze {
            self.record_gaze(env)?;
        } else {
            self.record_inputs()?;
        }
        if self.plan.costs {
            env.costs(&mut self.costs)?;
            self.demonstration.costs.extend(self.costs.iter().map(|&x| x as f32));
        }
        self.demonstration.actions.extend(self.advice.iter().map(|&x| x as f32));
        self.demonstration.steps += 1;
        if self.action.iter().all(|x| x.is_finite()) {
            self.disturb();
        }
        self.agent.acted(&self.action);
        Ok(Chosen { action: RawAction::Outputs(&self.action), decision: None })
    }

    fn agent(&self) -> Option<&dyn Agent> {
        Some(&*self.agent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::episode::tests::Constant;
    use crate::episode::{Episode, EpisodeRules};
    use crate::{
        Action, Decision, EnvSpec, EvaluateError, GazePoint, Image, ImageBuf, Observation, ObservationSpace,
        Policy, PolicyAgent, Step, TensorShape,
    };

    /// A world of three steps that shows their number in every byte; its expert looks at as many points.
    #[derive(Clone)]
    struct Shower {
        spec: EnvSpec,
        at: u8,
        picture: Vec<u8>,
        /// The first number of each action.
        taken: Vec<f64>,
    }

    impl Env for Shower {
        fn spec(&self) -> &EnvSpec {
            &self.spec
        }
        fn reset(&mut self, _: Option<u64>) {
            (self.at, self.picture) = (0, vec![0; 24]);
        }
        fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
            let Action::Continuous(action) = action else { panic!("{action:?}") };
            self.taken.push(action[0]);
            self.at += 1;
            self.picture.fill(self.at);
            Ok(Step { reward: 1.0, terminated: self.at == 3, truncated: false })
        }
        fn observation(&self) -> Observation<'_> {
            Observation::rgb(Image::new(4, 2, &self.picture).expect("24 bytes"))
        }
        fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
            Ok(())
        }
        fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
            action.fill(0.5);
            Ok(())
        }
        fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
            costs.clear();
            costs.extend([f64::from(self.at), 0.0, 0.25]);
            Ok(())
        }
        fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
            points.clear();
            points.resize(self.at.into(), GazePoint { x: 0.5, y: 0.25, weight: 2.0 });
            Ok(())
        }
        fn boxed_clone(&self) -> Box<dyn Env> {
            Box::new(self.clone())
        }
    }

    /// The demonstration of an agent whose actions are all 0, and the first number of each action taken.
    fn recorded(plan: DemonstrationPlan, env_seed: u64) -> Result<(Demonstration, Vec<f64>), String> {
        recorded_with(&mut PolicyAgent::new(Constant([0.0; 3])), plan, env_seed)
    }

    fn recorded_with(
        agent: &mut dyn Agent,
        plan: DemonstrationPlan,
        env_seed: u64,
    ) -> Result<(Demonstration, Vec<f64>), String> {
        let spec = EnvSpec {
            id: "shower".into(),
            observation: ObservationSpace::rgb(4, 2),
            action: ActionSpace::Box { low: vec![-1.0; 3], high: vec![1.0; 3] },
            max_steps: None,
            fps: 1.0,
        };
        let mut env = Shower { spec: spec.clone(), at: 0, picture: vec![], taken: vec![] };
        let mut demonstration = Demonstration::default();
        let mut episode = Episode::new(RolloutJob { genome: 0, episode: 0, env_seed }, EpisodeRules::WHOLE);
        let mut actor = DemonstrationActor::new(plan, episode.job(), &spec.action, agent, &mut demonstration);
        episode.run(&mut env, &mut actor, &mut ()).map_err(|error: EvaluateError| error.to_string())?;
        Ok((demonstration, env.taken))
    }

    /// Acts with zeros; a student of it learns from the last action that was done, its own or another.
    #[derive(Clone)]
    struct Feels;

    impl Policy for Feels {
        type Memory = ([f64; 3], [f32; 2]);
        fn memory(&self) -> Self::Memory {
            Default::default()
        }
        fn reset(&self, _: &mut Self::Memory, _: Seed) {}
        fn act<'m>(
            &self,
            _: Observation<'_>,
            (zeros, [before, now]): &'m mut Self::Memory,
            _: &mut ActContext,
        ) -> Result<Decision<'m>, PolicyError> {
            (*before, *now) = (*now, 0.0);
            Ok(Decision::new(zeros))
        }
        fn acted(&self, action: &[f64], (_, [_, now]): &mut Self::Memory) {
            *now = action[0] as f32;
        }
        fn study_inputs<'m>(&self, (_, told): &'m Self::Memory) -> Result<StudyInputs<'m>, PolicyError> {
            Ok(StudyInputs { numbers: &told[..1], picture: &[] })
        }
        fn tensors(&self) -> Vec<TensorShape> {
            vec![]
        }
        fn params(&self) -> Vec<f32> {
            vec![]
        }
        fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
            Ok(())
        }
    }

    #[test]
    fn an_agent_is_told_what_was_done_in_its_place() {
        let expert = DemonstrationPlan { expert_drives: true, ..DemonstrationPlan::default() };
        let pushed = DemonstrationPlan { pushes: 100.0, ..DemonstrationPlan::default() };
        for (plan, differs) in [(DemonstrationPlan::default(), false), (expert, true), (pushed, true)] {
            let (demonstration, taken) = recorded_with(&mut PolicyAgent::new(Feels), plan, 1).expect("fine");
            let done: Vec<f32> = [0.0].iter().chain(&taken[..2]).map(|&x| x as f32).collect();
            assert_eq!(demonstration.inputs, done, "{plan:?}");
            assert_eq!(done[1] != 0.0, differs, "{plan:?}");
        }
    }

    #[test]
    fn pictures_gazes_and_costs_are_recorded_when_asked_for() {
        let plan = DemonstrationPlan {
            gaze: true,
            costs: true,
            expert_drives: true,
            ..DemonstrationPlan::default()
        };
        let (demonstration, taken) = recorded(plan, 1).expect("fine");
        let Demonstration { inputs, pictures, actions, costs, gaze, steps } = demonstration;
        assert_eq!(taken, [0.5; 3], "the expert's");
        assert_eq!((steps, inputs.len(), actions), (3, 0, vec![0.5; 9]));
        assert_eq!(gaze.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(costs, [0.0, 0.0, 0.25, 1.0, 0.0, 0.25, 2.0, 0.0, 0.25]);
        let mut picture = [9; 24];
        for step in 0..3 {
            pictures.unpack(step, &mut picture).expect("it is there");
            assert_eq!(picture, [step as u8; 24]);
        }
        let refused = recorded(DemonstrationPlan::default(), 1).expect_err("nothing learns");
        assert!(refused.contains("no part that learns by gradients"), "{refused}");
    }

    #[test]
    fn the_expert_acts_in_its_share_of_the_steps() {
        let taken_in_turns = |turn, expert_share, seed| {
            let plan = DemonstrationPlan { gaze: true, expert_share, turn, ..DemonstrationPlan::default() };
            recorded(plan, seed).expect("fine").1
        };
        let taken = |expert_share, seed| taken_in_turns(1, expert_share, seed);
        assert_eq!((taken(0.0, 1), taken(1.0, 1)), (vec![0.0; 3], vec![0.5; 3]));
        assert_eq!(taken(0.5, 4), taken(0.5, 4), "the seed decides");
        let many: Vec<f64> = (0..100).flat_map(|seed| taken(0.25, seed)).collect();
        let share = many.iter().sum::<f64>() / 0.5 / many.len() as f64;
        assert!((0.15..0.35).contains(&share), "{share}");
        let turns: Vec<_> = (0..100).map(|seed| taken_in_turns(2, 0.5, seed)).collect();
        assert!(turns.iter().all(|taken| taken[0] == taken[1]), "a turn of two steps");
        assert!(turns.iter().any(|taken| taken[1] != taken[2]), "then it is drawn anew");
    }
}

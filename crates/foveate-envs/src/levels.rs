//! [`Levels`]: several tasks as one world, of which each episode is one.

use foveate_core::{Action, Env, EnvError, EnvSpec, Fact, Observation, Seed, Step};

use crate::registry::ReferenceScores;

/// A task, and the scores by which its returns are normalised.
pub struct Level {
    /// The task.
    pub env: Box<dyn Env>,
    /// The scores of random play and of a person.
    pub scores: ReferenceScores,
    /// Its share of the episodes, relative to those of the other tasks, at least 1.
    pub share: u64,
}

/// Several tasks with the same observations and actions as one world. Each episode is of one of them, which its seed draws in
/// proportion to their [shares](Level::share).
///
/// An episode [counts](Env::score) as its human-normalised score in percent, at most 100: so no task outweighs the others
/// (Mott et al. 2019 compare agents by the mean of such capped scores).
pub struct Levels {
    spec: EnvSpec,
    tasks: Vec<Level>,
    /// The task of the current episode.
    at: usize,
    seed: u64,
    resets: u64,
}

impl Levels {
    /// One world, called `id`, of all `levels`.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] when there is none, or they differ in their observations or actions.
    pub fn new(id: &str, levels: Vec<Level>) -> Result<Self, EnvError> {
        let bad = |why: String| EnvError::BadOption { env: id.to_owned(), why };
        let Some(first) = levels.first() else { return Err(bad("there is no task".into())) };
        let mut spec = EnvSpec { id: id.to_owned(), ..first.env.spec().clone() };
        for level in &levels[1..] {
            let other = level.env.spec();
            let (one, two) = (first.scores.task, level.scores.task);
            if other.observation != spec.observation {
                let (shows, but) = (spec.observation.describe(), other.observation.describe());
                return Err(bad(format!(
                    "{one} shows {shows}, {two} {but}; one agent needs the same of all"
                )));
            }
            if other.action != spec.action {
                let (takes, but) = (spec.action.len(), other.action.len());
                return Err(bad(format!(
                    "{one} takes one action of {takes}, {two} of {but}; one agent needs the same of all"
                )));
            }
            // Without a limit in one of them there is none.
            spec.max_steps = spec.max_steps.zip(other.max_steps).map(|(one, two)| one.max(two));
        }
        if let Some(level) = levels.iter().find(|level| level.share == 0) {
            return Err(bad(format!(
                "{} has no share of the episodes; give it at least 1",
                level.scores.task
            )));
        }
        Ok(Levels { spec, tasks: levels, at: 0, seed: 0, resets: 0 })
    }

    /// The task of the current episode.
    pub fn name(&self) -> &'static str {
        self.tasks[self.at].scores.task
    }

    /// The task in which a number below the sum of all shares falls.
    fn drawn(&self, mut number: u64) -> usize {
        for (task, level) in self.tasks.iter().enumerate() {
            match number.checked_sub(level.share) {
                None => return task,
                Some(rest) => number = rest,
            }
        }
        self.tasks.len() - 1
    }

    fn env(&self) -> &dyn Env {
        &*self.tasks[self.at].env
    }

    fn env_mut(&mut self) -> &mut dyn Env {
        &mut *self.tasks[self.at].env
    }
}

impl Env for Levels {
    fn inner(&self) -> Option<&dyn Env> {
        Some(self.env())
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Env> {
        Some(self.env_mut())
    }

    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        match seed {
            Some(seed) => (self.seed, self.resets) = (seed, 0),
            None => self.resets += 1,
        }
        let episode = Seed::root(self.seed).child("level", self.resets);
        let shares = self.tasks.iter().map(|level| level.share).sum();
        self.at = self.drawn(episode.rng().below(shares));
        // The first episode of a seed is that of the task alone; later ones may be of a task that has no seed yet.
        let seed = if self.resets == 0 { self.seed } else { episode.value() };
        self.env_mut().reset(Some(seed));
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.env_mut().step(action)
    }

    fn repeat(&mut self, action: Action<'_>, times: u64) -> Result<Step, EnvError> {
        self.env_mut().repeat(action, times)
    }

    fn observation(&self) -> Observation<'_> {
        self.env().observation()
    }

    fn score(&self, total: f64) -> f64 {
        let Level { env, scores, .. } = &self.tasks[self.at];
        scores.normalise(env.score(total)).min(100.0)
    }

    fn task(&self) -> usize {
        self.at
    }

    fn tasks(&self) -> Vec<&'static str> {
        self.tasks.iter().map(|level| level.scores.task).collect()
    }

    /// The task, and its own state.
    fn state(&self) -> Fact {
        let task = Fact::Text(self.name().to_owned());
        let mut facts = vec![("task".to_owned(), task)];
        match self.env().state() {
            Fact::Named(own) => facts.extend(own),
            Fact::Group(own) => facts.extend(own.into_iter().map(|(name, fact)| (name.to_owned(), fact))),
            own => facts.push(("state".to_owned(), own)),
        }
        Fact::Named(facts)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        let copy = |level: &Level| Level { env: level.env.boxed_clone(), ..*level };
        let tasks = self.tasks.iter().map(copy).collect();
        Box::new(Levels { spec: self.spec.clone(), tasks, ..*self })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use foveate_core::episode::{Episode, EpisodeRules, RawAction};
    use foveate_core::{ActionSpace, EvaluateError, ObservationSpace, RolloutJob};

    use super::*;

    /// A task that gives its own reward in every step, for five steps, and shows it and its seed.
    #[derive(Clone)]
    struct Task {
        spec: EnvSpec,
        shown: [f32; 2],
        steps: usize,
    }

    fn task(reward: f32, choices: usize) -> Box<dyn Env> {
        Box::new(Task {
            spec: EnvSpec {
                id: "task".into(),
                observation: ObservationSpace::Vector { len: 2 },
                action: ActionSpace::Discrete { n: choices },
                max_steps: Some(5),
                fps: 1.0,
            },
            shown: [reward, 0.0],
            steps: 0,
        })
    }

    impl Env for Task {
        fn spec(&self) -> &EnvSpec {
            &self.spec
        }
        fn reset(&mut self, seed: Option<u64>) {
            self.shown[1] = seed.map_or(-1.0, |seed| (seed % 1000) as f32);
            self.steps = 0;
        }
        fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
            self.steps += 1;
            Ok(Step { reward: self.shown[0].into(), terminated: self.steps == 5, truncated: false })
        }
        fn observation(&self) -> Observation<'_> {
            Observation::Vector(&self.shown)
        }
        fn state(&self) -> Fact {
            Fact::Count(self.steps as u64)
        }
        fn boxed_clone(&self) -> Box<dyn Env> {
            Box::new(self.clone())
        }
    }

    const EASY: ReferenceScores = ReferenceScores { task: "easy", random: 0.0, human: 10.0 };
    const HARD: ReferenceScores = ReferenceScores { task: "hard", random: 5.0, human: 45.0 };

    fn levels() -> Levels {
        let tasks = [(1.0, EASY), (3.0, HARD)];
        let level = |(reward, scores)| Level { env: task(reward, 2), scores, share: 1 };
        Levels::new("both", tasks.map(level).into()).expect("they fit")
    }

    #[test]
    fn an_episode_is_of_one_task_and_counts_as_its_normalised_score() {
        let mut world = levels();
        let mut tasks = BTreeSet::new();
        for seed in 0..20 {
            let job = RolloutJob { genome: 0, episode: 0, env_seed: seed };
            let mut episode = Episode::new(job, EpisodeRules::WHOLE);
            let result = episode
                .run::<EvaluateError>(&mut world, &mut RawAction::Choice(0), &mut ())
                .expect("it runs to its end");
            // 5 of 10, and 15 of 5 to 45.
            let expect = if world.name() == "easy" { 50.0 } else { 25.0 };
            assert_eq!((result.total, result.steps), (expect, 5), "{seed}");
            assert_eq!(world.observation().numbers().expect("numbers")[1], seed as f32);
            assert_eq!(result.task, usize::from(world.name() == "hard"));
            tasks.insert(world.name());
            let Fact::Named(facts) = world.state() else { panic!("named facts") };
            assert_eq!(facts[0], ("task".into(), Fact::Text(world.name().into())));
            assert_eq!(facts[1], ("state".into(), Fact::Count(5)));
        }
        assert_eq!(tasks, ["easy", "hard"].into());
        world.at = 0;
        assert_eq!((world.score(1e9), world.score(-10.0)), (100.0, -100.0));
    }

    #[test]
    fn tasks_are_drawn_in_proportion_to_their_shares() {
        let level = |reward, scores, share| Level { env: task(reward, 2), scores, share };
        let mut world =
            Levels::new("both", vec![level(1.0, EASY, 1), level(3.0, HARD, 5)]).expect("they fit");
        assert_eq!([0, 1, 5].map(|number| world.drawn(number)), [0, 1, 1]);
        let mut hard = 0;
        for seed in 0..600 {
            world.reset(Some(seed));
            hard += world.task();
        }
        // 500, within three standard deviations.
        assert!((473..=527).contains(&hard), "{hard}");
    }

    #[test]
    fn episodes_depend_on_seed_and_number_alone() {
        let play = |world: &mut dyn Env| {
            let mut seen = vec![];
            world.reset(Some(7));
            for _ in 0..12 {
                seen.push(world.observation().numbers().expect("numbers").to_vec());
                world.reset(None);
            }
            seen
        };
        let mut world = levels();
        let seen = play(&mut world);
        assert!(seen.iter().any(|shown| shown[0] == 1.0) && seen.iter().any(|shown| shown[0] == 3.0));
        for seed in 0..5 {
            world.reset(Some(seed));
            world.reset(None);
        }
        assert_eq!(play(&mut world), seen);
        let mut copy = world.boxed_clone();
        assert_eq!(play(&mut *copy), seen);
    }

    #[test]
    fn tasks_that_do_not_fit_are_refused() {
        let said =
            |levels: Vec<Level>| Levels::new("both", levels).map(drop).expect_err("refused").to_string();
        assert!(said(vec![]).contains("there is no task"));
        let level = |choices, scores, share| Level { env: task(1.0, choices), scores, share };
        let no_share = said(vec![level(2, EASY, 1), level(2, HARD, 0)]);
        assert!(no_share.contains("hard has no share of the episodes; give it at least 1"), "{no_share}");
        let said = said(vec![level(2, EASY, 1), level(3, HARD, 1)]);
        assert!(said.contains("easy takes one action of 2, hard of 3; one agent needs the same"), "{said}");
    }
}

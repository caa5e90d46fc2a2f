//! Saving and restoring a training.

use foveate_core::{StateDict, StateReader, Tensor};

use super::finals::standings;
use super::hard::HardTracks;
use super::{Counts, Position, Training, Weights, settings, start_seed};
use crate::error::TrainError;

impl Training {
    /// The complete state, from which training resumes with bit-identical results; see [`Training::restore`].
    pub fn state(&self) -> StateDict {
        let mut state: StateDict = self
            .learner
            .state()
            .into_iter()
            .map(|(name, tensor)| (format!("learner.{name}"), tensor))
            .collect();
        let (kind, stage, start) = match self.at {
            Position::Learn { stage, start } => (0, stage, start),
            Position::Validate { stage, start } => (1, stage, start),
            Position::Finals => (2, 0, 0),
            Position::Report => (3, 0, 0),
            Position::Done => (4, 0, 0),
            Position::Evaluate { stage, start } => (5, stage, start),
        };
        let Counts {
            steps,
            start_steps,
            validated_at,
            generation,
            judging_steps,
            tasks,
            validated_generation,
            validations,
        } = self.progress;
        let counts = vec![
            steps,
            start_steps,
            validated_at,
            generation,
            judging_steps,
            tasks,
            validated_generation,
            validations,
        ];
        state.insert("course.recipe".into(), Tensor::from(self.recipe.digest().to_vec()));
        if self.learns_again() {
            self.hard.save(&mut state);
        }
        state.insert("course.position".into(), Tensor::from(vec![kind, stage as u64, start as u64]));
        state.insert("course.counts".into(), Tensor::from(counts));
        state.insert("course.base".into(), Tensor::from(self.base.clone()));
        state.insert("course.finals".into(), Tensor::from(self.finals.clone()));
        let kept = self.candidates.iter().enumerate().map(|(i, c)| (format!("candidate.{i}"), c));
        for (name, kept) in kept.chain(self.leader.iter().map(|leader| ("leader".into(), leader))) {
            state.insert(format!("{name}.weights"), Tensor::from(kept.values.clone()));
            state.insert(format!("{name}.score"), Tensor::from(vec![kept.score]));
            state.insert(format!("{name}.at"), Tensor::from(vec![kept.generation, kept.steps]));
        }
        state
    }

    /// Returns whether hard tracks are kept now.
    fn learns_again(&self) -> bool {
        match self.at {
            Position::Learn { stage, .. }
            | Position::Evaluate { stage, .. }
            | Position::Validate { stage, .. } => self.recipe.stages[stage].replay.is_some(),
            Position::Finals | Position::Report | Position::Done => false,
        }
    }

    /// Restores the result of [`Training::state`]; the recipe, the seed and the fresh weights must be the
    /// same.
    ///
    /// # Errors
    /// When an entry is missing, of the wrong size, not finite, or does not fit the recipe; nothing changes
    /// then.
    pub fn restore(&mut self, state: &StateDict) -> Result<(), TrainError> {
        self.take_back(state, false)
    }

    /// Like [`Training::restore`], with a recipe that was changed on purpose: the run continues from the same
    /// position under the new recipe.
    ///
    /// # Errors
    /// As [`Training::restore`]; also when the strategy or the number of parameters differs, or the new
    /// recipe does not contain the position of the run.
    pub fn restore_changed(&mut self, state: &StateDict) -> Result<(), TrainError> {
        self.take_back(state, true)
    }

    fn take_back(&mut self, state: &StateDict, changed: bool) -> Result<(), TrainError> {
        let bad = |why: String| TrainError::BadState { why };
        let n = self.base.len();
        let reader = StateReader(state);
        let u64s = |name: &str, wanted: usize| reader.counts(name, wanted).map(<[u64]>::to_vec);
        let f64s = |name: &str, wanted: usize| reader.f64s(name, wanted).map(<[f64]>::to_vec);
        let weights = |name: &str| -> Result<Weights, TrainError> {
            let at = u64s(&format!("{name}.at"), 2)?;
            Ok(Weights {
                score: f64s(&format!("{name}.score"), 1)?[0],
                generation: at[0],
                steps: at[1],
                values: f64s(&format!("{name}.weights"), n)?,
            })
        };

        if !changed && u64s("course.recipe", 4)? != self.recipe.digest() {
            return Err(bad("it was made with another recipe".into()));
        }
        let position = u64s("course.position", 3)?;
        let (stage, start) = (position[1] as usize, position[2] as usize);
        let at = match position[0] {
            0 => Position::Learn { stage, start },
            1 => Position::Validate { stage, start },
            2 => Position::Finals,
            3 => Position::Report,
            4 => Position::Done,
            5 => Position::Evaluate { stage, start },
            other => return Err(bad(format!("course.position is {other}"))),
        };
        let learning = !matches!(at, Position::Finals | Position::Report | Position::Done);
        let (stage, start) = if learning {
            (stage, start)
        } else {
            let last = self.recipe.stages.len() - 1;
            (last, self.recipe.stages[last].starts - 1)
        };
        if self.recipe.stages.get(stage).is_none_or(|settings| start >= settings.starts) {
            return Err(bad(format!("stage {stage}, start {start} is not in the recipe")));
        }
        let base = f64s("course.base", n)?;
        let learnt: StateDict = state
            .iter()
            .filter_map(|(name, tensor)| {
                // Checkpoints of older versions use the name `evolution`.
                let name = name.strip_prefix("learner.").or_else(|| name.strip_prefix("evolution."))?;
                Some((name.to_owned(), tensor.clone()))
            })
            .collect();
        let counts = u64s("course.counts", 8)?;
        if counts.iter().any(|&count| count >= 1 << 53) {
            return Err(bad(format!("course.counts are {counts:?}, more than any run can count")));
        }
        let settings = settings(&self.recipe, stage, counts[1])?;
        let mut learner = self.build(&settings, stage, base.clone(), start_seed(self.seed, stage, start))?;
        if changed {
            learner.restore_changed(&learnt)?;
        } else {
            learner.restore(&learnt)?;
        }
        let generation = learner.generation();
        if counts[2] > counts[1] || counts[6] > generation {
            let why = format!(
                "course.counts are {counts:?}: a validation after generation {generation}, the last one"
            );
            return Err(bad(why));
        }
        let hard = match &self.recipe.stages[stage].replay {
            Some(_) if changed && !state.contains_key("replay.seeds") => HardTracks::default(),
            Some(replay) if learning => HardTracks::load(replay, state)?,
            _ => HardTracks::default(),
        };

        let mut candidates = Vec::new();
        while state.contains_key(&format!("candidate.{}.at", candidates.len())) {
            candidates.push(weights(&format!("candidate.{}", candidates.len()))?);
        }
        let leader = state.contains_key("leader.at").then(|| weights("leader")).transpose()?;
        let finals = reader.any_f64s("course.finals")?.to_vec();
        let rounds = 1 + self.recipe.selection.reevaluate;
        let all = standings(candidates.len(), rounds, &[]).left;
        let complete = match at {
            Position::Finals => finals.len() < all,
            Position::Report | Position::Done => !candidates.is_empty() && finals.len() == all,
            _ => finals.is_empty(),
        };
        if !complete || candidates.len() > self.recipe.selection.finalists {
            return Err(bad("its position and its finalists contradict each other".into()));
        }

        self.progress = Counts {
            steps: counts[0],
            start_steps: counts[1],
            validated_at: counts[2],
            generation: counts[3],
            judging_steps: counts[4],
            tasks: counts[5],
            validated_generation: counts[6],
            validations: counts[7],
        };
        (self.at, self.learner, self.base, self.leader) = (at, learner, base, leader);
        (self.settings, self.hard) = (settings, hard);
        (self.candidates, self.finals) = (candidates, finals);
        Ok(())
    }
}

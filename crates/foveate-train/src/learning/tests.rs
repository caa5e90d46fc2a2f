//! A learner in one file: what a new one by gradients has to say.

use std::sync::Arc;

use foveate_core::episode::EpisodeRules;
use foveate_core::{
    ActionBuf, EpisodeResult, LastStep, ObservationBuf, PartScratch, PolicyError, Seed, lacking,
};
use foveate_learn::OptimizerConfig;
use foveate_toy::ToyStudent;

use super::*;

/// The squared error of the values of the choices taken, whose rewards are the targets; an episode is a part.
struct RewardLoss(Vec<Vec<Unroll>>);

impl GradientParts for RewardLoss {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn study(
        &self,
        part: usize,
        model: &mut dyn Model,
        scratch: &mut PartScratch,
        gradient: &mut [f32],
    ) -> Result<LossSums, PolicyError> {
        let network = model.outputs().ok_or_else(|| lacking("network"))?;
        let mut sums = LossSums::default();
        for unroll in &self.0[part] {
            scratch.inputs.clear();
            for observation in &unroll.observations[..unroll.len()] {
                network.encode(LastStep::default(), observation.as_observation(), &mut scratch.inputs)?;
            }
            let choices = network.kind().outputs();
            let outputs = &network.forward(1, &scratch.inputs, &[]).outputs;
            scratch.clear_derivatives(outputs.len(), 0);
            for (t, (action, reward)) in unroll.actions.iter().zip(&unroll.rewards).enumerate() {
                let ActionBuf::Discrete(choice) = action else { continue };
                let error = f64::from(outputs[t * choices + choice]) - reward;
                sums[0] += error * error;
                scratch.d_outputs[t * choices + choice] = 2.0 * error as f32;
            }
            network.backward(&scratch.d_outputs, &[], gradient);
        }
        Ok(sums)
    }
}

struct RewardMethod;

impl Method for RewardMethod {
    fn record(&self, _: &Descent) -> Record {
        Record::Transitions { unroll: 100 }
    }

    fn numbers(&self) -> Vec<f64> {
        vec![]
    }

    fn learn(&mut self, round: &mut Round<'_>, experience: Experience) -> Result<Measures, LearnError> {
        let loss: Arc<dyn GradientParts> = Arc::new(RewardLoss(transitions("rewards", experience)?));
        round.begin_update()?;
        let (sums, norm) = round.update(&loss, 1)?;
        Ok(vec![("loss", sums[0]), ("gradient_norm", norm)])
    }
}

fn new() -> Learning<RewardMethod> {
    let mut model = ToyStudent::linear(2, 2).valuing();
    let adam = OptimizerConfig::default();
    let descent = Descent::single("rewards", &[0.0; 2], Seed::root(1), &mut model, adam, 0.05).expect("two");
    Learning::of(RewardMethod, descent, Box::new(model))
}

/// The reward of choice 0 is the number that is seen, that of choice 1 its triple.
fn round(learner: &mut Learning<RewardMethod>) {
    let seeds = |_: usize, episode: usize| episode as u64;
    let work = learner.work(&Episodes { per_row: 3, rules: EpisodeRules::WHOLE, seeds: &seeds });
    assert_eq!(work.record, Record::Transitions { unroll: 100 });
    let episode = |number: usize| {
        let seen: Vec<f32> = (0..4).map(|t| (t + number) as f32 * 0.3 - 0.5).collect();
        let choices: Vec<usize> = (0..4).map(|t| (t + number) % 2).collect();
        let rewards = seen.iter().zip(&choices).map(|(x, &c)| f64::from(*x) * if c == 0 { 1.0 } else { 3.0 });
        Recording::Transitions(vec![Unroll {
            rewards: rewards.collect(),
            actions: choices.into_iter().map(ActionBuf::Discrete).collect(),
            observations: seen.iter().chain(&[0.0]).map(|&x| ObservationBuf::Vector(vec![x])).collect(),
            ..Unroll::default()
        }])
    };
    let recordings = (0..3).map(episode).collect();
    let experience = Experience { recordings, ..Experience::of_episodes(vec![EpisodeResult::default(); 3]) };
    learner.receive(experience).expect("finite");
}

#[test]
fn a_method_is_a_whole_learner() {
    let (mut learner, mut other) = (new(), new());
    for _ in 0..300 {
        round(&mut learner);
    }
    let weights = learner.weights();
    assert!((weights[0] - 1.0).abs() < 0.01 && (weights[1] - 3.0).abs() < 0.01, "{weights:?}");
    other.restore(&learner.state()).expect("its own");
    round(&mut learner);
    round(&mut other);
    assert_eq!(learner.state(), other.state());
    assert_eq!(learner.measures()[0].0, "loss");
    // An experience that does not fit changes nothing.
    let before = learner.state();
    let demonstration = Recording::Demonstration(foveate_core::Demonstration::default());
    let wrong = Experience {
        recordings: vec![demonstration],
        ..Experience::of_episodes(vec![EpisodeResult::default()])
    };
    let said = learner.receive(wrong).expect_err("other recordings").to_string();
    assert!(said.contains("rewards learns from transitions"), "{said}");
    assert_eq!(learner.state(), before);
}

//! How far the action changes without each thing that a decision attends to.

use foveate_core::statistics::quantile;
use foveate_core::{
    ActContext, Agent, Attention, Env, Observation, ObservationBuf, Opened, PolicyError, RolloutJob,
};

use super::moment::Distance;
use crate::study::StudyError;
use crate::study::fields::{self, FieldMoment, Fields, PlacedAttention};
use crate::study::play::{EpisodeStart, policy_error, replay};
use crate::study::probes::{claim, spread};

/// Most things of a decision that are measured: those that are said to matter most.
pub(super) const MOST_UNITS: usize = 16;
/// Moments of another episode that values are taken from.
const DONORS: usize = 4;
/// Steps of that episode.
const STEPS: usize = 200;
/// Steps between the decisions of that episode whose own effects give the scale.
const EVERY: usize = 16;

/// A decision of the episode that a meter is made of, with the agent before it.
struct Sample {
    step: usize,
    seen: ObservationBuf,
    agent: Box<dyn Agent>,
    context: ActContext,
    opened: Opened,
    action: Vec<f64>,
}

impl Sample {
    fn for_fields(&self) -> FieldMoment {
        let Sample { seen, agent, context, .. } = self;
        FieldMoment { agent: agent.boxed_clone(), context: context.clone(), seen: seen.clone() }
    }
}

/// The effect that is drawn strongest: larger ones are rare.
pub(crate) fn strongest(effects: &[f64]) -> f64 {
    if effects.is_empty() { 1.0 } else { quantile(effects, 0.98).max(1e-4) }
}

/// Measures, decision by decision, how far the action changes without each thing that is attended to: with its value from
/// moments of another episode, while the other values, the weights and the memory stay.
#[derive(Debug, Clone)]
pub struct EffectMeter {
    donors: Vec<Opened>,
    distance: Distance,
    most: f64,
    /// Where the contents of cells come from, for soft attention over the cells of a picture.
    fields: Option<Fields>,
}

impl EffectMeter {
    /// A meter with the values of these moments.
    pub(super) fn with(donors: Vec<Opened>, distance: Distance) -> EffectMeter {
        EffectMeter { donors, distance, most: 1.0, fields: None }
    }

    /// Plays the beginning of the episode of `seed` in a copy of `env`, up to 200 steps, and takes values and the scale from it; the
    /// episode that is measured should be another one. `None`, and nothing is played, where the observation is no picture or
    /// the agent cannot be opened at its attention.
    ///
    /// # Errors
    /// When the episode fails.
    pub fn of_episode(
        env: &dyn Env,
        agent: &dyn Agent,
        seed: u64,
    ) -> Result<Option<EffectMeter>, StudyError> {
        let job = RolloutJob { genome: 0, episode: 0, env_seed: seed };
        let mut probe = agent.boxed_clone();
        let opens = env.observation().image().is_some()
            && probe
                .open(env.observation(), &ActContext::default(), &mut Opened::default())
                .map_err(|error| policy_error(job, 0, error))?;
        if !opens {
            return Ok(None);
        }
        let mut env = env.boxed_clone();
        env.reset(Some(seed));
        let spec = env.spec().clone();
        let start = EpisodeStart { env, agent: agent.boxed_clone(), job, max_steps: STEPS };
        let steps: Vec<usize> = (EVERY / 2..STEPS).step_by(EVERY).collect();
        let mut moments: Vec<Sample> = vec![];
        replay(start, &steps, &mut |step, env, agent, context| {
            let failed = |error| policy_error(job, step, error);
            let (mut halfway, mut opened) = (agent.boxed_clone(), Opened::default());
            if halfway.open(env.observation(), context, &mut opened).map_err(failed)? {
                let mut whole = agent.boxed_clone();
                let action =
                    whole.act(env.observation(), &mut context.clone()).map_err(failed)?.action.to_vec();
                let (agent, context) = (agent.boxed_clone(), context.clone());
                moments.push(Sample { step, seen: env.observation().into(), agent, context, opened, action });
            }
            Ok(())
        })?;
        if moments.is_empty() {
            return Ok(None);
        }
        let distance = Distance::of(&spec, moments.iter().map(|moment| &moment.action[..]));
        let donors = spread(moments.len(), DONORS).into_iter().map(|i| moments[i].opened.clone()).collect();
        let of_fields = spread(moments.len(), fields::MOMENTS).into_iter().map(|i| moments[i].for_fields());
        let fields = Fields::of_moments(of_fields.collect())?;
        let mut meter = EffectMeter { donors, distance, most: 1.0, fields };
        let mut all = vec![];
        for Sample { step, seen, agent, context, .. } in &moments {
            let measured = meter.measure(seen.as_observation(), &**agent, context);
            all.extend(
                measured
                    .map_err(|error| policy_error(job, *step, error))?
                    .into_iter()
                    .map(|(_, effect)| effect),
            );
        }
        meter.most = strongest(&all);
        Ok(Some(meter))
    }

    /// The effect that is drawn strongest, from 0 to 1: larger ones are rare in the episode that the meter was made of.
    pub const fn most(&self) -> f64 {
        self.most
    }

    /// Soft attention over the cells of a picture, and effects of cells, at the places that the cells' contents come from; `None` for
    /// other attention.
    pub fn placed(&self, attention: &Attention<'_>, effects: &[(u32, f64)]) -> Option<PlacedAttention> {
        self.fields.as_ref()?.placed(attention, effects)
    }

    /// The tokens that this decision is said to depend on, the most important first, at most 16; and for each how far the action
    /// changes without it, from 0 to 1. Empty where nothing can be measured: values have another shape than those of the meter. `agent` and `context` are as before the decision, and stay so.
    ///
    /// # Errors
    /// When the agent reports one.
    pub fn measure(
        &self,
        observation: Observation<'_>,
        agent: &dyn Agent,
        context: &ActContext,
    ) -> Result<Vec<(u32, f64)>, PolicyError> {
        let mut whole = agent.boxed_clone();
        let decision = whole.act(observation, &mut context.clone())?;
        let mut tokens = decision.attention.as_ref().map(claim).unwrap_or_default();
        tokens.truncate(MOST_UNITS);
        let (mut halfway, mut own) = (agent.boxed_clone(), Opened::default());
        if !halfway.open(observation, context, &mut own)? {
            return Ok(vec![]);
        }
        let donors: Vec<&Opened> =
            self.donors.iter().filter(|donor| donor.values.len() == own.values.len()).collect();
        if donors.is_empty() {
            return Ok(vec![]);
        }
        let width = own.width();
        let mut changed = own.clone();
        let mut effects = vec![];
        for token in tokens {
            let Some(unit) = own.tokens.iter().position(|own| *own == token) else { continue };
            let values = unit * width..(unit + 1) * width;
            let mut effect = 0.0;
            for donor in &donors {
                changed.values[values.clone()].copy_from_slice(donor.value(unit));
                let mut again = halfway.boxed_clone();
                let action = again.resume(&changed, &mut context.clone())?.action;
                effect += self.distance.between(action, decision.action) / donors.len() as f64;
            }
            changed.values[values].copy_from_slice(own.value(unit));
            effects.push((token, effect));
        }
        Ok(effects)
    }
}

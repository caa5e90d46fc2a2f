//! The gradient of a whole AttentionNeuron on numbers, for learning from an expert.
//!
//! Of every step it learns from the sensors' numbers and the agent's output of the step before, both as they were in the
//! episode. So it sees how the sensors answered what the agent really did, which is how it tells them apart, and no
//! gradient flows through the outputs that it gets.

use std::ops::Range;

use foveate_core::{
    Demonstration, DifferentiatedEpisode, Model, PolicyError, Student, Taught, ThroughWorld, Windows,
};
use foveate_kernels::Level;
use foveate_kernels::project::Linear;
use foveate_kernels::sensory::gradient::{Between, Learner};

use super::queries;
use super::vectors::{Scores, VectorConfig};
use crate::config::{MAX_PARAMS, bad};
use crate::descriptor::AgentConfig;
use crate::params::Params;
use crate::student::{check_lengths, scaled};

/// Learns all tensors but `lstm.bias_hh`.
///
/// `lstm.bias_ih` and `lstm.bias_hh` are only ever added, so `bias_ih` alone learns; the gradient of `bias_hh` is 0.
#[derive(Debug, Clone)]
pub struct VectorStudent {
    config: VectorConfig,
    /// True if it learns to tell the sensors apart, in place of what the expert does.
    names: bool,
    params: Params,
    level: Level,
    /// `[codes, query_dim]`
    queries: Vec<f32>,
    scores: Scores,
    /// `[codes, message_dim]`: the queries after their linear layer.
    projected: Vec<f64>,
    learner: Learner,
    /// Where weight and bias of each layer behind the message lie in the flat vector.
    layers: Vec<[Range<usize>; 2]>,
    /// `[steps, actions]`: the expert's actions, in −1 ..= 1. Scratch.
    wanted: Vec<f32>,
    /// `[query_dim + key_dim]`: sums for a row of both linear layers. Scratch.
    rows: Vec<f64>,
}

impl VectorStudent {
    /// A student of zero weights on the fastest instruction set of this processor, for as many sensors as `config`
    /// names.
    ///
    /// # Errors
    /// When the configuration makes no sense, see [`AgentConfig::check`]; when it names no sensors, or too many.
    pub fn new(config: VectorConfig) -> Result<Self, PolicyError> {
        config.check()?;
        let sensors = config.sensors.len();
        if sensors == 0 {
            return bad(
                "sensors names none, so it is not known how many numbers the student learns from, and it cannot learn \
                 from an expert; name every number that the world shows, in order",
            );
        }
        // What a step of learning keeps of every sensor.
        let kept = sensors.saturating_mul(config.key_dim.saturating_mul(8).saturating_add(config.codes));
        if kept > MAX_PARAMS {
            return bad(format!(
                "{sensors} sensors of key_dim = {} and codes = {} take {kept} numbers per step to learn from an expert; at \
                 most {MAX_PARAMS} are possible, so lower key_dim or codes",
                config.key_dim, config.codes
            ));
        }
        let params = Params::zeros(config.tensors());
        let widths: Vec<usize> = config.layers.iter().copied().chain([config.actions.len()]).collect();
        let names = (0..config.layers.len()).map(|i| format!("hidden{i}")).chain(["output".into()]);
        let place =
            |name: String| [params.place(&format!("{name}.weight")), params.place(&format!("{name}.bias"))];
        Ok(VectorStudent {
            level: Level::best(),
            queries: queries(config.codes, config.query_dim),
            scores: Scores::new(&config),
            projected: vec![0.0; config.codes * config.message_dim],
            learner: Learner::new(config.sizes(), sensors, &widths),
            layers: names.map(place).collect(),
            wanted: vec![],
            rows: vec![0.0; config.query_dim + config.key_dim],
            names: false,
            params,
            config,
        })
    }

    /// The same student on another instruction set, which gives the same gradients to the bit.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Adds the gradient with respect to the scores' linear maps to that of the layers of queries and keys, which the
    /// maps are made of: `weight = projected · key.weight / divisor`.
    fn add_scores(&mut self, gradient: &mut [f32]) {
        let VectorConfig { query_dim, key_dim, message_dim, scale, .. } = self.config;
        let (params, learnt) = (&self.params, self.learner.gradient());
        let (to_queries, to_keys) = self.rows.split_at_mut(query_dim);
        let divisor = scale.divisor(key_dim, message_dim);
        let (of_key, key_bias) = (params.get("key.weight"), params.get("key.bias"));
        let [query_weight, query_bias, key_weight, key_bias_place] =
            ["query.weight", "query.bias", "key.weight", "key.bias"].map(|name| params.place(name));
        for d in 0..message_dim {
            let of_keys = &of_key[d * key_dim..][..key_dim];
            let of_bias = key_bias.get(d).map_or(0.0, |&b| f64::from(b));
            let (mut to_query_bias, mut to_key_bias) = (0.0, 0.0);
            to_queries.fill(0.0);
            to_keys.fill(0.0);
            let rows = learnt.scores.chunks_exact(key_dim).zip(&learnt.score_bias);
            for ((code, (row, &of_code)), raw) in rows.enumerate().zip(self.queries.chunks_exact(query_dim)) {
                let projected = self.projected[code * message_dim + d];
                let mut pull = f64::from(of_code) * of_bias;
                for ((to, &g), &w) in to_keys.iter_mut().zip(row).zip(of_keys) {
                    *to += projected * f64::from(g);
                    pull += f64::from(g) * f64::from(w);
                }
                to_key_bias += projected * f64::from(of_code);
                for (to, &x) in to_queries.iter_mut().zip(raw) {
                    *to += pull * f64::from(x);
                }
                to_query_bias += pull;
            }
            let add = |to: &mut f32, sum: f64| *to += (sum / divisor) as f32;
            for (to, sum) in gradient[query_weight.clone()][d * query_dim..].iter_mut().zip(&*to_queries) {
                add(to, *sum);
            }
            for (to, sum) in gradient[key_weight.clone()][d * key_dim..].iter_mut().zip(&*to_keys) {
                add(to, *sum);
            }
            if !query_bias.is_empty() {
                add(&mut gradient[query_bias.start + d], to_query_bias);
                add(&mut gradient[key_bias_place.start + d], to_key_bias);
            }
        }
    }
}

impl Model for VectorStudent {
    fn learns(&self) -> Range<usize> {
        self.params.place("lstm.bias_hh").end..self.params.flat().len()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)?;
        let VectorStudent { config, params, queries, scores, projected, learner, layers, .. } = self;
        scores.set(config, params, queries, |code, query| {
            projected[code * query.len()..][..query.len()].copy_from_slice(query);
        });
        learner.set(params.lstm(), &scores.weight, &scores.bias);
        for (index, [weight, bias]) in layers.iter().enumerate() {
            let flat = params.flat();
            learner.set_layer(index, Linear { weight: &flat[weight.clone()], bias: &flat[bias.clone()] });
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }

    /// Needs as many codes as sensors.
    fn taught(&self, what: Taught) -> Option<Box<dyn Model>> {
        if what != Taught::Names {
            return None;
        }
        let able = self.config.codes >= self.config.sensors.len();
        able.then(|| Box::new(VectorStudent { names: true, ..self.clone() }) as Box<dyn Model>)
    }

    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        let (sensors, n) = (self.config.sensors.len(), self.actions());
        let (steps, numbers) = (episode.steps, episode.numbers());
        if episode.inputs.len() != episode.begin.saturating_add(steps).saturating_mul(self.inputs())
            || (numbers, episode.actions()) != (sensors, n)
            || gradient.len() != self.params.flat().len()
        {
            return bad(format!(
                "an episode of {steps} steps, {numbers} numbers and {} actions does not fit an agent of {sensors} sensors and \
                 {n} actions",
                episode.actions()
            ));
        }
        let halves = self.config.actions.iter().map(|[low, high]| (high - low) / 2.0).collect();
        let mut world = World(ThroughWorld::new(episode, *windows, halves)?);
        self.learner.backpropagate(self.level, &episode.inputs, episode.begin, &mut world);
        self.add_to(gradient);
        Ok(windows.returns(episode))
    }
}

impl Student for VectorStudent {
    fn inputs(&self) -> usize {
        self.config.sensors.len() + self.config.actions.len()
    }

    fn actions(&self) -> usize {
        self.config.actions.len()
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        check_lengths(demonstration, [self.inputs(), self.actions()], &piece);
        assert_eq!(gradient.len(), self.params.flat().len(), "parameters");
        let inputs = self.inputs();
        let begin = piece.start.saturating_sub(burn_in);
        let x = &demonstration.inputs[begin * inputs..piece.end * inputs];
        let error = if self.names {
            self.learner.study_names(self.level, x, piece.start - begin)
        } else {
            self.wanted.clear();
            scaled(demonstration, piece, &self.config.actions, &mut self.wanted);
            self.learner.study(self.level, x, &self.wanted)
        };
        self.add_to(gradient);
        error
    }
}

/// The world, seen from the kernel.
struct World<'a>(ThroughWorld<'a>);

impl Between for World<'_> {
    fn pull(&mut self, t: usize, next: &[f32], pull: &mut [f32]) -> bool {
        self.0.pull(t, next, pull)
    }

    fn bound(&self) -> f32 {
        self.0.clip() as f32
    }
}

impl VectorStudent {
    /// Adds the learner's gradient.
    fn add_to(&mut self, gradient: &mut [f32]) {
        let learnt = self.learner.gradient();
        let lstm = [
            ("lstm.weight_ih", &learnt.weight_ih),
            ("lstm.weight_hh", &learnt.weight_hh),
            ("lstm.bias_ih", &learnt.bias_ih),
        ];
        let lstm = lstm.map(|(name, from)| (self.params.place(name), from));
        let layers = self.layers.iter().zip(&learnt.layers);
        let layers = layers.flat_map(|(places, (weight, bias))| places.iter().cloned().zip([weight, bias]));
        for (place, from) in lstm.into_iter().chain(layers) {
            for (to, from) in gradient[place].iter_mut().zip(from) {
                *to += from;
            }
        }
        self.add_scores(gradient);
    }
}

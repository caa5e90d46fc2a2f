//! A custom agent in one file: it attends to picture cells by brightness, and acts on their positions.

use foveate::Observation;
use foveate::agents::params::Params;
use foveate::agents::registry::{AgentConfig, AgentDescriptor, Sees, read};
use foveate::core::{
    ActContext, Agent, Attention, Decision, EnvSpec, Policy, PolicyAgent, PolicyError, Seed, TensorShape,
    Tokens,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Its registry entry.
pub(crate) const DESCRIPTOR: AgentDescriptor = AgentDescriptor {
    name: "scratch-brightness",
    summary: "soft attention over cells by their brightness; acts on the column attended to",
    sees: Sees::Picture,
    read: read::<Config>,
    fit,
    published: &[],
};

const CELLS: usize = 8;

/// Its settings.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    image: [usize; 2],
    actions: Vec<[f64; 2]>,
}

impl Default for Config {
    fn default() -> Self {
        Config { image: [96, 96], actions: vec![[-1.0, 1.0]] }
    }
}

fn fit(spec: &EnvSpec, _: &[[f64; 2]]) -> Value {
    let (width, height) = spec.observation.picture().unwrap_or_default();
    json!({ "image": [width, height], "actions": spec.action.bounds() })
}

impl AgentConfig for Config {
    fn check(&self) -> Result<(), PolicyError> {
        let [width, height] = self.image;
        if width % CELLS == 0 && height % CELLS == 0 && width.min(height) > 0 && !self.actions.is_empty() {
            return Ok(());
        }
        let why =
            format!("image is {width}x{height}; give multiples of {CELLS}, and at least one of actions");
        Err(PolicyError::BadConfig { why })
    }

    fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn tensors(&self) -> Vec<TensorShape> {
        let tensor = |name: &str, shape| TensorShape { name: name.into(), shape };
        let n = self.actions.len();
        vec![
            tensor("attention.weight", vec![1]),
            tensor("output.weight", vec![n, 2]),
            tensor("output.bias", vec![n]),
        ]
    }

    fn make(&self) -> Result<Box<dyn Agent>, PolicyError> {
        self.check()?;
        let params = Params::zeros(self.tensors());
        Ok(Box::new(PolicyAgent::new(Brightness { config: self.clone(), params })))
    }
}

#[derive(Debug, Clone)]
struct Brightness {
    config: Config,
    params: Params,
}

#[derive(Debug, Clone)]
struct Memory {
    weights: Vec<f32>,
    action: Vec<f64>,
}

impl Policy for Brightness {
    type Memory = Memory;

    fn memory(&self) -> Memory {
        Memory { weights: vec![0.0; CELLS * CELLS], action: vec![0.0; self.config.actions.len()] }
    }

    fn reset(&self, _: &mut Memory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut Memory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let [width, height] = self.config.image;
        let image = observation.picture().filter(|image| [image.width(), image.height()] == [width, height]);
        let Some(image) = image else {
            let wanted = format!("a picture of {width}x{height}");
            return Err(PolicyError::ObservationShape { wanted, given: observation.describe() });
        };
        let Memory { weights, action } = memory;
        weights.fill(0.0);
        let (cell_width, cell_height) = (width / CELLS, height / CELLS);
        for (i, pixel) in image.rgb().chunks_exact(3).enumerate() {
            let cell = i / width / cell_height * CELLS + i % width / cell_width;
            weights[cell] += f32::from(pixel[0]) / 255.0 / (cell_width * cell_height) as f32;
        }
        // A softmax over the cells with learned sharpness.
        let sharpness = self.params.get("attention.weight")[0] * 10.0;
        for weight in weights.iter_mut() {
            *weight = (*weight * sharpness).exp();
        }
        let sum: f32 = weights.iter().sum();
        for weight in weights.iter_mut() {
            *weight /= sum;
        }
        let mean = |place: &dyn Fn(usize) -> usize| -> f32 {
            let share = |i: usize| (place(i) as f32 + 0.5) / CELLS as f32 * 2.0 - 1.0;
            weights.iter().enumerate().map(|(i, weight)| weight * share(i)).sum()
        };
        let (x, y) = (mean(&|i| i % CELLS), mean(&|i| i / CELLS));
        let (weight, bias) = (self.params.get("output.weight"), self.params.get("output.bias"));
        for (n, (action, [low, high])) in action.iter_mut().zip(&self.config.actions).enumerate() {
            let raw = (weight[2 * n] * x + weight[2 * n + 1] * y + bias[n]).tanh();
            *action = f64::from(raw) * ((high - low) / 2.0) + f64::midpoint(*low, *high);
        }
        let attention = Attention::soft(Tokens::Cells { rows: CELLS, columns: CELLS }, 1, 1, weights)?;
        Ok(Decision::new(action).with_attention(attention))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        self.config.tensors()
    }

    fn params(&self) -> Vec<f32> {
        self.params.flat().to_vec()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.params.set(flat)
    }
}

//! The same agent with a controller that is told about fewer patches.
//!
//! Whatever the controller is, its first layer is linear. What it would be told about a patch that it must not know is a
//! neutral value instead: the middle of the picture for the position, grey for the colour, all bins alike for a histogram
//! and 0 for a convolution. Its weights for those inputs become 0 and its bias takes what the neutral values come to, so
//! that the agent itself stays as it is.

use foveate_core::TensorShape;

use crate::bottleneck::BottleneckConfig;
use crate::config::FeatureConfig;
use crate::controller::ControllerConfig;

impl FeatureConfig {
    /// What is said of a patch of side `patch` about which nothing is known.
    pub fn neutral(&self, patch: usize) -> Vec<f32> {
        let FeatureConfig { centre, colour, histogram, .. } = self;
        let mut values = vec![0.5; 2 * usize::from(*centre) + 3 * usize::from(*colour)];
        if let Some(histogram) = histogram {
            values.resize(values.len() + 3 * histogram.bins, 1.0 / histogram.bins as f32);
        }
        // Those of a convolution come last.
        values.resize(self.per_patch(patch), 0.0);
        values
    }
}

/// `params`, laid out as `tensors`, with a controller that is told about the first `k` chosen patches only; the names of
/// its tensors begin with `prefix`.
pub(crate) fn narrowed(
    params: &[f32],
    tensors: &[TensorShape],
    bottleneck: &BottleneckConfig,
    (controller, prefix): (&ControllerConfig, &str),
    k: usize,
) -> Vec<f32> {
    let mut params = params.to_vec();
    let layer = match controller {
        ControllerConfig::Linear {} => ["output.weight", "output.bias"],
        ControllerConfig::Mlp { .. } => ["hidden0.weight", "hidden0.bias"],
        ControllerConfig::Lstm { .. } => ["lstm.weight_ih", "lstm.bias_ih"],
    };
    let find = |name: &str| {
        let mut at = 0;
        tensors.iter().find_map(|tensor| {
            let here = at..at + tensor.len();
            at = here.end;
            (tensor.name.strip_prefix(prefix) == Some(name)).then_some((here, tensor))
        })
    };
    let [Some((weight, shape)), Some((bias, _))] = layer.map(find) else { return params };
    let neutral = bottleneck.features.neutral(bottleneck.patch);
    let (told, all) = (k.min(bottleneck.top_k) * neutral.len(), bottleneck.top_k * neutral.len());
    let Some(&inputs) = shape.shape.last().filter(|&&inputs| inputs >= all && told < all) else {
        return params;
    };
    for row in 0..weight.len() / inputs {
        let from = weight.start + row * inputs;
        let unknown = &mut params[from + told..from + all];
        let sum: f64 =
            unknown.iter().zip(neutral.iter().cycle()).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
        unknown.fill(0.0);
        let bias = &mut params[bias.start + row];
        *bias = (f64::from(*bias) + sum) as f32;
    }
    params
}

#[cfg(test)]
mod tests {
    use foveate_core::{ActContext, Image, Observation, Seed};
    use serde_json::{Value, json};

    use crate::registry::{Init, fewer_patches, initial_params, make};

    /// What an agent with these weights does on three pictures.
    fn drive(name: &str, config: &Value, params: &[f32]) -> Vec<f64> {
        let mut agent = make(name, config).expect("an agent");
        agent.set_params(params).expect("its own");
        let mut rng = Seed::root(8).rng();
        let mut said = vec![];
        for _ in 0..3 {
            let rgb: Vec<u8> = (0..16 * 16 * 3).map(|_| rng.below(256) as u8).collect();
            let image = Image::new(16, 16, &rgb).expect("its size");
            said.extend_from_slice(
                agent.act(Observation::rgb(image), &mut ActContext::default()).expect("it acts").action,
            );
        }
        said
    }

    #[test]
    fn every_controller_that_sees_knows_fewer_patches() {
        let actions = json!([[-1.0, 1.0], [0.0, 1.0]]);
        let controllers = [
            json!({ "kind": "linear" }),
            json!({ "kind": "mlp", "hidden": [5] }),
            json!({ "kind": "lstm", "hidden": 4 }),
        ];
        let mut agents = vec![(
            "attention-agent",
            json!({ "image": [16, 16], "top_k": 4, "hidden": 4, "actions": actions }),
        )];
        for controller in &controllers {
            let values = json!({ "centre": true, "colour": true, "histogram": { "bins": 4 } });
            agents.push((
                "iap",
                json!({ "image": [16, 16], "patch": 2, "stride": 2, "top_k": 4, "values": values, "controller": controller,
                    "actions": actions }),
            ));
            agents.push((
                "iap-hierarchical",
                json!({ "high": { "image": [16, 16], "patch": 2, "stride": 2, "top_k": 4, "controller": controller },
                    "actions": actions }),
            ));
        }
        for (name, config) in agents {
            let params = initial_params(name, &config, Init::Torch, Seed::root(2)).expect("an agent");
            let fewer = |k| fewer_patches(name, &config, &params, k).expect("an agent").expect("it looks");
            assert_eq!(fewer(4), params, "{name} {config}: all that there are");
            assert_eq!(fewer(99), params);
            if name == "iap-hierarchical" {
                // Its low level acts on sensors that this world has not.
                assert_ne!(fewer(1), params, "{config}");
                continue;
            }
            let whole = drive(name, &config, &params);
            let mut seen = vec![whole];
            for k in [3, 2, 1, 0] {
                let now = drive(name, &config, &fewer(k));
                assert!(!seen.contains(&now), "{name} {config}: k = {k} changes nothing");
                seen.push(now);
            }
            // Who knows nothing does the same whatever it sees, unless it remembers.
            if config["controller"]["kind"] == "linear" {
                let blind = &seen[4];
                assert!(blind[..2] == blind[2..4] && blind[..2] == blind[4..6], "{blind:?}");
            }
        }
        assert_eq!(fewer_patches("random-actions", &json!({}), &[], 1).expect("an agent"), None);
    }

    #[test]
    fn what_is_not_known_is_said_to_be_in_the_middle() {
        // One linear layer of ones: the output is tanh of the sum of all that it is told, six positions of 0.5.
        let config = json!({ "image": [16, 16], "patch": 2, "stride": 2, "top_k": 3, "controller": { "kind": "linear" },
            "values": { "centre": true }, "actions": [[-1.0, 1.0]] });
        let mut params = initial_params("iap", &config, Init::Zeros, Seed::root(2)).expect("an agent");
        let n = params.len();
        // The last tensors are the output's bias and its six weights.
        params[n - 6..].fill(0.25);
        let blind = fewer_patches("iap", &config, &params, 0).expect("an agent").expect("it looks");
        assert_eq!(blind[n - 7..], [0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}

//! Loads weights by name, with their world.

use std::path::Path;

use foveate_agents::Sees;
use foveate_agents::registry::{Init, initial_params, usual};
use foveate_core::{Agent, Env, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{AGENTS, AgentDescriptor, WORLDS};
use foveate_run::RunError;
use foveate_run::champion;
use foveate_run::evaluate::Labels;
use foveate_run::fit;
use foveate_run::weights::{AgentFile, is_weights_or_run, load_named};
use serde_json::Value;

use crate::World;

/// Loaded weights and the world that they act in.
#[derive(Debug, Clone)]
pub struct LoadedAgent {
    /// The weights, with the agent's settings.
    pub file: AgentFile,
    /// Their label: a path, `car-racing champion`, `random weights of seed 7`.
    pub source: String,
    /// The world: the request, with missing values filled in from the world that the weights were made for.
    pub world: EnvRequest,
}

impl LoadedAgent {
    /// Loads the weights called `name`: a weight file, a run folder (its best weights), the name of a
    /// [champion](foveate_run::champion), `random` (`random:7` for seed 7) for an untrained agent of a shape that fits the
    /// world, or an agent without weights, such as `random-actions`. A file or a run of that name comes first; a path such as
    /// `./car-racing` never means a champion. `None` loads the first champion of the world.
    ///
    /// ```
    /// let world = foveate::World::named("car-racing");
    /// let untrained = foveate::LoadedAgent::load(Some("random:7".as_ref()), &world)?;
    /// assert_eq!((untrained.file.name(), untrained.file.params().len()), ("attention-agent", 3667));
    /// # Ok::<(), foveate::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the weights do not exist, are invalid, or request a world that a file may not request.
    pub fn load(name: Option<&Path>, world: &World) -> Result<Self, RunError> {
        let Some(path) = name else { return Self::champion(world) };
        if is_onnx(path) {
            let why =
                format!("{} is an ONNX model; this takes the weights of an agent of Foveate", path.display());
            return Err(RunError::BadRequest { why });
        }
        if let Some(found) = champion::named(path) {
            let (file, source) = champion::load(found)?;
            let world = champion::request(&file, &source, world.asked())?;
            return Ok(LoadedAgent { file, source, world });
        }
        let text = path.to_str().filter(|_| !is_weights_or_run(path));
        let (file, source) = match text.and_then(made_up) {
            Some((made_up, seed)) => {
                let request = world.own();
                let (file, what) = match made_up {
                    MadeUp::Weights => (world.look(&request, |env| untrained(env, seed))?, "weights"),
                    MadeUp::Actions(agent) => {
                        (world.look(&request, |env| without_weights(agent, env, seed))?, "actions")
                    }
                };
                (file.made_for(&request), format!("random {what} of seed {seed}"))
            }
            None => load_named(path)?,
        };
        Self::of((file, source), world)
    }

    /// An agent with the label of its weights, in the world that its file or the user names.
    pub(crate) fn of((file, source): (AgentFile, String), world: &World) -> Result<Self, RunError> {
        let world = world.request(file.world(&source))?;
        Ok(LoadedAgent { file, source, world })
    }

    /// Loads the first of the trained agents included in Foveate for this world.
    ///
    /// # Errors
    /// When this world has no champion.
    pub fn champion(world: &World) -> Result<Self, RunError> {
        Self::of(champion::champion(&world.own().id)?, world)
    }

    /// Builds the agent with its weights.
    ///
    /// # Errors
    /// When the weights do not fit its settings.
    pub fn agent(&self) -> Result<Box<dyn Agent>, RunError> {
        Ok(self.file.agent()?)
    }
}

/// Whether a file is an ONNX model, by its name.
pub(crate) fn is_onnx(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"))
}

/// The labels of this world and these weights in reports and videos.
pub fn labels(request: &EnvRequest, weights: String) -> Labels {
    let own = || Some(WORLDS.get(&request.id)?.pictures.first()?.name.to_owned());
    let picture = request.picture.clone().or_else(own).unwrap_or_default();
    let variant = if request.variants.is_empty() { "original".into() } else { request.variants.join("+") };
    let shifts = request.shifts.iter().flat_map(|text| ["; ", text]);
    let variant = std::iter::once(&*variant).chain(shifts).collect();
    Labels { env: request.id.clone(), picture, variant, weights }
}

/// The same, with the world's options behind its variants, for a report that says what was studied.
pub(crate) fn labels_with_options(request: &EnvRequest, weights: String) -> Labels {
    let mut labels = labels(request, weights);
    for (key, value) in &request.options {
        labels.variant += &format!("; {key}={value}");
    }
    labels
}

/// No variant, then each variant of the world alone that needs no parameters and that its picture shows.
pub fn each_variant(request: &EnvRequest) -> Vec<Vec<String>> {
    let world = WORLDS.get(&request.id);
    let whole = world.into_iter().flat_map(|world| world.whole_variants(request.picture.as_deref()));
    std::iter::once(vec![]).chain(whole.map(|info| vec![info.name.to_owned()])).collect()
}

/// The agents that need no weight file.
#[derive(Debug, Clone, Copy)]
enum MadeUp {
    /// An agent with random weights.
    Weights,
    /// An agent that uses no observation and has no weights.
    Actions(&'static AgentDescriptor),
}

/// Parses `random`, `random:7`, `random-actions` and `random-actions:7`; returns the agent and the seed.
fn made_up(text: &str) -> Option<(MadeUp, u64)> {
    let (name, seed) = text.split_once(':').map_or((text, Some(0)), |(name, seed)| (name, seed.parse().ok()));
    if name == "random" {
        return Some((MadeUp::Weights, seed?));
    }
    let agent = AGENTS.get(name).filter(|agent| agent.sees == Sees::Nothing)?;
    Some((MadeUp::Actions(agent), seed?))
}

/// An untrained agent of a shape that fits the world: the default agent for its observation.
fn untrained(world: &mut dyn Env, seed: u64) -> Result<AgentFile, RunError> {
    let agent = usual(world.spec())?;
    let settings = fit::settings(agent, world)?;
    let params = initial_params(agent.name, &settings, Init::Torch, Seed::root(seed))?;
    Ok(AgentFile::new(agent.name, &settings, params)?)
}

/// An agent without weights, with this seed if it takes one.
fn without_weights(agent: &AgentDescriptor, world: &mut dyn Env, seed: u64) -> Result<AgentFile, RunError> {
    let mut settings = fit::settings(agent, world)?;
    if foveate_agents::registry::full_config(agent.name, &Value::Null)?.get("seed").is_some() {
        settings["seed"] = seed.into();
    }
    Ok(AgentFile::new(agent.name, &settings, vec![])?)
}

#[cfg(test)]
mod tests {
    use foveate_core::TensorShape;
    use foveate_run::worlds;

    use super::*;

    #[test]
    fn random_weights_have_a_seed() {
        for (text, expect) in [
            ("random", Some(("weights", 0))),
            ("random:7", Some(("weights", 7))),
            ("random-actions", Some(("random-actions", 0))),
            ("random-actions:7", Some(("random-actions", 7))),
            ("random:x", None),
            ("randomly", None),
            ("attention-agent", None),
            ("a", None),
        ] {
            let found = made_up(text).map(|(made_up, seed)| match made_up {
                MadeUp::Weights => ("weights", seed),
                MadeUp::Actions(agent) => (agent.name, seed),
            });
            assert_eq!(found, expect, "{text}");
        }
    }

    #[test]
    fn an_untrained_agent_fits_the_world() {
        let mut world = worlds::make(World::named("car-racing").own()).expect("a native one");
        let mut made = |seed| untrained(&mut *world, seed).expect("fine");
        let (a, b) = (made(1), made(2));
        assert_eq!(a.params().len(), 3667, "the published shape");
        assert_ne!(a.params(), b.params());
        let spec = worlds::shape(&World::named("take-cover").own()).expect("it is known without a game");
        let agent = usual(&spec).expect("one");
        let settings = fit::picture_settings(agent, &spec).expect("a picture");
        let tensors = foveate_agents::registry::tensors(agent.name, &settings).expect("fine");
        assert_eq!(tensors.iter().map(TensorShape::len).sum::<usize>(), 3633, "the published shape");
    }

    #[test]
    fn labels_name_what_is_shown() {
        let plain = World::named("car-racing").own();
        let label = |request: &EnvRequest| {
            let labels = labels(request, "w".into());
            (labels.picture, labels.variant)
        };
        let text = |picture: &str, variant: &str| (picture.to_owned(), variant.to_owned());
        assert_eq!(label(&plain), text("exact", "original"));
        let bar = EnvRequest { variants: vec!["bar".into()], ..plain.clone() };
        assert_eq!(label(&bar), text("exact", "bar"));
        let shifted = EnvRequest { shifts: vec!["hue:2".into()], ..plain.clone() };
        assert_eq!(label(&shifted), text("exact", "original; hue:2"));
        let both = EnvRequest { shifts: vec!["hue:2".into()], ..bar };
        assert_eq!(label(&both), text("exact", "bar; hue:2"));
        assert_eq!(label(&World::named("gym:X-v0").own()), text("world", "original"));
        let mut red = World::named("door-key-5x5").own();
        red.options = [("color".to_owned(), "red".to_owned())].into();
        assert_eq!(labels_with_options(&red, "w".into()).variant, "original; color=red");
    }

    #[test]
    fn variants_that_need_more_than_their_name_are_left_out() {
        let names = each_variant(&World::named("car-racing").own()).concat();
        assert!(names.contains(&"color".to_owned()) && !names.contains(&"video".to_owned()), "{names:?}");
        assert_eq!(each_variant(&World::named("gym:X-v0").own()), [[""; 0]]);
        // Numbers show no variant, pictures all.
        let numbers = World::named("cheetah-run").own();
        let pixels = EnvRequest { picture: Some("pixels".into()), ..numbers.clone() };
        assert_eq!((each_variant(&numbers).len(), each_variant(&pixels).len()), (1, 5));
    }
}

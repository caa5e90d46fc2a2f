//! Loads weights by name, with their world.

use std::path::Path;

use foveate_agents::Sees;
use foveate_agents::registry::{Init, initial_params, usual};
use foveate_core::hint::Setting;
use foveate_core::{ActMode, Agent, Env, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{AGENTS, AgentDescriptor, WORLDS};
use foveate_run::RunError;
use foveate_run::champion;
use foveate_run::evaluate::{self, EvalReport, EvalRequest, Labels, Seeds};
use foveate_run::explain::{self, Analysis, Comparison, ExplainRequest, Report};
use foveate_run::fit;
use foveate_run::job_cost::{JobCost, at_most, episodes_in_words};
use foveate_run::stress::{Contender, Tested};
use foveate_run::watch::{self, WatchReport, WatchRequest};
use foveate_run::weights::{AgentFile, is_run, is_weights_or_run, load_named};
use foveate_run::workers::Stop;
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

/// How to evaluate an agent. The results do not depend on the number of workers.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// The evaluation episodes.
    pub seeds: Seeds,
    /// Threads; 0 for one per core.
    pub workers: usize,
    /// Maximum steps per episode, if the world's own limit is not lower.
    pub max_steps: Option<u64>,
    /// Whether the agent draws its actions, as in training, in place of taking the most probable ones. Agents whose actions have
    /// no probabilities take the same ones.
    pub draw_actions: bool,
    /// Stops the evaluation early.
    pub stop: Stop,
}

impl Default for Evaluation {
    fn default() -> Self {
        Evaluation {
            seeds: Seeds::Stream { seed: 1, episodes: 100 },
            workers: 0,
            max_steps: None,
            draw_actions: false,
            stop: Stop::default(),
        }
    }
}

/// Which episode to record, and the output file.
#[derive(Debug, Clone)]
pub struct Film<'a> {
    /// The seed of the world's random stream.
    pub seed: u64,
    /// Index of the episode in that stream; 0 is the first.
    pub episode: usize,
    /// Steps to record; `None` for the whole episode.
    pub steps: Option<usize>,
    /// Width and height in pixels, both even; `None` for the default size.
    pub size: Option<(usize, usize)>,
    /// The output file; its extension selects the format: `.mp4` or `.gif` for a video, `.png` for an image
    /// of one step.
    pub out: &'a Path,
    /// For an image: the step that it shows.
    pub at: Option<usize>,
    /// Whether to measure how far each action changes without each thing that is attended to, and draw it as frames.
    pub effects: bool,
}

/// What to explain, and the output folder.
#[derive(Debug, Clone)]
pub struct Explanation<'a> {
    /// The seed of the world's random stream; the report shows its first episode.
    pub seed: u64,
    /// Number of episodes for the statistics.
    pub episodes: usize,
    /// Decisions per episode that are tested.
    pub decisions: usize,
    /// Untrained agents of the same kind that go through the same measurement.
    pub untrained: usize,
    /// Maximum steps per episode, if the world's own limit is not lower.
    pub max_steps: Option<usize>,
    /// Threads; 0 for one per core.
    pub workers: usize,
    /// The output folder; an older report there is replaced.
    pub out: &'a Path,
}

impl Evaluation {
    /// The evaluation of `agent` in `env`, which is the world of `request`.
    pub fn request<'a>(
        &self,
        env: &'a dyn Env,
        agent: &'a dyn Agent,
        request: &EnvRequest,
        labels: Labels,
    ) -> EvalRequest<'a> {
        let Evaluation { ref seeds, workers, max_steps, draw_actions, .. } = *self;
        let mode = if draw_actions { ActMode::Explore { epsilon: 0.0 } } else { ActMode::Greedy };
        // The scores to compare with are of whole episodes.
        let reference = foveate_registry::reference(request).filter(|_| max_steps.is_none());
        EvalRequest { env, agent, labels, seeds: seeds.clone(), workers, max_steps, mode, reference }
    }
}

impl<'a> Film<'a> {
    /// The recording of `agent` in `env`.
    pub fn request(&self, env: &'a dyn Env, agent: &'a dyn Agent, labels: Labels) -> WatchRequest<'a> {
        let Film { seed, episode, steps, size, out, at, effects } = *self;
        WatchRequest { env, agent, labels, seed, episode, steps, every: 1, size, out, at, effects }
    }
}

impl<'a> Explanation<'a> {
    /// The report of `agent` in `env`.
    pub fn request(&self, env: &'a dyn Env, agent: &'a dyn Agent, labels: Labels) -> ExplainRequest<'a> {
        let Explanation { seed, episodes, decisions, untrained, max_steps, workers, out } = *self;
        let sensors = WORLDS.get(&env.spec().id).map_or(&[][..], |world| world.sensors);
        ExplainRequest {
            env,
            agent,
            labels,
            sensors,
            seed,
            episodes,
            decisions,
            untrained,
            max_steps,
            workers,
            out,
        }
    }
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
        if let Some(found) = champion::named(path) {
            let (file, source) = champion::load(found)?;
            let world = champion::request(&file, &source, world.flags())?;
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
    fn of((file, source): (AgentFile, String), world: &World) -> Result<Self, RunError> {
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

    /// The labels of its world and weights in reports and videos.
    pub fn labels(&self) -> Labels {
        labels(&self.world, self.source.clone())
    }

    /// Runs the episodes and summarises their returns.
    ///
    /// # Errors
    /// When the world cannot be built, when world or agent fail, or when a stop was requested.
    pub fn evaluate(&self, world: &World, how: &Evaluation) -> Result<EvalReport, RunError> {
        self.evaluate_in(world, &self.world, how)
    }

    /// Evaluates the agent in the unchanged world and in each of its variants that needs no parameters. Calls
    /// `before` with a variant's label before its episodes start, and `told` with its report when they are
    /// done.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::evaluate`], and any error that `told` returns.
    pub fn evaluate_variants<E: From<RunError>>(
        &self,
        world: &World,
        how: &Evaluation,
        before: &mut dyn FnMut(&Labels),
        told: &mut dyn FnMut(EvalReport) -> Result<(), E>,
    ) -> Result<(), E> {
        let all = each_variant(&self.world);
        let (worlds, episodes) = (all.len(), how.seeds.count());
        let limit = at_most(world.make(&self.world)?.spec().max_steps, how.max_steps);
        let each = format!("{}{limit}", episodes_in_words(episodes));
        let parts =
            format!("{each} in each of {worlds} worlds, {} in all", episodes_in_words(worlds * episodes));
        how.stop.announce(JobCost::of_episodes("eval", parts, worlds * episodes, how.workers));
        for variants in all {
            let request = EnvRequest { variants, ..self.world.clone() };
            before(&labels(&request, self.source.clone()));
            told(self.evaluate_in(world, &request, how)?)?;
        }
        Ok(())
    }

    fn evaluate_in(
        &self,
        world: &World,
        request: &EnvRequest,
        how: &Evaluation,
    ) -> Result<EvalReport, RunError> {
        let (env, agent) = (world.make(request)?, self.agent()?);
        let labels = labels(request, self.source.clone());
        evaluate::run(&how.request(&*env, &*agent, request, labels), &how.stop)
            .map_err(|error| fit::with_picture(error, request, &self.file))
    }

    /// Records an episode: the world, the agent's observation, and what the agent attends to. Calls
    /// `progress` with the number of recorded steps.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::evaluate`]; when the file cannot be written.
    pub fn watch(
        &self,
        world: &World,
        film: &Film<'_>,
        stop: &Stop,
        progress: &mut dyn FnMut(usize),
    ) -> Result<WatchReport, RunError> {
        let (env, agent) = (world.make(&self.world)?, self.agent()?);
        watch::run(&film.request(&*env, &*agent, self.labels()), stop, progress)
            .map_err(|error| fit::with_picture(error, &self.world, &self.file))
    }

    /// Writes the report on what the agent attends to, and on whether it acts on that.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::evaluate`]; when the agent has no attention; when the folder cannot be
    /// written.
    pub fn explain(
        &self,
        world: &World,
        explanation: &Explanation<'_>,
        stop: &Stop,
        progress: &mut dyn FnMut(explain::Progress),
    ) -> Result<Report, RunError> {
        self.explaining(world, explanation, |request| explain::run(request, stop, progress))
    }

    /// Analyses the heads of an agent that attends to the cells of a picture, and writes figures and numbers.
    ///
    /// Where a game's actions may stick and nothing says how often, `sticky` makes them stick with probability 0.25: a game that
    /// goes the same way each time says little about an agent.
    ///
    /// # Errors
    /// Those of [`LoadedAgent::evaluate`]; when the agent has no such heads; when the folder cannot be written.
    pub fn heads(
        &self,
        world: &World,
        analysis: &'static dyn Analysis,
        sticky: bool,
        explanation: &Explanation<'_>,
        stop: &Stop,
        progress: &mut dyn FnMut(explain::Progress),
    ) -> Result<Report, RunError> {
        let mut played = self.clone();
        let chance = stick(&mut played.world, sticky);
        played.explaining(world, explanation, |request| {
            explain::heads(request, analysis, chance, stop, progress)
        })
    }

    fn explaining<T>(
        &self,
        world: &World,
        explanation: &Explanation<'_>,
        run: impl FnOnce(&ExplainRequest<'_>) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let (env, agent) = (world.make(&self.world)?, self.agent()?);
        let labels = labels_with_options(&self.world, self.source.clone());
        run(&explanation.request(&*env, &*agent, labels))
            .map_err(|error| fit::with_picture(error, &self.world, &self.file))
    }
}

/// The option of a world whose actions may stick, and the probability that ALE's v5 games have.
const STICKY: (&str, &str) = ("sticky", "0.25");

/// Makes the actions of a game stick, if it has that option, nothing sets it and `wanted`; returns the probability with which
/// they stick, `None` where there is no such option.
fn stick(world: &mut EnvRequest, wanted: bool) -> Option<f64> {
    let (option, usual) = STICKY;
    WORLDS.get(&world.id)?.options.iter().find(|choice| choice.name == option)?;
    if wanted && !world.options.contains_key(option) {
        world.options.insert(option.to_owned(), usual.to_owned());
    }
    world.options.get(option).map_or(Some(0.0), |given| given.parse().ok())
}

/// Loads several agents that act in the same world, each with a unique name as its column header; loads the
/// champion when no name is given.
///
/// # Errors
/// Those of [`LoadedAgent::load`]; when two of the agents are made for different worlds.
pub fn load_all<P: AsRef<Path>>(
    names: &[P],
    world: &World,
) -> Result<(Vec<Contender>, EnvRequest), RunError> {
    let mut agents: Vec<(Contender, EnvRequest)> = vec![];
    for path in names.iter().map(AsRef::as_ref) {
        let LoadedAgent { file, source, world } = LoadedAgent::load(Some(path), world)?;
        let name = if is_run(path) { path.display().to_string() } else { stem(path) };
        let taken = agents.iter().any(|(agent, _)| agent.name == name);
        let name = if taken { path.display().to_string() } else { name };
        agents.push((Contender { name, tested: Tested::File(file), source }, world));
    }
    if agents.is_empty() {
        let LoadedAgent { file, source, world } = LoadedAgent::champion(world)?;
        agents.push((Contender { name: source.clone(), tested: Tested::File(file), source }, world));
    }
    let (first, world) = &agents[0];
    if let Some((other, its)) = agents.iter().find(|(_, its)| its != world) {
        return Err(RunError::BadRequest {
            why: format!(
                "{} drives in {}, {} in {}; put both in one world with {}, {}, {} and {}",
                first.name,
                called(world),
                other.name,
                called(its),
                Setting::World,
                Setting::Picture,
                Setting::Variant,
                Setting::Option
            ),
        });
    }
    let world = world.clone();
    Ok((agents.into_iter().map(|(agent, _)| agent).collect(), world))
}

/// Compares what agents act on, each in its own world, and in that world with each of its shifts alone; loads the champion when no
/// name is given.
///
/// # Errors
/// Those of [`LoadedAgent::load`] and [`LoadedAgent::evaluate`]; when an agent has nothing that could be swapped; when the
/// folder cannot be written.
pub fn compare_explanations<P: AsRef<Path>>(
    names: &[P],
    world: &World,
    explanation: &Explanation<'_>,
    stop: &Stop,
    progress: &mut dyn FnMut(explain::Progress),
) -> Result<Comparison, RunError> {
    let mut agents: Vec<(String, LoadedAgent)> = vec![];
    for path in names.iter().map(AsRef::as_ref) {
        let name = if is_run(path) { path.display().to_string() } else { stem(path) };
        let taken = agents.iter().any(|(other, _)| *other == name);
        let name = if taken { path.display().to_string() } else { name };
        agents.push((name, LoadedAgent::load(Some(path), world)?));
    }
    if agents.is_empty() {
        agents.push(("champion".into(), LoadedAgent::champion(world)?));
    }
    let mut rows = vec![];
    for (name, loaded) in agents {
        let shifts = loaded.world.shifts.clone();
        let plain = EnvRequest { shifts: vec![], ..loaded.world.clone() };
        let shifted = shifts
            .into_iter()
            .map(|shift| (format!("{name} {shift}"), EnvRequest { shifts: vec![shift], ..plain.clone() }));
        for (name, request) in std::iter::once((name.clone(), plain.clone())).chain(shifted) {
            let (env, agent) = (world.make(&request)?, loaded.agent()?);
            rows.push((name, env, agent, labels_with_options(&request, loaded.source.clone())));
        }
    }
    let requests: Vec<(String, ExplainRequest<'_>)> = rows
        .iter()
        .map(|(name, env, agent, labels)| {
            (name.clone(), explanation.request(&**env, &**agent, labels.clone()))
        })
        .collect();
    explain::compare(&requests, stop, progress)
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// A short label of a world.
fn called(world: &EnvRequest) -> String {
    let picture = world.picture.as_deref().unwrap_or("its own");
    let options = world.options.iter().map(|(key, value)| format!("{key}={value}"));
    let more: Vec<String> = world.variants.iter().chain(&world.shifts).cloned().chain(options).collect();
    let more = if more.is_empty() { String::new() } else { format!(" with {}", more.join(", ")) };
    format!("{} (picture {picture}{more})", world.id)
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
fn labels_with_options(request: &EnvRequest, weights: String) -> Labels {
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

    #[test]
    fn actions_of_games_stick_unless_something_says_otherwise() {
        let world = |id: &str, options: &[(&str, &str)]| EnvRequest {
            id: id.into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        };
        for (id, options, wanted, chance) in [
            ("atari", &[][..], true, Some(0.25)),
            ("atari", &[("game", "breakout")], true, Some(0.25)),
            ("pong", &[], true, Some(0.25)),
            ("atari", &[("sticky", "0.05")], true, Some(0.05)),
            ("atari", &[("sticky", "0")], true, Some(0.0)),
            ("atari", &[], false, Some(0.0)),
            ("pong", &[("sticky", "0.1")], false, Some(0.1)),
            ("door-key-5x5", &[], true, None),
            ("car-racing", &[], true, None),
        ] {
            let mut played = world(id, options);
            assert_eq!(stick(&mut played, wanted), chance, "{id} {options:?} {wanted}");
            let set = played.options.get("sticky").and_then(|text| text.parse().ok());
            assert!(set == chance || chance == Some(0.0), "{played:?}");
        }
    }
}

//! Adapts a training configuration to its world.
//!
//! A native world has its own preset. A Gymnasium environment is created first, and its observation selects
//! the preset: numbers alone → the preset `gymnasium`, a plain controller; a picture → `gymnasium-pictures`,
//! `AttentionAgent`; a grid → `relational`, where the world names it; neither, or numbers where a picture is wanted → the environment's rendered picture. The
//! user's settings override all of this.

use foveate_agents::registry::{self, PictureView, find};
use foveate_agents::{AGENTS, AgentDescriptor, Sees};
use foveate_core::episode::{
    Actor, ActorError, AfterStep, Chosen, Episode, EpisodeRules, Observer, RawAction,
};
use foveate_core::hint::Setting;
use foveate_core::{
    ActContext, ActionBuf, ActionSpace, Env, EnvSpec, ObservationSpace, PolicyError, Rng, Seed, near,
};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{OTHERS, PRESETS, Preset, WORLDS, WorldDescriptor, default_world, presets_of};
use serde_json::{Map, Value};
use toml::Table;

use crate::RunError;
use crate::config::{TrainConfig, UserSettings, env_id, preset_table};
use crate::progress::Note;
use crate::suggest;
use crate::weights::AgentFile;
use crate::worlds::{self, WRAP};

/// Maximum steps of an episode if neither the world nor the recipe limits them.
const MAX_STEPS: usize = 1000;

/// A worker's message about an environment whose observation has neither a picture nor numbers.
const SHOWS_NOTHING: &str = "nothing in its observation is a picture or a number";

/// A configuration, and the world that was created to complete it: while it exists, the same world can be
/// created again without waiting for a new process.
pub struct Configured {
    /// What to train.
    pub config: TrainConfig,
    /// The world, if it was created.
    pub world: Option<Box<dyn Env>>,
    /// What the user should know about the choices made.
    pub note: Option<Note>,
}

/// The complete configuration of a run: a preset, by default the world's usual one, overridden by the world's
/// own settings, overridden by the user's settings.
///
/// # Errors
/// When the preset is unknown or does not suit the world, a key does not exist, a value is out of its range,
/// or the world cannot be created.
pub fn configure(preset: Option<&str>, said: &UserSettings) -> Result<Configured, RunError> {
    // A preset's own world, where no other is said.
    let of_preset = || env_id(&preset_table(PRESETS.get(preset?)?.name).ok()?);
    let id = said.world().or_else(of_preset).unwrap_or_else(|| default_world().name.to_owned());
    // Options and pictures of a world are checked when it is created.
    let world = foveate_registry::world(&id).map_err(suggest::named)?;
    let usual = usual_preset(world)?;
    let named = preset.map(|name| preset_called(name, world, &id)).transpose()?;
    let (config, world, note) = match named {
        Some(preset) if !preset.suits(world) => {
            return Err(RunError::BadRequest { why: not_for(preset, &id, world) });
        }
        _ if named.unwrap_or(usual).open => {
            let Seen { mut env, mut picture, mut note } = seen(named, said, world)?;
            let preset = named.map_or_else(|| suits(&*env, said, world), Ok)?;
            if let Some(own) = own_picture(preset, said, world)?.filter(|own| *own != picture) {
                env = worlds::make(said.env(&own).request()?)?;
                picture = own;
                note = None; // it was about the other picture
            }
            let mut config = said.config(preset.name, of_world(env.spec(), picture.clone(), preset)?)?;
            if config.env.options != said.env(&picture).options {
                // The preset sets options of the world, which change its shape.
                env = worlds::make(config.env.request()?)?;
                config = said.config(preset.name, of_world(env.spec(), picture, preset)?)?;
            }
            (config, Some(env), note)
        }
        preset => (said.config(preset.unwrap_or(usual).name, Table::new())?, None, None),
    };
    let mut configured = Configured { config, world, note };
    configured.fit_agent()?;
    Ok(configured)
}

/// The preset called `name`, or the only one of this kind that the world `id` has: a part of its name, its learner or its
/// agent. The presets of the world come first.
fn preset_called(name: &str, world: &WorldDescriptor, id: &str) -> Result<&'static Preset, RunError> {
    let own = presets_of(world);
    if let Some(preset) = own.iter().find(|preset| preset.name == name) {
        return Ok(preset);
    }
    let mut of_kind = vec![];
    for &preset in &own {
        if format!("-{}-", preset.name).contains(&format!("-{name}-"))
            || preset.agent == name
            || learners(preset)?.iter().any(|learner| learner == name)
        {
            of_kind.push(preset);
        }
    }
    match (&*of_kind, PRESETS.get(name)) {
        (&[one], _) => Ok(one),
        ([], Some(other)) => Ok(other),
        ([], None) => Err(RunError::BadRequest {
            why: format!(
                "no preset for {id} is called {name:?}, and none is of that kind;{} choose from: {}",
                near::hint_of(name, own.iter().map(|preset| preset.name)),
                names(&own)
            ),
        }),
        (several, _) => Err(RunError::BadRequest {
            why: format!("{id} has several presets of the kind {name}: {}; name one of them", names(several)),
        }),
    }
}

/// The learners of a preset's stages.
fn learners(preset: &Preset) -> Result<Vec<String>, RunError> {
    let table = preset_table(preset.name)?;
    let named = |table: &Table| table.get("algorithm").and_then(|name| Some(name.as_str()?.to_owned()));
    let Some(recipe) = table.get("recipe").and_then(toml::Value::as_table) else { return Ok(vec![]) };
    let stages = recipe.get("stage").and_then(toml::Value::as_array).map_or(&[][..], Vec::as_slice);
    let usual = named(recipe);
    Ok(stages.iter().filter_map(|stage| named(stage.as_table()?).or_else(|| usual.clone())).collect())
}

fn names(presets: &[&Preset]) -> String {
    presets.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

/// Says for which worlds a preset is, and what the world called `id` has.
fn not_for(preset: &Preset, id: &str, world: &WorldDescriptor) -> String {
    const NAMED: usize = 4;
    let worlds: Vec<_> = WORLDS.iter().filter(|world| preset.suits(world)).collect();
    let mut whose: Vec<&str> = worlds.iter().take(NAMED).map(|world| world.name).collect();
    let more = format!("{} more", worlds.len().saturating_sub(NAMED));
    if preset.open && preset.worlds.contains(&OTHERS) {
        whose = vec!["worlds that have none of their own"];
    } else if worlds.len() > NAMED {
        whose.push(&more);
    }
    format!(
        "preset {} is for {}, and {id} has: {}; choose one of those, or leave the preset out",
        preset.name,
        whose.join(", "),
        names(&presets_of(world)),
    )
}

/// The presets of a world that learn without an expert or a teacher.
pub(crate) fn presets_without_expert(world: &WorldDescriptor) -> Result<Vec<&'static str>, RunError> {
    let mut names = vec![];
    for preset in presets_of(world) {
        if !learners(preset)?.iter().any(|learner| learner == "imitation") {
            names.push(preset.name);
        }
    }
    Ok(names)
}

/// The default preset of a world.
///
/// # Errors
/// When no preset suits it.
pub fn usual_preset(world: &WorldDescriptor) -> Result<&'static Preset, RunError> {
    let none = || RunError::BadRequest { why: format!("no preset suits the world {}", world.name) };
    presets_of(world).first().copied().ok_or_else(none)
}

/// The picture that the preset names, if the world has it and neither the user nor the user's choice of an agent asks for
/// another.
fn own_picture(
    preset: &Preset,
    said: &UserSettings,
    world: &WorldDescriptor,
) -> Result<Option<String>, RunError> {
    if said.section("env").contains_key("picture") || agent(said).is_some_and(|name| name != preset.agent) {
        return Ok(None);
    }
    let table = preset_table(preset.name)?;
    let named = table.get("env").and_then(|env| env.get("picture")?.as_str());
    Ok(named.filter(|name| world.pictures.iter().any(|picture| picture.name == *name)).map(str::to_owned))
}

/// A world whose observation is known now.
struct Seen {
    env: Box<dyn Env>,
    /// The name of its picture.
    picture: String,
    /// Why it shows another picture than its own.
    note: Option<Note>,
}

/// Creates a world whose observation is only known afterwards.
fn seen(preset: Option<&Preset>, said: &UserSettings, world: &WorldDescriptor) -> Result<Seen, RunError> {
    let make = |picture: &str| worlds::make(said.env(picture).request()?);
    if let Some(picture) = said.section("env").get("picture").and_then(toml::Value::as_str) {
        return Ok(Seen { env: make(picture)?, picture: picture.to_owned(), note: None });
    }
    let own = preset.map(|preset| own_picture(preset, said, world)).transpose()?.flatten();
    let usual = own.as_deref().unwrap_or_else(|| world.pictures.first().map_or("", |picture| picture.name));
    let why = match make(usual) {
        Ok(env) => {
            let preset = preset.map(|preset| preset.agent.to_owned());
            let agent = agent(said).or(preset).map(|name| find(&name)).transpose()?;
            let looks = agent.is_some_and(|agent| agent.sees == Sees::Picture);
            if !looks || env.spec().observation.picture().is_some() || world.fallback_picture.is_none() {
                return Ok(Seen { env, picture: usual.to_owned(), note: None });
            }
            format!("it shows {} and no picture", env.spec().observation.describe())
        }
        Err(error) if error.to_string().contains(SHOWS_NOTHING) => {
            "it shows neither a picture nor numbers".into()
        }
        Err(error) => return Err(error),
    };
    let drawn = world.fallback_picture.unwrap_or(usual);
    let env = make(drawn)?;
    let world = env.spec().id.clone();
    let note = Note::RenderedPicture { world, why, picture: drawn.to_owned() };
    Ok(Seen { env, picture: drawn.to_owned(), note: Some(note) })
}

/// The agent that the user names.
fn agent(said: &UserSettings) -> Option<String> {
    said.section("agent").get("name").and_then(toml::Value::as_str).map(str::to_owned)
}

/// The first preset of `world` whose agent takes the world's observation, or the kind of observation that the user's agent takes,
/// and which names no other picture than the user's.
fn suits(env: &dyn Env, said: &UserSettings, world: &WorldDescriptor) -> Result<&'static Preset, RunError> {
    let named = agent(said).map(|name| find(&name)).transpose()?;
    let observation = &env.spec().observation;
    let looks = observation.picture().is_some()
        && named.is_none_or(|agent| agent.sees_in(observation) == Sees::Picture);
    let wanted = match observation {
        ObservationSpace::Grid { .. } => Sees::Grid,
        _ if looks => Sees::Picture,
        _ => Sees::Numbers,
    };
    let asked = said.section("env").get("picture").cloned();
    for preset in presets_of(world) {
        let takes = AGENTS.get(preset.agent).is_some_and(|agent| agent.sees_in(observation) == wanted);
        let table = preset_table(preset.name)?;
        let own = table.get("env").and_then(|env| env.get("picture"));
        if takes && (own.is_none() || asked.is_none() || own == asked.as_ref()) {
            return Ok(preset);
        }
    }
    usual_preset(world)
}

/// `error`; if it is that the world of `request` shows another observation than the agent of `file` was built for, with the
/// picture of that world that shows it.
pub fn with_picture(error: RunError, request: &EnvRequest, file: &AgentFile) -> RunError {
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(of) = cause
        && !matches!(of.downcast_ref(), Some(PolicyError::ObservationShape { .. }))
    {
        cause = of.source();
    }
    // Others take long to build.
    let Some(world) = WORLDS.get(&request.id).filter(|world| cause.is_some() && !world.has_process) else {
        return error;
    };
    let acts_on = |picture: &str| -> Result<(), RunError> {
        let mut env = worlds::make(EnvRequest { picture: Some(picture.to_owned()), ..request.clone() })?;
        env.reset(Some(0));
        file.agent()?.act(env.observation(), &mut ActContext::default())?;
        Ok(())
    };
    match world.pictures.iter().find(|picture| acts_on(picture.name).is_ok()) {
        Some(picture) => RunError::BadRequest {
            why: format!("{error}; with {} it shows that", Setting::Picture.to(picture.name)),
        },
        None => error,
    }
}

/// The settings that presets for many worlds leave to the world. If the preset limits episodes, too, the lower limit holds.
fn of_world(spec: &EnvSpec, picture: String, preset: &Preset) -> Result<Table, RunError> {
    let table =
        |key: &str, value: toml::Value| toml::Value::Table(Table::from_iter([(key.to_owned(), value)]));
    let preset = preset_table(preset.name)?;
    let limit = preset.get("recipe").and_then(|recipe| recipe.get("max_steps")?.as_integer());
    let max_steps = i64::try_from(spec.max_steps.unwrap_or(MAX_STEPS)).unwrap_or(i64::MAX);
    let max_steps = limit.map_or(max_steps, |limit| limit.min(max_steps));
    Ok(Table::from_iter([
        ("env".to_owned(), table("picture", picture.into())),
        ("recipe".to_owned(), table("max_steps", max_steps.into())),
    ]))
}

impl Configured {
    /// Sets the agent's inputs and actions to those of the world, where the configuration does not set them.
    fn fit_agent(&mut self) -> Result<(), RunError> {
        let Configured { config, world, .. } = self;
        let agent = find(&config.agent.name)?;
        let usual = WORLDS.get(&config.env.id).is_none_or(|world| world.default_agents_fit);
        if usual && matches!(agent.sees, Sees::Picture | Sees::Nothing) {
            return Ok(());
        }
        let request = config.env.request()?;
        let sees = match (agent.sees, world.as_deref()) {
            (Sees::PictureOrNumbers | Sees::Anything, Some(env)) => agent.sees_in(&env.spec().observation),
            (Sees::PictureOrNumbers | Sees::Anything, None) => {
                agent.sees_in(&worlds::shape(&request)?.observation)
            }
            (one, _) => one,
        };
        let fitted = if sees == Sees::Numbers {
            let mut env = world.take().map_or_else(|| worlds::make(request), Ok)?;
            let spec = env.spec().clone();
            let has_all = is_complete(&config.agent.config, &(agent.fit)(&spec, &[]));
            let fitted = if has_all { Value::Null } else { settings(agent, &mut *env)? };
            *world = Some(env);
            fitted
        } else {
            let spec =
                world.as_ref().map_or_else(|| worlds::shape(&request), |env| Ok(env.spec().clone()))?;
            picture_settings(agent, &spec)?
        };
        if let Value::Object(fitted) = fitted {
            complete(&mut config.agent.config, fitted);
        }
        match sees {
            Sees::Picture => self.choose_view()?,
            Sees::Numbers => self.name_sensors()?,
            Sees::Grid | Sees::Nothing | Sees::PictureOrNumbers | Sees::Anything => {}
        }
        Ok(())
    }

    /// Gives an agent that knows its numbers by name those of the world, unless the configuration names them.
    fn name_sensors(&mut self) -> Result<(), RunError> {
        let Configured { config, world, .. } = self;
        let sensors = WORLDS.get(&config.env.id).map_or(&[][..], |world| world.sensors);
        let numbers = world.as_ref().map_or(0, |env| env.spec().observation.numbers());
        // With shifts and wrappers, a world may show other numbers.
        if sensors.is_empty() || sensors.len() != numbers || config.agent.config.contains_key("sensors") {
            return Ok(());
        }
        let mut named = config.agent.clone();
        named.config.insert("sensors".to_owned(), sensors.to_vec().into());
        // Not every agent has names for them.
        if registry::full_config(&named.name, &named.settings()?).is_ok() {
            config.agent = named;
        }
        Ok(())
    }

    /// Wraps a world that shows one picture in colours into what the agent [is to see](AgentConfig::view), unless the
    /// configuration has wrappers of its own.
    fn choose_view(&mut self) -> Result<(), RunError> {
        let Configured { config, world, .. } = self;
        if config.env.options.contains_key(WRAP) {
            return Ok(());
        }
        let settings = serde_json::to_value(&config.agent.config).unwrap_or_default();
        let Some(view) = registry::config(&config.agent.name, &settings)?.view() else { return Ok(()) };
        let shape = match world {
            Some(env) => env.spec().observation.image(),
            None => worlds::shape(&config.env.request()?)?.observation.image(),
        };
        if shape.is_none_or(|shape| (shape.frames, shape.channels) != (1, 3)) {
            return Ok(());
        }
        let blank = WORLDS.get(&config.env.id).and_then(|world| world.hide_readouts);
        if let Some(wrappers) = wrappers(view, blank) {
            config.env.options.insert(WRAP.to_owned(), wrappers.into());
            *world = None;
        }
        Ok(())
    }
}

/// The wrappers that show an agent this view; `blank` hides the world's readouts.
fn wrappers(view: PictureView, blank: Option<&str>) -> Option<String> {
    let grey = view.grey.then(|| "grey:opencv".to_owned());
    let blank = blank.filter(|_| !view.readouts).map(str::to_owned);
    let stack = (view.frames > 1).then(|| format!("stack:{}", view.frames));
    let all: Vec<String> = grey.into_iter().chain(blank).chain(stack).collect();
    (!all.is_empty()).then(|| all.join("+"))
}

/// Returns whether `settings` has every key of `fitted`.
fn is_complete(settings: &Table, fitted: &Value) -> bool {
    fitted.as_object().is_some_and(|fitted| fitted.keys().all(|key| settings.contains_key(key)))
}

/// Adds the fitted settings that `settings` does not have.
fn complete(settings: &mut Table, fitted: Map<String, Value>) {
    for (key, value) in fitted {
        match (settings.get_mut(&key), value) {
            (Some(toml::Value::Table(settings)), Value::Object(fitted)) => complete(settings, fitted),
            (Some(_), _) => {}
            (None, value) => {
                if let Ok(value) = toml::Value::try_from(value) {
                    settings.insert(key, value);
                }
            }
        }
    }
}

/// The settings of `agent` for a world: its picture, or the range of every number in its observation, and its
/// actions.
///
/// # Errors
/// When the world does not show what the agent needs, or a step of it fails.
pub fn settings(agent: &AgentDescriptor, env: &mut dyn Env) -> Result<Value, RunError> {
    let spec = env.spec().clone();
    if agent.sees_in(&spec.observation) != Sees::Numbers {
        return picture_settings(agent, &spec);
    }
    let numbers = spec.observation.numbers();
    if numbers == 0 {
        let shows = spec.observation.describe();
        let other = AGENTS.iter().find(|agent| agent.sees == Sees::Picture).map_or("another", |a| a.name);
        let why = format!(
            "{} shows {shows} and no numbers, which agent {} needs; choose agent {other}",
            spec.id, agent.name
        );
        return Err(RunError::BadRequest { why });
    }
    Ok((agent.fit)(&spec, &ranges(env, numbers)?))
}

/// The settings for a world of this shape, of an agent that takes no numbers.
///
/// # Errors
/// When the agent needs a picture or a grid and the world shows none.
pub fn picture_settings(agent: &AgentDescriptor, spec: &EnvSpec) -> Result<Value, RunError> {
    if agent.sees == Sees::Picture {
        worlds::needs_picture(spec)?;
    }
    if agent.sees == Sees::Grid {
        needs_grid(agent, spec)?;
    }
    Ok((agent.fit)(spec, &[]))
}

/// Checks that the world shows a grid; the error names agents for what it shows, those of its presets first.
fn needs_grid(agent: &AgentDescriptor, spec: &EnvSpec) -> Result<(), RunError> {
    let observation = &spec.observation;
    if matches!(observation, ObservationSpace::Grid { .. }) {
        return Ok(());
    }
    let wanted = if observation.picture().is_some() { Sees::Picture } else { Sees::Numbers };
    let world = WORLDS.get(&spec.id);
    let presets = world.map(presets_of).unwrap_or_default();
    let own: Vec<_> = presets.iter().filter_map(|preset| AGENTS.get(preset.agent)).collect();
    let fits = |other: &&AgentDescriptor| other.sees != Sees::Nothing && other.sees_in(observation) == wanted;
    let mut why = format!(
        "{} shows {} and no grid of cells, which agent {} needs",
        spec.id,
        observation.describe(),
        agent.name
    );
    if let Some(other) = own.iter().copied().chain(AGENTS.iter()).find(fits) {
        why.push_str(&format!("; choose agent {}", other.name));
    }
    // Worlds with an agent for grids are small.
    let has_grid = |picture: &&str| {
        let request =
            EnvRequest { id: spec.id.clone(), picture: Some((*picture).to_owned()), ..EnvRequest::default() };
        worlds::make(request).is_ok_and(|env| matches!(env.spec().observation, ObservationSpace::Grid { .. }))
    };
    let pictures = world.map_or(&[][..], |world| world.pictures).iter().map(|picture| picture.name);
    if own.iter().any(|other| other.sees == Sees::Grid) {
        let pictures: Vec<_> = pictures.filter(has_grid).collect();
        why.push_str(&format!(", or another of the world's pictures, {}", pictures.join(", ")));
    }
    Err(RunError::BadRequest { why })
}

/// The minimum and maximum of every number in a world's observation under random actions, each held for some
/// steps; the actions are always the same. A number that does not change gets a range of 2 around it.
fn ranges(env: &mut dyn Env, numbers: usize) -> Result<Vec<[f64; 2]>, RunError> {
    const EPISODES: u64 = 8;
    let mut seen = SeenRanges(vec![[f64::INFINITY, f64::NEG_INFINITY]; numbers]);
    for number in 0..EPISODES {
        let rng = Seed::root(0).child("ranges", number).rng();
        let space = env.spec().action.clone();
        let mut actor = RandomActor { action: space.zero(), space, rng };
        let rules = EpisodeRules { max_steps: 200, ..EpisodeRules::WHOLE };
        let driven = Episode::of_seed(number, rules).run(env, &mut actor, &mut seen);
        driven.map_err(RunError::of_weights("random actions"))?;
    }
    let SeenRanges(all) = seen;
    Ok(all.into_iter().map(range).collect())
}

/// Acts at random, and holds every action for some steps.
struct RandomActor {
    space: ActionSpace,
    rng: Rng,
    action: ActionBuf,
}

impl Actor for RandomActor {
    fn act(&mut self, _: &mut dyn Env, step: u64, _: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        const HELD: u64 = 8;
        let RandomActor { space, rng, action } = self;
        if step.is_multiple_of(HELD) {
            *action = space.sample(rng);
        }
        let action = match action {
            ActionBuf::Discrete(choice) => RawAction::Choice(*choice),
            ActionBuf::Continuous(numbers) => RawAction::Outputs(numbers),
        };
        Ok(Chosen { action, decision: None })
    }
}

/// The minimum and maximum of every observed number.
struct SeenRanges(Vec<[f64; 2]>);

impl Observer<RunError> for SeenRanges {
    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), RunError> {
        let Some(seen) = step.env.observation().numbers() else { return Ok(()) };
        for ([low, high], &x) in self.0.iter_mut().zip(seen).filter(|(_, x)| x.is_finite()) {
            (*low, *high) = (low.min(f64::from(x)), high.max(f64::from(x)));
        }
        Ok(())
    }
}

/// An observed range, rounded to few digits.
fn range([low, high]: [f64; 2]) -> [f64; 2] {
    let short = |x: f64| format!("{x:.2e}").parse::<f64>().unwrap_or(x);
    if !(low.is_finite() && high.is_finite()) {
        return [-1.0, 1.0];
    }
    let [from, to] = [short(low), short(high)];
    // Narrower than the digits that are kept, or than meaningful noise.
    if to - from < 1e-6 { [short(low) - 1.0, short(low) + 1.0] } else { [from, to] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::WorldSpec;
    use foveate_envs::registry::EnvRequest;

    #[test]
    fn an_agent_for_grids_is_refused_before_a_run_begins() {
        let relational = "agent.name=relational";
        for (sets, parts) in [
            (&[relational][..], ["car-racing shows a picture of 96x96", "choose agent attention-agent"]),
            (
                &["env.id=door-key-5x5", "env.picture=rgb", relational],
                [
                    "and no grid of cells, which agent relational needs; choose agent",
                    "another of the world's pictures, view, one-hot, full",
                ],
            ),
            (
                &["env.id=cartpole-swingup-harder", relational],
                ["numbers and no grid of cells", "choose agent"],
            ),
        ] {
            let said = UserSettings::read(None, sets, &WorldSpec::default()).expect("good settings");
            let error = configure(None, &said).err().expect("no grid").to_string();
            for part in parts {
                assert!(error.contains(part), "{sets:?}: {error} / {part}");
            }
        }
        // The digits themselves are not here.
        let mut spec = worlds::make(EnvRequest { id: "car-racing".into(), ..EnvRequest::default() })
            .expect("native")
            .spec()
            .clone();
        for id in ["digits", "atari", "a-world-of-somebody"] {
            spec.id = id.into();
            let error =
                picture_settings(find("relational").expect("known"), &spec).expect_err("no grid").to_string();
            assert!(
                error.contains("no grid of cells, which agent relational needs; choose agent "),
                "{error}"
            );
        }
    }

    #[test]
    fn a_view_is_the_wrappers_that_make_it() {
        let view = PictureView { grey: true, readouts: false, frames: 4 };
        let blank = Some("blank:bottom=12");
        for (view, blank, expect) in [
            (view, blank, Some("grey:opencv+blank:bottom=12+stack:4")),
            (view, None, Some("grey:opencv+stack:4")),
            (PictureView { readouts: true, frames: 1, ..view }, blank, Some("grey:opencv")),
            (PictureView { grey: false, readouts: true, frames: 1 }, blank, None),
        ] {
            assert_eq!(wrappers(view, blank).as_deref(), expect, "{view:?}");
        }
        // Every world's way to hide its readouts is a wrapper that exists.
        for world in WORLDS.iter().filter_map(|world| world.hide_readouts) {
            assert!(world.parse::<foveate_envs::wrap::Wrappers>().is_ok(), "{world}");
        }
    }

    #[test]
    fn a_preset_has_a_name_or_is_of_a_kind_that_its_world_has() {
        let chosen = |id: &str, name: &str| {
            let world = foveate_registry::world(id).expect("it exists");
            preset_called(name, world, id).map(|preset| preset.name).map_err(|error| error.to_string())
        };
        for (id, name, expect) in [
            ("car-racing", "laptop", "laptop"),
            ("car-racing", "ppo", "car-racing-ppo"),
            ("ant", "ppo", "ant-ppo"),
            ("cheetah-run", "ppo", "control-ppo"),
            ("take-cover", "gaze", "take-cover-gaze"),
            ("car-racing", "relu", "laptop-relu"),
            ("door-key-5x5", "dqn", "relational"),
            ("ant", "attention-neuron", "ant-neuron"),
            ("pong", "pong", "pong"),
        ] {
            // Names that are exact come first, then kinds; no other world's preset is taken for one of them.
            match chosen(id, name) {
                Ok(found) => assert_eq!(found, expect, "{id} {name}"),
                Err(said) => assert!(said.contains(&format!("of the kind {name}: {expect}, ")), "{said}"),
            }
        }
        let said = chosen("door-key-8x8", "ppo").expect_err("two");
        assert!(said.ends_with("of the kind ppo: relational-ppo, door-key-ppo; name one of them"), "{said}");
        let said = chosen("car-racing", "control").expect_err("of other worlds");
        assert!(
            said.starts_with("no preset for car-racing is called \"control\"") && !said.contains("control-"),
            "{said}"
        );
    }

    #[test]
    fn an_agent_on_pictures_gets_the_view_that_it_needs() {
        let wrap = |sets: &[&str]| {
            let said = UserSettings::read(None, sets, &WorldSpec::default()).expect("good settings");
            let made = configure(None, &said).expect("it fits");
            made.config.env.options.get(WRAP).and_then(|wrap| Some(wrap.as_str()?.to_owned()))
        };
        let neuron = "agent.name=attention-neuron";
        assert_eq!(wrap(&[neuron]).as_deref(), Some("grey:opencv+blank:bottom=12+stack:4"));
        let three = wrap(&[neuron, "agent.config.frames=3"]);
        assert_eq!(three.as_deref(), Some("grey:opencv+blank:bottom=12+stack:3"));
        let own = wrap(&[neuron, "env.options.wrap=grey+stack:2", "agent.config.frames=2"]);
        assert_eq!(own.as_deref(), Some("grey+stack:2"), "what the user says");
        assert_eq!(wrap(&["agent.name=attention-agent"]), None, "it takes what the world shows");
    }

    #[test]
    fn a_preset_is_for_the_worlds_that_name_it() {
        let configured = |preset: &str, sets: &[&str]| {
            let said = UserSettings::read(None, sets, &WorldSpec::default()).expect("good settings");
            configure(Some(preset), &said).map(|made| made.config.env.id).map_err(|error| error.to_string())
        };
        // Without a world, it is the preset's own.
        for preset in PRESETS.iter().filter(|preset| !preset.open) {
            let table = preset_table(preset.name).expect("TOML");
            let id = env_id(&table).expect("a preset for one world names it");
            let world = foveate_registry::world(&id).expect("it exists");
            assert!(preset.suits(world), "{}: {id}", preset.name);
            if !world.has_process && !world.needs_library && world.wanted_files.is_none() {
                assert_eq!(configured(preset.name, &[]), Ok(id), "{}", preset.name);
            }
            for other in WORLDS.iter().filter(|world| world.family.is_none() && !preset.suits(world)) {
                // Its name may be a kind of preset there.
                if !preset_called(preset.name, other, other.name).is_ok_and(|found| found.name == preset.name)
                {
                    continue;
                }
                let said =
                    configured(preset.name, &[&format!("env.id={}", other.name)]).expect_err("refused");
                let list = format!("{} has: {}; choose one", other.name, names(&presets_of(other)));
                assert!(said.starts_with("preset ") && said.contains(&list), "{said}");
            }
        }
        let said = configured("paper", &["env.id=take-cover"]).expect_err("refused");
        assert_eq!(
            said,
            "preset paper is for car-racing, and take-cover has: take-cover, take-cover-gaze, take-cover-iap; choose one \
             of those, or leave the preset out"
        );
        let said = configured("relational", &["env.id=car-racing"]).expect_err("refused");
        assert!(
            said.starts_with("preset relational is for ") && said.contains(" more, and car-racing has"),
            "{said}"
        );
        let said = configured("gymnasium", &["env.id=car-racing"]).expect_err("refused");
        assert!(
            said.contains("is for worlds that have none of their own, and car-racing has: laptop-relu"),
            "{said}"
        );
    }

    #[test]
    fn the_lower_limit_of_world_and_preset_holds() {
        let limit = |preset: &str, max_steps: Option<usize>| {
            let spec = EnvSpec {
                id: "x".into(),
                observation: ObservationSpace::Vector { len: 3 },
                action: ActionSpace::Discrete { n: 2 },
                max_steps,
                fps: 30.0,
            };
            let preset = PRESETS.get(preset).expect("it exists");
            let table = of_world(&spec, "world".into(), preset).expect("it can be read");
            table["recipe"]["max_steps"].as_integer().expect("a number")
        };
        for (preset, of_world, expect) in [
            ("s3ta-small", Some(27_000), 5000),
            ("s3ta-small", Some(250), 250),
            ("s3ta-small", None, 1000),
            ("s3ta", Some(27_000), 27_000),
            ("gymnasium", Some(500), 500),
        ] {
            assert_eq!(limit(preset, of_world), expect, "{preset} {of_world:?}");
        }
    }

    #[test]
    fn a_preset_may_name_the_picture() {
        let seen = |sets: &[&str], preset: Option<&str>| {
            let sets = [&["env.id=door-key-5x5"], sets].concat();
            let said = UserSettings::read(None, &sets, &WorldSpec::default()).expect("good settings");
            let made = configure(preset, &said).expect("it fits");
            (made.config.env.picture, made.config.agent.config["channels"].as_integer().expect("a number"))
        };
        assert_eq!(seen(&[], None), ("one-hot".to_owned(), 20));
        assert_eq!(seen(&[], Some("relational-book")), ("view".to_owned(), 3));
        assert_eq!(seen(&["env.picture=full"], None), ("full".to_owned(), 3), "what the user says");
        // Wrappers are for that picture, not for the world's usual one.
        let sets = ["env.id=door-key-5x5", "env.options.wrap=grey:opencv"];
        let said = UserSettings::read(None, &sets, &WorldSpec::default()).expect("good settings");
        let made = configure(Some("s3ta-door"), &said).expect("it fits").config;
        assert_eq!(made.env.picture, "rgb");
        assert_eq!(made.agent.config["view"], toml::Value::from(vec![56, 56, 1]));
        assert!(configure(Some("relational"), &said).is_err(), "a grid has no grey");
    }

    #[test]
    fn a_task_of_control_gets_the_preset_for_what_it_shows() {
        let Some(python) = foveate_toy::needs::worlds_python() else { return };
        let environment =
            std::path::Path::new(&python).ancestors().nth(2).expect("an environment").display().to_string();
        let chosen = |sets: &[&str]| {
            let library = format!("env.options.library={environment:?}");
            let sets = [&["env.id=cartpole-swingup", &library], sets].concat();
            let said = UserSettings::read(None, &sets, &WorldSpec::default()).expect("good settings");
            let made = configure(None, &said).expect("it fits").config;
            let repeat = made.env.options.get("repeat").and_then(|repeat| repeat.as_str().map(str::to_owned));
            (made.agent.name, made.env.picture, repeat)
        };
        let repeats = Some("2".to_owned());
        assert_eq!(chosen(&[]), ("actor-critic".into(), "state".into(), repeats));
        let pixels = chosen(&["env.picture=pixels"]);
        assert_eq!(pixels, ("attention-agent".into(), "pixels".into(), None), "not the network for numbers");
    }

    #[test]
    fn sensors_have_the_names_of_the_world() {
        let named = |sets: &[&str]| {
            let always = ["env.id=cartpole-swingup-harder", "agent.name=attention-neuron"];
            let sets = [&always[..], sets].concat();
            let said = UserSettings::read(None, &sets, &WorldSpec::default()).expect("good settings");
            let made = configure(Some("gymnasium"), &said).expect("it fits");
            let sensors = made.config.agent.config.get("sensors").and_then(toml::Value::as_array).cloned();
            sensors.map(|names| {
                names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect::<Vec<_>>()
            })
        };
        let world = WORLDS.get("cartpole-swingup-harder").expect("it exists").sensors;
        assert_eq!(named(&[]).expect("named"), world);
        let own = ["agent.config.sensors=[\"a\"]"];
        assert_eq!(named(&own).expect("what the user says"), ["a"]);
        assert_eq!(named(&["env.shifts=[\"noise-channels:3\"]"]), None, "other numbers");
    }

    #[test]
    fn ranges_are_short_and_never_empty() {
        for (seen, expect) in [
            ([-0.123_456, 7.0], [-0.123, 7.0]),
            ([0.0, 0.0], [-1.0, 1.0]),
            ([1000.1, 1000.2], [999.0, 1001.0]),
            ([1e-9, 2e-9], [1e-9 - 1.0, 1e-9 + 1.0]),
            ([f64::INFINITY, f64::NEG_INFINITY], [-1.0, 1.0]),
        ] {
            assert_eq!(range(seen), expect, "{seen:?}");
        }
    }
}

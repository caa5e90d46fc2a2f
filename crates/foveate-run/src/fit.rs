//! Fits a training configuration to the world that it names.
//!
//! A native world has a preset of its own. An environment of Gymnasium is made first, and what it shows chooses: numbers
//! alone → the preset `gymnasium`, a plain controller; a picture → `gymnasium-pictures`, `AttentionAgent`; neither, or
//! numbers where a picture is wanted → what it draws for people. Whatever the user says comes first.

use foveate_core::episode::{
    Actor, ActorError, AfterStep, Chosen, Episode, EpisodeRules, Observer, RawAction,
};
use foveate_core::{
    ActContext, ActionBuf, ActionSpace, Env, EnvSpec, Mixed, Observation, ObservationSpace, Rng, Seed,
};
use foveate_envs::{car_racing, take_cover};
use serde_json::{Value, json};
use toml::Table;

use crate::RunError;
use crate::config::{GYM_NUMBERS, GYM_PICTURES, Said, TrainConfig, usual_preset};
use crate::worlds::{self, GYM_PICTURE, GYM_RENDER};

/// The agent for worlds that show numbers.
pub const CONTROLLER: &str = "controller";

/// Steps of an episode where neither the world nor the recipe limits them.
const MAX_STEPS: usize = 1000;

/// What a worker says of an environment that shows neither a picture nor numbers.
const SHOWS_NOTHING: &str = "nothing in its observation is a picture or a number";

/// A configuration, and the world that was made to complete it: while it is there, the same world is made anew without
/// waiting for a new process.
pub struct Configured {
    /// What to train.
    pub config: TrainConfig,
    /// The world, if it was made.
    pub world: Option<Box<dyn Env>>,
}

/// The complete configuration of a run: a preset, by default the one that suits the world, on top of it what the world
/// says of itself, and on top of that what the user says.
///
/// # Errors
/// When the preset is unknown or does not suit the world, a key does not exist, a value is out of its range, or the world
/// cannot be made.
pub fn configure(preset: Option<&str>, said: &Said) -> Result<Configured, RunError> {
    let id = said.world().unwrap_or_else(|| car_racing::ID.to_owned());
    let gym = id.starts_with(foveate_gym::PREFIX);
    let (config, world) = match preset {
        None | Some(GYM_NUMBERS | GYM_PICTURES) if gym => {
            let (env, picture) = seen(preset, said)?;
            let config =
                said.config(preset.unwrap_or_else(|| suits(&*env, said)), of_world(env.spec(), picture))?;
            (config, Some(env))
        }
        Some(preset @ (GYM_NUMBERS | GYM_PICTURES)) => {
            let why = format!(
                "preset {preset} is for environments of Gymnasium, and the world is {id}; name one, as in `foveate train \
                 gym:CartPole-v1`, or leave the preset out"
            );
            return Err(RunError::BadRequest { why });
        }
        preset => (said.config(preset.unwrap_or_else(|| usual_preset(&id)), Table::new())?, None),
    };
    let mut configured = Configured { config, world };
    configured.fit_agent()?;
    Ok(configured)
}

/// Makes an environment of Gymnasium; gives it with the name of its picture.
fn seen(preset: Option<&str>, said: &Said) -> Result<(Box<dyn Env>, String), RunError> {
    let make = |picture: &str| worlds::make(said.env(picture).request()?);
    if let Some(picture) = said.section("env").get("picture").and_then(toml::Value::as_str) {
        return Ok((make(picture)?, picture.to_owned()));
    }
    let why = match make(GYM_PICTURE) {
        Ok(env) => {
            let looks = agent(said).map_or(preset == Some(GYM_PICTURES), |name| !sees_numbers(&name));
            if !looks || env.spec().observation.picture().is_some() {
                return Ok((env, GYM_PICTURE.to_owned()));
            }
            format!("it shows {} and no picture", env.spec().observation.describe())
        }
        Err(error) if error.to_string().contains(SHOWS_NOTHING) => {
            "it shows neither a picture nor numbers".into()
        }
        Err(error) => return Err(error),
    };
    let env = make(GYM_RENDER)?;
    let id = &env.spec().id;
    eprintln!("note: {id}: {why}; the agent sees what it draws for people (picture {GYM_RENDER})");
    Ok((env, GYM_RENDER.to_owned()))
}

/// The agent that the user names.
fn agent(said: &Said) -> Option<String> {
    said.section("agent").get("name").and_then(toml::Value::as_str).map(str::to_owned)
}

/// Whether an agent needs no picture.
fn sees_numbers(agent: &str) -> bool {
    [CONTROLLER, "random-actions"].contains(&agent)
}

/// The preset that suits an environment of Gymnasium.
fn suits(env: &dyn Env, said: &Said) -> &'static str {
    let numbers =
        env.spec().observation.picture().is_none() || agent(said).is_some_and(|name| sees_numbers(&name));
    if numbers { GYM_NUMBERS } else { GYM_PICTURES }
}

/// What presets for many worlds leave to the world.
fn of_world(spec: &EnvSpec, picture: String) -> Table {
    let table =
        |key: &str, value: toml::Value| toml::Value::Table(Table::from_iter([(key.to_owned(), value)]));
    let max_steps = i64::try_from(spec.max_steps.unwrap_or(MAX_STEPS)).unwrap_or(i64::MAX);
    Table::from_iter([
        ("env".to_owned(), table("picture", picture.into())),
        ("recipe".to_owned(), table("max_steps", max_steps.into())),
    ])
}

impl Configured {
    /// Fits the agent to the world, where the configuration does not say otherwise: what it sees, and its actions. Agents
    /// with a picture have the shape of `CarRacing` by default, and are fitted to other worlds.
    fn fit_agent(&mut self) -> Result<(), RunError> {
        let Configured { config, world } = self;
        let plain = config.agent.name == CONTROLLER;
        let own = config.env.id != take_cover::ID && !config.env.id.starts_with(foveate_gym::PREFIX);
        let keys: &[&str] = if plain { &["observation", "actions"] } else { &["image", "stride", "actions"] };
        let settings = &mut config.agent.config;
        if (own && !plain) || keys.iter().all(|key| settings.contains_key(*key)) {
            return Ok(());
        }
        let request = config.env.request()?;
        let fitted = if plain {
            let mut env = world.take().map_or_else(|| worlds::make(request), Ok)?;
            let settings = controller(&mut *env)?;
            *world = Some(env);
            settings
        } else {
            let spec =
                world.as_ref().map_or_else(|| worlds::shape(&request), |env| Ok(env.spec().clone()))?;
            worlds::needs_picture(&spec)?;
            worlds::fitted(&spec)
        };
        for (key, value) in fitted.as_object().into_iter().flatten() {
            if !settings.contains_key(key)
                && let Ok(value) = toml::Value::try_from(value)
            {
                settings.insert(key.clone(), value);
            }
        }
        Ok(())
    }
}

/// Settings that fit a plain controller to a world: the range of every number, as `ranges` finds it, and `actions`.
///
/// # Errors
/// When the world shows no numbers, or a step of it fails.
pub fn controller(env: &mut dyn Env) -> Result<Value, RunError> {
    let spec = env.spec().clone();
    let numbers = match spec.observation {
        ObservationSpace::Vector { len } => len,
        ObservationSpace::Mixed { sensors, .. } => sensors,
        ObservationSpace::Image { .. } => 0,
    };
    if numbers == 0 {
        let shows = spec.observation.describe();
        let why = format!(
            "{} shows {shows} and no numbers, which agent {CONTROLLER} needs; choose agent attention-agent",
            spec.id
        );
        return Err(RunError::BadRequest { why });
    }
    Ok(json!({ "observation": ranges(env, numbers)?, "actions": worlds::fitted(&spec)["actions"] }))
}

/// The smallest and the largest value of every number that a world shows while it is driven by random actions, each held
/// for some steps: always the same ones. A number that does not change gets a range of 2 around it.
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

/// Acts at random, holding every action for some steps.
struct RandomActor {
    space: ActionSpace,
    rng: Rng,
    action: ActionBuf,
}

impl Actor for RandomActor {
    fn act(&mut self, _: &mut dyn Env, step: u64, _: &mut ActContext) -> Result<Chosen<'_>, ActorError> {
        const HELD: u64 = 8;
        let RandomActor { space, rng, action } = self;
        if step % HELD == 0 {
            *action = space.sample(rng);
        }
        let action = match action {
            ActionBuf::Discrete(choice) => RawAction::Choice(*choice),
            ActionBuf::Continuous(numbers) => RawAction::Outputs(numbers),
        };
        Ok(Chosen { action, decision: None })
    }
}

/// The smallest and the largest value of every number that was seen.
struct SeenRanges(Vec<[f64; 2]>);

impl Observer<RunError> for SeenRanges {
    fn after_step(&mut self, step: AfterStep<'_>) -> Result<(), RunError> {
        let (Observation::Vector(seen) | Observation::Mixed(Mixed { sensors: seen, .. })) =
            step.env.observation()
        else {
            return Ok(());
        };
        for ([low, high], &x) in self.0.iter_mut().zip(seen).filter(|(_, x)| x.is_finite()) {
            (*low, *high) = (low.min(f64::from(x)), high.max(f64::from(x)));
        }
        Ok(())
    }
}

/// A range that was seen, in few digits.
fn range([low, high]: [f64; 2]) -> [f64; 2] {
    let short = |x: f64| format!("{x:.2e}").parse::<f64>().unwrap_or(x);
    if !(low.is_finite() && high.is_finite()) {
        return [-1.0, 1.0];
    }
    let [from, to] = [short(low), short(high)];
    // Narrower than the digits that are kept, or than any noise worth a unit of its own.
    if to - from < 1e-6 { [short(low) - 1.0, short(low) + 1.0] } else { [from, to] }
}

#[cfg(test)]
mod tests {
    use super::*;

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

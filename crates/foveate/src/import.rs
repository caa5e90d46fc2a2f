//! Published weights by name.

use std::path::{Path, PathBuf};

use foveate_agents::Layout;
use foveate_agents::registry::{self, PublishedWeights, PublishedWorld, find};
use foveate_core::hint::Setting;
use foveate_envs::registry::EnvRequest;
use foveate_registry::{AGENTS, default_world};
use foveate_run::config::agent_settings;
use foveate_run::fit::picture_settings;
use foveate_run::import::{self, fitting};
use foveate_run::weights::{AgentFile, sha256_of};
use foveate_run::{RunError, worlds};
use serde::Serialize;
use serde_json::json;

/// The options of an import.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// The npz file.
    pub file: PathBuf,
    /// The agent that the weights belong to; `None` selects the agent with this number of weights. If weights of this
    /// number were published for the agent, and no settings are given, theirs are used; these weights may be
    /// those of another agent. If several releases have as many weights, the agent is needed, unless the file is a
    /// known one.
    pub agent: Option<String>,
    /// The world that the weights were trained in, which sets the agent's picture and actions; `None` selects
    /// the world in which the agent has this number of weights.
    pub world: Option<String>,
    /// The order of the weights in the vector; `None` for the one in which recognised weights were published,
    /// else [`Layout::Sorted`].
    pub layout: Option<Layout>,
    /// The divisor of query times key: `sqrt-d-in`, `sqrt-d` or `one`; `None` for the one of recognised weights,
    /// else the agent's default.
    pub scale: Option<String>,
    /// A TOML file with the agent's settings that differ from the defaults.
    pub config: Option<PathBuf>,
}

/// Imported weights.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The weights, with the agent's settings.
    pub file: AgentFile,
    /// A note on which agent and world were inferred from the number of weights, when they were not given.
    pub guessed: Option<String>,
    /// The order of the weights in the vector.
    pub layout: Layout,
}

/// Reads published weights.
///
/// # Errors
/// When the file is invalid, when its number of weights is not the agent's or that of two releases, or when there is no
/// such agent or world.
pub fn import(request: &ImportRequest) -> Result<Imported, RunError> {
    let mut config = match &request.config {
        Some(path) => agent_settings(path)?,
        None => json!({}),
    };
    let usual = AGENTS.iter().next().map_or("", |agent| agent.name);
    let mut guessed = None;
    let (agent, world, layout) = if let Some((of, weights)) = recognised(request, usual)? {
        config = (weights.settings)();
        if request.agent.is_none() || of != weights.agent {
            let PublishedWeights { name, params, agent, .. } = weights;
            guessed = Some(format!("{params} weights are those of {of}'s published {name}, agent {agent}"));
        }
        let world = request
            .world
            .clone()
            .map_or_else(|| request_for(&weights.world), |id| EnvRequest { id, ..EnvRequest::default() });
        (weights.agent.to_owned(), Some(world), weights.layout)
    } else {
        let (agent, world) = match (&request.agent, &request.world, &request.config) {
            (None, None, None) => {
                let (agent, world, note) = guess(&request.file, usual)?;
                guessed = note;
                (agent, world)
            }
            (agent, world, _) => (agent.clone().unwrap_or_else(|| usual.to_owned()), world.clone()),
        };
        let world = world.map(|id| EnvRequest { id, ..EnvRequest::default() });
        if let Some(world) = &world {
            let fitted = picture_settings(find(&agent)?, &worlds::shape(world)?)?;
            for (key, value) in fitted.as_object().into_iter().flatten() {
                if config.get(key).is_none() {
                    config[key] = value.clone();
                }
            }
        }
        (agent, world, Layout::Sorted)
    };
    if let Some(scale) = &request.scale {
        config["scale"] = scale.replace('-', "_").into();
    }
    let layout = request.layout.unwrap_or(layout);
    let file = import::import(&request.file, &agent, &config, layout)?;
    let file = match &world {
        Some(world) => file.made_for(world),
        None => file,
    };
    Ok(Imported { file, guessed, layout })
}

/// The published weights that the file holds, by their number, with the agent under which they were published;
/// `None` when settings are given, and for the usual agent's own, which are read like any of its weights.
fn recognised(
    request: &ImportRequest,
    usual: &str,
) -> Result<Option<(&'static str, &'static PublishedWeights)>, RunError> {
    if request.config.is_some() {
        return Ok(None);
    }
    if let Some(agent) = &request.agent {
        find(agent)?;
    }
    let numbers = import::read(&request.file)?;
    let mut releases = registry::published(request.agent.as_deref(), numbers.len());
    if request.agent.is_none() && releases.len() > 1 {
        let sha256 = sha256_of(&numbers);
        if let Some(known) = releases.iter().position(|(_, weights)| weights.sha256 == Some(&*sha256)) {
            releases = vec![releases[known]];
        }
        releases.retain(|(_, weights)| {
            request.layout.is_none_or(|layout| weights.layout == layout)
                && request.world.as_ref().is_none_or(|world| weights.world.id == world)
        });
        if let [_, _, ..] = &releases[..] {
            return Err(several(&request.file, numbers.len(), &releases));
        }
    }
    Ok(releases.first().copied().filter(|(of, _)| *of != usual))
}

/// The error that names all releases that have as many weights, and how to choose one.
fn several(file: &Path, count: usize, releases: &[(&str, &PublishedWeights)]) -> RunError {
    let choice = |(of, weights): &(&str, &PublishedWeights)| {
        let agent = Setting::Agent.to(of);
        let is_default =
            releases.iter().find(|(other, _)| other == of).is_some_and(|(_, w)| w.name == weights.name);
        let hint = if is_default { agent } else { agent.with(Setting::Layout.to(weights.layout.name())) };
        format!("{hint} for {of}'s published {}", weights.name)
    };
    let choices: Vec<String> = releases.iter().map(choice).collect();
    let why = format!(
        "{count} weights are those of {} releases, which differ in their order or their divisor; say whose they are: {}",
        releases.len(),
        choices.join(", ")
    );
    RunError::Import { path: file.to_path_buf(), why }
}

/// The request for the world of published weights.
fn request_for(world: &PublishedWorld) -> EnvRequest {
    EnvRequest {
        id: world.id.to_owned(),
        picture: world.picture.map(str::to_owned),
        options: world
            .options
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..EnvRequest::default()
    }
}

/// The agent and the world inferred from the number of weights, with a note that says so; no note for the
/// usual agent in the default world.
fn guess(file: &Path, usual: &str) -> Result<(String, Option<String>, Option<String>), RunError> {
    let count = import::read(file)?.len();
    let pairs = fitting(count);
    // Other agents with the same number of weights are not the published ones, so the usual agent wins.
    let of_usual: Vec<_> = pairs.iter().filter(|(agent, _)| *agent == usual).collect();
    let otherwise = (usual, default_world().name);
    let (agent, world) = match (&of_usual[..], &pairs[..]) {
        ([one], _) => **one,
        ([], [one]) => *one,
        _ => otherwise,
    };
    if (agent, world) == otherwise {
        return Ok((agent.to_owned(), None, None));
    }
    let note = format!("{count} weights are those of {agent} in {world}");
    Ok((agent.to_owned(), Some(world.to_owned()), Some(note)))
}

/// Summary statistics of the weights, to check that these are the right numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    pub min: f32,
    /// Largest.
    pub max: f32,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub std: f64,
}

impl Spread {
    /// The statistics of `params`.
    pub fn of(params: &[f32]) -> Self {
        let n = params.len() as f64;
        let mean = params.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
        let variance = params.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
        let min = params.iter().copied().fold(f32::INFINITY, f32::min);
        let max = params.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        Spread { min, max, mean, std: variance.sqrt() }
    }
}

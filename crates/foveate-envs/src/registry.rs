//! World descriptors and requests: what other crates need to list worlds, build them by name, train in them
//! and report on them.
//!
//! Each world is a folder of this crate with its [`WorldDescriptor`]; the list of all worlds is
//! `foveate_registry::WORLDS`, because some worlds depend on other crates.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use foveate_core::{Descriptor, Env, EnvError, EnvSpec, ImageBuf, WorldSetup};

pub use crate::car_racing::variants::{Parameter, VariantInfo};

/// A request for a world.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvRequest {
    /// Name of the world.
    pub id: String,
    /// Name of the picture; `None` for the world's default.
    pub picture: Option<String>,
    /// Visual variants; each text names one variant or several, as in `bar+color:amplitude=0.1`.
    pub variants: Vec<String>,
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Shifts of observations and actions, each in the syntax of [`Plan`](crate::shift::Plan), as in
    /// `hue:2+noise:4@200`.
    pub shifts: Vec<String>,
    /// The [films](WorldDescriptor::missing_films) that a variant shows, at least one; only crates that may read files can load
    /// them.
    pub films: Option<Films>,
    /// Contents of the world's [files](WorldDescriptor::wanted_files), in their order; only crates that may read files
    /// can load them.
    pub files: Option<Arc<Vec<Vec<u8>>>>,
}

/// Films, each a list of pictures.
pub type Films = Arc<[Arc<Vec<ImageBuf>>]>;

/// Films that a variant shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFilms {
    /// A folder of pictures, a folder with several such, or a file.
    pub path: String,
    /// How many films are shown at most.
    pub most: usize,
}

/// Files that a world is made of, such as a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedFiles {
    /// Their folder.
    pub folder: String,
    /// Their names; each file may have the ending `.gz` besides and is then unpacked.
    pub names: &'static [&'static str],
    /// Larger files are refused, packed or unpacked.
    pub most_bytes: usize,
    /// What they are and where they come from, for messages.
    pub about: &'static str,
}

/// The request as plain values, for another machine. Images and files that were loaded for it stay here: they are named in
/// the variant or the options, and whoever builds the world loads them again.
///
/// ```
/// use foveate_core::WorldSetup;
/// use foveate_envs::registry::EnvRequest;
///
/// let request = EnvRequest { id: "car-racing".into(), variants: vec!["bar".into()], ..EnvRequest::default() };
/// assert_eq!(EnvRequest::from(WorldSetup::from(&request)), request);
/// ```
impl From<&EnvRequest> for WorldSetup {
    fn from(request: &EnvRequest) -> Self {
        let EnvRequest { id, picture, variants, options, shifts, films: _, files: _ } = request.clone();
        WorldSetup { id, picture, variants, options, shifts }
    }
}

impl From<WorldSetup> for EnvRequest {
    fn from(WorldSetup { id, picture, variants, options, shifts }: WorldSetup) -> Self {
        EnvRequest { id, picture, variants, options, shifts, films: None, files: None }
    }
}

/// A named choice and its description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The name that users type.
    pub name: &'static str,
    /// Its description, in one line.
    pub about: &'static str,
}

impl Choice {
    /// Choices from pairs of name and description.
    pub const fn all<const N: usize>(pairs: [(&'static str, &'static str); N]) -> [Choice; N] {
        let mut choices = [Choice { name: "", about: "" }; N];
        let mut i = 0;
        while i < N {
            choices[i] = Choice { name: pairs[i].0, about: pairs[i].1 };
            i += 1;
        }
        choices
    }
}

/// The descriptor of a world: everything that code outside of the world's folder knows about it.
///
/// ```
/// use foveate_envs::car_racing;
/// use foveate_envs::registry::EnvRequest;
///
/// let world = &car_racing::DESCRIPTOR;
/// let request = EnvRequest {
///     id: world.name.into(),
///     picture: Some("none".into()),
///     options: [("continuous".into(), "false".into())].into(),
///     ..EnvRequest::default()
/// };
/// assert_eq!(world.build(&request)?.spec().max_steps, Some(1000));
/// # Ok::<(), foveate_envs::registry::WorldError>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own")]
pub struct WorldDescriptor {
    /// Its name, as in `--env`.
    pub name: &'static str,
    /// For a descriptor of many worlds: the common part of their names.
    pub family: Option<Family>,
    /// Its description, in one line.
    pub summary: &'static str,
    /// A singular noun for what varies between episodes, such as `track`; texts append `s` for the plural.
    pub instance: &'static str,
    /// Its pictures, the default first.
    pub pictures: &'static [Choice],
    /// Its variants.
    pub variants: &'static [VariantInfo],
    /// Its options.
    pub options: &'static [Choice],
    /// The meanings of the action's numbers, in order; empty when the world does not define them.
    pub actions: &'static [&'static str],
    /// The meanings of the choices, in order, where an option makes choices of the actions.
    pub choices: &'static [&'static str],
    /// The names of the observation's numbers, in order; empty when the world does not define them.
    pub sensors: &'static [&'static str],
    /// The suite of worlds that it belongs to, by which a preset may name it.
    pub suite: Option<&'static str>,
    /// The mean return that counts as solved, if there is an established value.
    pub solved_at: Option<f64>,
    /// Published scores of agents in it, each of one release.
    pub published: &'static [Published],
    /// Returns the scores by which those of agents in it are normalised, where there are such scores.
    pub reference: fn(&EnvRequest) -> Option<ReferenceScores>,
    /// Steps per CPU second of training with each picture: a low and a high estimate.
    pub speeds: &'static [(&'static str, [f64; 2])],
    /// Number of consecutive negative rewards that a training rollout tolerates by default; `None` for no
    /// limit.
    pub patience: Option<u32>,
    /// True if it has a scripted expert.
    pub has_expert: bool,
    /// True if copies of it may need a separate process each.
    pub has_process: bool,
    /// True if its name or its options select code that runs with the user's rights. A file alone may then
    /// not request it.
    pub runs_code: bool,
    /// True if it needs a library that is not included in Foveate.
    pub needs_library: bool,
    /// For a world that does not [run code](Self::runs_code): the options that select code all the same, such as a library. A
    /// file alone may not set them.
    pub code_options: &'static [&'static str],
    /// For a world that [runs code](Self::runs_code): the options that a file may set nevertheless.
    pub file_options: &'static [&'static str],
    /// True if agents' default settings fit it without adaptation.
    pub default_agents_fit: bool,
    /// The picture for agents that need one, when the default observation is numbers or nothing.
    pub fallback_picture: Option<&'static str>,
    /// The wrapper that blanks the readouts of its picture, such as a speedometer below the scene, for agents that are to
    /// see the scene alone; `None` where there are none.
    pub hide_readouts: Option<&'static str>,
    /// The trained agents included in Foveate; the first one acts when no weights are named.
    pub champions: &'static [Champion],
    /// Returns the films that a request needs and that are not loaded yet.
    pub missing_films: fn(&EnvRequest) -> Result<Option<WantedFilms>, EnvError>,
    /// Returns the files that a request needs; `None` for a world without any.
    pub wanted_files: Option<WantedFilesOf>,
    /// Returns its spec without building it, for worlds where that is much cheaper.
    pub spec: Option<SpecOf>,
    /// Builds it, without wrappers and shifts; [`WorldDescriptor::build`] checks the request first.
    pub make: fn(&EnvRequest) -> Result<Box<dyn Env>, WorldError>,
}

/// Returns the files that a request needs.
pub type WantedFilesOf = fn(&EnvRequest) -> Result<WantedFiles, EnvError>;

/// Returns the spec of the world that a request describes, without building it.
pub type SpecOf = fn(&EnvRequest) -> Result<EnvSpec, EnvError>;

/// A trained agent included in Foveate.
#[derive(Debug, Clone, Copy)]
pub struct Champion {
    /// The name, that of its card in `champions/`; valid wherever weights are named.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Its weight file.
    pub weights: &'static [u8],
    /// True if it acts in the world that its file names, with its picture and wrappers; otherwise in the unmodified world.
    pub as_trained: bool,
}

/// Worlds whose names have a common prefix.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// The prefix, such as `gym:`.
    pub prefix: &'static str,
    /// What the members are, such as `any environment of Gymnasium`.
    pub members: &'static str,
    /// A dependency that is not included in Foveate, such as `Python`.
    pub needs: &'static str,
    /// Suggests the member for a name without the prefix.
    pub suggest: fn(&str) -> Option<String>,
}

/// Published scores of an agent in a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// The agent under which its weights were published, and their name there: whose scores these are.
    pub release: [&'static str; 2],
    /// The publication, and how the scores were measured.
    pub source: &'static str,
    /// The scores.
    pub scores: &'static [PublishedScore],
}

/// A published score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedScore {
    /// The variant; `original` is the unchanged world.
    pub variant: &'static str,
    /// Mean return.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: f64,
}

/// Scores of random play and of a person, by which those of agents are normalised.
///
/// ```
/// use foveate_envs::registry::ReferenceScores;
///
/// let pong = ReferenceScores { task: "pong", random: -20.7, human: 14.6 };
/// assert_eq!(pong.normalise(-20.7), 0.0);
/// assert_eq!(pong.normalise(14.6), 100.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceScores {
    /// What was played, such as the game.
    pub task: &'static str,
    /// Mean score of random play.
    pub random: f64,
    /// Mean score of a person.
    pub human: f64,
}

impl ReferenceScores {
    /// The human-normalised score in percent: 0 for random play, 100 for a person.
    pub const fn normalise(&self, score: f64) -> f64 {
        100.0 * (score - self.random) / (self.human - self.random)
    }
}

impl WorldDescriptor {
    /// A name for each number or choice of the actions of this world with `spec`: its own names, if it has as many, or else
    /// numbered ones.
    pub fn action_names(&self, spec: &EnvSpec) -> Vec<String> {
        let own = if spec.action.is_discrete() { [self.choices, self.actions] } else { [self.actions; 2] };
        let fitting = own.into_iter().find(|names| names.len() == spec.action.len());
        spec.action.names(fitting.unwrap_or_default())
    }

    /// A descriptor with default values; set other fields with `..WorldDescriptor::new(…)`.
    pub const fn new(
        name: &'static str,
        summary: &'static str,
        make: fn(&EnvRequest) -> Result<Box<dyn Env>, WorldError>,
    ) -> Self {
        WorldDescriptor {
            name,
            family: None,
            summary,
            instance: "episode",
            pictures: &[Choice { name: "world", about: "what the world shows" }],
            variants: &[],
            options: &[],
            actions: &[],
            choices: &[],
            sensors: &[],
            suite: None,
            solved_at: None,
            published: &[],
            reference: |_| None,
            speeds: &[],
            patience: None,
            has_expert: false,
            has_process: false,
            runs_code: false,
            needs_library: false,
            code_options: &[],
            file_options: &[],
            default_agents_fit: false,
            fallback_picture: None,
            hide_readouts: None,
            champions: &[],
            missing_films: |_| Ok(None),
            wanted_files: None,
            spec: None,
            make,
        }
    }

    /// Builds the world that `request` describes, without wrappers and shifts.
    ///
    /// # Errors
    /// [`EnvError::UnknownOption`], which lists the known names, when it has no such picture, variant or
    /// option; [`EnvError::BadOption`] for invalid values or combinations; an error when it cannot be built.
    pub fn build(&self, request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
        self.check(request)?;
        (self.make)(request)
    }

    /// Its variants that need no parameters and that `picture` shows, the default one if it is `None`.
    pub fn whole_variants(&self, picture: Option<&str>) -> impl Iterator<Item = &'static VariantInfo> {
        let picture =
            picture.or_else(|| self.pictures.first().map(|choice| choice.name)).unwrap_or("").to_owned();
        let whole =
            |info: &&VariantInfo| info.parameters.iter().all(|parameter| !parameter.default.is_empty());
        self.variants.iter().filter(whole).filter(move |info| info.pictures.contains(&&*picture))
    }

    /// Checks the names in `request`.
    fn check(&self, request: &EnvRequest) -> Result<(), EnvError> {
        let unknown = |what, given: &str, known: &[Choice]| {
            let known: Vec<&str> = known.iter().map(|choice| choice.name).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            Err(EnvError::UnknownOption { env: request.id.clone(), what, given: given.into(), known })
        };
        let is_in = |given: &str, known: &[Choice]| known.iter().any(|choice| choice.name == given);
        if let Some(picture) = request.picture.as_deref().filter(|name| !is_in(name, self.pictures)) {
            return unknown("picture", picture, self.pictures);
        }
        // The members of a family differ in their options and variants.
        if self.family.is_some() {
            return Ok(());
        }
        if let Some(option) = request.options.keys().find(|name| !is_in(name, self.options)) {
            return unknown("option", option, self.options);
        }
        match request.variants.first() {
            Some(variant) if self.variants.is_empty() => unknown("variant", variant, &[]),
            _ => Ok(()),
        }
    }
}

impl Descriptor for WorldDescriptor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn matches(&self, given: &str) -> bool {
        self.family.map_or(given == self.name, |family| given.starts_with(family.prefix))
    }
}

/// Why a world cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The request is invalid.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A component of the world failed.
    #[error(transparent)]
    Source(Box<dyn Error + Send + Sync>),
}

impl WorldError {
    /// Wraps the error of a component.
    pub fn source_of(error: impl Error + Send + Sync + 'static) -> Self {
        WorldError::Source(Box::new(error))
    }
}

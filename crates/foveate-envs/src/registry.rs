//! What a world is, for whoever lists worlds, makes them by name, trains in them or reports on them.
//!
//! A world is a folder of this crate with its [`WorldDescriptor`]; the list of all of them is `foveate_registry::WORLDS`,
//! for some worlds need more than this crate has.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use foveate_core::{Descriptor, Env, EnvError, EnvSpec, ImageBuf};

pub use crate::car_racing::variants::{Parameter, VariantInfo};

/// What a user asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EnvRequest {
    /// Name of the world.
    pub id: String,
    /// Name of the picture; `None` for the world's own.
    pub picture: Option<String>,
    /// Variants of the looks, each a name or several as in `bar+color:amplitude=0.1`.
    pub variants: Vec<String>,
    /// Options by name.
    pub options: BTreeMap<String, String>,
    /// Shifts of what is seen and done, each as [`Plan`](crate::shift::Plan) reads it, as in `hue:2+noise:4@200`.
    pub shifts: Vec<String>,
    /// Pictures for a variant that shows a video, which only whoever may read files can load.
    pub video: Option<Arc<Vec<ImageBuf>>>,
}

/// A name that can be chosen, and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// What users type.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
}

impl Choice {
    /// Choices from pairs of name and meaning.
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

/// A world, described: all that anything outside of the world's own folder knows of it.
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
pub struct WorldDescriptor {
    /// Its name, as in `--env`.
    pub name: &'static str,
    /// Of a descriptor for many worlds: what their names have in common.
    pub family: Option<Family>,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What differs from episode to episode, for texts: `track`; with an `s` for several.
    pub instance: &'static str,
    /// Its pictures, the default first.
    pub pictures: &'static [Choice],
    /// Its variants.
    pub variants: &'static [VariantInfo],
    /// Its options.
    pub options: &'static [Choice],
    /// What the numbers of its action mean, in their order; empty when the world does not say.
    pub actions: &'static [&'static str],
    /// The training presets that suit it, the usual one first.
    pub presets: &'static [&'static str],
    /// The mean return from which on it counts as solved, where there is an agreement.
    pub solved_at: Option<f64>,
    /// What was published about agents in it.
    pub published: Option<Published>,
    /// Steps per CPU second of training with each picture, a low and a high estimate.
    pub speeds: &'static [(&'static str, [f64; 2])],
    /// Negative rewards in a row that a training rollout survives where the recipe does not say it; `None` for all.
    pub patience: Option<u32>,
    /// Whether it has an expert to learn from.
    pub has_expert: bool,
    /// Whether every copy of it may have a process of its own.
    pub has_process: bool,
    /// Whether its name or its options choose code that runs with the user's rights, so that a file alone may not ask
    /// for it.
    pub runs_code: bool,
    /// Of a world that [runs code](Self::runs_code): the options that a file may set all the same.
    pub file_options: &'static [&'static str],
    /// Whether the defaults of agents were made for it, so that they need not be fitted.
    pub default_agents_fit: bool,
    /// The picture for agents that see one, when the default shows numbers or nothing.
    pub fallback_picture: Option<&'static str>,
    /// The weight file of the trained agent that comes with Foveate.
    pub champion: Option<&'static [u8]>,
    /// The folder of pictures that a request needs and that have not been loaded yet.
    pub missing_pictures: fn(&EnvRequest) -> Result<Option<String>, EnvError>,
    /// Its shape without making it, where that is much cheaper.
    pub spec: Option<fn(&EnvRequest) -> Result<EnvSpec, EnvError>>,
    /// Makes it, without wrappers and shifts; [`WorldDescriptor::build`] checks the request before.
    pub make: fn(&EnvRequest) -> Result<Box<dyn Env>, WorldError>,
}

/// Worlds whose names begin alike.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// How their names begin, as `gym:`.
    pub prefix: &'static str,
    /// What they are, as `any environment of Gymnasium`.
    pub members: &'static str,
    /// What they need that Foveate does not bring, as `Python`.
    pub needs: &'static str,
    /// The member that a name without the prefix most likely stands for.
    pub suggest: fn(&str) -> Option<String>,
}

/// Published scores of an agent in a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Who measured them, with what.
    pub source: &'static str,
    /// The scores.
    pub scores: &'static [PublishedScore],
}

/// A published score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedScore {
    /// The variant; `original` is the world as it is.
    pub variant: &'static str,
    /// Mean return.
    pub mean: f64,
    /// Standard deviation over episodes.
    pub std: f64,
}

impl WorldDescriptor {
    /// A world of which no more is known; set other fields with `..WorldDescriptor::new(…)`.
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
            presets: &["gymnasium", "gymnasium-pictures"],
            solved_at: None,
            published: None,
            speeds: &[],
            patience: None,
            has_expert: false,
            has_process: false,
            runs_code: false,
            file_options: &[],
            default_agents_fit: false,
            fallback_picture: None,
            champion: None,
            missing_pictures: |_| Ok(None),
            spec: None,
            make,
        }
    }

    /// Makes the world that `request` describes, without wrappers and shifts.
    ///
    /// # Errors
    /// [`EnvError::UnknownOption`] with the known names when it has no such picture, variant or option,
    /// [`EnvError::BadOption`] for values that do not fit or do not go together; when it cannot be made.
    pub fn build(&self, request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
        self.check(request)?;
        (self.make)(request)
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
        // What the members of a family have differs.
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

/// Why a world cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// What was asked for makes no sense.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// What it is made of failed.
    #[error(transparent)]
    Source(Box<dyn Error + Send + Sync>),
}

impl WorldError {
    /// Wraps the error of what a world is made of.
    pub fn source_of(error: impl Error + Send + Sync + 'static) -> Self {
        WorldError::Source(Box::new(error))
    }
}

//! Weight files: SafeTensors with the agent's complete configuration inside.
//!
//! One file is one agent: its tensors by name, and in the metadata the agent's name, every setting of its
//! configuration, a checksum, and notes on the origin of the weights. Nothing else is needed to run the
//! agent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use foveate_agents::registry;
use foveate_agents::stored_agent::{FORMAT, KEYS, StoredAgent, check_params};
use foveate_core::hint::Setting;
use foveate_core::{Agent, PolicyError, Tensor, TensorData, TensorShape};
use foveate_envs::registry::EnvRequest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::atomic;
use crate::budget::{self, Need};
use crate::champion;
use crate::error::RunError;
use crate::folder::FolderHandle;
use crate::image_threads::image_threads;
use crate::replay::sha256_hex;
use crate::suggest;
use crate::tensors::{self, MAX_FILE, TensorFile, TensorsError};
use crate::trust::FileWorld;
pub use foveate_agents::stored_agent::WeightsError;

/// The note with the world that the weights were trained for.
const WORLD: &str = "world";

/// An agent as stored in a file.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentFile {
    agent: String,
    config: Value,
    tensors: Vec<TensorShape>,
    params: Vec<f32>,
    /// Notes: `source`, and any others; see also [`AgentFile::made_for`].
    pub about: BTreeMap<String, String>,
    /// Threads that divide the work on one picture in agents made by [`AgentFile::agent`]; not part of the
    /// file.
    pub image_threads: usize,
}

/// SHA-256 of numbers as little-endian bytes.
pub fn sha256_of(numbers: &[f32]) -> String {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    TensorData::F32(numbers.to_vec()).append_bytes(&mut bytes);
    sha256_hex(&bytes)
}

impl AgentFile {
    /// Combines name, configuration and parameters; settings with default values may be omitted from
    /// `config`.
    ///
    /// # Errors
    /// When there is no such agent, its configuration is invalid, or the parameters are too few, too many or
    /// not finite.
    pub fn new(agent: &str, config: &Value, params: Vec<f32>) -> Result<Self, PolicyError> {
        let config = registry::full_config(agent, config)?;
        let tensors = registry::tensors(agent, &config)?;
        check_params(&tensors, &params)?;
        Ok(AgentFile {
            agent: agent.to_owned(),
            config,
            tensors,
            params,
            about: BTreeMap::new(),
            image_threads: 1,
        })
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, name: &str, text: impl Into<String>) -> Self {
        self.about.insert(name.to_owned(), text.into());
        self
    }

    /// Adds a note of the world that the weights were trained for.
    #[must_use]
    pub fn made_for(self, world: &EnvRequest) -> Self {
        let EnvRequest { id, picture, variants, options, .. } = world;
        let text = json!({ "id": id, "picture": picture, "variants": variants, "options": options });
        self.note(WORLD, text.to_string())
    }

    /// The world that the weights were trained for, if there is a valid note; the note is not verified.
    /// `file` is the name of the file in messages.
    pub fn world(&self, file: &str) -> Option<FileWorld> {
        #[derive(Deserialize)]
        struct World {
            id: String,
            picture: Option<String>,
            variants: Vec<String>,
            options: BTreeMap<String, String>,
        }
        let World { id, picture, variants, options } = serde_json::from_str(self.about.get(WORLD)?).ok()?;
        Some(FileWorld::new(EnvRequest { id, picture, variants, options, ..EnvRequest::default() }, file))
    }

    /// A note, such as `source`.
    pub fn about(&self, name: &str) -> Option<&str> {
        self.about.get(name).map(|text| &**text)
    }

    /// The registered name of the agent.
    pub fn name(&self) -> &str {
        &self.agent
    }

    /// The agent's configuration, defaults included.
    pub const fn config(&self) -> &Value {
        &self.config
    }

    /// The parameters in the order of [`AgentFile::tensors`].
    pub fn params(&self) -> &[f32] {
        &self.params
    }

    /// Name and shape of every tensor.
    pub fn tensors(&self) -> &[TensorShape] {
        &self.tensors
    }

    /// Builds the agent.
    ///
    /// # Errors
    /// Never for a file that was loaded or made by [`AgentFile::new`], unless there is too little memory.
    pub fn agent(&self) -> Result<Box<dyn Agent>, PolicyError> {
        let bytes = budget::agent(&self.config, &self.tensors, self.image_threads);
        let what = format!("{} parameters and a picture's patches", self.params.len());
        Need::default()
            .with(what, 1, bytes, format!("choose smaller weights, or lower {}", Setting::ImageThreads))
            .fits_memory("this agent")
            .map_err(|error| PolicyError::BadConfig { why: error.to_string() })?;
        let mut agent = registry::make(&self.agent, &self.config)?;
        agent.set_params(&self.params)?;
        if self.image_threads > 1 {
            agent.set_threads(&image_threads(self.image_threads));
        }
        Ok(agent)
    }

    /// SHA-256 of the parameters as little-endian bytes: identifies the weights, whatever the file's name.
    pub fn sha256(&self) -> String {
        sha256_of(&self.params)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// When it cannot be written; an old file is then untouched.
    pub fn save(&self, path: &Path) -> Result<(), RunError> {
        atomic::write(path, self.to_bytes())
    }

    /// The bytes of the file: the same for the same agent, on every machine.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut metadata = self.about.clone();
        let values = [FORMAT.to_owned(), self.agent.clone(), self.config.to_string(), self.sha256()];
        metadata.extend(KEYS.map(str::to_owned).into_iter().zip(values));
        let mut rest = &self.params[..];
        let mut tensors = vec![];
        for TensorShape { name, shape } in &self.tensors {
            let (head, tail) = rest.split_at(shape.iter().product());
            let tensor = Tensor::new(shape.clone(), TensorData::F32(head.to_vec()));
            tensors.push((name.clone(), tensor.expect("as many numbers as the shape has places")));
            rest = tail;
        }
        TensorFile { metadata, tensors }.to_bytes()
    }

    /// Reads the file at `path`.
    ///
    /// # Errors
    /// When it cannot be read, for any [`crate::tensors::TensorsError`], and for any [`WeightsError`].
    pub fn load(path: &Path) -> Result<Self, RunError> {
        Self::from_tensors(tensors::read(path)?)
            .map_err(|source| RunError::Weights { path: path.to_path_buf(), source })
    }

    /// Reads the file `name` in the folder of a run.
    ///
    /// # Errors
    /// As [`AgentFile::load`]; also when it is not a regular file.
    pub fn load_in(folder: &FolderHandle, name: &str) -> Result<Self, RunError> {
        let path = folder.path().join(name);
        let bytes = folder.read(name, MAX_FILE)?.map_err(|bytes| TensorsError::TooLarge { bytes });
        let file = bytes
            .and_then(|bytes| TensorFile::from_bytes(&bytes))
            .map_err(|source| RunError::Tensors { path: path.clone(), source })?;
        Self::from_tensors(file).map_err(|source| RunError::Weights { path, source })
    }

    /// Converts a SafeTensors file to an agent.
    ///
    /// # Errors
    /// Any [`WeightsError`].
    pub fn from_tensors(file: TensorFile) -> Result<Self, WeightsError> {
        let StoredAgent { agent, config, tensors, params, about } = StoredAgent::from_tensors(file)?;
        Ok(AgentFile { agent, config, tensors, params, about, image_threads: 1 })
    }
}

/// Returns whether `path` is a file, or the folder of a run. A folder with neither a configuration nor weights is not one.
pub fn is_weights_or_run(path: &Path) -> bool {
    if !path.is_dir() {
        return path.exists();
    }
    WEIGHTS.iter().chain(&["config.toml"]).any(|name| path.join(name).exists())
}

/// Returns whether `path` is a folder, such as a run.
pub fn is_run(path: &Path) -> bool {
    path.is_dir()
}

/// The weight file of a folder as model hubs keep it.
pub(crate) const HUB_WEIGHTS: &str = "model.safetensors";

/// The weight files of a folder: of a run, the best ones first, or of a model hub.
const WEIGHTS: [&str; 3] = ["best.safetensors", "last.safetensors", HUB_WEIGHTS];

/// The weights called `path`, and their label: a file, the folder of a run, or a [bundled agent](champion).
///
/// # Errors
/// As [`load_weights_or_run`].
pub fn load_named(path: &Path) -> Result<(AgentFile, String), RunError> {
    match champion::named(path) {
        Some(found) => champion::load(found),
        None => load_weights_or_run(path).map(|(file, path)| (file, path.display().to_string())),
    }
}

/// The weights at `path`: a file, or the folder of a run, from which the best or else the last weights are
/// loaded. Also returns the path of the file.
///
/// # Errors
/// As [`AgentFile::load`]; and when a folder holds no weights.
pub fn load_weights_or_run(path: &Path) -> Result<(AgentFile, PathBuf), RunError> {
    if !path.is_dir() {
        suggest::missing_weights(path)?;
        return Ok((AgentFile::load(path)?, path.to_path_buf()));
    }
    let folder = FolderHandle::open(path)?;
    for name in WEIGHTS {
        if folder.has(name) {
            return Ok((AgentFile::load_in(&folder, name)?, path.join(name)));
        }
    }
    Err(RunError::BadRun {
        folder: path.to_path_buf(),
        why: "the folder holds neither best.safetensors nor last.safetensors nor model.safetensors; give a run that has finished its \
              first validation, or a weight file"
            .into(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use foveate_core::{ActContext, ImageBuf, Observation};

    const AGENT: &str = "attention-agent";

    fn small() -> Value {
        json!({ "image": [12, 10], "patch": 3, "stride": 2, "query_dim": 2, "top_k": 3, "hidden": 2 })
    }

    fn sample() -> AgentFile {
        let tensors = registry::tensors(AGENT, &small()).expect("a good configuration");
        let count: usize = tensors.iter().map(TensorShape::len).sum();
        let params = (0..count).map(|i| (i as f32 * 0.7).sin()).collect();
        AgentFile::new(AGENT, &small(), params).expect("right count").note("source", "a test; nothing\nmore")
    }

    #[test]
    fn round_trip_to_the_bit_and_the_same_decisions() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("a.safetensors");
        sample().save(&path).expect("writable");
        let again = AgentFile::load(&path).expect("our own file");
        assert_eq!(again, sample());
        assert_eq!(fs::read(&path).expect("readable"), sample().to_bytes());
        assert_eq!(again.config()["scale"], "sqrt_d_in", "defaults are written out");

        let mut picture = ImageBuf::black(12, 10);
        picture.rgb_mut().iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 37 % 251) as u8);
        let mut direct = registry::make(AGENT, &small()).expect("a good configuration");
        direct.set_params(sample().params()).expect("right count");
        let mut loaded = again.agent().expect("a good file");
        let frame = Observation::rgb(picture.as_image());
        assert_eq!(
            direct.act(frame, &mut ActContext::default()).expect("right size").action,
            loaded.act(frame, &mut ActContext::default()).expect("right size").action
        );
    }

    #[test]
    fn the_world_is_noted() {
        assert_eq!(sample().world("a"), None);
        let world = EnvRequest {
            id: "car-racing".into(),
            picture: Some("fast".into()),
            variants: vec!["bar".into(), "video:folder=/a b".into()],
            options: [("max_steps".into(), "50".into())].into(),
            ..EnvRequest::default()
        };
        assert_eq!(sample().made_for(&world).world("a"), Some(FileWorld::new(world, "a")));
        assert_eq!(sample().note(WORLD, "{").world("a"), None);
    }

    #[test]
    fn a_run_gives_its_best_or_else_its_last_weights() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let run = dir.path();
        let said = load_weights_or_run(run).expect_err("nothing there").to_string();
        assert!(said.contains("neither best.safetensors nor last"), "{said}");
        sample().note("which", "last").save(&run.join("last.safetensors")).expect("writable");
        assert_eq!(load_weights_or_run(run).expect("last").0.about["which"], "last");
        sample().note("which", "best").save(&run.join("best.safetensors")).expect("writable");
        let (file, path) = load_weights_or_run(run).expect("best");
        assert_eq!((&*file.about["which"], path), ("best", run.join("best.safetensors")));
        let said = load_weights_or_run(&run.join("none")).expect_err("no file").to_string();
        assert!(said.contains("cannot read") && said.contains("check the path"), "{said}");
    }

    #[track_caller]
    fn check_err(change: impl FnOnce(&mut TensorFile), expect: &str) {
        let mut file = TensorFile::from_bytes(&sample().to_bytes()).expect("our own file");
        change(&mut file);
        let error = AgentFile::from_tensors(file).expect_err("must be refused");
        assert!(format!("{error:?}").starts_with(expect), "{error:?}");
        let said = error.to_string();
        assert!(said.contains([';', ',']) && said.lines().count() == 1, "{said}");
    }

    fn tensor<'a>(file: &'a mut TensorFile, name: &str) -> &'a mut Tensor {
        &mut file.tensors.iter_mut().find(|t| t.0 == name).expect("it is there").1
    }

    #[test]
    fn every_lie_has_its_variant() {
        let set = |key: &'static str, text: &'static str| {
            move |file: &mut TensorFile| {
                file.metadata.insert(key.into(), text.into());
            }
        };
        let drop = |key: &'static str| {
            move |file: &mut TensorFile| {
                file.metadata.remove(key);
            }
        };
        check_err(|f| f.metadata.clear(), "Foreign { found: \"no format");
        check_err(set("format", "pt"), "Foreign { found: \"format \\\"pt\\\"\"");
        check_err(set("format", "foveate-agent-2"), "Foreign");
        check_err(drop("agent"), "MissingKey { key: \"agent\"");
        check_err(drop("config"), "MissingKey { key: \"config\"");
        check_err(drop("sha256"), "MissingKey { key: \"sha256\"");
        check_err(set("sha256", "0"), "Checksum");
        check_err(set("agent", "nobody"), "Agent(UnknownAgent");
        check_err(set("config", "{"), "Config");
        check_err(set("config", "{\"top_q\":3}"), "Agent(BadConfig");
        check_err(set("config", "{\"patch\":97}"), "Agent(PatchTooLarge");
        check_err(set("config", "{\"top_k\":530}"), "Agent(TooFewPatches");
        check_err(
            set("config", "{}"),
            "Shape { name: \"query.bias\", wanted: \"F32 [4]\", given: \"F32 [2]\"",
        );
        check_err(|f| f.tensors.retain(|t| t.0 != "key.bias"), "MissingTensor { name: \"key.bias\"");
        check_err(
            |f| f.tensors.push(("key.more".into(), Vec::<f32>::new().into())),
            "ForeignTensor { name: \"key.more\"",
        );
        check_err(|f| *tensor(f, "key.bias") = vec![0.0_f64; 2].into(), "Shape");
        let reversed = |tensor: &Tensor| {
            let shape = tensor.shape().iter().rev().copied().collect();
            Tensor::new(shape, tensor.data().clone()).expect("as many places")
        };
        check_err(
            |f| {
                let weight = tensor(f, "key.weight");
                *weight = reversed(weight);
            },
            "Shape",
        );
        for wrong in [f32::NAN, f32::INFINITY] {
            check_err(
                |f| *tensor(f, "key.bias") = vec![0.0, wrong].into(),
                "Agent(ParamNotFinite { index: 57, tensor: \"key.bias\"",
            );
        }
        check_err(|f| *tensor(f, "key.bias") = vec![0.0_f32; 2].into(), "Checksum");
    }
}

//! Agents as files for other programs.

mod hub;

use std::fmt;
use std::path::{Path, PathBuf};

use foveate_agents::onnx::Port;
use foveate_agents::registry::{self, AGENTS};
use foveate_agents::torch::TorchModule;
use foveate_core::hint::Setting;
use foveate_core::{EnvSpec, Tensor, TensorData};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic;
use crate::error::RunError;
use crate::evaluate::EvalReport;
use crate::folder::{FolderHandle, parent};
use crate::tensors::TensorFile;
use crate::weights::AgentFile;

/// What an agent is exported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "command", derive(clap::ValueEnum))]
pub enum ExportKind {
    /// A model in one file, for ONNX Runtime and others
    #[default]
    Onnx,
    /// A folder with a module of PyTorch, its weights and a README
    Torch,
    /// A folder as model hubs keep it: weights, configuration, and a card with the scores of an evaluation
    Hub,
}

impl fmt::Display for ExportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExportKind::Onnx => "onnx",
            ExportKind::Torch => "torch",
            ExportKind::Hub => "hub",
        })
    }
}

impl ExportKind {
    /// The default name of what is written for the weights `source`: a path, or words such as `car-racing champion`.
    pub fn named(self, source: &str) -> PathBuf {
        let stem = Path::new(source).file_stem().unwrap_or_default().to_string_lossy().replace(' ', "-");
        match self {
            ExportKind::Onnx => format!("{stem}.onnx").into(),
            ExportKind::Torch => format!("{stem}-torch").into(),
            ExportKind::Hub => format!("{stem}-hub").into(),
        }
    }
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exported {
    /// The agent's name.
    pub agent: String,
    /// The file or the folder.
    pub out: PathBuf,
    /// The files in the folder.
    pub files: Vec<String>,
    /// Number of weights.
    pub params: usize,
    /// SHA-256 of the weights, as in their file.
    pub sha256: String,
    /// What an ONNX model takes.
    pub inputs: Vec<Port>,
    /// What it gives.
    pub outputs: Vec<Port>,
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Exported { agent, out, files, params, inputs, outputs, .. } = self;
        write!(f, "{}: {agent}, {params} weights", out.display())?;
        for file in files {
            write!(f, "\n  {file}")?;
        }
        for (kind, ports) in [("takes", inputs), ("gives", outputs)] {
            for Port { name, numbers, shape, about } in ports {
                write!(f, "\n  {kind} {name}: {} [{}], {about}", numbers.name(), shape.join(", "))?;
            }
        }
        Ok(())
    }
}

/// What an export asks about the agent's world.
pub trait ExportWorld {
    /// Its shape, which an ONNX model needs.
    ///
    /// # Errors
    /// When the world cannot be built.
    fn spec(&mut self) -> Result<EnvSpec, RunError>;

    /// An evaluation of the agent, for its card.
    ///
    /// # Errors
    /// When world or agent fail.
    fn evaluated(&mut self) -> Result<EvalReport, RunError>;
}

/// Writes the agent of `file` to `out`, which must not exist; missing folders above it are created.
///
/// # Errors
/// When the agent has no such form, the world does not fit it, `out` exists or cannot be written, and those of `world`.
pub fn export(
    file: &AgentFile,
    kind: ExportKind,
    out: &Path,
    world: &mut dyn ExportWorld,
) -> Result<Exported, RunError> {
    if out.file_name().is_none() || out.symlink_metadata().is_ok() {
        let why = format!(
            "{} is there already; move it away, or choose another place with {}",
            out.display(),
            Setting::Out
        );
        return Err(RunError::BadRequest { why });
    }
    let config = registry::config(file.name(), file.config())?;
    let no_module = || {
        let why = format!(
            "agent {} cannot be exported to {kind}; choose weights of one of: {}; every agent goes to hub",
            file.name(),
            exportable().join(", ")
        );
        RunError::BadRequest { why }
    };
    let mut exported = Exported {
        agent: file.name().to_owned(),
        out: out.to_path_buf(),
        files: vec![],
        params: file.params().len(),
        sha256: file.sha256(),
        inputs: vec![],
        outputs: vec![],
    };
    match kind {
        ExportKind::Hub => {
            exported.files = write_folder(out, &hub::files(file, &world.evaluated()?))?;
        }
        ExportKind::Torch => {
            let module = config.torch()?.ok_or_else(no_module)?;
            exported.files = write_folder(out, &of_torch(file, &module))?;
        }
        ExportKind::Onnx => {
            config.torch()?.ok_or_else(no_module)?;
            let model = config.onnx(file.params(), &world.spec()?)?.ok_or_else(|| RunError::BadRequest {
                why: format!("agent {} has no ONNX model; export it to torch", file.name()),
            })?;
            FolderHandle::open_or_create(parent(out))?;
            atomic::write(out, &model.bytes)?;
            (exported.inputs, exported.outputs) = (model.inputs, model.outputs);
        }
    }
    Ok(exported)
}

/// The agents that can be exported, by name.
fn exportable() -> Vec<&'static str> {
    let can = |config: Box<dyn registry::AgentConfig>| matches!(config.torch(), Ok(Some(_)));
    AGENTS.iter().filter(|agent| (agent.read)(&Value::Null).is_ok_and(can)).map(|agent| agent.name).collect()
}

/// The files of a module, by name.
fn of_torch(file: &AgentFile, module: &TorchModule) -> Vec<(String, Vec<u8>)> {
    let TorchModule { class, file: name, fixed, .. } = module;
    let readme = format!(
        "# {class}, an agent of Foveate in PyTorch\n\n\
         `{name}.py` needs PyTorch and nothing else; its class documents what it takes and gives.\n\n\
         ```python\n\
         from {name} import {class}\n\n\
         agent = {class}.load(\"weights.safetensors\")\n\
         action, attention, state = agent(observation, None)   # a batch of first observations\n\
         action, attention, state = agent(observation, state)  # the next ones\n\
         agent.save(\"back.safetensors\")                        # weights for Foveate\n\
         ```\n\n\
         Weights: agent {}, {} numbers, SHA-256 {}.\n",
        file.name(),
        file.params().len(),
        file.sha256()
    );
    let mut files = vec![
        (format!("{name}.py"), module.source().into_bytes()),
        ("weights.safetensors".to_owned(), file.to_bytes()),
        ("README.md".to_owned(), readme.into_bytes()),
    ];
    if !fixed.is_empty() {
        let tensors = fixed.iter().map(|(tensor, numbers)| {
            let all = Tensor::new(tensor.shape.clone(), TensorData::F32(numbers.clone()));
            (tensor.name.clone(), all.expect("as many numbers as the shape has places"))
        });
        let all = TensorFile { metadata: [].into(), tensors: tensors.collect() };
        files.push(("fixed.safetensors".to_owned(), all.to_bytes()));
    }
    files
}

/// Writes the folder `out`, completely or not at all; returns the names of its files.
fn write_folder(out: &Path, files: &[(String, Vec<u8>)]) -> Result<Vec<String>, RunError> {
    let beside = FolderHandle::open_or_create(parent(out))?;
    beside.sweep();
    let name = out.file_name().unwrap_or_default();
    let (folder, hidden) =
        beside.make_hidden_folder(&name.to_string_lossy()).map_err(RunError::io("create", out))?;
    let written = files.iter().try_for_each(|(name, bytes)| folder.write(name, bytes));
    let named = written.and_then(|()| beside.rename(&hidden, name).map_err(RunError::io("write", out)));
    if named.is_err() {
        let _ = beside.remove_tree(&hidden);
    }
    named.map(|()| files.iter().map(|(name, _)| name.clone()).collect())
}

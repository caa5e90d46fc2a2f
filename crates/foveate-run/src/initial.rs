//! The initial weights of a run, see [`Init`].

use std::path::{Path, PathBuf, absolute};

use foveate_agents::registry;
use foveate_core::{Seed, TensorShape};
use foveate_train::{FreshWeights, Init};
use serde_json::Value;

use crate::champion;
use crate::error::RunError;
use crate::weights::{AgentFile, load_named};

/// Records the hash of the weights of `init` and the absolute path of the file, so that a run can be resumed
/// from any folder and never with other weights. The name of a bundled agent is kept.
///
/// # Errors
/// When the file cannot be read or holds no weights.
pub fn pin(init: &mut Init) -> Result<(), RunError> {
    if let Init::Weights { weights, sha256, .. } = init {
        pin_file("init", weights, sha256)?;
    }
    Ok(())
}

/// The same for one file; `key` is what names it in the recipe.
pub(crate) fn pin_file(
    key: &str,
    weights: &mut PathBuf,
    sha256: &mut Option<String>,
) -> Result<(), RunError> {
    let found = load(key, weights, sha256.as_deref())?.sha256();
    if champion::named(weights).is_none() {
        *weights = absolute(&*weights).map_err(RunError::io("read", weights))?;
    }
    *sha256 = Some(found);
    Ok(())
}

/// Makes the weights of `init` for the agent `agent`, from a seed.
///
/// # Errors
/// When the agent does not exist or its settings are invalid, the file cannot be read, or it holds weights of
/// another agent or others than those that the run started with.
pub fn fresh(init: &Init, agent: &str, settings: &Value) -> Result<FreshWeights, RunError> {
    let published = match init {
        Init::Torch => registry::Init::Torch,
        Init::He => registry::Init::He,
        _ => registry::Init::Zeros,
    };
    // Checked here once, so that it cannot fail later.
    let count = registry::initial_params(agent, settings, published, Seed::root(0))?.len();
    Ok(match init {
        Init::Torch | Init::He | Init::Zeros => {
            let (agent, settings) = (agent.to_owned(), settings.clone());
            Box::new(move |seed| {
                registry::initial_params(&agent, &settings, published, seed)
                    .expect("it was checked with another seed")
            })
        }
        Init::Uniform(bound) => {
            let bound = *bound;
            Box::new(move |seed| {
                let mut rng = seed.rng();
                (0..count).map(|_| rng.uniform(-bound, bound) as f32).collect()
            })
        }
        Init::Weights { weights, layers, sha256 } if !layers.is_empty() => {
            let file = load("init", weights, sha256.as_deref())?;
            let wanted = registry::tensors(agent, settings)?;
            let taken = taken(&file, &wanted, layers)
                .map_err(|why| RunError::BadRequest { why: format!("init: {}: {why}", weights.display()) })?;
            let (agent, settings) = (agent.to_owned(), settings.clone());
            Box::new(move |seed| {
                let mut params = registry::initial_params(&agent, &settings, registry::Init::Torch, seed)
                    .expect("it was checked with another seed");
                for (start, numbers) in &taken {
                    params[*start..*start + numbers.len()].copy_from_slice(numbers);
                }
                params
            })
        }
        Init::Weights { weights, sha256, .. } => {
            let file = load("init", weights, sha256.as_deref())?;
            let wanted = registry::tensors(agent, settings)?;
            if file.name() != agent || file.tensors() != wanted {
                return Err(RunError::BadRequest {
                    why: format!(
                        "init: {} holds {} parameters of {}, {count} of {agent} as [agent.config] has it are due; \
                         use the settings that the weights were made with",
                        weights.display(),
                        file.params().len(),
                        file.name(),
                    ),
                });
            }
            let params = file.params().to_vec();
            Box::new(move |_| params.clone())
        }
    })
}

/// The offsets of the tensors of `layers` in `wanted`, and their values in `file`.
fn taken(
    file: &AgentFile,
    wanted: &[TensorShape],
    layers: &[String],
) -> Result<Vec<(usize, Vec<f32>)>, String> {
    let layer = |tensor: &TensorShape| tensor.name.rsplit_once('.').map_or("", |(layer, _)| layer).to_owned();
    let mut known: Vec<String> = wanted.iter().map(layer).collect();
    known.dedup();
    if let Some(unknown) = layers.iter().find(|name| !known.contains(name)) {
        return Err(format!("no layer is called {unknown:?}; choose from {}", known.join(", ")));
    }
    let mut taken = vec![];
    let mut start = 0;
    for tensor in wanted {
        if layers.contains(&layer(tensor)) {
            let mut from = 0;
            let found = file.tensors().iter().find(|other| {
                let here = other.name == tensor.name;
                from += if here { 0 } else { other.len() };
                here
            });
            match found {
                Some(other) if other.shape == tensor.shape => {
                    taken.push((start, file.params()[from..from + tensor.len()].to_vec()));
                }
                Some(other) => {
                    return Err(format!(
                        "its {} has the shape {:?}, {:?} is due; use the settings that it was made with",
                        tensor.name, other.shape, tensor.shape
                    ));
                }
                None => return Err(format!("it has no {}; name other layers", tensor.name)),
            }
        }
        start += tensor.len();
    }
    Ok(taken)
}

/// The weights that `key` of the recipe names, if they are those that a run started with.
pub(crate) fn load(key: &str, path: &Path, sha256: Option<&str>) -> Result<AgentFile, RunError> {
    // The folder of a run that begins with a bundled agent may be resumed where a file has that agent's name.
    let bundled = sha256.and_then(|_| path.to_str()).and_then(champion::find);
    let (file, source) = bundled.map_or_else(|| load_named(path), champion::load)?;
    let found = file.sha256();
    match sha256 {
        Some(wanted) if wanted != found => Err(RunError::BadRequest {
            why: format!(
                "{key}: {source} now holds the weights {found}, the configuration names {wanted}; bring the file back or \
                 begin a new run"
            ),
        }),
        _ => Ok(file),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: &str = "attention-agent";

    fn small() -> Value {
        serde_json::json!({ "top_k": 3, "hidden": 4 })
    }

    fn make(init: &Init, settings: &Value, seed: u64) -> Vec<f32> {
        fresh(init, AGENT, settings).expect("fine")(Seed::root(seed))
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let said = load("init", Path::new("/dev/null"), None).expect_err("a device").to_string();
        assert!(said.contains("/dev/null: it is a device, not a file"), "{said}");
    }

    #[test]
    fn beginnings() {
        let torch = make(&Init::Torch, &small(), 1);
        let expect = registry::initial_params(AGENT, &small(), registry::Init::Torch, Seed::root(1));
        assert_eq!(torch, expect.expect("fine"));
        assert_ne!(torch, make(&Init::Torch, &small(), 2));
        assert_eq!(make(&Init::Zeros, &small(), 1), vec![0.0; torch.len()]);
        let uniform = make(&Init::Uniform(0.5), &small(), 1);
        assert_eq!(uniform.len(), torch.len());
        assert_ne!(uniform, make(&Init::Uniform(0.5), &small(), 2));
        let (low, high) = uniform.iter().fold((0.0_f32, 0.0_f32), |(l, h), &x| (l.min(x), h.max(x)));
        assert!(low > -0.5 && high < 0.5 && high - low > 0.95, "{low} {high}");
    }

    #[test]
    fn a_file_is_pinned_by_its_content() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("start.safetensors");
        let params = make(&Init::Torch, &small(), 7);
        let file = AgentFile::new(AGENT, &small(), params.clone()).expect("fine");
        file.save(&path).expect("writable");
        let mut init = Init::Weights { weights: path.clone(), layers: vec![], sha256: None };
        pin(&mut init).expect("fine");
        assert_eq!(
            init,
            Init::Weights { weights: path.clone(), layers: vec![], sha256: Some(file.sha256()) }
        );
        assert_eq!(make(&init, &small(), 1), params);
        assert_eq!(make(&init, &small(), 2), params, "every start begins with them");

        // The same weights with other notes are accepted; one changed bit of a weight is not.
        file.clone().note("remark", "copied").save(&path).expect("writable");
        assert_eq!(make(&init, &small(), 1), params);
        let mut other = params.clone();
        other[5] = f32::from_bits(other[5].to_bits() ^ 1);
        AgentFile::new(AGENT, &small(), other).expect("fine").save(&path).expect("writable");
        for error in [fresh(&init, AGENT, &small()).err(), pin(&mut init).err()] {
            let said = error.expect("other weights").to_string();
            assert!(said.contains("now holds the weights") && said.contains(&file.sha256()), "{said}");
        }
    }

    #[test]
    fn a_bundled_agent_is_pinned_by_its_name() {
        let mut init = Init::Weights { weights: "door-key-5x5".into(), layers: vec![], sha256: None };
        pin(&mut init).expect("it comes with us");
        let (file, _) = champion::champion("door-key-5x5").expect("it comes with us");
        let pinned =
            Init::Weights { weights: "door-key-5x5".into(), layers: vec![], sha256: Some(file.sha256()) };
        assert_eq!(init, pinned);
        let begins = fresh(&init, file.name(), file.config()).expect("they fit")(Seed::root(1));
        assert_eq!(begins, file.params());
        let said = load("init", Path::new("moon"), None).expect_err("nothing there").to_string();
        assert!(said.starts_with("cannot read moon: there is no such file or folder"), "{said}");
    }

    #[test]
    fn some_layers_may_come_from_a_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("start.safetensors");
        let params = make(&Init::Torch, &small(), 7);
        AgentFile::new(AGENT, &small(), params.clone()).expect("fine").save(&path).expect("writable");
        let init = |layers: &[&str]| Init::Weights {
            weights: path.clone(),
            layers: layers.iter().map(|&layer| layer.to_owned()).collect(),
            sha256: None,
        };
        // Another controller after the same attention.
        let other = serde_json::json!({ "top_k": 3, "hidden": 9 });
        let drawn = make(&Init::Torch, &other, 2);
        let mixed = make(&init(&["query", "key"]), &other, 2);
        assert_eq!(mixed[..1184], params[..1184]);
        assert_eq!(mixed[1184..], drawn[1184..]);
        assert_ne!(
            mixed[1184..],
            make(&init(&["query", "key"]), &other, 3)[1184..],
            "every start has its own"
        );
        let key = make(&init(&["key"]), &other, 2);
        assert_eq!((&key[..592], &key[592..1184]), (&drawn[..592], &params[592..1184]));
        for (layers, words) in [
            (&["querry"][..], "no layer is called \"querry\"; choose from query, key, lstm, output"),
            (&["lstm"], "its lstm.bias_hh has the shape [16], [36] is due"),
        ] {
            let said = fresh(&init(layers), AGENT, &other).err().expect("it does not fit").to_string();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn weights_that_do_not_fit_are_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("start.safetensors");
        let missing = Init::Weights { weights: path.clone(), layers: vec![], sha256: None };
        let said = fresh(&missing, AGENT, &small()).err().expect("no file").to_string();
        assert!(said.contains("check the path"), "{said}");
        let params = make(&Init::Torch, &small(), 7);
        AgentFile::new(AGENT, &small(), params).expect("fine").save(&path).expect("writable");
        let said = fresh(&missing, AGENT, &Value::Null).err().expect("too few").to_string();
        assert!(said.contains("3667 of attention-agent as [agent.config] has it are due; use"), "{said}");
        let said = fresh(&Init::Torch, "no-agent", &Value::Null).err().expect("none").to_string();
        assert!(said.contains("no-agent"), "{said}");
    }
}

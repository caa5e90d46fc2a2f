//! Imports published weights into this program's weight files.
//!
//! The publications store all parameters as one flat vector in an npz file. The file does not say which
//! number is which weight: the [`Layout`] does. A wrong layout gives a broken agent without any error, so the
//! user selects it.

use std::path::Path;

use foveate_agents::stored_agent::check_params;
use foveate_agents::{AGENTS, AgentDescriptor, Layout, Sees, registry};
use foveate_core::hint::Setting;
use foveate_core::{PolicyError, Tensor, TensorData, TensorShape};
use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use serde_json::Value;

use crate::error::RunError;
use crate::weights::AgentFile;
use crate::worlds;
use crate::{npy, npz};

/// Reads the one vector of the npz file at `path` as the parameters of the agent called `agent`.
///
/// `config` is the agent's configuration; omitted settings have their defaults.
///
/// # Errors
/// When the file is broken, does not hold exactly one array, the array is not a vector of floating-point
/// numbers, its length is not the agent's (the error lists the count per tensor), or a number is not finite
/// (the error gives its index in the file and its tensor).
pub fn import(path: &Path, agent: &str, config: &Value, layout: Layout) -> Result<AgentFile, RunError> {
    let config = registry::full_config(agent, config)?;
    let tensors = registry::tensors(agent, &config)?;
    let flat = read(path)?;
    let bad = |why: String| RunError::Import { path: path.to_path_buf(), why };
    check_params(&layout_tensors(layout, &tensors)?, &flat).map_err(|error| match error {
        PolicyError::ParamCount { .. } => bad(format!(
            "{error}; {}give the configuration that the weights were trained with ({})",
            whose(flat.len()),
            Setting::Config
        )),
        _ => bad(error.to_string()),
    })?;
    let ours = layout.to_ours(&tensors, &flat)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let file = AgentFile::new(agent, &config, ours)?;
    Ok(file.note(SOURCE, format!("{IMPORTED}{name}{LAYOUT}{layout}")))
}

/// The note of where weights come from, and what it says of imported ones.
const SOURCE: &str = "source";
const IMPORTED: &str = "imported from ";
const LAYOUT: &str = ", layout ";

/// The layout in which the weights of `file` were imported; `None` if they were not.
pub fn imported_as(file: &AgentFile) -> Option<Layout> {
    let (_, layout) = file.about.get(SOURCE)?.strip_prefix(IMPORTED)?.rsplit_once(LAYOUT)?;
    Layout::named(layout)
}

/// Agents with default settings that have `count` parameters in a native world that suits them, each with
/// that world.
pub fn fitting(count: usize) -> Vec<(&'static str, &'static str)> {
    let worlds = || WORLDS.iter().filter(|world| world.family.is_none()).map(|world| world.name);
    let fits = |agent: &AgentDescriptor, world: &str| {
        let request = EnvRequest { id: world.to_owned(), ..EnvRequest::default() };
        let spec = worlds::shape(&request).ok()?;
        if agent.sees == Sees::Picture && spec.observation.picture().is_none() {
            return None;
        }
        let tensors = registry::tensors(agent.name, &(agent.fit)(&spec, &[])).ok()?;
        Some(count > 0 && tensors.iter().map(TensorShape::len).sum::<usize>() == count)
    };
    let pairs = AGENTS.iter().flat_map(|agent| worlds().map(move |world| (agent, world)));
    let fitting = pairs.filter(|(agent, world)| fits(agent, world) == Some(true));
    fitting.map(|(agent, world)| (agent.name, world)).collect()
}

/// A hint on the origin of `count` parameters: the beginning of a remedy, or an empty text.
fn whose(count: usize) -> String {
    let pairs = fitting(count);
    if pairs.is_empty() {
        return registry::published(None, count).first().map_or_else(String::new, |(agent, weights)| {
            format!(
                "{count} is what the published {} of {agent} has: give {} alone, or ",
                weights.name,
                Setting::Agent.to(agent)
            )
        });
    }
    let settings = |(agent, world): &(&str, &str)| Setting::Agent.to(agent).with(Setting::World.to(world));
    let settings: Vec<String> = pairs.iter().map(|pair| settings(pair).to_string()).collect();
    format!("{count} is what {} has: give that, or ", settings.join(" or "))
}

/// The one vector of the npz file at `path`.
///
/// # Errors
/// As [`import`], without the errors about the agent.
pub fn read(path: &Path) -> Result<Vec<f32>, RunError> {
    let members = npz::read(path)?;
    let bad = |why: String| RunError::Import { path: path.to_path_buf(), why };
    let [member] = &members[..] else {
        let names: Vec<&str> = members.iter().map(|m| m.name.as_str()).collect();
        let (count, names) = (names.len(), names.join(", "));
        return Err(bad(format!(
            "it holds {count} arrays ({names}), weights are exactly one; save that one alone with numpy.savez"
        )));
    };
    vector(&member.array).map_err(&bad)
}

/// The tensors in the order of `layout`, so that an error names the right one.
fn layout_tensors(layout: Layout, tensors: &[TensorShape]) -> Result<Vec<TensorShape>, PolicyError> {
    let numbered: Vec<f32> = tensors.iter().enumerate().flat_map(|(i, t)| vec![i as f32; t.len()]).collect();
    let mut order: Vec<usize> =
        layout.from_ours(tensors, &numbered)?.into_iter().map(|number| number as usize).collect();
    order.dedup();
    Ok(order.into_iter().map(|i| tensors[i].clone()).collect())
}

/// The numbers of a vector in single precision.
fn vector(array: &Tensor) -> Result<Vec<f32>, String> {
    if array.shape().len() != 1 {
        return Err(format!(
            "its array has the shape {:?}, weights are one vector; flatten it",
            array.shape()
        ));
    }
    match array.data() {
        TensorData::F32(numbers) => Ok(numbers.clone()),
        TensorData::F64(numbers) => {
            // A number too large for f32 would silently become infinite.
            match numbers.iter().position(|x| x.is_finite() && x.abs() > f64::from(f32::MAX)) {
                Some(index) => Err(format!(
                    "number {index} is {:e}, too large for f32; is it the right file?",
                    numbers[index]
                )),
                None => Ok(numbers.iter().map(|&x| x as f32).collect()),
            }
        }
        other => {
            let dtype = npy::dtype(other);
            Err(format!(
                "its array holds whole numbers ({dtype}), weights are <f4 or <f8; is it the right file?"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::npy::tests::npy;
    use crate::npz::tests::archive;

    const AGENT: &str = "attention-agent";

    /// 2 + 2·27 twice for query and key, 8 + 8 + 16 + 48 for the LSTM, 1 + 2 for the output.
    fn small() -> Value {
        json!({
            "image": [12, 10], "patch": 3, "stride": 2, "query_dim": 2, "top_k": 3, "hidden": 2,
            "actions": [[-1.0, 1.0]],
        })
    }
    const COUNT: usize = 112 + 80 + 3;

    fn counting() -> Vec<f32> {
        (0..COUNT).map(|i| i as f32).collect()
    }

    fn f4(numbers: &[f32]) -> Vec<u8> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        npy("<f4", &format!("({},)", numbers.len()), &bytes)
    }

    fn run(members: &[(&str, Vec<u8>)], layout: Layout) -> Result<AgentFile, RunError> {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join("weights.npz");
        std::fs::write(&path, archive(members)).expect("writable");
        import(&path, AGENT, &small(), layout)
    }

    #[test]
    fn both_layouts_put_every_number_in_its_tensor() {
        let sorted = run(&[("params.npy", f4(&counting()))], Layout::Sorted).expect("good");
        assert_eq!(sorted.params(), counting());
        assert_eq!(sorted.about["source"], "imported from weights.npz, layout sorted");

        let registered = run(&[("params.npy", f4(&counting()))], Layout::Registration).expect("good");
        let mut at = 0;
        // The offsets of our tensors in the other layout, counted by hand.
        let starts = [
            ("query.bias", 54),
            ("query.weight", 0),
            ("key.bias", 110),
            ("key.weight", 56),
            ("lstm.bias_hh", 184),
            ("lstm.bias_ih", 176),
            ("lstm.weight_hh", 160),
            ("lstm.weight_ih", 112),
            ("output.bias", 194),
            ("output.weight", 192),
        ];
        for (tensor, (name, start)) in registered.tensors().iter().zip(starts) {
            assert_eq!(tensor.name, name);
            let expect: Vec<f32> = (start..start + tensor.len()).map(|i| i as f32).collect();
            assert_eq!(registered.params()[at..at + tensor.len()], expect, "{name}");
            at += tensor.len();
        }
    }

    #[test]
    fn double_precision_is_rounded() {
        let bytes: Vec<u8> =
            counting().iter().flat_map(|&x| (f64::from(x) * (1.0 + 1e-12)).to_le_bytes()).collect();
        let file = run(&[("params.npy", npy("<f8", &format!("({COUNT},)"), &bytes))], Layout::Sorted);
        assert_eq!(file.expect("good").params(), counting());
    }

    #[track_caller]
    fn check_err(members: &[(&str, Vec<u8>)], layout: Layout, wants: &[&str]) {
        let said = run(members, layout).expect_err("must be refused").to_string();
        for want in wants.iter().chain(&["weights.npz: "]) {
            assert!(said.contains(want), "{said}");
        }
        assert!(said.contains([';', '?']) && said.lines().count() == 1, "{said}");
    }

    #[test]
    fn wrong_weights_say_what_is_wrong() {
        let with = |index: usize, value: f32| {
            let mut numbers = counting();
            numbers[index] = value;
            vec![("params.npy", f4(&numbers))]
        };
        let (sorted, registered) = (Layout::Sorted, Layout::Registration);
        check_err(&with(58, f32::NAN), sorted, &["parameter 58 (in key.weight) is NaN"]);
        check_err(&with(110, f32::NEG_INFINITY), sorted, &["parameter 110 (in key.weight) is -inf"]);
        check_err(&with(110, f32::NAN), registered, &["parameter 110 (in key.bias) is NaN"]);
        check_err(&with(194, f32::NAN), registered, &["parameter 194 (in output.bias)"]);
        let counts = "query.bias 2, query.weight 54, key.bias 2, key.weight 54, lstm.bias_hh 8";
        check_err(
            &[("params.npy", f4(&counting()[1..]))],
            sorted,
            &["194 parameters were given, this agent has 195", counts, "(the setting `config`)"],
        );
        check_err(&[("params.npy", f4(&[&counting()[..], &[0.0]].concat()))], sorted, &["196 parameters"]);
        check_err(&[], sorted, &["it holds 0 arrays"]);
        check_err(
            &[("a.npy", f4(&counting())), ("b.npy", f4(&[1.0]))],
            sorted,
            &["it holds 2 arrays (a, b)"],
        );
        check_err(&[("a.npy", npy("|u1", "(3,)", &[1, 2, 3]))], sorted, &["whole numbers (|u1)"]);
        check_err(&[("a.npy", npy("<f4", "(1, 2)", &[0; 8]))], sorted, &["shape [1, 2]"]);
        check_err(
            &[("a.npy", npy("<f8", "(1,)", &1e300_f64.to_le_bytes()))],
            sorted,
            &["number 0 is 1e300, too large for f32"],
        );
    }
}

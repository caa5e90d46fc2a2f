//! A folder as model hubs keep it: `model.safetensors`, `config.json`, and `README.md`, the model's card, whose head has the scores in
//! the form `model-index`.

use serde_json::{Value, json};

use crate::evaluate::EvalReport;
use crate::weights::{AgentFile, HUB_WEIGHTS};

/// The files, by name.
pub(super) fn files(file: &AgentFile, report: &EvalReport, command: &str) -> Vec<(String, Vec<u8>)> {
    let config = json!({
        "library_name": "foveate",
        "foveate_version": crate::VERSION,
        "agent": file.name(),
        "config": file.config(),
        "world": file.about("world").and_then(|world| serde_json::from_str::<Value>(world).ok()),
        "parameters": file.params().len(),
        "sha256": file.sha256(),
    });
    let config = serde_json::to_string_pretty(&config).unwrap_or_default() + "\n";
    vec![
        (HUB_WEIGHTS.to_owned(), file.to_bytes()),
        ("config.json".to_owned(), config.into_bytes()),
        ("README.md".to_owned(), card(file, report, command).into_bytes()),
    ]
}

/// A text as YAML, in which every string of JSON is one.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn card(file: &AgentFile, report: &EvalReport, command: &str) -> String {
    let EvalReport { env, picture, variant, weights, summary, seed, .. } = report;
    let number = |x: f64| format!("{x:.2}");
    let std = summary.std.map_or(String::new(), |std| format!(" +/- {}", number(std)));
    let world = format!("{env}, picture {picture}, variant {variant}");
    let interval = summary.ci95.map(|ci95| ci95.map(number).join(", "));
    let args =
        interval.as_ref().map_or(String::new(), |interval| format!("\n          interval_95: [{interval}]"));
    let head = format!(
        "---
library_name: foveate
pipeline_tag: reinforcement-learning
tags:
  - reinforcement-learning
  - foveate
  - {agent}
  - {env}
model-index:
  - name: {weights}
    results:
      - task:
          type: reinforcement-learning
          name: reinforcement-learning
        dataset:
          name: {world}
          type: {env}
        metrics:
          - name: mean_reward
            type: mean_reward
            value: {mean}{std}
            verified: false
            args:
              episodes: {n}
              seed: {seed}{args}
              command: {command}
---
",
        agent = quoted(file.name()),
        env = quoted(env),
        weights = quoted(weights),
        world = quoted(&world),
        mean = number(summary.mean),
        n = summary.n,
        seed = serde_json::to_string(seed).unwrap_or_default(),
        args = args.replace("\n          ", "\n              "),
        command = quoted(command),
    );
    let source =
        file.about("source").map_or(String::new(), |source| format!("Made by `{}`.\n", plain(source)));
    let weights = plain(weights);
    format!(
        "{head}
# {weights}

Agent `{agent}` of [Foveate](https://pypi.org/project/foveate/) for the world `{env}`, with {count} weights (SHA-256 of the numbers `{sha256}`).
{source}
## Scores

{n} episodes, mean ± standard deviation over episodes (divisor n), with the interval of the mean (95 %, bootstrap).

| world | episodes | mean ± std | 95 % interval | median |
|---|---:|---:|---:|---:|
| {world} | {n} | {mean}{std} | {interval} | {median} |

`{command}` repeats it, with the same returns, where `WEIGHTS` is this folder.

## Use

```sh
pip install foveate
foveate eval WEIGHTS
foveate explain WEIGHTS
```

```python
import foveate

agent = foveate.load(\"hub:OWNER/NAME\")  # with huggingface_hub, or the path of this folder
foveate.evaluate(agent), foveate.explain(agent)
```
",
        agent = file.name(),
        count = file.params().len(),
        sha256 = file.sha256(),
        n = summary.n,
        mean = number(summary.mean),
        std = summary.std.map_or(String::new(), |std| format!(" ± {}", number(std))),
        interval = interval.map_or_else(|| "—".to_owned(), |interval| interval.replace(", ", " … ")),
        median = number(summary.median),
        world = plain(&world).replace('|', "\\|"),
        command = plain(command),
    )
}

/// Words from a weight file as one line without marks of code.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).collect()
}

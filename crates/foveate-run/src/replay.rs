//! Replays recorded actions, so that anyone can check a run.
//!
//! The input has one action per line, as a JSON array of numbers; a world with discrete actions also accepts
//! a bare integer. The output has one JSON object per line: line 0 is the reset, line `t` is step `t`.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use foveate_core::episode::{AfterStep, Episode, EpisodeRules, Observer, RawAction};
use foveate_core::{ActionBuf, Env, EpisodeResult, EvaluateError, Fact, Step};
use serde::ser::{Serialize, SerializeMap, Serializer};
use sha2::{Digest, Sha256};

use crate::error::RunError;
use crate::input;

/// Longer lines of actions are rejected.
const MAX_LINE: u64 = 1 << 16;

/// The result of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Replayed {
    /// Steps played.
    pub steps: u64,
    /// Sum of rewards.
    pub total: f64,
    /// Why it ended.
    pub end: End,
}

/// Why a replay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// There were no more actions.
    Actions,
    /// The task itself ended.
    Terminated,
    /// The world's time limit ended the episode.
    Truncated,
}

/// Opens the recorded actions in the file `path`.
///
/// # Errors
/// When it cannot be read.
pub fn recorded(path: &Path) -> Result<impl BufRead + use<>, RunError> {
    Ok(BufReader::new(input::open(path).map_err(RunError::io("read", path))?))
}

/// Resets `env` with `seed`, applies `actions` until they or the episode end, and writes the results to
/// `trace`.
///
/// `name` is the name of the actions in errors.
///
/// # Errors
/// When the actions cannot be read, a line is not an action of this world (the error names the line), or
/// `trace` cannot be written.
pub fn replay(
    env: &mut dyn Env,
    seed: u64,
    name: &str,
    actions: &mut dyn BufRead,
    trace: &mut dyn Write,
) -> Result<Replayed, RunError> {
    let discrete = env.spec().action.is_discrete();
    let mut episode = Episode::of_seed(seed, EpisodeRules::WHOLE);
    episode.reset(env, &mut RawAction::Choice(0));
    write_line(env, 0, Step::default(), trace)?;
    let mut line = String::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let read = (&mut *actions).take(MAX_LINE).read_line(&mut line);
        let bad = |why: String| RunError::Actions { name: name.to_owned(), line: number, why };
        match read {
            Ok(0) => return Ok(replayed(episode.result())),
            Ok(_) if line.len() as u64 >= MAX_LINE => {
                return Err(bad(format!("longer than {MAX_LINE} bytes")));
            }
            Ok(_) if line.trim().is_empty() => continue,
            Ok(_) => {}
            Err(error) => return Err(bad(error.to_string())),
        }
        let action = parse(&line, discrete).map_err(bad)?;
        let mut action = match &action {
            ActionBuf::Continuous(numbers) => RawAction::Outputs(numbers),
            ActionBuf::Discrete(choice) => RawAction::Choice(*choice),
        };
        episode.step(env, &mut action, &mut Trace(trace)).map_err(|error: TraceError| match error {
            TraceError::Step(error) => bad(error.reason()),
            TraceError::Write(error) => error,
        })?;
        if episode.is_over() {
            return Ok(replayed(episode.result()));
        }
    }
}

fn replayed(result: EpisodeResult) -> Replayed {
    let end = match result {
        EpisodeResult { terminated: true, .. } => End::Terminated,
        EpisodeResult { truncated: true, .. } => End::Truncated,
        _ => End::Actions,
    };
    Replayed { steps: result.steps, total: result.total, end }
}

/// Writes a line after every step.
struct Trace<'a>(&'a mut dyn Write);

enum TraceError {
    Step(EvaluateError),
    Write(RunError),
}

impl From<EvaluateError> for TraceError {
    fn from(error: EvaluateError) -> Self {
        TraceError::Step(error)
    }
}

impl Observer<TraceError> for Trace<'_> {
    fn after_step(&mut self, AfterStep { step, env, outcome }: AfterStep<'_>) -> Result<(), TraceError> {
        write_line(env, step + 1, outcome, self.0).map_err(TraceError::Write)
    }
}

fn parse(line: &str, discrete: bool) -> Result<ActionBuf, String> {
    if discrete {
        // Programs that treat all actions alike write a list of one number.
        let choice = serde_json::from_str::<usize>(line)
            .or_else(|_| serde_json::from_str::<[usize; 1]>(line).map(|[choice]| choice));
        return choice.map(ActionBuf::Discrete).map_err(|_| "a whole number was expected, as in 3".into());
    }
    serde_json::from_str(line)
        .map(ActionBuf::Continuous)
        .map_err(|_| "a list of numbers was expected, as in [0.5, 1, 0]".into())
}

/// A line of the trace, in the order of its keys.
#[derive(serde::Serialize)]
struct TraceLine<'a> {
    t: u64,
    reward: f64,
    terminated: bool,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    frame_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observation: Option<&'a [f32]>,
    state: Facts<'a>,
}

fn write_line(env: &dyn Env, t: u64, step: Step, trace: &mut dyn Write) -> Result<(), RunError> {
    let seen = env.observation();
    let observation = seen.numbers();
    // RGB, followed by the depths if there are any.
    let frame_sha256 = seen.image().map(|pixels| {
        let depth = seen.depth().map_or(&[][..], |depth| depth.bytes());
        sha256_hex_of([pixels.to_rgb(&mut vec![]).rgb(), depth])
    });
    let state = env.state();
    let Step { reward, terminated, truncated } = step;
    let line =
        TraceLine { t, reward, terminated, truncated, frame_sha256, observation, state: Facts(&state) };
    let mut text = serde_json::to_string(&line).expect("numbers, texts and lists can be written");
    text.push('\n');
    trace.write_all(text.as_bytes()).map_err(|source| RunError::Output { source })
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    sha256_hex_of([bytes])
}

/// The SHA-256 of several byte slices in a row, in hexadecimal.
fn sha256_hex_of<const N: usize>(pieces: [&[u8]; N]) -> String {
    let hash = pieces.iter().fold(Sha256::new(), Digest::chain_update);
    hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Facts as JSON: numbers in the shortest form that parses to the same bits.
pub(crate) struct Facts<'a>(pub(crate) &'a Fact);

impl Serialize for Facts<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Fact::Number(x) => to.serialize_f64(*x),
            Fact::Count(n) => to.serialize_u64(*n),
            Fact::Flag(yes) => to.serialize_bool(*yes),
            Fact::Text(text) => to.serialize_str(text),
            Fact::List(items) => to.collect_seq(items.iter().map(Facts)),
            Fact::Group(items) => {
                let mut map = to.serialize_map(Some(items.len()))?;
                for (name, fact) in items {
                    map.serialize_entry(name, &Facts(fact))?;
                }
                map.end()
            }
            Fact::Named(items) => {
                let mut map = to.serialize_map(Some(items.len()))?;
                for (name, fact) in items {
                    map.serialize_entry(name, &Facts(fact))?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Action;
    use foveate_envs::registry::EnvRequest;
    use serde_json::Value;

    use super::*;

    fn car(options: &[(&str, &str)]) -> Box<dyn Env> {
        crate::worlds::make(EnvRequest {
            id: "car-racing".into(),
            picture: Some("none".into()),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            ..EnvRequest::default()
        })
        .expect("a known world")
    }

    fn play(env: &mut dyn Env, actions: &str) -> Result<(Replayed, Vec<Value>), RunError> {
        let mut trace = vec![];
        let played = replay(env, 3, "actions.jsonl", &mut actions.as_bytes(), &mut trace)?;
        let text = String::from_utf8(trace).expect("JSON is text");
        assert!(text.ends_with('\n'));
        Ok((played, text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()))
    }

    #[test]
    fn a_trace_says_what_the_world_did_to_the_bit() {
        let actions = "[0.1, 1, 0]\n [-0.25,0.5,0.0]\n\n[0,0,1]\n";
        let (played, lines) = play(&mut *car(&[]), actions).expect("good actions");
        assert_eq!((played.steps, played.end, lines.len()), (3, End::Actions, 4));

        let mut env = car(&[]);
        env.reset(Some(3));
        let mut total = 0.0;
        for (t, action) in [[0.0; 3], [0.1, 1.0, 0.0], [-0.25, 0.5, 0.0], [0.0, 0.0, 1.0]].iter().enumerate()
        {
            let step =
                if t == 0 { Step::default() } else { env.step(Action::Continuous(action)).expect("fine") };
            total += step.reward;
            let line = &lines[t];
            assert_eq!(line["t"], t);
            assert_eq!(line["reward"].as_f64().map(f64::to_bits), Some(step.reward.to_bits()));
            assert_eq!(line["terminated"], false);
            assert_eq!(line["state"]["wheels"].as_array().map(Vec::len), Some(4));
            let Fact::Group(facts) = env.state() else { panic!("the state has names") };
            let Fact::Group(hull) = &facts[0].1 else { panic!("the hull has names") };
            for (name, fact) in hull {
                let Fact::Number(x) = fact else { panic!("{name} is a number") };
                assert_eq!(
                    line["state"]["hull"][name].as_f64().map(f64::to_bits),
                    Some(x.to_bits()),
                    "{name}"
                );
            }
            let Some(frame) = env.observation().picture() else { panic!("a picture") };
            assert_eq!(line["frame_sha256"], sha256_hex(frame.rgb()));
        }
        assert_eq!(played.total.to_bits(), total.to_bits());
    }

    #[test]
    fn it_ends_with_the_episode() {
        let (played, lines) = play(&mut *car(&[("max_steps", "5")]), &"[0,1,0]\n".repeat(9)).expect("good");
        assert_eq!((played.steps, played.end, lines.len()), (5, End::Truncated, 6));
        assert_eq!(lines[5]["truncated"], true);
    }

    #[test]
    fn choices_are_whole_numbers() {
        let (played, _) = play(&mut *car(&[("continuous", "false")]), "3\n[4]\n0").expect("good");
        assert_eq!(played.steps, 3);
    }

    #[test]
    fn sha256_of_the_standard() {
        assert_eq!(sha256_hex(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }

    #[test]
    fn facts_keep_their_order_and_kind() {
        let fact = Fact::Group(vec![
            ("z", Fact::Number(0.1)),
            ("a", Fact::List(vec![Fact::Count(3), Fact::Flag(true), Fact::Text("t\"".into())])),
        ]);
        let text = serde_json::to_string(&Facts(&fact)).expect("writable");
        assert_eq!(text, r#"{"z":0.1,"a":[3,true,"t\""]}"#);
    }

    #[test]
    fn bad_actions_name_the_line() {
        for (continuous, actions, wants) in [
            ("true", "[0,0,0]\n[0,0]\n", "actions.jsonl line 2: an action of 2 numbers was given"),
            ("true", "[0,0,\"x\"]\n", "actions.jsonl line 1: a list of numbers was expected"),
            ("true", "\n3\n", "actions.jsonl line 2: a list of numbers was expected"),
            ("true", "[0,0,1e400]\n", "actions.jsonl line 1: a list of numbers"),
            ("true", "[0,0,0] [0,0,0]\n", "actions.jsonl line 1: a list of numbers"),
            ("false", "[0,0,0]\n", "actions.jsonl line 1: a whole number was expected"),
            ("false", "5\n", "actions.jsonl line 1: car-racing does not take the action choice 5"),
            ("true", &"[".repeat(1 << 17), "longer than 65536 bytes"),
        ] {
            let said = play(&mut *car(&[("continuous", continuous)]), actions).expect_err("bad").to_string();
            assert!(said.contains(wants), "{said}");
            assert!(said.contains(';') && said.lines().count() == 1, "{said}");
        }
        let not_text = replay(&mut *car(&[]), 0, "a", &mut &b"\xff\xfe\n"[..], &mut vec![]);
        assert!(not_text.expect_err("not text").to_string().contains("line 1"));
    }
}

//! Held-out evaluation and its statistics.
//!
//! An evaluation runs whole episodes, without the early cut of training rollouts, and reports all of them.
//! Its results are the same for any number of workers.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use foveate_core::Labels;
use foveate_core::episode::EpisodeRules;
use foveate_core::hint::Setting;
use foveate_core::{ActMode, Agent, Env, Experience};
use foveate_registry::ReferenceScores;
use foveate_train::{Summary, by_task, decimals};
use serde::{Deserialize, Serialize};

pub use foveate_train::interval_text;

use crate::budget;
use crate::clock::ProcessCpu;
use crate::error::RunError;
use crate::job_cost::{JobCost, at_most, episodes_in_words};
use crate::workers::{Stop, Workers};

/// The episodes of an evaluation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seeds {
    /// The world is seeded once and its random stream continues from episode to episode, as in the papers'
    /// test scripts.
    Stream {
        /// The seed.
        seed: u64,
        /// How many episodes.
        episodes: usize,
    },
    /// Every episode has its own seed.
    Each(Range<u64>),
}

impl Seeds {
    /// How many episodes.
    pub fn count(&self) -> usize {
        match self {
            Seeds::Stream { episodes, .. } => *episodes,
            Seeds::Each(range) => range.end.saturating_sub(range.start) as usize,
        }
    }
}

/// A seed for every episode: `0..20` as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SeedRange(Range<u64>);

impl From<SeedRange> for Seeds {
    fn from(SeedRange(range): SeedRange) -> Self {
        Seeds::Each(range)
    }
}

impl From<SeedRange> for String {
    fn from(SeedRange(range): SeedRange) -> Self {
        format!("{}..{}", range.start, range.end)
    }
}

impl TryFrom<String> for SeedRange {
    type Error = RunError;

    fn try_from(text: String) -> Result<Self, RunError> {
        text.parse()
    }
}

/// Parses `0..20`: seeds 0 to 19, one episode each.
impl FromStr for SeedRange {
    type Err = RunError;

    fn from_str(text: &str) -> Result<Self, RunError> {
        let range = text
            .split_once("..")
            .and_then(|(from, to)| Some(from.trim().parse().ok()?..to.trim().parse().ok()?));
        match range {
            Some(range) if range.start < range.end && range.end - range.start <= MAX_EPISODES => {
                Ok(SeedRange(range))
            }
            _ => Err(RunError::BadRequest {
                why: format!(
                    "{text:?} is not a range of seeds; write {} for the seeds 0 to 19, at most {MAX_EPISODES} of them",
                    Setting::Seeds.to("0..20")
                ),
            }),
        }
    }
}

/// Upper limit of episodes; it prevents that a typing error requests all the memory.
pub(crate) const MAX_EPISODES: u64 = 1_000_000;

/// Checks that there are not too many episodes.
///
/// # Errors
/// When there are too many.
pub(crate) fn check_episodes(episodes: usize) -> Result<(), RunError> {
    if episodes as u64 > MAX_EPISODES {
        let why =
            format!("{episodes} episodes are more than anyone can wait for; ask for at most {MAX_EPISODES}");
        return Err(RunError::BadRequest { why });
    }
    Ok(())
}

/// An evaluation to run.
pub struct EvalRequest<'a> {
    /// The world; it is copied.
    pub env: &'a dyn Env,
    /// The agent with its weights; it is copied.
    pub agent: &'a dyn Agent,
    /// Their names in the report.
    pub labels: Labels,
    /// The episodes.
    pub seeds: Seeds,
    /// Threads; 0 for as many as there are cores.
    pub workers: usize,
    /// Steps after which an episode is truncated, unless the world ends it earlier.
    pub max_steps: Option<u64>,
    /// Whether the agent takes the actions that it considers best, or explores as in training.
    pub mode: ActMode,
    /// The scores by which returns are normalised, where there are any.
    pub reference: Option<ReferenceScores>,
}

/// The result of an evaluation. Serialises to the object that `foveate eval --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalReport {
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// Where the weights came from.
    pub weights: String,
    /// The seed of the stream, or the range of seeds as text.
    pub seed: SeedLabel,
    /// True if the agent drew its actions, see [`EvalRequest::mode`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn: bool,
    /// Statistics of the returns.
    #[serde(flatten)]
    pub summary: Summary,
    /// The mean return as a human-normalised score, where there are scores to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub human_normalised: Option<HumanNormalised>,
    /// How many episodes reached a score, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<AtLeast>,
    /// In a world of several tasks, such as several games: the returns in each, whose means the summary's mean is the mean of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskReturns>,
    /// What every episode counts: the sum of its rewards, unless the world [scores](Env::score) it otherwise.
    pub returns: Vec<f64>,
    /// Steps of every episode.
    pub lengths: Vec<u64>,
    /// Whether the task itself ended the episode (for CarRacing: the lap was complete or the car left the
    /// field).
    pub terminated: Vec<bool>,
    /// Steps per CPU second over all threads, resets included; the only number that differs between runs.
    pub steps_per_cpu_second: f64,
}

/// The returns in one of a world's tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskReturns {
    /// Its name, such as that of the game.
    pub task: String,
    /// Their statistics.
    #[serde(flatten)]
    pub summary: Summary,
}

/// How many episodes have at least some score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AtLeast {
    /// The score.
    pub score: f64,
    /// Episodes with at least this score.
    pub episodes: usize,
    /// Their share of all episodes.
    pub share: f64,
    /// Wilson's 95 % interval of the share.
    pub ci95: [f64; 2],
}

impl AtLeast {
    /// Counts the episodes; there is at least one.
    pub fn of(score: f64, returns: &[f64]) -> Self {
        /// Two-sided 95 % of a normal distribution.
        const Z: f64 = 1.959_963_984_540_054;
        let episodes = returns.iter().filter(|&&own| own >= score).count();
        let n = returns.len().max(1) as f64;
        let share = episodes as f64 / n;
        let (centre, scale) = (share + Z * Z / (2.0 * n), 1.0 + Z * Z / n);
        let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let ci95 = [(centre - half) / scale, (centre + half) / scale].map(|bound| bound.clamp(0.0, 1.0));
        AtLeast { score, episodes, share, ci95 }
    }
}

/// A mean return in percent between random play (0) and a person (100).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HumanNormalised {
    /// What was played, such as the game.
    pub task: String,
    /// Mean score of random play.
    pub random: f64,
    /// Mean score of a person.
    pub human: f64,
    /// 100 · (mean return − random) / (human − random).
    pub mean: f64,
    /// The return's 95 % interval on the same scale.
    pub ci95: Option<[f64; 2]>,
}

impl HumanNormalised {
    fn of(reference: ReferenceScores, returns: &Summary) -> Self {
        let ReferenceScores { task, random, human } = reference;
        let normalise = |score| reference.normalise(score);
        HumanNormalised {
            task: task.to_owned(),
            random,
            human,
            mean: normalise(returns.mean),
            ci95: returns.ci95.map(|ends| ends.map(normalise)),
        }
    }
}

/// The `seed` of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SeedLabel {
    /// The seed of a stream.
    Stream(u64),
    /// A range of seeds, `0..20`.
    Each(String),
}

/// Runs an evaluation.
///
/// # Errors
/// When there are no episodes to run, a rollout fails, or the user asked to stop.
pub fn run(request: &EvalRequest<'_>, stop: &Stop) -> Result<EvalReport, RunError> {
    let &EvalRequest { env, agent, ref labels, ref seeds, workers, max_steps, mode, reference } = request;
    if seeds.count() == 0 {
        return Err(RunError::BadRequest { why: "0 episodes say nothing; ask for at least 1".into() });
    }
    check_episodes(seeds.count())?;
    let rules = EpisodeRules { max_steps: max_steps.unwrap_or(u64::MAX), ..EpisodeRules::WHOLE };
    crate::workers::check_count(workers)?;
    let workers = if workers == 0 { crate::workers::default_workers() } else { workers };
    let workers = workers.min(seeds.count());
    budget::evaluation(seeds.count(), workers, agent.params().len(), env.spec())?;
    if stop.cost().is_none() {
        let (episodes, limit) = (seeds.count(), at_most(env.spec().max_steps, max_steps));
        stop.announce(JobCost::of_episodes(
            "eval",
            format!("{}{limit}", episodes_in_words(episodes)),
            episodes,
            workers,
        ));
    }
    let cpu = ProcessCpu::start();
    let mut pool = Workers::new(env, agent, workers, stop.clone());
    let weights = agent.params();
    let whose = RunError::of_weights(&labels.weights);
    let mut experience = Experience::default();
    let (seed, outcome) = match seeds {
        &Seeds::Stream { seed, episodes } => (
            SeedLabel::Stream(seed),
            pool.evaluate_stream(&weights, (seed, episodes), rules, mode, &mut experience),
        ),
        Seeds::Each(range) => (
            SeedLabel::Each(format!("{}..{}", range.start, range.end)),
            pool.evaluate_each(&weights, range.clone(), rules, mode, &mut experience),
        ),
    };
    outcome.map_err(RunError::from).map_err(whose)?;
    // Worlds in other processes report their CPU time when they are dropped.
    drop(pool);
    let results = experience.episodes;
    let seconds = cpu.elapsed().as_secs_f64();
    let returns: Vec<f64> = results.iter().map(|r| r.total).collect();
    let steps: u64 = results.iter().map(|r| r.steps).sum();
    let summary = Summary::of_episodes(&results);
    let mut by_task = by_task(&results);
    let tasks = env.tasks().into_iter().enumerate().filter_map(|(number, task)| {
        let summary = Summary::of(&by_task.remove(&number)?);
        Some(TaskReturns { task: task.to_owned(), summary })
    });
    Ok(EvalReport {
        at_least: None,
        env: labels.env.clone(),
        picture: labels.picture.clone(),
        variant: labels.variant.clone(),
        weights: labels.weights.clone(),
        seed,
        drawn: mode != ActMode::Greedy,
        human_normalised: reference.map(|reference| HumanNormalised::of(reference, &summary)),
        summary,
        tasks: tasks.collect(),
        lengths: results.iter().map(|r| r.steps).collect(),
        terminated: results.iter().map(|r| r.terminated).collect(),
        returns,
        steps_per_cpu_second: steps as f64 / seconds.max(1e-9),
    })
}

/// Formats the report for people.
impl fmt::Display for EvalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { n, median, q25, q75, ci95, .. } = self.summary;
        let seed = match &self.seed {
            SeedLabel::Stream(seed) => format!("stream of seed {seed}"),
            SeedLabel::Each(range) => format!("seeds {range}"),
        };
        let drawn = if self.drawn { ", drawn actions" } else { "" };
        let min = self.returns.iter().copied().fold(f64::INFINITY, f64::min);
        let max = self.returns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let steps: u64 = self.lengths.iter().sum();
        let ended = self.terminated.iter().filter(|&&t| t).count();
        writeln!(f, "{}", self.weights)?;
        writeln!(
            f,
            "  on        {}, picture {}, variant {}, {seed}{drawn}",
            self.env, self.picture, self.variant
        )?;
        writeln!(
            f,
            "  episodes  {n}, {ended} ended by the task, {:.0} steps on average",
            steps as f64 / n as f64
        )?;
        let d = decimals(min.abs().max(max.abs()));
        let mean = self.summary.spread(d);
        if ci95.is_some() {
            writeln!(f, "  return    {mean} (95 % interval of the mean {})", interval_text(ci95, d))?;
            writeln!(
                f,
                "  spread    min {min:.d$}, quartiles {q25:.d$} | {median:.d$} | {q75:.d$}, max {max:.d$}"
            )?;
        } else {
            let more = Setting::Episodes;
            let why = if n > 1 { "a task with one episode" } else { "one episode" };
            writeln!(f, "  return    {mean} ({why} has no interval and no spread; raise {more})")?;
        }
        for TaskReturns { task, summary } in &self.tasks {
            let (episodes, s) = (summary.n, if summary.n == 1 { "" } else { "s" });
            writeln!(f, "  in {task}: {} in {episodes} episode{s}", summary.spread(d))?;
        }
        if let Some(AtLeast { score, episodes, share, ci95 }) = &self.at_least {
            let interval = interval_text(Some(ci95.map(|bound| 100.0 * bound)), 1);
            let percent = 100.0 * share;
            writeln!(
                f,
                "  at least  {score}: {episodes} episodes, {percent:.1} % (95 % interval {interval} %)"
            )?;
        }
        if let Some(HumanNormalised { task, random, human, mean, ci95 }) = &self.human_normalised {
            let interval = ci95.map_or_else(String::new, |ci95| {
                format!(" (95 % interval {} %)", interval_text(Some(ci95), 1))
            });
            writeln!(
                f,
                "  score     {mean:.1} % human-normalised{interval}; in {task} random play scores {random} (0 %), a person \
                 {human} (100 %)"
            )?;
        }
        write!(f, "  speed     {:.0} steps per CPU second", self.steps_per_cpu_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foveate_envs::levels::{Level, Levels};
    use foveate_toy::{ToyWorld, toy_agent};

    fn request<'a>(env: &'a ToyWorld, agent: &'a dyn Agent, seeds: Seeds, workers: usize) -> EvalRequest<'a> {
        let labels = Labels {
            env: "toy".into(),
            picture: "none".into(),
            variant: "none".into(),
            weights: "w.safetensors".into(),
        };
        EvalRequest {
            env,
            agent,
            labels,
            seeds,
            workers,
            max_steps: None,
            mode: ActMode::Greedy,
            reference: None,
        }
    }

    fn eval(seeds: Seeds, workers: usize) -> Result<EvalReport, RunError> {
        let (env, agent) = (ToyWorld::default(), toy_agent(-0.4));
        run(&request(&env, &agent, seeds, workers), &Stop::default())
    }

    /// Two toy worlds as one, the second with twice as many episodes.
    fn two_tasks() -> Levels {
        let level = |task, share| Level {
            env: Box::new(ToyWorld::default()) as Box<dyn Env>,
            scores: ReferenceScores { task, random: 0.0, human: 60.0 },
            share,
        };
        Levels::new("both", vec![level("one", 1), level("other", 2)]).expect("they fit")
    }

    #[test]
    fn returns_are_given_by_task_and_tasks_weigh_the_same() {
        let (env, agent) = (two_tasks(), toy_agent(-0.4));
        let labels = request(&ToyWorld::default(), &agent, Seeds::Each(0..30), 2).labels;
        let request = EvalRequest {
            env: &env,
            agent: &agent,
            labels,
            seeds: Seeds::Each(0..30),
            workers: 2,
            max_steps: None,
            mode: ActMode::Greedy,
            reference: None,
        };
        let report = run(&request, &Stop::default()).expect("fine");
        let [one, other] = &report.tasks[..] else { panic!("{:?}", report.tasks) };
        assert_eq!((&*one.task, &*other.task, one.summary.n + other.summary.n), ("one", "other", 30));
        assert!(one.summary.n < other.summary.n);
        assert_ne!(one.summary.mean, other.summary.mean);
        assert_eq!(report.summary.mean, f64::midpoint(one.summary.mean, other.summary.mean));
        let text = report.to_string();
        let line = format!("\n  in one: {} in {} episodes\n", one.summary.spread(1), one.summary.n);
        assert!(text.contains(&line), "{text}");
        let json = serde_json::to_string(&report).expect("plain numbers");
        assert_eq!(serde_json::from_str::<EvalReport>(&json).expect("its own"), report);
        assert_eq!(eval(Seeds::Each(0..3), 1).expect("fine").tasks, []);
    }

    #[test]
    fn drawn_actions_are_other_ones_and_the_same_for_any_number_of_workers() {
        use foveate_agents::registry::{self, Init};
        use foveate_core::Seed;

        let settings = serde_json::json!({ "observation": [[-3.0, 3.0], [-3.0, 3.0]], "actions": [[-1.0, 1.0]], "discrete": false });
        let mut agent = registry::make("actor-critic", &settings).expect("good settings");
        let params = registry::initial_params("actor-critic", &settings, Init::Torch, Seed::root(4));
        agent.set_params(&params.expect("good settings")).expect("they fit");
        let env = ToyWorld::default();
        let eval = |seeds: Seeds, workers, mode| {
            run(&EvalRequest { mode, ..request(&env, &*agent, seeds, workers) }, &Stop::default())
                .expect("fine")
        };
        let explore = ActMode::Explore { epsilon: 0.0 };
        for seeds in [Seeds::Stream { seed: 5, episodes: 6 }, Seeds::Each(5..11)] {
            let best = eval(seeds.clone(), 1, ActMode::Greedy);
            let drawn = eval(seeds.clone(), 1, explore);
            assert_eq!((best.drawn, drawn.drawn), (false, true));
            assert!(best.returns.iter().zip(&drawn.returns).all(|(best, drawn)| best != drawn), "{drawn:?}");
            assert_eq!(eval(seeds, 3, explore).returns, drawn.returns);
            assert!(drawn.to_string().contains(", drawn actions\n") && !best.to_string().contains("drawn"));
            let json = |report| serde_json::to_value(report).expect("plain numbers");
            assert_eq!(
                (&json(&drawn)["drawn"], &json(&best)["drawn"]),
                (&true.into(), &serde_json::Value::Null)
            );
        }
    }

    #[test]
    fn one_episode_has_no_interval() {
        let report = eval(Seeds::Each(3..4), 1).expect("fine");
        let Summary { n, mean, std, ci95, median, .. } = report.summary;
        assert_eq!((n, mean, std, ci95), (1, report.returns[0], None, None));
        assert_eq!(median, mean);
        let said = report.to_string();
        assert!(said.contains("one episode has no interval and no spread"), "{said}");
        assert!(!said.contains('±') && !said.contains('…') && !said.contains("quartiles"), "{said}");
        let json = serde_json::to_value(&report).expect("plain numbers");
        assert!(json["std"].is_null() && json["ci95"].is_null(), "{json}");
        assert_eq!(serde_json::from_value::<EvalReport>(json.clone()).expect("its own"), report);
        // The format of older builds.
        let mut old = json;
        (old["std"], old["ci95"]) = (0.0.into(), vec![mean, mean].into());
        assert_eq!(serde_json::from_value::<EvalReport>(old).expect("an older one"), report);
    }

    #[test]
    fn a_sensor_that_is_no_number_is_an_error_through_shifts_too() {
        let toy = || Box::new(ToyWorld::blinded(3));
        let settings = serde_json::json!({ "senses": "numbers", "actions": [[-1.0, 1.0]] });
        let agent = foveate_agents::registry::make("attention-neuron", &settings).expect("good settings");
        for shift in ["", "shuffle:5", "doubled:1", "noise-channels:3", "shuffle:5:every=1+doubled:2"] {
            let texts = if shift.is_empty() { vec![] } else { vec![shift] };
            let plan = foveate_envs::shift::Plan::parse_all(&texts).expect("good shifts");
            let env = foveate_envs::shift::Shifted::new(toy(), &plan).expect("they fit");
            let labels = Labels { weights: "w.safetensors".into(), ..Labels::default() };
            let request = EvalRequest {
                env: &env,
                agent: &*agent,
                labels,
                seeds: Seeds::Each(1..2),
                workers: 1,
                max_steps: None,
                mode: ActMode::Greedy,
                reference: None,
            };
            let said = run(&request, &Stop::default()).expect_err("NaN is no number").to_string();
            let wants = "of the sensors is NaN; the world is broken";
            assert!(said.contains(wants) && said.lines().count() == 1, "{shift}: {said}");
            assert!(said.contains("w.safetensors"), "{shift}: {said}");
        }
    }

    #[test]
    fn a_return_is_compared_with_people() {
        let (env, agent) = (ToyWorld::default(), toy_agent(-0.4));
        let mut request = request(&env, &agent, Seeds::Each(0..5), 1);
        let plain = run(&request, &Stop::default()).expect("fine");
        assert_eq!(plain.human_normalised, None);
        assert!(!plain.to_string().contains("human"), "{plain}");
        let Summary { mean, ci95, .. } = plain.summary;
        // A scale on which the mean return is 50 %.
        request.reference = Some(ReferenceScores { task: "toy", random: mean - 4.0, human: mean + 4.0 });
        let report = run(&request, &Stop::default()).expect("fine");
        let normalised = report.human_normalised.clone().expect("compared");
        assert!((normalised.mean - 50.0).abs() < 1e-9, "{normalised:?}");
        let ([from, to], [low, high]) = (ci95.expect("five"), normalised.ci95.expect("five"));
        assert!((low - (50.0 + (from - mean) * 12.5)).abs() < 1e-9 && low < 50.0, "{normalised:?}");
        assert!((high - (50.0 + (to - mean) * 12.5)).abs() < 1e-9 && high > 50.0, "{normalised:?}");
        let said = report.to_string();
        assert!(
            said.contains("  score     50.0 % human-normalised (95 % interval ")
                && said.contains("; in toy random play"),
            "{said}"
        );
        let json = serde_json::to_value(&report).expect("plain numbers");
        assert_eq!(json["human_normalised"]["task"], "toy");
        assert_eq!(serde_json::from_value::<EvalReport>(json).expect("its own"), report);
        request.seeds = Seeds::Each(0..1);
        let one = run(&request, &Stop::default()).expect("fine");
        assert_eq!(one.human_normalised.as_ref().expect("compared").ci95, None);
        assert!(one.to_string().contains("% human-normalised; in toy random play"), "{one}");
    }

    #[test]
    fn a_share_has_wilsons_interval() {
        // Wilson (1927), as in statsmodels' proportion_confint(count, nobs, method="wilson").
        for (reached, n, expect) in
            [(0, 10, [0.0, 0.277_532_8]), (5, 10, [0.236_593_1, 0.763_406_9]), (10, 10, [0.722_467_2, 1.0])]
        {
            let returns: Vec<f64> = (0..n).map(|i| if i < reached { 3.0 } else { 1.0 }).collect();
            let found = AtLeast::of(3.0, &returns);
            assert_eq!((found.episodes, found.share), (reached, reached as f64 / n as f64));
            for (own, expect) in found.ci95.iter().zip(expect) {
                assert!((own - expect).abs() < 1e-6, "{found:?}");
            }
        }
    }

    #[test]
    fn digits_do_not_depend_on_the_workers() {
        for seeds in [Seeds::Stream { seed: 1, episodes: 23 }, Seeds::Each(5..28)] {
            let mut reports: Vec<_> =
                [1, 2, 3, 8].map(|workers| eval(seeds.clone(), workers).expect("fine")).into();
            for report in &mut reports {
                assert!(report.steps_per_cpu_second > 0.0);
                report.steps_per_cpu_second = 0.0;
            }
            assert!(reports.windows(2).all(|pair| pair[0] == pair[1]));
            assert_eq!(reports[0].returns.len(), 23);
        }
    }

    #[test]
    fn the_two_kinds_of_seeds_meet_in_the_first_episode() {
        let stream = eval(Seeds::Stream { seed: 7, episodes: 3 }, 2).expect("fine");
        let each = eval(Seeds::Each(7..10), 2).expect("fine");
        assert_eq!(stream.returns[0], each.returns[0]);
        assert_ne!(stream.returns[1..], each.returns[1..]);
    }

    #[test]
    fn the_json_is_one_flat_object() {
        let report = eval(Seeds::Stream { seed: 7, episodes: 3 }, 1).expect("fine");
        let json = serde_json::to_value(&report).expect("plain numbers");
        let keys: Vec<_> = json.as_object().expect("an object").keys().cloned().collect();
        let mut expect = vec![
            "env",
            "picture",
            "variant",
            "weights",
            "seed",
            "n",
            "mean",
            "std",
            "median",
            "q25",
            "q75",
            "ci95",
            "returns",
            "lengths",
            "terminated",
            "steps_per_cpu_second",
        ];
        expect.sort_unstable();
        assert_eq!(keys, expect);
        assert_eq!(json["seed"], 7);
        assert_eq!(json["ci95"].as_array().map(Vec::len), Some(2));
        assert_eq!(serde_json::from_value::<EvalReport>(json).expect("its own"), report);
        let each = eval(Seeds::Each(0..2), 1).expect("fine");
        assert_eq!(serde_json::to_value(each.seed).expect("text"), "0..2");
    }

    #[test]
    fn a_time_limit_holds() {
        let (env, agent) = (ToyWorld::default(), toy_agent(-0.4));
        let mut request = request(&env, &agent, Seeds::Each(0..4), 1);
        request.max_steps = Some(7);
        let report = run(&request, &Stop::default()).expect("fine");
        assert_eq!(report.lengths, [7; 4]);
        assert_eq!(report.terminated, [false; 4]);
    }

    #[test]
    fn requests_that_make_no_sense_say_what_to_do() {
        for text in ["", "5", "3..3", "4..2", "a..b", "0..=3", "-1..4", "0..99999999999"] {
            let said = text.parse::<SeedRange>().expect_err(text).to_string();
            assert!(said.contains("write the setting `seeds 0..20`") && said.contains(text), "{said}");
        }
        assert_eq!(Seeds::from("2..5".parse::<SeedRange>().expect("a range")), Seeds::Each(2..5));
        let said = eval(Seeds::Stream { seed: 1, episodes: 0 }, 1).expect_err("nothing to do").to_string();
        assert!(said.contains("at least 1"), "{said}");
        let (env, agent) = (ToyWorld::default(), toy_agent(f32::NAN));
        let said =
            run(&request(&env, &agent, Seeds::Each(0..4), 2), &Stop::default()).expect_err("NaN").to_string();
        assert!(said.starts_with("w.safetensors, episode 0 (seed 0), step 1: "), "{said}");
        let stream = Seeds::Stream { seed: 4, episodes: 2 };
        let said = run(&request(&env, &agent, stream, 1), &Stop::default()).expect_err("NaN").to_string();
        assert!(said.starts_with("w.safetensors, episode 0 (seed 4), step 1: "), "{said}");
    }
}

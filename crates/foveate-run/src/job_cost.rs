//! The cost of a job that plays episodes: said before it begins, and the time left while it runs.
//!
//! A job announces its cost to its [`Stop`](crate::workers::Stop), which everyone who shows progress has: the
//! [`Ticker`](crate::ticker::Ticker) of the command, and listeners of other programs.

use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::{Agent, Env, EvaluateError};
use foveate_explain::figure::count_steps;
use foveate_explain::study::StudyCost;

use crate::clock::Wall;
use crate::workers::default_workers;

/// What is done in less time needs no estimate.
const WORTH_SAYING: f64 = 5.0;

/// Time for which an agent plays for an estimate, in seconds.
const WARM_UP: f64 = 0.1;

/// Share of a job after which its own pace is a better estimate than that of the first steps.
const OWN_PACE: f64 = 0.2;

/// What a job will do, counted before it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct JobCost {
    /// What it is.
    pub job: &'static str,
    /// Its parts with their counts.
    pub parts: String,
    /// The number of pieces that are counted while it runs, such as episodes.
    pub pieces: usize,
    /// Seconds that it takes; `None` until the first piece is done.
    pub seconds: Option<f64>,
    /// Number of threads.
    pub workers: usize,
    /// What makes it shorter.
    pub shorter: Option<String>,
}

impl JobCost {
    /// Of a job that plays `pieces` episodes; `workers` is 0 for as many as there are cores.
    pub fn of_episodes(job: &'static str, parts: String, pieces: usize, workers: usize) -> Self {
        let workers = if workers == 0 { default_workers() } else { workers };
        JobCost { job, parts, pieces, seconds: None, workers: workers.min(pieces).max(1), shorter: None }
    }

    /// Of a study of `agent` in `env`, which are tried for a moment.
    pub(crate) fn of_study(
        job: &'static str,
        cost: &StudyCost,
        env: &dyn Env,
        agent: &dyn Agent,
        seed: u64,
        workers: usize,
    ) -> Self {
        let seconds = warm_up(env, agent, seed).map(|(step, length)| cost.seconds(step, length, workers));
        JobCost { job, parts: cost.words(), pieces: cost.jobs(), seconds, workers, shorter: cost.shorter() }
    }

    /// Joins the costs of several rows of a job.
    pub(crate) fn of_rows(rows: Vec<(String, JobCost)>) -> Option<Self> {
        let same = rows.windows(2).all(|pair| pair[0].1.parts == pair[1].1.parts);
        let parts = match &rows[..] {
            [] => return None,
            [(_, only)] => only.parts.clone(),
            [(_, first), ..] if same => {
                format!("for each of {} agents and shifts {}", rows.len(), first.parts)
            }
            rows => rows
                .iter()
                .map(|(name, cost)| format!("for {name} {}", cost.parts))
                .collect::<Vec<_>>()
                .join("; "),
        };
        let pieces = rows.iter().map(|(_, cost)| cost.pieces).sum();
        let seconds = rows.iter().map(|(_, cost)| cost.seconds).sum::<Option<f64>>();
        let (_, first) = rows.into_iter().next()?;
        Some(JobCost { parts, pieces, seconds, ..first })
    }

    /// The line before the job: its parts, and how long they take, if that is known.
    pub fn line(&self, seconds: Option<f64>) -> String {
        let JobCost { job, parts, workers, shorter, .. } = self;
        let on = format!("on {workers} core{}", if *workers == 1 { "" } else { "s" });
        let time = seconds
            .map_or_else(|| format!(", {on}"), |seconds| format!(": about {} {on}", duration(seconds)));
        let shorter = shorter.as_ref().map_or(String::new(), |shorter| format!("; {shorter}"));
        format!("{job}: {parts}{time}{shorter}")
    }

    /// Seconds left, `elapsed` seconds after the beginning, when a `share` from 0 to 1 is done; `None` as long as nothing tells.
    pub fn left(&self, elapsed: f64, share: f64) -> Option<f64> {
        // A plan whose time is over tells nothing.
        let by_plan = self.seconds.map(|seconds| seconds - elapsed).filter(|&left| left > 0.0);
        if share <= 0.0 {
            return by_plan;
        }
        let by_pace = elapsed / share * (1.0 - share);
        let trust = (share / OWN_PACE).min(1.0);
        Some(by_plan.map_or(by_pace, |by_plan| trust * by_pace + (1.0 - trust) * by_plan))
    }
}

/// Returns whether it is worth saying that a job takes so many seconds.
pub(crate) fn worth_saying(seconds: f64) -> bool {
    seconds >= WORTH_SAYING
}

/// `8 s`, `75 s`, `12 min`, `3.5 h`: two digits, the precision of an estimate.
pub fn duration(seconds: f64) -> String {
    match seconds {
        0.0..99.5 => format!("{:.0} s", seconds.max(1.0)),
        0.0..5970.0 => format!("{:.0} min", (seconds / 60.0).max(2.0)),
        0.0..34_200.0 => format!("{:.1} h", seconds / 3600.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

/// `1 episode`, `8,600 episodes`
pub fn episodes_in_words(n: usize) -> String {
    format!("{} episode{}", count_steps(n as u64), if n == 1 { "" } else { "s" })
}

/// The limit of an episode in words, ` of at most 1,000 steps`; empty if there is none.
pub fn at_most(env: Option<usize>, max_steps: Option<u64>) -> String {
    let limit = env.map(|steps| steps as u64).into_iter().chain(max_steps).min();
    limit.map_or(String::new(), |steps| {
        format!(" of at most {} step{}", count_steps(steps), if steps == 1 { "" } else { "s" })
    })
}

/// Seconds for each of the first steps, and the length of the episode if it ended meanwhile; `None` when a step fails.
fn warm_up(env: &dyn Env, agent: &dyn Agent, seed: u64) -> Option<(f64, Option<usize>)> {
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    let mut episode = Episode::of_seed(seed, EpisodeRules::WHOLE);
    episode.reset(&mut *env, &mut *agent);
    let clock = Wall::start();
    let mut seconds = 0.0;
    while !episode.is_over() && seconds < WARM_UP {
        episode.step::<EvaluateError>(&mut *env, &mut *agent, &mut ()).ok()?;
        seconds = clock.elapsed().as_secs_f64();
    }
    let steps = episode.result().steps.max(1);
    Some((seconds / steps as f64, episode.is_over().then_some(steps as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_each_part_and_the_time() {
        let cost = JobCost {
            job: "explain",
            parts: "4 episodes to play, then 19 untrained agents × 4 episodes".into(),
            pieces: 80,
            seconds: Some(60.0),
            workers: 2,
            shorter: Some("less is less".into()),
        };
        let parts = "explain: 4 episodes to play, then 19 untrained agents × 4 episodes";
        assert_eq!(cost.line(cost.seconds), format!("{parts}: about 60 s on 2 cores; less is less"));
        let one = JobCost { workers: 1, shorter: None, ..cost };
        assert_eq!(one.line(None), format!("{parts}, on 1 core"));
    }

    #[test]
    fn the_time_left_is_planned_first_and_measured_then() {
        let planned = |seconds| JobCost { seconds, ..JobCost::of_episodes("eval", String::new(), 8, 2) };
        for (seconds, elapsed, share, expect) in [
            (None, 1.0, 0.0, None),
            (None, 1.0, 0.1, Some(9.0)),
            (Some(60.0), 10.0, 0.0, Some(50.0)),
            (Some(60.0), 70.0, 0.0, None),
            (Some(60.0), 10.0, 0.5, Some(10.0)),
            (Some(60.0), 10.0, 0.1, Some(70.0)),
        ] {
            let left = planned(seconds).left(elapsed, share);
            assert_eq!(left.map(f64::round), expect, "{seconds:?} {elapsed} {share}");
        }
    }

    #[test]
    fn durations_have_the_precision_of_an_estimate() {
        for (seconds, text) in [
            (0.2, "1 s"),
            (8.4, "8 s"),
            (75.0, "75 s"),
            (100.0, "2 min"),
            (720.0, "12 min"),
            (12_600.0, "3.5 h"),
            (40_000.0, "11 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }
}

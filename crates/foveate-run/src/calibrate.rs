//! Calibration: policies whose truth is known are planted in worlds, and the studies of the [explanations](crate::explain) are
//! asked about them. What they answer is set beside what is true.
//!
//! A case is a policy, its claim and the true answers, which follow from how it is planted. A file for each kind of case; to add
//! one, add it to the list of its file.

mod asked;
mod cart_pole;
mod clocks;
mod grids;
mod measures;
mod numbers;
mod pictures;
mod planted;
mod tells;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use foveate_core::{EvaluateError, Labels, PolicyAgent, Seed};
use foveate_explain::study::{Progress, Scheduler, StudyError, StudyRequest, Swaps, study_swaps};
use serde::Serialize;

use crate::RunError;
use crate::explain::ThreadScheduler;
use crate::job_cost::JobCost;
use crate::workers::{Stop, check_count, default_workers};
pub use asked::Answer;
use measures::MEASURES;
use planted::{Planted, PlantedCase};
use tells::{Judged, tells};
pub use tells::{MeasureTells, MeasuredClaim};

/// Decisions of an episode that are tested.
const DECISIONS: usize = 5;
/// More episodes of a case would need more memory than a laptop has to spare.
const MOST_EPISODES: usize = 1000;
/// More seeds are a typing error.
const MOST_SEEDS: usize = 10_000;

/// All cases, a list for each file.
const LISTS: [&[PlantedCase]; 4] = [pictures::CASES, numbers::CASES, grids::CASES, clocks::CASES];

/// The cases in their order.
fn all() -> impl Iterator<Item = &'static PlantedCase> {
    LISTS.into_iter().flatten()
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalibrationRequest {
    /// Episodes of each case, 1 to 1,000; with fewer than 5 nothing is decided.
    pub episodes: usize,
    /// The seeds, each of which asks every case once; at least one.
    pub seeds: Range<u64>,
    /// Threads; 0 for one per core.
    pub workers: usize,
}

/// A case as it was planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseInWords {
    /// Its name.
    pub case: &'static str,
    /// What is observed: `picture`, `numbers` or `grid`.
    pub observes: &'static str,
    /// What the policy does and claims, and why the expected answers follow from that.
    pub about: &'static str,
}

/// A question that was asked about a case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseAnswer {
    /// The case.
    pub case: &'static str,
    /// The question: `moves`, `path`, `right` or `moment`.
    pub question: &'static str,
    /// What is true.
    pub expected: Answer,
    /// What the study says.
    pub given: Answer,
    /// The seed of the world.
    pub seed: u64,
    /// The number that decided; none where there is none.
    pub number: Option<f64>,
}

impl CaseAnswer {
    /// Returns whether it says something that is not true: *yes* or *no* where something else is expected.
    pub fn is_false(&self) -> bool {
        self.given != Answer::Undecided && self.given != self.expected
    }
}

/// How often the answers are true.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationSummary {
    /// Questions that were asked.
    pub asked: usize,
    /// Of these, how many got the expected answer.
    pub right: usize,
    /// How many stayed undecided although an answer is expected.
    pub undecided: usize,
    /// How many got *yes* or *no* although something else is true.
    pub wrong: usize,
    /// Share of the expected answers, 0 to 1.
    pub share_right: f64,
    /// Share of false answers, 0 to 1.
    pub share_wrong: f64,
}

impl CalibrationSummary {
    fn of<'a>(answers: impl Iterator<Item = &'a CaseAnswer>) -> Self {
        let (mut asked, mut right, mut wrong) = (0, 0, 0);
        for answer in answers {
            asked += 1;
            right += usize::from(answer.given == answer.expected);
            wrong += usize::from(answer.is_false());
        }
        let share = |count: usize| count as f64 / (asked as f64).max(1.0);
        let (share_right, share_wrong) = (share(right), share(wrong));
        CalibrationSummary { asked, right, undecided: asked - right - wrong, wrong, share_right, share_wrong }
    }
}

/// What was expected and given.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Episodes of each case.
    pub episodes: usize,
    /// Decisions of each episode.
    pub decisions: usize,
    /// How often every case was asked, each with a seed of its own.
    pub seeds: usize,
    /// How often the answers are true.
    pub summary: CalibrationSummary,
    /// The same by question.
    pub questions: Vec<(&'static str, CalibrationSummary)>,
    /// Every answer.
    pub cases: Vec<CaseAnswer>,
    /// How often measures tell true claims from false ones: what is answered to *right*, the number behind it, and the measures of
    /// other tools.
    pub tells: Vec<MeasureTells>,
    /// The measures of other tools, of every claim.
    pub measures: Vec<MeasuredClaim>,
    /// What was planted.
    pub planted: Vec<CaseInWords>,
}

/// Runs the jobs of a study one after the other, within a job of a scheduler.
struct OneByOne<'a>(&'a Stop);

impl Scheduler for OneByOne<'_> {
    fn run(
        &self,
        jobs: usize,
        work: &(dyn Fn(usize) -> Result<(), StudyError> + Sync),
        each: &mut dyn FnMut(),
    ) -> Result<(), StudyError> {
        for job in 0..jobs {
            if self.stopped() {
                return Err(EvaluateError::Stopped.into());
            }
            work(job)?;
            each();
        }
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.0.asked()
    }
}

/// Asks every case, with every seed; calls `progress` after each.
///
/// The same request gives the same answers, with any number of workers.
///
/// # Errors
/// When a number of the request is out of range, a case fails, or the user asks to stop.
pub fn run(
    request: &CalibrationRequest,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Calibration, RunError> {
    run_cases(&all().collect::<Vec<_>>(), request, stop, progress)
}

fn run_cases(
    cases: &[&'static PlantedCase],
    request: &CalibrationRequest,
    stop: &Stop,
    progress: &mut dyn FnMut(Progress),
) -> Result<Calibration, RunError> {
    let workers = check(request)?;
    let seeds = request.seeds.clone().count();
    let jobs: Vec<(&PlantedCase, u64)> =
        request.seeds.clone().flat_map(|seed| cases.iter().map(move |&case| (case, seed))).collect();
    let count = jobs.len();
    let parts = format!(
        "{} planted cases × {seeds} seed{} × {} episodes of at most 100 steps",
        cases.len(),
        if seeds == 1 { "" } else { "s" },
        request.episodes
    );
    stop.announce(JobCost::of_episodes("calibration", parts, count, workers));
    stop.begin(count);
    let mut done = 0;
    let mut each = || {
        done += 1;
        progress(Progress { what: "asking planted cases", done: done as f64 / count as f64 });
    };
    let scheduler: &dyn Scheduler = &ThreadScheduler { workers, stop };
    let asked = scheduler.ordered(jobs, |(case, seed)| ask(case, seed, request.episodes, stop), &mut each)?;
    let (answers, measures): (Vec<_>, Vec<_>) = asked.into_iter().unzip();
    let (answers, measures) = (answers.concat(), measures.concat());
    let questions = ["moves", "path", "right", "moment"].map(|question| {
        let of_question = answers.iter().filter(|answer| answer.question == question);
        (question, CalibrationSummary::of(of_question))
    });
    Ok(Calibration {
        episodes: request.episodes,
        decisions: DECISIONS,
        seeds,
        summary: CalibrationSummary::of(answers.iter()),
        questions: questions.into(),
        tells: all_tell(cases, &answers, &measures),
        cases: answers,
        measures,
        planted: cases
            .iter()
            .map(|case| CaseInWords { case: case.name, observes: case.world.kind(), about: case.about })
            .collect(),
    })
}

/// Checks the size of a request, and returns the number of threads for it.
fn check(request: &CalibrationRequest) -> Result<usize, RunError> {
    let refused = |why: String| Err(RunError::BadRequest { why });
    let (episodes, seeds) = (request.episodes, request.seeds.end.saturating_sub(request.seeds.start));
    if !(1..=MOST_EPISODES).contains(&episodes) {
        return refused(format!(
            "episodes = {episodes}; a calibration plays 1 to {MOST_EPISODES} of each case"
        ));
    }
    if !(1..=MOST_SEEDS as u64).contains(&seeds) {
        return refused(format!("seeds = {seeds}; a calibration takes 1 to {MOST_SEEDS}"));
    }
    check_count(request.workers)?;
    Ok(if request.workers == 0 { default_workers() } else { request.workers })
}

/// How often the answers and the measures tell true claims from false ones.
fn all_tell(
    cases: &[&'static PlantedCase],
    answers: &[CaseAnswer],
    measures: &[MeasuredClaim],
) -> Vec<MeasureTells> {
    let mut kinds: Vec<&'static str> = cases.iter().map(|case| case.world.kind()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // `value` is that of a claim, larger if it speaks for it.
    let judged = |name: &str, value: Option<f64>| -> Option<Judged> {
        let case = cases.iter().find(|case| case.name == name)?;
        Some(Judged { kind: case.world.kind(), is_true: case.expected.truth()?, value: value? })
    };
    let right = || answers.iter().filter(|answer| answer.question == "right");
    let ours = [
        ("the answer here", right().filter_map(|of| judged(of.case, Some(asked::rank(of.given)))).collect()),
        ("its number", right().filter_map(|of| judged(of.case, of.number)).collect::<Vec<_>>()),
    ];
    let ours = ours.into_iter().map(|(name, claims): (_, Vec<Judged>)| tells(name, true, &claims, &kinds));
    let others = MEASURES.iter().map(|measure| {
        let sign = if measure.more_is_better { 1.0 } else { -1.0 };
        let of_measure = measures.iter().filter(|of| of.measure == measure.name);
        let claims: Vec<Judged> =
            of_measure.filter_map(|of| judged(of.case, of.value.map(|value| sign * value))).collect();
        tells(measure.name, measure.more_is_better, &claims, &kinds)
    });
    ours.chain(others).collect()
}

/// The study of a case with its answers, and what other tools measure.
fn ask(
    case: &PlantedCase,
    seed: u64,
    episodes: usize,
    stop: &Stop,
) -> Result<(Vec<CaseAnswer>, Vec<MeasuredClaim>), StudyError> {
    let refused = |error: RunError| StudyError::Refused { why: format!("case {}: {error}", case.name) };
    let env = case.world.make().map_err(refused)?;
    let agent = PolicyAgent::new(Planted::new(case, env.spec()));
    // Cases with the same policy do not play the same episodes.
    let of_case = case.name.bytes().fold(Seed::root(seed), |seed, byte| seed.child("case", u64::from(byte)));
    let handed = asked::HandedClaim(case);
    let request = StudyRequest {
        env: &*env,
        agent: &agent,
        labels: Labels { env: env.spec().id.clone(), weights: case.name.into(), ..Labels::default() },
        seed: of_case.env_seed(),
        episodes,
        decisions: DECISIONS,
        untrained: 0,
        max_steps: Some(case.world.steps()),
        dimensions: vec![],
        sensors: vec![],
        twice: None,
        questions: None,
        remembers: true,
        claims: if case.handed { vec![&handed] } else { vec![] },
    };
    let study = study_swaps(request, &OneByOne(stop), &mut |_| ())?;
    let Some(report) = study.report().get::<Swaps>().and_then(|of| of.swaps.as_ref()) else {
        return Err(StudyError::Refused { why: format!("case {}: nothing can be swapped", case.name) });
    };
    let answers = case.expected.each().map(|(question, expected)| {
        let (given, number) = asked::given(report, question);
        CaseAnswer { case: case.name, question, expected, given, seed, number }
    });
    let values = measures::measure(case, &*env, of_case.env_seed(), episodes)?;
    let measured = MEASURES.iter().zip(values).map(|(measure, value)| MeasuredClaim {
        case: case.name,
        seed,
        measure: measure.name,
        value: Some(value).filter(|value| value.is_finite()),
    });
    Ok((answers.into(), measured.collect()))
}

impl fmt::Display for Calibration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calibration { episodes, seeds, summary, cases, planted, .. } = self;
        let width = planted.iter().map(|case| case.case.chars().count()).max().unwrap_or(0);
        writeln!(f, "{:width$}  {:8}  {:9}  given: yes, no, undecided", "case", "question", "expected")?;
        for case in planted {
            for (question, _) in &self.questions {
                let of_case =
                    || cases.iter().filter(|answer| answer.case == case.case && answer.question == *question);
                let Some(first) = of_case().next() else { continue };
                let counts = [Answer::Yes, Answer::No, Answer::Undecided]
                    .map(|given| of_case().filter(|answer| answer.given == given).count());
                let said = match of_case().filter(|answer| answer.is_false()).count() {
                    0 => String::new(),
                    wrong => format!("  {wrong} false"),
                };
                writeln!(
                    f,
                    "{:width$}  {question:8}  {:9}  {:3} {:3} {:3}{said}",
                    case.case, first.expected, counts[0], counts[1], counts[2]
                )?;
            }
        }
        for (name, of) in
            [("all", summary)].into_iter().chain(self.questions.iter().map(|(name, of)| (*name, of)))
        {
            writeln!(
                f,
                "{name}: {} of {} answers as expected ({:.0} %), {} undecided, {} false ({:.1} %)",
                of.right,
                of.asked,
                100.0 * of.share_right,
                of.undecided,
                of.wrong,
                100.0 * of.share_wrong
            )?;
        }
        writeln!(f, "\nmeasure           true claims above false ones of the same kind    best threshold")?;
        for of in &self.tells {
            let share =
                |share: Option<f64>| share.map_or("—".into(), |share| format!("{:.0} %", 100.0 * share));
            writeln!(
                f,
                "{:16}  {:>6} of {:5} pairs  {:>25}",
                of.measure,
                share(of.auc),
                of.pairs,
                share(of.best_threshold)
            )?;
        }
        write!(f, "{episodes} episodes for each case, {seeds} seed{}", if *seeds == 1 { "" } else { "s" })
    }
}

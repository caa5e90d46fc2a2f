//! The cost of a study: its parts, counted before it begins, and how much of them is done.

use foveate_core::Env;
use foveate_core::hint::Setting;

use super::conditions::Condition;
use super::fields::{Fields, SIDE};
use super::heads::{self, HeadsRequest};
use super::play::first_decision;
use super::{Progress, StudyRequest, swaps};
use crate::figure::count_steps;

/// Steps that testing a decision costs: parts of it swapped, everything covered and kept in turn, the world edited.
/// Measured with the champions of CarRacing and `DoorKey`.
const SWAPS: f64 = 12.0;
const SWAPS_IN_GRIDS: f64 = 300.0;
const COVERS: f64 = 60.0;
const EDITS: f64 = 40.0;
/// Steps that a film costs beyond those of its episode, in lengths of the episode.
const FILM: f64 = 20.0;
/// Seconds for each frame of a film, and for a report's figures and page.
const FRAME: f64 = 0.006;
const PAGE: f64 = 2.0;
/// Share of a study that is left when its jobs are done: figures and page are made and written.
const WRITING: f64 = 0.1;

/// A part of a study: jobs that cost about the same.
#[derive(Debug, Clone, PartialEq)]
struct Part {
    /// What it is, with its count; empty if it is a part of the one before.
    words: String,
    /// Its jobs.
    jobs: usize,
    /// How it is called while it runs.
    name: &'static str,
    /// Lengths of an episode that a job plays, and the limit of that length.
    plays: f64,
    limit: usize,
    /// True if the agent is another one, whose episodes are of another length.
    other: bool,
    /// Steps of a job beside those.
    steps: f64,
}

/// All parts of a study.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StudyCost {
    parts: Vec<Part>,
    /// The longest episode, if there is a limit.
    longest: Option<usize>,
    /// True if [`Setting::Untrained`] is a part that can be left out.
    untrained: bool,
}

/// The part that makes a film.
pub(super) const FILMING: &str = "playing and filming";

/// Length assumed of episodes without a limit.
const LONG: usize = 1000;

impl StudyCost {
    fn new(env: &dyn Env, max_steps: Option<usize>) -> Self {
        let longest = env.spec().max_steps.into_iter().chain(max_steps).min();
        StudyCost { parts: vec![], longest, untrained: false }
    }

    fn limit(&self) -> usize {
        self.longest.unwrap_or(LONG)
    }

    /// Adds a part of `jobs` jobs, each of which plays `plays` lengths of an episode and takes `steps` steps more; returns its number.
    fn add(&mut self, name: &'static str, words: String, jobs: usize, plays: f64, steps: f64) -> usize {
        self.parts.push(Part { words, jobs, name, plays, limit: self.limit(), other: false, steps });
        self.parts.len() - 1
    }

    /// The number of the first part of this name; the number of parts if there is none.
    pub(super) fn part(&self, name: &str) -> usize {
        self.parts.iter().take_while(|part| part.name != name).count()
    }

    /// Of a report about an agent that attends to a picture, or to nothing.
    pub fn of_pictures(request: &StudyRequest<'_>) -> Self {
        let (n, decisions) = (request.episodes, request.decisions);
        let mut cost = StudyCost::new(request.env, request.max_steps);
        let tested = decisions.min(cost.limit());
        if heads::attends_with_heads(request.env, request.agent, request.seed).is_some() {
            cost.add_fields(n);
        }
        let words = format!("{} to play and film", cost.episodes(n));
        cost.add(FILMING, words, n, 1.0 + FILM / n as f64, 0.0);
        let words = format!(
            "the same again, and of {} with random weights, for decisions to test",
            count(n, "agent")
        );
        cost.add("taking decisions", words, 2 * n, 1.0, 0.0);
        cost.add_swaps(request, None);
        let words = format!("{} to test with places covered", count(2 * n * tested, "decision"));
        cost.add("putting decisions to the test", words, 2 * n, 0.0, COVERS * tested as f64);
        let drives = Condition::all()
            .iter()
            .skip(1)
            .filter(|of| of.fill().is_none() || attends_to_places(request))
            .count();
        let words = format!("{} with places covered in every step", count(drives * n, "episode"));
        cost.add("driving whole episodes", words, drives * n, 2.3, 0.0);
        let kinds = request.env.kinds().len();
        if kinds > 0 {
            let words = format!("{} without {kinds} kinds of things", count(kinds * n, "episode"));
            cost.add("taking things out of the world", words, kinds * n, 1.0, 0.0);
        }
        cost
    }

    /// Of a report about an agent that attends to named sensors.
    pub fn of_sensors(request: &StudyRequest<'_>) -> Self {
        let (n, decisions) = (request.episodes, request.decisions);
        let mut cost = StudyCost::of_swaps(request);
        let tested = decisions.min(cost.limit());
        let others = count(n, "agent");
        let words = format!("{} of it and of {others} with random weights to film", count(2 * n, "episode"));
        cost.add(FILMING, words, 2 * n, 1.0 + FILM / (2 * n) as f64, 0.0);
        let words = format!("{} to test with sensors changed", count(2 * n * tested, "decision"));
        cost.add("putting decisions to the test", words, 2 * n, 1.0, COVERS * tested as f64);
        cost
    }

    /// Of a report about an agent that attends to the cells of a grid world.
    pub fn of_cells(request: &StudyRequest<'_>) -> Self {
        let (n, decisions) = (request.episodes, request.decisions);
        let mut cost = StudyCost::of_swaps(request);
        let tested = decisions.min(cost.limit());
        let words = format!("{} to film", count(n, "episode"));
        cost.add(FILMING, words, n, 1.0 + FILM / n as f64, 0.0);
        let words = format!("{} to test with the world edited", count(n * tested, "decision"));
        cost.add("editing the world's state", words, n, 1.0, EDITS * tested as f64);
        let words = format!("{} again after each edit of each object", count(n, "episode"));
        cost.add("playing edited worlds", words, n, EDITS, 0.0);
        cost
    }

    /// Of a comparison of what agents act on, for one agent; a part of other reports.
    pub fn of_swaps(request: &StudyRequest<'_>) -> Self {
        let mut cost = StudyCost::new(request.env, request.max_steps);
        let words = format!("{} to play", cost.episodes(request.episodes));
        cost.add_swaps(request, Some(words));
        cost
    }

    /// Of a report about a function of the calling program.
    pub fn of_functions(request: &StudyRequest<'_>) -> Self {
        let mut cost = StudyCost::of_swaps(request);
        cost.add(FILMING, "1 to film".into(), 1, 1.0 + FILM, 0.0);
        cost
    }

    /// Of an analysis of heads.
    pub fn of_heads(request: &HeadsRequest<'_>) -> Self {
        let (n, times) = (request.episodes, request.analysis.plays());
        let mut cost = StudyCost::new(request.env, request.max_steps);
        let mut words = cost.episodes(n);
        if times > 1 {
            words += &format!(", each {times} times");
        }
        if heads::shows_places(request.analysis.name()) {
            cost.add_fields(n);
        }
        cost.add(heads::PLAYING, words, n * times, 1.0, 0.0);
        cost
    }

    /// Adds what it takes to find out where the contents of cells come from.
    fn add_fields(&mut self, n: usize) {
        let [episodes, decisions] = Fields::size(n);
        let places = SIDE * SIDE;
        let words = format!(
            "{} of {} with each of {places} places changed",
            count(episodes * decisions, "decision"),
            count(episodes, "episode")
        );
        self.add(heads::MEASURING, words, episodes, 1.0, (decisions * (places + 2)) as f64);
    }

    /// Adds what [`swaps`] does; `played` says that it plays the agent's episodes itself.
    fn add_swaps(&mut self, request: &StudyRequest<'_>, played: Option<String>) {
        let n = request.episodes;
        let swappable = swaps::swappable(request);
        let each = if request.env.grid_view().is_some() { SWAPS_IN_GRIDS } else { SWAPS };
        if let Some(words) = played {
            self.add("playing episodes", words, n, 2.0, 0.0);
        }
        if !swappable {
            return;
        }
        let tested = request.decisions.min(self.limit());
        let mut words = format!("{} to test with parts of others", count(n * tested, "decision"));
        let mut own = each;
        if let Some(questions) = request.questions {
            words += &format!(" by at most {}", count(questions, "question"));
            own = questions as f64 / (n * tested).max(1) as f64;
        }
        self.add("swapping parts", words, n * tested, 0.0, own);
        let [episodes, decisions, steps] = swaps::untrained_size(request);
        let (untrained, random) = (request.untrained, swaps::partly_random(request));
        if untrained + random == 0 {
            return;
        }
        let agents = match random {
            0 => count(untrained, "untrained agent"),
            _ => format!("{} and {random} partly so", count(untrained, "untrained agent")),
        };
        let (limit, decisions) = (steps.min(self.limit()), decisions.min(steps));
        let words = format!(
            "{agents} × {} of at most {} and {decisions} decisions each",
            count(episodes, "episode"),
            count(limit, "step")
        );
        let jobs = (untrained + random) * episodes;
        for (words, jobs, plays, steps) in
            [(words, jobs, 1.5, 0.0), (String::new(), jobs * decisions, 0.0, each)]
        {
            let part = self.add("untrained agents", words, jobs, plays, steps);
            (self.parts[part].limit, self.parts[part].other) = (limit, true);
        }
        self.untrained = true;
    }

    /// `4 episodes of at most 1,000 steps`
    fn episodes(&self, n: usize) -> String {
        let limit =
            self.longest.map_or(String::new(), |steps| format!(" of at most {}", count(steps, "step")));
        format!("{}{limit}", count(n, "episode"))
    }

    /// All jobs.
    pub fn jobs(&self) -> usize {
        self.parts.iter().map(|part| part.jobs).sum()
    }

    /// The parts with their counts, in order.
    pub fn words(&self) -> String {
        let words: Vec<&str> =
            self.parts.iter().map(|part| &*part.words).filter(|words| !words.is_empty()).collect();
        words.join(", then ")
    }

    /// What leaves out a part that a study can do without.
    pub fn shorter(&self) -> Option<String> {
        self.untrained.then(|| format!("{} leaves out untrained agents", Setting::Untrained.to("0")))
    }

    /// Steps of the agent that its jobs take about as long as, if its episodes are of `length` steps.
    fn steps(&self, length: usize) -> f64 {
        self.parts.iter().map(|part| part.jobs as f64 * part.steps_of_job(length)).sum()
    }

    /// Seconds that the study takes, if a step of the agent takes `step` seconds and its episodes are of `length` steps; `None`: as long
    /// as they may be.
    pub fn seconds(&self, step: f64, length: Option<usize>, workers: usize) -> f64 {
        let length = length.unwrap_or(self.limit());
        let film = self.parts.iter().any(|part| part.name == FILMING);
        let drawn = if film { PAGE + FRAME * length as f64 } else { 0.0 };
        step * self.steps(length) / workers.max(1) as f64 + drawn
    }
}

impl Part {
    fn steps_of_job(&self, length: usize) -> f64 {
        let length = if self.other { self.limit } else { length.min(self.limit) };
        self.plays * length as f64 + self.steps
    }
}

/// `1 episode`, `1,000 steps`
fn count(n: usize, what: &str) -> String {
    format!("{} {what}{}", count_steps(n as u64), if n == 1 { "" } else { "s" })
}

/// Returns whether the agent attends to places of the picture in its first decision.
fn attends_to_places(request: &StudyRequest<'_>) -> bool {
    first_decision(request.env, request.agent, request.seed, |_, decision| {
        decision.attention.is_some_and(|attention| attention.tokens().grid().is_some())
    })
    .unwrap_or(false)
}

/// How much of a study is done.
pub(super) struct Meter<'a> {
    cost: StudyCost,
    /// Jobs done of every part.
    done: Vec<usize>,
    length: usize,
    /// The share that was told last; it never falls.
    share: f64,
    tell: &'a mut dyn FnMut(Progress),
}

impl<'a> Meter<'a> {
    /// The number of the first part of this name; the number of parts if there is none.
    pub(super) fn part(&self, name: &str) -> usize {
        self.cost.part(name)
    }

    pub(super) fn new(cost: StudyCost, tell: &'a mut dyn FnMut(Progress)) -> Self {
        let (done, length) = (vec![0; cost.parts.len()], cost.limit());
        let first = cost.parts.first().map(|part| part.name);
        if let Some(what) = first {
            tell(Progress { what, done: 0.0 });
        }
        Meter { cost, done, length, share: 0.0, tell }
    }

    /// The agent's episodes are so long.
    pub(super) fn length(&mut self, steps: usize) {
        self.length = steps.max(1);
    }

    /// A job of `part` is done.
    pub(super) fn job(&mut self, part: usize) {
        let Some(done) = self.done.get_mut(part) else { return };
        *done += 1;
        self.tell(part);
    }

    /// At least `jobs` of `part` are done: some were left out, for an episode ended early.
    pub(super) fn reach(&mut self, part: usize, jobs: usize) {
        let (Some(done), Some(Part { jobs: all, .. })) = (self.done.get_mut(part), self.cost.parts.get(part))
        else {
            return;
        };
        *done = jobs.min(*all).max(*done);
        self.tell(part);
    }

    /// All jobs of `part` are done.
    pub(super) fn finish(&mut self, part: usize) {
        self.reach(part, usize::MAX);
    }

    fn tell(&mut self, part: usize) {
        let steps = |(part, jobs): (&Part, &usize)| *jobs as f64 * part.steps_of_job(self.length);
        let done: f64 = self.cost.parts.iter().zip(&self.done).map(steps).sum();
        let done = (1.0 - WRITING) * done / self.cost.steps(self.length).max(1e-9);
        // What is left is the writing; sums of parts may exceed it by their rounding.
        self.share = done.min(1.0 - WRITING).max(self.share);
        (self.tell)(Progress { what: self.cost.parts[part].name, done: self.share });
    }
}

//! A Gymnasium environment as a world.

use std::cell::RefCell;
use std::sync::Arc;

use foveate_core::hint::{Setting, Task};
use foveate_core::{
    Action, ActionSpace, DEPTH, Env, EnvError, EnvSpec, Fact, GazePoint, IMAGE, Image, ImageBuf, Observation,
    Parts, PixelShape, Pixels, SENSORS, Seed, Step,
};
use serde_json::Value;

use crate::gym::Gym;
use crate::history::{History, Repeated};
use crate::process::{Process, StepReply, Trouble, step_request};

/// Deaths of workers in a row in the same step after which the environment counts as the cause.
const MAX_DEATHS: usize = 6;
/// Deaths of new workers in a row before they reach that step. Earlier workers passed those steps, so the
/// environment is rarely the cause.
const MAX_EARLY_DEATHS: usize = 25;
/// The same for timeouts, exceptions and too much memory, which the environment causes more often.
const MAX_FAULTS: usize = 2;

/// Steps for which an episode reserves memory when the environment has no time limit.
const USUAL_STEPS: usize = 1000;
/// Most points of a gaze.
const MOST_GAZE_POINTS: usize = 4096;

/// A Gymnasium environment as a world.
///
/// A world owns a worker process from its first step until it is dropped; the worker then serves the next
/// world. A copy holds the history of the episode: when it is first used, it gets a worker and replays the
/// episode up to the same step.
///
/// Every reset is seeded. The first episode of a stream has the seed of the stream; later ones have seeds
/// derived from the stream's seed and their number, so that each can be replayed by itself.
pub struct GymWorld {
    gym: Arc<Gym>,
    link: RefCell<Option<Process>>,
    phase: Phase,
    history: History,
    /// The seed of the stream, and its number of episodes so far.
    stream: (u64, u64),
    /// The current observation.
    shown: Shown,
    numbers: Vec<f64>,
    request: RefCell<Vec<u8>>,
}

/// State of the current episode.
#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// No episode has begun.
    Before,
    UnderWay,
    Over,
    /// The episode cannot continue, for this reason.
    Failed(String),
}

/// The current observation: pictures, their depth, and other numbers.
#[derive(Debug, Clone, PartialEq)]
struct Shown {
    shape: Option<PixelShape>,
    /// `[frames, height, width, channels]`
    pixels: Vec<u8>,
    /// `[height, width]`
    depth: Vec<u8>,
    numbers: Vec<f32>,
    /// The numbers as bytes, and their offset.
    raw: Vec<u8>,
    raw_at: usize,
}

impl Shown {
    /// Reads the observation that the worker wrote.
    fn read(&mut self, process: &Process) -> Result<(), Trouble> {
        let Shown { pixels, depth, numbers, raw, raw_at, .. } = self;
        if !pixels.is_empty() {
            process.look(0, pixels)?;
        }
        if !depth.is_empty() {
            process.look(pixels.len(), depth)?;
        }
        if !raw.is_empty() {
            process.look(*raw_at, raw)?;
            for (number, bytes) in numbers.iter_mut().zip(raw.as_chunks().0) {
                *number = f32::from_le_bytes(*bytes);
            }
        }
        Ok(())
    }

    /// Returns whether both are bit-identical.
    fn is(&self, other: &Shown) -> bool {
        (&self.pixels, &self.depth, &self.raw) == (&other.pixels, &other.depth, &other.raw)
    }

    fn image(&self) -> Option<Observation<'_>> {
        Pixels::new(self.shape?, &self.pixels).map(Observation::Image)
    }
}

/// Gives access to the picture and the other parts.
impl Parts for Shown {
    fn count(&self) -> usize {
        1 + usize::from(!self.depth.is_empty()) + usize::from(!self.numbers.is_empty())
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        let depth = || {
            let shape = PixelShape { channels: 1, ..self.shape? };
            Pixels::new(shape, &self.depth).map(Observation::Image)
        };
        match index {
            0 => Some((IMAGE, self.image()?)),
            1 if !self.depth.is_empty() => Some((DEPTH, depth()?)),
            _ if index + 1 == self.count() => Some((SENSORS, Observation::Vector(&self.numbers))),
            _ => None,
        }
    }
}

impl GymWorld {
    /// A world that runs this environment.
    pub fn new(gym: Arc<Gym>) -> Self {
        let hello = gym.hello();
        let shown = Shown {
            shape: hello.shape(),
            pixels: vec![0; hello.picture_bytes()],
            depth: vec![0; hello.depth_bytes()],
            numbers: vec![0.0; hello.numbers],
            raw: vec![0; 4 * hello.numbers],
            raw_at: hello.numbers_at,
        };
        GymWorld {
            link: RefCell::new(None),
            phase: Phase::Before,
            history: History::default(),
            stream: (0, 0),
            shown,
            numbers: Vec::new(),
            request: RefCell::default(),
            gym,
        }
    }

    /// The environment.
    pub const fn gym(&self) -> &Arc<Gym> {
        &self.gym
    }

    /// Sends a request to the worker. A worker that fails is replaced and replays the episode, up to the
    /// limits above.
    fn ask_worker<T>(&self, ask: impl Fn(&mut Process) -> Result<T, Trouble>) -> Result<T, EnvError> {
        let mut link = self.link.borrow_mut();
        let (mut deaths, mut early_deaths, mut faults) = (0, 0, 0);
        loop {
            let (trouble, early) = match self.ready(&mut link) {
                Ok(process) => match ask(process) {
                    Ok(answer) => return Ok(answer),
                    Err(trouble) => (trouble, false),
                },
                Err(trouble) => (trouble, true),
            };
            // Whatever the cause, this worker cannot be used any more.
            *link = None;
            let final_ = match trouble {
                Trouble::Gone(_) if early => {
                    early_deaths += 1;
                    early_deaths >= MAX_EARLY_DEATHS
                }
                Trouble::Gone(_) => {
                    deaths += 1;
                    deaths >= MAX_DEATHS
                }
                Trouble::Hung(_) | Trouble::Raised(_) => {
                    faults += 1;
                    faults >= MAX_FAULTS
                }
                Trouble::Astray(_) | Trouble::NoProcess(_) => true,
            };
            let (seed, step) = (self.history.seed, self.history.steps());
            let place = format!("after step {step} of the episode with seed {seed}");
            if final_ {
                self.gym.give_up(trouble.story());
                let why = match trouble {
                    Trouble::Gone(_) | Trouble::Hung(_) | Trouble::Raised(_)
                        if self.gym.settings().hosted.is_some() =>
                    {
                        format!("{trouble}, {place}, again with a new copy")
                    }
                    Trouble::Gone(_) | Trouble::Hung(_) | Trouble::Raised(_) => {
                        format!(
                            "{trouble}, {place}, again with a new worker; {} looks for the cause",
                            Task::CheckWorld
                        )
                    }
                    Trouble::Astray(_) | Trouble::NoProcess(_) => format!("{trouble}, {place}"),
                };
                return Err(self.outside(why));
            }
            self.gym.tell(
                &format!("{trouble}, {place}; a new worker plays it again and goes on"),
                trouble.story(),
            );
        }
    }

    /// Checks that an episode is under way or over; returns the reason if it failed.
    fn is_there(&self) -> Result<(), EnvError> {
        match &self.phase {
            Phase::UnderWay | Phase::Over => Ok(()),
            Phase::Failed(why) => Err(self.outside(why.clone())),
            Phase::Before => Err(EnvError::NeedsReset { env: self.gym.spec().id.clone() }),
        }
    }

    fn outside(&self, why: String) -> EnvError {
        EnvError::Outside { env: self.gym.spec().id.clone(), why }
    }

    /// The worker at the current step of the episode. If there is none, a new one replays the episode.
    fn ready<'l>(&self, link: &'l mut Option<Process>) -> Result<&'l mut Process, Trouble> {
        if link.is_none() {
            let mut process = self.gym.take()?;
            if matches!(self.phase, Phase::UnderWay | Phase::Over) {
                self.play_again(&mut process)?;
            }
            *link = Some(process);
        }
        Ok(link.as_mut().expect("it was just put there"))
    }

    /// What to do about an environment that does not do the same again.
    fn cause_of_chance(&self) -> String {
        if self.gym.settings().hosted.is_some() {
            return "draw all chance from generators that reset(seed=…) seeds".into();
        }
        format!("{} looks for the cause", Task::CheckWorld)
    }

    /// Replays the episode up to the current step and compares the results.
    fn play_again(&self, process: &mut Process) -> Result<(), Trouble> {
        let timeout = self.gym.settings().timeout;
        process.reset(self.history.seed, timeout)?;
        let mut request = Vec::new();
        let mut step = 0;
        for (action, Repeated { times, outcome: expect }) in self.history.iter() {
            step_request(&mut request, action, times);
            let outcome = process.step(&request, times, timeout)?;
            step += usize::from(expect.steps);
            if !same(outcome, expect) {
                return Err(Trouble::Astray(format!(
                    "played again with the same seed and actions it gave {outcome:?} in step {step}, {expect:?} the \
                     first time; {}",
                    self.cause_of_chance()
                )));
            }
        }
        let mut shown = self.shown.clone();
        shown.read(process)?;
        if shown.is(&self.shown) {
            return Ok(());
        }
        Err(Trouble::Astray(format!(
            "played again with the same seed and actions it shows something else than the first time; {}",
            self.cause_of_chance()
        )))
    }

    /// Turns an action into the numbers that the worker takes.
    fn take(&mut self, action: Action<'_>) -> Result<(), EnvError> {
        let EnvSpec { id, action: space, .. } = self.gym.spec();
        self.numbers.clear();
        space.check(id, action)?;
        match action {
            Action::Continuous(given) => self.numbers.extend_from_slice(given),
            Action::Discrete(choice) => self.numbers.push(choice as f64),
        }
        Ok(())
    }

    fn begin(&mut self, seed: u64) -> Result<(), EnvError> {
        self.phase = Phase::Before;
        let steps = self.gym.spec().max_steps.unwrap_or(USUAL_STEPS);
        self.history.begin(seed, self.gym.hello().low.len(), steps);
        let timeout = self.gym.settings().timeout;
        self.ask_worker(|process| process.reset(seed, timeout))?;
        // A worker that uses too much memory does not begin another episode. Its replacement may use as much
        // memory as the episode needs.
        if let Some(heavy) = self.link.get_mut().take_if(|process| process.heavy && !process.is_new()) {
            drop(heavy);
            self.gym.tell(
                &format!("a worker used more than {} MB and was replaced", self.gym.settings().memory),
                "",
            );
            let fresh = self.gym.start().map_err(|trouble| self.outside(trouble.to_string()))?;
            *self.link.get_mut() = Some(fresh);
            self.ask_worker(|process| process.reset(seed, timeout))?;
        }
        self.see(0)
    }

    /// Advances up to `times` steps with an action.
    fn advance(&mut self, action: Action<'_>, times: u16) -> Result<Step, EnvError> {
        self.is_there()?;
        if self.phase == Phase::Over {
            return Err(EnvError::NeedsReset { env: self.gym.spec().id.clone() });
        }
        self.take(action)?;
        step_request(self.request.get_mut(), &self.numbers, times);
        let timeout = self.gym.settings().timeout;
        let outcome = {
            let request = self.request.borrow();
            self.ask_worker(|process| process.step(&request, times, timeout))
        };
        let before = self.history.steps();
        let outcome = outcome.and_then(|outcome| {
            if outcome.reward.is_finite() {
                return Ok(outcome);
            }
            let (reward, seed, step) = (outcome.reward, self.history.seed, before + usize::from(outcome.steps));
            Err(self.outside(format!(
                "the reward is {reward} in step {step} of the episode with seed {seed}; returns are sums of finite \
                 numbers: correct the environment"
            )))
        });
        let outcome = match outcome
            .and_then(|outcome| self.see(before + usize::from(outcome.steps)).map(|()| outcome))
        {
            Ok(outcome) => outcome,
            Err(error) => {
                if let EnvError::Outside { why, .. } = &error {
                    self.phase = Phase::Failed(why.clone());
                }
                return Err(error);
            }
        };
        self.history.add(&self.numbers, times, outcome);
        let StepReply { reward, terminated, truncated, .. } = outcome;
        if terminated || truncated {
            self.phase = Phase::Over;
        }
        Ok(Step { reward, terminated, truncated })
    }

    /// Reads the observation that the worker has just written, after `steps` steps.
    fn see(&mut self, steps: usize) -> Result<(), EnvError> {
        let link = self.link.get_mut();
        let seen = link.as_ref().map_or(Ok(()), |process| self.shown.read(process));
        seen.map_err(|trouble| self.outside(trouble.to_string()))?;
        let Some(index) = self.shown.numbers.iter().position(|x| !x.is_finite()) else { return Ok(()) };
        let (what, value) = (self.gym.hello().part(index), self.shown.numbers[index]);
        // Agents must not receive it.
        self.shown.numbers.fill(0.0);
        self.shown.raw.fill(0);
        Err(self.outside(format!(
            "{what} is {value} after step {steps} of the episode with seed {}; agents compute with finite numbers alone: \
             correct the environment, or let a wrapper replace it ({})",
            self.history.seed,
            Setting::Option.to("gym_wrapper=…")
        )))
    }
}

/// Returns whether two outcomes are bit-identical.
fn same(a: StepReply, b: StepReply) -> bool {
    let parts = |reply: StepReply| (reply.steps, reply.reward.to_bits(), reply.terminated, reply.truncated);
    parts(a) == parts(b)
}

/// The seed for Gymnasium, which takes 31 bits. A larger seed is hashed to 31 bits.
fn env_seed(seed: u64) -> u64 {
    if seed >> 31 == 0 { seed } else { Seed::root(seed).child("gym", 0).env_seed() }
}

impl Env for GymWorld {
    fn spec(&self) -> &EnvSpec {
        self.gym.spec()
    }

    fn reset(&mut self, seed: Option<u64>) {
        let seed = if let Some(seed) = seed {
            self.stream = (seed, 0);
            env_seed(seed)
        } else {
            self.stream.1 += 1;
            Seed::root(self.stream.0).child("gym episode", self.stream.1).env_seed()
        };
        self.phase = match self.begin(seed) {
            Ok(()) => Phase::UnderWay,
            Err(EnvError::Outside { why, .. }) => Phase::Failed(why),
            Err(other) => Phase::Failed(other.to_string()),
        };
    }

    fn reset_error(&self) -> Option<EnvError> {
        match &self.phase {
            Phase::Failed(why) => Some(self.outside(why.clone())),
            _ => None,
        }
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.advance(action, 1)
    }

    fn repeat(&mut self, action: Action<'_>, times: u64) -> Result<Step, EnvError> {
        let mut left = times.max(1);
        let mut all = Step::default();
        while left > 0 && !all.is_over() {
            let some = u16::try_from(left).unwrap_or(u16::MAX);
            let step = self.advance(action, some)?;
            all = Step { reward: all.reward + step.reward, ..step };
            left -= u64::from(some);
        }
        Ok(all)
    }

    fn observation(&self) -> Observation<'_> {
        let shown = &self.shown;
        match shown.image() {
            None => Observation::Vector(&shown.numbers),
            Some(image) if shown.count() == 1 => image,
            Some(_) => Observation::Dict(shown),
        }
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let no_view = |why: &str| EnvError::NoView { env: self.gym.spec().id.clone(), why: why.into() };
        if !self.gym.hello().renders {
            return Err(no_view("it has no render mode rgb_array"));
        }
        self.is_there()?;
        let bytes = self.ask_worker(|process| process.fetch(b'P', self.gym.settings().timeout))?;
        if let Some(missing) = bytes.strip_prefix(&[0; 8]).filter(|missing| !missing.is_empty()) {
            let why = String::from_utf8_lossy(missing);
            self.gym.notice_once(&format!("films are without its picture: {why}"));
            return Err(no_view(&why));
        }
        let frame = bytes.split_first_chunk::<8>().and_then(|(head, rgb)| {
            let [a, b, c, d, e, f, g, h] = *head;
            let size = [u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h])];
            Image::new(size[0] as usize, size[1] as usize, rgb)
        });
        let frame = frame.filter(|frame| !frame.rgb().is_empty());
        let frame = frame.ok_or_else(|| no_view("what render() gave is no picture"))?;
        view.fit(frame);
        Ok(())
    }

    /// The numbers and strings in the `info` of the last step.
    fn state(&self) -> Fact {
        if !matches!(self.phase, Phase::UnderWay | Phase::Over) {
            return Fact::Named(vec![]);
        }
        let info = self.ask_worker(|process| process.fetch(b'I', self.gym.settings().timeout));
        let info: Value = info.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        match fact(info) {
            named @ Fact::Named(_) => named,
            _ => Fact::Named(vec![]),
        }
    }

    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let env = || self.gym.spec().id.clone();
        if !self.gym.hello().expert {
            return Err(EnvError::NoExpert { env: env() });
        }
        let EnvSpec { id, action: space, .. } = self.gym.spec();
        space.check_len(id, action.len())?;
        let wanted = space.len();
        self.is_there()?;
        if self.phase == Phase::Over {
            return Err(EnvError::NeedsReset { env: env() });
        }
        let bytes = self.ask_worker(|process| process.fetch(b'E', self.gym.settings().timeout))?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        if numbers.len() != wanted || !rest.is_empty() {
            return Err(self.outside(format!("its expert gave {} bytes for {wanted} numbers", bytes.len())));
        }
        for (action, number) in action.iter_mut().zip(numbers) {
            *action = f64::from_le_bytes(*number);
        }
        Ok(())
    }

    /// What `foveate_costs()` of the environment gives: a number for each choice, or three for each number of the action.
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        let env = || self.gym.spec().id.clone();
        if !self.gym.hello().costs {
            return Err(EnvError::NoCosts { env: env() });
        }
        let wanted = match &self.gym.spec().action {
            ActionSpace::Discrete { n } => *n,
            space @ ActionSpace::Box { .. } => space.len() * 3,
        };
        self.is_there()?;
        if self.phase == Phase::Over {
            return Err(EnvError::NeedsReset { env: env() });
        }
        let bytes = self.ask_worker(|process| process.fetch(b'C', self.gym.settings().timeout))?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        if numbers.len() != wanted || !rest.is_empty() {
            return Err(
                self.outside(format!("its costs have {} bytes; {wanted} numbers are due", bytes.len()))
            );
        }
        costs.clear();
        costs.extend(numbers.iter().map(|&number| f64::from_le_bytes(number)));
        if let Some(cost) = costs.iter().find(|cost| !(cost.is_finite() && **cost >= 0.0)) {
            return Err(self.outside(format!("an action costs {cost}; costs are 0 or more, and finite")));
        }
        Ok(())
    }

    /// What `foveate_gaze()` of the environment gives, for each point: x, y, weight.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        let env = || self.gym.spec().id.clone();
        if !self.gym.hello().gaze {
            return Err(EnvError::NoGaze { env: env() });
        }
        self.is_there()?;
        if self.phase == Phase::Over {
            return Err(EnvError::NeedsReset { env: env() });
        }
        let bytes = self.ask_worker(|process| process.fetch(b'G', self.gym.settings().timeout))?;
        let (numbers, rest) = bytes.as_chunks::<8>();
        let (triples, over) = numbers.as_chunks::<3>();
        if !rest.is_empty() || !over.is_empty() || triples.len() > MOST_GAZE_POINTS {
            return Err(self.outside(format!(
                "its gaze has {} bytes; three numbers for each of at most {MOST_GAZE_POINTS} points are due",
                bytes.len()
            )));
        }
        points.clear();
        for triple in triples {
            let [x, y, weight] = triple.map(|number| f64::from_le_bytes(number) as f32);
            let point = GazePoint { x, y, weight };
            if !point.is_valid() {
                return Err(self.outside(format!(
                    "it looks at ({x}, {y}) with weight {weight}; places are 0 to 1, and weights above 0 and finite"
                )));
            }
            points.push(point);
        }
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(GymWorld {
            gym: Arc::clone(&self.gym),
            link: RefCell::new(None),
            phase: self.phase.clone(),
            history: self.history.clone(),
            stream: self.stream,
            shown: self.shown.clone(),
            numbers: Vec::new(),
            request: RefCell::default(),
        })
    }
}

/// Returns the worker for the next world.
impl Drop for GymWorld {
    fn drop(&mut self) {
        if let Some(process) = self.link.get_mut().take() {
            self.gym.give_back(process);
        }
    }
}

fn fact(value: Value) -> Fact {
    match value {
        Value::Null => Fact::Text(String::new()),
        Value::Bool(yes) => Fact::Flag(yes),
        Value::Number(number) => match number.as_u64() {
            Some(count) => Fact::Count(count),
            None => Fact::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Fact::Text(text),
        Value::Array(items) => Fact::List(items.into_iter().map(fact).collect()),
        Value::Object(items) => {
            Fact::Named(items.into_iter().map(|(name, item)| (name, fact(item))).collect())
        }
    }
}

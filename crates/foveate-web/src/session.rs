//! One page's session, without its socket: takes commands, gives frames and messages.

use std::sync::Arc;
use std::time::Duration;

use foveate_core::{Env, ImageBuf, ObservationSpace, one_line};
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift::{self, KnobKind, Plan, Shift};
use foveate_explain::{attended_picture, attention_marks, effect_marks, overlay, sensor_names};
use foveate_film::{Dial, Mark, PictureKind};
use serde_json::{Value, json};

use crate::frame;
use crate::pace::Pace;
use crate::protocol::{self, Command, RunnerSettings, Settings, SettingsChange};
use crate::recording::{FilmJob, RecordedFrame, RecordedNumbers, Recording};
use crate::run_length;
use crate::runner::{KeptDecision, Present, Runner};
use crate::setup::{LabSetup, SessionError};

/// Most frames sent and not yet drawn by the page.
const IN_FLIGHT: u32 = 3;
/// Time between the end of an episode and the start of the next.
const PAUSE_AFTER_END: Duration = Duration::from_millis(1800);
/// The same at maximum speed.
const SHORT_PAUSE: Duration = Duration::from_millis(500);
/// Size of the view until the page asks for another.
const FIRST_VIEW: (usize, usize) = (640, 512);
/// Automatic seeds wrap around here.
const SEEDS: u64 = 1_000_000;
/// A page's session.
pub struct Session {
    setup: Arc<LabSetup>,
    settings: Settings,
    plan: Plan,
    world: Box<dyn Env>,
    runners: Vec<Runner>,
    /// Names of the numbers that the world shows.
    sensors: Vec<String>,
    recordings: Vec<Recording>,
    /// The last step of each recording.
    recorded_step: Vec<Option<u32>>,
    pace: Pace,
    view: ImageBuf,
    /// There is something new to draw.
    changed: bool,
    /// Worlds and agents were rebuilt, and the page does not know yet.
    rebuilt: bool,
    /// Time since the last runner's episode ended.
    waited: Duration,
    end_sent: bool,
    sent: u32,
    shown: u32,
    messages: Vec<String>,
    film: Option<FilmJob>,
}

impl Session {
    /// A session in the world of `setup`, its first agent on the track of seed 1.
    ///
    /// # Errors
    /// When the world or the agent cannot be made.
    pub fn new(setup: Arc<LabSetup>) -> Result<Self, SessionError> {
        let settings = Settings {
            seed: 1,
            picture: setup.picture(),
            variants: setup.world.variants.clone(),
            shifts: setup.plan.list().iter().map(Shift::to_string).collect(),
            runners: vec![RunnerSettings { agent: 0, k: None }],
            speed: 1.0,
            paused: false,
            auto: true,
            // The measurement is cheap where the attention selects a few patches.
            effects: setup.agents[0].patches.is_some(),
        };
        let plan = setup.plan.clone();
        let world = make_world(&setup, &settings)?;
        let mut runners = make_runners(&setup, &*world, &settings, &plan)?;
        for runner in &mut runners {
            runner.measure_effects(settings.effects.then_some(&*world));
        }
        let (width, height) = FIRST_VIEW;
        let sensors = setup.descriptor.map_or(&[][..], |world| world.sensors);
        let mut session = Session {
            sensors: sensors.iter().map(ToString::to_string).collect(),
            plan,
            world,
            recordings: runners.iter().map(|_| Recording::default()).collect(),
            recorded_step: vec![None; runners.len()],
            runners,
            pace: Pace::default(),
            view: ImageBuf::black(width, height),
            changed: true,
            rebuilt: false,
            waited: Duration::ZERO,
            end_sent: false,
            sent: 0,
            shown: 0,
            messages: vec![],
            film: None,
            settings,
            setup,
        };
        session.messages.push(session.hello());
        Ok(session)
    }

    /// The settings as they are.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The world and the agents.
    pub fn setup(&self) -> &LabSetup {
        &self.setup
    }

    /// Steps and score of every runner, and whether its episode is over.
    pub fn scores(&self) -> Vec<(u32, f64, bool)> {
        self.runners.iter().map(|runner| (runner.steps(), runner.score(), runner.is_over())).collect()
    }

    /// Messages for the page, in order.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    /// The film that the page asked for; encode it on another thread.
    pub fn take_film(&mut self) -> Option<FilmJob> {
        self.film.take()
    }

    /// Returns whether nothing happens until the next command.
    pub fn is_idle(&self) -> bool {
        !self.changed && (self.settings.paused || (self.all_over() && !self.settings.auto))
    }

    /// Returns whether another frame may be sent; a page that does not draw gets none.
    pub const fn has_room(&self) -> bool {
        self.sent.wrapping_sub(self.shown) < IN_FLIGHT
    }

    /// Executes the command in `text`, or answers with an error message.
    pub fn handle(&mut self, text: &str) {
        if let Err(why) = protocol::read(text).and_then(|command| self.act(command)) {
            self.send_error(&why);
        }
    }

    /// Queues an error message for the page.
    pub fn send_error(&mut self, why: &str) {
        // However hostile, a session keeps no pile of complaints.
        if self.messages.len() < 64 {
            self.messages.push(json!({ "type": "message", "error": one_line(why) }).to_string());
        }
    }

    /// Queues a note for the page.
    pub fn send_note(&mut self, note: &str) {
        self.messages.push(json!({ "type": "message", "note": note }).to_string());
    }

    fn act(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Set(change) => self.set(change).map_err(|error| error.to_string())?,
            Command::Step {} => {
                self.settings.paused = true;
                self.step();
                self.changed = true;
            }
            Command::Restart {} => self.restart(),
            Command::Shuffle {} => self.shuffle().map_err(|error| error.to_string())?,
            Command::Drive { runner: number, action } => {
                let runner = self.runners.get_mut(number);
                let runner = runner.ok_or_else(|| format!("there is no runner {number}"))?;
                runner.set_manual(Some(&action))?;
                self.changed = true;
                return Ok(());
            }
            Command::Release {} => {
                for runner in &mut self.runners {
                    runner.set_manual(None)?;
                }
                self.changed = true;
                return Ok(());
            }
            Command::View { width, height } => {
                if (width, height) != (self.view.width(), self.view.height()) {
                    self.view = ImageBuf::black(width, height);
                    self.changed = true;
                }
                return Ok(());
            }
            Command::Shown { frame } => {
                // A page cannot have drawn what was not sent.
                if self.sent.wrapping_sub(frame) <= IN_FLIGHT {
                    self.shown = frame;
                }
                return Ok(());
            }
            Command::Film {} => {
                self.film = Some(self.film_job());
                return Ok(());
            }
        }
        self.send_state();
        Ok(())
    }

    /// Applies a change of settings, all of it or nothing.
    fn set(&mut self, change: SettingsChange) -> Result<(), SessionError> {
        let SettingsChange { seed, picture, variants, shifts, runners, speed, paused, auto, effects } =
            change;
        let old = self.settings.clone();
        let mut new = Settings {
            seed: seed.unwrap_or(old.seed),
            picture: picture.unwrap_or_else(|| old.picture.clone()),
            variants: variants.unwrap_or_else(|| old.variants.clone()),
            shifts: shifts.unwrap_or_else(|| old.shifts.clone()),
            runners: runners.unwrap_or_else(|| old.runners.clone()),
            speed: speed.unwrap_or(old.speed),
            paused: paused.unwrap_or(old.paused),
            auto: auto.unwrap_or(old.auto),
            effects: effects.unwrap_or(old.effects),
        };
        for choice in &mut new.runners {
            let Some(agent) = self.setup.agents.get(choice.agent) else {
                let why = format!("no agent {}; there are {}", choice.agent, self.setup.agents.len());
                return Err(SessionError::BadRequest { why });
            };
            let why = match (choice.k, agent.patches) {
                (Some(_), None) => format!("{} selects no patches; leave out k", agent.name),
                (Some(k), Some(most)) if !(1..=most).contains(&k) => {
                    format!("k = {k}; {} takes 1 to {most}", agent.name)
                }
                _ => continue,
            };
            return Err(SessionError::BadRequest { why });
        }
        let plan = self.setup.plan(&new.shifts)?;
        // Whether there are more or fewer sensors, with which an agent begins an episode.
        let mut fewer = false;
        let other_world = (&new.picture, &new.variants) != (&old.picture, &old.variants);
        let other_runners = new.runners.len() != old.runners.len()
            || new.runners.iter().zip(&old.runners).any(|(new, old)| new.agent != old.agent);
        if other_world || other_runners {
            let world = if other_world { Some(make_world(&self.setup, &new)?) } else { None };
            self.runners = make_runners(&self.setup, world.as_deref().unwrap_or(&*self.world), &new, &plan)?;
            if let Some(world) = world {
                self.world = world;
            }
            self.recordings = self.runners.iter().map(|_| Recording::default()).collect();
            self.recorded_step = vec![None; self.runners.len()];
            self.rebuilt = true;
            self.begin();
        } else {
            if plan != self.plan {
                for runner in &mut self.runners {
                    fewer |= runner.shift(&plan)?;
                }
            }
            for (runner, (new, old)) in self.runners.iter_mut().zip(new.runners.iter().zip(&old.runners)) {
                if new.k != old.k {
                    runner.show_patches(new.k.unwrap_or(usize::MAX))?;
                }
            }
        }
        for runner in &mut self.runners {
            runner.measure_effects(new.effects.then_some(&*self.world));
        }
        self.plan = plan;
        self.settings = new;
        self.changed = true;
        if seed.is_some() || fewer {
            self.restart();
        }
        if fewer {
            self.send_note("another number of sensors: the episode begins again");
        }
        Ok(())
    }

    /// Draws a new order of the sensors in all runners, which drive on.
    fn shuffle(&mut self) -> Result<(), SessionError> {
        let mut any = false;
        for runner in &mut self.runners {
            any |= runner.shuffle_now();
        }
        if !any {
            let mut shifts = self.settings.shifts.clone();
            shifts.push("shuffle:5".to_owned());
            self.set(SettingsChange { shifts: Some(shifts), ..SettingsChange::default() })?;
        }
        self.changed = true;
        Ok(())
    }

    /// Restarts the track in all runners.
    fn restart(&mut self) {
        for runner in &mut self.runners {
            runner.restart(self.settings.seed);
        }
        self.begin();
    }

    /// Resets what counts per episode.
    fn begin(&mut self) {
        (self.waited, self.end_sent, self.changed) = (Duration::ZERO, false, true);
        self.recorded_step.fill(None);
        self.pace.forget();
    }

    fn all_over(&self) -> bool {
        self.runners.iter().all(Runner::is_over)
    }

    fn step(&mut self) {
        for runner in &mut self.runners {
            runner.step();
        }
        if self.all_over() && !self.end_sent {
            self.end_sent = true;
            self.send_end();
        }
    }

    /// Advances by `elapsed`, or at maximum speed for as long as `in_time` allows. Returns whether there is something to
    /// draw.
    pub fn advance(&mut self, elapsed: Duration, in_time: &mut dyn FnMut() -> bool) -> bool {
        if !self.settings.paused {
            if self.all_over() {
                self.rest(elapsed);
            } else if self.settings.speed == 0.0 {
                loop {
                    self.step();
                    if self.all_over() || !in_time() {
                        break;
                    }
                }
                self.changed = true;
            } else {
                let steps = self.pace.due(elapsed, self.runners[0].fps() * self.settings.speed);
                for _ in 0..steps {
                    self.step();
                }
                self.changed |= steps > 0;
            }
        }
        self.changed
    }

    /// Drops the time that is due: a page that draws nothing drives nothing.
    pub fn skip_time(&mut self) {
        self.pace.forget();
    }

    /// Waits between episodes, then starts the next.
    fn rest(&mut self, elapsed: Duration) {
        self.waited += elapsed;
        let enough = if self.settings.speed == 0.0 { SHORT_PAUSE } else { PAUSE_AFTER_END };
        if self.settings.auto && self.waited >= enough {
            self.settings.seed = (self.settings.seed + 1) % SEEDS;
            self.restart();
            self.send_state();
        }
    }

    /// The current frame.
    pub fn frame(&mut self) -> Vec<u8> {
        self.changed = false;
        self.sent = self.sent.wrapping_add(1);
        let mut out = Vec::with_capacity(128 << 10);
        frame::begin(&mut out, self.runners.len(), self.sent);
        for at in 0..self.runners.len() {
            let runner = &mut self.runners[at];
            let view =
                if runner.render(&mut self.view) { run_length::pack(self.view.as_image()) } else { vec![] };
            frame::runner(&mut out, runner, &view);
            if self.recorded_step[at] != Some(runner.steps()) {
                self.recorded_step[at] = Some(runner.steps());
                let title = self.title(at);
                let recorded_frame = recorded_frame(&mut self.runners[at], title, view, &self.sensors);
                self.recordings[at].push(recorded_frame);
            }
        }
        out
    }

    /// Title of a film.
    fn title(&self, at: usize) -> Arc<str> {
        let Settings { seed, picture, variants, shifts, .. } = &self.settings;
        let mut parts =
            vec![self.setup.agents[self.settings.runners[at].agent].name.clone(), picture.clone()];
        parts.extend(variants.iter().chain(shifts).take(4).cloned());
        parts.push(format!("seed {seed}"));
        parts.join("   ").chars().take(120).collect::<String>().into()
    }

    fn film_job(&self) -> FilmJob {
        FilmJob {
            runners: self.recordings.iter().map(Recording::frames).collect(),
            dials: self.dials(),
            max_steps: self.world.spec().max_steps,
            fps: self.world.spec().fps,
        }
    }

    fn dials(&self) -> Vec<Dial> {
        let (low, high) = self.runners[0].bounds();
        let spec = self.world.spec();
        let names =
            self.setup.descriptor.map_or_else(|| spec.action.names(&[]), |world| world.action_names(spec));
        let named = names.into_iter().zip(low.iter().zip(&high));
        named.map(|(name, (&low, &high))| Dial { name, low, high }).collect()
    }

    fn send_state(&mut self) {
        let rebuilt = std::mem::take(&mut self.rebuilt);
        let text = json!({ "type": "state", "settings": self.settings, "rebuilt": rebuilt }).to_string();
        self.messages.push(text);
    }

    fn send_end(&mut self) {
        let runners: Vec<Value> = self
            .runners
            .iter()
            .map(|runner| {
                json!({
                    "score": runner.score(),
                    "steps": runner.steps(),
                    "terminated": runner.end.is_some_and(|end| end.terminated),
                })
            })
            .collect();
        let text = json!({ "type": "end", "seed": self.settings.seed, "runners": runners }).to_string();
        self.messages.push(text);
        if let Some(why) = self.runners.iter().find_map(|runner| runner.broken.clone()) {
            self.send_error(&why);
        }
    }

    /// The first message: everything that a page needs once.
    fn hello(&self) -> String {
        let info = self.setup.descriptor;
        let variants: Vec<Value> = info
            .iter()
            .flat_map(|info| info.variants)
            // It reads files, which is for the command line alone.
            .filter(|variant| variant.name != "video" || self.setup.world.films.is_some())
            .map(|variant| json!({ "name": variant.name, "about": variant.about }))
            .collect();
        let shifts: Vec<Value> = shift::SHIFTS
            .iter()
            .filter(|info| {
                !info.knobs.iter().any(|knob| matches!(knob.kind, KnobKind::Folder | KnobKind::File))
            })
            .filter(|info| {
                let shift = Shift::new(info.name, 3.0);
                shift.and_then(|shift| Plan::new(vec![shift]).check(self.world.spec())).is_ok()
            })
            .map(|shift| {
                let what = shift.target.name();
                let knobs: Vec<&str> = shift.knobs.iter().map(|knob| knob.name).collect();
                json!({
                    "name": shift.name, "about": shift.about, "target": what, "unit": shift.unit,
                    "amounts": shift.amounts, "knobs": knobs,
                })
            })
            .collect();
        let pictures: Vec<Value> = self
            .setup
            .pictures()
            .into_iter()
            .map(|(name, about)| json!({ "name": name, "about": about }))
            .collect();
        let agents: Vec<Value> =
            self.setup.agents.iter().map(|agent| json!({ "name": agent.name, "k": agent.patches })).collect();
        let scenes: Vec<Value> = self
            .setup
            .scenes
            .all
            .iter()
            .map(|(name, label)| json!({ "name": name, "label": label }))
            .collect();
        let actions: Vec<Value> = self
            .dials()
            .iter()
            .map(|dial| json!({ "name": dial.name, "low": dial.low, "high": dial.high }))
            .collect();
        json!({
            "type": "hello",
            "version": env!("CARGO_PKG_VERSION"),
            "world": self.setup.world.id,
            "fps": self.world.spec().fps,
            "maxSteps": self.world.spec().max_steps,
            "pictures": pictures,
            "variants": variants,
            "shifts": shifts,
            "agents": agents,
            "actions": actions,
            "sees": match &self.world.spec().observation {
                ObservationSpace::Grid { .. } => "grid",
                space if space.picture().is_some() => "picture",
                _ => "numbers",
            },
            "sensors": self.sensors,
            "choices": self.world.spec().action.is_discrete(),
            "scene": self.setup.scenes.present,
            "scenes": scenes,
            "settings": self.settings,
        })
        .to_string()
    }
}

/// The world that `settings` ask for. No file is read: pictures of a video are those that the command line named.
fn make_world(setup: &LabSetup, settings: &Settings) -> Result<Box<dyn Env>, SessionError> {
    let request = EnvRequest {
        picture: Some(settings.picture.clone()),
        variants: settings.variants.clone(),
        ..setup.world.clone()
    };
    (setup.make)(request)
}

fn make_runners(
    setup: &LabSetup,
    world: &dyn Env,
    settings: &Settings,
    plan: &Plan,
) -> Result<Vec<Runner>, SessionError> {
    let runner = |choice: &RunnerSettings| {
        let k = choice.k.unwrap_or(usize::MAX);
        Runner::new(world, &setup.agents[choice.agent], k, plan, settings.seed)
    };
    settings.runners.iter().map(runner).collect()
}

/// A runner as it is now, for the film.
fn recorded_frame(runner: &mut Runner, title: Arc<str>, view: Vec<u8>, sensors: &[String]) -> RecordedFrame {
    let (step, score, over) = (runner.steps() as usize, runner.score(), runner.is_over());
    let now = runner.present();
    let Present { observation, decided, manual, .. } = now;
    let (mut seen, mut attended, mut kind) = (vec![], vec![], PictureKind::Observation);
    let mut scratch = vec![];
    if let Some((maps, shown)) = now.cells() {
        seen = run_length::pack(maps.as_image());
        kind = shown;
    }
    if let Some(pixels) = observation.image() {
        let image = attended_picture(pixels, decided.and_then(|decided| decided.grid), &mut scratch);
        let mut overlaid = None;
        if let Some(Ok(Some(attention))) = decided.map(KeptDecision::attention) {
            overlaid = overlay(image, &attention).filter(|_| attention.selected().is_none());
            let effects = decided.map_or(&[][..], |decided| &decided.effects);
            attended = if effects.is_empty() {
                attention_marks(image.width(), image.height(), &attention)
            } else {
                effect_marks(image.width(), image.height(), &attention, effects, 1.0)
            };
        }
        if let Some(order) = now.original_order(image) {
            let shown = overlaid.as_ref().map_or(image, ImageBuf::as_image);
            let (both, moved) = order.side_by_side(shown, &attended);
            (overlaid, attended, kind) = (Some(both), moved, PictureKind::SideBySide);
        }
        seen = run_length::pack(overlaid.as_ref().map_or(image, ImageBuf::as_image));
    }
    let marks = attended.iter().map(|m| Mark {
        x: m.x,
        y: m.y,
        width: m.width,
        height: m.height,
        opacity: m.opacity,
        effect: m.effect,
    });
    let numbers = observation.numbers().filter(|_| seen.is_empty()).unwrap_or_default();
    let weights = decided.filter(|decided| decided.named.len() == numbers.len());
    let numbers = match weights {
        Some(decided) if !numbers.is_empty() => RecordedNumbers::Attended {
            names: sensor_names(now.order, numbers.len(), sensors),
            weights: decided.weights.clone(),
        },
        _ => RecordedNumbers::Plain(numbers.to_vec()),
    };
    let action = manual.or(decided.map(|d| &d.action[..])).filter(|_| !over).unwrap_or_default().to_vec();
    let (view, seen, marks, action) = (view.into(), seen.into(), marks.collect(), action.into());
    RecordedFrame { title, view, seen, kind, numbers, marks, action, score, step }
}

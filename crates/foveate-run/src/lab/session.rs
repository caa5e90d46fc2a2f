//! One page's session, without its socket: commands go in, frames and words come out.

use std::sync::Arc;
use std::time::Duration;

use foveate_core::{Env, ImageBuf};
use foveate_envs::car_racing;
use foveate_envs::registry::{self, EnvRequest};
use foveate_envs::shift::{self, Kind, Plan, Shift, Target};
use foveate_envs::take_cover;
use foveate_explain::{attention_marks, overlay};
use foveate_film::{Dial, Mark};
use serde_json::{Value, json};

use super::cast::Cast;
use super::frame;
use super::lane::{Decided, Lane};
use super::pace::Pace;
use super::protocol::{self, Command, SeatWish, Settings, Wish};
use super::reel::{FilmOrder, Moment, Reel};
use super::runs;
use crate::{RunError, one_line, worlds};

/// Frames that may be on their way, not yet drawn.
const IN_FLIGHT: u32 = 3;
/// How long an ended episode stays before the next begins by itself.
const REST: Duration = Duration::from_millis(1800);
/// The same when it goes as fast as it can.
const SHORT_REST: Duration = Duration::from_millis(500);
/// The view until the page says how large it wants it.
const FIRST_VIEW: (usize, usize) = (640, 512);
/// Seeds of tracks that follow one another by themselves start over here.
const SEEDS: u64 = 1_000_000;
/// What the numbers of an action mean, world by world; the page knows `steer`.
const ACTIONS: [(&str, &[&str]); 2] =
    [(car_racing::ID, &["steer", "gas", "brake"]), (take_cover::ID, &["move"])];

/// A page's session.
pub struct Session {
    cast: Arc<Cast>,
    settings: Settings,
    plan: Plan,
    world: Box<dyn Env>,
    lanes: Vec<Lane>,
    reels: Vec<Reel>,
    /// The step that each reel has last.
    filmed: Vec<Option<u32>>,
    pace: Pace,
    view: ImageBuf,
    /// There is something new to draw.
    fresh: bool,
    /// Worlds and agents were made anew, and the page has not been told.
    anew: bool,
    /// How long all lanes have been over.
    rested: Duration,
    told_end: bool,
    sent: u32,
    shown: u32,
    said: Vec<String>,
    film: Option<FilmOrder>,
}

impl Session {
    /// A session in the world of `cast`, its first agent on the track of seed 1.
    ///
    /// # Errors
    /// When the world or the agent cannot be made.
    pub fn new(cast: Arc<Cast>) -> Result<Self, RunError> {
        let settings = Settings {
            seed: 1,
            picture: cast.picture(),
            variants: cast.world.variants.clone(),
            shifts: cast.plan.list().iter().map(Shift::to_string).collect(),
            seats: vec![SeatWish { agent: 0, k: None }],
            speed: 1.0,
            paused: false,
            auto: true,
        };
        let plan = cast.plan.clone();
        let world = make_world(&cast, &settings)?;
        let lanes = make_lanes(&cast, &*world, &settings, &plan)?;
        let (width, height) = FIRST_VIEW;
        let mut session = Session {
            plan,
            world,
            reels: lanes.iter().map(|_| Reel::default()).collect(),
            filmed: vec![None; lanes.len()],
            lanes,
            pace: Pace::default(),
            view: ImageBuf::black(width, height),
            fresh: true,
            anew: false,
            rested: Duration::ZERO,
            told_end: false,
            sent: 0,
            shown: 0,
            said: vec![],
            film: None,
            settings,
            cast,
        };
        session.said.push(session.hello());
        Ok(session)
    }

    /// The settings as they are.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Steps and score of every lane, and whether its episode is over.
    pub fn scores(&self) -> Vec<(u32, f64, bool)> {
        self.lanes.iter().map(|lane| (lane.steps(), lane.score(), lane.is_over())).collect()
    }

    /// What is to be said to the page, in order.
    pub fn take_said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.said)
    }

    /// The film that the page asked for, to be made by whoever has time.
    pub fn take_film(&mut self) -> Option<FilmOrder> {
        self.film.take()
    }

    /// Whether nothing will happen until the page says something.
    pub fn is_idle(&self) -> bool {
        !self.fresh && (self.settings.paused || (self.all_over() && !self.settings.auto))
    }

    /// Whether another frame may be sent; a page that does not draw gets none.
    pub const fn has_room(&self) -> bool {
        self.sent.wrapping_sub(self.shown) < IN_FLIGHT
    }

    /// Does what `text` says, or says why not.
    pub fn obey(&mut self, text: &str) {
        if let Err(why) = protocol::read(text).and_then(|command| self.act(command)) {
            self.complain(&why);
        }
    }

    /// Tells the page that something cannot be done.
    pub fn complain(&mut self, why: &str) {
        // However hostile, a session keeps no pile of complaints.
        if self.said.len() < 64 {
            self.said.push(json!({ "is": "said", "error": one_line(why) }).to_string());
        }
    }

    /// Tells the page something good.
    pub fn mention(&mut self, note: &str) {
        self.said.push(json!({ "is": "said", "note": note }).to_string());
    }

    fn act(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Set(wish) => self.set(wish).map_err(|error| error.to_string())?,
            Command::Step {} => {
                self.settings.paused = true;
                self.step();
                self.fresh = true;
            }
            Command::Restart {} => self.restart(),
            Command::Drive { seat, action } => {
                let lane = self.lanes.get_mut(seat).ok_or_else(|| format!("nobody sits in seat {seat}"))?;
                lane.hold(Some(&action))?;
                self.fresh = true;
                return Ok(());
            }
            Command::Release {} => {
                for lane in &mut self.lanes {
                    lane.hold(None)?;
                }
                self.fresh = true;
                return Ok(());
            }
            Command::View { width, height } => {
                if (width, height) != (self.view.width(), self.view.height()) {
                    self.view = ImageBuf::black(width, height);
                    self.fresh = true;
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
                self.film = Some(self.film_order());
                return Ok(());
            }
        }
        self.tell_state();
        Ok(())
    }

    /// All of a wish or nothing of it.
    fn set(&mut self, wish: Wish) -> Result<(), RunError> {
        let Wish { seed, picture, variants, shifts, seats, speed, paused, auto } = wish;
        let old = self.settings.clone();
        let mut new = Settings {
            seed: seed.unwrap_or(old.seed),
            picture: picture.unwrap_or_else(|| old.picture.clone()),
            variants: variants.unwrap_or_else(|| old.variants.clone()),
            shifts: shifts.unwrap_or_else(|| old.shifts.clone()),
            seats: seats.unwrap_or_else(|| old.seats.clone()),
            speed: speed.unwrap_or(old.speed),
            paused: paused.unwrap_or(old.paused),
            auto: auto.unwrap_or(old.auto),
        };
        for seat in &mut new.seats {
            let Some(player) = self.cast.players.get(seat.agent) else {
                let why = format!("no agent {}; there are {}", seat.agent, self.cast.players.len());
                return Err(RunError::BadRequest { why });
            };
            seat.k = seat.k.map(|k| k.clamp(1, player.top_k.max(1)));
        }
        let plan = self.cast.plan(&new.shifts)?;
        let other_world = (&new.picture, &new.variants) != (&old.picture, &old.variants);
        let other_seats = new.seats.len() != old.seats.len()
            || new.seats.iter().zip(&old.seats).any(|(new, old)| new.agent != old.agent);
        if other_world || other_seats {
            let world = if other_world { Some(make_world(&self.cast, &new)?) } else { None };
            self.lanes = make_lanes(&self.cast, world.as_deref().unwrap_or(&*self.world), &new, &plan)?;
            if let Some(world) = world {
                self.world = world;
            }
            self.reels = self.lanes.iter().map(|_| Reel::default()).collect();
            self.filmed = vec![None; self.lanes.len()];
            self.anew = true;
            self.begin();
        } else {
            if plan != self.plan {
                for lane in &mut self.lanes {
                    lane.shift(&plan)?;
                }
            }
            for (lane, (new, old)) in self.lanes.iter_mut().zip(new.seats.iter().zip(&old.seats)) {
                if new.k != old.k {
                    lane.look_at(new.k.unwrap_or(usize::MAX))?;
                }
            }
        }
        self.plan = plan;
        self.settings = new;
        self.fresh = true;
        if seed.is_some() {
            self.restart();
        }
        Ok(())
    }

    /// The track from its start, in all lanes.
    fn restart(&mut self) {
        for lane in &mut self.lanes {
            lane.restart(self.settings.seed);
        }
        self.begin();
    }

    /// What holds at the start of every episode.
    fn begin(&mut self) {
        (self.rested, self.told_end, self.fresh) = (Duration::ZERO, false, true);
        self.filmed.fill(None);
        self.pace.forget();
    }

    fn all_over(&self) -> bool {
        self.lanes.iter().all(Lane::is_over)
    }

    fn step(&mut self) {
        for lane in &mut self.lanes {
            lane.step();
        }
        if self.all_over() && !self.told_end {
            self.told_end = true;
            self.tell_end();
        }
    }

    /// Lets `elapsed` pass; as fast as it goes while `in_time` says so. Returns whether there is something to draw.
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
                self.fresh = true;
            } else {
                let steps = self.pace.due(elapsed, self.lanes[0].fps() * self.settings.speed);
                for _ in 0..steps {
                    self.step();
                }
                self.fresh |= steps > 0;
            }
        }
        self.fresh
    }

    /// Nothing is drawn, so nothing is driven either.
    pub fn stall(&mut self) {
        self.pace.forget();
    }

    /// After the end.
    fn rest(&mut self, elapsed: Duration) {
        self.rested += elapsed;
        let enough = if self.settings.speed == 0.0 { SHORT_REST } else { REST };
        if self.settings.auto && self.rested >= enough {
            self.settings.seed = (self.settings.seed + 1) % SEEDS;
            self.restart();
            self.tell_state();
        }
    }

    /// The frame of this moment.
    pub fn frame(&mut self) -> Vec<u8> {
        self.fresh = false;
        self.sent = self.sent.wrapping_add(1);
        let mut out = Vec::with_capacity(128 << 10);
        frame::begin(&mut out, self.lanes.len(), self.sent);
        for at in 0..self.lanes.len() {
            let lane = &mut self.lanes[at];
            let view = if lane.render(&mut self.view) { runs::pack(self.view.as_image()) } else { vec![] };
            frame::lane(&mut out, lane, &view);
            if self.filmed[at] != Some(lane.steps()) {
                self.filmed[at] = Some(lane.steps());
                let title = self.title(at);
                let moment = moment(&mut self.lanes[at], title, view);
                self.reels[at].push(moment);
            }
        }
        out
    }

    /// Written above a film.
    fn title(&self, at: usize) -> Arc<str> {
        let Settings { seed, picture, variants, shifts, .. } = &self.settings;
        let mut parts = vec![self.cast.players[self.settings.seats[at].agent].name.clone(), picture.clone()];
        parts.extend(variants.iter().chain(shifts).take(4).cloned());
        parts.push(format!("seed {seed}"));
        parts.join("   ").chars().take(120).collect::<String>().into()
    }

    fn film_order(&self) -> FilmOrder {
        FilmOrder {
            lanes: self.reels.iter().map(Reel::moments).collect(),
            dials: self.dials(),
            max_steps: self.world.spec().max_steps,
            fps: self.world.spec().fps,
        }
    }

    fn dials(&self) -> Vec<Dial> {
        let (low, high) = self.lanes[0].bounds();
        let known =
            ACTIONS.iter().find(|(id, names)| *id == self.world.spec().id && names.len() == low.len());
        let name = |i: usize| known.map_or_else(|| format!("a{i}"), |(_, names)| names[i].to_owned());
        low.iter()
            .zip(&high)
            .enumerate()
            .map(|(i, (&low, &high))| Dial { name: name(i), low, high })
            .collect()
    }

    fn tell_state(&mut self) {
        let anew = std::mem::take(&mut self.anew);
        let text = json!({ "is": "state", "settings": self.settings, "anew": anew }).to_string();
        self.said.push(text);
    }

    fn tell_end(&mut self) {
        let lanes: Vec<Value> = self
            .lanes
            .iter()
            .map(|lane| {
                json!({
                    "score": lane.score(),
                    "steps": lane.steps(),
                    "terminated": lane.end.is_some_and(|end| end.terminated),
                })
            })
            .collect();
        let text = json!({ "is": "end", "seed": self.settings.seed, "lanes": lanes }).to_string();
        self.said.push(text);
        if let Some(why) = self.lanes.iter().find_map(|lane| lane.broken.clone()) {
            self.complain(&why);
        }
    }

    /// Everything that the page has to know once.
    fn hello(&self) -> String {
        let info = registry::list().into_iter().find(|info| info.id == self.cast.world.id);
        let variants: Vec<Value> = info
            .iter()
            .flat_map(|info| info.variants)
            // It reads files, which is for the command line alone.
            .filter(|variant| variant.name != "video" || self.cast.world.video.is_some())
            .map(|variant| json!({ "name": variant.name, "about": variant.about }))
            .collect();
        let shifts: Vec<Value> = shift::catalogue()
            .iter()
            .filter(|shift| !shift.knobs.iter().any(|knob| matches!(knob.kind, Kind::Folder)))
            .map(|shift| {
                let what = match shift.target {
                    Target::Picture => "picture",
                    Target::Action => "action",
                };
                let knobs: Vec<&str> = shift.knobs.iter().map(|knob| knob.name).collect();
                json!({
                    "name": shift.name, "about": shift.about, "target": what, "unit": shift.unit,
                    "amounts": shift.amounts, "knobs": knobs,
                })
            })
            .collect();
        let pictures: Vec<Value> = self
            .cast
            .pictures()
            .into_iter()
            .map(|(name, about)| json!({ "name": name, "about": about }))
            .collect();
        let players: Vec<Value> = self
            .cast
            .players
            .iter()
            .map(|player| json!({ "name": player.name, "k": player.top_k }))
            .collect();
        let actions: Vec<Value> = self
            .dials()
            .iter()
            .map(|dial| json!({ "name": dial.name, "low": dial.low, "high": dial.high }))
            .collect();
        json!({
            "is": "hello",
            "version": env!("CARGO_PKG_VERSION"),
            "world": self.cast.world.id,
            "fps": self.world.spec().fps,
            "maxSteps": self.world.spec().max_steps,
            "pictures": pictures,
            "variants": variants,
            "shifts": shifts,
            "agents": players,
            "actions": actions,
            "settings": self.settings,
        })
        .to_string()
    }
}

/// The world that `settings` ask for. No file is read: pictures of a video are those that the command line named.
fn make_world(cast: &Cast, settings: &Settings) -> Result<Box<dyn Env>, RunError> {
    let request = EnvRequest {
        picture: Some(settings.picture.clone()),
        variants: settings.variants.clone(),
        ..cast.world.clone()
    };
    worlds::build(request)
}

fn make_lanes(cast: &Cast, world: &dyn Env, settings: &Settings, plan: &Plan) -> Result<Vec<Lane>, RunError> {
    let lane = |seat: &SeatWish| {
        let k = seat.k.unwrap_or(usize::MAX);
        Lane::new(world, &cast.players[seat.agent], k, plan, settings.seed)
    };
    settings.seats.iter().map(lane).collect()
}

/// A lane as it is now, for the film.
fn moment(lane: &mut Lane, title: Arc<str>, view: Vec<u8>) -> Moment {
    let (step, score, over) = (lane.steps() as usize, lane.score(), lane.is_over());
    let (observation, decided, hand) = lane.present();
    let (mut seen, mut marks) = (vec![], vec![]);
    if let Some(image) = observation.image() {
        seen = runs::pack(image);
        if let Some(Ok(Some(attention))) = decided.map(Decided::attention) {
            if let (None, Some(overlaid)) = (attention.selected(), overlay(image, &attention)) {
                seen = runs::pack(overlaid.as_image());
            }
            marks.extend(attention_marks(image.width(), image.height(), &attention).iter().map(|m| Mark {
                x: m.x,
                y: m.y,
                width: m.width,
                height: m.height,
                opacity: m.opacity,
            }));
        }
    }
    let action = hand.or(decided.map(|d| &d.action[..])).filter(|_| !over).unwrap_or_default().to_vec();
    let (view, seen, marks, action) = (view.into(), seen.into(), marks.into(), action.into());
    Moment { title, view, seen, marks, action, score, step }
}

//! The world without its picture: track, car, contacts, rewards and the end of the episode.

use std::sync::atomic::{AtomicU64, Ordering};

use super::car::{Car, Controls, DT};
use super::config::{CarRacingConfig, Seeding};
use super::contacts::{Bounds, TileIndex};
use super::scene::{Colors, PLAYFIELD, Paint, RoadQuad, Scene};
use super::shape::{HULL, WHEEL};
use super::track::Track;
use super::variants::VariantState;
use crate::random::{Mt19937, Pcg64, Stream};

/// The seed of a world that was never given one.
pub const DEFAULT_SEED: u64 = 0;

/// The moving parts and the rules.
#[derive(Debug, Clone)]
pub(super) struct World {
    seeding: Seeding,
    lap_complete_percent: f64,
    domain_randomize: bool,
    stream: Stream,
    seed: u64,
    resets: u64,
    /// The seed given to the last reset, if any, and whether it drew colours.
    made_by: Option<(u64, bool)>,
    pub(super) variants: VariantState,
    pub(super) track: Track,
    /// Quads for the pictures: the fake lane, if any, then the track's.
    road: Vec<RoadQuad>,
    grid: TileIndex,
    visited: Vec<bool>,
    track_id: u64,
    /// What is taken out of the picture until the next reset.
    erased: Erased,
    colors: Colors,
    pub(super) car: Car,
    pub(super) t: f64,
    pub(super) score: f64,
    score_before: f64,
    pub(super) tiles_visited: usize,
    new_lap: bool,
}

/// What [`World::erase`] can take out of the picture.
pub(super) const KINDS: [&str; 4] = ["road", "kerbs", "grass", "indicators"];

/// What was taken out of the picture; the physics stay as they are.
#[derive(Debug, Clone, Default)]
struct Erased {
    /// In the order of [`KINDS`]; grass are the lighter squares of the ground.
    kinds: [bool; KINDS.len()],
    /// What is left of the road.
    left: Vec<RoadQuad>,
    /// Of what is left.
    track_id: u64,
}

/// Pictures index the road by this number, so no two roads may share it.
fn new_track_id() -> u64 {
    static TRACKS: AtomicU64 = AtomicU64::new(1);
    TRACKS.fetch_add(1, Ordering::Relaxed)
}

/// The outcome of a step, before any time limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StepOutcome {
    pub(super) reward: f64,
    pub(super) terminated: bool,
}

impl World {
    pub(super) fn new(config: &CarRacingConfig, variants: VariantState) -> Self {
        let mut world = World {
            seeding: config.seeding,
            lap_complete_percent: config.lap_complete_percent,
            domain_randomize: config.domain_randomize,
            stream: match config.seeding {
                Seeding::Gymnasium => Stream::Gymnasium(Pcg64::seeded(DEFAULT_SEED)),
                Seeding::Gym0153 => Stream::Gym0153(Box::new(Mt19937::gym_seeded(DEFAULT_SEED))),
            },
            seed: DEFAULT_SEED,
            resets: 0,
            made_by: None,
            variants,
            track: Track::default(),
            road: Vec::new(),
            grid: TileIndex::default(),
            visited: Vec::new(),
            track_id: 0,
            erased: Erased::default(),
            colors: Colors::default(),
            car: Car::default(),
            t: 0.0,
            score: 0.0,
            score_before: 0.0,
            tiles_visited: 0,
            new_lap: false,
        };
        if world.domain_randomize {
            world.draw_colors();
        }
        world
    }

    /// Builds a track and places the car on it, then takes one step, as in the reference.
    ///
    /// A reset with the same seed as the previous reset reuses the track, its index, the colours and the
    /// random stream, because an episode changes none of these.
    pub(super) fn reset(&mut self, seed: Option<u64>, randomize: bool) {
        let made_by = seed.map(|seed| (seed, randomize));
        let again = made_by.is_some() && self.made_by == made_by;
        if let Some(seed) = seed {
            self.seed = seed;
            self.resets = 0;
        }
        self.variants.on_reset(self.seed, self.resets);
        self.resets += 1;
        if !again {
            // If the code below panics, the track is incomplete and must not be reused.
            self.made_by = None;
            self.make_track(seed, randomize);
            self.made_by = made_by;
        }
        self.erased = Erased::default();
        self.road.clear();
        self.variants.lay_lane(&self.track.road, &mut self.road);
        self.road.extend_from_slice(&self.track.road);
        let Track { points, .. } = &self.track;
        self.visited.clear();
        self.visited.resize(points.len(), false);
        self.car = Car::at(&points[0]);
        self.t = 0.0;
        self.score = 0.0;
        self.score_before = 0.0;
        self.tiles_visited = 0;
        self.new_lap = false;
        self.advance();
    }

    /// Draws colours, if requested, and a track.
    fn make_track(&mut self, seed: Option<u64>, randomize: bool) {
        if let Some(seed) = seed {
            self.stream.reseed(seed);
        }
        if self.domain_randomize && randomize {
            self.draw_colors();
        }
        self.track.create(&mut self.stream);
        self.track_id = new_track_id();
        let Track { road, tiles, .. } = &self.track;
        self.grid.build(tiles.iter().map(|&at| &road[at as usize]));
    }

    /// Draws the random colours: three draws for the road, three for the field; the grass is the field with
    /// one channel brighter by 20.
    fn draw_colors(&mut self) {
        let Stream::Gymnasium(stream) = &mut self.stream else { return };
        let mut three = || [(); 3].map(|()| 0.0 + 210.0 * stream.next_f64());
        let (road, field) = (three(), three());
        let mut grass = field;
        grass[stream.integers(3) as usize] += 20.0;
        self.colors = Colors { road, field, grass };
    }

    /// Car, contacts, bodies, time: everything before the picture is drawn.
    pub(super) fn advance(&mut self) {
        let (forces, motor_speeds) = self.car.drive();
        self.touch();
        self.car.island.step(&forces, &motor_speeds);
        self.t += DT;
    }

    /// Sensor contacts, with the positions before the bodies move.
    ///
    /// Box2D reports the new contacts of one step in the order of its proxies, last tile first in a new
    /// world; the order matters only to the lap rule at tile 0, which is therefore checked after all others.
    fn touch(&mut self) {
        let World { car, grid, visited, road, track, .. } = self;
        let lane = road.len() - track.road.len();
        let mut paint = |i: usize| road[lane + track.tiles[i] as usize].paint = Paint::Road { stripe: 0 };
        let share = 1000.0 / visited.len() as f64;
        let was_at_start = visited[0];
        for i in 0..4 {
            let body = car.island.wheels[i].body;
            let bounds = Bounds::of_body(&body, &WHEEL);
            let mut on_road = false;
            grid.near(&bounds, |tile_index, tile| {
                if !(on_road && visited[tile_index]) && tile.touches(&body, &WHEEL, &bounds) {
                    on_road = true;
                    if !visited[tile_index] {
                        visited[tile_index] = true;
                        paint(tile_index);
                        self.score += share;
                        self.tiles_visited += 1;
                    }
                }
                true
            });
            car.on_road[i] = on_road;
        }
        if self.seeding == Seeding::Gymnasium && visited[0] && !was_at_start {
            self.new_lap = self.tiles_visited as f64 / visited.len() as f64 > self.lap_complete_percent;
        }

        // The hull gains no reward, but it also removes the stripes of the road.
        let body = car.island.hull.body;
        let bounds = HULL.each_ref().map(|polygon| Bounds::of_body(&body, polygon));
        let around = bounds[1..].iter().fold(bounds[0], |all, b| all.with(b));
        grid.near(&around, |tile_index, tile| {
            let quad = &mut road[lane + track.tiles[tile_index] as usize];
            if quad.paint != (Paint::Road { stripe: 0 })
                && HULL.iter().zip(&bounds).any(|(polygon, bounds)| tile.touches(&body, polygon, bounds))
            {
                quad.paint = Paint::Road { stripe: 0 };
            }
            true
        });
    }

    /// The part of a step before the picture.
    pub(super) fn drive(&mut self, controls: &Controls) {
        self.car.control(controls);
        self.advance();
        self.leave_out();
    }

    /// Reward and end of the step, after the picture: the score in the picture does not include this step's
    /// −0.1 yet.
    pub(super) fn judge(&mut self) -> StepOutcome {
        self.score -= 0.1;
        let mut reward = self.score - self.score_before;
        self.score_before = self.score;
        let mut terminated = self.tiles_visited == self.visited.len() || self.new_lap;
        let [x, y] = self.car.island.hull.body.position.map(f64::from);
        if x.abs() > PLAYFIELD || y.abs() > PLAYFIELD {
            terminated = true;
            reward = -100.0;
        }
        StepOutcome { reward, terminated }
    }

    /// Takes everything of a kind out of the picture until the next reset; whether there is such a kind.
    pub(super) fn erase(&mut self, kind: &str) -> bool {
        let Some(which) = KINDS.iter().position(|name| *name == kind) else { return false };
        self.erased.kinds[which] = true;
        self.erased.track_id = new_track_id();
        self.leave_out();
        true
    }

    /// Copies what is left of the road, if some of it was erased.
    fn leave_out(&mut self) {
        let Erased { kinds: [road, kerbs, ..], left, .. } = &mut self.erased;
        left.clear();
        if *road || *kerbs {
            left.extend(self.road.iter().filter(|quad| match quad.paint {
                Paint::Road { .. } => !*road,
                Paint::White | Paint::Red => !*kerbs,
                Paint::Rgb(_) => true,
            }));
        }
    }

    /// The current scene, ready to draw.
    pub(super) fn scene(&self) -> Scene<'_> {
        let [road, kerbs, grass, indicators] = self.erased.kinds;
        let (road, track_id) = if road || kerbs {
            (&self.erased.left, self.erased.track_id)
        } else {
            (&self.road, self.track_id)
        };
        let mut scene = Scene {
            road,
            track_id,
            t: self.t,
            hull: self.car.island.hull.body,
            wheels: std::array::from_fn(|i| self.car.wheel(i)),
            steering_angle: self.car.island.joint_angle(0),
            score: self.score,
            colors: self.colors,
            backdrop: None,
            side_bars: 0.0,
            indicators: !indicators,
            blob: None,
        };
        self.variants.dress(&mut scene);
        if grass {
            scene.colors.grass = scene.colors.field;
        }
        scene
    }
}

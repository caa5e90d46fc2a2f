//! Shifts of senses: which sensor is shown where, and which are shown at all.
//!
//! A sensor is a number of a vector, or a square patch of a picture in all of its frames. Operators of this kind do not
//! touch values: they rearrange [`Sensors`], and the observation is put together from it once.

use foveate_core::{Image, Seed};

use super::operator::{Moment, Operator};
use super::sensors::{NOWHERE, Sensor, Sensors};

/// A number of things for a share of `count`.
fn part(share: f64, count: usize) -> usize {
    // Shares such as 0.7 are a little below what they are meant to be.
    ((share * count as f64 + 1e-9) as usize).min(count)
}

/// A random order of `0..count` in `order`, whose capacity is kept.
fn draw(order: &mut Vec<u32>, count: usize, dice: Seed) {
    order.clear();
    order.extend(0..count as u32);
    shuffle(order, dice);
}

/// Fisher and Yates' shuffle.
fn shuffle(list: &mut [u32], dice: Seed) {
    let mut rng = dice.rng();
    for i in (1..list.len()).rev() {
        list.swap(i, rng.below(i as u64 + 1) as usize);
    }
}

/// Some sensors exchange their places: once per episode, or again every so many steps.
#[derive(Debug, Clone)]
pub(super) struct Shuffle {
    episode: Seed,
    /// Shuffles that were asked for in this episode.
    asked: u64,
    /// The draw that the lists below belong to: number of sensors, of those that move, and the seed.
    drawn: Option<(usize, usize, Seed)>,
    /// The places that change.
    places: Vec<u32>,
    /// Whose sensor each of them gets.
    sources: Vec<u32>,
    before: Vec<Sensor>,
}

impl Shuffle {
    pub(super) const fn new() -> Self {
        Shuffle {
            episode: Seed::root(0),
            asked: 0,
            drawn: None,
            places: vec![],
            sources: vec![],
            before: vec![],
        }
    }
}

impl Operator for Shuffle {
    fn moves_things(&self) -> bool {
        true
    }

    fn begin(&mut self, _: Image<'_>, dice: Seed) {
        (self.episode, self.asked, self.drawn) = (dice, 0, None);
    }

    fn shuffle_now(&mut self) -> bool {
        self.asked += 1;
        true
    }

    fn arrange(&mut self, sensors: &mut Sensors, now: &Moment<'_>) {
        let count = sensors.list.len();
        let every = now.number(0, 0.0) as u64;
        let round = now.step.checked_div(every).unwrap_or(0);
        let dice = self.episode.child("round", round).child("asked", self.asked);
        // One alone has nobody to change places with.
        let moving = part(now.amount, count).max(2).min(count);
        if self.drawn != Some((count, moving, dice)) {
            draw(&mut self.places, count, dice.child("places", 0));
            self.places.truncate(moving);
            self.sources.clone_from(&self.places);
            shuffle(&mut self.sources, dice.child("sources", 0));
            self.drawn = Some((count, moving, dice));
        }
        self.before.clone_from(&sensors.list);
        for (&place, &source) in self.places.iter().zip(&self.sources) {
            sensors.list[place as usize] = self.before[source as usize];
        }
    }
}

/// More numbers, of noise, behind the world's own.
#[derive(Debug, Clone)]
pub(super) struct NoiseChannels;

impl Operator for NoiseChannels {
    fn arrange(&mut self, sensors: &mut Sensors, now: &Moment<'_>) {
        let deviation = now.number(0, 0.1);
        let mut rng = now.dice.rng();
        for _ in 0..now.amount.round() as usize {
            let value = (rng.normal() * deviation) as f32;
            sensors.list.push(Sensor { from: NOWHERE, value, present: true });
        }
    }
}

/// All numbers again, once or several times.
#[derive(Debug, Clone)]
pub(super) struct Doubled;

impl Operator for Doubled {
    fn arrange(&mut self, sensors: &mut Sensors, now: &Moment<'_>) {
        let count = sensors.list.len();
        for _ in 0..now.amount.round() as usize {
            sensors.list.extend_from_within(..count);
        }
    }
}

/// Sensors that are not there, the same ones for the whole episode.
#[derive(Debug, Clone)]
pub(super) struct Missing {
    episode: Seed,
    drawn: Option<usize>,
    /// All sensors, those that go missing first.
    order: Vec<u32>,
}

impl Missing {
    pub(super) const fn new() -> Self {
        Missing { episode: Seed::root(0), drawn: None, order: vec![] }
    }
}

impl Operator for Missing {
    fn begin(&mut self, _: Image<'_>, dice: Seed) {
        (self.episode, self.drawn) = (dice, None);
    }

    fn arrange(&mut self, sensors: &mut Sensors, now: &Moment<'_>) {
        let count = sensors.list.len();
        if self.drawn != Some(count) {
            draw(&mut self.order, count, self.episode);
            self.drawn = Some(count);
        }
        let there = sensors.list.iter().filter(|sensor| sensor.present).count();
        let mut left = part(now.number(0, now.amount), there);
        for &place in &self.order {
            let present = &mut sensors.list[place as usize].present;
            if left > 0 && *present {
                *present = false;
                left -= 1;
            }
        }
    }
}

//! Delayed and lost observations.

use foveate_core::{Image, Seed};

use super::operator::{Moment, Operator, Picture};

/// Largest delay in steps.
const LATEST: usize = 8;

/// Every picture is delayed by some steps; until the first one arrives, the oldest known picture is shown.
#[derive(Debug, Clone)]
pub(super) struct Delay {
    /// The picture of step `t` at `t % (LATEST + 1)`.
    ring: Vec<Vec<u8>>,
    /// The first step whose picture is in the ring.
    first: Option<u64>,
}

impl Delay {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Delay { ring: vec![vec![0; width * height * 3]; LATEST + 1], first: None }
    }
}

impl Operator for Delay {
    fn moves_things(&self) -> bool {
        true
    }

    fn begin(&mut self, _: Image<'_>, _: Seed) {
        self.first = None;
    }

    fn watch(&mut self, rgb: &[u8], now: &Moment<'_>) {
        self.first.get_or_insert(now.step);
        self.ring[now.step as usize % (LATEST + 1)].copy_from_slice(rgb);
    }

    fn look(&mut self, picture: &mut Picture<'_>, now: &Moment<'_>) {
        let late = (now.amount.round() as u64).min(LATEST as u64);
        let step = now.step.saturating_sub(late).max(self.first.unwrap_or(now.step));
        picture.rgb.copy_from_slice(&self.ring[step as usize % (LATEST + 1)]);
    }
}

/// Lost pictures: the agent keeps seeing the last one that arrived.
#[derive(Debug, Clone)]
pub(super) struct Lost {
    last: Vec<u8>,
    any: bool,
}

impl Lost {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Lost { last: vec![0; width * height * 3], any: false }
    }
}

impl Operator for Lost {
    fn moves_things(&self) -> bool {
        true
    }

    fn begin(&mut self, _: Image<'_>, _: Seed) {
        self.any = false;
    }

    fn watch(&mut self, rgb: &[u8], now: &Moment<'_>) {
        let arrives = now.dice.rng().next_f64() >= now.amount;
        if arrives || !self.any {
            self.last.copy_from_slice(rgb);
            self.any = true;
        }
    }

    fn look(&mut self, picture: &mut Picture<'_>, _: &Moment<'_>) {
        picture.rgb.copy_from_slice(&self.last);
    }
}

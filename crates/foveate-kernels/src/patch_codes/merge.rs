//! Finds the distinct patches of a stack of pictures, up to their brightness, in an order of their own.

use super::CodesShape;
use crate::Level;
use crate::lanes::{Isa, Task};

/// The distinct patches.
#[derive(Debug, Clone)]
pub(super) struct Merged {
    /// Bytes of a patch, padded to a multiple of 8.
    stride: usize,
    /// `[patches, stride]`: bytes of the distinct patches, `[frame, row, column]`, less the smallest.
    bytes: Vec<u8>,
    /// Hash table from a patch to its index among the distinct ones, plus one; 0 means empty.
    slots: Vec<u32>,
    /// `[patches]`: index of each patch's distinct one in order of appearance; [`MISSING`] for a missing one.
    group: Vec<u32>,
    /// `[distinct]`: hash and index in order of appearance; sorted by content afterwards.
    order: Vec<(u64, u32)>,
    /// `[distinct]`: number of patches of each, in order of appearance.
    multiplicity: Vec<u32>,
    /// `[distinct]`: the first patch of each, in order of appearance.
    first: Vec<u32>,
    /// `[distinct]`: place in the sorted order, by order of appearance.
    place: Vec<u32>,
}

/// The group of a missing patch.
const MISSING: u32 = u32::MAX;

impl Merged {
    pub(super) fn new(shape: &CodesShape) -> Self {
        let patches = shape.patches();
        let stride = (shape.frames * shape.area()).next_multiple_of(8);
        Merged {
            stride,
            // One more, which new patches are written to.
            bytes: vec![0; (patches + 1) * stride],
            slots: vec![0; (2 * patches).next_power_of_two()],
            group: vec![0; patches],
            order: Vec::with_capacity(patches),
            multiplicity: vec![0; patches],
            first: vec![0; patches],
            place: vec![0; patches],
        }
    }

    /// Number of distinct patches.
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// The distinct patch at a place of the sorted order: its bytes, and how often it occurs.
    pub(super) fn patch(&self, place: usize) -> (&[u8], u32) {
        let number = self.order[place].1 as usize;
        (&self.bytes[number * self.stride..(number + 1) * self.stride], self.multiplicity[number])
    }

    /// For every patch, its place among the distinct ones and whether it is the first of them; `None` for a
    /// missing one.
    pub(super) fn places(&self) -> impl Iterator<Item = Option<(usize, bool)>> {
        self.group.iter().enumerate().map(|(patch, &group)| {
            let number = group as usize;
            (group != MISSING).then(|| (self.place[number] as usize, self.first[number] as usize == patch))
        })
    }

    /// Finds the distinct patches of `pixels`, `[frames, height, width]`, and sorts them by their content.
    pub(super) fn find(&mut self, level: Level, shape: &CodesShape, pixels: &[u8], present: Option<&[f32]>) {
        level.run(Find { merged: self, shape, pixels, present });
        let Merged { stride, bytes, order, place, .. } = self;
        let of = |number: u32| &bytes[number as usize * *stride..][..*stride];
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| of(a.1).cmp(of(b.1))));
        for (at, &(_, number)) in order.iter().enumerate() {
            place[number as usize] = at as u32;
        }
    }

    /// `P` is the side of a patch when it is known at compile time, else 0.
    #[inline(always)]
    fn find_for<const P: usize>(&mut self, shape: &CodesShape, pixels: &[u8], present: Option<&[f32]>) {
        let side = if P == 0 { shape.patch } else { P };
        let (width, area) = (shape.width, shape.width * shape.height);
        let columns = width / side;
        let len = shape.frames * side * side;
        let mask = self.slots.len() - 1;
        self.slots.fill(0);
        self.order.clear();
        for (patch, group) in self.group.iter_mut().enumerate() {
            if present.is_some_and(|present| present[patch] == 0.0) {
                *group = MISSING;
                continue;
            }
            // The bytes go behind those of the patches found so far.
            let number = self.order.len();
            let (known, new) = self.bytes.split_at_mut(number * self.stride);
            let new = &mut new[..self.stride];
            let corner = patch / columns * side * width + patch % columns * side;
            let mut at = 0;
            for frame in 0..shape.frames {
                for row in 0..side {
                    let from = frame * area + corner + row * width;
                    new[at..at + side].copy_from_slice(&pixels[from..from + side]);
                    at += side;
                }
            }
            let least = new[..len].iter().fold(u8::MAX, |least, &byte| least.min(byte));
            new[..len].iter_mut().for_each(|byte| *byte -= least);
            let hash = hash(new);
            let mut slot = hash as usize & mask;
            loop {
                let entry = self.slots[slot] as usize;
                if entry == 0 {
                    self.slots[slot] = number as u32 + 1;
                    self.order.push((hash, number as u32));
                    self.multiplicity[number] = 1;
                    self.first[number] = patch as u32;
                    *group = number as u32;
                    break;
                }
                let other = entry - 1;
                if self.order[other].0 == hash && known[other * self.stride..][..self.stride] == *new {
                    self.multiplicity[other] += 1;
                    *group = other as u32;
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
    }
}

struct Find<'a> {
    merged: &'a mut Merged,
    shape: &'a CodesShape,
    pixels: &'a [u8],
    present: Option<&'a [f32]>,
}

impl Task for Find<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, _: I) {
        let Find { merged, shape, pixels, present } = self;
        if shape.patch == 6 {
            merged.find_for::<6>(shape, pixels, present);
        } else {
            merged.find_for::<0>(shape, pixels, present);
        }
    }
}

/// Hashes bytes, a multiple of 8.
#[inline(always)]
fn hash(bytes: &[u8]) -> u64 {
    const K: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93];
    let mut lanes = [K[1], K[0]];
    for (i, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        let lane = &mut lanes[i % 2];
        *lane = (*lane ^ u64::from_le_bytes(*word)).wrapping_mul(K[0]);
        *lane ^= *lane >> 29;
    }
    let both = (lanes[0] ^ lanes[1].rotate_left(32)).wrapping_mul(K[1]);
    both ^ both >> 32
}

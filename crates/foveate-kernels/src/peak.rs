//! The most that a core computes, for measurements.

use std::hint::black_box;

use crate::Level;
use crate::lanes::{Isa, Lanes, Task};

/// Fused multiply-adds of a round of [`multiply_adds`].
pub const PER_ROUND: usize = LANES * CHAINS;

const LANES: usize = 16;
const CHAINS: usize = 12;

/// Computes `rounds` times [`PER_ROUND`] fused multiply-adds in single precision, in chains that do not depend on each other
/// and stay in registers. Returns their sum, so that they are computed at all.
///
/// Not generic, so that it is optimised as this crate is, whoever calls it. [`Level::PORTABLE`] calls the C library.
pub fn multiply_adds(level: Level, rounds: u64) -> f32 {
    if level.name() == "avx512" {
        return level.run(Chains::<CHAINS>(rounds));
    }
    // Half of the chains at a time: a chain takes two of 16 registers.
    (0..2).map(|_| level.run(Chains::<{ CHAINS / 2 }>(rounds))).sum()
}

struct Chains<const N: usize>(u64);

impl<const N: usize> Task for Chains<N> {
    type Out = f32;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> f32 {
        let mut sums = [isa.splat16(0.5); N];
        let (scale, shift) = (isa.splat16(black_box(0.999)), isa.splat16(black_box(1e-3)));
        for _ in 0..self.0 {
            for sum in &mut sums {
                *sum = sum.mul_add(scale, shift);
            }
        }
        sums.iter().map(|sum| sum.sum()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain x → 0.999 x + 0.001 goes from 0.5 towards 1: after `n` steps it is 1 − 0.5 · 0.999^n.
    #[test]
    fn every_chain_has_as_many_steps_as_rounds() {
        for level in Level::available() {
            for rounds in [0, 1, 700] {
                let expect = PER_ROUND as f64 * (1.0 - 0.5 * 0.999_f64.powi(rounds));
                let got = f64::from(multiply_adds(level, rounds as u64));
                assert!((got - expect).abs() < 1e-3 * expect, "{level}, {rounds}: {got}, not {expect}");
            }
        }
    }
}

//! Bounds around any strategy: all genomes stay within `low..=high`.
//!
//! Genomes outside the bounds are repaired before evaluation, and the strategy learns from the repaired
//! genomes and their fitness (see [`Evolver::population_mut`]): every strategy here computes its steps from
//! the evaluated genomes, never from the random numbers behind them. Resampling is not offered: a genome of
//! thousands of parameters would hardly ever be entirely inside.
//!
//! The inner search is not constrained, and its centre may be slightly outside; the mean, the centre and the
//! recommended weights are clipped to the bounds.

use foveate_core::{EvolveError, Evolver, Population, Progress, StateDict};
use serde::{Deserialize, Serialize};

/// The range of genomes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// The smallest value of every parameter.
    pub low: f64,
    /// The largest value of every parameter, above `low`.
    pub high: f64,
    /// How parameters outside are repaired.
    #[serde(default)]
    pub repair: Repair,
}

/// How a parameter that was sampled outside its bounds is repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// It is reflected at the bound it crossed, repeatedly if necessary: as far inside as it was outside. The
    /// search keeps its spread at the bound.
    #[default]
    Reflect,
    /// It is set to the bound. Optima on the bound are reached exactly; a search whose mean is outside the
    /// bounds by many standard deviations sees no differences any more.
    Clip,
}

impl Bounds {
    /// Checks that the values are valid.
    ///
    /// # Errors
    /// [`EvolveError::BadConfig`] with the bounds.
    pub fn check(&self) -> Result<(), EvolveError> {
        let Bounds { low, high, .. } = *self;
        // In single precision, the type of genomes.
        let (low32, high32) = (low as f32, high as f32);
        if low32.is_finite() && high32.is_finite() && low32 < high32 {
            return Ok(());
        }
        let why = format!(
            "bounds = [{low}, {high}]; low must be below high, both within single precision; leave them out for none"
        );
        Err(EvolveError::BadConfig { why })
    }

    /// The nearest value within the bounds.
    fn clip(&self, x: f64) -> f64 {
        x.clamp(self.low, self.high)
    }

    /// `x`, moved into the bounds.
    pub(crate) fn repair(&self, x: f32) -> f32 {
        let (low, high) = (self.low, self.high);
        let wide = f64::from(x);
        if (low..=high).contains(&wide) {
            return x;
        }
        let inside = match self.repair {
            Repair::Clip => self.clip(wide),
            Repair::Reflect => {
                let width = high - low;
                // A triangle wave of period 2·width that is the identity inside.
                let along = (wide - low).rem_euclid(2.0 * width);
                low + if along > width { 2.0 * width - along } else { along }
            }
        };
        // Rounding may cross the bound again.
        (inside as f32).clamp(round_up(low), round_down(high))
    }
}

/// The smallest single-precision number that is not below `x`.
fn round_up(x: f64) -> f32 {
    let near = x as f32;
    if f64::from(near) < x { near.next_up() } else { near }
}

/// The largest single-precision number that is not above `x`.
fn round_down(x: f64) -> f32 {
    -round_up(-x)
}

/// A strategy within bounds; see the [module](self).
pub struct Bounded {
    bounds: Bounds,
    inner: Box<dyn Evolver>,
    /// `[n_params]`: the mean, clipped to the bounds.
    mean: Vec<f32>,
    centre: Vec<f64>,
    recommended: Vec<f64>,
}

impl Bounded {
    /// Keeps the genomes of `inner`, which must not have been asked yet, within `bounds`.
    ///
    /// # Errors
    /// When the bounds are invalid or the start is outside.
    pub fn new(bounds: Bounds, inner: Box<dyn Evolver>) -> Result<Self, EvolveError> {
        bounds.check()?;
        let Bounds { low, high, .. } = bounds;
        if let Some((i, x)) = inner.centre().iter().enumerate().find(|(_, x)| !(low..=high).contains(*x)) {
            let why = format!(
                "parameter {i} of the start is {x}, outside of bounds = [{low}, {high}]; widen them or start inside"
            );
            return Err(EvolveError::BadConfig { why });
        }
        let n = inner.centre().len();
        let mut bounded =
            Bounded { bounds, inner, mean: vec![0.0; n], centre: vec![0.0; n], recommended: vec![0.0; n] };
        bounded.look();
        Ok(bounded)
    }

    /// Copies the state of the inner strategy.
    fn look(&mut self) {
        for (to, &from) in self.mean.iter_mut().zip(self.inner.mean()) {
            *to = from.clamp(round_up(self.bounds.low), round_down(self.bounds.high));
        }
        for (to, &from) in self.centre.iter_mut().zip(self.inner.centre()) {
            *to = self.bounds.clip(from);
        }
        for (to, &from) in self.recommended.iter_mut().zip(self.inner.recommended()) {
            *to = self.bounds.clip(from);
        }
    }
}

impl Evolver for Bounded {
    fn ask(&mut self) -> &Population {
        self.inner.ask();
        // Values inside are unchanged, so asking twice gives the same.
        let population = self.inner.population_mut();
        for i in 0..population.len() {
            for x in population.genome_mut(i) {
                *x = self.bounds.repair(*x);
            }
        }
        population
    }

    fn population_mut(&mut self) -> &mut Population {
        self.inner.population_mut()
    }

    fn tell(&mut self, fitness: &[f64]) -> Result<Progress, EvolveError> {
        let progress = self.inner.tell(fitness)?;
        self.look();
        Ok(progress)
    }

    fn mean(&self) -> &[f32] {
        &self.mean
    }

    fn centre(&self) -> &[f64] {
        &self.centre
    }

    fn recommended(&self) -> &[f64] {
        &self.recommended
    }

    fn generation(&self) -> u64 {
        self.inner.generation()
    }

    /// The state of the inner strategy; the bounds add nothing.
    fn state(&self) -> StateDict {
        self.inner.state()
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        self.inner.restore(state)?;
        self.look();
        Ok(())
    }

    fn restore_changed(&mut self, state: &StateDict) -> Result<(), EvolveError> {
        self.inner.restore_changed(state)?;
        self.look();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repairs_by_hand() {
        let check = |repair, low, high, x: f32, expect: f32| {
            let got = Bounds { low, high, repair }.repair(x);
            assert!((got - expect).abs() < 1e-6, "{repair:?} {low}..{high}: {x} became {got}, not {expect}");
        };
        for repair in [Repair::Reflect, Repair::Clip] {
            check(repair, -1.0, 2.0, 1.5, 1.5);
            check(repair, -1.0, 2.0, -1.0, -1.0);
            check(repair, -1.0, 2.0, 2.0, 2.0);
        }
        check(Repair::Clip, -1.0, 2.0, 2.5, 2.0);
        check(Repair::Clip, -1.0, 2.0, -7.0, -1.0);
        check(Repair::Reflect, -1.0, 2.0, 2.5, 1.5);
        check(Repair::Reflect, -1.0, 2.0, -1.25, -0.75);
        check(Repair::Reflect, -1.0, 2.0, 5.5, -0.5); // down to the low bound and up again
        check(Repair::Reflect, -1.0, 2.0, 8.0, 2.0);
    }

    #[test]
    fn what_is_repaired_is_inside_to_the_last_bit() {
        // 0.1 and 0.3 are not single-precision numbers: the nearest ones are on either side.
        for repair in [Repair::Reflect, Repair::Clip] {
            let bounds = Bounds { low: 0.1, high: 0.3, repair };
            let mut rng = foveate_core::Seed::root(4).rng();
            for x in [0.1_f32, 0.3, f32::MAX, f32::MIN, 0.1_f32.next_down(), 0.3_f32.next_up()]
                .into_iter()
                .chain((0..2000).map(|_| rng.uniform(-2.0, 2.0) as f32))
            {
                let inside = bounds.repair(x);
                assert!((0.1..=0.3).contains(&f64::from(inside)), "{repair:?}: {x} became {inside}");
                assert_eq!(bounds.repair(inside), inside, "a second repair changes nothing");
            }
        }
    }
}

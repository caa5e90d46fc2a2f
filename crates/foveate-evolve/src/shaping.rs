//! Fitness shaping: converts fitness to weights of the genomes.

use serde::{Deserialize, Serialize};

/// How fitness is converted to the weight of a genome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shaping {
    /// By rank, evenly from 0.5 for the best to −0.5 for the worst (Salimans et al. 2017): only the order matters.
    #[default]
    CentredRanks,
    /// `(f − mean) / standard deviation` over the population: distances matter, offset and scale do not.
    Standardised,
}

impl Shaping {
    /// Its number in a saved state's settings.
    pub(crate) const fn number(self) -> f64 {
        match self {
            Shaping::CentredRanks => 0.0,
            Shaping::Standardised => 1.0,
        }
    }
}

/// Converts fitness to weights, without allocating.
#[derive(Debug, Clone)]
pub(crate) struct Shaper {
    shaping: Shaping,
    /// Weight of each rank, best first.
    of_rank: Vec<f64>,
    /// Scratch: genome indices, best first.
    order: Vec<usize>,
    /// Weight of each genome.
    weights: Vec<f64>,
}

impl Shaper {
    pub(crate) fn new(shaping: Shaping, population: usize) -> Self {
        let last = (population - 1) as f64;
        let of_rank = (0..population).map(|rank| 0.5 - rank as f64 / last).collect();
        Shaper { shaping, of_rank, order: Vec::with_capacity(population), weights: vec![0.0; population] }
    }

    /// The utilities of natural evolution strategies (Wierstra et al. 2014, section 3.1): logarithmic for the
    /// better half, equal for the worse half, with sum zero.
    pub(crate) fn natural(population: usize) -> Self {
        let half = (population as f64 / 2.0 + 1.0).ln();
        let raw = |rank: usize| (half - (rank as f64).ln()).max(0.0);
        let sum: f64 = (1..=population).map(raw).sum();
        let of_rank = (1..=population).map(|rank| raw(rank) / sum - 1.0 / population as f64).collect();
        Shaper { of_rank, ..Self::new(Shaping::CentredRanks, population) }
    }

    /// `[n_genomes]`: the weight of each genome. Genomes of equal fitness share the weights of the ranks they
    /// occupy, so their order in the population has no effect.
    pub(crate) fn weights(&mut self, fitness: &[f64]) -> &[f64] {
        match self.shaping {
            Shaping::CentredRanks => self.by_rank(fitness),
            Shaping::Standardised => self.standardise(fitness),
        }
        &self.weights
    }

    /// As [`Shaper::weights`] by rank, each with its genome, best first; among equals the earlier one first.
    pub(crate) fn ranked(&mut self, fitness: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        self.by_rank(fitness);
        self.order.iter().map(|&i| (i, self.weights[i]))
    }

    fn by_rank(&mut self, fitness: &[f64]) {
        best_first(fitness, &mut self.order);
        let mut rank = 0;
        while rank < self.order.len() {
            let value = fitness[self.order[rank]];
            let ties = self.order[rank..].iter().take_while(|&&i| fitness[i] == value).count();
            let weight = self.of_rank[rank..rank + ties].iter().sum::<f64>() / ties as f64;
            for &i in &self.order[rank..rank + ties] {
                self.weights[i] = weight;
            }
            rank += ties;
        }
    }

    fn standardise(&mut self, fitness: &[f64]) {
        let n = fitness.len() as f64;
        let mean: f64 = fitness.iter().map(|f| f / n).sum();
        let largest = fitness.iter().map(|f| (f - mean).abs()).fold(0.0, f64::max);
        // Scaled by the largest value, so that no square overflows. If all are equal, all weights are 0.
        let scale = if largest > 0.0 && largest.is_finite() { largest } else { f64::INFINITY };
        for (w, f) in self.weights.iter_mut().zip(fitness) {
            *w = (f - mean) / scale;
        }
        let variance = self.weights.iter().map(|w| w * w).sum::<f64>() / n;
        if variance > 0.0 {
            let deviation = variance.sqrt();
            self.weights.iter_mut().for_each(|w| *w /= deviation);
        }
    }
}

/// Genome indices, best first; among equals the earlier genome first.
pub(crate) fn best_first(fitness: &[f64], order: &mut Vec<usize>) {
    order.clear();
    order.extend(0..fitness.len());
    // 0.0 and −0.0 are equal; no value is NaN. The index makes the order total, so an unstable sort, which
    // does not allocate, gives the same order as a stable one.
    order.sort_unstable_by(|&a, &b| {
        fitness[b].partial_cmp(&fitness[a]).unwrap_or(std::cmp::Ordering::Equal).then(a.cmp(&b))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(mut shaper: Shaper, fitness: &[f64], expect: &[f64]) {
        let weights = shaper.weights(fitness);
        assert!(
            weights.len() == expect.len() && weights.iter().zip(expect).all(|(w, e)| (w - e).abs() < 1e-12),
            "{fitness:?}: {weights:?}, not {expect:?}"
        );
    }

    #[test]
    fn weights_by_hand() {
        let ranks = |n| Shaper::new(Shaping::CentredRanks, n);
        check(ranks(2), &[1.0, 2.0], &[-0.5, 0.5]);
        check(ranks(5), &[3.0, -1.0, 9.0, 4.0, 0.0], &[0.0, -0.5, 0.5, 0.25, -0.25]);
        check(ranks(4), &[7.0, 7.0, 1.0, 0.0], &[1.0 / 3.0, 1.0 / 3.0, -0.5 / 3.0, -0.5]);
        check(ranks(3), &[0.0, -0.0, 0.0], &[0.0; 3]);
        let standard = |n| Shaper::new(Shaping::Standardised, n);
        check(standard(2), &[10.0, 20.0], &[-1.0, 1.0]);
        check(standard(3), &[5.0; 3], &[0.0; 3]);
        let low = -1.0 / 3.0_f64.sqrt();
        check(standard(4), &[0.0, 0.0, 0.0, 4.0], &[low, low, low, -3.0 * low]);
        check(standard(2), &[-1e308, 1e308], &[-1.0, 1.0]);
        let (a, b) = (3.0_f64.ln(), 1.5_f64.ln());
        check(
            Shaper::natural(4),
            &[0.0, 3.0, 1.0, 2.0],
            &[-0.25, a / (a + b) - 0.25, -0.25, b / (a + b) - 0.25],
        );
        for population in [2, 3, 32, 257] {
            assert!(Shaper::natural(population).of_rank.iter().sum::<f64>().abs() < 1e-12);
        }
    }
}

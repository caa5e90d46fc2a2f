//! Decisions opened at their attention, so that others than the policy can change what was attended to and see what it does.

/// A decision between its attention and what comes after: what each reader takes from each unit. Filled by
/// [`Policy::open`](crate::Policy::open); [`Policy::resume`](crate::Policy::resume) decides from it, changed or not.
///
/// | agent | units | readers | values |
/// |---|---|---|---|
/// | `attention-agent`, `iap` | the K selected patches, hard | one | what the controller is told about a patch |
/// | `attention-neuron` | sensors, patches | codes | a sensor's number, a patch's value |
/// | `relational` | nodes | heads, and in each the nodes that ask | a node's value in every head |
/// | `s3ta` | cells of the picture | heads | features of a cell, its place included |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Opened {
    /// Number of units that can be attended to: cells, patches, sensors, nodes.
    pub units: usize,
    /// True if the attention has selected the units, and only their values go on. The weights then are the votes that
    /// selected them: they play no part in [`Policy::resume`](crate::Policy::resume).
    pub hard: bool,
    /// `[units]`: the token of the decision's [`Attention`](crate::Attention) that each unit is: itself, unless the attention
    /// has selected.
    pub tokens: Vec<u32>,
    /// Number of readers, each with weights of its own: heads, codes, nodes that ask.
    pub readers: usize,
    /// True if each reader takes the mean of the values by its weights, so that only their ratios count, as with softmax that
    /// divides once for all units; else their sum.
    pub means: bool,
    /// `[readers, units]`: how much each reader takes of each unit.
    pub weights: Vec<f32>,
    /// `[units, width]`: what there is to take, of each unit as many numbers.
    pub values: Vec<f32>,
    /// What the scores behind the weights are sums of, by name, `[readers, units]` each; empty where they are no sums.
    pub terms: Vec<(&'static str, Vec<f32>)>,
}

impl Opened {
    /// Numbers of a unit's value.
    pub const fn width(&self) -> usize {
        match self.values.len().checked_div(self.units) {
            Some(width) => width,
            None => 0,
        }
    }

    /// `[units]`: the claim, how much each unit matters: the sum of its absolute weights over all readers; where readers take
    /// means, of the shares of a reader's weights.
    pub fn claim(&self) -> Vec<f32> {
        let mut claim = vec![0.0; self.units];
        for row in self.weights.chunks_exact(self.units.max(1)) {
            let all = if self.means { row.iter().map(|weight| weight.abs()).sum() } else { 1.0 };
            if all > 0.0 {
                for (claim, weight) in claim.iter_mut().zip(row) {
                    *claim += weight.abs() / all;
                }
            }
        }
        claim
    }

    /// `[units]`: the weights of one reader.
    ///
    /// # Panics
    /// When there is no such reader.
    pub fn row(&self, reader: usize) -> &[f32] {
        &self.weights[reader * self.units..][..self.units]
    }

    /// `[width]`: the value of one unit.
    ///
    /// # Panics
    /// When there is no such unit.
    pub fn value(&self, unit: usize) -> &[f32] {
        let width = self.width();
        &self.values[unit * width..][..width]
    }

    /// Sets weights below `share` of the largest of their reader to 0, and scales the others to the sum that all had (Mott et
    /// al. 2019, the test of hard attention). A `share` of 0 changes nothing.
    pub fn threshold(&mut self, share: f32) {
        for row in self.weights.chunks_exact_mut(self.units.max(1)) {
            let most = row.iter().copied().fold(0.0, f32::max);
            let before: f32 = row.iter().sum();
            for weight in &mut *row {
                if *weight < share * most {
                    *weight = 0.0;
                }
            }
            let after: f32 = row.iter().sum();
            if after > 0.0 && after != before {
                for weight in row.iter_mut() {
                    *weight *= before / after;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_weights_are_dropped_and_the_others_keep_the_sum() {
        let weights = vec![0.5, 0.25, 0.125, 0.125, 0.25, 0.25, 0.25, 0.25];
        let opened = Opened { units: 4, readers: 2, weights, values: vec![0.0; 8], ..Opened::default() };
        assert_eq!(opened.claim(), [0.75, 0.5, 0.375, 0.375]);
        assert_eq!(opened.width(), 2);
        let mut means = Opened { means: true, ..opened.clone() };
        means.weights[..4].iter_mut().for_each(|weight| *weight *= 8.0);
        assert_eq!(means.claim(), opened.claim(), "only ratios count");
        means.weights[..4].fill(0.0);
        assert_eq!(means.claim(), [0.25; 4], "who takes nothing claims nothing");
        let at = |share| {
            let mut changed = opened.clone();
            changed.threshold(share);
            changed.weights
        };
        assert_eq!(at(0.0), opened.weights);
        assert_eq!(at(0.25), opened.weights, "those at the limit stay");
        let third = 1.0 / 3.0;
        let expect = [2.0 * third, third, 0.0, 0.0, 0.25, 0.25, 0.25, 0.25];
        assert!(at(0.3).iter().zip(expect).all(|(a, b)| (a - b).abs() < 1e-6), "{:?}", at(0.3));
        assert_eq!(at(1.0)[..4], [1.0, 0.0, 0.0, 0.0]);
    }
}

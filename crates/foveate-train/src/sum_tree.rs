//! Numbers that are drawn in proportion to their size, as in prioritised replay (Schaul et al. 2016).

/// Sums of numbers in a binary tree: a number is changed, and found by a partial sum, in logarithmic time.
///
/// The sums depend on the numbers alone, not on the order in which they were set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SumTree {
    /// Node 1 is the root, the children of `i` are `2 i` and `2 i + 1`; the leaves are the second half.
    sums: Vec<f64>,
    /// The largest number that was ever set, 1 at first.
    pub(crate) largest: f64,
}

impl SumTree {
    pub(crate) fn new(leaves: usize) -> Self {
        let len = if leaves == 0 { 0 } else { 2 * leaves.next_power_of_two() };
        SumTree { sums: vec![0.0; len], largest: 1.0 }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sums.is_empty()
    }

    pub(crate) fn total(&self) -> f64 {
        self.sums.get(1).copied().unwrap_or(0.0)
    }

    pub(crate) fn get(&self, leaf: usize) -> f64 {
        self.sums[self.sums.len() / 2 + leaf]
    }

    pub(crate) fn set(&mut self, leaf: usize, value: f64) {
        let mut at = self.sums.len() / 2 + leaf;
        self.sums[at] = value;
        while at > 1 {
            at /= 2;
            self.sums[at] = self.sums[2 * at] + self.sums[2 * at + 1];
        }
    }

    /// The leaf at which the sum of all numbers before and its own exceeds `sum`.
    pub(crate) fn find(&self, mut sum: f64) -> usize {
        let mut at = 1;
        while at < self.sums.len() / 2 {
            let left = self.sums[2 * at];
            at *= 2;
            // Rounding must not lead to an empty half.
            if sum >= left && self.sums[at + 1] > 0.0 {
                sum -= left;
                at += 1;
            }
        }
        at - self.sums.len() / 2
    }
}

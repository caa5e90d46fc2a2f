//! Sets of shifts that belong together as the rows of a table.

use foveate_core::{Descriptor, Registry};

/// A set of shifts, named in a list of shifts like a single one.
#[derive(Debug, Clone, Copy)]
pub struct ShiftSet {
    /// The name that users type.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// The shifts, each in the syntax of a [`Plan`](super::Plan).
    pub shifts: &'static [&'static str],
}

impl Descriptor for ShiftSet {
    fn name(&self) -> &'static str {
        self.name
    }
}

/// All sets.
pub static SHIFT_SETS: Registry<ShiftSet> = Registry::new(
    "set of shifts",
    &[&ShiftSet {
        name: "reshuffle",
        about: "AttentionNeuron's table: all sensors shuffled every 25, 50, 100, 200 and 500 steps, and once per episode",
        shifts: &[
            "shuffle:5:every=25",
            "shuffle:5:every=50",
            "shuffle:5:every=100",
            "shuffle:5:every=200",
            "shuffle:5:every=500",
            "shuffle:5",
        ],
    }],
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shift::Plan;

    #[test]
    fn every_set_is_of_shifts_that_exist() {
        for set in SHIFT_SETS.iter() {
            for text in set.shifts {
                let plan: Plan = text.parse().unwrap_or_else(|error| panic!("{}: {error}", set.name));
                assert_eq!(plan.to_string(), *text, "as it is written in tables");
            }
            assert!(crate::shift::SHIFTS.get(set.name).is_none(), "{} is also a shift", set.name);
        }
    }
}

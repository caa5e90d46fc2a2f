//! Finds bit-identical rows of queries and keys by hashing: pictures have large areas of one colour.

use crate::lanes::Eight;

/// The distinct rows of an [`Embedded`](crate::Embedded).
#[derive(Debug, Clone)]
pub(crate) struct Distinct {
    /// Hash table from a row to its index among the distinct rows, plus one; 0 means empty.
    slots: Vec<u32>,
    /// `[patches]`: index of each patch's distinct row.
    pub(crate) group: Vec<u32>,
    /// Number of distinct rows.
    pub(crate) count: usize,
    /// `[count]`: the first patch with this row.
    pub(crate) first: Vec<u32>,
    /// `[count]`: number of patches with this row.
    pub(crate) multiplicity: Vec<f32>,
}

impl Distinct {
    /// Allocates space for `patches` rows.
    pub(crate) fn new(patches: usize) -> Self {
        Distinct {
            slots: vec![0; (2 * patches).next_power_of_two()],
            group: vec![0; patches],
            count: 0,
            first: vec![0; patches],
            multiplicity: vec![0.0; patches],
        }
    }

    /// Finds the distinct rows of `embedded`, each `per_row` groups of eight, numbered in order of
    /// appearance.
    #[inline(always)]
    pub(crate) fn find(&mut self, embedded: &[Eight], per_row: usize) {
        let (slots, group) = (self.slots.as_mut_slice(), self.group.as_mut_slice());
        let (first, multiplicity) = (self.first.as_mut_slice(), self.multiplicity.as_mut_slice());
        slots.fill(0);
        multiplicity.fill(0.0);
        let mask = slots.len() - 1;
        let mut distinct = 0;
        for (patch, (row, group)) in embedded.chunks_exact(per_row).zip(group).enumerate() {
            let mut slot = hash(row) as usize & mask;
            loop {
                // Whether a row is new is unpredictable, so there is no branch on it: an empty slot refers to
                // the row itself, which equals itself.
                let entry = slots[slot] as usize;
                let new = entry == 0;
                let known = first[entry.saturating_sub(1)] as usize;
                let other = if new { patch } else { known } * per_row;
                if same(row, &embedded[other..other + per_row]) {
                    let number = if new { distinct } else { entry - 1 };
                    slots[slot] = number as u32 + 1;
                    *group = number as u32;
                    first[number] = (other / per_row) as u32;
                    multiplicity[number] += 1.0;
                    distinct += usize::from(new);
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
        self.count = distinct;
    }
}

/// Hashes the bits of a row.
#[inline(always)]
fn hash(row: &[Eight]) -> u64 {
    // Odd constants with well-mixed bits. The highest bits of a product are mixed best.
    const K: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xd6e8_feb8_6659_fd93, 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let mut hash = 0_u64;
    for eight in row {
        for (i, &k) in K.iter().enumerate() {
            let word = u64::from(eight.0[2 * i].to_bits()) | u64::from(eight.0[2 * i + 1].to_bits()) << 32;
            hash ^= word.wrapping_mul(k);
        }
        hash = (hash ^ hash >> 32).wrapping_mul(K[0]);
    }
    hash >> 32
}

/// Returns whether two rows are bit-identical.
#[inline(always)]
fn same(a: &[Eight], b: &[Eight]) -> bool {
    a.iter().zip(b).all(|(a, b)| {
        let mut difference = 0;
        for i in 0..8 {
            difference |= a.0[i].to_bits() ^ b.0[i].to_bits();
        }
        difference == 0
    })
}

//! Compares votes to the definition in double precision, on every instruction set.

use foveate_kernels::vote::Votes;
use foveate_kernels::{Embedded, Level};
use proptest::prelude::*;

/// Rows of a query and a key.
type Rows = Vec<(Vec<f32>, Vec<f32>)>;

/// The importance of every row, bit-identical on all levels, and the number of distinct rows.
#[track_caller]
fn compute(rows: &Rows) -> (Vec<f32>, usize) {
    let dim = rows[0].0.len();
    let mut embedded = Embedded::new(rows.len(), dim);
    for (patch, (query, key)) in rows.iter().enumerate() {
        embedded.set(patch, query, key);
    }
    let mut votes = Votes::new(rows.len(), dim);
    let mut portable = vec![f32::NAN; rows.len()];
    votes.compute(Level::PORTABLE, &embedded, &mut portable);
    for level in Level::available() {
        // Computed twice with the same scratch space: the second result must not depend on the first.
        for _ in 0..2 {
            let mut importance = vec![f32::NAN; rows.len()];
            votes.compute(level, &embedded, &mut importance);
            for (i, (a, b)) in importance.iter().zip(&portable).enumerate() {
                assert_eq!(a.to_bits(), b.to_bits(), "{level}: importance[{i}] is {a}, portable {b}");
            }
        }
    }
    (portable, votes.distinct())
}

/// Direct implementation of the definition, in double precision, with the largest |logit| that occurs.
fn define(rows: &Rows) -> (Vec<f64>, f64) {
    let mut importance = vec![0.0; rows.len()];
    let mut largest = 0.0_f64;
    for (query, _) in rows {
        let dot =
            |key: &[f32]| -> f64 { query.iter().zip(key).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum() };
        let logits: Vec<f64> = rows.iter().map(|(_, key)| dot(key)).collect();
        let peak = logits.iter().copied().fold(f64::MIN, f64::max);
        let powers: Vec<f64> = logits.iter().map(|x| (x - peak).exp2()).collect();
        let sum: f64 = powers.iter().sum();
        for (importance, power) in importance.iter_mut().zip(&powers) {
            *importance += power / sum;
        }
        largest = logits.iter().fold(largest, |largest, x| largest.max(x.abs()));
    }
    (importance, largest)
}

#[track_caller]
fn check(rows: &Rows) {
    let (got, distinct) = compute(rows);
    let (want, largest) = define(rows);
    let mut keys: Vec<Vec<u32>> =
        rows.iter().map(|(q, k)| q.iter().chain(k).map(|v| v.to_bits()).collect()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(distinct, keys.len(), "rows that differ");
    // The error of f32 logits is a few units in the last place of the largest, and the relative error of a
    // vote is as large.
    let tolerance = 5e-6 + largest * 5e-7;
    for (i, (got, want)) in got.iter().zip(&want).enumerate() {
        let error = (f64::from(*got) - want).abs();
        assert!(error <= tolerance * want + 1e-30, "importance[{i}] is {got}, the definition gives {want}");
    }
    let total: f64 = got.iter().map(|&v| f64::from(v)).sum();
    let n = rows.len() as f64;
    assert!((total - n).abs() < 1e-5 * n, "{total} votes of {n}");
}

/// Up to 70 rows of up to 9 numbers within ±`amplitude`, some of them equal.
fn rows(amplitude: f32) -> impl Strategy<Value = Rows> {
    (1..=9_usize, 1..=70_usize).prop_flat_map(move |(dim, n)| {
        let numbers = || proptest::collection::vec(-amplitude..=amplitude, dim);
        let pool = proptest::collection::vec((numbers(), numbers()), 1..=n);
        (pool, proptest::collection::vec(any::<prop::sample::Index>(), n))
            .prop_map(|(pool, picks)| picks.iter().map(|pick| pick.get(&pool).clone()).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn small_logits(rows in rows(1.5)) {
        check(&rows);
    }

    #[test]
    fn logits_that_need_their_maximum_in_some_rows(rows in rows(9.0)) {
        check(&rows);
    }

    #[test]
    fn logits_that_need_their_maximum(rows in rows(30.0)) {
        check(&rows);
    }

    /// Beyond the resolution of f32, votes still add up, are finite, and are equal on all levels.
    #[test]
    fn absurd_logits(rows in rows(f32::MAX)) {
        let (got, _) = compute(&rows);
        let total: f64 = got.iter().map(|&v| f64::from(v)).sum();
        let n = rows.len() as f64;
        prop_assert!(got.iter().all(|v| *v >= 0.0), "{got:?}");
        prop_assert!((total - n).abs() < 1e-5 * n, "{total} votes of {n}");
    }
}

#[test]
fn equal_rows_get_equal_votes() {
    for n in [1, 2, 15, 16, 17, 33, 529] {
        for value in [0.0, 1.0, -7.0, 1e15] {
            let (got, distinct) = compute(&vec![(vec![value; 4], vec![value; 4]); n]);
            assert_eq!(distinct, 1);
            assert!(got.iter().all(|v| v == &got[0]), "{got:?}");
            assert!((got[0] - 1.0).abs() < 1e-5, "{n} rows of {value}: {}", got[0]);
        }
    }
}

#[test]
fn one_row_far_above_the_others() {
    // q·k is 3,000 for the first key and -3,000 for the others: without the maximum, all would be lost.
    let mut rows: Rows = vec![(vec![30.0, 30.0, 30.0, 10.0], vec![-30.0, -30.0, -30.0, -30.0]); 40];
    rows[0].1 = vec![30.0; 4];
    let (got, _) = compute(&rows);
    assert!((got[0] - 40.0).abs() < 1e-4, "{}", got[0]);
    assert!(got[1..].iter().all(|&v| v < 1e-30), "{:?}", &got[1..]);
}

/// Rows are processed in blocks of two or four: the result must not depend on whether a neighbour needs its
/// maximum, not even for small logits that need none themselves.
#[test]
fn neighbours_in_a_block_do_not_disturb_each_other() {
    let mut rows: Rows =
        (0..7).map(|i| (vec![-9.9, 0.0, 0.0, i as f32 * 1e-3], vec![10.0, 0.0, 0.0, 0.1])).collect();
    rows[6].0 = vec![-2000.0; 4];
    check(&rows);
}

#[test]
fn not_a_number_saturates() {
    let mut rows: Rows = vec![(vec![1.0; 4], vec![1.0; 4]); 5];
    rows[2] = (vec![f32::NAN; 4], vec![f32::INFINITY, f32::NEG_INFINITY, 0.0, 0.0]);
    let (got, _) = compute(&rows);
    assert!(got.iter().all(|v| v.is_finite()), "{got:?}");
}

#[test]
#[should_panic(expected = "patches")]
fn scratch_space_of_another_size() {
    Votes::new(3, 4).compute(Level::best(), &Embedded::new(4, 4), &mut [0.0; 4]);
}

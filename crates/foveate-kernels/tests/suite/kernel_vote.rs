//! Compares votes by kernels to the definition in double precision and quadratic time, on every instruction
//! set.

use crate::common::{Case, Kernel, Rows, compute, dot, numbers, on_all_levels};
use foveate_kernels::kernel_vote::{KernelVotes, PairVotes, Side, VoteError};
use proptest::prelude::*;

/// A case and rows within ±`amplitude`, drawn from `seed`; with the projections and hyperplanes that the
/// kernel needs.
fn draw(
    kernel: Kernel,
    (dim, m, n): (usize, usize, usize),
    patches: usize,
    amplitude: f32,
    seed: u64,
) -> (Case, Rows) {
    let mut numbers = numbers(seed);
    let mut take = |n: usize, size: f32| -> Vec<f32> { numbers.by_ref().take(n).map(|x| x * size).collect() };
    let hybrid = matches!(kernel, Kernel::Hybrid | Kernel::HybridHyperbolic);
    let case = Case {
        kernel,
        dim,
        omega: take(m * dim, 2.0),
        planes: take(if hybrid { n * dim } else { 0 }, 1.0),
        same_length: None,
    };
    let rows = (0..patches).map(|_| (take(dim, amplitude), take(dim, amplitude))).collect();
    (case, rows)
}

/// Compares importances to `Σ_j c_j Φ_Q(q_i)·Φ_K(k_j)`, computed term by term.
#[track_caller]
fn check(case: &Case, rows: &Rows, c: Option<&[f32]>) {
    let mut votes = KernelVotes::new(&case.map());
    let got = compute(&mut votes, rows, c).expect("numbers within range");
    let queries: Vec<Vec<f64>> = rows.iter().map(|(q, _)| case.features(q, 1.0)).collect();
    let keys: Vec<Vec<f64>> = rows.iter().map(|(_, k)| case.features(k, -1.0)).collect();
    assert_eq!(case.map().features(), queries[0].len(), "features of {case:?}");
    let longest = rows.iter().flat_map(|(q, k)| [q, k]).map(|z| case.scaled(z)).map(|z| dot(&z, &z));
    let longest = longest.fold(0.0, f64::max);
    // The error of a sum is proportional to the size of its terms, that of an exponential to its exponent.
    let tolerance = 5e-6 + 1e-6 * longest;
    // The error of a linear feature is proportional to the terms that cancel in it.
    let linear = matches!(case.kernel, Kernel::Relu(_) | Kernel::Elu1);
    let rest = if linear { 2.0 * longest.sqrt() * (case.dim as f64).sqrt() } else { 0.0 };
    for (i, query) in queries.iter().enumerate() {
        let (mut want, mut size) = (0.0, 0.0);
        for (j, key) in keys.iter().enumerate() {
            let c = c.map_or(1.0, |c| f64::from(c[j]));
            want += c * dot(query, key);
            size += query
                .iter()
                .zip(key)
                .map(|(a, b)| c.abs() * (a.abs() + rest) * (b.abs() + rest))
                .sum::<f64>();
        }
        let unit = f64::from(votes.exponent()).exp2();
        let got = f64::from(got[i]) * unit;
        // Features below 2^-126 of the largest are 0.
        let vanishing = 1e-35 * unit * rows.len() as f64;
        assert!(
            (got - want).abs() <= tolerance * size + vanishing,
            "{case:?}: importance[{i}] of {} is {got}, the definition gives {want}",
            rows.len()
        );
    }
}

fn kernel() -> impl Strategy<Value = Kernel> {
    prop::sample::select(Kernel::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn linear_order_is_quadratic_order(
        kernel in kernel(),
        sizes in (1..=9_usize, 1..=5_usize, 1..=4_usize),
        patches in 1..=50_usize,
        amplitude in prop::sample::select(vec![0.1_f32, 1.0, 3.0]),
        (same_length, weighted) in (prop::option::of(0.1_f32..3.0), any::<bool>()),
        seed in any::<u64>(),
    ) {
        let (mut case, rows) = draw(kernel, sizes, patches, amplitude, seed);
        case.same_length = same_length;
        let c: Vec<f32> = numbers(seed ^ 1).take(patches).collect();
        check(&case, &rows, weighted.then_some(&c));
    }

    /// Lengths at which powers of e leave the range of f32, but not their products with the factored-out
    /// constants.
    #[test]
    fn long_vectors_share_one_power_of_two(
        kernel in kernel(), dim in 1..=5_usize, amplitude in 5.0_f32..12.0, seed in any::<u64>(),
    ) {
        let (case, rows) = draw(kernel, (dim, 3, 2), 20, amplitude, seed);
        check(&case, &rows, None);
    }

    #[test]
    fn without_projection(
        kernel in prop::sample::select(vec![Kernel::Relu(0.0), Kernel::Relu(0.5), Kernel::Exp, Kernel::Elu1]),
        dim in 1..=9_usize, patches in 1..=40_usize,
        amplitude in prop::sample::select(vec![1.0_f32, 50.0]), seed in any::<u64>(),
    ) {
        let (case, rows) = draw(kernel, (dim, 0, 0), patches, amplitude, seed);
        check(&case, &rows, None);
    }

    #[test]
    fn order_of_patches_does_not_matter(kernel in kernel(), seed in any::<u64>()) {
        let (case, rows) = draw(kernel, (4, 8, 7), 45, 1.0, seed);
        let order: Vec<usize> = (0..45).map(|i| i * 17 % 45).collect();
        let mixed: Rows = order.iter().map(|&i| rows[i].clone()).collect();
        let mut votes = KernelVotes::new(&case.map());
        let (plain, mixed) = (compute(&mut votes, &rows, None).unwrap(), compute(&mut votes, &mixed, None).unwrap());
        let size = plain.iter().fold(0.0_f32, |a, b| a.max(b.abs()));
        for (to, &from) in order.iter().enumerate() {
            prop_assert!((mixed[to] - plain[from]).abs() < 2e-5 * size, "{} {}", mixed[to], plain[from]);
        }
    }

    #[test]
    fn pairs_are_the_definition(
        dim in 1..=6_usize, patches in 1..=60_usize,
        amplitude in prop::sample::select(vec![0.5_f32, 4.0, 12.0]),
        (same_length, weighted) in (prop::option::of(0.1_f32..3.0), any::<bool>()), seed in any::<u64>(),
    ) {
        let (mut case, mut rows) = draw(Kernel::Exp, (dim, 0, 0), patches, amplitude, seed);
        case.same_length = same_length;
        // Some patches are equal.
        for i in 0..patches / 3 {
            rows[i] = rows[patches - 1 - i].clone();
        }
        let c: Vec<f32> = numbers(seed ^ 1).take(patches).collect();
        let c = weighted.then_some(c.as_slice());
        check_pairs(&case, &rows, c);
    }
}

#[track_caller]
fn check_pairs(case: &Case, rows: &Rows, c: Option<&[f32]>) {
    let mut votes = PairVotes::new(rows.len(), case.dim, case.same_length);
    let got =
        on_all_levels(rows, |level, embedded, to| votes.compute(level, embedded, c, to)).expect("in range");
    for (i, (q, _)) in rows.iter().enumerate() {
        let q = case.scaled(q);
        let (mut want, mut size, mut largest) = (0.0, 0.0, 0.0_f64);
        for (j, (_, k)) in rows.iter().enumerate() {
            let logit = dot(&q, &case.scaled(k));
            let term = c.map_or(1.0, |c| f64::from(c[j])) * logit.exp();
            want += term;
            size += term.abs();
            largest = largest.max(logit.abs());
        }
        let got = f64::from(got[i]) * f64::from(votes.exponent()).exp2();
        let vanishing = 1e-36 * f64::from(votes.exponent()).exp2();
        assert!(
            (got - want).abs() <= (5e-6 + 1e-6 * largest) * size + vanishing,
            "{case:?}: importance[{i}] is {got}, the definition gives {want}"
        );
    }
}

/// All kernels with the sizes of the paper, `dim` 4.
fn all(seed: u64) -> impl Iterator<Item = (Case, Rows)> {
    Kernel::ALL.into_iter().map(move |kernel| draw(kernel, (4, 8, 7), 20, 1.0, seed))
}

#[test]
fn one_patch_and_partial_blocks() {
    for patches in [1, 2, 15, 16, 17, 31, 32, 33] {
        for kernel in Kernel::ALL {
            let (case, rows) = draw(kernel, (4, 8, 7), patches, 1.0, 3);
            check(&case, &rows, None);
        }
    }
}

#[test]
fn zeros_stay_zeros() {
    for (mut case, mut rows) in all(5) {
        for same_length in [None, Some(1.5)] {
            case.same_length = same_length;
            rows[3] = (vec![0.0; 4], vec![-0.0; 4]);
            check(&case, &rows, None);
            rows.fill((vec![0.0; 4], vec![0.0; 4]));
            check(&case, &rows, None);
        }
    }
}

#[test]
fn same_length_of_the_tiniest_and_the_largest() {
    for (mut case, mut rows) in all(6) {
        case.same_length = Some(1.5);
        rows[0] = (vec![1e-40, 0.0, 1e-41, 0.0], vec![1e15, -1e15, 1e15, 1e3]);
        rows[1] = (vec![-1e15; 4], vec![1e-30, 0.0, 0.0, -1e-30]);
        if case.planes.is_empty() {
            check(&case, &rows, None);
            continue;
        }
        // The side of a plane is undefined for vectors too short to multiply in f32.
        let importance = compute(&mut KernelVotes::new(&case.map()), &rows, None).expect("in range");
        assert!(importance.iter().all(|x| x.is_finite()), "{importance:?}");
    }
}

#[test]
fn too_long_is_an_error_that_says_which() {
    for (case, mut rows) in all(7) {
        let mut votes = KernelVotes::new(&case.map());
        rows[13].1 = vec![400.0; 4];
        rows[17].1 = vec![-400.0; 4];
        let outcome = compute(&mut votes, &rows, None);
        if matches!(case.kernel, Kernel::Relu(_) | Kernel::Elu1 | Kernel::Exp) {
            outcome.expect("a length that this kernel takes");
            rows[13].1 = vec![1e5; 4];
        }
        let outcome = compute(&mut votes, &rows, None);
        if matches!(case.kernel, Kernel::Relu(_) | Kernel::Elu1) {
            outcome.expect("this kernel takes any length");
            continue;
        }
        match outcome {
            Err(VoteError::TooLong { side: Side::Key, patch: 13, norm, limit }) => {
                assert!(norm > limit && limit > 10.0, "{norm} {limit}");
            }
            other => panic!("{case:?}: {other:?}"),
        }
        // The scratch space can be used again after an error.
        rows[13].1 = vec![1.0; 4];
        rows[17].1 = vec![1.0; 4];
        check(&case, &rows, None);
    }
}

#[test]
fn overflow_is_an_error() {
    let (case, mut rows) = draw(Kernel::Relu(0.0), (4, 0, 0), 20, 1e15, 1);
    let c = vec![1e30; 20];
    let outcome = compute(&mut KernelVotes::new(&case.map()), &rows, Some(&c));
    assert!(matches!(outcome, Err(VoteError::Overflow { .. })), "{outcome:?}");
    rows.fill((vec![0.0; 4], vec![0.0; 4]));
    let importance = compute(&mut KernelVotes::new(&case.map()), &rows, Some(&c)).expect("zeros");
    assert_eq!(importance, [0.0; 20]);
}

#[test]
fn weights_must_be_finite() {
    for (case, rows) in all(8) {
        for bad in [f32::NAN, f32::INFINITY] {
            let mut c = vec![1.0; 20];
            c[11] = bad;
            let outcome = compute(&mut KernelVotes::new(&case.map()), &rows, Some(&c));
            assert!(matches!(outcome, Err(VoteError::Weight { patch: 11, .. })), "{outcome:?}");
        }
        check(&case, &rows, Some(&[0.0; 20]));
    }
}

#[test]
fn not_a_number_saturates() {
    for (case, mut rows) in all(9) {
        rows[2] = (vec![f32::NAN; 4], vec![f32::INFINITY, f32::NEG_INFINITY, 0.0, 0.0]);
        match compute(&mut KernelVotes::new(&case.map()), &rows, None) {
            Ok(importance) => assert!(importance.iter().all(|x| x.is_finite()), "{case:?}: {importance:?}"),
            Err(error) => assert!(matches!(error, VoteError::TooLong { patch: 2, .. }), "{case:?}: {error}"),
        }
    }
}

#[test]
fn what_vanishes_is_counted() {
    // With queries along one axis, e^(q·k) ranges over 2^±1000.
    let rows: Rows = (0..20).map(|i| (vec![i as f32 * 4.0 - 40.0], vec![20.0])).collect();
    let mut votes = PairVotes::new(20, 1, None);
    let got = on_all_levels(&rows, |level, embedded, to| votes.compute(level, embedded, None, to))
        .expect("in range");
    assert_eq!(votes.vanished(), got.iter().filter(|&&x| x == 0.0).count());
    assert!((16..20).contains(&votes.vanished()), "{got:?}");
    assert!((got[19] - 20.0).abs() <= 20.0 && got[19] >= 10.0, "{got:?}");
}

#[test]
fn pairs_know_their_limits() {
    let mut rows: Rows = vec![(vec![1.0; 4], vec![1.0; 4]); 20];
    let mut votes = PairVotes::new(20, 4, None);
    rows[7].0 = vec![1e15; 4];
    let outcome = on_all_levels(&rows, |level, embedded, to| votes.compute(level, embedded, None, to));
    assert!(matches!(outcome, Err(VoteError::TooLong { side: Side::Query, patch: 7, .. })), "{outcome:?}");
    rows[7].0 = vec![0.0; 4];
    let c = vec![f32::MAX; 20];
    let outcome = on_all_levels(&rows, |level, embedded, to| votes.compute(level, embedded, Some(&c), to));
    assert!(matches!(outcome, Err(VoteError::Overflow { .. })), "{outcome:?}");
}

/// Rows are processed in blocks: the result must not depend on whether a neighbour needs its maximum.
#[test]
fn neighbours_in_a_block_do_not_disturb_each_other() {
    let mut rows: Rows =
        (0..40).map(|i| (vec![i as f32 * 0.1; 4], vec![0.3, 0.1, 0.2, i as f32 * 0.01])).collect();
    let mut votes = PairVotes::new(40, 4, None);
    let mut compute = |rows: &Rows| {
        on_all_levels(rows, |level, embedded, to| votes.compute(level, embedded, None, to)).expect("in range")
    };
    let alone = compute(&rows);
    rows[1].0 = vec![-900.0; 4];
    let beside = compute(&rows);
    assert_eq!((alone[0], &alone[2..]), (beside[0], &beside[2..]));
}

#[test]
#[should_panic(expected = "length of a query")]
fn scratch_space_of_another_kernel() {
    let (case, _) = draw(Kernel::Exp, (3, 0, 0), 1, 1.0, 1);
    let rows = vec![(vec![0.0; 4], vec![0.0; 4])];
    let _ = compute(&mut KernelVotes::new(&case.map()), &rows, None);
}

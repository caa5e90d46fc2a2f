//! Approximate votes are within their bound of the definition in double precision, identically on every
//! instruction set.

use crate::common;

use crate::common::{Rows, numbers, on_all_levels};
use foveate_kernels::near_vote::{Method, NearVotes};
use foveate_kernels::top_k::top_k;
use foveate_kernels::vote::Votes;

/// Importances from the definition, in double precision.
fn define(rows: &Rows) -> Vec<f64> {
    let mut importance = vec![0.0; rows.len()];
    for (query, _) in rows {
        let logit = |key: &[f32]| -> f64 {
            query.iter().zip(key).map(|(&q, &k)| f64::from(q) * f64::from(k)).sum::<f64>()
        };
        let logits: Vec<f64> = rows.iter().map(|(_, key)| logit(key)).collect();
        let peak = logits.iter().copied().fold(f64::MIN, f64::max);
        let powers: Vec<f64> = logits.iter().map(|x| (x - peak).exp2()).collect();
        let sum: f64 = powers.iter().sum();
        for (importance, power) in importance.iter_mut().zip(&powers) {
            *importance += power / sum;
        }
    }
    importance
}

/// Checks whether votes are approximate, and if so that they are within `error`.
#[track_caller]
fn check(what: &str, rows: &Rows, error: f64, near: bool) {
    let (patches, dim) = (rows.len(), rows[0].0.len());
    let mut votes = NearVotes::new(patches, dim, error);
    let got = on_all_levels(rows, |level, embedded, to| {
        votes.compute(level, embedded, to);
        Ok(())
    })
    .expect("there is no error");
    assert_eq!(votes.method() != Method::Exact, near, "{what}: {:?}", votes.method());
    let want = define(rows);
    let worst =
        got.iter().zip(&want).map(|(&got, want)| (f64::from(got) / want - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst <= error, "{what}, {:?}: off by {worst}, allowed is {error}", votes.method());
    // The most important patches are the same, except for those that are equal within the error.
    let (mut ours, mut theirs) = (vec![0; 10.min(patches)], vec![0; 10.min(patches)]);
    let want32: Vec<f32> = want.iter().map(|&x| x as f32).collect();
    top_k(&got, &mut ours, &mut Vec::new());
    top_k(&want32, &mut theirs, &mut Vec::new());
    for (a, b) in ours.iter().zip(&theirs) {
        let (a, b) = (want[*a as usize], want[*b as usize]);
        assert!((a / b - 1.0).abs() <= 2.0 * error, "{what}: {a} chosen where {b} is as large");
    }
}

/// Rows of `dim` numbers each, scaled axis by axis.
fn rows(count: usize, dim: usize, seed: u64, scale: impl Fn(usize) -> f32) -> Rows {
    let mut numbers = numbers(seed);
    let mut take = || -> Vec<f32> {
        // The sum of three is approximately normal.
        (0..dim).map(|i| scale(i) * numbers.by_ref().take(3).sum::<f32>()).collect()
    };
    (0..count).map(|_| (take(), take())).collect()
}

#[test]
fn within_the_bound() {
    for error in [3e-5, 1e-3] {
        check("short", &rows(5200, 4, 1, |_| 0.1), error, true);
        check("one long axis", &rows(5200, 4, 2, |i| [0.05, 1.5, 0.02, 0.1][i]), error, true);
        check("two axes", &rows(5200, 2, 3, |_| 0.9), error, true);
        check("one axis", &rows(5200, 1, 4, |_| 2.0), error, true);
    }
}

#[test]
fn clusters_and_outliers() {
    let mut rows = rows(5200, 4, 5, |_| 0.05);
    for (i, (q, k)) in rows.iter_mut().enumerate() {
        // Four colours; the origin is far away.
        q[0] += [0.0, 3.0, -2.0, 1.0][i % 4] + 5.0;
        k[1] += [0.5, 1.0, -1.0, 0.0][i / 7 % 4] - 3.0;
    }
    check("clusters", &rows, 1e-4, true);
    rows[77].0 = vec![6.0, -2.0, 1.0, 0.0];
    rows[1200].1 = vec![1.0, 3.0, -3.0, 2.0];
    check("outliers", &rows, 1e-4, true);
}

#[test]
fn flat_in_all_axes_or_some() {
    check(
        "equal keys",
        &rows(2600, 3, 6, |_| 0.5).into_iter().map(|(q, _)| (q, vec![1.0; 3])).collect(),
        1e-4,
        true,
    );
    check(
        "equal queries",
        &rows(2600, 3, 7, |_| 0.5).into_iter().map(|(_, k)| (vec![1.0; 3], k)).collect(),
        1e-4,
        true,
    );
    let flat = rows(2600, 4, 8, |_| 0.5).into_iter();
    check(
        "a plane",
        &flat.map(|(q, k)| (vec![q[0], q[0], 0.0, 1.0], vec![k[0], 1.0, k[0], k[0]])).collect(),
        1e-4,
        true,
    );
}

#[test]
fn exact_where_cells_do_not_pay() {
    check("few", &rows(300, 4, 9, |_| 0.2), 1e-4, false);
    check("one", &rows(1, 4, 9, |_| 0.2), 1e-4, false);
    check("long", &rows(2100, 4, 10, |_| 3.0), 1e-4, false);
    check("many axes", &rows(2100, 9, 11, |_| 0.1), 1e-4, false);
    let mut few = rows(2600, 4, 12, |_| 0.2);
    for i in 0..1300 {
        few[i] = few[i + 1300].clone();
    }
    check("few that differ", &few, 1e-4, false);
}

#[test]
fn exact_votes_are_those_of_votes() {
    let rows = rows(2100, 4, 13, |_| 4.0);
    let embedded = common::embed(&rows);
    let level = foveate_kernels::Level::best();
    let (mut near, mut exact) = (vec![0.0; 2100], vec![0.0; 2100]);
    NearVotes::new(2100, 4, 1e-4).compute(level, &embedded, &mut near);
    Votes::new(2100, 4).compute(level, &embedded, &mut exact);
    assert_eq!(near, exact);
}

#[test]
fn absurd_numbers_end_up_exact() {
    let mut rows = rows(2100, 4, 14, |_| 0.2);
    rows[5].0 = vec![1e15, -1e15, 0.0, 1e15];
    rows[6].1 = vec![-1e15; 4];
    let mut votes = NearVotes::new(2100, 4, 1e-4);
    let got = on_all_levels(&rows, |level, embedded, to| {
        votes.compute(level, embedded, to);
        Ok(())
    })
    .expect("there is no error");
    assert_eq!(votes.method(), Method::Exact);
    assert!(got.iter().all(|x| x.is_finite()));
}

#[test]
#[should_panic(expected = "a relative error of 0")]
fn no_error_at_all_is_not_to_be_had() {
    NearVotes::new(3, 4, 0.0);
}

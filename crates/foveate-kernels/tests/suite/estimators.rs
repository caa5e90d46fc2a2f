//! Statistics of the random features: expectation and mean squared error of our estimates by Gauss–Hermite
//! quadrature, against exp(x·y) and Theorem 4.1 of "Unlocking Pixels for Reinforcement Learning via Implicit
//! Attention".
//!
//! Vectors are in a plane, so that a direction ω is two normal numbers and the expectation a sum over a grid
//! of nodes. Hyperplanes have equally spaced angles, which measure the angle between x and y exactly where it
//! is a multiple of the spacing.

use crate::common;

use std::f64::consts::PI;

use crate::common::{Case, Kernel, compute};
use foveate_kernels::kernel_vote::KernelVotes;

/// Nodes and weights for E f(g) with a standard normal g: zeros of the Hermite polynomial of degree `n`, by
/// Newton's method between those of degree n − 1.
fn gauss_hermite(n: usize) -> Vec<(f64, f64)> {
    // He_n normalised by √n!, and its derivative √n · He_(n−1).
    let hermite = |n: usize, x: f64| {
        let (mut before, mut now) = (0.0, 1.0);
        for k in 0..n {
            (before, now) = (now, (x * now - (k as f64).sqrt() * before) / ((k + 1) as f64).sqrt());
        }
        (now, before)
    };
    let mut zeros: Vec<f64> = vec![0.0];
    for degree in 2..=n {
        let edge = 2.0 * (degree as f64).sqrt() + 1.0;
        let mut fences = vec![-edge];
        fences.extend(&zeros);
        fences.push(edge);
        zeros = fences
            .windows(2)
            .map(|pair| {
                // Bisection: the polynomial changes sign once between neighbours.
                let (mut low, mut high) = (pair[0], pair[1]);
                let rising = hermite(degree, high).0 > 0.0;
                for _ in 0..80 {
                    let middle = f64::midpoint(low, high);
                    if (hermite(degree, middle).0 > 0.0) == rising { high = middle } else { low = middle }
                }
                low
            })
            .collect();
    }
    zeros.iter().map(|&x| (x, 1.0 / (n as f64 * hermite(n, x).1.powi(2)))).collect()
}

/// One estimate of exp(x·y).
fn estimate(kernel: Kernel, omega: &[f32], planes: &[f32], x: &[f32], y: &[f32]) -> f64 {
    let case = Case { kernel, dim: 2, omega: omega.to_vec(), planes: planes.to_vec(), same_length: None };
    let rows = vec![(x.to_vec(), y.to_vec())];
    // A single level: another test compares the levels.
    let mut importance = [0.0];
    KernelVotes::new(&case.map())
        .compute(foveate_kernels::Level::best(), &common::embed(&rows), None, &mut importance)
        .expect("short vectors");
    f64::from(importance[0])
}

/// Equally spaced hyperplanes.
const ANGLES: usize = 12;

fn plane(i: usize) -> [f32; 2] {
    let angle = 2.0 * PI * (i as f64 + 0.5) / ANGLES as f64;
    [angle.cos() as f32, angle.sin() as f32]
}

/// All ways to choose `n` of `of` in order, with repetition.
fn choices(of: usize, n: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..of.pow(n as u32)).map(move |mut code| {
        (0..n)
            .map(|_| {
                let digit = code % of;
                code /= of;
                digit
            })
            .collect()
    })
}

/// Mean of the estimate, and of its squared error.
fn moments(kernel: Kernel, (m, n, nodes): (usize, usize, usize), x: &[f32], y: &[f32]) -> (f64, f64) {
    let nodes = gauss_hermite(nodes);
    let truth = (f64::from(x[0] * y[0]) + f64::from(x[1] * y[1])).exp();
    let (mut mean, mut error) = (0.0, 0.0);
    for choice in choices(nodes.len(), 2 * m) {
        let omega: Vec<f32> = choice.iter().map(|&i| nodes[i].0 as f32).collect();
        let weight: f64 = choice.iter().map(|&i| nodes[i].1).product();
        if weight < 1e-14 {
            continue;
        }
        let share = weight / (ANGLES.pow(n as u32)) as f64;
        for choice in choices(ANGLES, n) {
            let planes: Vec<f32> = choice.iter().flat_map(|&i| plane(i)).collect();
            let estimate = estimate(kernel, &omega, &planes, x, y);
            mean += share * estimate;
            error += share * (estimate - truth).powi(2);
        }
    }
    (mean, error)
}

/// Equations 10, 13 and 14 for independent directions, with the hyperbolic variant of 14.
fn theorem(kernel: Kernel, m: usize, n: usize, x: &[f32], y: &[f32]) -> f64 {
    let (x, y): ([f64; 2], [f64; 2]) = ([x[0].into(), x[1].into()], [y[0].into(), y[1].into()]);
    let (xx, yy, xy) = (x[0] * x[0] + x[1] * x[1], y[0] * y[0] + y[1] * y[1], x[0] * y[0] + x[1] * y[1]);
    let (sum, difference, m) = (xx + yy + 2.0 * xy, xx + yy - 2.0 * xy, m as f64);
    let sm = xy.exp();
    let waves = sum.exp() / sm.powi(2) * (1.0 - (-difference).exp()).powi(2) / (2.0 * m);
    let plain = sum.exp() * sm.powi(2) * (1.0 - (-sum).exp()) / m;
    let hyperbolic = sum.exp() * sm.powi(2) * (1.0 - (-sum).exp()).powi(2) / (2.0 * m);
    let hybrid = |powers: f64| {
        let (p, n) = ((xy / (xx * yy).sqrt()).clamp(-1.0, 1.0).acos() / PI, n as f64);
        let both = p * (1.0 - p);
        (p * p + both / n) * powers + ((1.0 - p).powi(2) + both / n) * waves
            - 2.0 / m * (1.0 - 1.0 / n) * both * sm.powi(2) * (1.0 - (xx - yy).cos())
    };
    match kernel {
        Kernel::Trigonometric => waves,
        Kernel::Positive => plain,
        Kernel::Hyperbolic => hyperbolic,
        Kernel::Hybrid => hybrid(plain),
        Kernel::HybridHyperbolic => hybrid(hyperbolic),
        _ => unreachable!("not random"),
    }
}

fn at(length: f64, angle: f64) -> [f32; 2] {
    [(length * angle.cos()) as f32, (length * angle.sin()) as f32]
}

const RANDOM: [Kernel; 5] =
    [Kernel::Trigonometric, Kernel::Positive, Kernel::Hyperbolic, Kernel::Hybrid, Kernel::HybridHyperbolic];

#[track_caller]
fn check(kernel: Kernel, (m, n, nodes): (usize, usize, usize), lengths: (f64, f64), step: usize) {
    let n = if matches!(kernel, Kernel::Hybrid | Kernel::HybridHyperbolic) { n } else { 0 };
    let (x, y) = (at(lengths.0, 0.0), at(lengths.1, 2.0 * PI * step as f64 / ANGLES as f64));
    let (mean, error) = moments(kernel, (m, n, nodes), &x, &y);
    let truth = (f64::from(x[0] * y[0]) + f64::from(x[1] * y[1])).exp();
    let want = theorem(kernel, m, n.max(1), &x, &y);
    let what =
        format!("{kernel:?} m = {m} n = {n}, lengths {lengths:?}, angle {step}/{ANGLES} of the circle");
    assert!((mean - truth).abs() < 3e-6 * truth, "{what}: on average {mean}, the kernel is {truth}");
    // Single precision limits the squared error to about (1e-6)².
    assert!(
        (error - want).abs() < 2e-5 * want + 1e-11,
        "{what}: mean squared error {error}, by theorem {want}"
    );
}

#[test]
fn unbiased_and_as_wrong_as_theorem_4_1_says() {
    for kernel in RANDOM {
        for lengths in [(0.7, 0.7), (0.9, 0.5)] {
            for step in 0..=ANGLES / 2 {
                check(kernel, (1, 1, 24), lengths, step);
            }
        }
        for step in [1, 3, 5] {
            check(kernel, (1, 2, 16), (0.6, 0.3), step);
            check(kernel, (2, 1, 8), (0.3, 0.2), step);
        }
    }
}

/// Equal lengths: no error where x = y (trigonometric and hybrid) or x = −y (positive and hybrid).
#[test]
fn exact_at_both_ends() {
    let mut numbers = common::numbers(4);
    for _ in 0..200 {
        let mut take =
            |n: usize, size: f32| -> Vec<f32> { numbers.by_ref().take(n).map(|x| x * size).collect() };
        let (omega, planes, x) = (take(16, 3.0), take(14, 1.0), take(2, 1.0));
        let opposite: Vec<f32> = x.iter().map(|x| -x).collect();
        let square = f64::from(x[0]).powi(2) + f64::from(x[1]).powi(2);
        for (kernel, same, other) in [
            (Kernel::Trigonometric, true, false),
            (Kernel::Positive, false, true),
            (Kernel::Hyperbolic, false, true),
            (Kernel::Hybrid, true, true),
            (Kernel::HybridHyperbolic, true, true),
        ] {
            let hybrid = matches!(kernel, Kernel::Hybrid | Kernel::HybridHyperbolic);
            let planes = if hybrid { planes.as_slice() } else { &[] };
            for (exact, y, truth) in [(same, &x, square.exp()), (other, &opposite, (-square).exp())] {
                let error = (estimate(kernel, &omega, planes, &x, y) - truth).abs();
                // The terms that cancel are as large as the estimates that they belong to.
                assert!(!exact || error < 2e-5 * (truth + 1.0), "{kernel:?} at {x:?}, {y:?}: off by {error}");
            }
        }
    }
}

/// Checks the quadrature itself: moments of a normal number.
#[test]
fn quadrature_knows_normal_moments() {
    for n in [9, 16, 24] {
        let moment = |power: i32| gauss_hermite(n).iter().map(|(x, w)| w * x.powi(power)).sum::<f64>();
        for (power, want) in [(0, 1.0), (1, 0.0), (2, 1.0), (4, 3.0), (8, 105.0), (16, 2_027_025.0)] {
            assert!((moment(power) - want).abs() < 1e-10 * (want + 1.0), "moment {power}: {}", moment(power));
        }
    }
}

/// Other tests use the helper `compute`; this one also checks that its levels agree on one estimate.
#[test]
fn estimates_are_equal_on_all_levels() {
    let omega: Vec<f32> = common::numbers(8).take(16).collect();
    for kernel in [Kernel::Trigonometric, Kernel::Hyperbolic] {
        let case = Case { kernel, dim: 2, omega: omega.clone(), planes: Vec::new(), same_length: None };
        compute(&mut KernelVotes::new(&case.map()), &vec![(vec![0.3, 0.4], vec![0.5, -0.2])], None)
            .expect("short vectors");
    }
}

//! Results are bit-identical for any number of threads.

use crate::common::{Case, Kernel, numbers};
use crate::spawned::threads as up_to;
use foveate_core::Threads;
use foveate_kernels::kernel_vote::{KernelVotes, PairVotes};
use foveate_kernels::near_vote::{Method, NearVotes};
use foveate_kernels::project::{Linear, Projector, Scales};
use foveate_kernels::vote::{PANEL, Votes};
use foveate_kernels::{Embedded, Level};

const DIM: usize = 4;

/// Includes more threads than can share the work.
const THREADS: [usize; 5] = [2, 3, 5, 16, 1000];

/// `patches` rows of numbers within ± `scale`, a tenth of them equal to another.
fn embedded(patches: usize, scale: f32) -> Embedded {
    let mut numbers = numbers(patches as u64);
    let mut embedded = Embedded::new(patches, DIM);
    let mut row = [0.0; 2 * DIM];
    for patch in 0..patches {
        if patch % 10 != 3 {
            row.fill_with(|| scale * numbers.next().expect("endless"));
        }
        embedded.set(patch, &row[..DIM], &row[DIM..]);
    }
    embedded
}

/// Checks that `compute` writes the same for any number of threads as for one.
#[track_caller]
fn check(what: &str, patches: usize, mut compute: impl FnMut(&Threads, &mut [f32])) {
    let mut run = |threads| {
        let mut importance = vec![f32::NAN; patches];
        compute(&up_to(threads), &mut importance);
        importance.into_iter().map(f32::to_bits).collect::<Vec<_>>()
    };
    let alone = run(1);
    for threads in THREADS {
        let together = run(threads);
        let differ = alone.iter().zip(&together).filter(|(a, b)| a != b).count();
        assert_eq!(differ, 0, "{what}, {patches} patches, {threads} threads: {differ} importances differ");
    }
}

#[test]
fn softmax() {
    for (patches, scale) in [(529, 1.0), (PANEL + 1, 1.0), (3 * PANEL, 30.0), (5000, 1.0)] {
        let embedded = embedded(patches, scale);
        check("softmax", patches, |threads, to| {
            Votes::new(patches, DIM).with_threads(threads).compute(Level::best(), &embedded, to);
        });
    }
}

#[test]
fn more_rows_than_panels_of_the_usual_size() {
    // The number of panels is at its maximum, and each panel is larger than usual.
    let patches = 33 * PANEL;
    let embedded = embedded(patches, 0.1);
    let (mut one, mut two) = (vec![0.0; patches], vec![0.0; patches]);
    Votes::new(patches, DIM).compute(Level::best(), &embedded, &mut one);
    Votes::new(patches, DIM).with_threads(&up_to(2)).compute(Level::best(), &embedded, &mut two);
    assert!(one == two);
    let total: f64 = one.iter().map(|&x| f64::from(x)).sum();
    assert!((total / patches as f64 - 1.0).abs() < 1e-5, "{total} votes of {patches}");
}

#[test]
fn near_softmax() {
    for (patches, scale, near) in [(529, 1.0, false), (6000, 0.3, true), (6000, 30.0, false)] {
        let embedded = embedded(patches, scale);
        check("near softmax", patches, |threads, to| {
            let mut votes = NearVotes::new(patches, DIM, 1e-4).with_threads(threads);
            votes.compute(Level::best(), &embedded, to);
            assert_eq!(votes.method() != Method::Exact, near, "{:?}", votes.method());
        });
    }
}

#[test]
fn pairs() {
    for (patches, scale) in [(529, 1.0), (4001, 1.0), (4001, 12.0)] {
        let embedded = embedded(patches, scale);
        let c: Vec<f32> = numbers(7).take(patches).collect();
        for c in [None, Some(&c[..])] {
            check("pairs", patches, |threads, to| {
                let mut votes = PairVotes::new(patches, DIM, None).with_threads(threads);
                votes.compute(Level::best(), &embedded, c, to).expect("in range");
            });
        }
    }
}

#[test]
fn features() {
    // 34,000 patches share the queries among threads, 150,000 also the keys.
    for patches in [529, 34_000, 150_000] {
        let embedded = embedded(patches, 1.0);
        for kernel in [Kernel::Relu(0.001), Kernel::Hybrid] {
            let mut numbers = numbers(5);
            let mut take = |count| numbers.by_ref().take(count).collect::<Vec<_>>();
            let (omega, planes) =
                if kernel.is_random() { (take(3 * DIM), take(2 * DIM)) } else { (vec![], vec![]) };
            let map = Case { kernel, dim: DIM, omega, planes, same_length: None }.map();
            check(&format!("{kernel:?}"), patches, |threads, to| {
                let mut votes = KernelVotes::new(&map).with_threads(threads);
                votes.compute(Level::best(), &embedded, None, to).expect("in range");
            });
        }
    }
}

#[test]
fn a_result_that_is_not_finite_is_found_by_any_thread() {
    let patches = 80_000;
    let mut embedded = embedded(patches, 1.0);
    embedded.set(patches - 2, &[1e15; DIM], &[1e15; DIM]);
    let case =
        Case { kernel: Kernel::Relu(0.001), dim: DIM, omega: vec![], planes: vec![], same_length: None };
    let mut importance = vec![0.0; patches];
    for threads in [1, 4] {
        let mut votes = KernelVotes::new(&case.map()).with_threads(&up_to(threads));
        let outcome = votes.compute(Level::best(), &embedded, None, &mut importance);
        assert_eq!(outcome, Ok(()), "{threads} threads: 1e30 is still a number");
    }
    let c = vec![1e9; patches];
    let outcomes = [1, 4].map(|threads| {
        let mut votes = KernelVotes::new(&case.map()).with_threads(&up_to(threads));
        votes.compute(Level::best(), &embedded, Some(&c), &mut importance).expect_err("1e39 is not")
    });
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[0].to_string().contains("79998"), "{}", outcomes[0]);
}

#[test]
fn queries_and_keys() {
    for (width, height, patch, stride) in
        [(96, 96, 7, 4), (640, 480, 7, 2), (641, 203, 3, 1), (40, 900, 16, 5)]
    {
        let inputs = patch * patch * 3;
        let weights: Vec<f32> = numbers(3).take(DIM * inputs).collect();
        let layer = Linear { weight: &weights, bias: &[0.1, 0.2, 0.3, 0.4] };
        let mut projector = Projector::new(width, height, patch, stride, DIM);
        projector.set(layer, layer, Scales { query: 0.5, key: 0.25 });
        let mut noise = numbers(8);
        let pixels: Vec<u8> =
            (0..width * height * 3).map(|_| (noise.next().expect("endless").abs() * 255.0) as u8).collect();
        // Observed through votes with one feature, which depend on keys and queries of all patches.
        let patches = projector.embedded().patches();
        let map =
            Case { kernel: Kernel::Relu(0.0), dim: DIM, omega: vec![], planes: vec![], same_length: None };
        check("projection", patches, |threads, to| {
            let (mut strip, mut embedded) = (projector.strip_for(threads), projector.embedded());
            projector.project(Level::best(), &pixels, &mut strip, &mut embedded);
            KernelVotes::new(&map.map()).compute(Level::best(), &embedded, None, to).expect("in range");
        });
    }
}

//! Compares dense linear algebra to plain loops, with the error bounds of the textbook.

use foveate_kernels::matrix::{
    Mat, MatMut, NotPositiveDefinite, add_outer, cholesky, lower_times, multiply, solve_lower,
};
use proptest::prelude::*;

/// Sizes around the ends of blocks and vectors.
const SIZES: [usize; 14] = [0, 1, 2, 7, 8, 31, 32, 33, 63, 64, 65, 127, 129, 300];
/// Half the distance from 1 to the next number.
const ROUNDING: f64 = f64::EPSILON / 2.0;

/// Marks memory that does not belong to a matrix and must not be read.
const FOREIGN: f64 = f64::NAN;

/// Pseudo-random numbers between −1 and 1.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

/// A column-major matrix surrounded by foreign memory.
#[derive(Debug, Clone)]
struct Owned {
    data: Vec<f64>,
    rows: usize,
    cols: usize,
    stride: usize,
    begin: usize,
}

impl Owned {
    fn new(
        rows: usize,
        cols: usize,
        (gap, begin): (usize, usize),
        mut f: impl FnMut(usize, usize) -> f64,
    ) -> Self {
        let stride = rows + gap;
        let mut data = vec![FOREIGN; begin + stride * cols + 3];
        for j in 0..cols {
            for i in 0..rows {
                data[begin + j * stride + i] = f(i, j);
            }
        }
        Owned { data, rows, cols, stride, begin }
    }

    fn random(rows: usize, cols: usize, at: (usize, usize), seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        Owned::new(rows, cols, at, |_, _| numbers.next())
    }

    /// A lower triangle whose inverse is small; the elements above the diagonal are foreign.
    fn triangle(n: usize, at: (usize, usize), seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        Owned::new(n, n, at, |i, j| {
            let x = numbers.next();
            match i.cmp(&j) {
                std::cmp::Ordering::Less => FOREIGN,
                std::cmp::Ordering::Equal => 1.5 + x / 2.0,
                std::cmp::Ordering::Greater => x / (n as f64).sqrt(),
            }
        })
    }

    /// The lower triangle of `L Lᵀ`.
    fn squared(&self) -> Self {
        Owned::new(self.rows, self.rows, (self.stride - self.rows, self.begin), |i, j| {
            if i < j { FOREIGN } else { (0..=j).map(|k| self.at(i, k) * self.at(j, k)).sum() }
        })
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.data[self.begin + j * self.stride + i]
    }

    fn set(&mut self, i: usize, j: usize, x: f64) {
        self.data[self.begin + j * self.stride + i] = x;
    }

    fn view(&self) -> Mat<'_> {
        Mat::new(&self.data[self.begin..], self.rows, self.cols, self.stride)
    }

    fn view_mut(&mut self) -> MatMut<'_> {
        MatMut::new(&mut self.data[self.begin..], self.rows, self.cols, self.stride)
    }

    fn bits(&self) -> Vec<u64> {
        (0..self.cols)
            .flat_map(|j| (0..self.rows).map(move |i| (i, j)))
            .map(|(i, j)| self.at(i, j).to_bits())
            .collect()
    }

    /// Compares every element for which `told` gives a value and an error; all others must still be foreign.
    #[track_caller]
    fn check(&self, what: &str, told: impl Fn(usize, usize) -> Option<(f64, f64)>) {
        let mut owned = 0;
        for j in 0..self.cols {
            for i in 0..self.rows {
                let x = self.at(i, j);
                if let Some((wanted, error)) = told(i, j) {
                    owned += 1;
                    assert!(
                        (x - wanted).abs() <= error,
                        "{what} at ({i}, {j}): {x:e}, not {wanted:e} ± {error:e}"
                    );
                } else {
                    assert_eq!(x.to_bits(), FOREIGN.to_bits(), "{what} at ({i}, {j})");
                }
            }
        }
        let foreign = self.data.iter().filter(|x| x.to_bits() == FOREIGN.to_bits()).count();
        assert_eq!(foreign, self.data.len() - owned, "{what} wrote where it must not");
    }
}

/// Error bound of a sum of `terms` products, as a multiple of the sum of their magnitudes.
fn bound(terms: usize) -> f64 {
    (terms as f64 + 4.0) * ROUNDING
}

/// `Σ a b` and the sum of the magnitudes of its terms.
fn dot(terms: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    terms.fold((0.0, 0.0), |(sum, size), (a, b)| (sum + a * b, size + (a * b).abs()))
}

fn check_multiply(
    (m, k, n): (usize, usize, usize),
    turned: (bool, bool),
    (alpha, beta): (f64, f64),
    at: (usize, usize),
) {
    let make = |rows, cols, turned, seed| {
        if turned { Owned::random(cols, rows, at, seed) } else { Owned::random(rows, cols, at, seed) }
    };
    let (a, b) = (make(m, k, turned.0, 1), make(k, n, turned.1, 2));
    let before = Owned::random(m, n, at, 3);
    let mut c = before.clone();
    if beta == 0.0 {
        c = Owned::new(m, n, at, |_, _| f64::NAN); // not read
    }
    let view = |x: &Owned, turned: bool| (turned, x.clone());
    let ((ta, a), (tb, b)) = (view(&a, turned.0), view(&b, turned.1));
    let (va, vb) = (a.view(), b.view());
    let (va, vb) = (if ta { va.transposed() } else { va }, if tb { vb.transposed() } else { vb });
    multiply(beta, c.view_mut(), alpha, va, vb);
    let a_at = |i, l| if ta { a.at(l, i) } else { a.at(i, l) };
    let b_at = |l, j| if tb { b.at(j, l) } else { b.at(l, j) };
    c.check(&format!("{m} x {k} x {n}, {turned:?}, {alpha}, {beta}"), |i, j| {
        let (sum, size) = dot((0..k).map(|l| (a_at(i, l), b_at(l, j))));
        let (old, scaled) = (beta * before.at(i, j), alpha.abs() * size);
        Some((old + alpha * sum, bound(2 * k) * (old.abs() + scaled)))
    });
}

#[test]
fn products_are_those_of_three_loops() {
    for turned in [(false, false), (false, true), (true, false), (true, true)] {
        for (m, k, n) in [(0, 3, 2), (3, 0, 2), (3, 2, 0), (1, 1, 1), (2, 7, 1), (1, 2, 7), (7, 1, 2)] {
            for scale in [(1.0, 0.0), (1.0, 1.0), (-1.0, 1.0), (0.5, -2.0)] {
                check_multiply((m, k, n), turned, scale, (0, 0));
                check_multiply((m, k, n), turned, scale, (3, 1));
            }
        }
        for size in [(63, 64, 65), (129, 127, 1), (1, 300, 64), (300, 7, 129), (65, 600, 33)] {
            check_multiply(size, turned, (-1.0, 1.0), (2, 1));
        }
    }
}

/// Checks the documented order of operations.
#[test]
#[cfg(target_arch = "x86_64")]
fn an_element_of_a_product_is_summed_in_order_in_pieces_of_256() {
    let fused = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
    for (m, k, n) in [(1, 1, 1), (9, 5, 3), (70, 256, 9), (17, 257, 35), (100, 700, 20)] {
        let (a, b) = (Owned::random(m, k, (1, 1), 1), Owned::random(n, k, (0, 0), 2));
        let before = Owned::random(m, n, (0, 0), 3);
        let mut c = before.clone();
        multiply(1.0, c.view_mut(), -1.0, a.view(), b.view().transposed());
        for j in 0..n {
            for i in 0..m {
                let mut wanted = before.at(i, j);
                for begin in (0..k).step_by(256) {
                    let piece = (begin..k.min(begin + 256)).fold(0.0, |sum, l| {
                        let (a, b) = (a.at(i, l), b.at(j, l));
                        if fused { f64::mul_add(a, b, sum) } else { a * b + sum }
                    });
                    wanted -= piece;
                }
                assert_eq!(c.at(i, j).to_bits(), wanted.to_bits(), "{m} x {k} x {n} at ({i}, {j})");
            }
        }
    }
}

fn check_add_outer(n: usize, k: usize, alpha: f64, at: (usize, usize)) {
    let v = Owned::random(n, k, at, 4);
    let mut c = Owned::triangle(n, at, 5);
    let before = c.clone();
    add_outer(c.view_mut(), alpha, v.view());
    c.check(&format!("{n}, {k} vectors, {alpha}"), |i, j| {
        let (sum, size) = dot((0..k).map(|l| (v.at(i, l), v.at(j, l))));
        let old = before.at(i, j);
        (i >= j).then(|| (old + alpha * sum, bound(k) * (old.abs() + alpha.abs() * size)))
    });
}

fn check_lower_times(n: usize, k: usize, at: (usize, usize)) {
    let (l, z) = (Owned::triangle(n, at, 6), Owned::random(n, k, at, 7));
    let mut y = Owned::new(n, k, at, |_, _| f64::NAN); // not read
    lower_times(y.view_mut(), l.view(), z.view());
    y.check(&format!("{n} times {k}"), |i, j| {
        let (sum, size) = dot((0..=i).map(|p| (l.at(i, p), z.at(p, j))));
        Some((sum, bound(2 * n) * size))
    });
}

fn check_solve(n: usize, k: usize, at: (usize, usize)) {
    let (l, y) = (Owned::triangle(n, at, 8), Owned::random(n, k, at, 9));
    let mut x = y.clone();
    solve_lower(l.view(), x.view_mut());
    // Check by multiplication: L X is Y, up to the rounding of its own terms.
    let back = Owned::new(n, k, at, |i, j| dot((0..=i).map(|p| (l.at(i, p), x.at(p, j)))).0);
    back.check(&format!("{n} with {k}"), |i, j| {
        let size = dot((0..=i).map(|p| (l.at(i, p), x.at(p, j)))).1;
        Some((y.at(i, j), 2.0 * bound(2 * n) * size))
    });
    x.check("in place", |i, j| Some((x.at(i, j), 0.0)));
}

/// `|A − L Lᵀ| ≤ γ |L| |L|ᵀ`, element by element: this holds for any condition number and any scales.
#[track_caller]
fn check_factor(what: &str, a: &Owned) -> Owned {
    let mut l = a.clone();
    cholesky(l.view_mut()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let back = Owned::new(a.rows, a.rows, (a.stride - a.rows, a.begin), |i, j| {
        if i < j { FOREIGN } else { dot((0..=j).map(|p| (l.at(i, p), l.at(j, p)))).0 }
    });
    back.check(what, |i, j| {
        let size = dot((0..=j).map(|p| (l.at(i, p), l.at(j, p)))).1;
        (i >= j).then(|| (a.at(i, j), 2.0 * bound(a.rows) * size))
    });
    l.check(what, |i, j| {
        assert!(i < j || l.at(i, j).is_finite() && (i > j || l.at(i, i) > 0.0), "{what} at ({i}, {j})");
        (i >= j).then(|| (l.at(i, j), 0.0))
    });
    l
}

#[test]
fn triangles_are_those_of_plain_loops() {
    for n in SIZES {
        for at in [(0, 0), (3, 1)] {
            for k in [0, 1, 2, 7, 64, 65] {
                check_add_outer(n, k, -1.0, at);
                check_lower_times(n, k, at);
                check_solve(n, k, at);
            }
            check_add_outer(n, 300, 0.25, at);
            let made = Owned::triangle(n, at, 10);
            let found = check_factor(&format!("{n}"), &made.squared());
            // Well conditioned: the factor itself is recovered.
            found.check("the factor", |i, j| (i >= j).then(|| (made.at(i, j), 1e-11)));
        }
    }
}

#[test]
fn factors_do_not_depend_on_scales() {
    // Square roots on the diagonal from 1e-150 to 1e150: everything that can be represented is factored.
    for n in [7, 33, 129] {
        let plain = Owned::triangle(n, (0, 0), 11).squared();
        let scale = |i: usize| 10_f64.powi((i * 61 % 301) as i32 - 150);
        let scaled =
            Owned::new(
                n,
                n,
                (0, 0),
                |i, j| {
                    if i < j { FOREIGN } else { plain.at(i, j) * scale(i) * scale(j) }
                },
            );
        check_factor(&format!("{n}, scaled"), &scaled);
    }
    // Hilbert's matrix: condition number 1e16 at size 12.
    check_factor(
        "Hilbert",
        &Owned::new(12, 12, (0, 0), |i, j| if i < j { FOREIGN } else { 1.0 / (i + j + 1) as f64 }),
    );
}

#[test]
fn the_first_pivot_that_is_not_positive_is_named() {
    for n in SIZES {
        for column in [0, 1, 6, 30, 31, 32, 33, 63, 64, 65, 128, n.saturating_sub(1)] {
            if column >= n {
                continue;
            }
            let l = Owned::triangle(n, (1, 2), 12);
            let mut a = l.squared();
            let pivot = l.at(column, column).powi(2);
            for wrong in [2.0 * pivot, 1.001 * pivot, f64::INFINITY, f64::NAN, f64::NEG_INFINITY] {
                let mut a = a.clone();
                a.set(column, column, a.at(column, column) - wrong);
                assert_eq!(cholesky(a.view_mut()), Err(NotPositiveDefinite { column }), "{n}, less {wrong}");
            }
            a.set(column, column, f64::INFINITY);
            assert_eq!(cholesky(a.view_mut()), Err(NotPositiveDefinite { column }), "{n}, infinite");
        }
    }
    let zero = cholesky(MatMut::new(&mut [0.0], 1, 1, 1)).expect_err("zero").to_string();
    assert!(zero.contains("not positive definite") && zero.contains("column 0"), "{zero}");
}

#[test]
fn what_is_not_finite_beside_the_diagonal_is_found_in_its_row() {
    for n in [2, 33, 65, 129] {
        let good = Owned::triangle(n, (0, 0), 13).squared();
        for row in [1, 31, 32, 33, 64, n - 1] {
            for column in [0, 15, 31, 32, 63, row - 1] {
                if row >= n || column >= row {
                    continue;
                }
                for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
                    let mut a = good.clone();
                    a.set(row, column, x);
                    assert_eq!(
                        cholesky(a.view_mut()),
                        Err(NotPositiveDefinite { column: row }),
                        "{n}: {x} at ({row}, {column})"
                    );
                }
            }
        }
    }
}

#[test]
fn bits_depend_on_neither_place_nor_time() {
    let (n, k) = (150, 37);
    let results = |at| {
        let (l, v) = (Owned::triangle(n, at, 14), Owned::random(n, k, at, 15));
        let mut a = l.squared();
        add_outer(a.view_mut(), 0.5, v.view());
        cholesky(a.view_mut()).expect("more than the square");
        let mut y = v.clone();
        lower_times(y.view_mut(), a.view(), v.view());
        let coloured = y.bits();
        solve_lower(l.view(), y.view_mut());
        (a.bits(), coloured, y.bits())
    };
    let first = results((0, 0));
    for at in [(0, 0), (0, 1), (1, 0), (5, 3), (2, 7)] {
        assert!(results(at) == first, "{at:?}");
    }
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    fn out(numbers: &mut [f64], rows: usize, cols: usize) -> MatMut<'_> {
        MatMut::new(numbers, rows, cols, rows)
    }
    let numbers = vec![1.0; 64];
    let view = |rows, cols| Mat::new(&numbers, rows, cols, rows);
    let refused: [(&str, &dyn Fn()); 13] = [
        ("too short", &|| _ = Mat::new(&numbers, 8, 9, 8)),
        ("too short with gaps", &|| _ = Mat::new(&numbers, 5, 8, 9)),
        ("columns that overlap", &|| _ = MatMut::new(&mut [0.0; 64], 5, 2, 4)),
        ("more than memory", &|| _ = Mat::new(&numbers, 1, usize::MAX, usize::MAX)),
        ("rows", &|| multiply(0.0, out(&mut [0.0; 64], 3, 2), 1.0, view(4, 5), view(5, 2))),
        ("columns", &|| multiply(0.0, out(&mut [0.0; 64], 4, 3), 1.0, view(4, 5), view(5, 2))),
        ("terms", &|| multiply(0.0, out(&mut [0.0; 64], 4, 2), 1.0, view(4, 5), view(4, 2))),
        ("not square", &|| _ = cholesky(out(&mut [0.0; 64], 4, 2))),
        ("another C", &|| add_outer(out(&mut [0.0; 64], 3, 3), 1.0, view(4, 5))),
        ("another Y", &|| solve_lower(view(4, 4), out(&mut [0.0; 64], 3, 3))),
        ("another Z", &|| lower_times(out(&mut [0.0; 64], 4, 3), view(4, 4), view(3, 3))),
        ("part", &|| _ = view(4, 4).part((2, 3), (0, 4))),
        ("part of columns", &|| _ = view(4, 4).part((0, 4), (5, 0))),
    ];
    for (what, call) in refused {
        let refused = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        assert!(refused.is_err(), "{what}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_size_and_layout(
        (m, k, n) in (0_usize..80, 0_usize..80, 0_usize..80),
        turned: (bool, bool),
        alpha in -2.0_f64..2.0,
        at in (0_usize..5, 0_usize..5),
    ) {
        check_multiply((m, k, n), turned, (alpha, 1.0), at);
        check_add_outer(n, k, alpha, at);
        check_lower_times(n, k, at);
        check_solve(n, k, at);
        check_factor("any", &Owned::triangle(n, at, k as u64).squared());
    }
}

//! Soft indicator functions, dm_control's `rewards.tolerance`, with its order of operations.

/// 1 from `low` on; below, a Gaussian that is 0.1 at a distance of `margin`.
pub(crate) fn gaussian_above(x: f64, low: f64, margin: f64) -> f64 {
    if x >= low { 1.0 } else { gaussian((low - x) / margin) }
}

/// 1 at 0; a Gaussian that is 0.1 at a distance of `margin`.
pub(crate) fn gaussian_around(x: f64, margin: f64) -> f64 {
    if x == 0.0 { 1.0 } else { gaussian((if x < 0.0 { -x } else { x }) / margin) }
}

/// The same of a number in an array: NumPy squares arrays by a multiplication, and single numbers by the C library's `pow`.
pub(crate) fn gaussian_around_in_array(x: f64, margin: f64) -> f64 {
    let scaled = x.abs() / margin * gaussian_scale();
    if x == 0.0 { 1.0 } else { (-0.5 * (scaled * scaled)).exp() }
}

fn gaussian_scale() -> f64 {
    (-2.0 * 0.1_f64.ln()).sqrt()
}

fn gaussian(distance: f64) -> f64 {
    let scaled = distance * gaussian_scale();
    // Not a known constant for the compiler, which would make it a multiplication.
    (-0.5 * scaled.powf(std::hint::black_box(2.0))).exp()
}

/// 1 from `low` on; below, it falls linearly to `at_margin` at a distance of `margin`, and on to 0.
pub(crate) fn linear_above(x: f64, low: f64, margin: f64, at_margin: f64) -> f64 {
    if x >= low {
        return 1.0;
    }
    let scaled = (low - x) / margin * (1.0 - at_margin);
    if scaled.abs() < 1.0 { 1.0 - scaled } else { 0.0 }
}

/// 1 at 0; a parabola that is 0 at a distance of 1.
pub(crate) fn quadratic_around(x: f64) -> f64 {
    if x == 0.0 {
        return 1.0;
    }
    if x.abs() < 1.0 { 1.0 - x * x } else { 0.0 }
}

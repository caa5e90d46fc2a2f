//! Losses, each with its gradient.
//!
//! A loss is a mean over the batch; the gradient is added to that of the network's output. `share` is 1 / the number of
//! samples of the whole batch, of which a call may get a part.

use foveate_kernels::Level;
use foveate_kernels::elementwise::softmax;

/// Cross entropy of the softmax of `logits`, `[batch, classes]`, with the right classes. Returns the sum over these samples,
/// times `share`.
///
/// # Panics
/// When a length is wrong or a class is out of range.
pub fn cross_entropy(
    level: Level,
    logits: &[f32],
    classes: &[usize],
    share: f32,
    gradient: &mut [f32],
) -> f64 {
    assert_eq!(logits.len(), gradient.len(), "logits and their gradients");
    let width = logits.len() / classes.len().max(1);
    assert_eq!(logits.len(), width * classes.len(), "logits of every sample");
    let mut sum = 0.0;
    let rows = logits.chunks_exact(width.max(1)).zip(gradient.chunks_exact_mut(width.max(1)));
    for ((row, gradient), &class) in rows.zip(classes) {
        assert!(class < width, "class {class} of {width}");
        let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f64 = row.iter().map(|&x| f64::from(x - most).exp()).sum();
        sum += (total.ln() - f64::from(row[class] - most)) * f64::from(share);
        let mut p = [0.0; 64];
        if width <= p.len() {
            let p = &mut p[..width];
            p.copy_from_slice(row);
            softmax(level, p, width, 1.0);
            gradient.iter_mut().zip(&*p).for_each(|(g, p)| *g += share * p);
        } else {
            for (g, &x) in gradient.iter_mut().zip(row) {
                *g += share * (f64::from(x - most).exp() / total) as f32;
            }
        }
        gradient[class] -= share;
    }
    sum
}

/// Mean squared error of `outputs` against `targets`, both `[batch, n]`: the mean over n and over the batch. Returns the
/// part of these samples.
///
/// # Panics
/// When a length is wrong.
pub fn squared_error(outputs: &[f32], targets: &[f32], share: f32, gradient: &mut [f32]) -> f64 {
    assert!(
        outputs.len() == targets.len() && outputs.len() == gradient.len(),
        "outputs, targets and gradients"
    );
    let mut sum = 0.0;
    for ((g, y), t) in gradient.iter_mut().zip(outputs).zip(targets) {
        let d = y - t;
        sum += f64::from(d) * f64::from(d);
        *g += 2.0 * share * d;
    }
    sum * f64::from(share)
}

/// Huber's loss: d² / 2 for |d| ≤ `delta`, linear beyond. Returns the sum over these numbers, times `share`.
///
/// # Panics
/// When a length is wrong.
pub fn huber(outputs: &[f32], targets: &[f32], delta: f32, share: f32, gradient: &mut [f32]) -> f64 {
    assert!(
        outputs.len() == targets.len() && outputs.len() == gradient.len(),
        "outputs, targets and gradients"
    );
    let mut sum = 0.0;
    for ((g, y), t) in gradient.iter_mut().zip(outputs).zip(targets) {
        let d = y - t;
        let (d64, delta64) = (f64::from(d), f64::from(delta));
        sum += if d.abs() <= delta { d64 * d64 / 2.0 } else { delta64 * (d64.abs() - delta64 / 2.0) };
        *g += share * d.clamp(-delta, delta);
    }
    sum * f64::from(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a loss against finite differences.
    fn check(outputs: &[f32], loss: impl Fn(&[f32], &mut [f32]) -> f64) {
        let mut gradient = vec![0.0; outputs.len()];
        let value = loss(outputs, &mut gradient);
        assert!(value.is_finite());
        for i in 0..outputs.len() {
            let side = |h: f32| {
                let mut outputs = outputs.to_vec();
                outputs[i] += h;
                let step = f64::from(outputs[i]);
                (step, loss(&outputs, &mut vec![0.0; gradient.len()]))
            };
            let ((a, up), (b, down)) = (side(1e-3), side(-1e-3));
            let expect = (up - down) / (a - b);
            assert!((f64::from(gradient[i]) - expect).abs() < 1e-4, "{i}: {}, {expect}", gradient[i]);
        }
    }

    #[test]
    fn gradients_are_those_of_the_losses() {
        let outputs = [0.3, -1.2, 2.0, 0.7, 0.1, -0.4];
        let targets = [0.0, 1.0, 2.5, -3.0, 0.2, 0.0];
        check(&outputs, |y, g| cross_entropy(Level::best(), y, &[2, 0], 0.5, g));
        check(&outputs, |y, g| squared_error(y, &targets, 1.0 / 6.0, g));
        check(&outputs, |y, g| huber(y, &targets, 1.0, 0.5, g));
        let wide: Vec<f32> = (0..70).map(|i| (i as f32).sin()).collect();
        check(&wide, |y, g| cross_entropy(Level::best(), y, &[69], 1.0, g));
    }

    #[test]
    fn values_by_hand() {
        let mut gradient = [0.0; 2];
        let value = cross_entropy(Level::best(), &[0.0, 0.0], &[1], 1.0, &mut gradient);
        assert!((value - std::f64::consts::LN_2).abs() < 1e-12);
        assert_eq!(gradient, [0.5, -0.5]);
        assert_eq!(squared_error(&[1.0, 3.0], &[0.0, 1.0], 0.5, &mut [0.0; 2]), 2.5);
        assert_eq!(huber(&[0.5, 3.0], &[0.0; 2], 1.0, 1.0, &mut [0.0; 2]), 0.125 + 2.5);
    }
}

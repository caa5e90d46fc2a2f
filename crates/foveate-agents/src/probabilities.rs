//! Softmax in double precision.

/// Writes the probability of each choice, which keeps the order of `logits`.
pub(crate) fn probabilities(logits: &[f32], to: &mut [f64]) {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (to, &logit) in to.iter_mut().zip(logits) {
        *to = f64::from(logit - most).exp();
    }
    let sum: f64 = to.iter().sum();
    for p in to {
        *p /= sum;
    }
}

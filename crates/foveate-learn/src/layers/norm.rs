//! Layer normalisation.

use foveate_core::TensorShape;
use foveate_kernels::elementwise::{affine_backward, normalise, normalise_backward};

use crate::layer::{Backward, Forward, Layer, len_of, one, tensor};

/// Layer normalisation (Ba, Kiros and Hinton 2016) over the last axes together: x̂ = (x − mean) / √(variance + ε), with the
/// variance divided by the number of values.
///
/// Tensors, with [`LayerNorm::with_affine`]: `scale` and `shift`, both of the shape of the normalised axes: y = scale · x̂ +
/// shift, number by number.
#[derive(Debug, Clone, Copy)]
pub struct LayerNorm {
    axes: usize,
    affine: bool,
    epsilon: f32,
}

impl LayerNorm {
    /// Normalises the last `axes` axes together, ε = 1e-5.
    pub const fn over(axes: usize) -> Self {
        LayerNorm { axes, affine: false, epsilon: 1e-5 }
    }

    /// The same with a learned scale and shift for every number.
    #[must_use]
    pub const fn with_affine(self) -> Self {
        LayerNorm { affine: true, ..self }
    }

    /// The same with another ε.
    #[must_use]
    pub const fn with_epsilon(self, epsilon: f32) -> Self {
        LayerNorm { epsilon, ..self }
    }

    /// The normalised axes.
    fn group<'a>(&self, shapes: &[&'a [usize]]) -> &'a [usize] {
        &shapes[0][shapes[0].len() - self.axes..]
    }
}

impl Layer for LayerNorm {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        if self.axes == 0 || self.axes > shape.len() {
            return Err(format!("it normalises {} axes together; {shape:?} has {}", self.axes, shape.len()));
        }
        Ok(shape.to_vec())
    }

    fn tensors(&self, inputs: &[&[usize]]) -> Vec<TensorShape> {
        let group = self.group(inputs);
        if self.affine { vec![tensor("scale", group), tensor("shift", group)] } else { vec![] }
    }

    /// x̂ and 1 / √(variance + ε) of each group.
    fn kept(&self, inputs: &[&[usize]]) -> usize {
        let len = len_of(inputs[0]);
        len + len / len_of(self.group(inputs))
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { level, params, inputs, output, kept, shapes, .. } = forward;
        let n = len_of(self.group(shapes));
        let (normal, scales) = kept.split_at_mut(inputs[0].len());
        let groups =
            inputs[0].chunks_exact(n).zip(normal.chunks_exact_mut(n)).zip(output.chunks_exact_mut(n));
        for (((x, normal), y), kept_scale) in groups.zip(scales) {
            let affine = self.affine.then(|| params.split_at(n));
            *kept_scale = normalise(level, x, self.epsilon, affine, normal, y);
        }
    }

    fn backward(&self, backward: Backward<'_>) {
        let Backward {
            level, params, inputs, kept, d_output, d_inputs: [mut dx, ..], d_params, shapes, ..
        } = backward;
        let n = len_of(self.group(shapes));
        let (normal, scales) = kept.split_at(inputs[0].len());
        for (group, (dy, &scale)) in d_output.chunks_exact_mut(n).zip(scales).enumerate() {
            let normal = &normal[group * n..][..n];
            if self.affine {
                let (d_by, d_plus) = d_params.split_at_mut(n);
                affine_backward(level, normal, &params[..n], dy, d_by, d_plus);
            }
            if let Some(dx) = dx.as_deref_mut() {
                normalise_backward(level, normal, scale, dy, &mut dx[group * n..][..n]);
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], params: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let n = len_of(self.group(shapes));
        let mut y = inputs[0].to_vec();
        for group in y.chunks_exact_mut(n) {
            let mean = group.iter().sum::<f64>() / n as f64;
            let variance = group.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
            for (i, y) in group.iter_mut().enumerate() {
                *y = (*y - mean) / (variance + f64::from(self.epsilon)).sqrt();
                if self.affine {
                    *y = *y * params[i] + params[n + i];
                }
            }
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, refused};

    #[test]
    fn the_gradient_is_that_of_the_function() {
        gradient(&LayerNorm::over(1), &[&[3, 7]]);
        gradient(&LayerNorm::over(2).with_affine(), &[&[5, 7]]);
        gradient(&LayerNorm::over(3).with_affine().with_epsilon(0.1), &[&[2, 3, 4]]);
        refused(&LayerNorm::over(3), &[&[3, 7]], "3 axes together; [3, 7] has 2");
        refused(&LayerNorm::over(0), &[&[3, 7]], "0 axes");
    }
}

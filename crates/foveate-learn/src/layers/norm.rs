//! Normalisations: of layers, of channels.

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

/// Normalisation of each channel over all other axes (instance normalisation, Ulyanov et al. 2016): x̂ = (x − mean) /
/// √(variance + ε), mean and variance of one channel of one sample. Channels are the last axis; no parameters.
///
/// In a picture of which most is alike, what is rare becomes large: a thing that fills one of n cells is √n there, however
/// faint it was.
#[derive(Debug, Clone, Copy)]
pub struct ChannelNorm {
    epsilon: f32,
}

impl Default for ChannelNorm {
    /// ε = 1e-5
    fn default() -> Self {
        ChannelNorm { epsilon: 1e-5 }
    }
}

impl ChannelNorm {
    /// The same with another ε.
    #[must_use]
    pub const fn with_epsilon(self, epsilon: f32) -> Self {
        ChannelNorm { epsilon }
    }

    fn channels(shapes: &[&[usize]]) -> usize {
        shapes[0].last().copied().unwrap_or(1)
    }
}

/// Adds up `f` of every row's numbers, channel by channel.
fn sum_rows<'a>(
    sums: &mut [f32],
    rows: impl Iterator<Item = (&'a [f32], &'a [f32])>,
    f: impl Fn(f32, f32) -> f32,
) {
    sums.fill(0.0);
    for (a, b) in rows {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += f(a, b);
        }
    }
}

impl Layer for ChannelNorm {
    fn output(&self, inputs: &[&[usize]]) -> Result<Vec<usize>, String> {
        let shape = one(inputs)?;
        if shape.len() < 2 {
            return Err(format!("it normalises channels over the axes before them; {shape:?} has none"));
        }
        Ok(shape.to_vec())
    }

    /// x̂, then 1 / √(variance + ε) of each channel.
    fn kept(&self, inputs: &[&[usize]]) -> usize {
        len_of(inputs[0]) + Self::channels(inputs)
    }

    fn forward(&self, forward: Forward<'_>) {
        let Forward { inputs, output, kept, shapes, work, .. } = forward;
        let (len, channels) = (len_of(shapes[0]), Self::channels(shapes));
        let each = channels as f32 / len as f32;
        let (_, mean) = work.room(channels);
        let samples = inputs[0].chunks_exact(len).zip(output.chunks_exact_mut(len));
        for ((x, y), kept) in samples.zip(kept.chunks_exact_mut(len + channels)) {
            let (normal, scale) = kept.split_at_mut(len);
            let rows = || x.chunks_exact(channels);
            sum_rows(mean, rows().map(|row| (row, row)), |x, _| x);
            for mean in &mut *mean {
                *mean *= each;
            }
            sum_rows(scale, rows().map(|row| (row, &*mean)), |x, mean| (x - mean) * (x - mean));
            for scale in &mut *scale {
                *scale = 1.0 / (*scale * each + self.epsilon).sqrt();
            }
            for (row, normal) in rows().zip(normal.chunks_exact_mut(channels)) {
                for (((x, normal), mean), scale) in row.iter().zip(normal).zip(&*mean).zip(&*scale) {
                    *normal = (x - mean) * scale;
                }
            }
            y.copy_from_slice(normal);
        }
    }

    /// dx = (dy − mean of dy − x̂ · mean of dy · x̂) / √(variance + ε)
    fn backward(&self, backward: Backward<'_>) {
        let Backward { kept, d_output, d_inputs: [dx, ..], shapes, work, .. } = backward;
        let Some(dx) = dx else { return };
        let (len, channels) = (len_of(shapes[0]), Self::channels(shapes));
        let each = channels as f32 / len as f32;
        let (_, [mean, product]) = work.rooms([channels; 2]);
        let samples = d_output.chunks_exact(len).zip(dx.chunks_exact_mut(len));
        for ((dy, dx), kept) in samples.zip(kept.chunks_exact(len + channels)) {
            let (normal, scale) = kept.split_at(len);
            let rows = || dy.chunks_exact(channels).zip(normal.chunks_exact(channels));
            sum_rows(mean, rows(), |dy, _| dy);
            sum_rows(product, rows(), |dy, normal| dy * normal);
            for (dx, (dy, normal)) in dx.chunks_exact_mut(channels).zip(rows()) {
                for channel in 0..channels {
                    let centred = dy[channel] - (mean[channel] + normal[channel] * product[channel]) * each;
                    dx[channel] += centred * scale[channel];
                }
            }
        }
    }

    fn exact(&self, shapes: &[&[usize]], _: &[f64], inputs: &[&[f64]]) -> Vec<f64> {
        let channels = Self::channels(shapes);
        let mut y = inputs[0].to_vec();
        let n = (y.len() / channels) as f64;
        for channel in 0..channels {
            let of_channel = || inputs[0].iter().skip(channel).step_by(channels);
            let mean = of_channel().sum::<f64>() / n;
            let variance = of_channel().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            for y in y.iter_mut().skip(channel).step_by(channels) {
                *y = (*y - mean) / (variance + f64::from(self.epsilon)).sqrt();
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
        gradient(&ChannelNorm::default(), &[&[5, 7]]);
        gradient(&ChannelNorm::default().with_epsilon(0.1), &[&[4, 3, 2]]);
        refused(&ChannelNorm::default(), &[&[7]], "[7] has none");
    }
}

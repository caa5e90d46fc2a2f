//! The student.

use std::ops::Range;

use std::sync::Arc;

use foveate_core::{
    ActionDistribution, Demonstration, DifferentiatedEpisode, Distributed, GradientParts, LastStep, LossSums,
    Model, Observation, OutputKind, Outputs, PartScratch, PolicyError, Predictions, Student, Taught,
    ThroughWorld, Windows,
};

/// A student whose gradient is a formula: `action = Σ wᵢ · inputᵢ + r · (last action)`.
#[derive(Debug, Clone)]
pub struct ToyStudent {
    params: Vec<f32>,
    inputs: usize,
    /// True if the parameter after those of the inputs is `r`; otherwise `r` is 0.
    recurrent: bool,
    /// Bytes of a picture, of which the first, as a share of 255, is added to the action.
    picture: usize,
    breaks: Breaks,
    /// True if it is the student of an attention, which answers with the places that an expert looks at.
    gazes: bool,
    /// True if outputs are values of choices, in place of a policy.
    values: bool,
    /// The numbers of the last batch, see [`Outputs`].
    seen: Vec<f32>,
    /// Of the last batch.
    predictions: Predictions,
}

/// When a student breaks.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Breaks {
    Never,
    /// It panics at demonstrations of one step.
    AtOneStep,
    /// It refuses all segments of an update.
    AtUpdates,
}

impl ToyStudent {
    /// The student of a [`ToyPolicy`](crate::ToyPolicy): two inputs, three parameters.
    #[must_use]
    pub fn new() -> Self {
        ToyStudent {
            params: vec![0.0; 3],
            inputs: 2,
            recurrent: true,
            picture: 0,
            breaks: Breaks::Never,
            gazes: false,
            values: false,
            seen: vec![],
            predictions: Predictions::default(),
        }
    }

    /// A student without memory. The parameters after those of the inputs are not used and do not learn.
    #[must_use]
    pub fn linear(inputs: usize, params: usize) -> Self {
        assert!(inputs <= params, "one parameter for each input");
        ToyStudent { params: vec![0.0; params], inputs, recurrent: false, ..ToyStudent::new() }
    }

    /// Sees a picture of `len` bytes, too: the first byte, as a share of 255, is added to its action.
    #[must_use]
    pub fn seeing(self, len: usize) -> Self {
        ToyStudent { picture: len, ..self }
    }

    /// Its outputs are the values of choices, in place of a policy.
    #[must_use]
    pub fn valuing(self) -> Self {
        ToyStudent { values: true, ..self }
    }

    /// Panics at demonstrations of one step, and leaves wrong weights behind.
    #[must_use]
    pub fn panicking(self) -> Self {
        ToyStudent { breaks: Breaks::AtOneStep, ..self }
    }

    /// Refuses the second segment of every update.
    #[must_use]
    pub fn refusing(self) -> Self {
        ToyStudent { breaks: Breaks::AtUpdates, ..self }
    }
}

impl ToyStudent {
    /// The squared error of the first parameter times the picture's first byte, as a share of 255, as a prediction of how far
    /// to the right the expert looks.
    fn study_gaze(&self, demonstration: &Demonstration, piece: Range<usize>, gradient: &mut [f32]) -> f64 {
        let (mut picture, mut slope, mut sum) = (vec![0; self.picture], 0.0, 0.0);
        for t in piece {
            demonstration.pictures.unpack(t, &mut picture).expect("a picture for each step");
            let byte = f32::from(picture[0]) / 255.0;
            let error = self.params[0] * byte - demonstration.gaze[t][0].x;
            sum += f64::from(error * error);
            slope += 2.0 * error * byte;
        }
        gradient[0] += slope;
        sum
    }
}

impl Default for ToyStudent {
    fn default() -> Self {
        ToyStudent::new()
    }
}

impl Model for ToyStudent {
    fn learns(&self) -> Range<usize> {
        0..self.inputs + usize::from(self.recurrent || self.gazes)
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        if flat.len() != self.params.len() {
            let (wanted, given) = (self.params.len(), flat.len());
            return Err(PolicyError::ParamCount { wanted, given, tensors: format!("w {wanted}") });
        }
        self.params.copy_from_slice(flat);
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }

    fn outputs(&mut self) -> Option<&mut dyn Outputs> {
        Some(self)
    }

    fn student(&mut self) -> Option<&mut dyn Student> {
        Some(self)
    }

    /// A student without inputs of which the first parameter learns how far to the right the expert looks.
    fn taught(&self, what: Taught) -> Option<Box<dyn Model>> {
        if what != Taught::Gaze {
            return None;
        }
        (self.picture > 0).then(|| {
            let student = ToyStudent { gazes: true, ..ToyStudent::linear(0, self.params.len()) };
            Box::new(student.seeing(self.picture)) as Box<dyn Model>
        })
    }

    fn distributed(&mut self) -> Option<&mut dyn Distributed> {
        if self.breaks == Breaks::AtUpdates { Some(self) } else { None }
    }

    /// For a student without memory.
    fn study_world(
        &mut self,
        episode: &DifferentiatedEpisode,
        windows: &Windows<'_>,
        gradient: &mut [f32],
    ) -> Result<f64, PolicyError> {
        let mut world = ThroughWorld::new(episode, *windows, vec![1.0])?;
        let mut next = vec![];
        for t in (0..episode.steps).rev() {
            let mut pull = [0.0];
            world.pull(t, &next, &mut pull);
            let inputs = &episode.inputs[t * self.inputs..][..self.inputs];
            for (gradient, input) in gradient.iter_mut().zip(inputs) {
                *gradient += pull[0] * input;
            }
            next = self.params[..episode.numbers()].iter().map(|w| pull[0] * w).collect();
        }
        Ok(windows.returns(episode))
    }
}

impl Student for ToyStudent {
    fn inputs(&self) -> usize {
        self.inputs
    }

    fn picture(&self) -> usize {
        self.picture
    }

    fn actions(&self) -> usize {
        1
    }

    fn study(
        &mut self,
        demonstration: &Demonstration,
        piece: Range<usize>,
        burn_in: usize,
        gradient: &mut [f32],
    ) -> f64 {
        if self.gazes {
            return self.study_gaze(demonstration, piece, gradient);
        }
        let (weights, rest) = self.params.split_at(self.inputs);
        let memory = if self.recurrent { rest[0] } else { 0.0 };
        let learns = self.learns();
        // The action, and its derivative with respect to the parameters.
        let (mut action, mut slope, mut sum) = (0.0_f32, vec![0.0_f32; learns.len()], 0.0);
        let mut of_piece = vec![0.0; learns.len()];
        let mut picture = vec![0; self.picture];
        for t in piece.start.saturating_sub(burn_in)..piece.end {
            let inputs = &demonstration.inputs[self.inputs * t..self.inputs * (t + 1)];
            let before = action;
            action = inputs.iter().zip(weights).map(|(x, w)| w * x).sum::<f32>() + memory * before;
            if self.picture > 0 {
                demonstration.pictures.unpack(t, &mut picture).expect("a picture for each step");
                action += f32::from(picture[0]) / 255.0;
            }
            if t < piece.start {
                continue;
            }
            for (slope, input) in slope.iter_mut().zip(inputs.iter().chain([&before])) {
                *slope = input + memory * *slope;
            }
            let error = action - demonstration.actions[t];
            sum += f64::from(error * error);
            for (of_piece, slope) in of_piece.iter_mut().zip(&slope) {
                *of_piece += 2.0 * error * slope;
            }
        }
        gradient[learns].iter_mut().zip(of_piece).for_each(|(to, sum)| *to += sum);
        if self.breaks == Breaks::AtOneStep && demonstration.steps == 1 {
            // The state after a panic must not be used again.
            self.params.fill(f32::NAN);
            panic!("too short");
        }
        sum
    }
}

/// For observations of one number x: the output of choice i is `wᵢ x`, for as many choices as there are inputs. The value of
/// the state is their sum, unless the outputs are values themselves.
impl Outputs for ToyStudent {
    fn kind(&self) -> OutputKind {
        if self.values {
            OutputKind::Values(self.inputs)
        } else {
            OutputKind::Policy(ActionDistribution::Choices(self.inputs))
        }
    }

    fn encoded_len(&self) -> usize {
        1
    }

    fn encode(
        &self,
        _: LastStep<'_>,
        observation: Observation<'_>,
        codes: &mut Vec<f32>,
    ) -> Result<(), PolicyError> {
        let Some(&[x]) = observation.numbers() else {
            let (wanted, given) = ("1 number".into(), observation.describe());
            return Err(PolicyError::ObservationShape { wanted, given });
        };
        codes.push(x);
        Ok(())
    }

    fn forward(&mut self, _: usize, inputs: &[f32], _: &[f32]) -> &Predictions {
        let ToyStudent { params, seen, predictions, values, .. } = self;
        let weights = &params[..self.inputs];
        *seen = inputs.to_vec();
        predictions.outputs = inputs.iter().flat_map(|x| weights.iter().map(move |w| w * x)).collect();
        let of_state = inputs.iter().map(|x| weights.iter().sum::<f32>() * x);
        predictions.values = if *values { vec![] } else { of_state.collect() };
        predictions
    }

    fn backward(&mut self, d_outputs: &[f32], d_values: &[f32], gradient: &mut [f32]) {
        for (row, (x, d_outputs)) in self.seen.iter().zip(d_outputs.chunks_exact(self.inputs)).enumerate() {
            let d_value = d_values.get(row).unwrap_or(&0.0);
            gradient.iter_mut().zip(d_outputs).for_each(|(to, d)| *to += (d + d_value) * x);
        }
    }
}

/// Refuses the second part of every update.
impl Distributed for ToyStudent {
    fn add_gradients(
        &mut self,
        parts: &Arc<dyn GradientParts>,
        gradient: &mut [f32],
        receive: &mut dyn FnMut(&LossSums),
    ) -> Result<(), PolicyError> {
        if parts.count() > 1 {
            return Err(PolicyError::Study { piece: 1, why: "it broke".into() });
        }
        gradient.fill(0.0);
        receive(&parts.study(0, self, &mut PartScratch::default(), gradient)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    /// The gradient, against differences of the error: what the tests of learners rely on.
    #[test]
    fn the_gradient_is_that_of_the_error() {
        let mut rng = Seed::root(1).rng();
        let mut draw = |n: usize| -> Vec<f32> { (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect() };
        let demonstration =
            Demonstration { inputs: draw(2 * 12), actions: draw(12), steps: 12, ..Demonstration::default() };
        for (mut student, params) in [(ToyStudent::new(), 3), (ToyStudent::linear(2, 4), 4)] {
            let weights = draw(params);
            let mut gradient = vec![0.0; params];
            student.set_params(&weights).expect("as many");
            student.study(&demonstration, 0..12, 0, &mut gradient);
            assert!(
                student.learns().all(|i| gradient[i] != 0.0)
                    && gradient[student.learns().end..].iter().all(|&g| g == 0.0)
            );
            for i in 0..params {
                let mut error_at = |step: f32| {
                    let mut moved = weights.clone();
                    moved[i] += step;
                    student.set_params(&moved).expect("as many");
                    student.study(&demonstration, 0..12, 0, &mut vec![0.0; params])
                };
                let slope = (error_at(1e-2) - error_at(-1e-2)) / 2e-2;
                // Single precision, and the curvature between the two points.
                assert!((slope - f64::from(gradient[i])).abs() < 1e-2, "parameter {i}: {slope} {gradient:?}");
            }
        }
    }
}

//! A world of noisy pictures, and an agent that looks for one patch of them, with a known ground truth.

use foveate_core::{
    ActContext, Action, ActionSpace, Attention, Decision, Env, EnvError, EnvSpec, Fact, ImageBuf,
    Observation, ObservationSpace, PatchGrid, Policy, PolicyError, Rng, Seed, Selected, Step, TensorShape,
};

/// Side of the picture of [`Sparks`] in pixels.
const SIDE: usize = 24;
/// Side of a patch in pixels.
const PATCH: usize = 4;

/// The patches of the picture of [`Sparks`].
fn grid() -> PatchGrid {
    PatchGrid::tile(SIDE, SIDE, PATCH, PATCH).expect("fits")
}

/// Black and white noise with one chequered patch that moves in every step; 30 steps.
#[derive(Debug, Clone)]
pub struct Sparks {
    spec: EnvSpec,
    stream: Rng,
    noise: Rng,
    picture: ImageBuf,
    t: usize,
}

impl Default for Sparks {
    fn default() -> Self {
        Sparks::new()
    }
}

impl Sparks {
    /// The world at its first start.
    pub fn new() -> Self {
        Sparks {
            spec: EnvSpec {
                id: "sparks".into(),
                observation: ObservationSpace::rgb(SIDE, SIDE),
                action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
                max_steps: Some(30),
                fps: 10.0,
            },
            stream: Seed::root(0).rng(),
            noise: Seed::root(0).rng(),
            picture: ImageBuf::black(SIDE, SIDE),
            t: 0,
        }
    }

    fn paint(&mut self) {
        let noise = &mut self.noise;
        let (x, y) = grid().corner(noise.below(grid().len() as u64) as usize);
        for (at, pixel) in self.picture.rgb_mut().as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let (column, row) = (at % SIDE, at / SIDE);
            let inside = (x..x + PATCH).contains(&column) && (y..y + PATCH).contains(&row);
            let white = if inside { (column + row) % 2 == 0 } else { noise.below(2) == 0 };
            *pixel = [if white { 200 } else { 40 }; 3];
        }
    }
}

impl Env for Sparks {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.stream = Seed::root(seed).rng();
        }
        self.noise = Seed::root(self.stream.next_u64()).rng();
        self.t = 0;
        self.paint();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let Action::Continuous(&[push]) = action else {
            return Err(EnvError::ActionLength { env: "sparks".into(), wanted: 1, given: 0 });
        };
        self.t += 1;
        self.paint();
        Ok(Step { reward: push, terminated: false, truncated: self.t == 30 })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::rgb(self.picture.as_image())
    }

    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        Err(EnvError::NoView { env: "sparks".into(), why: "there is nothing more to see".into() })
    }

    fn state(&self) -> Fact {
        Fact::Count(self.t as u64)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

/// What a [`Looker`] reports as its attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceClaim {
    /// The truth: the patch that fits its template best.
    Truth,
    /// A patch computed from the sum of all pixels, unrelated to the action.
    Nonsense,
    /// Always the patch in the middle.
    Middle,
    /// No attention at all.
    Nothing,
}

/// Steers by the column of the patch that fits its template best, in the newest picture of a stack; has no memory.
#[derive(Debug, Clone)]
pub struct Looker {
    says: PlaceClaim,
    /// One weight per pixel of a patch, then the gain.
    weights: Vec<f32>,
}

impl Looker {
    /// One that looks for the chequered patch.
    pub fn new(says: PlaceClaim) -> Self {
        let chequered =
            (0..PATCH * PATCH).map(|i| if (i % PATCH + i / PATCH).is_multiple_of(2) { 1.0 } else { -1.0 });
        Looker { says, weights: chequered.chain([0.9]).collect() }
    }
}

/// Outputs of the last decision of a [`Looker`].
#[derive(Debug, Clone, Default)]
pub struct LookerMemory {
    action: Vec<f64>,
    importance: Vec<f32>,
    selected: Vec<u32>,
}

impl Policy for Looker {
    type Memory = LookerMemory;

    fn memory(&self) -> LookerMemory {
        LookerMemory::default()
    }

    fn reset(&self, _: &mut LookerMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut LookerMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let pixels = observation.image();
        let newest = pixels.and_then(|pixels| Some((pixels, pixels.frame(pixels.frames().checked_sub(1)?)?)));
        let Some((pixels, newest)) =
            newest.filter(|(pixels, _)| (pixels.width(), pixels.height()) == (SIDE, SIDE))
        else {
            return Err(PolicyError::BadConfig { why: "pictures of 24x24, please".into() });
        };
        let channels = pixels.channels();
        let grid = grid();
        let fit: Vec<f32> = (0..grid.len())
            .map(|patch| {
                let (x, y) = grid.corner(patch);
                let pixels = (0..PATCH * PATCH)
                    .map(|i| f32::from(newest[((y + i / PATCH) * SIDE + x + i % PATCH) * channels]));
                pixels.zip(&self.weights).map(|(pixel, weight)| (pixel - 120.0) * weight).sum::<f32>().abs()
            })
            .collect();
        let best = (0..grid.len()).rev().max_by(|&a, &b| fit[a].total_cmp(&fit[b])).unwrap_or(0);
        let column = best % grid.columns();
        memory.action = vec![f64::from(self.weights[PATCH * PATCH]) * (column as f64 / 2.5 - 1.0)];
        let sum: u64 = pixels.bytes().iter().map(|&byte| u64::from(byte)).sum();
        let claim = match self.says {
            PlaceClaim::Truth => best as u64,
            PlaceClaim::Nonsense => Seed::root(sum).rng().below(grid.len() as u64),
            PlaceClaim::Middle => 21,
            PlaceClaim::Nothing => return Ok(Decision::new(&memory.action)),
        };
        memory.importance = vec![0.1; grid.len()];
        memory.importance[claim as usize] = 1.0;
        memory.selected = vec![claim as u32];
        let chosen = Selected { tokens: &memory.selected, ranks: &[0] };
        let attention = Attention::patches(grid, &memory.importance, chosen)?;
        Ok(Decision::new(&memory.action).with_attention(attention))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![
            TensorShape { name: "template".into(), shape: vec![PATCH, PATCH] },
            TensorShape { name: "gain".into(), shape: vec![1] },
        ]
    }

    fn params(&self) -> Vec<f32> {
        self.weights.clone()
    }

    fn set_params(&mut self, flat: &[f32]) -> Result<(), PolicyError> {
        self.weights = flat.to_vec();
        Ok(())
    }
}

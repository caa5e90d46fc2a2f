//! [`Digits`] as an [`Env`].

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, ImageBuf, Observation, ObservationSpace, PixelShape,
    Pixels, Rng, Seed, Step,
};

use super::idx::LabelledPictures;
use super::perturb::{Perturbation, Strength};
use super::{CLASSES, ID, PIXELS, SIDE};

/// The settings of the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DigitsConfig {
    /// How strongly pictures are changed.
    pub strength: Strength,
    /// True if seed s shows picture s modulo their number, so that as many consecutive seeds show each picture once;
    /// otherwise pictures are drawn with replacement.
    pub in_order: bool,
}

impl DigitsConfig {
    /// What the world shows and takes.
    pub fn spec() -> EnvSpec {
        EnvSpec {
            id: ID.into(),
            observation: ObservationSpace::Image(SHAPE),
            action: ActionSpace::Discrete { n: CLASSES },
            max_steps: None,
            fps: 1.0,
        }
    }
}

const SHAPE: PixelShape = PixelShape { frames: 1, height: SIDE, width: SIDE, channels: 1 };

/// Handwritten digits to classify.
///
/// * observation: a grey picture of 28 × 28 pixels, 0 the background, 255 the pen
/// * action: a choice, the digit
/// * reward: 1 for the right digit, else 0
/// * end: terminated after one step
///
/// The expert gives the right digit.
#[derive(Debug, Clone)]
pub struct Digits {
    config: DigitsConfig,
    spec: EnvSpec,
    set: LabelledPictures,
    rng: Rng,
    index: usize,
    perturbation: Perturbation,
    shown: [u8; PIXELS],
    running: bool,
}

impl Digits {
    /// Builds the world with the pictures of `set`; it must be reset before the first step.
    pub fn new(config: DigitsConfig, set: LabelledPictures) -> Self {
        Digits {
            config,
            spec: DigitsConfig::spec(),
            set,
            rng: stream(0),
            index: 0,
            perturbation: Perturbation::default(),
            shown: [0; PIXELS],
            running: false,
        }
    }
}

/// The random stream of a seed.
fn stream(seed: u64) -> Rng {
    Seed::root(seed).child("digits", 0).rng()
}

impl Env for Digits {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Without a seed, pictures in order go on with the next one.
    fn reset(&mut self, seed: Option<u64>) {
        let len = self.set.len();
        if let Some(seed) = seed {
            self.rng = stream(seed);
        }
        self.index = match (self.config.in_order, seed) {
            (false, _) => self.rng.below(len as u64) as usize,
            (true, Some(seed)) => (seed % len as u64) as usize,
            (true, None) => (self.index + 1) % len,
        };
        self.perturbation = Perturbation::draw(self.config.strength, &mut self.rng);
        self.perturbation.apply(self.set.picture(self.index), &mut self.rng, &mut self.shown);
        self.running = true;
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        self.spec.action.check(ID, action)?;
        let right = action == Action::Discrete(self.set.label(self.index));
        self.running = false;
        Ok(Step { reward: f64::from(u8::from(right)), terminated: true, truncated: false })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::Image(Pixels::new(SHAPE, &self.shown).expect("as many bytes"))
    }

    /// The picture, enlarged.
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        let picture = Pixels::new(SHAPE, &self.shown).expect("as many bytes").to_image();
        view.fit(picture.as_image());
        Ok(())
    }

    /// The `picture`'s number in its file, its `label`, and its changes: `angle` in degrees, `shift` in pixels, `spots`.
    fn state(&self) -> Fact {
        let Perturbation { angle, shift, spots } = self.perturbation;
        Fact::Group(vec![
            ("picture", Fact::Count(self.index as u64)),
            ("label", Fact::Count(self.set.label(self.index) as u64)),
            ("angle", Fact::Number(f64::from(angle))),
            ("shift", Fact::List(shift.map(|x| Fact::Number(f64::from(x))).to_vec())),
            ("spots", Fact::Count(u64::from(spots))),
        ])
    }

    /// 1 for the right digit, 0 for the others.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        self.spec.action.check_len(ID, action.len())?;
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        action.fill(0.0);
        action[self.set.label(self.index)] = 1.0;
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::digits::idx;

    /// Picture i has i + 1 bright pixels in its middle row, and the label i modulo 10.
    fn world(in_order: bool, strength: Strength) -> Digits {
        let picture =
            |i: usize| std::array::from_fn(|at| if at / SIDE == 14 && at % SIDE <= i { 255 } else { 0 });
        let pictures: Vec<[u8; PIXELS]> = (0..20).map(picture).collect();
        let labels: Vec<u8> = (0..20).map(|i| i % 10).collect();
        let set =
            LabelledPictures::read(Arc::new(idx::files(&pictures, &labels).into())).expect("good files");
        Digits::new(DigitsConfig { strength, in_order }, set)
    }

    fn shown(env: &Digits) -> usize {
        env.shown.iter().map(|&pixel| usize::from(pixel == 255)).sum::<usize>() - 1
    }

    #[test]
    fn test_pictures_come_in_the_order_of_the_seeds() {
        let mut env = world(true, Strength::NONE);
        for seed in [0, 1, 19, 20, 41, u64::MAX] {
            env.reset(Some(seed));
            assert_eq!(shown(&env), (seed % 20) as usize);
        }
        env.reset(Some(18));
        for next in [19, 0, 1] {
            env.reset(None);
            assert_eq!(shown(&env), next);
        }
    }

    #[test]
    fn training_pictures_are_drawn_uniformly() {
        let mut env = world(false, Strength::NONE);
        let mut counts = [0_u32; 20];
        for seed in 0..4000 {
            env.reset(Some(seed));
            counts[shown(&env)] += 1;
        }
        // 200 each on average, with a standard deviation of 14.
        assert!(counts.iter().all(|count| (130..270).contains(count)), "{counts:?}");
        // One seed determines a sequence of episodes.
        let mut sequence = |seed| {
            env.reset(Some(seed));
            let mut all = vec![shown(&env)];
            all.extend((0..30).map(|_| {
                env.reset(None);
                shown(&env)
            }));
            all
        };
        assert_eq!(sequence(5), sequence(5));
        assert_ne!(sequence(5), sequence(6));
    }

    #[test]
    fn the_right_digit_is_rewarded_and_the_expert_knows_it() {
        let mut env = world(true, Strength::default());
        let mut advice = [0.5; CLASSES];
        assert!(matches!(env.expert(&mut advice), Err(EnvError::NeedsReset { .. })));
        let mut sum = 0.0;
        for seed in 0..20 {
            env.reset(Some(seed));
            env.expert(&mut advice).expect("an expert");
            let right = env.spec.action.choose(&advice).expect("scores");
            assert_eq!(right, Action::Discrete(seed as usize % 10));
            let step = env.step(if seed < 15 { right } else { Action::Discrete(7) }).expect("a digit");
            assert!(step.terminated && !step.truncated);
            assert!(matches!(env.step(right), Err(EnvError::NeedsReset { .. })));
            sum += step.reward;
        }
        assert_eq!(sum, 16.0, "seed 17 shows a 7");
        assert!(matches!(env.expert(&mut [0.0; 3]), Err(EnvError::ActionLength { .. })));
    }

    #[test]
    fn people_see_the_picture_enlarged() {
        let mut env = world(true, Strength::NONE);
        env.reset(Some(9));
        let mut view = ImageBuf::black(560, 560);
        env.render(&mut view).expect("a picture");
        let bright = view.rgb().iter().map(|&byte| usize::from(byte == 255)).sum::<usize>();
        assert_eq!(bright, 10 * 20 * 20 * 3);
    }
}

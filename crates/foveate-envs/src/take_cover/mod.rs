//! DoomTakeCover: a corridor of monsters whose fireballs the player dodges, the second world of AttentionAgent.
//!
//! [`TakeCover`] is what an agent meets: the screen of the game made smaller to 96 × 96, and one number for an action. The
//! game itself, [ViZDoom](https://vizdoom.farama.org), runs in another process and is some other [`Env`] that whoever
//! makes this one hands in. Changed worlds are changed maps ([`wad`], [`textmap`]) or a text over the screen
//! ([`hovering_text`]).
//!
//! Sources: Tang, Nguyen and Ha, "Neuroevolution of Self-Interpretable Agents" (2020), and its published environment.

pub mod hovering_text;
pub mod request;
pub mod textmap;
pub mod variants;
pub mod wad;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, Image, ImageBuf, Observation, ObservationSpace,
    PixelShape, Step,
};

pub use request::{PictureKind, TakeCoverConfig};

use crate::wrap::Bilinear;
use hovering_text::HoveringText;

/// The name that users type.
pub const ID: &str = "take-cover";

/// Steps after which an episode is truncated.
pub const MAX_STEPS: usize = 2100;
/// Sides of the picture that agents see.
const SIDE: usize = 96;
/// Beyond this, to either side, a button is pressed.
const THRESHOLD: f64 = 0.3333;
/// Tics of the game in a second, one for every step.
const FPS: f64 = 35.0;

/// The game as agents meet it.
///
/// The action is one number: above 0.3333 the player moves to the right, below −0.3333 to the left, else not at all. Every
/// step is worth 1, also the one in which the player dies, so that the return is the number of steps, at most
/// [`MAX_STEPS`].
pub struct TakeCover {
    game: Box<dyn Env>,
    spec: EnvSpec,
    text: Option<HoveringText>,
    resize: Bilinear,
    /// The screen with the text, `[height, width, 3]`; its size.
    screen: ImageBuf,
    /// `[96, 96, 3]`
    small: Vec<u8>,
}

impl TakeCover {
    /// Agents' view of `game`, whose choices are: do nothing, right, left. With `text`, that is over its screen.
    ///
    /// # Errors
    /// When `game` shows no picture or has other choices.
    pub fn new(game: Box<dyn Env>, text: Option<HoveringText>) -> Result<Self, EnvError> {
        let bad = |why: String| EnvError::BadOption { env: ID.into(), why };
        let picture = game.spec().observation.image().filter(|shape| shape.channels == 3);
        let Some(size) = picture.map(PixelShape::tall) else {
            return Err(bad(format!("its game shows {}", game.spec().observation.describe())));
        };
        if game.spec().action != (ActionSpace::Discrete { n: 3 }) {
            return Err(bad(format!("its game takes {:?}; three choices are due", game.spec().action)));
        }
        Ok(TakeCover {
            game,
            spec: spec(),
            text,
            resize: Bilinear::new(size, (SIDE, SIDE)),
            screen: ImageBuf::black(size.0, size.1),
            small: vec![0; SIDE * SIDE * 3],
        })
    }

    /// Takes over what the game shows.
    fn look(&mut self) {
        if let Some(screen) = self.game.observation().picture() {
            self.screen.rgb_mut().copy_from_slice(screen.rgb());
        }
        if let Some(text) = &self.text {
            text.draw(&mut self.screen);
        }
        self.resize.apply(self.screen.rgb(), &mut self.small);
    }
}

/// The shape of the world, which is the same for all its pictures and variants.
pub fn spec() -> EnvSpec {
    EnvSpec {
        id: ID.into(),
        observation: ObservationSpace::rgb(SIDE, SIDE),
        action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    }
}

/// The choice that an action stands for.
const fn choice(action: f64) -> usize {
    if action > THRESHOLD {
        1
    } else if action < -THRESHOLD {
        2
    } else {
        0
    }
}

impl Env for TakeCover {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        self.game.reset(seed);
        self.look();
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.spec.action.check(ID, action)?;
        let Action::Continuous(&[action]) = action else { unreachable!("its space has one number") };
        let step = self.game.step(Action::Discrete(choice(action)))?;
        self.look();
        Ok(step)
    }

    fn observation(&self) -> Observation<'_> {
        Observation::rgb(Image::new(SIDE, SIDE, &self.small).expect("as many bytes as its size says"))
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view.fit(self.screen.as_image());
        Ok(())
    }

    fn state(&self) -> Fact {
        self.game.state()
    }

    /// That of the game, which knows where the fireballs fly; only the buttons at their ends: −1, 0, 1.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let given = action.len();
        let [action] = action else {
            return Err(EnvError::ActionLength { env: ID.into(), wanted: 1, given });
        };
        let mut scores = [0.0; 3];
        self.game.expert(&mut scores)?;
        *action = scores[1] - scores[2];
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(TakeCover {
            game: self.game.boxed_clone(),
            spec: self.spec.clone(),
            text: self.text.clone(),
            resize: self.resize.clone(),
            screen: self.screen.clone(),
            small: self.small.clone(),
        })
    }
}

#[cfg(test)]
mod tests;

//! DoomTakeCover: a corridor with monsters whose fireballs the player must dodge; the second world of
//! AttentionAgent.
//!
//! [`TakeCover`] is the world as agents use it: the game's screen scaled down to 96 × 96, and one number per
//! action. The game itself, [ViZDoom](https://vizdoom.farama.org), runs in another process; the caller passes
//! it in as another [`Env`]. Variants change the map ([`wad`], [`textmap`]) or draw text over the screen
//! ([`hovering_text`]).
//!
//! Sources: Tang, Nguyen and Ha, "Neuroevolution of Self-Interpretable Agents" (2020), and its published
//! environment.

pub mod hovering_text;
pub mod request;
pub mod textmap;
pub mod variants;
pub mod wad;

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, Image, ImageBuf, Observation,
    ObservationSpace, PixelShape, Step,
};

pub use request::{PictureKind, TakeCoverConfig};

use crate::wrap::Bilinear;
use hovering_text::HoveringText;

/// The name that users type.
pub const ID: &str = "take-cover";

/// Steps after which an episode is truncated.
pub const MAX_STEPS: usize = 2100;
/// Side of the agents' picture, in pixels.
const SIDE: usize = 96;
/// An action beyond this threshold, in either direction, presses a button.
const THRESHOLD: f64 = 0.3333;
/// The game's choices for left, nothing and right; its own order is nothing, right, left.
const GAME_CHOICES: [usize; 3] = [2, 0, 1];
/// Game tics per second; one tic per step.
const FPS: f64 = 35.0;

/// The game as a world for agents.
///
/// The action is one number: above 0.3333 the player moves right, below −0.3333 left, otherwise not at all; or, if asked for, one
/// of these [choices](TakeCover::with_choices).
/// Every step gives a reward of 1, including the one in which the player dies, so the return is the number of
/// steps, at most [`MAX_STEPS`].
pub struct TakeCover {
    game: Box<dyn Env>,
    spec: EnvSpec,
    text: Option<HoveringText>,
    resize: Bilinear,
    /// The screen with the text, `[height, width, 3]`.
    screen: ImageBuf,
    /// `[96, 96, 3]`
    small: Vec<u8>,
}

impl TakeCover {
    /// The agents' view of `game`, whose choices must be: do nothing, right, left. `text` is drawn over its
    /// screen.
    ///
    /// # Errors
    /// When `game` has no RGB picture or other choices.
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
            spec: spec(false),
            text,
            resize: Bilinear::new(size, (SIDE, SIDE)),
            screen: ImageBuf::black(size.0, size.1),
            small: vec![0; SIDE * SIDE * 3],
        })
    }

    /// The same, with choices as its actions: left, nothing, right.
    #[must_use]
    pub fn with_choices(mut self) -> Self {
        self.spec = spec(true);
        self
    }

    /// Copies the game's screen, draws the text and scales the picture down.
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

/// The spec of the world, which is the same for all its pictures and variants; whether its actions are choices.
pub fn spec(choices: bool) -> EnvSpec {
    EnvSpec {
        id: ID.into(),
        observation: ObservationSpace::rgb(SIDE, SIDE),
        action: if choices {
            ActionSpace::Discrete { n: 3 }
        } else {
            ActionSpace::Box { low: vec![-1.0], high: vec![1.0] }
        },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    }
}

/// The game's choice for an action.
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

    fn reset_error(&self) -> Option<EnvError> {
        self.game.reset_error()
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        self.spec.action.check(ID, action)?;
        let choice = match action {
            Action::Continuous(&[action]) => choice(action),
            Action::Discrete(action) => GAME_CHOICES[action],
            Action::Continuous(_) => unreachable!("its space has one number"),
        };
        let step = self.game.step(Action::Discrete(choice))?;
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

    /// The game's expert, which knows the fireballs' positions. As a number it uses only −1, 0 and 1.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        let (given, wanted) = (action.len(), self.spec.action.len());
        let mut scores = [0.0; 3];
        match action {
            [action] if wanted == 1 => {
                self.game.expert(&mut scores)?;
                *action = scores[1] - scores[2];
            }
            [_, _, _] if wanted == 3 => {
                self.game.expert(&mut scores)?;
                action.copy_from_slice(&GAME_CHOICES.map(|choice| scores[choice]));
            }
            _ => return Err(EnvError::ActionLength { env: ID.into(), wanted, given }),
        }
        Ok(())
    }

    /// The game's costs of left, nothing and right.
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        self.game.costs(costs)?;
        if let Ok(game) = <[f64; 3]>::try_from(&**costs) {
            costs.copy_from_slice(&GAME_CHOICES.map(|choice| game[choice]));
        }
        Ok(())
    }

    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        self.game.gaze(points)
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

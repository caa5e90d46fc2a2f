//! [`CarRacing`] as an [`Env`].

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, Image, ImageBuf, Observation, ObservationSpace,
    StateEdit, Step,
};

use super::ID;
use super::car::Controls;
use super::config::{CarRacingConfig, PictureKind, Seeding};
use super::driver::{Driver, Style, situation};
use super::picture::classic::ClassicPicture;
use super::picture::exact::ExactPicture;
use super::picture::fast::FastPicture;
use super::picture::{FRAME_BYTES, SIDE, view};
use super::scene::{Body, Scene};
use super::track::Track;
use super::variants::VariantState;
use super::world::{KINDS, World};

/// A car on a random closed track, seen from above; after Gymnasium's `car_racing.py`.
///
/// * observation: `[96, 96, 3]` bytes
/// * action: steering (−1 full left to 1 full right), gas (0 to 1) and brake (0 to 1); or, if discrete, one
///   of nothing, right, left, gas, brake. Values outside these ranges are used unchanged, except that gas is
///   clipped. With Gymnasium's seeding every number is first rounded to f32, because Gymnasium's action space
///   is f32; see [`CarRacingConfig::round_actions`].
/// * reward: −0.1 per step, 1000 / tiles for the first visit of every tile; −100 instead when the car leaves
///   the field
/// * end: terminated when every tile was visited or the car left the field, truncated after `max_steps`; both
///   can happen in the same step, as in Gymnasium
///
/// A reset without a seed continues the random stream; a world that never got a seed uses
/// [`DEFAULT_SEED`](super::DEFAULT_SEED).
#[derive(Debug, Clone)]
pub struct CarRacing {
    config: CarRacingConfig,
    spec: EnvSpec,
    world: World,
    driver: Driver,
    painter: Painter,
    frame: Vec<u8>,
    steps: usize,
    running: bool,
    /// Gymnasium's option `randomize` of the next reset.
    randomize: Option<bool>,
}

#[derive(Debug, Clone)]
enum Painter {
    Exact(Box<ExactPicture>),
    Classic(Box<ClassicPicture>),
    Fast(Box<FastPicture>),
    Nothing,
}

impl Painter {
    fn new(config: &CarRacingConfig) -> Self {
        match config.picture {
            PictureKind::Exact => Painter::Exact(Box::default()),
            PictureKind::Fast => Painter::Fast(Box::default()),
            PictureKind::Classic => {
                let mut picture = ClassicPicture::new();
                picture.label = config.label;
                Painter::Classic(Box::new(picture))
            }
            PictureKind::None => Painter::Nothing,
        }
    }

    fn draw(&mut self, scene: &Scene<'_>, frame: &mut [u8]) {
        match self {
            Painter::Exact(picture) => picture.draw(scene, frame),
            Painter::Classic(picture) => picture.draw(scene, frame),
            Painter::Fast(picture) => picture.draw(scene, frame),
            Painter::Nothing => {}
        }
    }
}

impl CarRacing {
    /// Builds a world; it must be reset before the first step.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] for an invalid combination of options.
    pub fn new(config: CarRacingConfig) -> Result<Self, EnvError> {
        config.check()?;
        let action = if config.continuous {
            ActionSpace::Box { low: vec![-1.0, 0.0, 0.0], high: vec![1.0, 1.0, 1.0] }
        } else {
            ActionSpace::Discrete { n: 5 }
        };
        let spec = EnvSpec {
            id: ID.into(),
            observation: ObservationSpace::rgb(SIDE, SIDE),
            action,
            max_steps: config.max_steps,
            fps: 50.0,
        };
        let variants = VariantState::new(config.variants.clone())?;
        let world = World::new(&config, variants);
        let painter = Painter::new(&config);
        Ok(CarRacing {
            config,
            spec,
            world,
            driver: Driver::default(),
            painter,
            frame: vec![0; FRAME_BYTES],
            steps: 0,
            running: false,
            randomize: None,
        })
    }

    /// The configuration it was built with.
    pub const fn config(&self) -> &CarRacingConfig {
        &self.config
    }

    /// The track of this episode; empty before the first reset.
    pub const fn track(&self) -> &Track {
        &self.world.track
    }

    /// The current scene, ready to draw; empty before the first reset.
    pub fn scene(&self) -> Scene<'_> {
        self.world.scene()
    }

    /// Like [`Env::reset`], with Gymnasium's option `randomize`: with domain randomisation, `Some(false)`
    /// keeps the current colours.
    pub fn reset_with(&mut self, seed: Option<u64>, randomize: Option<bool>) {
        self.world.reset(seed, randomize.unwrap_or(true));
        self.driver = Driver::default();
        self.steps = 0;
        self.running = true;
        self.draw();
    }

    fn draw(&mut self) {
        let body = &self.world.car.island.hull.body;
        self.world.variants.on_frame(self.steps as u64, body.position, self.world.t);
        self.painter.draw(&self.world.scene(), &mut self.frame);
    }

    fn controls(&self, action: Action<'_>) -> Result<Controls, EnvError> {
        let wrong_kind = |wanted: &str, given: String| EnvError::ActionKind {
            env: ID.into(),
            wanted: wanted.into(),
            given,
        };
        match action {
            Action::Continuous(values) if self.config.continuous => {
                let &[steer, gas, brake] = values else {
                    return Err(EnvError::ActionLength { env: ID.into(), wanted: 3, given: values.len() });
                };
                let rounds = self.config.round_actions.unwrap_or(self.config.seeding == Seeding::Gymnasium);
                let take = |index: usize, value: f64| {
                    // With rounding to f32, a number too large for f32 counts as infinite.
                    let taken = if rounds { f64::from(value as f32) } else { value };
                    if taken.is_finite() {
                        Ok(taken)
                    } else {
                        Err(EnvError::ActionNotFinite { env: ID.into(), index, value })
                    }
                };
                Ok(Controls { steer: -take(0, steer)?, gas: take(1, gas)?, brake: take(2, brake)? })
            }
            Action::Discrete(choice) if !self.config.continuous => Ok(match choice {
                0 => Controls::default(),
                1 => Controls { steer: -0.6, ..Controls::default() },
                2 => Controls { steer: 0.6, ..Controls::default() },
                3 => Controls { gas: 0.2, ..Controls::default() },
                4 => Controls { brake: 0.8, ..Controls::default() },
                _ => return Err(wrong_kind("a choice of 0 to 4", format!("choice {choice}"))),
            }),
            Action::Continuous(values) => {
                Err(wrong_kind("a choice of 0 to 4", format!("of {} numbers", values.len())))
            }
            Action::Discrete(choice) => Err(wrong_kind("3 numbers", format!("choice {choice}"))),
        }
    }
}

impl Env for CarRacing {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        let randomize = self.randomize.take();
        self.reset_with(seed, randomize);
    }

    /// `randomize`: with domain randomisation, `false` keeps the current colours.
    fn reset_option(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        let unknown = |given: &str, what, known: &str| {
            Err(EnvError::UnknownOption { env: ID.into(), what, given: given.into(), known: known.into() })
        };
        if name != "randomize" {
            return unknown(name, "option of a reset", "randomize");
        }
        match value.parse() {
            Ok(randomize) => self.randomize = Some(randomize),
            Err(_) => return unknown(value, "value of randomize", "true, false"),
        }
        Ok(())
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let controls = self.controls(action)?;
        self.world.drive(&controls);
        self.steps += 1;
        self.draw();
        let outcome = self.world.judge();
        let truncated = self.config.max_steps.is_some_and(|limit| self.steps >= limit);
        self.running = !(outcome.terminated || truncated);
        Ok(Step { reward: outcome.reward, terminated: outcome.terminated, truncated })
    }

    fn observation(&self) -> Observation<'_> {
        let image = Image::new(SIDE, SIDE, &self.frame).expect("the frame has the size of the picture");
        Observation::rgb(image)
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view::draw(&self.scene(), view);
        Ok(())
    }

    /// `hull` and `wheels` as in Box2D (f32, widened): position of the body's origin, angle, velocity of the
    /// centre of mass, angular velocity; `tiles_visited`; and the rest of the state: time, score, the wheels'
    /// rotation, the angles of the joints.
    fn state(&self) -> Fact {
        let car = &self.world.car;
        let numbers = |values: [f64; 4]| Fact::List(values.map(Fact::Number).to_vec());
        Fact::Group(vec![
            ("hull", body_fact(&car.island.hull.body)),
            ("wheels", Fact::List(car.island.wheels.iter().map(|wheel| body_fact(&wheel.body)).collect())),
            ("tiles_visited", Fact::Count(self.world.tiles_visited as u64)),
            ("tiles", Fact::Count(self.world.track.points.len() as u64)),
            ("t", Fact::Number(self.world.t)),
            ("score", Fact::Number(self.world.score)),
            ("wheel_omega", numbers(car.omega)),
            ("wheel_phase", numbers(car.phase)),
            ("joint_angle", numbers(std::array::from_fn(|i| f64::from(car.island.joint_angle(i))))),
        ])
    }

    /// A scripted driver that uses the world's state: pure pursuit of the centre line, at the highest speed
    /// that the visible bends allow.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        if !self.config.continuous {
            return Err(EnvError::NoExpert { env: format!("{ID} with discrete actions") });
        }
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let &mut [ref mut steer, ref mut gas, ref mut brake] = action else {
            return Err(EnvError::ActionLength { env: ID.into(), wanted: 3, given: action.len() });
        };
        let hull = self.world.car.island.hull.body;
        [*steer, *gas, *brake] = self.driver.act(&Style::TEACHER, &hull, &self.world.track.points);
        Ok(())
    }

    /// The road, its kerbs, the lighter squares of the ground, the indicators: erasing one changes the picture, never the physics.
    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    /// Lengths in world units (the road is 13.3 wide), speed in units per second, angles in radians, to the left positive:
    /// how far the edges of the road are (negative beyond them), where the road leads, and how it bends ahead.
    fn situation(&self, quantities: &mut Vec<(&'static str, f64)>) {
        quantities.clear();
        if !self.world.track.points.is_empty() {
            quantities.extend(situation(&self.world.car.island.hull.body, &self.world.track.points));
        }
    }

    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        if !self.running {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let refused = |why: String| Err(EnvError::BadEdit { env: ID.into(), edit: edit.to_string(), why });
        match edit {
            StateEdit::Erase(kind) if self.world.erase(kind) => {
                self.draw();
                Ok(())
            }
            StateEdit::Erase(_) => refused(format!("choose from: {}", KINDS.join(", "))),
            _ => refused("this world is no grid; only kinds of things can be erased".into()),
        }
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

fn body_fact(body: &Body) -> Fact {
    Fact::Group(vec![
        ("x", Fact::Number(f64::from(body.position[0]))),
        ("y", Fact::Number(f64::from(body.position[1]))),
        ("angle", Fact::Number(f64::from(body.angle))),
        ("vx", Fact::Number(f64::from(body.velocity[0]))),
        ("vy", Fact::Number(f64::from(body.velocity[1]))),
        ("w", Fact::Number(f64::from(body.spin))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(picture: PictureKind) -> CarRacing {
        let config = CarRacingConfig { picture, ..CarRacingConfig::default() };
        let mut world = CarRacing::new(config).expect("valid options");
        world.reset(Some(3));
        for _ in 0..60 {
            world.step(Action::Continuous(&[0.0, 0.3, 0.0])).expect("it runs");
        }
        world
    }

    fn colors(world: &CarRacing, wanted: fn([u8; 3]) -> bool) -> usize {
        world.frame.as_chunks::<3>().0.iter().filter(|rgb| wanted(**rgb)).count()
    }

    #[test]
    fn kinds_of_things_leave_the_picture_and_not_the_physics() {
        for picture in [PictureKind::Exact, PictureKind::Fast, PictureKind::Classic] {
            let plain = world(picture);
            let grey = |[r, g, b]: [u8; 3]| r.abs_diff(g) < 4 && r.abs_diff(b) < 4 && (90..=115).contains(&r);
            assert!(colors(&plain, grey) > 300, "{picture:?}");
            let mut all = world(picture);
            for kind in KINDS {
                let mut edited = world(picture);
                edited.edit_state(&StateEdit::Erase(kind)).expect("it has that");
                all.edit_state(&StateEdit::Erase(kind)).expect("it has that");
                if kind == "road" {
                    assert!(colors(&edited, grey) < 20, "{picture:?}");
                }
                let bottom = edited.frame[86 * SIDE * 3..].iter().any(|&byte| byte > 60);
                assert_eq!(bottom, kind != "indicators", "{picture:?} {kind}");
                let action = [0.1, 0.2, 0.0];
                let mut beside = plain.clone();
                for _ in 0..5 {
                    let steps =
                        [&mut beside, &mut edited].map(|world| world.step(Action::Continuous(&action)));
                    assert_eq!(steps[0], steps[1], "{picture:?} {kind}");
                }
                assert_eq!(beside.state(), edited.state(), "{picture:?} {kind}");
                edited.reset(Some(3));
                beside.reset(Some(3));
                assert_eq!(beside.frame, edited.frame, "a reset brings it back: {picture:?} {kind}");
            }
            let green = |[r, g, b]: [u8; 3]| r.abs_diff(b) < 4 && r.abs_diff(100) < 4 && g.abs_diff(202) < 4;
            assert!(colors(&all, green) > 84 * SIDE - 200, "only field and car are left: {picture:?}");
        }
    }

    #[test]
    fn edits_that_make_no_sense_are_refused() {
        let mut world = world(PictureKind::Fast);
        let refused = world.edit_state(&StateEdit::Erase("trees")).expect_err("there are none");
        assert!(refused.to_string().contains("road, kerbs, grass, indicators"), "{refused}");
        assert!(world.edit_state(&StateEdit::Block([1, 1])).is_err());
        let mut none = vec![];
        CarRacing::new(CarRacingConfig::default()).expect("valid").situation(&mut none);
        assert!(none.is_empty(), "there is no track yet");
        world.situation(&mut none);
        assert_eq!(none.len(), 6);
    }
}

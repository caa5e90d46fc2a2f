//! [`CartPoleBatch`]: many worlds that step together.

use foveate_core::{EnvError, EnvSpec, Step};
use foveate_kernels::Level;
use foveate_kernels::libm::{self, sin_cos};
use foveate_kernels::plain::Plain;

use super::ID;
use super::env::{CartPoleConfig, DEFAULT_SEED, MAX_STEPS, shown, spec};
use super::physics::{CartPoleState, FORCE, Motion, Squares, power, reward};
use crate::random::Mt19937;

/// Worlds whose numbers lie side by side: as many as the widest registers hold.
const WIDE: usize = 8;

/// Many [`CartPoleSwingUp`](super::CartPoleSwingUp) worlds that step together, in vector instructions.
///
/// Each has its own random stream. States, observations and rewards are those of single worlds, to the bit. A world whose
/// episode is over stays as it is until its reset.
///
/// ```
/// use foveate_envs::cartpole_swingup::{CartPoleBatch, CartPoleConfig};
///
/// let mut worlds = CartPoleBatch::new(CartPoleConfig::default(), 100);
/// for world in 0..100 {
///     worlds.reset(world, Some(world as u64));
/// }
/// let steps = worlds.step(&[0.5; 100])?;
/// assert_eq!(steps.len(), 100);
/// assert_eq!(worlds.observations().len(), 100 * 5);
/// # Ok::<(), foveate_core::EnvError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CartPoleBatch {
    spec: EnvSpec,
    level: Level,
    streams: Vec<Mt19937>,
    /// `[worlds / WIDE]`
    groups: Vec<Group>,
    /// `[worlds]`: steps of the episode.
    taken: Vec<usize>,
    /// `[worlds]`: the last step of each.
    steps: Vec<Step>,
    /// `[worlds, numbers]`
    observations: Vec<f32>,
}

/// One number for each of some worlds.
type Wide = [f64; WIDE];

/// The states of some worlds, and sine and cosine of their angles.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
struct States {
    x: Wide,
    x_dot: Wide,
    theta: Wide,
    theta_dot: Wide,
    sin: Wide,
    cos: Wide,
}

/// The worlds of a register.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
struct Group {
    now: States,
    /// After the step.
    next: States,
    force: Wide,
    /// Squares of angular velocity and cosine before the step.
    spin_squared: Wide,
    cos_squared: Wide,
    /// Cosine of [`CartPoleState::across`] after the step.
    across: Wide,
    reward: Wide,
    /// `[5, WIDE]`: the observation after the step.
    seen: [[f32; WIDE]; 5],
    /// What the C library has to be asked for: parts as [`SPIN`].
    doubtful: [u64; WIDE],
    /// Whether the cart left the track; 0 or 1.
    off: [u64; WIDE],
    /// Whether an episode of the world runs: all bits, or none.
    running: [u64; WIDE],
}

/// Parts of [`Group::doubtful`]: the square of the angular velocity.
const SPIN: u64 = 1;
/// That of the cosine.
const COS_SQUARED: u64 = 2;
/// The sine.
const SIN: u64 = 4;
/// The cosine.
const COS: u64 = 8;
/// The cosine across the track.
const ACROSS: u64 = 16;

impl CartPoleBatch {
    /// `worlds` worlds; each must be reset before its first step.
    pub fn new(config: CartPoleConfig, worlds: usize) -> Self {
        let spec = spec(config);
        let mut batch = CartPoleBatch {
            level: Level::best(),
            streams: vec![Mt19937::gym_seeded(DEFAULT_SEED); worlds],
            groups: vec![Group::default(); worlds.div_ceil(WIDE)],
            taken: vec![0; worlds],
            steps: vec![Step { reward: 0.0, terminated: false, truncated: false }; worlds],
            observations: vec![0.0; worlds * if config.redundant { 10 } else { 5 }],
            spec,
        };
        for world in 0..worlds {
            batch.put(world, CartPoleState::HANGING);
        }
        batch
    }

    /// The same worlds on another instruction set, which gives the same bits.
    #[must_use]
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// The description of a single world.
    pub const fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    /// Number of worlds.
    pub fn worlds(&self) -> usize {
        self.taken.len()
    }

    /// `[worlds, numbers]`: the observation of every world.
    pub fn observations(&self) -> &[f32] {
        &self.observations
    }

    /// Position, angle and velocities of a world, in full precision.
    ///
    /// # Panics
    /// When there is no such world.
    pub fn cart_pole(&self, world: usize) -> CartPoleState {
        assert!(world < self.worlds(), "world {world} of {}", self.worlds());
        self.groups[world / WIDE].now.state(world % WIDE)
    }

    /// Begins an episode of one world; without a seed, its random stream goes on.
    ///
    /// # Panics
    /// When there is no such world.
    pub fn reset(&mut self, world: usize, seed: Option<u64>) {
        assert!(world < self.worlds(), "world {world} of {}", self.worlds());
        if let Some(seed) = seed {
            self.streams[world] = Mt19937::gym_seeded(seed);
        }
        let start = CartPoleState::start(&mut self.streams[world]);
        self.put(world, start);
        self.taken[world] = 0;
        self.groups[world / WIDE].running[world % WIDE] = u64::MAX;
        self.steps[world] = Step { reward: 0.0, terminated: false, truncated: false };
    }

    fn put(&mut self, world: usize, state: CartPoleState) {
        let motion = Motion::new(state);
        self.groups[world / WIDE].now.put(world % WIDE, &motion);
        let five = shown(state, motion.sin_cos());
        let numbers = self.observations.len() / self.worlds();
        for to in self.observations[world * numbers..][..numbers].chunks_exact_mut(5) {
            to.copy_from_slice(&five);
        }
    }

    /// Steps all worlds whose episodes run; `actions` is `[worlds]`, clipped to −1 ..= 1. Returns the last step of every world:
    /// of one whose episode was over before, still its final step. Does not allocate.
    ///
    /// # Errors
    /// When there are more or fewer actions than worlds, one is not finite, or no episode runs. No world has moved then.
    pub fn step(&mut self, actions: &[f64]) -> Result<&[Step], EnvError> {
        let worlds = self.worlds();
        if actions.len() != worlds {
            return Err(EnvError::ActionLength { env: ID.into(), wanted: worlds, given: actions.len() });
        }
        if !actions.iter().fold(true, |all, action| all & action.is_finite()) {
            let index = actions.iter().position(|action| !action.is_finite()).unwrap_or_default();
            return Err(EnvError::ActionNotFinite { env: ID.into(), index, value: actions[index] });
        }
        if !self.groups.iter().any(Group::runs) {
            return Err(EnvError::NeedsReset { env: ID.into() });
        }
        let numbers = self.observations.len() / worlds;
        for (group, actions) in self.groups.iter_mut().zip(actions.chunks(WIDE)) {
            for (force, action) in group.force.iter_mut().zip(actions) {
                *force = action.clamp(-1.0, 1.0) * FORCE;
            }
        }
        if libm::IS_KNOWN && self.level != Level::PORTABLE {
            self.level.run_plain(Advance(&mut self.groups));
        } else {
            let running = self.groups.iter_mut().filter(|group| group.runs());
            running.for_each(Group::advance_by_the_c_library);
        }
        let outcomes = self.groups.iter_mut().zip(self.taken.chunks_mut(WIDE));
        let outcomes = outcomes.zip(self.steps.chunks_mut(WIDE));
        let copies = numbers / 5;
        let (seen, _) = self.observations.as_chunks_mut::<5>();
        for (((group, taken), steps), seen) in outcomes.zip(seen.chunks_mut(WIDE * copies)) {
            if !group.runs() {
                continue;
            }
            let seen = seen.chunks_exact_mut(copies);
            for (i, ((taken, step), seen)) in taken.iter_mut().zip(steps).zip(seen).enumerate() {
                if group.running[i] == 0 {
                    continue;
                }
                *taken += 1;
                let (terminated, truncated) = (group.off[i] != 0, *taken >= MAX_STEPS);
                if terminated | truncated {
                    group.running[i] = 0;
                }
                *step = Step { reward: group.reward[i], terminated, truncated };
                let [a, b, c, d, e] = &group.seen;
                seen.fill([a[i], b[i], c[i], d[i], e[i]]);
            }
        }
        Ok(&self.steps)
    }
}

impl States {
    #[inline(always)]
    fn state(&self, i: usize) -> CartPoleState {
        CartPoleState {
            x: self.x[i],
            x_dot: self.x_dot[i],
            theta: self.theta[i],
            theta_dot: self.theta_dot[i],
        }
    }

    #[inline(always)]
    fn set(&mut self, i: usize, state: CartPoleState, (sin, cos): (f64, f64)) {
        let CartPoleState { x, x_dot, theta, theta_dot } = state;
        (self.x[i], self.x_dot[i], self.theta[i], self.theta_dot[i]) = (x, x_dot, theta, theta_dot);
        (self.sin[i], self.cos[i]) = (sin, cos);
    }

    fn put(&mut self, i: usize, motion: &Motion) {
        self.set(i, motion.state(), motion.sin_cos());
    }
}

/// A step of all worlds.
struct Advance<'a>(&'a mut [Group]);

impl Plain for Advance<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        for group in self.0.iter_mut().filter(|group| group.runs()) {
            group.find_squares();
            if group.is_doubtful() {
                group.ask_for_squares();
            }
            group.advance();
            if group.is_doubtful() {
                group.ask_for_angles();
            }
            group.observe();
        }
    }
}

impl Group {
    /// Returns whether an episode of one of its worlds runs.
    #[inline(always)]
    fn runs(&self) -> bool {
        self.running.iter().fold(0, |all, runs| all | runs) != 0
    }

    #[inline(always)]
    fn is_doubtful(&self) -> bool {
        self.doubtful.iter().fold(0, |all, part| all | part) != 0
    }

    #[inline(always)]
    fn find_squares(&mut self) {
        let Group { now, spin_squared, cos_squared, doubtful, .. } = self;
        for i in 0..WIDE {
            let (spin, spin_is_certain) = libm::squared(now.theta_dot[i]);
            let (cos, cos_is_certain) = libm::squared(now.cos[i]);
            (spin_squared[i], cos_squared[i]) = (spin, cos);
            doubtful[i] = doubt(spin_is_certain, SPIN) | doubt(cos_is_certain, COS_SQUARED);
        }
    }

    #[inline(never)]
    fn ask_for_squares(&mut self) {
        let Group { now, spin_squared, cos_squared, doubtful, .. } = self;
        for (i, doubtful) in doubtful.iter().enumerate() {
            if doubtful & SPIN != 0 {
                spin_squared[i] = power(now.theta_dot[i]);
            }
            if doubtful & COS_SQUARED != 0 {
                cos_squared[i] = power(now.cos[i]);
            }
        }
    }

    /// Needs the squares.
    #[inline(always)]
    fn advance(&mut self) {
        let Group { now, next, force, spin_squared, cos_squared, across, doubtful, .. } = self;
        for i in 0..WIDE {
            let squares = Squares { spin: spin_squared[i], cos: cos_squared[i] };
            let after = now.state(i).moved_with(force[i], now.sin[i], now.cos[i], squares);
            let angle = sin_cos(after.theta);
            let (of_track, track_is_certain) = libm::cos_of_small(after.across());
            next.set(i, after, (angle.sin, angle.cos));
            across[i] = of_track;
            doubtful[i] = doubt(angle.sin_is_certain, SIN)
                | doubt(angle.cos_is_certain, COS)
                | doubt(track_is_certain, ACROSS);
        }
    }

    #[inline(never)]
    fn ask_for_angles(&mut self) {
        let Group { next, across, doubtful, .. } = self;
        for (i, doubtful) in doubtful.iter().enumerate() {
            if doubtful & SIN != 0 {
                next.sin[i] = next.theta[i].sin();
            }
            if doubtful & COS != 0 {
                next.cos[i] = next.theta[i].cos();
            }
            if doubtful & ACROSS != 0 {
                across[i] = next.state(i).across().cos();
            }
        }
    }

    /// Rewards, observations and terminations of the next states, which become the present ones where an episode runs.
    #[inline(always)]
    fn observe(&mut self) {
        let Group { now, next, across, reward: rewards, seen, off, running, .. } = self;
        for i in 0..WIDE {
            rewards[i] = reward(next.cos[i], across[i]);
            off[i] = u64::from(next.state(i).is_off());
            let five = shown(next.state(i), (next.sin[i], next.cos[i]));
            for (numbers, number) in seen.iter_mut().zip(five) {
                numbers[i] = number;
            }
        }
        take(&mut now.x, &next.x, running);
        take(&mut now.x_dot, &next.x_dot, running);
        take(&mut now.theta, &next.theta, running);
        take(&mut now.theta_dot, &next.theta_dot, running);
        take(&mut now.sin, &next.sin, running);
        take(&mut now.cos, &next.cos, running);
    }

    fn advance_by_the_c_library(&mut self) {
        for i in 0..WIDE {
            let motion =
                Motion::new(self.now.state(i).moved(self.force[i], self.now.sin[i], self.now.cos[i]));
            self.next.put(i, &motion);
            self.across[i] = motion.state().across().cos();
        }
        self.observe();
    }
}

/// Takes over the numbers of the worlds that run.
#[inline(always)]
fn take(to: &mut Wide, from: &Wide, running: &[u64; WIDE]) {
    for i in 0..WIDE {
        let bits = from[i].to_bits() & running[i] | to[i].to_bits() & !running[i];
        to[i] = f64::from_bits(bits);
    }
}

/// `part` unless it is certain.
#[inline(always)]
const fn doubt(is_certain: bool, part: u64) -> u64 {
    if is_certain { 0 } else { part }
}

#[cfg(test)]
mod tests {
    use foveate_core::{Action, Env};

    use super::*;
    use crate::cartpole_swingup::CartPoleSwingUp;

    /// Every world of a batch beside a single world, over episodes of all kinds of ends.
    #[test]
    fn worlds_of_a_batch_are_single_worlds_to_the_bit() {
        const WORLDS: usize = 21;
        for redundant in [false, true] {
            let config = CartPoleConfig { redundant };
            for level in Level::available() {
                let mut batch = CartPoleBatch::new(config, WORLDS).with_level(level);
                let mut singles = vec![CartPoleSwingUp::new(config); WORLDS];
                for (world, single) in singles.iter_mut().enumerate() {
                    batch.reset(world, Some(world as u64));
                    single.reset(Some(world as u64));
                }
                let mut lasts = [None; WORLDS];
                let mut over = 0;
                for t in 0..1500 {
                    let actions: Vec<f64> =
                        (0..WORLDS).map(|world| ((world * 31 + t * 7) as f64 * 0.37).sin() * 1.4).collect();
                    let steps = batch.step(&actions).expect("finite actions").to_vec();
                    for (world, single) in singles.iter_mut().enumerate() {
                        // World 3 stays where its first episode ends.
                        let last = &mut lasts[world];
                        if last.is_none_or(|last: Step| !last.is_over()) {
                            *last = Some(
                                single.step(Action::Continuous(&actions[world..=world])).expect("it runs"),
                            );
                        }
                        assert_eq!(Some(steps[world]), *last, "world {world}, step {t}, {level}");
                        assert_eq!(batch.cart_pole(world), single.cart_pole());
                        let numbers =
                            batch.observations().chunks_exact(if redundant { 10 } else { 5 }).nth(world);
                        assert_eq!(numbers, single.observation().numbers());
                        if world != 3 && last.is_some_and(|last| last.is_over()) {
                            over += 1;
                            batch.reset(world, None);
                            single.reset(None);
                            *last = None;
                            assert_eq!(batch.cart_pole(world), single.cart_pole());
                        }
                    }
                }
                assert!(over > 100, "{over} episodes");
            }
        }
    }

    #[test]
    fn bad_actions_move_nothing() {
        let mut batch = CartPoleBatch::new(CartPoleConfig::default(), 3);
        let said =
            |batch: &mut CartPoleBatch, actions: &[f64]| batch.step(actions).expect_err("bad").to_string();
        assert!(said(&mut batch, &[0.0; 3]).contains("reset"));
        batch.reset(1, Some(1));
        let before = batch.cart_pole(1);
        assert!(said(&mut batch, &[0.0; 2]).contains('2'));
        assert!(said(&mut batch, &[0.0, 0.0, f64::NAN]).contains("action[2] is NaN"));
        assert!(said(&mut batch, &[f64::INFINITY, 0.0, 0.0]).contains("action[0] is inf"));
        assert_eq!(batch.cart_pole(1), before);
        assert!(batch.step(&[1.0; 3]).is_ok());
        assert_ne!(batch.cart_pole(1), before);
        let single = CartPoleSwingUp::new(CartPoleConfig::default());
        let first = single.observation().numbers();
        assert_eq!(Some(&batch.observations()[..5]), first, "one that never began hangs");
    }
}

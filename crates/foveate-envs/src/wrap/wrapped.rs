//! A world behind wrappers.

use foveate_core::{
    Action, ActionBuf, Env, EnvError, EnvSpec, Fact, Image, ImageBuf, Mixed, Observation, ObservationSpace,
    Rng, Seed, Step,
};

use super::area::Area;
use super::bilinear::Bilinear;
use super::parse::{Resize, Stack, Wrappers};

/// A world behind [`Wrappers`]; see the [module](super).
///
/// What people see ([`Env::render`]) and the state stay those of the world itself. Numbers beside a picture are those of
/// the last step, also when pictures are stacked. Nothing in a step allocates, but that of `lives`, which asks for the
/// state.
pub struct Wrapped {
    env: Box<dyn Env>,
    wrappers: Wrappers,
    spec: EnvSpec,
    /// What doing nothing is.
    nothing: ActionBuf,
    /// The action before, for sticky ones.
    before: ActionBuf,
    dice: Rng,
    seed: u64,
    resets: u64,
    steps: u64,
    lives: Option<u64>,
    looks: Looks,
    /// Of a row of numbers: the last of them, the oldest first.
    numbers: Vec<f32>,
    over: bool,
}

/// Pictures on their way through the wrappers.
#[derive(Clone)]
struct Looks {
    /// The world's size.
    from: (usize, usize),
    /// The size after resizing.
    to: (usize, usize),
    /// `[2, from height, from width, 3]`: what the larger is taken of; one if there is no `max`.
    kept: [Vec<u8>; 2],
    resize: Way,
    /// `[to height, to width, 3]`: the newest picture, where it is not shown as it is.
    small: Vec<u8>,
    /// What is shown: the last pictures one below the other.
    shown: Vec<u8>,
}

#[derive(Clone)]
enum Way {
    Stay,
    Bilinear(Bilinear),
    Area(Area),
}

fn bad(env: &EnvSpec, why: String) -> EnvError {
    EnvError::BadOption { env: env.id.clone(), why }
}

impl Looks {
    fn new(wrappers: &Wrappers, spec: &EnvSpec) -> Result<Self, EnvError> {
        let from = spec.observation.picture().unwrap_or_default();
        let Some(Resize { width, height, area }) = wrappers.resize else {
            return Ok(Self::sized(wrappers, from, from, Way::Stay));
        };
        let to = (width, height);
        let way = if area {
            let (w, h) = from;
            let why =
                || format!("resize to {width}x{height} by area makes {w}x{h} larger; leave out `:area`");
            Way::Area(Area::new(from, to).ok_or_else(|| bad(spec, why()))?)
        } else {
            Way::Bilinear(Bilinear::new(from, to))
        };
        Ok(Self::sized(wrappers, from, to, way))
    }

    fn sized(wrappers: &Wrappers, from: (usize, usize), to: (usize, usize), resize: Way) -> Self {
        let bytes = from.0 * from.1 * 3;
        let rows = if let Some(Stack::Rows(rows)) = wrappers.stack { rows } else { 1 };
        let one = to.0 * to.1 * 3;
        let kept = [vec![0; bytes], vec![0; if wrappers.max { bytes } else { 0 }]];
        let small = vec![0; if wrappers.stack == Some(Stack::Colors) { one } else { 0 }];
        Looks { from, to, kept, resize, small, shown: vec![0; one * rows] }
    }

    /// Keeps the picture in place `slot`, without its colour if that is asked for.
    fn keep(&mut self, wrappers: &Wrappers, image: Image<'_>, slot: usize) {
        self.kept[slot].copy_from_slice(image.rgb());
        if let Some(grey) = wrappers.grey {
            grey.apply(&mut self.kept[slot]);
        }
    }

    /// Shows what was kept; the first picture of an episode fills the whole stack.
    fn show(&mut self, wrappers: &Wrappers, first: bool) {
        let Looks { kept: [kept, other], resize, shown, small, to, .. } = self;
        // What was the larger once stays so for a step that ends early, as in Gymnasium's AtariPreprocessing.
        for (byte, &other) in kept.iter_mut().zip(&*other) {
            *byte = (*byte).max(other);
        }
        let one = to.0 * to.1 * 3;
        let newest = match wrappers.stack {
            Some(Stack::Rows(rows)) => {
                shown.copy_within(one.., 0);
                (rows - 1) * one
            }
            _ => 0,
        };
        if wrappers.stack == Some(Stack::Colors) {
            resize.apply(kept, small);
            for (pixel, new) in shown.as_chunks_mut::<3>().0.iter_mut().zip(small.as_chunks::<3>().0) {
                let bright = super::grey::Grey::Pillow.of(*new);
                *pixel = if first { [bright; 3] } else { [pixel[1], pixel[2], bright] };
            }
            return;
        }
        resize.apply(kept, &mut shown[newest..]);
        if first {
            let (before, newest) = shown.split_at_mut(newest);
            for place in before.chunks_exact_mut(one) {
                place.copy_from_slice(newest);
            }
        }
    }
}

impl Way {
    fn apply(&mut self, rgb: &[u8], out: &mut [u8]) {
        match self {
            Way::Stay => out.copy_from_slice(rgb),
            Way::Bilinear(bilinear) => bilinear.apply(rgb, out),
            Way::Area(area) => area.apply(rgb, out),
        }
    }
}

impl Wrapped {
    /// Bytes of the pictures that `wrappers` keep of a world of this shape, before any is made.
    pub fn bytes(wrappers: &Wrappers, spec: &EnvSpec) -> u64 {
        let (width, height) = spec.observation.picture().unwrap_or_default();
        let from = 3 * width as u64 * height as u64;
        let to = wrappers.resize.map_or(from, |to| 3 * to.width as u64 * to.height as u64);
        let rows = if let Some(Stack::Rows(rows)) = wrappers.stack { rows as u64 } else { 2 };
        2 * from + to * rows
    }

    /// Puts `env` behind `wrappers`; it must be reset before the first step.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] when a wrapper of pictures meets a world that shows none, or does not fit its picture.
    pub fn new(env: Box<dyn Env>, wrappers: Wrappers) -> Result<Self, EnvError> {
        let mut spec = env.spec().clone();
        if spec.observation.picture().is_none()
            && (wrappers.max
                || wrappers.grey.is_some()
                || wrappers.resize.is_some()
                || wrappers.stack == Some(Stack::Colors))
        {
            let shows = spec.observation.describe();
            return Err(bad(
                &spec,
                format!("it shows {shows}; only repeat, stack, clip and the like go with that"),
            ));
        }
        let looks = Looks::new(&wrappers, &spec)?;
        let rows = if let Some(Stack::Rows(rows)) = wrappers.stack { rows } else { 1 };
        let mut numbers = vec![];
        match &mut spec.observation {
            ObservationSpace::Image { width, height } => (*width, *height) = (looks.to.0, looks.to.1 * rows),
            ObservationSpace::Mixed { width, height, depth, .. } => {
                if *depth && wrappers.looks() {
                    return Err(bad(&spec, "its picture has a depth, which would no longer fit; leave out max, grey, resize and stack".into()));
                }
                (*width, *height) = (looks.to.0, looks.to.1 * rows);
            }
            ObservationSpace::Vector { len } => {
                *len *= rows;
                numbers = vec![0.0; if rows > 1 { *len } else { 0 }];
            }
        }
        let repeat = wrappers.repeat.unwrap_or(1);
        let shorter = |steps: usize| steps.div_ceil(usize::try_from(repeat).unwrap_or(usize::MAX));
        spec.max_steps = spec.max_steps.map(shorter);
        if let Some(limit) = wrappers.limit {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            spec.max_steps = Some(spec.max_steps.map_or(limit, |steps| steps.min(limit)));
        }
        spec.fps /= repeat as f64;
        let nothing = spec.action.zero();
        Ok(Wrapped {
            before: nothing.clone(),
            nothing,
            dice: Seed::root(0).rng(),
            seed: 0,
            resets: 0,
            steps: 0,
            lives: None,
            looks,
            numbers,
            over: true,
            spec,
            wrappers,
            env,
        })
    }

    /// What stands between the world and the agent.
    pub const fn wrappers(&self) -> &Wrappers {
        &self.wrappers
    }

    /// One step of the world, which may repeat the action before.
    fn one(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let Some(chance) = self.wrappers.sticky else { return self.env.step(action) };
        if self.dice.next_f64() >= chance {
            self.before.set(action);
        }
        self.env.step(self.before.as_action())
    }

    /// Lives left, of a world that reports them.
    fn count_lives(&self) -> Option<u64> {
        let facts: Vec<(String, Fact)> = match self.env.state() {
            Fact::Named(facts) => facts,
            Fact::Group(facts) => facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect(),
            _ => vec![],
        };
        facts.iter().find_map(|(name, fact)| match fact {
            Fact::Count(lives) if name == "lives" => Some(*lives),
            _ => None,
        })
    }

    fn look(&mut self, first: bool) {
        if self.wrappers.looks() {
            if self.looks.from != (0, 0) {
                self.looks.show(&self.wrappers, first);
            } else if let Observation::Vector(now) = self.env.observation() {
                let numbers = &mut self.numbers;
                let one = now.len();
                if first {
                    for place in numbers.chunks_exact_mut(one) {
                        place.copy_from_slice(now);
                    }
                } else {
                    numbers.copy_within(one.., 0);
                    let newest = numbers.len() - one;
                    numbers[newest..].copy_from_slice(now);
                }
            }
        }
    }

    fn keep(&mut self, slot: usize) {
        if self.wrappers.looks()
            && let Some(image) = self.env.observation().image()
        {
            self.looks.keep(&self.wrappers, image, slot);
        }
    }
}

impl Env for Wrapped {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        match seed {
            Some(seed) => (self.seed, self.resets) = (seed, 0),
            None => self.resets += 1,
        }
        self.env.reset(seed);
        let dice = Seed::root(self.seed).child("wrap", self.resets);
        self.dice = dice.child("sticky", 0).rng();
        self.before.clone_from(&self.nothing);
        (self.steps, self.over) = (0, false);
        if let Some(most) = self.wrappers.noop {
            let steps = 1 + dice.child("noop", 0).rng().below(most);
            for _ in 0..steps {
                match self.env.step(self.nothing.as_action()) {
                    Ok(step) if !step.is_over() => {}
                    // It ended before anyone acted, so it begins again, without waiting; what failed will fail again
                    // in the first step.
                    _ => {
                        self.env.reset(seed);
                        break;
                    }
                }
            }
        }
        if self.wrappers.lives {
            self.lives = self.count_lives();
        }
        self.keep(0);
        self.looks.kept[1].fill(0);
        self.look(true);
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if self.over {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let repeat = self.wrappers.repeat.unwrap_or(1);
        let mut all = Step::default();
        for t in 0..repeat {
            let step = self.one(action)?;
            all.reward += step.reward;
            (all.terminated, all.truncated) = (step.terminated, step.truncated);
            if self.wrappers.lives {
                let lives = self.count_lives();
                all.terminated |= lives < self.lives;
                self.lives = lives;
            }
            let last = t + 1 == repeat;
            if self.wrappers.max {
                // As Gymnasium's AtariPreprocessing: a step that ends early shows what was kept before.
                if !all.is_over() && t + 2 >= repeat {
                    self.keep(usize::from(!last));
                }
            } else if last || all.is_over() {
                self.keep(0);
            }
            if all.is_over() {
                break;
            }
        }
        self.look(false);
        self.steps += 1;
        if self.wrappers.limit.is_some_and(|limit| self.steps >= limit) {
            all.truncated = true;
        }
        if self.wrappers.clip {
            // A reward that is no number stays one.
            all.reward = if all.reward > 0.0 {
                1.0
            } else if all.reward < 0.0 {
                -1.0
            } else {
                all.reward
            };
        }
        self.over = all.is_over();
        Ok(all)
    }

    fn observation(&self) -> Observation<'_> {
        let own = self.env.observation();
        if !self.wrappers.looks() {
            return own;
        }
        let Some((width, height)) = self.spec.observation.picture() else {
            return Observation::Vector(&self.numbers);
        };
        let image = Image::new(width, height, &self.looks.shown).expect("it is as large as the spec says");
        match own {
            Observation::Mixed(mixed) => Observation::Mixed(Mixed { image, ..mixed }),
            _ => Observation::Image(image),
        }
    }

    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        self.env.render(view)
    }

    fn state(&self) -> Fact {
        self.env.state()
    }

    /// The world's own expert, at the moments when an agent acts.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        self.env.expert(action)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(Wrapped {
            env: self.env.boxed_clone(),
            wrappers: self.wrappers.clone(),
            spec: self.spec.clone(),
            nothing: self.nothing.clone(),
            before: self.before.clone(),
            dice: self.dice.clone(),
            looks: self.looks.clone(),
            numbers: self.numbers.clone(),
            ..*self
        })
    }
}

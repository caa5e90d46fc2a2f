//! A world with wrappers applied.

use foveate_core::{
    Action, ActionBuf, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, IMAGE, Observation,
    ObservationSpace, Parts, PixelShape, Pixels, Rng, Seed, StateEdit, Step, StepDerivatives,
};

use super::area::Area;
use super::bilinear::Bilinear;
use super::grey::Grey;
use super::parse::{Resize, Stack, Wrappers};

/// A world with [`Wrappers`] applied; see the [module](super).
///
/// [`Env::render`] and the state are those of the world itself. Numbers beside a picture are those of the last step, also
/// when pictures are stacked. Steps do not allocate, except with `lives`, which reads the state.
pub struct Wrapped {
    env: Box<dyn Env>,
    wrappers: Wrappers,
    spec: EnvSpec,
    /// The no-op action.
    nothing: ActionBuf,
    /// The previous action, for sticky actions.
    before: ActionBuf,
    dice: Rng,
    seed: u64,
    resets: u64,
    steps: u64,
    lives: Option<u64>,
    pictures: Option<Pictures>,
    /// Stacked vectors, the oldest first.
    numbers: Vec<f32>,
    /// What the world's expert says of all its choices, where the agent has some of them; else empty.
    scores: Vec<f64>,
    over: bool,
}

/// The state of the wrappers of pictures.
#[derive(Clone)]
struct Pictures {
    /// The shape of the world's picture.
    from: PixelShape,
    /// The shape of one converted observation, without a stack.
    to: PixelShape,
    /// Two observations, `[frames, from height, from width, to channels]`, of which `max` takes the larger bytes; one
    /// without `max`.
    kept: [Vec<u8>; 2],
    resize: Way,
    /// The newest picture of a stack of colours, `[to height, to width, kept channels]`, else empty.
    small: Vec<u8>,
    /// The last pictures, the oldest first.
    shown: Vec<u8>,
    /// Its shape.
    shape: PixelShape,
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

/// What the wrappers make of pictures: of one observation of the world, and of what is shown.
fn shapes(wrappers: &Wrappers, from: PixelShape) -> (PixelShape, PixelShape) {
    let channels = if wrappers.grey.is_some() { 1 } else { from.channels };
    let size = wrappers.resize.map_or((from.width, from.height), |to| (to.width, to.height));
    let to = PixelShape { width: size.0, height: size.1, channels, ..from };
    let shown = match wrappers.stack {
        Some(Stack::Rows(rows)) => PixelShape { frames: to.frames.saturating_mul(rows), ..to },
        Some(Stack::Colors) => PixelShape { channels: 3, ..to },
        None => to,
    };
    (to, shown)
}

impl Pictures {
    fn new(wrappers: &Wrappers, spec: &EnvSpec, from: PixelShape) -> Result<Self, EnvError> {
        let (to, shape) = shapes(wrappers, from);
        let colours = matches!(from.channels, 1 | 3);
        if !colours && (wrappers.grey.is_some() || wrappers.stack == Some(Stack::Colors)) {
            let why = format!(
                "its pictures have {} bytes in a pixel; grey and stack:colors go with 1 or 3",
                from.channels
            );
            return Err(bad(spec, why));
        }
        if from.frames != 1 && wrappers.stack == Some(Stack::Colors) {
            let why = format!("it shows {} pictures at once; stack:colors goes with one", from.frames);
            return Err(bad(spec, why));
        }
        let (rows, blank) = (to.height, wrappers.blank.rows());
        if blank > rows {
            let why = format!("its picture has {rows} rows, so {blank} cannot be made black; blank fewer");
            return Err(bad(spec, why));
        }
        let resize = match wrappers.resize {
            None => Way::Stay,
            Some(_) if to.channels > 4 => {
                let why =
                    format!("its pictures have {} bytes in a pixel; resize goes with 1 to 4", to.channels);
                return Err(bad(spec, why));
            }
            Some(Resize { width, height, area }) => {
                let (w, h) = (from.width, from.height);
                if area {
                    let why = || {
                        format!("resize to {width}x{height} by area makes {w}x{h} larger; leave out `:area`")
                    };
                    let area = Area::new((w, h), (width, height)).ok_or_else(|| bad(spec, why()))?;
                    Way::Area(area.with_channels(to.channels))
                } else {
                    Way::Bilinear(Bilinear::new((w, h), (width, height)).with_channels(to.channels))
                }
            }
        };
        let bytes = from.frames * from.height * from.width * to.channels;
        let kept = [vec![0; bytes], vec![0; if wrappers.max { bytes } else { 0 }]];
        let small = vec![0; if wrappers.stack == Some(Stack::Colors) { to.frame_len() } else { 0 }];
        let shown = vec![0; shape.frames * shape.frame_len()];
        Ok(Pictures { from, to, kept, resize, small, shown, shape })
    }

    /// Stores the picture in `slot`, as grey if `grey` is on.
    fn keep(&mut self, wrappers: &Wrappers, pixels: Pixels<'_>, slot: usize) {
        let kept = &mut self.kept[slot];
        match wrappers.grey {
            Some(grey) if pixels.channels() == 3 => grey.write(pixels.bytes(), kept),
            _ => kept.copy_from_slice(pixels.bytes()),
        }
    }

    /// Converts the stored pictures to the observation; the first picture of an episode fills the whole stack.
    fn show(&mut self, wrappers: &Wrappers, first: bool) {
        let Pictures { from, to, kept: [kept, other], resize, shown, small, .. } = self;
        // A step that ends early keeps the larger bytes of before, as in Gymnasium's AtariPreprocessing.
        for (byte, &other) in kept.iter_mut().zip(&*other) {
            *byte = (*byte).max(other);
        }
        if wrappers.stack == Some(Stack::Colors) {
            resize.apply(kept, small);
            wrappers.clear(small, to.width, to.channels);
            let news = small.chunks_exact(to.channels);
            for (pixel, new) in shown.as_chunks_mut::<3>().0.iter_mut().zip(news) {
                let bright = if let [r, g, b] = *new { Grey::Pillow.of([r, g, b]) } else { new[0] };
                *pixel = if first { [bright; 3] } else { [pixel[1], pixel[2], bright] };
            }
            return;
        }
        let one = to.frames * to.frame_len();
        let newest = shown.len() - one;
        shown.copy_within(one.., 0);
        let large = from.height * from.width * to.channels;
        for (kept, out) in kept.chunks_exact(large).zip(shown[newest..].chunks_exact_mut(to.frame_len())) {
            resize.apply(kept, out);
            wrappers.clear(out, to.width, to.channels);
        }
        if first {
            let (before, newest) = shown.split_at_mut(newest);
            for place in before.chunks_exact_mut(one) {
                place.copy_from_slice(newest);
            }
        }
    }

    fn pixels(&self) -> Pixels<'_> {
        Pixels::new(self.shape, &self.shown).expect("it is as large as its shape says")
    }
}

impl Way {
    fn apply(&mut self, pixels: &[u8], out: &mut [u8]) {
        match self {
            Way::Stay => out.copy_from_slice(pixels),
            Way::Bilinear(bilinear) => bilinear.apply(pixels, out),
            Way::Area(area) => area.apply(pixels, out),
        }
    }
}

impl Wrapped {
    /// Bytes of the pictures that `wrappers` store for a world with this spec.
    pub fn bytes(wrappers: &Wrappers, spec: &EnvSpec) -> u64 {
        let Some(from) = spec.observation.image() else { return 0 };
        let (to, shown) = shapes(wrappers, from);
        let bytes = |shape| ObservationSpace::Image(shape).bytes();
        let kept = bytes(PixelShape { channels: to.channels, ..from });
        let small = if wrappers.stack == Some(Stack::Colors) { bytes(to) } else { 0 };
        kept.saturating_mul(2).saturating_add(small).saturating_add(bytes(shown))
    }

    /// Applies `wrappers` to `env`; it must be reset before the first step.
    ///
    /// # Errors
    /// [`EnvError::BadOption`] when a wrapper needs a picture and the world has none, or does not fit its picture.
    pub fn new(env: Box<dyn Env>, wrappers: Wrappers) -> Result<Self, EnvError> {
        let mut spec = env.spec().clone();
        let image = spec.observation.image();
        let of_pictures = wrappers.max
            || wrappers.grey.is_some()
            || wrappers.resize.is_some()
            || wrappers.subtract.is_some()
            || wrappers.blank.rows() > 0
            || wrappers.stack == Some(Stack::Colors);
        let numbers_alone = matches!(spec.observation, ObservationSpace::Vector { .. });
        if image.is_none() && (of_pictures || wrappers.looks() && !numbers_alone) {
            let shows = spec.observation.describe();
            let more = if numbers_alone { "stack, " } else { "" };
            return Err(bad(
                &spec,
                format!("it shows {shows}; only repeat, {more}clip and the like go with that"),
            ));
        }
        if spec.observation.has_depth() && wrappers.looks() {
            return Err(bad(
                &spec,
                "its picture has a depth, which would no longer fit; leave out max, grey, resize, subtract, \
                 blank and stack"
                    .into(),
            ));
        }
        let pictures = match image.filter(|_| wrappers.looks()) {
            Some(from) => Some(Pictures::new(&wrappers, &spec, from)?),
            None => None,
        };
        let mut numbers = vec![];
        match &mut spec.observation {
            ObservationSpace::Image(shape) => {
                if let Some(pictures) = &pictures {
                    *shape = pictures.shape;
                }
            }
            ObservationSpace::Dict(parts) => {
                for (_, part) in parts.iter_mut().filter(|(name, _)| name == IMAGE) {
                    if let Some(pictures) = &pictures {
                        *part = ObservationSpace::Image(pictures.shape);
                    }
                }
            }
            ObservationSpace::Vector { len } => {
                if let Some(Stack::Rows(rows)) = wrappers.stack {
                    *len *= rows;
                    numbers = vec![0.0; *len];
                }
            }
            ObservationSpace::Grid { .. } => {}
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
        let mut scores = vec![];
        if let Some(&last) = wrappers.choices.last() {
            let all = match spec.action {
                ActionSpace::Discrete { n } if last < n => n,
                _ => {
                    let (takes, chosen) = (spec.action.describe(), &wrappers.choices);
                    return Err(bad(
                        &spec,
                        format!("it takes {takes}; the wrapper choices names {chosen:?}"),
                    ));
                }
            };
            scores = vec![0.0; all];
            spec.action = ActionSpace::Discrete { n: wrappers.choices.len() };
        }
        Ok(Wrapped {
            before: nothing.clone(),
            nothing,
            dice: Seed::root(0).rng(),
            seed: 0,
            resets: 0,
            steps: 0,
            lives: None,
            pictures,
            numbers,
            scores,
            over: true,
            spec,
            wrappers,
            env,
        })
    }

    /// The wrappers.
    pub const fn wrappers(&self) -> &Wrappers {
        &self.wrappers
    }

    /// The world's own action.
    fn own<'a>(&self, action: Action<'a>) -> Result<Action<'a>, EnvError> {
        if self.wrappers.choices.is_empty() {
            return Ok(action);
        }
        self.spec.action.check(&self.spec.id, action)?;
        let Action::Discrete(choice) = action else { return Ok(action) };
        Ok(Action::Discrete(self.wrappers.choices[choice]))
    }

    /// One step of the world, with the previous action if it sticks.
    fn one(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let Some(chance) = self.wrappers.sticky else { return self.env.step(action) };
        if self.dice.next_f64() >= chance {
            self.before.set(action);
        }
        self.env.step(self.before.as_action())
    }

    /// Steps of the world with this action until there is something to be kept or `most` are done, and how many.
    fn some(&mut self, action: Action<'_>, most: u64) -> Result<(Step, u64), EnvError> {
        if self.wrappers.sticky.is_some() || self.wrappers.lives {
            return Ok((self.one(action)?, 1));
        }
        // Of what comes before the last two pictures, or the last, nothing is looked at.
        let times = if self.wrappers.max && most > 1 { most - 1 } else { most };
        Ok((self.env.repeat(action, times)?, times))
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
        if let Some(pictures) = &mut self.pictures {
            pictures.show(&self.wrappers, first);
        } else if !self.numbers.is_empty()
            && let Some(now) = self.env.observation().numbers()
        {
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

    fn keep(&mut self, slot: usize) {
        if let Some(pictures) = &mut self.pictures
            && let Some(pixels) = self.env.observation().image()
        {
            pictures.keep(&self.wrappers, pixels, slot);
        }
    }
}

/// The world's own parts, with another picture.
impl Parts for Wrapped {
    fn count(&self) -> usize {
        let Observation::Dict(parts) = self.env.observation() else { return 0 };
        parts.count()
    }

    fn part(&self, index: usize) -> Option<(&str, Observation<'_>)> {
        let Observation::Dict(parts) = self.env.observation() else { return None };
        let (name, part) = parts.part(index)?;
        let own = self.pictures.as_ref().filter(|_| name == IMAGE);
        Some((name, own.map_or(part, |pictures| Observation::Image(pictures.pixels()))))
    }
}

impl Env for Wrapped {
    fn inner(&self) -> Option<&dyn Env> {
        Some(&*self.env)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Env> {
        Some(&mut *self.env)
    }

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
        self.before.set(self.nothing.as_action());
        (self.steps, self.over) = (0, false);
        if let Some(most) = self.wrappers.noop {
            let steps = 1 + dice.child("noop", 0).rng().below(most);
            match self.env.repeat(self.nothing.as_action(), steps) {
                Ok(step) if !step.is_over() => {}
                // It ended before anyone acted, so it begins again, without waiting; what failed will fail again in the
                // first step.
                _ => self.env.reset(seed),
            }
        }
        if self.wrappers.lives {
            self.lives = self.count_lives();
        }
        self.keep(0);
        if let Some(pictures) = &mut self.pictures {
            pictures.kept[1].fill(0);
        }
        self.look(true);
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        if self.over {
            return Err(EnvError::NeedsReset { env: self.spec.id.clone() });
        }
        let action = self.own(action)?;
        let repeat = self.wrappers.repeat.unwrap_or(1);
        let mut all = Step::default();
        let mut done = 0;
        while done < repeat {
            let (step, times) = self.some(action, repeat - done)?;
            done += times;
            all.reward += step.reward;
            (all.terminated, all.truncated) = (step.terminated, step.truncated);
            if self.wrappers.lives {
                let lives = self.count_lives();
                all.terminated |= lives < self.lives;
                self.lives = lives;
            }
            let last = done == repeat;
            if self.wrappers.max {
                // As Gymnasium's AtariPreprocessing: a step that ends early shows what was kept before.
                if !all.is_over() && done + 1 >= repeat {
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
        match (&self.pictures, self.env.observation()) {
            (Some(_), Observation::Dict(_)) => Observation::Dict(self),
            (Some(pictures), _) => Observation::Image(pictures.pixels()),
            (None, _) if !self.numbers.is_empty() => Observation::Vector(&self.numbers),
            (None, own) => own,
        }
    }

    /// That of the world; with `clip` the sum of what is left of the rewards.
    fn score(&self, total: f64) -> f64 {
        if self.wrappers.clip { total } else { self.env.score(total) }
    }

    /// The world's own expert, asked once per step of the wrapped world. An error when it chooses what the agent does not have.
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        if self.wrappers.choices.is_empty() {
            return self.env.expert(action);
        }
        self.spec.action.check_len(&self.spec.id, action.len())?;
        self.env.expert(&mut self.scores)?;
        for (to, &choice) in action.iter_mut().zip(&self.wrappers.choices) {
            *to = self.scores[choice];
        }
        match self.env.spec().action.choose(&self.scores) {
            Ok(Action::Discrete(best)) if !self.wrappers.choices.contains(&best) => {
                Err(bad(&self.spec, format!("the wrapper choices leaves out its expert's choice {best}")))
            }
            _ => Ok(()),
        }
    }

    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        self.env.costs(costs)?;
        if !self.wrappers.choices.is_empty() {
            let mut choice = 0..;
            costs.retain(|_| choice.next().is_some_and(|choice| self.wrappers.choices.contains(&choice)));
        }
        Ok(())
    }

    /// Where the world's own expert looks, on the rows that are not blank; none when observations are stacked, which show
    /// other moments, too.
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        if self.wrappers.stack.is_some() {
            return Err(EnvError::NoGaze { env: self.spec.id.clone() });
        }
        self.env.gaze(points)?;
        if let Some(Pictures { to, .. }) = &self.pictures {
            let rows = to.height as f32;
            let [top, bottom] =
                [self.wrappers.blank.top, self.wrappers.blank.bottom].map(|rows| rows.unwrap_or(0) as f32);
            points.retain(|point| point.y * rows >= top && (bottom == 0.0 || point.y * rows < rows - bottom));
        }
        Ok(())
    }

    /// The world's own order; `None` when vectors are stacked, which have more sensors than the world.
    fn sensor_order(&self) -> Option<&[u32]> {
        if self.numbers.is_empty() { self.env.sensor_order() } else { None }
    }

    /// Edits the world's own state, unless the wrappers keep observations of earlier steps, which would then be of another
    /// world.
    fn edit_state(&mut self, edit: &StateEdit<'_>) -> Result<(), EnvError> {
        if self.pictures.is_some() || !self.numbers.is_empty() {
            return Err(EnvError::BadEdit {
                env: self.spec.id.clone(),
                edit: edit.to_string(),
                why:
                    "its wrappers show copies of earlier observations; leave the wrappers of observations out"
                        .into(),
            });
        }
        self.env.edit_state(edit)
    }

    /// Those of the world, while the wrappers change only how episodes begin and end.
    fn derivatives(&self, action: &[f64], derivatives: &mut StepDerivatives) -> Result<(), EnvError> {
        let others = Wrappers { noop: None, limit: None, ..self.wrappers.clone() };
        if others != Wrappers::default() {
            return Err(EnvError::NoDerivatives { env: self.spec.id.clone() });
        }
        self.env.derivatives(action, derivatives)
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(Wrapped {
            env: self.env.boxed_clone(),
            wrappers: self.wrappers.clone(),
            spec: self.spec.clone(),
            nothing: self.nothing.clone(),
            before: self.before.clone(),
            dice: self.dice.clone(),
            pictures: self.pictures.clone(),
            numbers: self.numbers.clone(),
            scores: self.scores.clone(),
            ..*self
        })
    }
}

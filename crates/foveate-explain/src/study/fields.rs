//! Where the contents of an agent's cells come from: the places of the picture that change each cell, measured.
//!
//! Attention over the cells of a feature map says which cells are read, and a cell is not the part of the picture at its position:
//! strides, large filters and recurrent layers carry contents from elsewhere into it. So every place of the picture is changed in
//! turn, in a few decisions of real episodes, and it is measured how far each cell changes. Weights of cells are then shown and
//! judged at the places that their contents come from.

use foveate_core::episode::{BeforeChoice, Observer};
use foveate_core::{
    ActContext, Agent, Attention, ObservationBuf, Opened, PatchGrid, PixelShape, PolicyError, Seed, Tokens,
};
use serde::Serialize;

use super::play::EpisodeStart;
use super::{Scheduler, StudyError};

/// Rows and columns of places, where the picture has as many pixels; those of swapped places.
pub(super) const SIDE: usize = 12;
/// Decisions in which the fields are measured, and the most episodes that they come from.
pub(super) const MOMENTS: usize = 8;
const EPISODES: usize = 4;
/// By how much the bytes of a place are changed, towards the middle of their range.
const SHIFT: u8 = 64;

/// A decision before it is taken.
pub(super) struct FieldMoment {
    /// The agent, with its memory.
    pub(super) agent: Box<dyn Agent>,
    /// Its context.
    pub(super) context: ActContext,
    /// What it sees.
    pub(super) seen: ObservationBuf,
}

/// The measured field of every cell: how much of what changes it comes from each place of the picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fields {
    /// Rows and columns of cells, and of places.
    cells: [usize; 2],
    places: [usize; 2],
    /// The places.
    grid: PatchGrid,
    /// `[cells][places]`: shares, 1 in all for every cell.
    shares: Vec<Vec<f64>>,
    /// Cells that no place changes; they count at their own position.
    silent: usize,
    moments: usize,
}

/// Attention over cells of a picture, at the places that their contents come from.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedAttention {
    /// The places.
    pub grid: PatchGrid,
    /// `[places]`: the weights of the cells, dealt out to the places that change them.
    pub weights: Vec<f32>,
    /// Effects dealt out in the same way, of the places that have the most, with their places.
    pub effects: Vec<(u32, f64)>,
}

impl PlacedAttention {
    /// The weights as attention to the places; `None` where they are not finite.
    pub fn attention(&self) -> Option<Attention<'_>> {
        Attention::soft(Tokens::Patches(self.grid), 1, 1, &self.weights).ok()
    }
}

/// How far cells lie from where their contents come from, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Registration {
    /// Decisions in which it was measured; 0: it was not.
    pub decisions: usize,
    /// Rows and columns of places that were changed one by one.
    pub places: [usize; 2],
    /// Mean distance between the middle of a cell and the place that changes it most, in cells.
    pub distance: f64,
    /// Share of a cell's change that comes from its own position in the picture, mean over cells.
    pub own: f64,
    /// Cells that no place changes.
    pub silent: usize,
}

/// The part `i` of `of` equal parts of `length` pixels: from and to.
const fn part(i: usize, of: usize, length: usize) -> [usize; 2] {
    [i * length / of, (i + 1) * length / of]
}

/// Rows and columns of places in each picture of a stack.
fn sides(shape: PixelShape) -> [usize; 2] {
    [SIDE.min(shape.height), SIDE.min(shape.width)]
}

/// The picture in an observation.
fn picture(of: &mut ObservationBuf) -> Option<(PixelShape, &mut [u8])> {
    match of {
        ObservationBuf::Image(pixels) => Some((pixels.shape(), pixels.bytes_mut())),
        ObservationBuf::Dict(parts) => parts.iter_mut().find_map(|(_, part)| picture(part)),
        _ => None,
    }
}

/// Whether each of `count` bytes is changed: half of them, drawn once for all, so that brightness, colour and texture change.
fn drawn(count: usize) -> Vec<bool> {
    let mut rng = Seed::root(0).child("fields", 0).rng();
    (0..count).map(|_| rng.below(2) == 1).collect()
}

/// Changes one place in all pictures of a stack: its bytes, those of `drawn`, move towards the middle of their range.
fn shift(bytes: &mut [u8], drawn: &[bool], shape: PixelShape, sides: [usize; 2], place: usize) {
    let [top, bottom] = part(place / sides[1], sides[0], shape.height);
    let [left, right] = part(place % sides[1], sides[1], shape.width);
    let row = shape.width * shape.channels;
    for y in (0..shape.frames).flat_map(|frame| frame * shape.height + top..frame * shape.height + bottom) {
        let inside = y * row + left * shape.channels..y * row + right * shape.channels;
        for (byte, drawn) in bytes[inside.clone()].iter_mut().zip(&drawn[inside]) {
            if *drawn {
                *byte = if *byte < 128 { *byte + SHIFT } else { *byte - SHIFT };
            }
        }
    }
}

/// The logarithm of each weight, less the median of its reader: what a softmax shares out over all cells is none of this one.
fn scores(opened: &Opened) -> Vec<f64> {
    let mut scores: Vec<f64> =
        opened.weights.iter().map(|&weight| f64::from(weight.abs()).max(1e-12).ln()).collect();
    for row in scores.chunks_exact_mut(opened.units.max(1)) {
        let median = foveate_core::statistics::median(row);
        for score in row {
            *score -= median;
        }
    }
    scores
}

/// `[cells][places]` of one decision: squared change of the value, and of the scores, of every cell.
struct Response {
    grid: PatchGrid,
    sides: [usize; 2],
    values: Vec<Vec<f64>>,
    scores: Vec<Vec<f64>>,
}

/// `None` for an agent that has no soft attention over the cells of a picture.
fn response(moment: FieldMoment) -> Result<Option<Response>, PolicyError> {
    let FieldMoment { agent, context, mut seen } = moment;
    let mut whole = agent.boxed_clone();
    let decision = whole.act(seen.as_observation(), &mut context.clone())?;
    let cells = match decision.attention.as_ref().map(Attention::tokens) {
        Some(tokens @ Tokens::Cells { .. }) => tokens.grid().map(|grid| (grid, tokens.len())),
        _ => None,
    };
    let Some((grid, cells)) = cells else { return Ok(None) };
    let open = |seen: &ObservationBuf, opened: &mut Opened| {
        let opens = agent.boxed_clone().open(seen.as_observation(), &context, opened)?;
        Ok::<_, PolicyError>(opens && opened.units == cells && !opened.hard)
    };
    let mut usual = Opened::default();
    let Some((shape, bytes)) = picture(&mut seen) else { return Ok(None) };
    let before = bytes.to_vec();
    if !open(&seen, &mut usual)? {
        return Ok(None);
    }
    let sides = sides(shape);
    let places = sides[0] * sides[1];
    let (usual_scores, drawn) = (scores(&usual), drawn(before.len()));
    let mut of_values = vec![vec![0.0; places]; cells];
    let mut of_scores = of_values.clone();
    let mut changed = Opened::default();
    for place in 0..places {
        if let Some((_, bytes)) = picture(&mut seen) {
            bytes.copy_from_slice(&before);
            shift(bytes, &drawn, shape, sides, place);
        }
        open(&seen, &mut changed)?;
        for (cell, response) in of_values.iter_mut().enumerate() {
            let pairs = usual.value(cell).iter().zip(changed.value(cell));
            response[place] = pairs.map(|(a, b)| f64::from(a - b).powi(2)).sum();
        }
        for (i, (a, b)) in usual_scores.iter().zip(scores(&changed)).enumerate() {
            of_scores[i % cells][place] += (a - b).powi(2);
        }
    }
    Ok(Some(Response { grid, sides, values: of_values, scores: of_scores }))
}

/// Keeps decisions of an episode that are spread evenly over it, at most twice as many as are wanted.
struct Keeper {
    wanted: usize,
    /// Steps from one kept decision to the next.
    stride: usize,
    kept: Vec<FieldMoment>,
}

impl Observer<StudyError> for Keeper {
    fn before_choice(&mut self, now: BeforeChoice<'_>) -> Result<(), StudyError> {
        let Some(agent) = now.agent.filter(|_| (now.step as usize).is_multiple_of(self.stride)) else {
            return Ok(());
        };
        let (agent, context, seen) = (agent.boxed_clone(), now.context.clone(), now.env.observation().into());
        self.kept.push(FieldMoment { agent, context, seen });
        if self.kept.len() > 2 * self.wanted {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
        Ok(())
    }
}

/// Plays an episode and keeps `wanted` decisions of it, spread evenly.
fn keep(mut start: EpisodeStart, wanted: usize) -> Result<Vec<FieldMoment>, StudyError> {
    let mut keeper = Keeper { wanted, stride: 1, kept: vec![] };
    start.run(&mut keeper)?;
    let steps = super::probes::spread(keeper.kept.len(), wanted);
    let kept = keeper.kept.into_iter().enumerate().filter(|(i, _)| steps.contains(i));
    Ok(kept.map(|(_, moment)| moment).collect())
}

impl Fields {
    /// Of how many episodes, and of how many decisions of each, the fields are measured in a study of `episodes` episodes.
    pub(super) fn size(episodes: usize) -> [usize; 2] {
        let used = episodes.clamp(1, EPISODES);
        [used, MOMENTS.div_ceil(used)]
    }

    /// Every cell where it lies.
    pub(super) fn unmeasured(grid: PatchGrid) -> Fields {
        let (cells, count) = ([grid.height(), grid.width()], grid.len());
        let own = |cell: usize| (0..count).map(|place| f64::from(u8::from(cell == place))).collect();
        Fields { cells, places: cells, grid, shares: (0..count).map(own).collect(), silent: 0, moments: 0 }
    }

    /// Measures them in decisions of the first episodes; `None` for an agent that has no soft attention over the cells of a picture.
    /// `each` is called after every episode.
    ///
    /// # Errors
    /// When an episode fails, or someone asks to stop.
    pub(super) fn of_episodes(
        start: &(dyn Fn(usize) -> EpisodeStart + Sync),
        episodes: usize,
        scheduler: &dyn Scheduler,
        each: &mut dyn FnMut(),
    ) -> Result<Option<Fields>, StudyError> {
        let [used, wanted] = Fields::size(episodes);
        let work = |episode: usize| responses(keep(start(episode), wanted)?);
        let all: Vec<Response> = scheduler.ordered(0..used, work, each)?.into_iter().flatten().collect();
        Ok(Fields::combined(&all))
    }

    /// Measures them in these decisions; `None` for an agent that has no soft attention over the cells of a picture.
    ///
    /// # Errors
    /// When the agent refuses what it is shown.
    pub(super) fn of_moments(moments: Vec<FieldMoment>) -> Result<Option<Fields>, StudyError> {
        Ok(Fields::combined(&responses(moments)?))
    }

    /// A cell counts by its value; where no place changes that, by its scores; where none changes either, where it lies.
    fn combined(all: &[Response]) -> Option<Fields> {
        let first = all.first()?;
        let (cells, places, moments) = ([first.grid.height(), first.grid.width()], first.sides, all.len());
        let mut silent = 0;
        let shares = (0..cells[0] * cells[1]).map(|cell| {
            let sums = |of: fn(&Response) -> &Vec<Vec<f64>>| {
                let mut sums = vec![0.0; places[0] * places[1]];
                for response in all {
                    for (sum, x) in sums.iter_mut().zip(&of(response)[cell]) {
                        *sum += x;
                    }
                }
                let whole: f64 = sums.iter().sum();
                (whole.is_finite() && whole > 1e-12).then(|| sums.iter().map(|sum| sum / whole).collect())
            };
            let measured = sums(|response| &response.values).or_else(|| sums(|response| &response.scores));
            measured.unwrap_or_else(|| {
                silent += 1;
                position(cell, cells, places)
            })
        });
        let shares = shares.collect();
        let grid = PatchGrid::tile(places[1], places[0], 1, 1).ok()?;
        Some(Fields { cells, places, grid, shares, silent, moments })
    }

    /// `[places]`: a claim over cells, each cell's share dealt out to the places that its content comes from. The sum stays.
    pub(super) fn pool(&self, claim: &[f64]) -> Vec<f64> {
        let mut pooled = vec![0.0; self.places[0] * self.places[1]];
        for (claim, shares) in claim.iter().zip(&self.shares) {
            for (pooled, share) in pooled.iter_mut().zip(shares) {
                *pooled += claim * share;
            }
        }
        pooled
    }

    /// `[places]`: the claim of a decision over the places that are swapped, 1 in all; `None` where the claim is not over these
    /// cells, or the places are others.
    pub(super) fn over_places(&self, claim: &[f64], places: usize) -> Option<Vec<f64>> {
        if claim.len() != self.shares.len() || self.places[0] * self.places[1] != places {
            return None;
        }
        let pooled = self.pool(claim);
        let sum: f64 = pooled.iter().sum();
        (sum > 0.0).then(|| pooled.iter().map(|share| share / sum).collect())
    }

    /// The same of one head of `[heads, cells]`.
    pub(super) fn of_head(&self, weights: &[f32], head: usize) -> Vec<f64> {
        let cells = self.shares.len();
        let row: Vec<f64> = weights[head * cells..][..cells].iter().map(|&x| f64::from(x)).collect();
        self.pool(&row)
    }

    /// The same places, with every cell where it lies.
    pub(super) fn at_positions(&self) -> Fields {
        let shares = (0..self.shares.len()).map(|cell| position(cell, self.cells, self.places)).collect();
        Fields { shares, silent: self.shares.len(), ..self.clone() }
    }

    /// Rows and columns of places.
    pub(super) const fn sides(&self) -> [usize; 2] {
        self.places
    }

    /// Returns whether they are those of the cells that `attention` is soft over.
    pub(super) fn are_of(&self, attention: &Attention<'_>) -> bool {
        let [rows, columns] = self.cells;
        attention.selected().is_none() && attention.tokens() == Tokens::Cells { rows, columns }
    }

    /// Attention over these cells, and effects of cells, at the places; `None` for other attention.
    pub(super) fn placed(
        &self,
        attention: &Attention<'_>,
        effects: &[(u32, f64)],
    ) -> Option<PlacedAttention> {
        if !self.are_of(attention) {
            return None;
        }
        let weights: Vec<f64> = attention.importance().iter().map(|&weight| f64::from(weight)).collect();
        let mut of_cells = vec![0.0; weights.len()];
        for &(cell, effect) in effects {
            of_cells[cell as usize] = effect;
        }
        let mut placed: Vec<(u32, f64)> = (0..).zip(self.pool(&of_cells)).collect();
        placed.sort_by(|a, b| b.1.total_cmp(&a.1));
        placed.truncate(effects.len());
        let weights = self.pool(&weights).into_iter().map(|weight| weight as f32).collect();
        Some(PlacedAttention { grid: self.grid, weights, effects: placed })
    }

    /// Rows and columns of cells.
    pub(super) const fn cells(&self) -> [usize; 2] {
        self.cells
    }

    /// The places as a grid over the picture.
    pub(super) const fn grid(&self) -> PatchGrid {
        self.grid
    }

    /// `[places]`: the field of a cell.
    pub(super) fn of_cell(&self, cell: usize) -> &[f64] {
        &self.shares[cell]
    }

    /// How far cells lie from where their contents come from.
    pub(super) fn registration(&self) -> Registration {
        let ([rows, columns], [down, across]) = (self.cells, self.places);
        let middle = |i: usize, of: usize| (i as f64 + 0.5) / of as f64;
        let (mut distance, mut own) = (0.0, 0.0);
        for (cell, shares) in self.shares.iter().enumerate() {
            let best = (1..shares.len()).fold(0, |best, i| if shares[i] > shares[best] { i } else { best });
            let y = (middle(best / across, down) - middle(cell / columns, rows)) * rows as f64;
            let x = (middle(best % across, across) - middle(cell % columns, columns)) * columns as f64;
            distance += y.hypot(x);
            // Of a place that lies in the cell by a part, that part counts.
            let parts = overlaps(cell, self.cells, self.places);
            own += shares.iter().zip(parts).map(|(share, part)| share * part).sum::<f64>();
        }
        let count = self.shares.len().max(1) as f64;
        Registration {
            decisions: self.moments,
            places: self.places,
            distance: distance / count,
            own: own / count,
            silent: self.silent,
        }
    }
}

fn responses(moments: Vec<FieldMoment>) -> Result<Vec<Response>, StudyError> {
    let refused = |error: PolicyError| StudyError::Refused { why: error.to_string() };
    let all: Vec<Option<Response>> =
        moments.into_iter().map(response).collect::<Result<_, _>>().map_err(refused)?;
    Ok(all.into_iter().flatten().collect())
}

/// `[places]`: the part of each place that lies in a cell.
fn overlaps(cell: usize, [rows, columns]: [usize; 2], [down, across]: [usize; 2]) -> Vec<f64> {
    let shared = |i: usize, of: usize, cell: usize, cells: usize| {
        let [low, high] = [i, i + 1].map(|edge| edge as f64 / of as f64);
        let [from, to] = [cell, cell + 1].map(|edge| edge as f64 / cells as f64);
        (high.min(to) - low.max(from)).max(0.0) * of as f64
    };
    let place = |place: usize| {
        shared(place / across, down, cell / columns, rows)
            * shared(place % across, across, cell % columns, columns)
    };
    (0..down * across).map(place).collect()
}

/// `[places]`: where a cell lies.
fn position(cell: usize, cells: [usize; 2], places: [usize; 2]) -> Vec<f64> {
    let parts = overlaps(cell, cells, places);
    let whole: f64 = parts.iter().sum();
    parts.iter().map(|part| part / whole.max(1e-12)).collect()
}

#[cfg(test)]
pub(in crate::study) mod tests {
    use foveate_core::{Decision, Observation, PixelsBuf, Policy, PolicyAgent, Seed, TensorShape};

    use super::*;

    const SIDE_OF_CELLS: usize = 6;
    const CELLS: usize = SIDE_OF_CELLS * SIDE_OF_CELLS;
    const PIXELS: usize = 24;

    /// A network whose cells read the picture `shift` cells to their right, around the edge. It attends to the brightest cell.
    #[derive(Debug, Clone)]
    pub(in crate::study) struct Shifted {
        pub(in crate::study) shift: usize,
        /// Whether the cells' values are what they read; the scores always are.
        pub(in crate::study) values: bool,
    }

    #[derive(Debug, Clone, Default)]
    pub(in crate::study) struct Memory {
        opened: Opened,
        action: Vec<f64>,
    }

    impl Policy for Shifted {
        type Memory = Memory;

        fn memory(&self) -> Memory {
            Memory::default()
        }

        fn reset(&self, _: &mut Memory, _: Seed) {}

        fn act<'m>(
            &self,
            observation: Observation<'_>,
            memory: &'m mut Memory,
            context: &mut ActContext,
        ) -> Result<Decision<'m>, PolicyError> {
            let mut opened = Opened::default();
            self.open(observation, memory, context, &mut opened)?;
            memory.opened = opened;
            memory.action = vec![0.0];
            let tokens = Tokens::Cells { rows: SIDE_OF_CELLS, columns: SIDE_OF_CELLS };
            let attention = Attention::soft(tokens, 1, 1, &memory.opened.weights)?;
            Ok(Decision::new(&memory.action).with_attention(attention))
        }

        fn open(
            &self,
            observation: Observation<'_>,
            _: &mut Memory,
            _: &ActContext,
            opened: &mut Opened,
        ) -> Result<bool, PolicyError> {
            let pixels = observation.image().expect("a picture");
            let each = PIXELS / SIDE_OF_CELLS;
            let mut read = vec![0.0_f32; CELLS];
            for (i, &byte) in pixels.bytes().iter().enumerate() {
                let (row, column) = (i / PIXELS / each, i % PIXELS / each);
                let cell = (column + SIDE_OF_CELLS - self.shift) % SIDE_OF_CELLS;
                read[row * SIDE_OF_CELLS + cell] += f32::from(byte) / 255.0 / (each * each) as f32;
            }
            let scores: Vec<f32> = read.iter().map(|x| (12.0 * x).exp()).collect();
            let sum: f32 = scores.iter().sum();
            (opened.units, opened.readers) = (CELLS, 1);
            opened.weights = scores.iter().map(|x| x / sum).collect();
            opened.values = if self.values { read } else { vec![1.0; CELLS] };
            Ok(true)
        }

        fn tensors(&self) -> Vec<TensorShape> {
            vec![]
        }

        fn params(&self) -> Vec<f32> {
            vec![]
        }

        fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
            Ok(())
        }
    }

    /// A grey picture with a bright object of 4 x 4 pixels at this cell.
    fn with_object([row, column]: [usize; 2]) -> ObservationBuf {
        let shape = PixelShape { frames: 1, height: PIXELS, width: PIXELS, channels: 1 };
        let inside = |i: usize| i / PIXELS / 4 == row && i % PIXELS / 4 == column;
        let bytes = (0..PIXELS * PIXELS).map(|i| if inside(i) { 250 } else { 40 }).collect();
        ObservationBuf::Image(PixelsBuf::new(shape, bytes).expect("24 x 24 pixels"))
    }

    fn measured(planted: &Shifted) -> Fields {
        let moment = |at| FieldMoment {
            agent: Box::new(PolicyAgent::new(planted.clone())),
            context: ActContext::default(),
            seen: with_object(at),
        };
        Fields::of_moments(vec![moment([1, 3]), moment([4, 0])]).expect("it decides").expect("it has cells")
    }

    /// The share of the attention on the object, drawn where the cells lie and where their contents come from.
    #[test]
    fn attention_lies_where_its_contents_come_from() {
        for (shift, values) in [(0, true), (2, true), (2, false)] {
            let planted = Shifted { shift, values };
            let fields = measured(&planted);
            let at = [2, 4];
            let mut agent = PolicyAgent::new(planted.clone());
            let seen = with_object(at);
            let decision = agent.act(seen.as_observation(), &mut ActContext::default()).expect("it decides");
            let attention = decision.attention.expect("attention");
            let claim: Vec<f64> = attention.importance().iter().map(|&x| f64::from(x)).collect();
            let placed = fields.over_places(&claim, 144).expect("144 places");
            assert!((placed.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert_eq!(fields.over_places(&claim, 100), None);
            let on_object = |fields: &Fields| {
                let ([rows, columns], pooled) = (fields.sides(), fields.pool(&claim));
                let inside = |i: usize| {
                    i / columns * SIDE_OF_CELLS / rows == at[0]
                        && i % columns * SIDE_OF_CELLS / columns == at[1]
                };
                let sum: f64 = pooled.iter().sum();
                pooled.iter().enumerate().filter(|(i, _)| inside(*i)).map(|(_, x)| x).sum::<f64>() / sum
            };
            let (naive, registered) = (
                on_object(&Fields::unmeasured(PatchGrid::tile(6, 6, 1, 1).expect("fits"))),
                on_object(&fields),
            );
            assert!(registered > 0.75, "{planted:?}: {registered}");
            assert_eq!(naive > 0.75, shift == 0, "{planted:?}: {naive}");
            let Registration { decisions, places, distance, own, silent } = fields.registration();
            assert_eq!((decisions, places, silent), (2, [12, 12], 0));
            assert_eq!(own > 0.9, shift == 0, "{own}");
            assert_eq!(distance > 1.5, shift > 0, "{distance}");
        }
    }

    /// In films, too, with the effects of cells.
    #[test]
    fn films_show_cells_where_their_contents_come_from() {
        let planted = Shifted { shift: 2, values: true };
        let (fields, seen) = (measured(&planted), with_object([2, 4]));
        let mut agent = PolicyAgent::new(planted);
        let decision = agent.act(seen.as_observation(), &mut ActContext::default()).expect("it decides");
        let attention = decision.attention.expect("attention");
        // Cell [2, 2] reads column 4.
        let placed = fields.placed(&attention, &[(2 * 6 + 2, 0.8), (0, 0.001)]).expect("over these cells");
        let shown = placed.attention().expect("finite");
        let most = |weights: &[f32]| {
            (0..weights.len() as u32).max_by(|&a, &b| weights[a as usize].total_cmp(&weights[b as usize]))
        };
        let [x, y, ..] =
            shown.tokens().rectangle(24, 24, most(shown.weights()).expect("places")).expect("a place");
        assert_eq!([y as usize / 4, x as usize / 4], [2, 4]);
        assert_eq!(placed.effects.len(), 2);
        let [x, y, ..] = shown.tokens().rectangle(24, 24, placed.effects[0].0).expect("a place");
        assert_eq!([y as usize / 4, x as usize / 4], [2, 4]);
        let other = Attention::soft(Tokens::Cells { rows: 1, columns: 1 }, 1, 1, &[1.0]).expect("one");
        assert_eq!(fields.placed(&other, &[]), None);
    }

    #[test]
    fn a_cell_that_nothing_changes_counts_where_it_lies() {
        let blind = Shifted { shift: 0, values: true };
        let fields = measured(&blind);
        assert_eq!(fields.pool(&[1.0; CELLS]).iter().sum::<f64>().round(), 36.0);
        let silent = Fields::combined(&[Response {
            grid: PatchGrid::tile(2, 1, 1, 1).expect("fits"),
            sides: [1, 4],
            values: vec![vec![0.0; 4], vec![0.0, 3.0, 0.0, 1.0]],
            scores: vec![vec![0.0; 4]; 2],
        }])
        .expect("a decision");
        assert_eq!(silent.pool(&[1.0, 4.0]), [0.5, 3.5, 0.0, 1.0]);
        assert_eq!(silent.registration().silent, 1);
        let same = Fields::unmeasured(PatchGrid::tile(3, 2, 1, 1).expect("fits"));
        assert_eq!(same.pool(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((same.registration().distance, same.registration().own), (0.0, 1.0));
    }
}

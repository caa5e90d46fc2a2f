//! Where the tokens of an agent's attention lie in what it observes, and observations with places from another.

use foveate_core::{Attention, Observation, ObservationBuf, PatchGrid, PixelShape, Tokens};

/// Rows and columns of places in a picture, where it has as many pixels.
const SIDE: usize = 12;

/// The places of an observation: equal parts of a picture, the same for every agent, or numbers or cells one by one.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::study) enum Places {
    /// `[places]`: rows and columns of pixels, from and to, in every picture of a stack or in the stack as one tall picture.
    Pixels {
        /// True if rows are those of the tall picture.
        tall: bool,
        /// Of the picture that the places are parts of.
        height: usize,
        /// The same.
        width: usize,
        /// Top, bottom, left, right.
        rectangles: Vec<[usize; 4]>,
    },
    /// Numbers, one by one.
    Numbers(usize),
    /// Cells of a grid, one by one.
    Cells(usize),
}

impl Places {
    /// The places of `observation`; `None` where the tokens of `attention` lie elsewhere.
    pub(in crate::study) fn of(
        attention: Option<&Attention<'_>>,
        observation: Observation<'_>,
    ) -> Option<Places> {
        let tokens = attention.map(Attention::tokens);
        let count = tokens.map(|tokens| tokens.len());
        let fits =
            |places: usize| (places > 0 && count.is_none_or(|count| count == places)).then_some(places);
        match observation {
            Observation::Image(pixels) => {
                let shape = pixels.shape();
                let grid = match tokens {
                    Some(tokens) => Some(tokens.grid()?),
                    None => None,
                };
                Some(Places::in_pictures(grid, shape))
            }
            Observation::Vector(numbers) => fits(numbers.len()).map(Places::Numbers),
            Observation::Grid(grid) => fits(grid.rows() * grid.columns()).map(Places::Cells),
            Observation::Dict(_) => {
                let image = observation.image().map(Observation::Image);
                let numbers = observation.numbers().map(Observation::Vector);
                Places::of(attention, image.or(numbers)?)
            }
        }
    }

    fn in_pictures(grid: Option<PatchGrid>, shape: PixelShape) -> Places {
        let (width, all) = shape.tall();
        let is_tall = |grid: PatchGrid| (grid.width(), grid.height()) == (width, all);
        let tall = shape.frames > 1 && grid.is_some_and(is_tall);
        let height = if tall { all } else { shape.height };
        let (rows, columns) = (SIDE.min(height), SIDE.min(width));
        let part = |i: usize, of: usize, length: usize| [i * length / of, (i + 1) * length / of];
        let rectangles = (0..rows * columns).map(|place| {
            let [top, bottom] = part(place / columns, rows, height);
            let [left, right] = part(place % columns, columns, width);
            [top, bottom, left, right]
        });
        Places::Pixels { tall, height, width, rectangles: rectangles.collect() }
    }

    /// `[places]`: the claims of all tokens, each dealt out by the area that it shares with every place.
    pub(in crate::study) fn pool(&self, tokens: Tokens<'_>, claim: &[f64]) -> Vec<f64> {
        let Places::Pixels { height, width, rectangles, .. } = self else { return claim.to_vec() };
        let mut pooled = vec![0.0; rectangles.len()];
        for (token, &claim) in claim.iter().enumerate() {
            let Some([x, y, across, down]) = tokens.rectangle(*width, *height, token as u32) else {
                continue;
            };
            let [x, y, across, down] = [x, y, across, down].map(f64::from);
            let shared = |from: f64, length: f64, [low, high]: [usize; 2]| {
                ((from + length).min(high as f64) - from.max(low as f64)).max(0.0)
            };
            for (pooled, &[top, bottom, left, right]) in pooled.iter_mut().zip(rectangles) {
                let area = shared(y, down, [top, bottom]) * shared(x, across, [left, right]);
                *pooled += claim * area / (across * down).max(1e-9);
            }
        }
        pooled
    }

    /// How many there are.
    pub(in crate::study) const fn len(&self) -> usize {
        match self {
            Places::Pixels { rectangles, .. } => rectangles.len(),
            Places::Numbers(count) | Places::Cells(count) => *count,
        }
    }

    /// What they are the places of, in words.
    pub(in crate::study) fn words(&self) -> String {
        match self {
            Places::Pixels { height, width, .. } => format!("a picture of {height} × {width} pixels"),
            Places::Numbers(count) => format!("{count} numbers"),
            Places::Cells(count) => format!("a grid of {count} cells"),
        }
    }

    /// `[places]`: how far each differs between two observations: the sum over pixels of |difference|, of numbers the
    /// difference, of cells whether their codes differ.
    pub(in crate::study) fn differences(&self, a: &ObservationBuf, b: &ObservationBuf) -> Vec<f64> {
        match (self, part(a), part(b)) {
            (Places::Pixels { tall, rectangles, .. }, ObservationBuf::Image(a), ObservationBuf::Image(b)) => {
                let (a, b) = (a.as_pixels(), b.as_pixels());
                let of = |rectangle: &[usize; 4]| {
                    let runs = runs(a.shape(), *tall, *rectangle);
                    runs.map(|run| {
                        let pairs = a.bytes()[run.clone()].iter().zip(&b.bytes()[run]);
                        pairs.map(|(a, b)| f64::from(a.abs_diff(*b))).sum::<f64>()
                    })
                    .sum()
                };
                rectangles.iter().map(of).collect()
            }
            (Places::Numbers(_), ObservationBuf::Vector(a), ObservationBuf::Vector(b)) => {
                a.iter().zip(b).map(|(a, b)| f64::from((a - b).abs())).collect()
            }
            (Places::Cells(count), ObservationBuf::Grid(a), ObservationBuf::Grid(b)) => {
                let (a, b) = (a.as_grid().codes(), b.as_grid().codes());
                let each = (a.len() / (*count).max(1)).max(1);
                a.chunks(each).zip(b.chunks(each)).map(|(a, b)| f64::from(u8::from(a != b))).collect()
            }
            _ => vec![0.0; self.len()],
        }
    }

    /// `[places]`: the unit of each place's [difference](Places::differences): of numbers how much each varies over these
    /// observations, so that those of different units can be compared; else 1.
    pub(in crate::study) fn units<'o>(&self, seen: impl Iterator<Item = &'o ObservationBuf>) -> Vec<f64> {
        let mut units = vec![1.0; self.len()];
        if let Places::Numbers(count) = self {
            let all: Vec<&Vec<f32>> = seen
                .filter_map(|seen| match part(seen) {
                    ObservationBuf::Vector(numbers) if numbers.len() == *count => Some(numbers),
                    _ => None,
                })
                .collect();
            for (i, unit) in units.iter_mut().enumerate() {
                let own: Vec<f64> = all.iter().map(|numbers| f64::from(numbers[i])).collect();
                *unit = foveate_core::statistics::std(&own).filter(|std| *std > 0.0).unwrap_or(1.0);
            }
        }
        units
    }

    /// `[places]`: a map of `rows × columns` over a picture, each weight dealt out by the area that its cell shares with every
    /// place; of numbers and cells the weights themselves. `None` where their number does not fit.
    pub(in crate::study) fn of_map(&self, [rows, columns]: [usize; 2], weights: &[f64]) -> Option<Vec<f64>> {
        match self {
            _ if rows * columns != weights.len() || weights.is_empty() => None,
            Places::Pixels { height, width, .. } => (rows <= *height && columns <= *width)
                .then(|| self.pool(Tokens::Cells { rows, columns }, weights)),
            Places::Numbers(count) | Places::Cells(count) => {
                (weights.len() == *count).then(|| weights.to_vec())
            }
        }
    }

    /// Writes these places of `donor` over `observation`.
    pub(in crate::study) fn transplant(
        &self,
        places: &[u32],
        donor: &ObservationBuf,
        observation: &mut ObservationBuf,
    ) {
        match (self, part_mut(observation), part(donor)) {
            (
                Places::Pixels { tall, rectangles, .. },
                ObservationBuf::Image(to),
                ObservationBuf::Image(from),
            ) => {
                let shape = to.shape();
                let from = from.as_pixels();
                if shape != from.shape() {
                    return;
                }
                let bytes = to.bytes_mut();
                for &place in places {
                    for run in runs(shape, *tall, rectangles[place as usize]) {
                        bytes[run.clone()].copy_from_slice(&from.bytes()[run]);
                    }
                }
            }
            (Places::Numbers(_), ObservationBuf::Vector(to), ObservationBuf::Vector(from)) => {
                for &place in places {
                    to[place as usize] = from[place as usize];
                }
            }
            (Places::Cells(count), ObservationBuf::Grid(to), ObservationBuf::Grid(from)) => {
                let grid = to.as_grid();
                let (mut codes, from) = (grid.codes().to_vec(), from.as_grid().codes());
                let each = codes.len() / (*count).max(1);
                for &place in places {
                    let place = place as usize * each..(place as usize + 1) * each;
                    codes[place.clone()].copy_from_slice(&from[place]);
                }
                let (rows, columns, channels) = (grid.rows(), grid.columns(), grid.channels());
                if let Some(grid) = foveate_core::GridBuf::new(rows, columns, channels, codes) {
                    *to = grid;
                }
            }
            _ => {}
        }
    }
}

/// The bytes of a rectangle, row by row, in every picture of a stack.
fn runs(
    shape: PixelShape,
    tall: bool,
    [top, bottom, left, right]: [usize; 4],
) -> impl Iterator<Item = std::ops::Range<usize>> {
    let (frames, height) = if tall { (1, shape.frames * shape.height) } else { (shape.frames, shape.height) };
    let row = shape.width * shape.channels;
    (0..frames).flat_map(move |frame| {
        (top..bottom).map(move |y| {
            let begin = (frame * height + y) * row;
            begin + left * shape.channels..begin + right * shape.channels
        })
    })
}

/// What of an observation has the places: its picture, or else its numbers.
fn part(of: &ObservationBuf) -> &ObservationBuf {
    match of {
        ObservationBuf::Dict(parts) => parts
            .iter()
            .find(|(_, part)| matches!(part, ObservationBuf::Image(_)))
            .or_else(|| parts.iter().find(|(_, part)| matches!(part, ObservationBuf::Vector(_))))
            .map_or(of, |(_, part)| part),
        other => other,
    }
}

fn part_mut(of: &mut ObservationBuf) -> &mut ObservationBuf {
    let ObservationBuf::Dict(parts) = of else { return of };
    let is_image = |(_, part): &(String, ObservationBuf)| matches!(part, ObservationBuf::Image(_));
    let is_vector = |(_, part): &(String, ObservationBuf)| matches!(part, ObservationBuf::Vector(_));
    let at = parts.iter().position(is_image).or_else(|| parts.iter().position(is_vector)).unwrap_or(0);
    &mut parts[at].1
}

#[cfg(test)]
mod tests {
    use foveate_core::PixelsBuf;

    use super::*;

    fn stack(bytes: Vec<u8>) -> ObservationBuf {
        let shape = PixelShape { frames: 2, height: 2, width: 4, channels: 1 };
        ObservationBuf::Image(PixelsBuf::new(shape, bytes).expect("16 bytes"))
    }

    fn changed(places: &Places, which: &[u32], from: &ObservationBuf, to: &ObservationBuf) -> Vec<u8> {
        let mut out = to.clone();
        places.transplant(which, from, &mut out);
        let ObservationBuf::Image(pixels) = out else { panic!("a picture") };
        pixels.as_pixels().bytes().to_vec()
    }

    #[test]
    fn a_place_of_a_stack_is_taken_from_every_picture() {
        let (old, new) = (stack(vec![0; 16]), stack((1..=16).collect()));
        let weights = [0.5, 0.5];
        let selected = foveate_core::Selected { tokens: &[0], ranks: &[0] };
        let grid = PatchGrid::tile(4, 2, 2, 2).expect("two patches");
        let attention = Attention::patches(grid, &weights, selected).expect("two patches");
        let places = Places::of(Some(&attention), old.as_observation()).expect("pictures");
        assert_eq!(places.len(), 8, "two rows and four columns are all there are");
        assert_eq!(changed(&places, &[6], &new, &old), [0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 15, 0]);
        assert_eq!(places.differences(&old, &new)[6], 22.0);
        // A patch of 2 x 2 pixels is four places.
        let tokens = attention.tokens();
        assert_eq!(places.pool(tokens, &[1.0, 4.0]), [0.25, 0.25, 1.0, 1.0, 0.25, 0.25, 1.0, 1.0]);
        let tall = PatchGrid::tile(4, 4, 2, 2).expect("four patches");
        let weights = [0.25; 4];
        let attention = Attention::patches(tall, &weights, selected).expect("four patches");
        let places = Places::of(Some(&attention), old.as_observation()).expect("pictures");
        assert_eq!(changed(&places, &[8], &new, &old), [0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn numbers_and_cells_are_taken_one_by_one() {
        let (old, new) = (ObservationBuf::Vector(vec![0.0; 3]), ObservationBuf::Vector(vec![1.0, -2.0, 3.0]));
        let places = Places::of(None, old.as_observation()).expect("numbers");
        let mut out = old.clone();
        places.transplant(&[1], &new, &mut out);
        assert_eq!(out, ObservationBuf::Vector(vec![0.0, -2.0, 0.0]));
        assert_eq!(places.differences(&old, &new), [1.0, 2.0, 3.0]);
        let grid = |codes: Vec<u8>| {
            ObservationBuf::Grid(foveate_core::GridBuf::new(1, 2, 2, codes).expect("four codes"))
        };
        let (old, new) = (grid(vec![0, 0, 0, 0]), grid(vec![0, 1, 2, 3]));
        let places = Places::of(None, old.as_observation()).expect("cells");
        let mut out = old.clone();
        places.transplant(&[0], &new, &mut out);
        assert_eq!(out, grid(vec![0, 1, 0, 0]));
        assert_eq!(places.differences(&old, &new), [1.0, 1.0]);
        // A picture without attention is cut into parts.
        let places = Places::of(None, stack(vec![0; 16]).as_observation()).expect("pictures");
        assert_eq!(places.len(), 8, "two rows and four columns are all there are");
    }
}

//! What an agent attends to: the region-of-interest study of AttentionAgent (Tang, Nguyen and Ha 2020).

use foveate_core::{Image, ImageBuf, PatchGrid, Seed};

use crate::overlay::{pixel_range, rectangle};

/// Bins per factor of two, and the smallest importance told apart from nothing, as a power of two.
const PER_OCTAVE: f64 = 256.0;
const LEAST: f64 = -20.0;
const BINS: usize = 34 * 256;

/// How often patches had which importance, over any number of moments; fine enough for quantiles to 0.3 %.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportanceCounts {
    bins: Vec<u64>,
}

impl Default for ImportanceCounts {
    fn default() -> Self {
        ImportanceCounts { bins: vec![0; BINS] }
    }
}

impl ImportanceCounts {
    /// Counts the importance of every patch of a moment.
    pub fn add(&mut self, importance: &[f32]) {
        for &value in importance {
            self.bins[bin(f64::from(value))] += 1;
        }
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &ImportanceCounts) {
        for (count, more) in self.bins.iter_mut().zip(&other.bins) {
            *count += more;
        }
    }

    /// Patches counted.
    pub fn total(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// The importance that a part `q` of all patches does not exceed, to 0.3 %; 0 of nothing.
    pub fn quantile(&self, q: f64) -> f64 {
        let wanted = (q * self.total() as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        for (i, count) in self.bins.iter().enumerate() {
            sum += count;
            if sum >= wanted {
                return edge(i + 1);
            }
        }
        0.0
    }

    /// `(from, to, patches)` of `bars` equally wide bars from `low` to `high`; what lies above goes to the last one.
    pub fn bars(&self, low: f64, high: f64, bars: usize) -> Vec<(f64, f64, u64)> {
        let width = (high - low) / bars as f64;
        let mut out: Vec<_> =
            (0..bars).map(|i| (low + i as f64 * width, low + (i + 1) as f64 * width, 0)).collect();
        for (i, &count) in self.bins.iter().enumerate() {
            let middle = f64::midpoint(edge(i), edge(i + 1));
            if middle >= low && width > 0.0 {
                let bar = (((middle - low) / width) as usize).min(bars - 1);
                out[bar].2 += count;
            }
        }
        out
    }
}

fn bin(value: f64) -> usize {
    if value <= 0.0 {
        return 0;
    }
    ((value.log2() - LEAST) * PER_OCTAVE).clamp(0.0, (BINS - 1) as f64) as usize
}

/// The lower edge of a bin.
fn edge(bin: usize) -> f64 {
    if bin == 0 { 0.0 } else { (LEAST + bin as f64 / PER_OCTAVE).exp2() }
}

/// Ranges of importance that patches are shown from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Range {
    /// Among the thousandth with the most.
    Top,
    /// Around the best twentieth's lower end: between the 94 % and the 96 % quantile.
    AroundFive,
    /// In the lower half.
    LowerHalf,
}

impl Range {
    /// From the most important down.
    pub const ALL: [Range; 3] = [Range::Top, Range::AroundFive, Range::LowerHalf];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Range::Top => "top 0.1 %",
            Range::AroundFive => "around 5 %",
            Range::LowerHalf => "lower half",
        }
    }

    /// Its lower and upper end in what was counted.
    pub fn bounds(self, counts: &ImportanceCounts) -> [f64; 2] {
        match self {
            Range::Top => [counts.quantile(0.999), f64::INFINITY],
            Range::AroundFive => [counts.quantile(0.94), counts.quantile(0.96)],
            Range::LowerHalf => [0.0, counts.quantile(0.5)],
        }
    }
}

/// A patch as it looked.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// How important it was.
    pub importance: f64,
    /// Its pixels.
    pub pixels: ImageBuf,
    key: u64,
}

/// Patches of one range, drawn at random from all that were offered, whatever the order they came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Samples {
    bounds: [f64; 2],
    most: usize,
    kept: Vec<Sample>,
}

impl Samples {
    /// At most `most` of them, with an importance within `bounds`.
    pub fn new(bounds: [f64; 2], most: usize) -> Self {
        Samples { bounds, most, kept: Vec::new() }
    }

    /// Offers every patch of a moment; `moment` names the moment, so that the draw depends on nothing else.
    pub fn offer(&mut self, picture: Image<'_>, grid: PatchGrid, importance: &[f32], moment: Seed) {
        for (patch, &value) in importance.iter().enumerate() {
            let importance = f64::from(value);
            let key = moment.child("patch", patch as u64).value();
            let better = self.kept.len() < self.most || self.kept.last().is_some_and(|last| key < last.key);
            if importance >= self.bounds[0] && importance <= self.bounds[1] && better {
                let sample = Sample { importance, pixels: cut(picture, grid, patch as u32), key };
                let at = self.kept.partition_point(|kept| kept.key < key);
                self.kept.insert(at, sample);
                self.kept.truncate(self.most);
            }
        }
    }

    /// Takes in what another one kept.
    pub fn merge(&mut self, other: Samples) {
        self.kept.extend(other.kept);
        self.kept.sort_by_key(|sample| sample.key);
        self.kept.truncate(self.most);
    }

    /// What was kept, in the order of the draw.
    pub fn kept(&self) -> &[Sample] {
        &self.kept
    }
}

/// The pixels of a patch.
fn cut(picture: Image<'_>, grid: PatchGrid, patch: u32) -> ImageBuf {
    let [x, y, across, down] = rectangle(picture.width(), picture.height(), grid, patch);
    let (columns, rows) = (pixel_range(x, across, picture.width()), pixel_range(y, down, picture.height()));
    let mut out = ImageBuf::black(columns.len(), rows.len());
    let mut bytes = out.rgb_mut().as_chunks_mut::<3>().0.iter_mut();
    for y in rows {
        for x in columns.clone() {
            *bytes.next().expect("as many pixels as were cut") = picture.pixel(x, y);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_numbers() {
        let mut counts = ImportanceCounts::default();
        let numbers: Vec<f32> = (1..=10_000).map(|i| i as f32 / 100.0).collect();
        for part in numbers.chunks(333) {
            let mut more = ImportanceCounts::default();
            more.add(part);
            counts.merge(&more);
        }
        assert_eq!(counts.total(), 10_000);
        for (q, expect) in [(0.05, 5.0), (0.5, 50.0), (0.95, 95.0), (1.0, 100.0)] {
            let got = counts.quantile(q);
            assert!((got / expect - 1.0).abs() < 0.005, "{q}: {got}");
        }
        let bars = counts.bars(50.0, 100.0, 5);
        assert!(bars.iter().all(|bar| (960..1040).contains(&bar.2)), "{bars:?}");
        assert_eq!(ImportanceCounts::default().quantile(0.5), 0.0);
    }

    #[test]
    fn samples_do_not_depend_on_the_order() {
        let grid = PatchGrid::tile(4, 1, 1, 1).expect("fits");
        let pictures: Vec<ImageBuf> =
            (0..50_u8).map(|i| ImageBuf::from_rgb(4, 1, vec![i; 12]).expect("sizes agree")).collect();
        let draw = |order: &[usize], split: usize| {
            let mut parts = [Samples::new([1.0, 2.0], 7), Samples::new([1.0, 2.0], 7)];
            for (n, &i) in order.iter().enumerate() {
                let part = &mut parts[usize::from(n >= split)];
                part.offer(pictures[i].as_image(), grid, &[0.5, 1.5, 2.0, 3.0], Seed::root(i as u64));
            }
            let [mut first, second] = parts;
            first.merge(second);
            first.kept().to_vec()
        };
        let forwards: Vec<usize> = (0..50).collect();
        let backwards: Vec<usize> = (0..50).rev().collect();
        let kept = draw(&forwards, 50);
        assert_eq!(kept.len(), 7);
        assert!(kept.iter().all(|s| s.importance == 1.5 || s.importance == 2.0));
        assert_eq!(kept, draw(&backwards, 20));
    }
}

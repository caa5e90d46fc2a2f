//! Encodes pictures, macroblock by macroblock.

use foveate_core::Image;

use super::bits::{BitWriter, nal};
use super::intra;
use super::motion::{self, HalfPixels, Motion};
use super::params::{FRAME_NUMBER_BITS, Format};
use super::picture::Picture;
use super::residue::{Counts, Quantisers, Residue};
use super::tables::Tables;
use super::transform::{Quantiser, chroma_qp};

/// Quantiser parameter of blocks with edges; the step doubles every 6. Slices use it as their initial value.
pub(crate) const QP: i32 = 30;
/// Finer quantisers for blocks with little contrast: largest luma difference in the block, quantiser
/// parameter. Rendered worlds have large areas of one colour, where artefacts are very visible and a finer
/// quantiser costs little.
const CALM: [(u8, i32); 2] = [(3, 13), (24, 21)];

/// Encodes a film; see the [module](super).
pub(crate) struct Encoder {
    format: Format,
    tables: Tables,
    /// The picture to encode, its reconstruction, and the reconstruction of the picture before.
    source: Picture,
    coded: Picture,
    before: Picture,
    counts: Counts,
    /// For each macroblock of the current and of the last picture; `None` for intra.
    motions: Vec<Option<Motion>>,
    last_motions: Vec<Option<Motion>>,
    writer: BitWriter,
    residue: Residue,
    half: HalfPixels,
    /// Quantiser parameter of the last coded macroblock.
    qp: i32,
    /// One entry per grade; see [`grade`].
    inter: [Quantisers; GRADES],
    intra: [Quantisers; GRADES],
    /// Number of coded pictures, and number since the last key picture.
    pictures: u32,
    since_key: u32,
    key_every: u32,
}

/// The macroblock being encoded.
struct Block {
    column: usize,
    row: usize,
    /// Grade of its contrast, which selects the quantiser.
    grade: usize,
    luma: [u8; 256],
    chroma: [[u8; 64]; 2],
}

/// Prediction of a macroblock, to which the residue is then added.
struct Guess {
    luma: [u8; 256],
    chroma: [[u8; 64]; 2],
}

impl Encoder {
    /// An encoder that inserts a key picture every `key_every` pictures, so that players can seek to it.
    pub(crate) fn new(format: Format, key_every: u32) -> Self {
        let (columns, rows) = (format.columns(), format.rows());
        let picture = Picture::new(columns, rows);
        Encoder {
            format,
            tables: Tables::new(),
            source: picture.clone(),
            coded: picture.clone(),
            before: picture,
            counts: Counts::new(columns, rows),
            motions: vec![None; columns * rows],
            last_motions: vec![None; columns * rows],
            writer: BitWriter::default(),
            residue: Residue::new(),
            half: HalfPixels::new(),
            qp: QP,
            inter: quantisers(false),
            intra: quantisers(true),
            pictures: 0,
            since_key: 0,
            key_every: key_every.max(1),
        }
    }

    /// Encodes the next picture, which must have the film's size, and appends it as one NAL unit; returns
    /// whether it is a key picture.
    pub(crate) fn encode(&mut self, image: Image<'_>, out: &mut Vec<u8>) -> bool {
        let key = self.since_key == 0;
        self.source.convert(image);
        self.counts.clear();
        std::mem::swap(&mut self.motions, &mut self.last_motions);
        self.motions.fill(None);
        self.writer.clear();
        self.slice_header(key);
        if key {
            self.intra_picture();
        } else {
            self.inter_picture();
        }
        self.writer.trail();
        nal(if key { 0x65 } else { 0x61 }, self.writer.as_bytes(), out);
        for plane in &mut self.coded.planes {
            plane.extend();
        }
        std::mem::swap(&mut self.coded, &mut self.before);
        self.pictures += 1;
        self.since_key = (self.since_key + 1) % self.key_every;
        key
    }

    /// The last picture as decoded: planes of luma, blue and red difference, without cropping.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> &Picture {
        &self.before
    }

    fn slice_header(&mut self, key: bool) {
        let w = &mut self.writer;
        w.ue(0); // first macroblock
        w.ue(if key { 7 } else { 5 }); // all slices of the picture are I, or P
        w.ue(0); // picture parameter set
        w.bits(self.since_key % (1 << FRAME_NUMBER_BITS), FRAME_NUMBER_BITS);
        if key {
            // This number must differ between two consecutive key pictures.
            w.ue(self.pictures / self.key_every % 2);
            w.flag(false);
            w.flag(false);
        } else {
            w.flag(false); // one reference
            w.flag(false); // default order of references
            w.flag(false); // sliding window of references
        }
        w.se(0); // quantiser of the parameter set, unchanged
        self.qp = QP;
        w.ue(1); // no deblocking
    }

    fn intra_picture(&mut self) {
        for row in 0..self.format.rows() {
            for column in 0..self.format.columns() {
                let block = self.block(column, row);
                let mut luma = [0; 256];
                let (mode, _) =
                    intra::best(&self.coded.planes[0], &block.luma, column * 16, row * 16, &mut luma);
                self.write_intra(&block, mode, luma, 0);
            }
        }
    }

    fn inter_picture(&mut self) {
        let mut skipped = 0;
        for row in 0..self.format.rows() {
            for column in 0..self.format.columns() {
                let block = self.block(column, row);
                let (x, y) = (column * 16, row * 16);
                let inter = self.inter[block.grade];
                let weight = inter.weight;
                let around = Neighbours::of(&self.motions, column, row, self.format.columns());
                let skip = around.skip();
                let mut guess = Guess { luma: [0; 256], chroma: [[0; 64]; 2] };

                // Often the block has moved like its neighbours, and the macroblock can be skipped.
                let luma_plane = &self.before.planes[0];
                let skippable = motion::in_reach(luma_plane, x, y, skip);
                if skippable {
                    motion::luma(luma_plane, x, y, skip, &mut self.half, &mut guess.luma);
                    if difference(&block.luma, &guess.luma) <= SKIP_LIMIT {
                        self.guess_chroma(&block, skip, &mut guess);
                        self.take_inter(&block, &guess, &inter);
                        if self.residue.pattern() == 0 {
                            self.put(&block, &guess);
                            self.motions[row * self.format.columns() + column] = Some(skip);
                            skipped += 1;
                            continue;
                        }
                    }
                }

                let predicted = around.predicted();
                let [left, above, corner] = around.candidates();
                let last = self.last_motions[row * self.format.columns() + column].unwrap_or_default();
                let found = motion::search(
                    &self.before.planes[0],
                    &block.luma,
                    (x, y),
                    predicted,
                    &[predicted, left, above, corner, last],
                    weight,
                    &mut self.half,
                );
                if found.cost > INTRA_LIMIT * weight {
                    let mut luma = [0; 256];
                    let (mode, difference) = intra::best(&self.coded.planes[0], &block.luma, x, y, &mut luma);
                    if difference + INTRA_BITS * weight < found.cost {
                        self.writer.ue(skipped);
                        skipped = 0;
                        self.write_intra(&block, mode, luma, 5);
                        continue;
                    }
                }
                motion::luma(&self.before.planes[0], x, y, found.motion, &mut self.half, &mut guess.luma);
                self.guess_chroma(&block, found.motion, &mut guess);
                self.take_inter(&block, &guess, &inter);
                self.motions[row * self.format.columns() + column] = Some(found.motion);
                if self.residue.pattern() == 0 && found.motion == skip && skippable {
                    self.put(&block, &guess);
                    skipped += 1;
                    continue;
                }
                self.writer.ue(skipped);
                skipped = 0;
                self.writer.ue(0); // one motion vector for all 16 x 16
                self.writer.se(found.motion.x - predicted.x);
                self.writer.se(found.motion.y - predicted.y);
                let pattern = self.residue.pattern();
                self.writer.ue(u32::from(self.tables.inter_pattern[usize::from(pattern)]));
                if pattern != 0 {
                    self.writer.se(inter.qp - self.qp);
                    self.qp = inter.qp;
                    self.residue.write(&mut self.writer, &self.tables, &mut self.counts, column, row);
                }
                self.residue.add_luma(&mut guess.luma, &inter.luma);
                for plane in 0..2 {
                    self.residue.add_chroma(plane, &mut guess.chroma[plane], &inter.chroma);
                }
                self.put(&block, &guess);
            }
        }
        if skipped > 0 {
            self.writer.ue(skipped);
        }
    }

    /// Encodes a macroblock predicted from its neighbours; `base` is the first code of the intra types in
    /// this kind of slice.
    fn write_intra(&mut self, block: &Block, mode: intra::Mode, luma: [u8; 256], base: u32) {
        let (column, row) = (block.column, block.row);
        let q = self.intra[block.grade];
        let mut guess = Guess { luma, chroma: [[0; 64]; 2] };
        for (plane, out) in guess.chroma.iter_mut().enumerate() {
            intra::chroma_means(&self.coded, plane + 1, column * 8, row * 8, out);
        }
        self.residue.take_intra(&block.luma, &guess.luma, &q.luma);
        self.take_chroma(block, &guess, &q);
        let kind = u32::from(self.residue.chroma_kind);
        let all = u32::from(self.residue.quadrants != 0);
        self.writer.ue(base + 1 + mode as u32 + 4 * kind + 12 * all);
        self.writer.ue(0); // chroma predicted by means
        self.writer.se(q.qp - self.qp);
        self.qp = q.qp;
        self.residue.write(&mut self.writer, &self.tables, &mut self.counts, column, row);
        self.residue.add_luma(&mut guess.luma, &q.luma);
        for plane in 0..2 {
            self.residue.add_chroma(plane, &mut guess.chroma[plane], &q.chroma);
        }
        self.put(block, &guess);
    }

    fn block(&self, column: usize, row: usize) -> Block {
        let [luma, blue, red] = &self.source.planes;
        let chroma = [blue, red].map(|plane| plane.block::<8, 64>(column * 8, row * 8));
        let luma = luma.block::<16, 256>(column * 16, row * 16);
        Block { column, row, grade: grade(&luma), luma, chroma }
    }

    fn guess_chroma(&self, block: &Block, motion: Motion, guess: &mut Guess) {
        for (plane, out) in guess.chroma.iter_mut().enumerate() {
            motion::chroma(&self.before.planes[plane + 1], block.column * 8, block.row * 8, motion, out);
        }
    }

    fn take_inter(&mut self, block: &Block, guess: &Guess, q: &Quantisers) {
        self.residue.take_inter(&block.luma, &guess.luma, q);
        self.take_chroma(block, guess, q);
    }

    fn take_chroma(&mut self, block: &Block, guess: &Guess, q: &Quantisers) {
        let ([a, b], [c, d]) = (&block.chroma, &guess.chroma);
        self.residue.take_chroma([a, b], [c, d], q);
    }

    /// Writes the reconstructed macroblock into the coded picture.
    fn put(&mut self, block: &Block, guess: &Guess) {
        let [luma, blue, red] = &mut self.coded.planes;
        luma.set::<16>(block.column * 16, block.row * 16, &guess.luma);
        for (plane, bytes) in [blue, red].into_iter().zip(&guess.chroma) {
            plane.set::<8>(block.column * 8, block.row * 8, bytes);
        }
    }
}

/// A macroblock with a larger difference is not skipped; for a smaller one the quantiser decides.
const SKIP_LIMIT: u32 = 1200;
/// Matches that cost less than this many bits are used without trying intra prediction.
const INTRA_LIMIT: u32 = 300;
/// Approximate additional cost of an intra macroblock, in bits.
const INTRA_BITS: u32 = 24;

const GRADES: usize = CALM.len() + 1;

/// The quantisers of all grades.
fn quantisers(intra: bool) -> [Quantisers; GRADES] {
    std::array::from_fn(|grade| {
        let qp = CALM.get(grade).map_or(QP, |(_, qp)| *qp);
        Quantisers {
            qp,
            luma: Quantiser::new(qp, intra),
            chroma: Quantiser::new(chroma_qp(qp), intra),
            // The usual formula: 2^((qp - 12) / 6).
            weight: 2_f64.powf(f64::from(qp - 12) / 6.0).round() as u32,
            frugal: qp == QP,
        }
    })
}

/// Contrast grade of a block: the index of the first entry of [`CALM`] that it satisfies, or the number of
/// entries.
fn grade(luma: &[u8; 256]) -> usize {
    let (low, high) = luma.iter().fold((u8::MAX, u8::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    CALM.iter().position(|(range, _)| high - low <= *range).unwrap_or(CALM.len())
}

fn difference(a: &[u8; 256], b: &[u8; 256]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(*b))).sum()
}

/// A macroblock next to the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Neighbour {
    /// Outside the picture.
    Missing,
    Intra,
    Moved(Motion),
}

impl Neighbour {
    fn motion(self) -> Motion {
        if let Neighbour::Moved(motion) = self { motion } else { Motion::ZERO }
    }
}

/// The macroblocks to the left, above, and above to the right (or above to the left if there is none).
struct Neighbours([Neighbour; 3]);

impl Neighbours {
    fn of(motions: &[Option<Motion>], column: usize, row: usize, columns: usize) -> Self {
        let at = |there: bool, left: usize, up: usize| {
            if there {
                motions[(row - up) * columns + column + 1 - left].map_or(Neighbour::Intra, Neighbour::Moved)
            } else {
                Neighbour::Missing
            }
        };
        let corner = if column + 1 < columns { at(row > 0, 0, 1) } else { at(row > 0 && column > 0, 2, 1) };
        Neighbours([at(column > 0, 2, 0), at(row > 0, 1, 1), corner])
    }

    /// The motion of all three, zero if there is none.
    fn candidates(&self) -> [Motion; 3] {
        self.0.map(Neighbour::motion)
    }

    /// The motion predicted by the standard (8.4.1.3).
    fn predicted(&self) -> Motion {
        let [left, above, corner] = self.0;
        let none = Neighbour::Missing;
        if above == none && corner == none && left != none {
            return left.motion();
        }
        let mut moved = self.0.into_iter().filter(|n| matches!(n, Neighbour::Moved(_)));
        if let (Some(only), None) = (moved.next(), moved.next()) {
            return only.motion();
        }
        let [a, b, c] = self.candidates();
        let median = |a: i32, b: i32, c: i32| a.max(b).min(a.min(b).max(c));
        Motion { x: median(a.x, b.x, c.x), y: median(a.y, b.y, c.y) }
    }

    /// The motion of a skipped macroblock (8.4.1.1).
    fn skip(&self) -> Motion {
        let [left, above, _] = self.0;
        let stands = |n| n == Neighbour::Missing || n == Neighbour::Moved(Motion::ZERO);
        if stands(left) || stands(above) { Motion::ZERO } else { self.predicted() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motion_is_predicted_as_the_standard_says() {
        use Neighbour::{Intra, Missing};
        let at = |x, y| Motion { x, y };
        let m = |x, y| Neighbour::Moved(at(x, y));
        let zero = Motion::ZERO;
        for (around, predicted, skip) in [
            ([Missing, Missing, Missing], zero, zero),
            ([m(3, 4), Missing, Missing], at(3, 4), zero),
            ([Intra, Missing, Missing], zero, zero),
            ([Missing, m(5, 5), Intra], at(5, 5), zero),
            ([m(1, 9), m(2, 8), m(3, 1)], at(2, 8), at(2, 8)),
            ([m(0, 0), m(2, 8), m(3, 9)], at(2, 8), zero),
            ([Intra, m(2, 8), Intra], at(2, 8), at(2, 8)),
            ([Intra, m(2, 8), m(4, -8)], at(2, 0), at(2, 0)),
        ] {
            let around = Neighbours(around);
            assert_eq!((around.predicted(), around.skip()), (predicted, skip), "{:?}", around.0);
        }
    }
}

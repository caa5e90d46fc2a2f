//! Matrix products in single precision, for layers and their gradients.
//!
//! An element of the product is a chain of fused multiply-adds over `k` in ascending order, which starts at zero,
//! at a bias or at the element's old value. Blocking for caches and registers changes only where the chain is stored in
//! between, so the bits are the same on every instruction set, for every size of a cache and wherever a matrix
//! lies in memory.
//!
//! ```
//! use foveate_kernels::Level;
//! use foveate_kernels::gemm::{Gemm, View};
//!
//! let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 0.0, 1.0]);
//! let mut c = [0.0; 2];
//! let (a, b) = (View::new(&a, 2, 3), View::new(&b, 3, 1));
//! Gemm::default().product(Level::best(), a, b, &mut c);
//! assert_eq!(c, [4.0, 10.0]);
//! ```

use crate::Level;
use crate::lanes::{Block, Isa, Lanes, Task};

/// Where the rows, or the columns, of a matrix lie, in up to three nested levels: number `i` is `j` of `inner` places in `m` of
/// `middle` groups in block `o`, and lies at `o * across + m * down + j * along`.
///
/// Two levels describe the windows of a picture, which overlap, without copying them; the third, those of several pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    len: usize,
    inner: usize,
    along: usize,
    middle: usize,
    down: usize,
    across: usize,
}

impl Axis {
    /// `len` places, one every `along` numbers.
    pub const fn every(len: usize, along: usize) -> Self {
        Axis { len, inner: len, along, middle: 1, down: 0, across: 0 }
    }

    /// `outer` groups, one every `down` numbers, of `inner` places each, one every `along` numbers.
    ///
    /// # Panics
    /// When their product overflows.
    pub fn nested([outer, down]: [usize; 2], [inner, along]: [usize; 2]) -> Self {
        let len = outer.checked_mul(inner).expect("rows or columns of a matrix");
        Axis { len, inner, along, middle: outer, down, across: 0 }
    }

    /// `count` copies of these places, one every `across` numbers.
    ///
    /// # Panics
    /// When these are copies already, or the product overflows.
    #[must_use]
    pub fn repeated(self, [count, across]: [usize; 2]) -> Self {
        assert_eq!(self.len, self.inner * self.middle, "an axis of at most two levels");
        let len = self.len.checked_mul(count).expect("rows or columns of a matrix");
        Axis { len, across, ..self }
    }

    /// Number of places.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no place.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where number `i` lies.
    #[inline]
    pub const fn place(&self, i: usize) -> usize {
        let [o, m, j] = self.split(i);
        o * self.across + m * self.down + j * self.along
    }

    /// Block, group and place in it of number `i`.
    #[inline(always)]
    const fn split(&self, i: usize) -> [usize; 3] {
        if i < self.inner {
            return [0, 0, i];
        }
        let (group, j) = (i / self.inner, i % self.inner);
        if group < self.middle { [0, group, j] } else { [group / self.middle, group % self.middle, j] }
    }

    /// The largest place, which saturates; 0 without places.
    fn last(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let across = (self.len / self.inner / self.middle - 1).saturating_mul(self.across);
        let down = (self.middle - 1).saturating_mul(self.down);
        across.saturating_add(down).saturating_add((self.inner - 1).saturating_mul(self.along))
    }

    /// The first place of the next group.
    #[inline(always)]
    const fn next_group(&self, [o, m, _]: [usize; 3]) -> [usize; 3] {
        if m + 1 == self.middle { [o + 1, 0, 0] } else { [o, m + 1, 0] }
    }

    /// Runs of equally distant places: the first one's number, its place, and how many they are.
    #[inline(always)]
    fn runs(&self, from: usize, count: usize) -> Runs {
        Runs { axis: *self, at: self.split(from), from, end: from + count }
    }
}

/// See [`Axis::runs`]. No method with a closure: vector operations in it would be compiled without the instruction set.
struct Runs {
    axis: Axis,
    at: [usize; 3],
    from: usize,
    end: usize,
}

impl Iterator for Runs {
    type Item = (usize, usize, usize);

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let Runs { axis, at: [o, m, j], from, end } = *self;
        if from >= end {
            return None;
        }
        let run = (axis.inner - j).min(end - from);
        self.from += run;
        self.at = axis.next_group([o, m, j]);
        Some((from, o * axis.across + m * axis.down + j * axis.along, run))
    }
}

/// Walks along an axis without divisions.
struct Walk {
    axis: Axis,
    /// Number, block, group and place in it, and where that lies; after the last one it is repeated.
    number: usize,
    at: [usize; 3],
    place: usize,
}

impl Walk {
    #[inline(always)]
    const fn new(axis: Axis) -> Self {
        Walk { axis, number: 0, at: [0; 3], place: 0 }
    }

    /// Returns whether the next `count` places are neighbours.
    #[inline(always)]
    const fn neighbours(&self, count: usize) -> bool {
        self.axis.along == 1 && self.at[2] + count <= self.axis.inner
    }

    /// The next `R` places.
    #[inline(always)]
    fn take<const R: usize>(&mut self) -> [usize; R] {
        let mut places = [self.place; R];
        if self.at[2] + R < self.axis.inner {
            // All in one group, and not the last ones.
            for (r, place) in places.iter_mut().enumerate() {
                *place += r * self.axis.along;
            }
            self.number += R;
            self.at[2] += R;
            self.place += R * self.axis.along;
            return places;
        }
        for place in &mut places {
            *place = self.place;
            if self.number + 1 < self.axis.len {
                self.number += 1;
                self.at[2] += 1;
                self.place += self.axis.along;
                if self.at[2] == self.axis.inner {
                    self.at = self.axis.next_group(self.at);
                    self.place = self.at[0] * self.axis.across + self.at[1] * self.axis.down;
                }
            }
        }
        places
    }
}

/// A matrix for reading.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Element `(i, j)` is at `rows.place(i) + cols.place(j)`, which is below `data.len()` for all elements.
    data: &'a [f32],
    rows: Axis,
    cols: Axis,
}

impl<'a> View<'a> {
    /// The row-major matrix `[rows, cols]` in `data`.
    ///
    /// # Panics
    /// When `data` has another length.
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert_eq!(Some(data.len()), rows.checked_mul(cols), "numbers of a matrix [{rows}, {cols}]");
        View::with_axes(data, Axis::every(rows, cols), Axis::every(cols, 1))
    }

    /// The matrix `[rows, cols]` whose row `i` begins at `data[i * stride]`.
    ///
    /// # Panics
    /// When `stride` is below `cols`, or `data` is too short.
    pub fn with_stride(data: &'a [f32], rows: usize, cols: usize, stride: usize) -> Self {
        assert!(stride >= cols, "rows of {cols} numbers begin every {stride}");
        View::with_axes(data, Axis::every(rows, stride), Axis::every(cols, 1))
    }

    /// The matrix whose element `(i, j)` is at the sum of the places of row `i` and of column `j`.
    ///
    /// # Panics
    /// When `data` is too short.
    pub fn with_axes(data: &'a [f32], rows: Axis, cols: Axis) -> Self {
        assert!(
            rows.is_empty() || cols.is_empty() || data.len() > rows.last().saturating_add(cols.last()),
            "{} numbers for a matrix of {rows:?} and {cols:?}",
            data.len()
        );
        View { data, rows, cols }
    }

    /// Its transpose.
    #[must_use]
    pub const fn transposed(self) -> Self {
        let View { data, rows, cols } = self;
        View { data, rows: cols, cols: rows }
    }

    /// Number of rows.
    pub const fn rows(&self) -> usize {
        self.rows.len
    }

    /// Number of columns.
    pub const fn cols(&self) -> usize {
        self.cols.len
    }
}

/// Terms of a chain that are added before the chain is stored.
const DEPTH: usize = 256;

/// Scratch space for products: a packed copy of some columns of the right matrix. It grows to the largest product.
#[derive(Debug, Clone, Default)]
pub struct Gemm {
    /// `[depth, width of a tile]`
    right: Vec<f32>,
    /// `[depth, height of a tile]`, for a left matrix whose numbers are not neighbours.
    left: Vec<f32>,
}

impl Gemm {
    /// `c = a b`, with `c` row-major, `[a.rows(), b.cols()]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn product(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32]) {
        let rows = Axis::every(a.rows(), b.cols());
        self.run(level, a, b, c, rows, Start::Zero);
    }

    /// `c = a b`, where every row of `c` begins its sums at `bias`, `[b.cols()]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn product_plus(&mut self, level: Level, a: View<'_>, b: View<'_>, bias: &[f32], c: &mut [f32]) {
        assert_eq!(bias.len(), b.cols(), "numbers of the bias and columns of the product");
        let rows = Axis::every(a.rows(), b.cols());
        self.run(level, a, b, c, rows, Start::Row(bias));
    }

    /// `c += a b`, with `c` row-major, `[a.rows(), b.cols()]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn add_product(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32]) {
        let rows = Axis::every(a.rows(), b.cols());
        self.run(level, a, b, c, rows, Start::Old);
    }

    /// `c += a b`, where row `i` of `c` begins at `c[i * stride]`.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn add_product_strided(
        &mut self,
        level: Level,
        a: View<'_>,
        b: View<'_>,
        c: &mut [f32],
        stride: usize,
    ) {
        assert!(stride >= b.cols(), "rows of {} numbers begin every {stride}", b.cols());
        self.run(level, a, b, c, Axis::every(a.rows(), stride), Start::Old);
    }

    /// `c += a b`, where the rows of `c` begin at the places of `rows` and do not overlap.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn add_product_at(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32], rows: Axis) {
        self.run(level, a, b, c, rows, Start::Old);
    }

    /// [`Gemm::product_plus`] where the rows of `c` begin at the places of `rows` and do not overlap; without a bias, the sums
    /// begin at zero.
    ///
    /// # Panics
    /// When the sizes do not fit together.
    pub fn product_at(
        &mut self,
        level: Level,
        a: View<'_>,
        b: View<'_>,
        bias: Option<&[f32]>,
        c: &mut [f32],
        rows: Axis,
    ) {
        if let Some(bias) = bias {
            assert_eq!(bias.len(), b.cols(), "numbers of the bias and columns of the product");
        }
        self.run(level, a, b, c, rows, bias.map_or(Start::Zero, Start::Row));
    }

    fn run(&mut self, level: Level, a: View<'_>, b: View<'_>, c: &mut [f32], rows: Axis, start: Start<'_>) {
        assert_eq!(a.cols(), b.rows(), "columns of the left matrix and rows of the right one");
        assert_eq!(a.rows(), rows.len, "rows of the left matrix and of the product");
        if a.rows() == 0 || b.cols() == 0 {
            return;
        }
        let extent = rows.last().saturating_add(b.cols());
        assert!(c.len() >= extent, "{} numbers for a product that takes {extent}", c.len());
        if a.cols() == 0 {
            for i in 0..rows.len {
                let row = &mut c[rows.place(i)..][..b.cols()];
                match start {
                    Start::Zero => row.fill(0.0),
                    Start::Row(bias) => row.copy_from_slice(bias),
                    Start::Old => {}
                }
            }
            return;
        }
        let depth = a.cols().min(DEPTH);
        for (room, len) in [(&mut self.right, depth * MOST_COLUMNS), (&mut self.left, depth * MOST_ROWS)] {
            if room.len() < len {
                room.resize(len, 0.0);
            }
        }
        level.run(Product { gemm: self, a, b, c, rows, start });
    }
}

/// The tile with the most rows.
const MOST_ROWS: usize = 16;
/// The tile with the most columns.
const MOST_COLUMNS: usize = 48;

struct Product<'a> {
    gemm: &'a mut Gemm,
    a: View<'a>,
    b: View<'a>,
    c: &'a mut [f32],
    /// Where the rows of `c` begin.
    rows: Axis,
    start: Start<'a>,
}

/// Where the sums of a product begin.
#[derive(Debug, Clone, Copy)]
enum Start<'a> {
    Zero,
    /// At a number for each column.
    Row(&'a [f32]),
    /// At the old numbers of the product.
    Old,
}

impl Task for Product<'_> {
    type Out = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        // As many sums as the registers hold, of 32 or of 16: with four rows of three, of 16, one is spilled.
        if I::ROWS == 4 {
            self.in_tiles::<I, Sixteen, 16, 8, 8>(isa);
        } else {
            self.in_tiles::<I, Eight, 12, 6, 3>(isa);
        }
    }
}

/// A register of `N` lanes.
pub(crate) trait Register {
    /// Number of lanes.
    const N: usize;
    type V<I: Isa>: Copy;
    fn splat<I: Isa>(isa: I, x: f32) -> Self::V<I>;
    /// Loads the first `N` numbers.
    fn load<I: Isa>(isa: I, from: &[f32]) -> Self::V<I>;
    fn store<I: Isa>(v: Self::V<I>, to: &mut [f32]);
    fn mul_add<I: Isa>(a: Self::V<I>, b: Self::V<I>, c: Self::V<I>) -> Self::V<I>;
    fn add<I: Isa>(a: Self::V<I>, b: Self::V<I>) -> Self::V<I>;
    fn sub<I: Isa>(a: Self::V<I>, b: Self::V<I>) -> Self::V<I>;
}

macro_rules! register {
    ($name:ident, $n:literal, $v:ident, $splat:ident, $load:ident) => {
        pub(crate) struct $name;

        impl Register for $name {
            const N: usize = $n;
            type V<I: Isa> = I::$v;
            #[inline(always)]
            fn splat<I: Isa>(isa: I, x: f32) -> I::$v {
                isa.$splat(x)
            }
            #[inline(always)]
            fn load<I: Isa>(isa: I, from: &[f32]) -> I::$v {
                isa.$load(from.first_chunk().expect("a register of numbers"))
            }
            #[inline(always)]
            fn store<I: Isa>(v: I::$v, to: &mut [f32]) {
                v.store(to.first_chunk_mut().expect("a register of numbers"));
            }
            #[inline(always)]
            fn mul_add<I: Isa>(a: I::$v, b: I::$v, c: I::$v) -> I::$v {
                a.mul_add(b, c)
            }
            #[inline(always)]
            fn add<I: Isa>(a: I::$v, b: I::$v) -> I::$v {
                a.add(b)
            }
            #[inline(always)]
            fn sub<I: Isa>(a: I::$v, b: I::$v) -> I::$v {
                a.sub(b)
            }
        }
    };
}
register!(Eight, 8, V8, splat8, load8);
register!(Sixteen, 16, V16, splat16, load16);

/// The sums of a tile: `R` rows of `W` registers.
type Sums<I, L, const R: usize, const W: usize> = [[<L as Register>::V<I>; W]; R];

impl Product<'_> {
    /// Tiles of one register have `R1` rows, tiles of two have `R2`, tiles of three have `R3`.
    #[inline(always)]
    fn in_tiles<I: Isa, L: Register, const R1: usize, const R2: usize, const R3: usize>(mut self, isa: I) {
        let (columns, terms) = (self.b.cols(), self.a.cols());
        for at in (0..terms).step_by(DEPTH) {
            let terms = (at, DEPTH.min(terms - at));
            let mut first = 0;
            while first < columns {
                // As few registers as hold the columns, in tiles of two, and one of three if they are odd.
                let left = columns - first;
                match left.div_ceil(L::N) {
                    1 => self.columns::<I, L, R1, 1>(isa, terms, first),
                    registers if registers % 2 == 1 => {
                        self.columns::<I, L, R3, 3>(isa, terms, first);
                        first += L::N;
                    }
                    _ => self.columns::<I, L, R2, 2>(isa, terms, first),
                }
                first += 2 * L::N;
            }
        }
    }

    /// Adds the products of all rows with `wide` columns in `W` registers, for `depth` terms from `at` on.
    #[inline(always)]
    fn columns<I: Isa, L: Register, const R: usize, const W: usize>(
        &mut self,
        isa: I,
        (at, depth): (usize, usize),
        first: usize,
    ) {
        let Product { gemm: Gemm { left: packed, right }, a, b, c, rows, start } = self;
        let wide = (b.cols() - first).min(W * L::N);
        // The last register holds the last columns, which may be in the one before, too, with the same sums.
        let mut begins = [0; W];
        for (w, begin) in begins.iter_mut().enumerate() {
            *begin = (w * L::N).min(wide.saturating_sub(L::N));
        }
        let right = &mut right[..depth * W * L::N];
        for (w, begin) in begins.into_iter().enumerate() {
            let columns = (first + begin, wide.min(L::N));
            pack_right::<I, L>(isa, *b, (at, depth), columns, &mut right[w * L::N..], W * L::N);
        }
        let start = if at == 0 { *start } else { Start::Old };
        let mut first_sums = [L::splat(isa, 0.0); W];
        if let Start::Row(bias) = start {
            for w in 0..W {
                let from = &bias[first..][..wide][begins[w]..];
                first_sums[w] = if W == 1 { load_some::<I, L>(isa, from) } else { L::load(isa, from) };
            }
        }
        let (mut lefts, mut tops) = (Walk::new(a.rows), Walk::new(*rows));
        for _ in 0..a.rows().div_ceil(R) {
            let neighbours = lefts.neighbours(R);
            // After the last row it is repeated, with the same sums.
            let (left, places) = (lefts.take::<R>(), tops.take::<R>());
            let mut sums: Sums<I, L, R, W> = [first_sums; R];
            if let Start::Old = start {
                for r in 0..R {
                    let row = &c[places[r] + first..][..wide];
                    if wide == W * L::N {
                        for w in 0..W {
                            sums[r][w] = L::load(isa, &row[w * L::N..]);
                        }
                        continue;
                    }
                    for w in 0..W {
                        let from = &row[begins[w]..];
                        // Two or more registers are full.
                        sums[r][w] = if W == 1 { load_some::<I, L>(isa, from) } else { L::load(isa, from) };
                    }
                }
            }
            if a.cols.along == 1 {
                along_rows::<I, L, R, W>(isa, *a, left, (at, depth), right, &mut sums);
            } else if neighbours {
                let rows = &a.data[left[0]..];
                across_rows::<I, L, R, W>(isa, (rows, a.cols), (at, depth), right, &mut sums);
            } else {
                let packed = &mut packed[..depth * R];
                pack_left::<R>(*a, left, (at, depth), packed);
                let left = (&*packed, Axis::every(depth, R));
                across_rows::<I, L, R, W>(isa, left, (0, depth), right, &mut sums);
            }
            for r in 0..R {
                let row = &mut c[places[r] + first..][..wide];
                if wide == W * L::N {
                    for w in 0..W {
                        L::store::<I>(sums[r][w], &mut row[w * L::N..]);
                    }
                    continue;
                }
                for w in 0..W {
                    let to = &mut row[begins[w]..];
                    if W == 1 {
                        store_some::<I, L>(sums[r][w], to);
                    } else {
                        L::store::<I>(sums[r][w], to);
                    }
                }
            }
        }
    }
}

/// Loads a register; lanes beyond the numbers are zero.
#[inline(always)]
fn load_some<I: Isa, L: Register>(isa: I, from: &[f32]) -> L::V<I> {
    if from.len() >= L::N {
        return L::load(isa, from);
    }
    let mut all = [0.0; 16];
    all[..from.len()].copy_from_slice(from);
    L::load(isa, &all)
}

/// Stores a register, as far as there is room.
#[inline(always)]
fn store_some<I: Isa, L: Register>(v: L::V<I>, to: &mut [f32]) {
    if to.len() >= L::N {
        L::store::<I>(v, to);
    } else {
        let mut all = [0.0; 16];
        L::store::<I>(v, &mut all);
        to.copy_from_slice(&all[..to.len()]);
    }
}

/// Adds the terms of `R` rows whose numbers are neighbours.
#[inline(always)]
fn along_rows<I: Isa, L: Register, const R: usize, const W: usize>(
    isa: I,
    a: View<'_>,
    places: [usize; R],
    (at, depth): (usize, usize),
    right: &[f32],
    sums: &mut Sums<I, L, R, W>,
) {
    let mut own = *sums;
    for (term, place, count) in a.cols.runs(at, depth) {
        let mut rows = [&[] as &[f32]; R];
        for r in 0..R {
            rows[r] = &a.data[places[r] + place..][..count];
        }
        let right = right[(term - at) * W * L::N..].chunks_exact(W * L::N).take(count);
        for (k, right) in right.enumerate() {
            let mut columns = [L::splat(isa, 0.0); W];
            for w in 0..W {
                columns[w] = L::load(isa, &right[w * L::N..]);
            }
            for r in 0..R {
                let x = L::splat(isa, rows[r][k]);
                for w in 0..W {
                    own[r][w] = L::mul_add::<I>(x, columns[w], own[r][w]);
                }
            }
        }
    }
    *sums = own;
}

/// Adds the terms of `R` rows that are neighbours: the terms are at the places of `cols` in `rows`.
#[inline(always)]
fn across_rows<I: Isa, L: Register, const R: usize, const W: usize>(
    isa: I,
    (rows, cols): (&[f32], Axis),
    (at, depth): (usize, usize),
    right: &[f32],
    sums: &mut Sums<I, L, R, W>,
) {
    let mut own = *sums;
    for (term, place, count) in cols.runs(at, depth) {
        let right = right[(term - at) * W * L::N..].chunks_exact(W * L::N).take(count);
        for (k, right) in right.enumerate() {
            let rows: &[f32; R] = rows[place + k * cols.along..].first_chunk().expect("rows of a tile");
            let mut columns = [L::splat(isa, 0.0); W];
            for w in 0..W {
                columns[w] = L::load(isa, &right[w * L::N..]);
            }
            for r in 0..R {
                let x = L::splat(isa, rows[r]);
                for w in 0..W {
                    own[r][w] = L::mul_add::<I>(x, columns[w], own[r][w]);
                }
            }
        }
    }
    *sums = own;
}

/// Copies the `R` rows that begin at `places` to `[depth, R]`.
#[inline(always)]
fn pack_left<const R: usize>(a: View<'_>, places: [usize; R], (at, depth): (usize, usize), to: &mut [f32]) {
    for (term, place, count) in a.cols.runs(at, depth) {
        for (k, to) in to[(term - at) * R..].chunks_exact_mut(R).take(count).enumerate() {
            for (to, row) in to.iter_mut().zip(places) {
                *to = a.data[row + place + k * a.cols.along];
            }
        }
    }
}

/// Copies `wide` columns from `first` on to the first numbers of every `width`; if they are fewer than a register has,
/// zeros follow.
#[inline(always)]
pub(crate) fn pack_right<I: Isa, L: Register>(
    isa: I,
    b: View<'_>,
    (at, depth): (usize, usize),
    (first, wide): (usize, usize),
    to: &mut [f32],
    width: usize,
) {
    for (column, of_columns, columns) in b.cols.runs(first, wide) {
        let to = &mut to[column - first..];
        for (term, of_terms, terms) in b.rows.runs(at, depth) {
            let (to, from) = (&mut to[(term - at) * width..], &b.data[of_columns + of_terms..]);
            if b.cols.along == 1 && columns == L::N {
                for k in 0..terms {
                    to[k * width..][..L::N].copy_from_slice(&from[k * b.rows.along..][..L::N]);
                }
            } else if b.rows.along == 1 && columns == L::N && terms >= 128 / L::N {
                pack_turned::<I, L>(isa, from, b.cols.along, terms, to, width);
            } else {
                for j in 0..columns {
                    let from = from[j * b.cols.along..].iter().step_by(b.rows.along.max(1));
                    for (to, &x) in to[j..].iter_mut().step_by(width).zip(from).take(terms) {
                        *to = x;
                    }
                }
            }
        }
    }
    if wide < L::N {
        for to in to.chunks_mut(width).take(depth) {
            to[wide..L::N].fill(0.0);
        }
    }
}

/// Copies a register of columns, one every `along` numbers, of `terms` neighbours each, to the first numbers of every `width`.
/// There are at least 128 numbers.
#[inline(always)]
fn pack_turned<I: Isa, L: Register>(
    isa: I,
    from: &[f32],
    along: usize,
    terms: usize,
    to: &mut [f32],
    width: usize,
) {
    // Sixteen pieces of eight terms: of as many columns, or of half as many and twice as many terms.
    let step = 128 / L::N;
    let mut begin = 0;
    while begin < terms {
        // The last piece overlaps the one before.
        begin = begin.min(terms - step);
        let mut pieces = [isa.load8(&[0.0; 8]); 16];
        for (i, piece) in pieces.iter_mut().enumerate() {
            let at = i % L::N * along + begin + i / L::N * 8;
            *piece = isa.load8(from[at..].first_chunk().expect("eight terms"));
        }
        let turned = isa.transpose(pieces);
        for t in 0..8 {
            let mut block = Block::default();
            turned[t].store(&mut block.0);
            for (half, numbers) in block.0.chunks_exact(L::N).enumerate() {
                to[(begin + half * 8 + t) * width..][..L::N].copy_from_slice(numbers);
            }
        }
        begin += step;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = foveate_core::Seed::root(seed).rng();
        (0..n).map(|_| rng.uniform(-1.0, 1.0) as f32).collect()
    }

    /// The chain of fused multiply-adds, written out.
    fn plain(a: View<'_>, b: View<'_>, c: &mut [f32], stride: usize) {
        for i in 0..a.rows() {
            for j in 0..b.cols() {
                let c = &mut c[i * stride + j];
                for k in 0..a.cols() {
                    let x = a.data[a.rows.place(i) + a.cols.place(k)];
                    *c = x.mul_add(b.data[b.rows.place(k) + b.cols.place(j)], *c);
                }
            }
        }
    }

    #[track_caller]
    fn check([m, k, n]: [usize; 3], turned: [bool; 2], gap: usize) {
        let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
        let a = if turned[0] { View::new(&a, k, m).transposed() } else { View::new(&a, m, k) };
        let b = if turned[1] { View::new(&b, n, k).transposed() } else { View::new(&b, k, n) };
        let stride = n + gap;
        let mut expect = numbers(m * stride, 3);
        let given = expect.clone();
        plain(a, b, &mut expect, stride);
        for level in Level::available() {
            let mut c = given.clone();
            Gemm::default().add_product_strided(level, a, b, &mut c, stride);
            assert!(
                c.iter().zip(&expect).all(|(c, e)| c.to_bits() == e.to_bits()),
                "{level}: [{m}, {k}] [{k}, {n}], transposed {turned:?}"
            );
        }
        // Rows that begin at a bias, and at zero.
        let bias = numbers(n, 4);
        let (mut with_bias, mut without) = (bias.repeat(m), vec![0.0; m * n]);
        plain(a, b, &mut with_bias, n);
        plain(a, b, &mut without, n);
        for level in Level::available() {
            let (mut got, mut other) = (vec![9.0; m * n], vec![9.0; m * n]);
            Gemm::default().product_plus(level, a, b, &bias, &mut got);
            Gemm::default().product(level, a, b, &mut other);
            assert_eq!((got, other), (with_bias.clone(), without.clone()), "{level}: [{m}, {k}] [{k}, {n}]");
        }
    }

    #[test]
    fn sizes_around_the_blocks() {
        for m in [1, 5, 6, 12, 13, 193] {
            for n in [1, 15, 16, 32, 33, 50] {
                check([m, 7, n], [false, false], 0);
            }
        }
        check([13, 2 * DEPTH + 1, 33], [false, true], 3);
        check([3, 2, 117], [true, false], 0);
        for k in [15, 16, 17, 31, 40] {
            check([7, k, 20], [false, true], 0);
            check([2, k, 7], [false, true], 0);
        }
        check([49, DEPTH, 1], [true, true], 1);
        for empty in [[0, 3, 3], [3, 0, 3], [3, 3, 0]] {
            check(empty, [false, false], 0);
        }
    }

    /// Runs a product in the tiles of processors with 32 registers.
    struct Wide<'a>(Product<'a>);

    impl Task for Wide<'_> {
        type Out = ();
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) {
            self.0.in_tiles::<I, Sixteen, 16, 8, 8>(isa);
        }
    }

    #[test]
    fn wide_tiles_add_the_same_chain() {
        for [m, k, n] in
            [[1, 3, 1], [7, 5, 15], [9, 300, 16], [8, 2, 17], [17, 9, 33], [16, 4, 48], [3, 6, 81]]
        {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let lefts = [View::new(&a, m, k), View::new(&a, k, m).transposed()];
            for (a, b) in lefts.into_iter().zip([View::new(&b, n, k).transposed(), View::new(&b, k, n)]) {
                let (mut expect, mut c) = (numbers(m * n, 3), numbers(m * n, 3));
                plain(a, b, &mut expect, n);
                let rows = Axis::every(m, n);
                let mut gemm =
                    Gemm { right: vec![0.0; DEPTH * MOST_COLUMNS], left: vec![0.0; DEPTH * MOST_ROWS] };
                Level::best().run(Wide(Product {
                    gemm: &mut gemm,
                    a,
                    b,
                    c: &mut c,
                    rows,
                    start: Start::Old,
                }));
                assert_eq!(c, expect, "[{m}, {k}] [{k}, {n}]");
            }
        }
    }

    /// The windows of two pictures as a matrix, and a product to places of which some lie in others' gaps.
    #[test]
    fn axes_with_several_strides() {
        let ([height, width, c], kernel, filters) = ([7, 9, 3], [3, 2], 10);
        let len = height * width * c;
        let pictures = numbers(2 * len, 4);
        let rows = Axis::nested([5, width * c], [8, c]).repeated([2, len]);
        let cols = Axis::nested([kernel[0], width * c], [kernel[1] * c, 1]);
        let windows = View::with_axes(&pictures, rows, cols);
        let copy: Vec<f32> = (0..rows.len())
            .flat_map(|i| (0..cols.len()).map(move |j| (i, j)))
            .map(|(i, j)| {
                let (picture, y, x) = (i / 40, i / 8 % 5, i % 8);
                let (row, column) = (j / (2 * c), j % (2 * c));
                pictures[picture * len + ((y + row) * width + x) * c + column]
            })
            .collect();
        let (m, k) = (rows.len(), cols.len());
        let copy = View::new(&copy, m, k);
        let weight = numbers(k * filters, 5);
        let weight = View::new(&weight, k, filters);
        let outer = numbers(m * filters, 6);
        let outer = View::new(&outer, m, filters).transposed();
        for level in Level::available() {
            let mut gemm = Gemm::default();
            let (mut got, mut want) = (vec![1.0; m * filters], vec![1.0; m * filters]);
            gemm.add_product(level, windows, weight, &mut got);
            gemm.add_product(level, copy, weight, &mut want);
            assert_eq!(got, want, "{level}: on the left");
            let (mut got, mut want) = (vec![1.0; k * filters], vec![1.0; k * filters]);
            gemm.add_product(level, outer, windows, &mut got);
            gemm.add_product(level, outer, copy, &mut want);
            assert_eq!(got, want, "{level}: on the right");
            gemm.product(level, windows.transposed(), outer.transposed(), &mut got);
            gemm.product(level, copy.transposed(), outer.transposed(), &mut want);
            assert_eq!(got, want, "{level}: transposed on the left");
            let (mut got, mut want) = (vec![0.5; 2 * len], vec![0.0; m * c]);
            let (left, right) = (outer.transposed(), View::with_stride(weight.data, filters, c, 4));
            gemm.add_product_at(level, left, right, &mut got, rows);
            gemm.add_product(level, left, right, &mut want);
            for (at, want) in want.iter().enumerate() {
                let (i, j) = (at / c, at % c);
                let got = got[rows.place(i) + j] - 0.5;
                assert!((got - want).abs() < 1e-5, "{level}: {got}, not {want}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "for a matrix of")]
    fn windows_must_lie_in_the_picture() {
        let _ = View::with_axes(&[0.0; 11], Axis::nested([2, 4], [2, 1]), Axis::nested([2, 4], [3, 1]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn every_level_adds_the_same_chain(
            sizes in [1_usize..40, 1..300, 1..70], turned: [bool; 2], gap in 0_usize..3,
        ) {
            check(sizes, turned, gap);
        }
    }

    #[test]
    fn scratch_space_is_kept() {
        let mut gemm = Gemm::default();
        let (a, b) = (numbers(40 * 300, 1), numbers(300 * 50, 2));
        let mut first = vec![0.0; 40 * 50];
        gemm.product(Level::best(), View::new(&a, 40, 300), View::new(&b, 300, 50), &mut first);
        let grown = (gemm.left.capacity(), gemm.right.capacity());
        let mut small = vec![9.0; 4];
        gemm.product(Level::best(), View::new(&a[..4], 2, 2), View::new(&b[..4], 2, 2), &mut small);
        let mut again = vec![1.0; 40 * 50];
        gemm.product(Level::best(), View::new(&a, 40, 300), View::new(&b, 300, 50), &mut again);
        assert_eq!(first, again);
        assert_eq!(grown, (gemm.left.capacity(), gemm.right.capacity()));
    }

    #[test]
    #[should_panic(expected = "columns of the left matrix and rows of the right one")]
    fn sizes_must_fit() {
        Gemm::default().product(
            Level::best(),
            View::new(&[0.0; 4], 2, 2),
            View::new(&[0.0; 3], 3, 1),
            &mut [],
        );
    }
}

//! Rows of numbers without their zeros, such as encoded observations that are one bit of many.

/// A matrix without its zeros, `[rows, width]`.
///
/// ```
/// use foveate_core::SparseRows;
///
/// let mut rows = SparseRows::new(4);
/// rows.push(&[0.0, 1.0, 0.0, 0.5]);
/// rows.push(&[0.0; 4]);
/// assert_eq!(rows.len(), 2);
/// assert_eq!(rows.row(0), (&[1, 3][..], &[1.0, 0.5][..]));
/// assert_eq!(rows.row(1), (&[][..], &[][..]));
/// ```
#[derive(Debug, Clone, Default)]
pub struct SparseRows {
    /// Numbers of a row, zeros included.
    width: usize,
    /// `[rows]`: where the numbers of each row end.
    ends: Vec<usize>,
    /// Places of all numbers in their rows, ascending in each; what lies behind the last end is free room.
    places: Vec<u32>,
    values: Vec<f32>,
}

impl SparseRows {
    /// No rows, of this many numbers each.
    pub const fn new(width: usize) -> Self {
        SparseRows { width, ends: vec![], places: vec![], values: vec![] }
    }

    /// Removes all rows; those that follow have this many numbers.
    pub fn clear(&mut self, width: usize) {
        self.width = width;
        self.ends.clear();
    }

    /// Numbers of a row, zeros included.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Numbers of all rows that are not zero.
    pub fn kept(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Places and values of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        let range = begin..self.ends[row];
        (&self.places[range.clone()], &self.values[range])
    }

    /// Adds a row of which all numbers are given.
    ///
    /// # Panics
    /// When it has another width.
    pub fn push(&mut self, row: &[f32]) {
        assert_eq!(row.len(), self.width, "numbers of a row");
        self.push_with(|places, values| {
            let mut kept = 0;
            for (place, &x) in row.iter().enumerate().filter(|(_, x)| **x != 0.0) {
                (places[kept], values[kept]) = (place as u32, x);
                kept += 1;
            }
            kept
        });
    }

    /// Adds a row that `write` fills: it gets room for the places and the values of a whole row and returns how many it wrote.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut [u32], &mut [f32]) -> usize) {
        let begin = self.make_room(self.width);
        let room = begin..begin + self.width;
        let kept = write(&mut self.places[room.clone()], &mut self.values[room]);
        self.ends.push(begin + kept.min(self.width));
    }

    /// Adds a row of `other`, which has the same width.
    ///
    /// # Panics
    /// When there is no such row, or its width differs.
    #[inline]
    pub fn push_row_of(&mut self, other: &SparseRows, row: usize) {
        assert_eq!(other.width, self.width, "numbers of a row");
        let (places, values) = other.row(row);
        let begin = self.make_room(places.len());
        let room = begin..begin + places.len();
        self.places[room.clone()].copy_from_slice(places);
        self.values[room.clone()].copy_from_slice(values);
        self.ends.push(room.end);
    }

    /// Makes room for this many numbers more, and returns where it begins.
    #[inline]
    fn make_room(&mut self, numbers: usize) -> usize {
        let begin = self.kept();
        if self.places.len() < begin + numbers {
            let len = (2 * begin).max(begin + numbers);
            self.places.resize(len, 0);
            self.values.resize(len, 0.0);
        }
        begin
    }

    /// Writes a row with its zeros.
    ///
    /// # Panics
    /// When there is no such row, or `to` has another width.
    pub fn write(&self, row: usize, to: &mut [f32]) {
        assert_eq!(to.len(), self.width, "numbers of a row");
        to.fill(0.0);
        let (places, values) = self.row(row);
        for (&place, &x) in places.iter().zip(values) {
            to[place as usize] = x;
        }
    }
}

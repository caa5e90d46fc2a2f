//! What a policy attended to: one type for all kinds of attention.

use std::borrow::Cow;
use std::ops::Range;

use crate::PolicyError;

/// The tokens that a policy can attend to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Tokens<'a> {
    /// Square patches of a picture, which may overlap or leave gaps.
    Patches(PatchGrid),
    /// Equal rectangles that cover the whole picture, row-major from the top left: the positions of a feature
    /// map.
    Cells {
        /// Cells in a column.
        rows: usize,
        /// Cells in a row.
        columns: usize,
    },
    /// The cells of an observation that is a [`Grid`](crate::Grid), in its order; where each lies in the world, and in
    /// the view as people see it, says [`Env::grid_view`](crate::Env::grid_view).
    Grid {
        /// Rows of the observation.
        rows: usize,
        /// Columns of the observation.
        columns: usize,
    },
    /// Named tokens without a place in the picture, such as sensors or graph nodes: one name each.
    Named(&'a [String]),
}

impl Tokens<'_> {
    /// The number of tokens.
    pub const fn len(&self) -> usize {
        match self {
            Tokens::Patches(grid) => grid.len(),
            Tokens::Cells { rows, columns } | Tokens::Grid { rows, columns } => *rows * *columns,
            Tokens::Named(names) => names.len(),
        }
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens as a grid over the picture. Cells become a grid of one-pixel patches over a picture of
    /// `columns` × `rows` pixels. `None` for tokens without a place in a picture.
    pub fn grid(&self) -> Option<PatchGrid> {
        match *self {
            Tokens::Patches(grid) => Some(grid),
            Tokens::Cells { rows, columns } => PatchGrid::tile(columns, rows, 1, 1).ok(),
            Tokens::Grid { .. } | Tokens::Named(_) => None,
        }
    }

    /// Left, top, width and height of a token in a `width` × `height` picture, in pixels; `None` for an
    /// invalid token index and for tokens without a place in the picture.
    pub fn rectangle(&self, width: usize, height: usize, token: u32) -> Option<[f32; 4]> {
        let token = token as usize;
        if token >= self.len() {
            return None;
        }
        let grid = self.grid()?;
        let across = width as f32 / grid.width() as f32;
        let down = height as f32 / grid.height() as f32;
        let (x, y) = grid.corner(token);
        let side = grid.patch() as f32;
        Some([x as f32 * across, y as f32 * down, side * across, side * down])
    }
}

/// The tokens that a policy passed on to its controller, when it passed on only some of them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Selected<'a> {
    /// `[k]`: tokens in the order in which the controller received them.
    pub tokens: &'a [u32],
    /// `[k]`: the rank of each, 0 for the most important.
    pub ranks: &'a [u32],
}

/// What a policy attended to in one decision: weights of shape `[heads, queries, tokens]`, and the tokens
/// that it passed on to its controller.
///
/// | agent | heads | queries | tokens | selected |
/// |---|---|---|---|---|
/// | AttentionAgent, IAP | 1 | 1 | patches | the K chosen ones |
/// | AttentionNeuron on numbers | 1 | numbers of its code | named sensors | all |
/// | AttentionNeuron on pictures | 1 | 1: the sum of those of its code | patches | all; marked: the winners |
/// | S3TA | 4 | 1 each | cells | all |
/// | relational module | heads | nodes | cells, or cells of a grid | all |
///
/// ```
/// use foveate_core::{Attention, PatchGrid, Selected};
/// let grid = PatchGrid::tile(4, 1, 1, 1)?;
/// // Told about patches 0, 1, 3 in the order in which one reads the picture; 1 is the most important.
/// let chosen = Selected { tokens: &[0, 1, 3], ranks: &[2, 0, 1] };
/// let attention = Attention::patches(grid, &[0.1, 0.5, 0.1, 0.3], chosen)?;
/// assert_eq!(attention.by_rank(), [1, 3, 0]);
/// # Ok::<(), foveate_core::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention<'a> {
    tokens: Tokens<'a>,
    heads: usize,
    queries: usize,
    weights: &'a [f32],
    selected: Option<Selected<'a>>,
    /// True if all tokens are passed on although some are marked.
    all: bool,
}

impl<'a> Attention<'a> {
    /// Attention that passes on all tokens, weighted: `weights` is `[heads, queries, tokens]`.
    ///
    /// # Errors
    /// When `weights` has another length, or when there is no head, query or token.
    pub fn soft(
        tokens: Tokens<'a>,
        heads: usize,
        queries: usize,
        weights: &'a [f32],
    ) -> Result<Self, PolicyError> {
        let wanted = heads.checked_mul(queries).and_then(|rows| rows.checked_mul(tokens.len()));
        if wanted != Some(weights.len()) || weights.is_empty() {
            return Err(PolicyError::BadAttention {
                why: format!(
                    "{} weights for {heads} heads, {queries} queries and {} tokens",
                    weights.len(),
                    tokens.len()
                ),
            });
        }
        Ok(Attention { tokens, heads, queries, weights, selected: None, all: true })
    }

    /// One head and one query over the patches of a picture, with some patches selected: `importance` is
    /// `[patches]`.
    ///
    /// # Errors
    /// Those of [`Attention::soft`]; when a selected patch is outside the grid, or when the ranks do not
    /// match the selected patches.
    pub fn patches(
        grid: PatchGrid,
        importance: &'a [f32],
        selected: Selected<'a>,
    ) -> Result<Self, PolicyError> {
        Attention::soft(Tokens::Patches(grid), 1, 1, importance)?.with_selected(selected)
    }

    /// The same weights, with only some tokens passed on.
    ///
    /// # Errors
    /// When a selected token does not exist, or when the ranks are not one number below the number of
    /// selected tokens for each token.
    pub fn with_selected(self, selected: Selected<'a>) -> Result<Self, PolicyError> {
        let Selected { tokens, ranks } = selected;
        let bad = |why| Err(PolicyError::BadAttention { why });
        if tokens.len() != ranks.len() {
            return bad(format!("{} tokens are selected, {} have a rank", tokens.len(), ranks.len()));
        }
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= self.tokens.len()) {
            return bad(format!("token {token} is selected, there are {}", self.tokens.len()));
        }
        if let Some(rank) = ranks.iter().find(|&&rank| rank as usize >= tokens.len()) {
            return bad(format!("rank {rank} of {} selected tokens", tokens.len()));
        }
        Ok(Attention { selected: Some(selected), all: false, ..self })
    }

    /// The same weights, with some tokens marked, of which people are to be shown where they are, such as those that
    /// have the largest weight of a query. All tokens are passed on.
    ///
    /// # Errors
    /// Those of [`Attention::with_selected`].
    pub fn with_marked(self, marked: Selected<'a>) -> Result<Self, PolicyError> {
        Ok(Attention { all: true, ..self.with_selected(marked)? })
    }

    /// The same, with only the first `k` of the selected tokens passed to the controller. Soft attention
    /// stays unchanged.
    #[must_use]
    pub fn told(self, k: usize) -> Self {
        let first = |of: &'a [u32]| &of[..k.min(of.len())];
        let selected = self
            .selected
            .map(|Selected { tokens, ranks }| Selected { tokens: first(tokens), ranks: first(ranks) });
        Attention { selected, ..self }
    }

    /// The tokens that the policy could attend to.
    pub const fn tokens(&self) -> Tokens<'a> {
        self.tokens
    }

    /// See [`Tokens::grid`].
    pub fn grid(&self) -> Option<PatchGrid> {
        self.tokens.grid()
    }

    /// Number of heads.
    pub const fn heads(&self) -> usize {
        self.heads
    }

    /// Number of queries of each head.
    pub const fn queries(&self) -> usize {
        self.queries
    }

    /// `[heads, queries, tokens]`.
    pub const fn weights(&self) -> &'a [f32] {
        self.weights
    }

    /// `[tokens]`: the weights of one query; `None` when there is no such head or query.
    pub fn row(&self, head: usize, query: usize) -> Option<&'a [f32]> {
        let n = self.tokens.len();
        let row = head * self.queries + query;
        (head < self.heads && query < self.queries).then(|| &self.weights[row * n..(row + 1) * n])
    }

    /// `[tokens]`: the importance of each token: the magnitudes of its weights, summed over all heads and queries. Of one
    /// head with one query these are the weights themselves.
    pub fn importance(&self) -> Cow<'a, [f32]> {
        self.summed(0..self.heads)
    }

    /// `[tokens]`: like [`Attention::importance`], for one head; zeros for a head that does not exist.
    pub fn importance_of(&self, head: usize) -> Cow<'a, [f32]> {
        self.summed(if head < self.heads { head..head + 1 } else { 0..0 })
    }

    fn summed(&self, heads: Range<usize>) -> Cow<'a, [f32]> {
        let n = self.tokens.len();
        let rows = &self.weights[heads.start * self.queries * n..heads.end * self.queries * n];
        if rows.len() == n {
            return Cow::Borrowed(rows);
        }
        let mut sum = vec![0.0; n];
        for row in rows.chunks_exact(n) {
            for (sum, weight) in sum.iter_mut().zip(row) {
                *sum += weight.abs();
            }
        }
        Cow::Owned(sum)
    }

    /// Returns whether all tokens were passed on, weighted; some may be [marked](Attention::with_marked).
    pub const fn passes_all(&self) -> bool {
        self.all
    }

    /// The tokens that were passed on, or [marked](Attention::with_marked), and their ranks; `None` when all tokens were
    /// passed on and none is marked.
    pub const fn selected(&self) -> Option<Selected<'a>> {
        self.selected
    }

    /// The number of tokens that were passed on or marked.
    pub const fn len(&self) -> usize {
        match self.selected {
            Some(selected) => selected.tokens.len(),
            None => self.tokens.len(),
        }
    }

    /// Returns whether no token was passed on.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens that were passed on or marked, most important first: by rank, or by [`Attention::importance`] when
    /// all tokens were passed on and none is marked; on a tie, the lower index first.
    pub fn by_rank(&self) -> Vec<u32> {
        let Some(Selected { tokens, ranks }) = self.selected else {
            let importance = self.importance();
            let mut all: Vec<u32> = (0..self.tokens.len() as u32).collect();
            all.sort_by(|&a, &b| {
                sort_key(importance[b as usize]).total_cmp(&sort_key(importance[a as usize]))
            });
            return all;
        };
        let mut order: Vec<usize> = (0..tokens.len()).collect();
        order.sort_by_key(|&i| ranks[i]);
        order.into_iter().map(|i| tokens[i]).collect()
    }
}

/// NaN counts least; −0 and 0 are equal.
const fn sort_key(importance: f32) -> f32 {
    if importance.is_nan() { f32::NEG_INFINITY } else { importance + 0.0 }
}

/// Writes the ranks of `tokens` to `ranks` (0 for the most important), using `scratch`: the rank of a token
/// is the number of tokens that are more important, or equally important and earlier in the list. Allocates
/// only when `scratch` is too small.
///
/// # Panics
/// When `tokens` and `ranks` differ in length, or when a token has no entry in `importance`.
pub fn rank_by_importance(tokens: &[u32], importance: &[f32], ranks: &mut [u32], scratch: &mut Vec<u32>) {
    assert_eq!(tokens.len(), ranks.len(), "a rank for each token");
    scratch.clear();
    scratch.extend(0..tokens.len() as u32);
    let key = |place: u32| sort_key(importance[tokens[place as usize] as usize]);
    scratch.sort_unstable_by(|&a, &b| key(b).total_cmp(&key(a)).then(a.cmp(&b)));
    for (rank, &place) in scratch.iter().enumerate() {
        ranks[place as usize] = rank as u32;
    }
}

/// A picture of `width` × `height` pixels divided into square patches, row-major from the top left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchGrid {
    width: usize,
    height: usize,
    patch: usize,
    stride: usize,
}

impl PatchGrid {
    /// Divides a picture of `width` × `height` pixels into patches of side `patch`, at distance `stride`
    /// pixels.
    ///
    /// # Errors
    /// When the patch or the stride is zero, or the patch is larger than the picture.
    pub fn tile(width: usize, height: usize, patch: usize, stride: usize) -> Result<Self, PolicyError> {
        if patch == 0 || stride == 0 {
            return Err(PolicyError::BadConfig {
                why: format!("patch ({patch} px) and stride ({stride} px) must be at least 1"),
            });
        }
        if patch > width || patch > height {
            return Err(PolicyError::PatchTooLarge { patch, width, height });
        }
        Ok(PatchGrid { width, height, patch, stride })
    }

    /// Width of the picture in pixels.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Height of the picture in pixels.
    pub const fn height(&self) -> usize {
        self.height
    }

    /// Side of a patch in pixels.
    pub const fn patch(&self) -> usize {
        self.patch
    }

    /// Distance between neighbouring patches in pixels.
    pub const fn stride(&self) -> usize {
        self.stride
    }

    /// Patches per row.
    pub const fn columns(&self) -> usize {
        (self.width - self.patch) / self.stride + 1
    }

    /// Patches per column.
    pub const fn rows(&self) -> usize {
        (self.height - self.patch) / self.stride + 1
    }

    /// Number of patches.
    pub const fn len(&self) -> usize {
        self.columns() * self.rows()
    }

    /// Always false: a grid has at least one patch.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Top-left pixel of patch `index`, as (column, row).
    pub const fn corner(&self, index: usize) -> (usize, usize) {
        (index % self.columns() * self.stride, index / self.columns() * self.stride)
    }

    /// Centre pixel of patch `index`, as (column, row): corner plus `patch / 2`.
    pub const fn centre(&self, index: usize) -> (usize, usize) {
        let (x, y) = self.corner(index);
        (x + self.patch / 2, y + self.patch / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(n: usize) -> Vec<String> {
        (0..n).map(|i| format!("sensor {i}")).collect()
    }

    #[test]
    fn patches_of_which_some_are_chosen() {
        let grid = PatchGrid::tile(3, 2, 1, 1).expect("fits");
        let votes = [0.1, 0.9, 0.3, 0.3, 0.2, 0.0];
        for (tokens, ranks) in [([1, 2, 4], [0, 1, 2]), ([4, 2, 1], [2, 1, 0]), ([2, 4, 1], [1, 2, 0])] {
            let attention =
                Attention::patches(grid, &votes, Selected { tokens: &tokens, ranks: &ranks }).expect("fine");
            assert_eq!(attention.by_rank(), [1, 2, 4], "{tokens:?}");
            assert_eq!(attention.importance(), &votes[..]);
            assert!(matches!(attention.importance(), Cow::Borrowed(_)), "one row is not copied");
            assert_eq!((attention.len(), attention.grid()), (3, Some(grid)));
            // When only two are passed on, their order stays the same.
            let marked = attention.with_marked(Selected { tokens: &tokens, ranks: &ranks }).expect("fine");
            assert_eq!((attention.passes_all(), marked.passes_all()), (false, true));
            assert_eq!(marked.by_rank(), [1, 2, 4]);
            let two = attention.told(2).by_rank();
            let expect: Vec<u32> = [1, 2, 4].into_iter().filter(|t| tokens[..2].contains(t)).collect();
            assert_eq!(two, expect);
        }
    }

    #[test]
    fn named_tokens_with_many_queries() {
        // AttentionNeuron on CartPole: 5 sensors, a code of 3 numbers.
        let names = names(5);
        let weights: Vec<f32> = (0..15).map(|i| i as f32 / 10.0).collect();
        let attention = Attention::soft(Tokens::Named(&names), 1, 3, &weights).expect("fine");
        assert_eq!(attention.row(0, 1), Some(&weights[5..10]));
        assert_eq!((attention.row(1, 0), attention.row(0, 3)), (None, None));
        let importance = attention.importance();
        assert_eq!(importance.len(), 5);
        let signed: Vec<f32> = weights.iter().map(|w| if *w < 0.8 { -w } else { *w }).collect();
        let signed = Attention::soft(Tokens::Named(&names), 1, 3, &signed).expect("fine");
        assert_eq!(signed.importance(), importance, "a negative weight counts, too");
        assert!((importance[2] - (0.2 + 0.7 + 1.2)).abs() < 1e-6);
        assert_eq!(attention.by_rank(), [4, 3, 2, 1, 0]);
        assert_eq!((attention.len(), attention.selected()), (5, None));
        assert_eq!(attention.tokens().rectangle(96, 96, 0), None);
    }

    #[test]
    fn heads_over_cells() {
        // S3TA: 4 heads with a query each over a feature map of 2 rows and 3 columns.
        let mut weights = vec![0.0; 4 * 6];
        for head in 0..4 {
            weights[head * 6 + head] = 1.0;
        }
        let cells = Tokens::Cells { rows: 2, columns: 3 };
        let attention = Attention::soft(cells, 4, 1, &weights).expect("fine");
        assert_eq!(*attention.importance(), [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
        assert_eq!(*attention.importance_of(2), [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(*attention.importance_of(9), [0.0; 6]);
        assert_eq!(attention.by_rank(), [0, 1, 2, 3, 4, 5], "equal ones by their number");
        assert_eq!(cells.rectangle(96, 84, 4), Some([32.0, 42.0, 32.0, 42.0]));
        assert_eq!(cells.rectangle(96, 84, 6), None);
    }

    #[test]
    fn nodes_that_attend_to_nodes() {
        // The relational module: 2 heads, each of 3 nodes attends to 3 nodes.
        let names = names(3);
        let weights =
            [0.2, 0.3, 0.5, 0.0, 1.0, 0.0, 0.1, 0.8, 0.1, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 0.0];
        let attention = Attention::soft(Tokens::Named(&names), 2, 3, &weights).expect("fine");
        assert_eq!(attention.row(1, 2), Some(&weights[15..18]));
        assert_eq!(attention.by_rank(), [1, 0, 2]);
        let nan = [f32::NAN, 0.0, -1.0];
        let attention = Attention::soft(Tokens::Named(&names), 1, 1, &nan).expect("weights may be anything");
        assert_eq!(attention.by_rank(), [1, 2, 0], "what is no number counts least");
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let grid = PatchGrid::tile(2, 2, 1, 1).expect("fits");
        let refused = |importance: &[f32], tokens: &[u32], ranks: &[u32], why: &str| {
            let said = Attention::patches(grid, importance, Selected { tokens, ranks }).expect_err(why);
            assert!(said.to_string().contains(why), "{said}");
        };
        refused(&[0.0; 3], &[], &[], "3 weights for 1 heads, 1 queries and 4 tokens");
        refused(&[0.0; 4], &[0, 1], &[0], "2 tokens are selected, 1 have a rank");
        refused(&[0.0; 4], &[4], &[0], "token 4 is selected, there are 4");
        refused(&[0.0; 4], &[3], &[1], "rank 1 of 1 selected tokens");
        assert!(Attention::soft(Tokens::Named(&[]), 1, 1, &[]).is_err());
        assert!(Attention::soft(Tokens::Cells { rows: 1, columns: 1 }, usize::MAX, 2, &[0.0]).is_err());
    }

    #[test]
    fn ranks_follow_importance_and_then_the_order_of_telling() {
        let importance = [0.5, 0.0, -0.0, 0.9, f32::NAN];
        let (mut ranks, mut scratch) = ([0; 5], vec![]);
        rank_by_importance(&[2, 1, 0, 3, 4], &importance, &mut ranks, &mut scratch);
        assert_eq!(ranks, [2, 3, 1, 0, 4]);
    }
}

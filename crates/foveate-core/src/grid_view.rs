//! Worlds of cells: what the agent's observation shows of them, and changes of their state.
//!
//! [`Env::grid_view`](crate::Env::grid_view) says for people and reports what lies in which cell, and
//! [`Env::edit_state`](crate::Env::edit_state) changes it in the world itself, so that the episode continues by the
//! world's own rules. Agents read neither.

use std::fmt;

use crate::ImageBuf;

/// A cell of the world: column from the left and row from the top, both from 0.
pub type CellPlace = [usize; 2];

/// What an observation that is a [`Grid`](crate::Grid) shows, cell by cell, and the objects of the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridView {
    /// Columns and rows of the view as people see it.
    pub size: [usize; 2],
    /// `[rows × columns of the observation]`: its cells, in its order.
    pub cells: Vec<ViewCell>,
    /// The cell of the observation in which the agent stands.
    pub agent: usize,
    /// The cell of the observation before the agent; `None` when it is not shown.
    pub front: Option<usize>,
    /// The objects of the world: whatever is in it besides the agent, walls and floors. Those of a kind follow one another,
    /// in an order of kinds that is the same in every step.
    pub objects: Vec<GridObject>,
    /// The colours that objects can have.
    pub colors: &'static [&'static str],
    /// The view as people see it; all its cells have the same size.
    pub picture: ImageBuf,
}

/// A cell of an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewCell {
    /// Column and row in the view as people see it.
    pub in_view: CellPlace,
    /// The cell of the world that it shows; `None` outside of the world.
    pub in_world: Option<CellPlace>,
    /// What the agent sees there, such as `wall`, `empty` or `yellow key`; `None` when that is hidden.
    pub content: Option<String>,
}

/// An object of a grid world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridObject {
    /// Its kind, such as `key`.
    pub kind: &'static str,
    /// Its name, such as `yellow key`.
    pub name: String,
    /// Where it lies; `None` while the agent carries it.
    pub in_world: Option<CellPlace>,
    /// The cell of the observation that shows it; `None` when it is hidden or out of view.
    pub cell: Option<usize>,
}

/// A change of the state of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateEdit<'a> {
    /// Empties a cell that holds an object or a wall.
    Remove(CellPlace),
    /// Exchanges an object with the empty cell or the wall at another place.
    Move {
        /// Where the object lies.
        from: CellPlace,
        /// Where it shall lie.
        to: CellPlace,
    },
    /// Gives an object another colour.
    Recolor {
        /// Where the object lies.
        at: CellPlace,
        /// The name of the colour, one of [`GridView::colors`].
        color: &'a str,
    },
    /// Puts a wall into an empty cell.
    Block(CellPlace),
    /// Takes everything of a kind, one of [`Env::kinds`](crate::Env::kinds), out of what the world shows, until the next
    /// reset.
    Erase(&'a str),
}

impl fmt::Display for StateEdit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StateEdit::Remove([x, y]) => write!(f, "remove the content of cell ({x},{y})"),
            StateEdit::Move { from: [x, y], to: [u, v] } => {
                write!(f, "move the object of cell ({x},{y}) to ({u},{v})")
            }
            StateEdit::Recolor { at: [x, y], color } => {
                write!(f, "recolour the object of cell ({x},{y}) {color}")
            }
            StateEdit::Block([x, y]) => write!(f, "put a wall into cell ({x},{y})"),
            StateEdit::Erase(kind) => write!(f, "erase the {kind}"),
        }
    }
}

impl GridView {
    /// The objects that the observation shows, with the cell that shows each.
    pub fn visible(&self) -> impl Iterator<Item = (&GridObject, usize)> {
        self.objects.iter().filter_map(|object| Some((object, object.cell?)))
    }
}

//! State reports as plain values, for logs and replays; the crates that write files convert them to JSON.

/// A value in a state report, see [`crate::Env::state`].
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A real number, in full precision.
    Number(f64),
    /// A non-negative whole number.
    Count(u64),
    /// A boolean.
    Flag(bool),
    /// A string.
    Text(String),
    /// Several values in order.
    List(Vec<Fact>),
    /// Named values in order.
    Group(Vec<(&'static str, Fact)>),
    /// Like `Group`, with names determined at run time.
    Named(Vec<(String, Fact)>),
}

/// Labels of a world and of weights, for titles and reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// The source of the weights.
    pub weights: String,
}

//! Plain facts about a state, for logs and replays; whoever writes files turns them into JSON.

/// A value in a state report; [`crate::Env::state`] says which.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A real number, in full precision.
    Number(f64),
    /// A count.
    Count(u64),
    /// Yes or no.
    Flag(bool),
    /// A word.
    Text(String),
    /// Several values in order.
    List(Vec<Fact>),
    /// Named values in order.
    Group(Vec<(&'static str, Fact)>),
    /// The same, with names that come from outside.
    Named(Vec<(String, Fact)>),
}

/// What to call a world and weights in titles and reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Its variants.
    pub variant: String,
    /// Where the weights came from.
    pub weights: String,
}

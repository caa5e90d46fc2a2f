//! All layers, one file for those that belong together.

mod arrange;
mod attention;
mod basis;
mod conv;
mod gates;
mod linear;
mod norm;
mod pool;
mod winograd;

pub use arrange::{Add, Concat, Coordinates, PairSums, Part};
pub use attention::{Softmax, SoftmaxAttention, WeightedSum};
pub use basis::{Frequencies, GroupNorms, Learned, SpatialBasis};
pub use conv::{Conv, Padding};
pub use gates::LstmGates;
pub use linear::Linear;
pub use norm::{ChannelNorm, LayerNorm};
pub use pool::{MaxOverTokens, MaxPool};

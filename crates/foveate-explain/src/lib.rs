//! Explanations: what an agent looked at, as pictures.
//!
//! * [`whiten`]: the published look: the patches an agent saw, whiter the more important they were.
//! * [`gaze_overlay`]: the same, enlarged.
//! * [`gaze_marks`]: the same patches as rectangles with an opacity, for whoever draws frames around them.
//!
//! **Invariant:** a decision and its observation go in, pictures come out; no world and no agent is run here, and
//! nothing is read or written.

mod enlarge;
mod overlay;

pub use enlarge::enlarge_bilinear;
pub use overlay::{GazeMark, gaze_marks, gaze_overlay, whiten};

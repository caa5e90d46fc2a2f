//! What `foveate bench` measures.

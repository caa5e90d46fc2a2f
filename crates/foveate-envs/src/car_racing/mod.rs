//! CarRacing: a car on a random closed track, seen from above.

pub mod picture;
pub mod scene;
pub mod shape;
pub mod track;
pub mod variants;

//! CarRacing: a car on a random closed track, seen from above.

pub mod scene;

//! The hot loops: SIMD chosen at run time, the same bits on every instruction set.
//!
//! * [`Level`]: an instruction set that this processor has. [`Level::best`] is what everybody uses; tests and benches
//!   walk through [`Level::available`].
//! * [`project`]: a picture of bytes to the query and the key of every patch, an [`Embedded`].
//! * [`vote`]: softmax attention summed over its rows, without ever storing the N × N matrix.
//! * [`near_vote`]: the same within a bound on the error, for many patches.
//! * [`kernel_vote`]: attention by other kernels, most of them in time linear in the number of patches.
//! * [`top_k`]: the most important patches, ties in order of the index.
//! * [`dense`] and [`lstm`]: the small controller; [`lstm_gradient`]: its gradient, to train it.
//! * [`coverage`]: accumulated coverage to the bytes of a picture.
//! * [`pixels`]: small windows of pixels shrunk to one.
//! * [`matrix`]: linear algebra in double precision, whose bits differ between processors with and without fused
//!   multiply-adds.
//!
//! The agent's kernels are written once, over vectors of 16 lanes. Every operation is exact IEEE arithmetic in an order
//! that does not depend on the register width, fused multiply-adds included, so portable code, AVX2, AVX-512 and NEON
//! agree to the bit. That is what makes a run on one machine a run on all.
//!
//! One thread does it all unless scratch space is made `with_threads`: for a single large picture, that is. The bits are
//! the same for any number of threads.
//!
//! **Invariant:** `unsafe` lives in this crate only, and every safe function checks sizes and processor features.

pub mod coverage;
pub mod dense;
mod distinct;
mod embedded;
pub mod kernel_vote;
mod lanes;
pub mod level;
pub mod lstm;
pub mod lstm_gradient;
pub mod matrix;
pub mod near_vote;
pub mod pixels;
pub mod project;
mod threads;
pub mod top_k;
pub mod vote;

pub use embedded::Embedded;
pub use level::Level;

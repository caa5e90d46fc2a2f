//! Compute kernels: SIMD selected at run time, bit-identical results on every instruction set.
//!
//! * [`Level`]: an instruction set that this processor supports. Programs use [`Level::best`]; tests and
//!   benches iterate over [`Level::available`].
//! * [`project`]: computes the query and the key of every patch from the bytes of a picture, as an
//!   [`Embedded`].
//! * [`vote`]: softmax attention summed over its rows, without storing the N × N matrix.
//! * [`near_vote`]: an approximation of these sums for many patches, with a bound on the error.
//! * [`kernel_vote`]: attention with other kernels, most of them in time linear in the number of patches.
//! * [`patch_codes`]: codes of a stack of pictures that do not depend on the order of its patches.
//! * [`top_k`]: the most important patches; ties are ordered by index.
//! * [`dense`], [`conv`] and [`lstm`]: the small controller; [`lstm_gradient`]: its gradient, for training.
//! * [`sensory`]: an LSTM for every sensor and attention over them, whatever their order; [`sensory::gradient`]: its
//!   gradient, for training.
//! * [`coverage`]: converts accumulated coverage to the bytes of a picture.
//! * [`pixels`]: shrinks small windows of pixels to one pixel.
//! * [`elementwise`]: activations, softmax and normalisation, with their gradients.
//! * [`conv_gradient`]: gradients of convolutions, without the products with zeros.
//! * [`gemm`]: matrix products in single precision, for layers and their gradients.
//! * [`winograd`]: the costly steps of a convolution of 3 × 3 pixels with fewer multiplications.
//! * [`libm`]: sine, cosine and square in double precision, with the bits of the C library.
//! * [`plain`]: plain Rust, compiled for the instruction set of the processor.
//! * [`peak`]: the most that a core computes, for measurements.
//! * [`matrix`]: linear algebra in double precision. Its results differ in the last bits between processors
//!   with and without fused multiply-adds.
//!
//! The agent's kernels are written once, over vectors of 16 lanes. Every operation, including fused
//! multiply-adds, is exact IEEE arithmetic in an order that does not depend on the register width, so
//! portable code, AVX2, AVX-512 and NEON produce bit-identical results. This makes runs reproducible across
//! machines.
//!
//! All work runs on one thread unless the scratch space is made `with_threads`, which is meant for a single
//! large picture. Results are bit-identical for any number of threads.
//!
//! **Invariant:** `unsafe` lives in this crate only, and every safe function checks sizes and processor
//! features.

pub mod conv;
pub mod conv_gradient;
pub mod coverage;
pub mod dense;
mod distinct;
pub mod elementwise;
mod embedded;
pub mod gemm;
pub mod kernel_vote;
mod lanes;
pub mod level;
pub mod libm;
pub mod lstm;
pub mod lstm_gradient;
pub mod matrix;
pub mod near_vote;
pub mod patch_codes;
pub mod peak;
pub mod pixels;
pub mod plain;
pub mod project;
pub mod rows;
pub mod sensory;
mod threads;
pub mod top_k;
pub mod vote;
pub mod winograd;

pub use embedded::Embedded;
pub use level::Level;

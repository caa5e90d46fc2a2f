//! Plain Rust, compiled for the instruction set of the processor.

use crate::Level;
use crate::lanes::{Isa, Task};

/// A computation in plain Rust, whose loops the compiler turns into vector instructions.
///
/// [`run`](Plain::run) and the functions that it calls are `#[inline(always)]`, so that they are compiled anew for every
/// instruction set. No operation changes its result by that: the compiler neither reorders sums nor fuses products with sums.
pub trait Plain {
    /// The result.
    type Out;

    /// Computes it. [`Level::PORTABLE`] has no fused multiply-adds: there, `f64::mul_add` is a slow call of the C library.
    fn run(self) -> Self::Out;
}

struct Compiled<T>(T);

impl<T: Plain> Task for Compiled<T> {
    type Out = T::Out;

    #[inline(always)]
    fn run<I: Isa>(self, _: I) -> T::Out {
        self.0.run()
    }
}

impl Level {
    /// Runs `task` compiled for this level.
    ///
    /// ```
    /// use foveate_kernels::Level;
    /// use foveate_kernels::plain::Plain;
    ///
    /// struct Halve<'a>(&'a mut [f64]);
    ///
    /// impl Plain for Halve<'_> {
    ///     type Out = ();
    ///
    ///     #[inline(always)]
    ///     fn run(self) {
    ///         for x in self.0 {
    ///             *x *= 0.5;
    ///         }
    ///     }
    /// }
    ///
    /// let mut numbers = [1.0, 3.0];
    /// Level::best().run_plain(Halve(&mut numbers));
    /// assert_eq!(numbers, [0.5, 1.5]);
    /// ```
    #[inline]
    pub fn run_plain<T: Plain>(self, task: T) -> T::Out {
        self.run(Compiled(task))
    }
}

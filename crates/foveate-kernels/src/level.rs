//! Selection of the instruction set.

use std::fmt;

use crate::lanes::{Portable, Task};

/// An instruction set that this processor supports.
///
/// A value is proof of support: a `Level` that the processor lacks cannot be constructed, so kernels take one
/// and need no further check. All levels produce bit-identical results; they differ only in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

impl Level {
    /// Plain Rust, available on every processor. Slow: fused multiply-adds are computed in double precision.
    pub const PORTABLE: Level = Level(Kind::Portable);

    /// The fastest level of this processor.
    pub fn best() -> Level {
        // The standard library caches the detection.
        Self::all().rev().find(|level| level.is_here()).unwrap_or(Level::PORTABLE)
    }

    /// All levels that this processor supports, slowest first.
    pub fn available() -> impl Iterator<Item = Level> {
        Self::all().filter(|level| level.is_here())
    }

    /// The level called `portable`, `avx2`, `avx512` or `neon`, if this processor supports it.
    pub fn named(name: &str) -> Option<Level> {
        Self::available().find(|level| level.name() == name)
    }

    /// Its name in lower case.
    pub const fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
        }
    }

    /// All levels that this program knows, slowest first, whether or not the processor supports them.
    fn all() -> impl DoubleEndedIterator<Item = Level> {
        [
            Kind::Portable,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512,
            #[cfg(target_arch = "aarch64")]
            Kind::Neon,
        ]
        .into_iter()
        .map(Level)
    }

    fn is_here(self) -> bool {
        match self.0 {
            Kind::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => std::arch::is_aarch64_feature_detected!("neon"),
        }
    }

    /// Runs `task` compiled for this level.
    #[inline]
    pub(crate) fn run<T: Task>(self, task: T) -> T::Out {
        match self.0 {
            Kind::Portable => task.run(Portable),
            // SAFETY: a `Level` of this kind is only handed out by `is_here`, which detected avx2 and fma.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { crate::lanes::run_avx2(task) },
            // SAFETY: a `Level` of this kind is only handed out by `is_here`, which detected avx2, fma,
            // avx512f, avx512vl and avx512dq.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { crate::lanes::run_avx512(task) },
            // SAFETY: a `Level` of this kind is only handed out by `is_here`, which detected neon.
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => unsafe { crate::lanes::run_neon(task) },
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_levels() {
        for level in Level::available() {
            assert_eq!(Level::named(level.name()), Some(level));
        }
        assert_eq!(Level::named("mmx"), None);
        assert!(Level::available().any(|level| level == Level::best()));
        assert_eq!(Level::available().next(), Some(Level::PORTABLE));
    }
}

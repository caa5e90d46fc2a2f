//! The random streams of other libraries, with bit-identical numbers.
//!
//! A world that reproduces the tracks of its reference must draw the same numbers: [`Pcg64`] is the generator
//! that Gymnasium gets from NumPy's `default_rng`, [`Mt19937`] the one that old Gym gets from `RandomState`.
//! Use [`foveate_core::Rng`] for everything else.

mod mt19937;
mod pcg64;

pub use mt19937::Mt19937;
pub use pcg64::Pcg64;

/// One of the two streams, seeded the way its library seeds it.
#[derive(Debug, Clone)]
pub enum Stream {
    /// Gymnasium: `Generator(PCG64(SeedSequence(seed)))`.
    Gymnasium(Pcg64),
    /// Gym 0.15: `RandomState` seeded through SHA-512.
    Gym0153(Box<Mt19937>),
}

impl Stream {
    /// Restarts the same kind of stream from `seed`, without allocating.
    pub fn reseed(&mut self, seed: u64) {
        match self {
            Stream::Gymnasium(stream) => *stream = Pcg64::seeded(seed),
            Stream::Gym0153(stream) => **stream = Mt19937::gym_seeded(seed),
        }
    }

    /// Uniform in `0.0..1.0`, 53 bits.
    pub fn next_f64(&mut self) -> f64 {
        match self {
            Stream::Gymnasium(stream) => stream.next_f64(),
            Stream::Gym0153(stream) => stream.next_f64(),
        }
    }

    /// Uniform in `low..high`, with the rounding of both libraries.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next_f64()
    }
}

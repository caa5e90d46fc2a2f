//! The random streams of other libraries, number for number.
//!
//! A world that promises the same tracks as its reference has to draw the same numbers: [`Pcg64`] is what Gymnasium
//! gets from NumPy's `default_rng`, [`Mt19937`] what old Gym got from `RandomState`. For everything else there is
//! [`foveate_core::Rng`].

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
    /// Starts the same kind of stream afresh from `seed`, without allocating.
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

    /// Uniform in `low..high`, rounded as both libraries do.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next_f64()
    }
}

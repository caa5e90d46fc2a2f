//! NumPy's default generator: PCG64 (O'Neill 2014, XSL-RR 128/64) seeded through `SeedSequence`.

const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;

/// `numpy.random.Generator(PCG64(SeedSequence(seed)))`.
///
/// ```
/// use foveate_envs::random::Pcg64;
/// let mut stream = Pcg64::seeded(0);
/// assert_eq!(stream.next_f64(), 0.6369616873214543); // numpy.random.default_rng(0).random()
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pcg64 {
    state: u128,
    increment: u128,
    /// The unused high half of a word, after a 32-bit draw returned its low half.
    half: Option<u32>,
}

impl Pcg64 {
    /// The stream of `numpy.random.default_rng(seed)`.
    pub fn seeded(seed: u64) -> Self {
        let words = seed_sequence(seed);
        let pair = |i: usize| u128::from(words[i]) << 64 | u128::from(words[i + 1]);
        let mut stream = Pcg64 { state: 0, increment: pair(2) << 1 | 1, half: None };
        stream.step();
        stream.state = stream.state.wrapping_add(pair(0));
        stream.step();
        stream
    }

    fn step(&mut self) {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(self.increment);
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.step();
        ((self.state >> 64) as u64 ^ self.state as u64).rotate_right((self.state >> 122) as u32)
    }

    /// The next 32 bits: one word gives two draws, the low half first; other draws do not change the stored
    /// half.
    pub fn next_u32(&mut self) -> u32 {
        if let Some(half) = self.half.take() {
            return half;
        }
        let word = self.next_u64();
        self.half = Some((word >> 32) as u32);
        word as u32
    }

    /// Uniform in `0.0..1.0`, 53 bits.
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `Generator.integers(n)`: uniform in `0..n`, by Lemire's method on 32-bit draws; 0 without a draw when
    /// `n` < 2.
    pub fn integers(&mut self, n: u32) -> u32 {
        if n < 2 {
            return 0;
        }
        let mut wide = u64::from(self.next_u32()) * u64::from(n);
        if (wide as u32) < n {
            let threshold = n.wrapping_neg() % n;
            while (wide as u32) < threshold {
                wide = u64::from(self.next_u32()) * u64::from(n);
            }
        }
        (wide >> 32) as u32
    }

    /// Uniform in `0..=most`, as `Generator.shuffle` of a list draws it: 32-bit draws under the next larger mask, until one
    /// is not too large.
    pub fn interval(&mut self, most: u32) -> u32 {
        let mask = u32::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        if mask == 0 {
            return 0;
        }
        loop {
            let value = self.next_u32() & mask;
            if value <= most {
                return value;
            }
        }
    }
}

/// `SeedSequence(seed).generate_state(4, uint64)`.
fn seed_sequence(seed: u64) -> [u64; 4] {
    let mut pool = [seed as u32, (seed >> 32) as u32, 0, 0];
    let mut constant = 0x43b0_d7e5_u32;
    let mut hash = |value: u32| {
        let mut value = value ^ constant;
        constant = constant.wrapping_mul(0x931e_8875);
        value = value.wrapping_mul(constant);
        value ^ value >> 16
    };
    for word in &mut pool {
        *word = hash(*word);
    }
    for from in 0..4 {
        for to in 0..4 {
            if from != to {
                let hashed = hash(pool[from]);
                let mixed =
                    0xca01_f9dd_u32.wrapping_mul(pool[to]).wrapping_sub(0x4973_f715_u32.wrapping_mul(hashed));
                pool[to] = mixed ^ mixed >> 16;
            }
        }
    }
    let mut constant = 0x8b51_f9dd_u32;
    let mut next = 0;
    let mut word = || {
        let mut value = pool[next % 4] ^ constant;
        next += 1;
        constant = constant.wrapping_mul(0x58f3_8ded);
        value = value.wrapping_mul(constant);
        value ^ value >> 16
    };
    [(); 4].map(|()| {
        let low = u64::from(word());
        u64::from(word()) << 32 | low
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_zero_gives_numpys_state() {
        let mut stream = Pcg64::seeded(0);
        assert_eq!(stream.state, 0x1aa1_b534_5996_452d_0958_5eb7_a695_61e3);
        assert_eq!(stream.increment, 0x418d_dadb_3af7_1a82_5881_33bc_4478_73a9);
        assert_eq!(stream.next_f64(), 0.6369616873214543);
        assert_eq!(stream.next_f64(), 0.2697867137638703);
    }

    #[test]
    fn a_kept_half_survives_other_draws() {
        let mut whole = Pcg64::seeded(3);
        let (first, second) = (whole.next_u64(), whole.next_u64());
        let mut halves = Pcg64::seeded(3);
        assert_eq!(halves.next_u32(), first as u32);
        assert_eq!(halves.next_u64(), second);
        assert_eq!(halves.next_u32(), (first >> 32) as u32);
    }

    #[test]
    fn intervals_are_numpys() {
        // numpy.random.default_rng(seed).shuffle of list(range(6)).
        for (seed, expect) in [(0, [3, 2, 5, 4, 0, 1]), (1, [4, 0, 2, 1, 5, 3]), (7, [5, 2, 0, 4, 1, 3])] {
            let (mut stream, mut list) = (Pcg64::seeded(seed), [0, 1, 2, 3, 4, 5]);
            for i in (1..6).rev() {
                list.swap(i, stream.interval(i as u32) as usize);
            }
            assert_eq!(list, expect, "seed {seed}");
        }
        assert_eq!(Pcg64::seeded(1).interval(0), 0);
    }

    #[test]
    fn integers_cover_their_range_evenly() {
        let mut stream = Pcg64::seeded(11);
        let mut counts = [0_u32; 3];
        for _ in 0..30_000 {
            counts[stream.integers(3) as usize] += 1;
        }
        assert!(counts.iter().all(|&c| (9_600..10_400).contains(&c)), "{counts:?}");
        assert_eq!((stream.integers(1), stream.integers(0)), (0, 0));
    }
}

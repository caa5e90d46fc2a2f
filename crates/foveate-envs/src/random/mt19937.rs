//! The Mersenne twister (Matsumoto and Nishimura 1998), seeded as Gym 0.15 to 0.19 seeded NumPy's
//! `RandomState`.

use sha2::{Digest, Sha512};

const N: usize = 624;
const M: usize = 397;

/// `numpy.random.RandomState` after `gym.utils.seeding.np_random(seed)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mt19937 {
    words: [u32; N],
    next: usize,
}

impl Mt19937 {
    /// Seeds as Gym does: the key is the first eight bytes of the SHA-512 of the seed's decimal digits.
    pub fn gym_seeded(seed: u64) -> Self {
        let mut digits = [0; 20];
        let mut first = digits.len();
        let mut rest = seed;
        while rest > 0 || first == digits.len() {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        let digest = Sha512::digest(&digits[first..]);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&digest[..8]);
        let hash = u64::from_le_bytes(bytes);
        let key = [hash as u32, (hash >> 32) as u32];
        // Gym writes the number as 32-bit digits, so a high word of zero is omitted.
        Mt19937::keyed(if key[1] == 0 { &key[..1] } else { &key })
    }

    /// `numpy.random.RandomState(seed)`: the generator's own seeding, `init_genrand`.
    pub fn seeded(seed: u32) -> Self {
        let mut words = [0_u32; N];
        words[0] = seed;
        for i in 1..N {
            words[i] =
                1_812_433_253_u32.wrapping_mul(words[i - 1] ^ words[i - 1] >> 30).wrapping_add(i as u32);
        }
        Mt19937 { words, next: N }
    }

    /// `numpy.random.RandomState([low, high])`: seeded by two words.
    pub fn of_pair(words: [u32; 2]) -> Self {
        Mt19937::keyed(&words)
    }

    /// `init_by_array`; `key` is not empty and not longer than the state.
    fn keyed(key: &[u32]) -> Self {
        let Mt19937 { mut words, .. } = Mt19937::seeded(19_650_218);
        // Two passes over words 1 to 623: N steps mix in the key, N − 1 further steps mix the state; each
        // pass starts where the previous one stopped.
        for step in 0..2 * N - 1 {
            let i = 1 + step % (N - 1);
            let before = words[i - 1] ^ words[i - 1] >> 30;
            words[i] = if step < N {
                let j = step % key.len();
                (words[i] ^ before.wrapping_mul(1_664_525)).wrapping_add(key[j]).wrapping_add(j as u32)
            } else {
                (words[i] ^ before.wrapping_mul(1_566_083_941)).wrapping_sub(i as u32)
            };
            if i == N - 1 {
                words[0] = words[i];
            }
        }
        words[0] = 0x8000_0000;
        Mt19937 { words, next: N }
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.next == N {
            self.refill();
        }
        let mut y = self.words[self.next];
        self.next += 1;
        y ^= y >> 11;
        y ^= y << 7 & 0x9d2c_5680;
        y ^= y << 15 & 0xefc6_0000;
        y ^ y >> 18
    }

    fn refill(&mut self) {
        for i in 0..N {
            let y = self.words[i] & 0x8000_0000 | self.words[(i + 1) % N] & 0x7fff_ffff;
            let twist = if y & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + M) % N] ^ y >> 1 ^ twist;
        }
        self.next = 0;
    }

    /// Uniform in `0.0..1.0`, 53 bits from two draws.
    pub fn next_f64(&mut self) -> f64 {
        let high = f64::from(self.next_u32() >> 5);
        let low = f64::from(self.next_u32() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_own_key_gives_their_numbers() {
        // First outputs of the reference program for init_by_array({0x123, 0x234, 0x345, 0x456}).
        let mut stream = Mt19937::keyed(&[0x123, 0x234, 0x345, 0x456]);
        let first = [(); 5].map(|()| stream.next_u32());
        assert_eq!(first, [1_067_595_299, 955_945_823, 477_289_528, 4_107_218_783, 4_228_976_476]);
    }

    #[test]
    fn a_plain_seed_gives_numpys_numbers() {
        let mut stream = Mt19937::seeded(1);
        // numpy.random.RandomState(1).random_sample(3)
        assert_eq!(
            [(); 3].map(|()| stream.next_f64()),
            [0.417_022_004_702_574, 0.720_324_493_442_158_1, 0.000_114_374_817_344_886_64]
        );
    }

    #[test]
    fn seed_one_gives_gyms_numbers() {
        let mut stream = Mt19937::gym_seeded(1);
        let first = [(); 3].map(|()| stream.next_f64());
        // RandomState(…).uniform() after gym.utils.seeding.np_random(1).
        assert_eq!(first, [0.8073904357288909, 0.5145000719859268, 0.19111815115583786]);
    }
}

//! NumPy's `RandomState`, the random stream of dm_control's tasks.

use foveate_envs::random::Mt19937;

/// `numpy.random.RandomState(seed)`: the same numbers from the same calls.
#[derive(Debug, Clone)]
pub struct RandomState {
    stream: Mt19937,
    /// The second normal deviate of a pair, which the next call returns.
    normal: Option<f64>,
}

impl RandomState {
    /// Seeds as NumPy does. NumPy takes seeds below 2³² only; a larger seed is `RandomState([seed % 2**32, seed // 2**32])`.
    pub fn new(seed: u64) -> Self {
        let stream = match u32::try_from(seed) {
            Ok(seed) => Mt19937::seeded(seed),
            Err(_) => Mt19937::of_pair([seed as u32, (seed >> 32) as u32]),
        };
        RandomState { stream, normal: None }
    }

    /// `uniform(low, high)`.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.stream.next_f64()
    }

    /// `randn()`, by Marsaglia's polar method.
    pub fn normal(&mut self) -> f64 {
        if let Some(second) = self.normal.take() {
            return second;
        }
        loop {
            let first = 2.0 * self.stream.next_f64() - 1.0;
            let second = 2.0 * self.stream.next_f64() - 1.0;
            let square = first * first + second * second;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.normal = Some(scale * first);
                return scale * second;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOLDEN_7: [f64; 5] =
        [-1.618458553130214, -0.3206032549443759, 1.4570832287334776, 0.7234651778309412, 0.0328201636785844];
    const GOLDEN_PAIR: [f64; 2] = [0.15866214341695117, 1.779828592127762];

    #[test]
    fn numbers_are_numpys() {
        // numpy.random.RandomState(7): uniform(-2, 3), randn(), randn(), uniform(0, 1), randn()
        let mut random = RandomState::new(7);
        let drawn = [
            random.uniform(-2.0, 3.0),
            random.normal(),
            random.normal(),
            random.uniform(0.0, 1.0),
            random.normal(),
        ];
        assert_eq!(drawn, GOLDEN_7);
        // numpy.random.RandomState([5, 3]): uniform(0, 1), randn()
        let mut random = RandomState::new(3 << 32 | 5);
        assert_eq!([random.uniform(0.0, 1.0), random.normal()], GOLDEN_PAIR);
    }
}

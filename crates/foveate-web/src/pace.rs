//! How many steps are due.

use std::time::Duration;

/// Longest stretch of time that is made up for; what lies before it is forgotten, so that a tab that slept does not
/// rush.
const MAX_DEBT: Duration = Duration::from_millis(100);

/// Turns the passing of time into steps.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Steps that were due and not yet taken, below 1 after [`Pace::due`].
    debt: f64,
}

impl Pace {
    /// Steps that are due now, `elapsed` after the last time this was asked, at `per_second` steps a second.
    pub fn due(&mut self, elapsed: Duration, per_second: f64) -> usize {
        let most = (MAX_DEBT.as_secs_f64() * per_second).max(1.0);
        self.debt = (self.debt + elapsed.as_secs_f64() * per_second).min(most + 0.999);
        // A step that is due up to rounding is due.
        let steps = (self.debt + 1e-6).floor();
        self.debt -= steps;
        steps as usize
    }

    /// Forgets what is due.
    pub fn forget(&mut self) {
        self.debt = 0.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks after each of `waits` milliseconds; returns the steps of each.
    fn steps(per_second: f64, waits: &[u64]) -> Vec<usize> {
        let mut pace = Pace::default();
        waits.iter().map(|&ms| pace.due(Duration::from_millis(ms), per_second)).collect()
    }

    #[test]
    fn time_becomes_steps() {
        assert_eq!(steps(50.0, &[20, 20, 20]), [1, 1, 1]);
        assert_eq!(steps(50.0, &[10, 10, 30, 10]), [0, 1, 1, 1], "late is made up for");
        assert_eq!(steps(200.0, &[20, 22, 18]), [4, 4, 4]);
        assert_eq!(steps(12.5, &[20, 20, 20, 20, 20, 20, 20, 20]), [0, 0, 0, 1, 0, 0, 0, 1]);
        // On average exactly, whatever the waits.
        assert_eq!(steps(50.0, &[7; 1000]).iter().sum::<usize>(), 350);
    }

    #[test]
    fn sleep_is_forgotten() {
        assert_eq!(steps(50.0, &[60_000, 20]), [5, 1]);
        assert_eq!(steps(0.5, &[60_000, 1000]), [1, 1]);
        let mut pace = Pace::default();
        assert_eq!(pace.due(Duration::from_millis(15), 50.0), 0);
        pace.forget();
        assert_eq!(pace.due(Duration::from_millis(15), 50.0), 0);
    }
}

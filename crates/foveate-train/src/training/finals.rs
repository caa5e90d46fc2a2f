//! The finals: the next finalist, and the current leader.

/// The state of the finals.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finals {
    /// The finalist that is due, and its round, from 0; `None` when all rollouts are done.
    pub(super) next: Option<(usize, usize)>,
    /// The leading finalist: best mean over all its rounds, the earlier among equals. 0 before the first
    /// result.
    pub(super) leader: usize,
    /// Number of finalists' rollouts that are left.
    pub(super) left: usize,
}

/// Computes the state from `results`, the means of the finalists in the order of their rollouts.
///
/// In the first of `rounds` all finalists run, from the first to the last; after each round the better half
/// continues, rounded up, but never fewer than two.
pub(super) fn standings(finalists: usize, rounds: usize, results: &[f64]) -> Finals {
    let mut sums = vec![0.0; finalists];
    let mut alive: Vec<usize> = (0..finalists).collect();
    let mut results = results.iter();
    let mut leader = 0;
    for round in 0..rounds {
        for (number, &who) in alive.iter().enumerate() {
            let Some(result) = results.next() else {
                let rest = alive.len() - number;
                let later = later_rounds(alive.len(), rounds - round - 1);
                return Finals { next: Some((who, round)), leader, left: rest + later };
            };
            sums[who] += result;
            let mean = |who: usize| {
                let driven = if alive[..=number].contains(&who) { round + 1 } else { round };
                sums[who] / driven.max(1) as f64
            };
            // In the first round only finalists with a result can lead.
            let of = if round == 0 { &alive[..=number] } else { &alive[..] };
            leader =
                of.iter().copied().fold(of[0], |best, who| if mean(who) > mean(best) { who } else { best });
        }
        if alive.len() <= 1 {
            break;
        }
        alive.sort_by(|&a, &b| sums[b].total_cmp(&sums[a]));
        alive.truncate(half(alive.len()));
        alive.sort_unstable();
    }
    Finals { next: None, leader, left: 0 }
}

/// How many of `alive` continue.
fn half(alive: usize) -> usize {
    alive.div_ceil(2).max(2)
}

/// Number of finalists' rollouts in `rounds` further rounds after one with `alive`.
fn later_rounds(mut alive: usize, rounds: usize) -> usize {
    let mut sum = 0;
    for _ in 0..rounds {
        if alive <= 1 {
            break;
        }
        alive = half(alive);
        sum += alive;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        finalists: usize,
        rounds: usize,
        results: &[f64],
        next: Option<(usize, usize)>,
        leader: usize,
        left: usize,
    ) {
        assert_eq!(standings(finalists, rounds, results), Finals { next, leader, left });
    }

    #[test]
    fn one_round_is_a_plain_best_of() {
        check(3, 1, &[], Some((0, 0)), 0, 3);
        check(3, 1, &[5.0], Some((1, 0)), 0, 2);
        check(3, 1, &[5.0, 7.0], Some((2, 0)), 1, 1);
        check(3, 1, &[5.0, 7.0, 7.0], None, 1, 0);
        check(3, 1, &[-5.0, -7.0, -6.0], None, 0, 0);
        check(0, 1, &[], None, 0, 0);
    }

    #[test]
    fn the_better_half_drives_again_and_all_its_tracks_count() {
        check(5, 3, &[], Some((0, 0)), 0, 5 + 3 + 2);
        let first = [1.0, 5.0, 4.0, 2.0, 3.0];
        check(5, 3, &first, Some((1, 1)), 1, 3 + 2);
        // 1: (5 + 1) / 2, 2: still 4.
        check(5, 3, &[&first[..], &[1.0]].concat(), Some((2, 1)), 2, 2 + 2);
        check(5, 3, &[&first[..], &[1.0, 0.0]].concat(), Some((4, 1)), 1, 1 + 2);
        // 4: (3 + 9) / 2; out: 2.
        let second = [&first[..], &[1.0, 0.0, 9.0]].concat();
        check(5, 3, &second, Some((1, 2)), 4, 2);
        check(5, 3, &[&second[..], &[20.0, 1.0]].concat(), None, 1, 0);
        check(1, 3, &[7.0], None, 0, 0);
        check(2, 3, &[7.0, 8.0], Some((0, 1)), 1, 2 + 2);
        check(2, 2, &[7.0, 8.0, 3.0, 1.0], None, 0, 0);
    }
}

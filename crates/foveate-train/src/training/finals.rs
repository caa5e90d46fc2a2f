//! The finals: who drives next, and who leads.

/// Where the finals stand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finals {
    /// The finalist that is due, and in which round, from 0; `None` when all is driven.
    pub(super) next: Option<(usize, usize)>,
    /// The finalist that leads: best mean over all its rounds, the earlier of equals. 0 if no one has driven.
    pub(super) leader: usize,
    /// Rollouts that are left to drive, in finalists.
    pub(super) left: usize,
}

/// Makes sense of `results`, the means that the finalists reached, in the order they were driven.
///
/// In the first of `rounds` all drive, from the first to the last; after each the better half goes on, rounded up,
/// but never fewer than two.
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
            // In the first round only those who have driven can lead.
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

/// How many of `alive` go on.
fn half(alive: usize) -> usize {
    alive.div_ceil(2).max(2)
}

/// How many finalists drive in all of `rounds` further rounds after one with `alive`.
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

//! Splits the work on one large picture so that results do not depend on the number of threads.

use foveate_core::Threads;

use crate::lanes::Block;

/// Computes sums in panels. `work` writes the sums of panel 0, 1 … up to `number`, each to a place of its
/// own; these are then added in order to `sums`. With scratch space for every thread, each panel has a place
/// as long as `sums`; with a single scratch space, one place is enough.
pub(crate) fn in_panels<S: Send>(
    threads: &Threads,
    number: usize,
    scratch: &mut [S],
    places: &mut [Block],
    sums: &mut [Block],
    work: impl Fn(usize, &mut S, &mut [Block]) + Sync,
) {
    let length = sums.len();
    if scratch.len() == 1 || number == 1 {
        let place = &mut places[..length];
        for panel in 0..number {
            work(panel, &mut scratch[0], place);
            add(sums, place, panel == 0);
        }
        return;
    }
    let places = &mut places[..number * length];
    let each_takes = share(number, scratch.len(), 1, 1);
    threads.for_each(
        places.chunks_mut(each_takes * length).zip(scratch).enumerate(),
        |(part, (places, scratch))| {
            for (i, place) in places.chunks_mut(length).enumerate() {
                work(part * each_takes + i, scratch, place);
            }
        },
    );
    for (panel, place) in places.chunks(length).enumerate() {
        add(sums, place, panel == 0);
    }
}

/// Adds the sums of one panel to those of the panels before.
fn add(sums: &mut [Block], panel: &[Block], first: bool) {
    if first {
        sums.copy_from_slice(panel);
        return;
    }
    for (sum, part) in sums.iter_mut().zip(panel) {
        for (sum, part) in sum.0.iter_mut().zip(part.0) {
            *sum += part;
        }
    }
}

/// Size of the parts into which up to `threads` threads divide `all`: a multiple of `unit`, and at least
/// `least` per thread.
pub(crate) fn share(all: usize, threads: usize, least: usize, unit: usize) -> usize {
    let parts = (all / least.max(1)).clamp(1, threads.max(1));
    all.div_ceil(parts).next_multiple_of(unit).max(unit)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn parts_are_no_smaller_than_worth_a_thread() {
        for (all, threads, least, unit, want) in [
            (1000, 4, 1000, 1, 1000),
            (1999, 4, 1000, 1, 1999),
            (4000, 4, 1000, 1, 1000),
            (4001, 4, 1000, 16, 1008),
            (5, 4, 1000, 4, 8),
            (0, 4, 1000, 4, 4),
            (4000, 0, 0, 1, 4000),
        ] {
            assert_eq!(share(all, threads, least, unit), want, "{all} among {threads}");
        }
    }
}

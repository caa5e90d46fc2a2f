//! Sharing the work on one large picture among threads, so that how many there are does not show in the result.

use std::thread;

use crate::lanes::Block;

/// Runs `work` on every part, each on a thread of its own but for the last, which stays on this one. Where a thread
/// cannot be had, this one does its part as well. A single part costs nothing besides.
pub(crate) fn each<P: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) + Sync) {
    let mut parts = parts.peekable();
    let Some(mut part) = parts.next() else { return };
    if parts.peek().is_none() {
        return work(part);
    }
    thread::scope(|scope| {
        let work = &work;
        for next in parts {
            // What a thread that does not start was given would be gone, so it fetches its part.
            let (sender, receiver) = std::sync::mpsc::sync_channel(1);
            let started = thread::Builder::new().spawn_scoped(scope, move || {
                if let Ok(part) = receiver.recv() {
                    work(part);
                }
            });
            let handed = std::mem::replace(&mut part, next);
            match started {
                Ok(_) => {
                    // The receiver lives as long as its thread, which ends after it has received.
                    let _ = sender.send(handed);
                }
                Err(_) => work(handed),
            }
        }
        work(part);
    });
}

/// Sums in panels: `work` writes the sums of panel 0, 1 … up to `number`, each to a place of its own, and these are added
/// up in order in `sums`. With a desk for every thread, panels have places as long as `sums` each; with a single desk one
/// place is enough.
pub(crate) fn in_panels<D: Send>(
    number: usize,
    desks: &mut [D],
    places: &mut [Block],
    sums: &mut [Block],
    work: impl Fn(usize, &mut D, &mut [Block]) + Sync,
) {
    let length = sums.len();
    if desks.len() == 1 || number == 1 {
        let place = &mut places[..length];
        for panel in 0..number {
            work(panel, &mut desks[0], place);
            add(sums, place, panel == 0);
        }
        return;
    }
    let places = &mut places[..number * length];
    let each_takes = share(number, desks.len(), 1, 1);
    each(places.chunks_mut(each_takes * length).zip(desks).enumerate(), |(part, (places, desk))| {
        for (i, place) in places.chunks_mut(length).enumerate() {
            work(part * each_takes + i, desk, place);
        }
    });
    for (panel, place) in places.chunks(length).enumerate() {
        add(sums, place, panel == 0);
    }
}

/// Adds the sums of a panel to those of the panels before.
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

/// The size of the parts of `all`, a multiple of `unit`, when up to `threads` threads share them and none should have
/// less than `least`.
pub(crate) fn share(all: usize, threads: usize, least: usize, unit: usize) -> usize {
    let parts = (all / least.max(1)).clamp(1, threads.max(1));
    all.div_ceil(parts).next_multiple_of(unit).max(unit)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{each, share};

    #[test]
    fn every_part_is_worked_on_once() {
        for parts in [0, 1, 2, 7] {
            let seen = Mutex::new(vec![]);
            each(0..parts, |part| seen.lock().unwrap().push(part));
            let mut seen = seen.into_inner().unwrap();
            seen.sort_unstable();
            assert_eq!(seen, (0..parts).collect::<Vec<_>>());
        }
    }

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

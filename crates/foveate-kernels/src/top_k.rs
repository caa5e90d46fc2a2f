//! Finds the most important patches.

/// Up to this many are found by insertion, in one pass; for more, sorting is faster.
const BY_INSERTION: usize = 32;

/// Fills `best` with the indices of the largest `values`, largest first; equal values are ordered by index.
///
/// `scratch` is overwritten; the function allocates only if its capacity is below `values.len()`.
///
/// # Panics
/// When `best` is longer than `values`.
pub fn top_k(values: &[f32], best: &mut [u32], scratch: &mut Vec<u32>) {
    let k = best.len();
    assert!(k <= values.len(), "the best {k} of {} values", values.len());
    if k == 0 {
        return;
    }
    if k > BY_INSERTION {
        scratch.clear();
        scratch.extend(0..values.len() as u32);
        let larger_first =
            |&a: &u32, &b: &u32| values[b as usize].total_cmp(&values[a as usize]).then(a.cmp(&b));
        if k < values.len() {
            scratch.select_nth_unstable_by(k - 1, larger_first);
        }
        scratch[..k].sort_unstable_by(larger_first);
        best.copy_from_slice(&scratch[..k]);
        return;
    }
    let mut sizes = [0.0_f32; BY_INSERTION];
    let mut held = 0;
    for (chunk, of_chunk) in values.chunks(16).enumerate() {
        // Most chunks contain no candidate, and this check is fast.
        if held == k && of_chunk.iter().all(|&value| value <= sizes[k - 1]) {
            continue;
        }
        for (i, &value) in of_chunk.iter().enumerate() {
            if held == k && value <= sizes[k - 1] {
                continue;
            }
            // Strictly larger: an equal value found earlier keeps its place.
            let place = sizes[..held].iter().rposition(|&size| size >= value).map_or(0, |p| p + 1);
            held = (held + 1).min(k);
            sizes.copy_within(place..held - 1, place + 1);
            best.copy_within(place..held - 1, place + 1);
            sizes[place] = value;
            best[place] = (chunk * 16 + i) as u32;
        }
    }
}

/// Fills `best` as [`top_k`] does, for the cells of a grid of so many `columns`, `[rows, columns]`, but leaves out cells within
/// `reach` rows and columns of one that it took before. When all that are left are so near, the largest of them follow.
///
/// `values` are finite. `scratch` is overwritten; the function allocates only if its capacity is below `values.len()`.
///
/// # Panics
/// When `best` is longer than `values`, or these are no whole rows.
pub fn top_k_apart(values: &[f32], columns: usize, reach: usize, best: &mut [u32], scratch: &mut Vec<f32>) {
    let k = best.len();
    assert!(k <= values.len(), "the best {k} of {} values", values.len());
    assert!(values.len().is_multiple_of(columns.max(1)), "{} values in rows of {columns}", values.len());
    scratch.clear();
    scratch.extend_from_slice(values);
    let mut near = false;
    for i in 0..k {
        let mut at = first_largest(scratch);
        if scratch[at] == f32::NEG_INFINITY {
            near = true;
            scratch.copy_from_slice(values);
            best[..i].iter().for_each(|&taken| scratch[taken as usize] = f32::NEG_INFINITY);
            at = first_largest(scratch);
        }
        best[i] = at as u32;
        let reach = if near { 0 } else { reach };
        let (row, column) = (at / columns, at % columns);
        let (left, right) = (column.saturating_sub(reach), column.saturating_add(reach).min(columns - 1));
        let rows = row.min(reach).saturating_add(1).saturating_add(reach);
        for row in scratch.chunks_exact_mut(columns).skip(row.saturating_sub(reach)).take(rows) {
            row[left..=right].fill(f32::NEG_INFINITY);
        }
    }
}

/// The index of the largest value, the first of equal ones; 0 without values.
fn first_largest(values: &[f32]) -> usize {
    let (mut at, mut largest) = (0, f32::NEG_INFINITY);
    for (chunk, of_chunk) in values.chunks(16).enumerate() {
        // Most chunks contain none, and this check is fast.
        if of_chunk.iter().all(|&value| value <= largest) {
            continue;
        }
        for (i, &value) in of_chunk.iter().enumerate() {
            if value > largest {
                (at, largest) = (chunk * 16 + i, value);
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{top_k, top_k_apart};

    #[track_caller]
    fn check(values: &[f32], k: usize) {
        let mut want: Vec<u32> = (0..values.len() as u32).collect();
        want.sort_by(|&a, &b| values[b as usize].total_cmp(&values[a as usize])); // stable
        let mut best = vec![0; k];
        top_k(values, &mut best, &mut Vec::new());
        assert_eq!(best, want[..k], "k = {k} of {values:?}");
    }

    #[test]
    fn largest_first_and_lower_index_first() {
        check(&[1.0, 3.0, 2.0, 3.0], 3);
        check(&[0.0; 7], 7);
        check(&[5.0], 1);
        check(&[5.0], 0);
        let ties: Vec<f32> = (0..500_u32).map(|i| (i * 7919 % 13) as f32).collect();
        let rising: Vec<f32> = (0..500_u16).map(f32::from).collect();
        let falling: Vec<f32> = (0..500_u16).map(|i| -f32::from(i)).collect();
        for values in [&ties, &rising, &falling] {
            for k in [1, 2, 10, 31, 32, 33, 100, 499, 500] {
                check(values, k);
            }
        }
    }

    /// Against a search that looks at every pair.
    #[test]
    fn apart_from_each_other() {
        let (rows, columns) = (11, 23);
        let ties: Vec<f32> = (0..rows * columns).map(|i| (i * 7919 % 31) as f32).collect();
        let rising: Vec<f32> = (0..rows * columns).map(|i| i as f32 - 100.0).collect();
        for values in [&ties, &rising] {
            let mut order = vec![0; values.len()];
            top_k(values, &mut order, &mut Vec::new());
            for (reach, k) in [(0, 20), (1, 16), (2, 10), (2, 200), (5, 9), (40, 3), (usize::MAX, 253)] {
                let mut want: Vec<u32> = vec![];
                for &cell in &order {
                    let place = |cell: u32| (cell as usize / columns, cell as usize % columns);
                    let (row, column) = place(cell);
                    let near = want.iter().map(|&other| place(other));
                    if !near.clone().any(|(r, c)| r.abs_diff(row) <= reach && c.abs_diff(column) <= reach) {
                        want.push(cell);
                    }
                }
                let apart = want.clone();
                want.extend(order.iter().filter(|cell| !apart.contains(cell)));
                let mut best = vec![0; k];
                top_k_apart(values, columns, reach, &mut best, &mut Vec::new());
                assert_eq!(best, want[..k], "reach {reach}, k = {k}");
            }
        }
        top_k_apart(&[], 0, 3, &mut [], &mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "the best 3 of 2 values")]
    fn more_than_there_are() {
        top_k(&[1.0, 2.0], &mut [0; 3], &mut Vec::new());
    }
}

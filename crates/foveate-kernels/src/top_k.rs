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

#[cfg(test)]
mod tests {
    use super::top_k;

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

    #[test]
    #[should_panic(expected = "the best 3 of 2 values")]
    fn more_than_there_are() {
        top_k(&[1.0, 2.0], &mut [0; 3], &mut Vec::new());
    }
}

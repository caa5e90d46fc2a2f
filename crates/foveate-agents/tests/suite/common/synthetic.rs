//! Pictures like those of CarRacing, and weights, from whole numbers alone.

/// The next number of a linear congruential sequence (Knuth's MMIX), its best 32 bits.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 32
}

/// `count` frames of 96 × 96: chequered grass, a bending road with kerbs, a car, and a black bar below.
pub(crate) fn frames(count: usize) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(count * 96 * 96 * 3);
    for t in 0..count as i64 {
        for y in 0..96_i64 {
            // The road's middle swings to and fro with the distance ahead.
            let bend = (y + 3 * t) % 128;
            let middle = 30 + if bend < 64 { bend / 2 } else { (128 - bend) / 2 };
            for x in 0..96_i64 {
                let off = (x - middle).abs();
                rgb.extend(if y >= 84 {
                    [0, 0, 0]
                } else if (44..=51).contains(&x) && (62..=76).contains(&y) {
                    [204, 0, 0]
                } else if off < 12 {
                    [102, 102, 102]
                } else if off < 14 && (y + 3 * t) % 64 < 24 {
                    if (y + 3 * t) / 4 % 2 == 0 { [255, 255, 255] } else { [255, 0, 0] }
                } else if (x / 16 + (y + 3 * t) / 16) % 2 == 0 {
                    [102, 230, 102]
                } else {
                    [102, 204, 102]
                });
            }
        }
    }
    rgb
}

/// `count` weights in −0.8 ..= 0.8.
pub(crate) fn params(count: usize) -> Vec<f32> {
    let mut state = 1;
    (0..count).map(|_| (next(&mut state) % 1601) as f32 / 1000.0 - 0.8).collect()
}

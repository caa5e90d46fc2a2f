//! The score label: an approximation with our own digits.
//!
//! The original printed the total as `%04i` in a system font of 36 points (48 window units), with its left
//! edge at x = 20 and its centre at y = 50, in window units; four digits cover about 12 × 5 pixels.

use super::canvas::{Canvas, rgb};
use super::{PER_X, PER_Y};

/// Width of a character including the gap after it, in window units.
const ADVANCE: f64 = 30.0;
/// Width of the dot grid within a character.
const WIDTH: f64 = 25.0;
/// Height of a digit.
const HEIGHT: f64 = 36.0;
const LEFT: f64 = 20.0;
const MIDDLE: f64 = 50.0;

/// Seven rows of five dots, the lowest bit on the right.
const DIGITS: [[u8; 7]; 11] = [
    [0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
    [0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
    [0b01110, 0b10001, 0b00001, 0b00010, 0b00100, 0b01000, 0b11111],
    [0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110],
    [0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
    [0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
    [0b01110, 0b10000, 0b11110, 0b10001, 0b10001, 0b10001, 0b01110],
    [0b11111, 0b00001, 0b00010, 0b00010, 0b00100, 0b00100, 0b00100],
    [0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
    [0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110],
    [0, 0, 0, 0b01110, 0, 0, 0],
];
const MINUS: usize = 10;

/// Samples per pixel in each direction.
const SAMPLES: usize = 4;

/// Draws `score`, truncated to an integer and padded with zeros to four characters.
pub(super) fn draw(score: f64, canvas: &mut Canvas) {
    let (glyphs, length) = glyphs(score);
    let top = MIDDLE + HEIGHT / 2.0;
    let is_ink = |x: f64, y: f64| {
        let (x, y) = (x - LEFT, y - (800.0 - top));
        let (at, line) = ((x / ADVANCE).floor(), (y / (HEIGHT / 7.0)).floor());
        let dot = ((x - at * ADVANCE) / (WIDTH / 5.0)) as usize;
        let inside = (0.0..length as f64).contains(&at) && (0.0..7.0).contains(&line) && dot < 5;
        inside && DIGITS[glyphs[at as usize]][line as usize] >> (4 - dot) & 1 == 1
    };
    for row in pixels(800.0 - top, 800.0 - top + HEIGHT, PER_Y) {
        for column in pixels(LEFT, LEFT + ADVANCE * length as f64, PER_X) {
            let sample = |whole: usize, part: usize| whole as f64 + (part as f64 + 0.5) / SAMPLES as f64;
            let mut ink = 0;
            for part in 0..SAMPLES * SAMPLES {
                let (x, y) = (sample(column, part % SAMPLES), sample(row, part / SAMPLES));
                ink += usize::from(is_ink(x / PER_X, y / PER_Y));
            }
            canvas.set(column, row, rgb([(ink * 255 / (SAMPLES * SAMPLES)) as u8; 3]));
        }
    }
}

/// Pixels touched by `low..high`, window units at `per` pixels each.
fn pixels(low: f64, high: f64, per: f64) -> std::ops::Range<usize> {
    (low * per) as usize..(high * per).ceil() as usize
}

/// The characters and their number.
fn glyphs(score: f64) -> ([usize; 8], usize) {
    let whole = score.clamp(-999_999.0, 999_999.0) as i32;
    let mut digits = [0; 8];
    let (mut rest, mut length) = (whole.unsigned_abs(), 0);
    let least = if whole < 0 { 3 } else { 4 };
    while rest > 0 || length < least {
        digits[length] = (rest % 10) as usize;
        rest /= 10;
        length += 1;
    }
    if whole < 0 {
        digits[length] = MINUS;
        length += 1;
    }
    digits[..length].reverse();
    (digits, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_cut_and_filled_to_four_characters() {
        for (score, expected) in [
            (0.0, &[0, 0, 0, 0][..]),
            (-0.9, &[0, 0, 0, 0]),
            (7.99, &[0, 0, 0, 7]),
            (912.3, &[0, 9, 1, 2]),
            (12345.6, &[1, 2, 3, 4, 5]),
            (-6.5, &[MINUS, 0, 0, 6]),
            (-1234.0, &[MINUS, 1, 2, 3, 4]),
            (1e300, &[9, 9, 9, 9, 9, 9]),
            (f64::NAN, &[0, 0, 0, 0]),
        ] {
            let (glyphs, length) = glyphs(score);
            assert_eq!(&glyphs[..length], expected, "{score}");
        }
    }
}

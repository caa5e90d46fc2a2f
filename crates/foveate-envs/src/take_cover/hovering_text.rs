//! The variant with text over the screen.

use foveate_core::{Image, ImageBuf};

/// Width and height of the text image.
pub const SIZE: [usize; 2] = [360, 80];
/// Position of its upper left corner on a screen of 640 × 480.
const CORNER: [usize; 2] = [150, 30];
/// The screen size for that position.
const SCREEN: [usize; 2] = [640, 480];
const BACKGROUND: [u8; 3] = [0, 0, 255];
const LETTERS: [u8; 3] = [0, 255, 255];

/// Cyan text on a blue box, as in the published variant: exactly black pixels of the text image become
/// background; all other pixels, including the nearly black ones at the edges of letters, become letter.
///
/// On a smaller screen, position and size of the box scale with the screen; every screen pixel takes the
/// value at its centre.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoveringText {
    /// `[80, 360]`: whether a pixel is part of a letter.
    letter: Vec<bool>,
}

impl HoveringText {
    /// The text in `picture`, white on black; `None` when its size is not [`SIZE`].
    pub fn new(picture: Image<'_>) -> Option<Self> {
        if [picture.width(), picture.height()] != SIZE {
            return None;
        }
        let letter = picture.rgb().as_chunks::<3>().0.iter().map(|pixel| *pixel != [0; 3]).collect();
        Some(HoveringText { letter })
    }

    /// Draws the text over `screen`.
    pub fn draw(&self, screen: &mut ImageBuf) {
        let (width, height) = (screen.width(), screen.height());
        // The centre of a screen pixel, in pixels of the text image.
        let at = |i: usize, size: usize, axis: usize| {
            let middle = (2 * i + 1) * SCREEN[axis] / (2 * size);
            middle.checked_sub(CORNER[axis]).filter(|&at| at < SIZE[axis])
        };
        let rows = screen.rgb_mut().chunks_exact_mut(width * 3);
        for (y, row) in rows.enumerate() {
            let Some(v) = at(y, height, 1) else { continue };
            for (x, pixel) in row.as_chunks_mut::<3>().0.iter_mut().enumerate() {
                if let Some(u) = at(x, width, 0) {
                    *pixel = if self.letter[v * SIZE[0] + u] { LETTERS } else { BACKGROUND };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of one letter: a vertical stroke in columns 10 to 19 with grey edges.
    fn stroke() -> HoveringText {
        let mut picture = ImageBuf::black(SIZE[0], SIZE[1]);
        for row in picture.rgb_mut().chunks_exact_mut(SIZE[0] * 3) {
            row[30..60].fill(255);
            row[27..30].fill(1);
        }
        HoveringText::new(picture.as_image()).expect("its size is right")
    }

    #[test]
    fn it_lies_where_it_was_published() {
        let mut screen = ImageBuf::black(640, 480);
        screen.rgb_mut().fill(7);
        stroke().draw(&mut screen);
        for (i, pixel) in screen.rgb().as_chunks::<3>().0.iter().enumerate() {
            let (x, y) = (i % 640, i / 640);
            let expect = match (x, y) {
                (159..170, 30..110) => LETTERS,
                (150..510, 30..110) => BACKGROUND,
                _ => [7; 3],
            };
            assert_eq!(*pixel, expect, "column {x}, row {y}");
        }
    }

    #[test]
    fn it_shrinks_with_the_screen() {
        for (width, height) in [(320, 240), (160, 120), (200, 150), (1, 1)] {
            let mut screen = ImageBuf::black(width, height);
            screen.rgb_mut().fill(7);
            stroke().draw(&mut screen);
            let count = |color: [u8; 3]| {
                screen.rgb().as_chunks::<3>().0.iter().filter(|pixel| **pixel == color).count()
            };
            let blue = count(BACKGROUND) + count(LETTERS);
            let share = blue as f64 / (width * height) as f64;
            let expect = if width > 1 { (360.0 * 80.0) / (640.0 * 480.0) } else { 0.0 };
            assert!((share - expect).abs() < 0.01, "{width}x{height}: {share}");
        }
    }

    #[test]
    fn other_sizes_are_refused() {
        assert_eq!(HoveringText::new(ImageBuf::black(80, 360).as_image()), None);
    }
}

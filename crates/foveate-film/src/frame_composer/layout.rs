//! Positions of all parts of a frame.

use crate::{FilmError, Rect};

/// The frame size for which the layout is defined.
pub(super) const WIDTH: usize = 1072;
pub(super) const HEIGHT: usize = 544;

const MIN: (usize, usize) = (320, 160);
const MAX: (usize, usize) = (3840, 2160);

/// Positions in pixels of the frame.
pub(super) struct Layout {
    /// Pixels per unit of the layout.
    pub(super) scale: f32,
    /// Radius of the corners.
    pub(super) radius: f32,
    pub(super) world: Rect,
    pub(super) seen: Rect,
    pub(super) curve: Rect,
    /// The box shared by all dials.
    pub(super) dials: Rect,
    /// Top of the capitals of the titles.
    pub(super) title_y: f32,
    /// Left edge of the readouts.
    pub(super) readout_x: f32,
    /// Top of the capitals of the readouts' names.
    pub(super) readout_y: f32,
}

impl Layout {
    /// Scales the layout to a frame; a frame with another aspect ratio gets empty margins.
    pub(super) fn new(width: usize, height: usize) -> Result<Self, FilmError> {
        let in_range = (MIN.0..=MAX.0).contains(&width) && (MIN.1..=MAX.1).contains(&height);
        if !in_range || width % 2 == 1 || height % 2 == 1 {
            return Err(FilmError::Size {
                format: "film",
                width,
                height,
                min_width: MIN.0,
                min_height: MIN.1,
                max_width: MAX.0,
                max_height: MAX.1,
            });
        }
        let scale = (width as f32 / WIDTH as f32).min(height as f32 / HEIGHT as f32);
        let left = (width as f32 - WIDTH as f32 * scale) / 2.0;
        let top = (height as f32 - HEIGHT as f32 * scale) / 2.0;
        let x = |units: f32| (left + units * scale).round() as usize;
        let y = |units: f32| (top + units * scale).round() as usize;
        let rect = |l: f32, t: f32, w: f32, h: f32| Rect {
            x: x(l),
            y: y(t),
            width: x(l + w) - x(l),
            height: y(t + h) - y(t),
        };
        Ok(Layout {
            scale,
            radius: 8.0 * scale,
            world: rect(16.0, 48.0, 640.0, 432.0),
            seen: rect(672.0, 48.0, 384.0, 384.0),
            curve: rect(304.0, 492.0, 352.0, 36.0),
            dials: rect(672.0, 444.0, 384.0, 88.0),
            title_y: top + 21.0 * scale,
            readout_x: left + 16.0 * scale,
            readout_y: top + 493.0 * scale,
        })
    }
}

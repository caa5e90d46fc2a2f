//! Errors of films.

/// Errors of films.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilmError {
    /// The size is unsupported for a composed or encoded picture.
    #[error(
        "{format} pictures are {min_width}x{min_height} to {max_width}x{max_height} pixels, {width}x{height} was asked for; choose another size"
    )]
    Size {
        /// Format or picture to be made.
        format: &'static str,
        /// Requested width.
        width: usize,
        /// Requested height.
        height: usize,
        /// Smallest width.
        min_width: usize,
        /// Smallest height.
        min_height: usize,
        /// Largest width.
        max_width: usize,
        /// Largest height.
        max_height: usize,
    },
    /// The size of a frame differs from that of the film.
    #[error("a frame of {width}x{height} pixels does not fit a film of {film_width}x{film_height}")]
    FrameSize {
        /// Width of the frame.
        width: usize,
        /// Height of the frame.
        height: usize,
        /// Width of the film.
        film_width: usize,
        /// Height of the film.
        film_height: usize,
    },
    /// The frame rate is outside the range that players support.
    #[error("{fps} frames per second cannot be filmed; choose 1 to 240")]
    FrameRate {
        /// Requested frame rate.
        fps: f64,
    },
    /// The film has no frames.
    #[error("the film has no frame; take at least one before finishing it")]
    Empty,
    /// The film exceeds the limits of its format.
    #[error(
        "the film exceeds the 4 GiB that this {format} file can hold, after {frames} frames; film fewer steps or a smaller size"
    )]
    TooLong {
        /// The format.
        format: &'static str,
        /// Frames so far.
        frames: usize,
    },
    /// A film cannot be read.
    #[error("{why}; give a good GIF file")]
    Unreadable {
        /// What is wrong with it.
        why: String,
    },
    /// The PNG encoder failed.
    #[error("encoding the picture as PNG failed: {0}")]
    Png(#[from] png::EncodingError),
    /// The GIF encoder failed.
    #[error("encoding the film as GIF failed: {0}")]
    Gif(#[from] gif::EncodingError),
}

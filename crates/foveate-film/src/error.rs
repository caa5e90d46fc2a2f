//! What can go wrong with a film.

/// What can go wrong with a film.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilmError {
    /// A picture of this size cannot be composed or encoded.
    #[error(
        "{format} pictures are {min_width}x{min_height} to {max_width}x{max_height} pixels, {width}x{height} was asked for; choose another size"
    )]
    Size {
        /// What was to be made.
        format: &'static str,
        /// Width asked for.
        width: usize,
        /// Height asked for.
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
    /// A frame of another size than the film's.
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
    /// A frame rate that no player shows.
    #[error("{fps} frames per second cannot be filmed; choose 1 to 240")]
    FrameRate {
        /// The rate asked for.
        fps: f64,
    },
    /// A film without a frame.
    #[error("the film has no frame; take at least one before finishing it")]
    Empty,
    /// A film that its format cannot hold.
    #[error(
        "the film exceeds the 4 GiB that this {format} file can hold, after {frames} frames; film fewer steps or a smaller size"
    )]
    TooLong {
        /// The format.
        format: &'static str,
        /// Frames so far.
        frames: usize,
    },
    /// The PNG encoder failed.
    #[error("encoding the picture as PNG failed: {0}")]
    Png(#[from] png::EncodingError),
    /// The GIF encoder failed.
    #[error("encoding the film as GIF failed: {0}")]
    Gif(#[from] gif::EncodingError),
}

//! What can be wrong with a scene, a texture or a picture.

/// Why a picture or a texture cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// A picture without pixels, or a larger one than the renderer makes.
    #[error("a picture of {width}x{height} px cannot be drawn; each side must be 1 to {largest} px")]
    PictureSize {
        /// Width asked for, in pixels.
        width: usize,
        /// Height asked for, in pixels.
        height: usize,
        /// Longest side that can be drawn.
        largest: usize,
    },
    /// The caller's buffer has another length than the picture.
    #[error("the buffer has {actual} bytes, but a picture of {width}x{height} px takes {expected}")]
    BufferSize {
        /// Width of the picture, in pixels.
        width: usize,
        /// Height of the picture, in pixels.
        height: usize,
        /// Bytes of the picture.
        expected: usize,
        /// Bytes of the buffer.
        actual: usize,
    },
    /// The camera has a number that is not finite, or no field of view, or its vectors do not span a picture.
    #[error(
        "the camera at {position:?} looking along {forward:?} with up = {up:?}, half height {half_height}, near {near} and far {far} \
         spans no picture; its numbers must be finite, its half height and near positive, and forward and up must not be parallel"
    )]
    Camera {
        /// Position in the world.
        position: [f32; 3],
        /// Viewing direction.
        forward: [f32; 3],
        /// Direction of the picture's top.
        up: [f32; 3],
        /// Half the picture's height at distance 1.
        half_height: f32,
        /// Distance of the near clipping plane.
        near: f32,
        /// Distance of the far clipping plane.
        far: f32,
    },
    /// More geoms or lights than the renderer accepts.
    #[error("a scene of {actual} {what} cannot be drawn; at most {largest} are supported")]
    TooMany {
        /// Which of the scene's lists is too long.
        what: &'static str,
        /// Its length.
        actual: usize,
        /// The longest list that is drawn.
        largest: usize,
    },
    /// A texture's side is zero or too large.
    #[error("a cube map with faces of {side} px cannot be made; the side must be 1 to {largest} px")]
    TextureSide {
        /// The side asked for, in texels.
        side: usize,
        /// The largest side.
        largest: usize,
    },
    /// A texture's bytes do not fit its size.
    #[error("the texture has {actual} bytes, but {faces} faces of {side}x{side} px take {expected}")]
    TextureBytes {
        /// Number of faces in the bytes.
        faces: usize,
        /// Side of a face, in texels.
        side: usize,
        /// Bytes that these faces take.
        expected: usize,
        /// Bytes that were given.
        actual: usize,
    },
}

//! Pictures: rows from the top, pixels from the left, bytes R, G, B.

/// A borrowed RGB picture, `[height, width, 3]` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Image<'a> {
    width: usize,
    height: usize,
    rgb: &'a [u8],
}

impl<'a> Image<'a> {
    /// Wraps `rgb`, `[height, width, 3]`; `None` when its length is not `height * width * 3`.
    pub fn new(width: usize, height: usize, rgb: &'a [u8]) -> Option<Self> {
        let bytes = width.checked_mul(height)?.checked_mul(3)?;
        (rgb.len() == bytes).then_some(Image { width, height, rgb })
    }

    /// Width in pixels.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub const fn height(&self) -> usize {
        self.height
    }

    /// The bytes, `[height, width, 3]`.
    pub const fn rgb(&self) -> &'a [u8] {
        self.rgb
    }

    /// The pixel at column `x`, row `y` from the top.
    pub fn pixel(&self, x: usize, y: usize) -> [u8; 3] {
        let at = (y * self.width + x) * 3;
        [self.rgb[at], self.rgb[at + 1], self.rgb[at + 2]]
    }
}

/// An owned RGB picture, `[height, width, 3]` bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageBuf {
    width: usize,
    height: usize,
    rgb: Vec<u8>,
}

impl ImageBuf {
    /// A black picture.
    pub fn black(width: usize, height: usize) -> Self {
        ImageBuf { width, height, rgb: vec![0; width * height * 3] }
    }

    /// Takes `rgb`, `[height, width, 3]`; `None` when its length is not `height * width * 3`.
    pub fn from_rgb(width: usize, height: usize, rgb: Vec<u8>) -> Option<Self> {
        Image::new(width, height, &rgb)?;
        Some(ImageBuf { width, height, rgb })
    }

    /// Width in pixels.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Height in pixels.
    pub const fn height(&self) -> usize {
        self.height
    }

    /// The bytes, `[height, width, 3]`.
    pub fn rgb(&self) -> &[u8] {
        &self.rgb
    }

    /// The bytes, `[height, width, 3]`, to draw into.
    pub fn rgb_mut(&mut self) -> &mut [u8] {
        &mut self.rgb
    }

    /// The picture, borrowed.
    pub fn as_image(&self) -> Image<'_> {
        Image { width: self.width, height: self.height, rgb: &self.rgb }
    }
}

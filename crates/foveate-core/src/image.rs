//! RGB images: rows from the top, pixels from the left, bytes R, G, B.

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

    /// Wraps owned bytes `rgb`, `[height, width, 3]`; `None` when the length is not `height * width * 3`.
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

    /// The bytes, `[height, width, 3]`, mutable.
    pub fn rgb_mut(&mut self) -> &mut [u8] {
        &mut self.rgb
    }

    /// Draws `picture` at the largest size that fits, centred on black, without smoothing.
    pub fn fit(&mut self, picture: Image<'_>) {
        let (from, to) = ((picture.width, picture.height), (self.width, self.height));
        self.rgb.fill(0);
        if from.0 == 0 || from.1 == 0 {
            return;
        }
        // One side fills the space; the other one keeps the aspect ratio.
        let wide = from.0 * to.1 >= to.0 * from.1;
        let size = if wide {
            (to.0, (from.1 * to.0 / from.0).max(1))
        } else {
            ((from.0 * to.1 / from.1).max(1), to.1)
        };
        let left = (to.0.saturating_sub(size.0)) / 2;
        let top = (to.1.saturating_sub(size.1)) / 2;
        for y in 0..size.1.min(to.1) {
            for x in 0..size.0.min(to.0) {
                let pixel = picture.pixel(x * from.0 / size.0, y * from.1 / size.1);
                let at = ((top + y) * to.0 + left + x) * 3;
                self.rgb[at..at + 3].copy_from_slice(&pixel);
            }
        }
    }

    /// Borrows the picture.
    pub fn as_image(&self) -> Image<'_> {
        Image { width: self.width, height: self.height, rgb: &self.rgb }
    }
}

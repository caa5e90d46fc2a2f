//! Still pictures as PNG.

use foveate_core::Image;

use crate::FilmError;

/// Encodes `image` as a PNG file, optimised for size, not speed.
///
/// # Errors
/// When the picture is empty.
pub fn encode_png(image: Image<'_>) -> Result<Vec<u8>, FilmError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, image.width() as u32, image.height() as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    // The colour space of the bytes: sRGB.
    encoder.set_source_srgb(png::SrgbRenderingIntent::Perceptual);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(image.rgb())?;
    writer.finish()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decoder_gets_the_same_pixels_back() {
        let rgb: Vec<u8> = (0..7 * 5 * 3).map(|i| (i * 37 % 256) as u8).collect();
        let file = encode_png(Image::new(7, 5, &rgb).expect("sizes agree")).expect("a plain picture");
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG file");
        let mut out = vec![0; reader.output_buffer_size().expect("small")];
        let info = reader.next_frame(&mut out).expect("one frame");
        assert_eq!((info.width, info.height, info.color_type), (7, 5, png::ColorType::Rgb));
        assert_eq!(out, rgb);
    }

    #[test]
    fn an_empty_picture_is_an_error() {
        assert!(matches!(encode_png(Image::new(0, 4, &[]).expect("no bytes")), Err(FilmError::Png(_))));
    }
}

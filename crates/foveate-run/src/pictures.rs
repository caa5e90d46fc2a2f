//! Pictures from a folder, a film or a file, for the `video` variant and for shifts of the background.

use std::borrow::Cow;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use foveate_core::ImageBuf;
use foveate_envs::registry::Films;
use foveate_film::{FilmLimits, gif_frames};
use png::{ColorType, Decoder, Limits, Transformations};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::error::RunError;
use crate::input;

/// More pictures are rejected.
pub const MAX_PICTURES: usize = 10_000;
/// Pictures with a larger width or height are rejected.
pub const MAX_SIDE: u32 = 8192;
/// Pictures that need more bytes in total are all halved in width and height, as often as it takes.
pub const MAX_BYTES: usize = 1 << 30;
/// So are those that need more than this and are nearly empty: than this many bytes for each byte of their files. Photographs
/// need less.
const MAX_EMPTY: usize = 64 << 20;
const MAX_RATIO: u64 = 64;

/// How many bytes the pictures of files of `bytes` bytes in all may need.
fn room(bytes: u64) -> usize {
    (MAX_EMPTY as u64).saturating_add(bytes.saturating_mul(MAX_RATIO)).min(MAX_BYTES as u64) as usize
}

/// Reads the pictures of a film: every PNG and JPEG of a folder, in the order of the numbers in their names (`2.png` comes before
/// `10.png`), or the frames of a GIF.
///
/// Gray becomes RGB, 16 bits become 8, and transparency is ignored. Pictures of more than [`MAX_BYTES`] together are made smaller,
/// and so are pictures of much less if hardly anything is in their files.
///
/// # Errors
/// When `path` is neither, or cannot be read, when it holds no picture, or more than is [allowed](MAX_PICTURES), or a picture is
/// broken.
pub fn load_film(path: &Path) -> Result<Vec<ImageBuf>, RunError> {
    Ok(read_films(&[path.to_path_buf()], room)?.swap_remove(0))
}

/// Reads films: that of [`load_film`], or, where `path` is a folder without pictures of its own and `most` is above 1, those of its
/// folders, of the first `most` in the order of their names, numbers as above.
///
/// # Errors
/// As [`load_film`]; what is allowed is allowed for all films together.
pub fn load_films(path: &Path, most: usize) -> Result<Films, RunError> {
    let mut films = vec![path.to_path_buf()];
    if most > 1 && fs::metadata(path).is_ok_and(|file| file.is_dir()) && pictures_in(path)?.is_empty() {
        let mut folders = vec![];
        for entry in fs::read_dir(path).map_err(RunError::io("read", path))? {
            let entry = entry.map_err(RunError::io("read", path))?;
            if entry.file_type().map_err(RunError::io("read", path))?.is_dir() {
                folders.push(entry.path());
            }
        }
        folders.sort_by_cached_key(|path| natural(path));
        folders.truncate(most);
        if !folders.is_empty() {
            films = folders;
        }
    }
    Ok(read_films(&films, room)?.into_iter().map(Arc::new).collect())
}

/// Reads films, each a folder of pictures or a GIF; together they need no more than `room` of the bytes of their files.
fn read_films(films: &[PathBuf], room: fn(u64) -> usize) -> Result<Vec<Vec<ImageBuf>>, RunError> {
    let of = |path: &Path| {
        let path = path.to_path_buf();
        move |why| RunError::Picture { path, why }
    };
    let mut folders = vec![];
    // Sizes first: no picture is unpacked before it is known how small all of them become.
    let (mut sizes, mut bytes) = (vec![], 0);
    for film in films {
        if !fs::metadata(film).map_err(RunError::io("read", film))?.is_dir() {
            let file = whole(film, "GIF").map_err(of(film))?;
            let mut kept = Kept::new(0, room(file.len() as u64));
            load_gif(&file, |picture| kept.keep(Cow::Borrowed(picture))).map_err(of(film))?;
            return Ok(vec![kept.pictures]);
        }
        let mut paths = pictures_in(film)?;
        if paths.is_empty() {
            let why = "the folder holds no *.png or *.jpg; put the pictures there, named by number";
            return Err(of(film)(why.into()));
        }
        if sizes.len() + paths.len() > MAX_PICTURES {
            let why = format!(
                "{} pictures, at most {MAX_PICTURES} in all; thin them out",
                sizes.len() + paths.len()
            );
            return Err(of(film)(why));
        }
        paths.sort_by_cached_key(|path| natural(path));
        for path in &paths {
            let (size, length) = size_of(path).map_err(of(path))?;
            sizes.push(size);
            bytes += length;
        }
        folders.push(paths);
    }
    let room = room(bytes);
    let fits = |halvings: &u32| sizes.iter().map(|size| needs(*size, *halvings)).sum::<usize>() <= room;
    let halvings = (0..MAX_HALVINGS).find(fits).unwrap_or(MAX_HALVINGS);
    let mut films = vec![];
    for paths in folders {
        let mut kept = Kept::new(halvings, usize::MAX);
        for path in paths {
            kept.keep(Cow::Owned(load_file(&path)?));
        }
        films.push(kept.pictures);
    }
    Ok(films)
}

/// After so many halvings every picture is one pixel.
const MAX_HALVINGS: u32 = MAX_SIDE.ilog2();

/// The pictures of a film.
struct Kept {
    pictures: Vec<ImageBuf>,
    /// How often each is halved.
    halvings: u32,
    /// Bytes of all pixels, and the most of them.
    bytes: usize,
    room: usize,
}

impl Kept {
    const fn new(halvings: u32, room: usize) -> Self {
        Kept { pictures: vec![], halvings, bytes: 0, room }
    }

    /// Adds a picture. All are halved until they fit; those of one pixel do.
    fn keep(&mut self, picture: Cow<'_, ImageBuf>) {
        while self.bytes + needs([picture.width(), picture.height()], self.halvings) > self.room
            && self.halvings < MAX_HALVINGS
        {
            self.halvings += 1;
            self.bytes = 0;
            for picture in &mut self.pictures {
                *picture = halved(picture);
                self.bytes += picture.rgb().len();
            }
        }
        let small = (0..self.halvings).fold(picture, |picture, _| Cow::Owned(halved(&picture)));
        self.bytes += small.rgb().len();
        self.pictures.push(small.into_owned());
    }
}

/// The bytes of a picture of this width and height after it was halved so often.
fn needs(size: [usize; 2], halvings: u32) -> usize {
    3 * size.map(|side| side.div_ceil(1 << halvings)).iter().product::<usize>()
}

/// The picture with half the width and height, rounded up: means of up to 2 x 2 pixels.
fn halved(picture: &ImageBuf) -> ImageBuf {
    let (width, height) = (picture.width(), picture.height());
    let from = picture.as_image();
    let mut small = ImageBuf::black(width.div_ceil(2), height.div_ceil(2));
    let columns = small.width();
    for (i, rgb) in small.rgb_mut().chunks_exact_mut(3).enumerate() {
        let (x, y) = (2 * (i % columns), 2 * (i / columns));
        let (beside, below) = ((x + 1).min(width - 1), (y + 1).min(height - 1));
        let of = [(x, y), (beside, y), (x, below), (beside, below)].map(|(x, y)| from.pixel(x, y));
        for (channel, byte) in rgb.iter_mut().enumerate() {
            *byte = (of.iter().map(|pixel| u32::from(pixel[channel])).sum::<u32>() / 4) as u8;
        }
    }
    small
}

/// The PNG and JPEG files of a folder.
fn pictures_in(path: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut paths = vec![];
    for entry in fs::read_dir(path).map_err(RunError::io("read", path))? {
        let path = entry.map_err(RunError::io("read", path))?.path();
        if path.extension().is_some_and(|ext| PICTURES.iter().any(|known| ext.eq_ignore_ascii_case(known))) {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// How names of pictures end.
const PICTURES: [&str; 3] = ["png", "jpg", "jpeg"];

/// Shows the frames of a GIF to `each`.
fn load_gif(bytes: &[u8], each: impl FnMut(&ImageBuf)) -> Result<(), String> {
    if !bytes.starts_with(b"GIF8") {
        return Err("this is no GIF; give a GIF, or a folder of pictures, which \"ffmpeg -i FILM FOLDER/%d.png\" makes of other \
                    films"
            .into());
    }
    let limits = FilmLimits { frames: MAX_PICTURES, side: MAX_SIDE as usize, bytes: MAX_BYTES };
    gif_frames(bytes, limits, each).map_err(|error| error.to_string())
}

/// Reads a PNG or JPEG file.
///
/// # Errors
/// When the file cannot be read, is neither, is broken, or is larger than is [allowed](MAX_SIDE).
pub fn load_file(path: &Path) -> Result<ImageBuf, RunError> {
    let load = |path| {
        let bytes = whole(path, KINDS)?;
        if bytes.starts_with(&JPEG) { load_jpeg(&bytes) } else { load_png(&bytes) }
    };
    load(path).map_err(|why| RunError::Picture { path: path.to_path_buf(), why })
}

/// The width and height of a PNG or JPEG file, which only its header is read for, and the size of the file.
fn size_of(path: &Path) -> Result<([usize; 2], u64), String> {
    let bytes = whole(path, KINDS)?;
    let size = if bytes.starts_with(&JPEG) {
        jpeg_header(&mut jpeg(&bytes))?
    } else {
        let info = png_header(&bytes)?;
        [info.info().width, info.info().height].map(|side| side as usize)
    };
    Ok((size, bytes.len() as u64))
}

/// How every JPEG file begins.
const JPEG: [u8; 3] = [0xff, 0xd8, 0xff];
const KINDS: &str = "PNG or JPEG";
/// Larger files are rejected.
const MAX_FILE: u64 = 256 << 20;

/// The bytes of a file.
fn whole(path: &Path, kind: &str) -> Result<Vec<u8>, String> {
    let read = input::open(path).and_then(|file| input::read_open(file, MAX_FILE));
    read.map_err(|error| format!("{error}; give a good {kind} file"))?
        .map_err(|size| format!("{size} bytes, at most {MAX_FILE}; make it shorter or smaller"))
}

fn bad_jpeg(error: &dyn std::fmt::Display) -> String {
    let error = error.to_string();
    format!("{}; give a good JPEG file", error.lines().next().unwrap_or_default())
}

fn jpeg(bytes: &[u8]) -> JpegDecoder<ZCursor<&[u8]>> {
    // The limits are checked when the header is read, before memory is taken.
    let side = MAX_SIDE as usize;
    let options = DecoderOptions::default()
        .set_max_width(side)
        .set_max_height(side)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    JpegDecoder::new_with_options(ZCursor::new(bytes), options)
}

fn jpeg_header(decoder: &mut JpegDecoder<ZCursor<&[u8]>>) -> Result<[usize; 2], String> {
    decoder.decode_headers().map_err(|e| bad_jpeg(&e))?;
    let (width, height) = decoder.dimensions().ok_or_else(|| bad_jpeg(&"it has no size"))?;
    Ok([width, height])
}

fn load_jpeg(bytes: &[u8]) -> Result<ImageBuf, String> {
    let mut decoder = jpeg(bytes);
    let [width, height] = jpeg_header(&mut decoder)?;
    let rgb = decoder.decode().map_err(|e| bad_jpeg(&e))?;
    ImageBuf::from_rgb(width, height, rgb).ok_or_else(|| bad_jpeg(&"it is not a picture in colour or grey"))
}

/// A sort key that compares runs of digits as numbers.
fn natural(path: &Path) -> (Vec<(String, u128)>, PathBuf) {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut key = vec![];
    let mut rest = name.as_str();
    while !rest.is_empty() {
        let digits_at = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(digits_at);
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (digits, tail) = tail.split_at(end);
        key.push((text.to_owned(), digits.parse().unwrap_or(u128::MAX)));
        rest = tail;
    }
    (key, path.to_path_buf())
}

fn bad_png(error: &dyn std::fmt::Display) -> String {
    format!("{error}; give a good PNG file")
}

fn png_header(bytes: &[u8]) -> Result<png::Reader<Cursor<&[u8]>>, String> {
    let mut decoder = Decoder::new_with_limits(Cursor::new(bytes), Limits { bytes: MAX_BYTES });
    decoder.set_transformations(Transformations::normalize_to_color8());
    let reader = decoder.read_info().map_err(|e| bad_png(&e))?;
    let (width, height) = (reader.info().width, reader.info().height);
    if width > MAX_SIDE || height > MAX_SIDE {
        let most = format!("at most {MAX_SIDE}x{MAX_SIDE}; make the picture smaller");
        return Err(format!("{width}x{height} pixels, {most}"));
    }
    Ok(reader)
}

fn load_png(bytes: &[u8]) -> Result<ImageBuf, String> {
    let mut reader = png_header(bytes)?;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let size = reader.output_buffer_size().ok_or_else(|| bad_png(&"too large"))?;
    let mut raw = vec![0; size];
    let frame = reader.next_frame(&mut raw).map_err(|e| bad_png(&e))?;
    raw.truncate(frame.buffer_size());
    let rgb = match frame.color_type {
        ColorType::Rgb => raw,
        ColorType::Rgba => {
            // In place: the largest pictures are a quarter of a gigabyte.
            for pixel in 0..raw.len() / 4 {
                raw.copy_within(4 * pixel..4 * pixel + 3, 3 * pixel);
            }
            raw.truncate(raw.len() / 4 * 3);
            raw
        }
        ColorType::Grayscale => raw.iter().flat_map(|&p| [p; 3]).collect(),
        ColorType::GrayscaleAlpha => raw.chunks_exact(2).flat_map(|p| [p[0]; 3]).collect(),
        ColorType::Indexed => return Err(bad_png(&"its palette was not expanded")),
    };
    ImageBuf::from_rgb(width, height, rgb).ok_or_else(|| bad_png(&"its size is wrong"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(color: ColorType, depth: png::BitDepth, width: u32, data: &[u8]) -> Vec<u8> {
        let mut out = vec![];
        let mut encoder = png::Encoder::new(&mut out, width, 1);
        encoder.set_color(color);
        encoder.set_depth(depth);
        let mut writer = encoder.write_header().expect("memory takes bytes");
        writer.write_image_data(data).expect("memory takes bytes");
        writer.finish().expect("memory takes bytes");
        out
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, bytes) in files {
            fs::write(dir.path().join(name), bytes).expect("writable");
        }
        dir
    }

    #[test]
    fn numbers_in_names_give_the_order_and_every_colour_type_becomes_rgb() {
        use png::BitDepth::{Eight, One, Sixteen};
        let dir = folder(&[
            ("10.png", &png(ColorType::Rgb, Eight, 2, &[1, 2, 3, 4, 5, 6])),
            ("9.png", &png(ColorType::Rgba, Eight, 1, &[7, 8, 9, 0])),
            ("1.PNG", &png(ColorType::Grayscale, One, 2, &[0b0100_0000])),
            ("100.png", &png(ColorType::GrayscaleAlpha, Eight, 1, &[5, 1])),
            ("11.png", &png(ColorType::Rgb, Sixteen, 1, &[1, 99, 2, 99, 3, 99])),
            ("101.jpg", JPEG_FILE),
            ("notes.txt", b"no picture"),
        ]);
        let pictures = load_film(dir.path()).expect("good pictures");
        let (jpeg, pictures) = pictures.split_last().expect("pictures");
        assert_eq!((jpeg.width(), jpeg.height()), (16, 8));
        let rgb: Vec<&[u8]> = pictures.iter().map(ImageBuf::rgb).collect();
        assert_eq!(
            rgb,
            [&[0, 0, 0, 255, 255, 255][..], &[7, 8, 9], &[1, 2, 3, 4, 5, 6], &[1, 2, 3], &[5, 5, 5]]
        );
    }

    /// A JPEG file of 16 x 8 pixels, the left half red, the right half blue.
    const JPEG_FILE: &[u8] = &[
        255, 216, 255, 224, 0, 16, 74, 70, 73, 70, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0, 255, 219, 0, 67, 0, 3, 2, 2,
        3, 2, 2, 3, 3, 3, 3, 4, 3, 3, 4, 5, 8, 5, 5, 4, 4, 5, 10, 7, 7, 6, 8, 12, 10, 12, 12, 11, 10, 11, 11,
        13, 14, 18, 16, 13, 14, 17, 14, 11, 11, 16, 22, 16, 17, 19, 20, 21, 21, 21, 12, 15, 23, 24, 22, 20,
        24, 18, 20, 21, 20, 255, 219, 0, 67, 1, 3, 4, 4, 5, 4, 5, 9, 5, 5, 9, 20, 13, 11, 13, 20, 20, 20, 20,
        20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20,
        20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 20, 255, 192, 0, 17,
        8, 0, 8, 0, 16, 3, 1, 17, 0, 2, 17, 1, 3, 17, 1, 255, 196, 0, 31, 0, 0, 1, 5, 1, 1, 1, 1, 1, 1, 0, 0,
        0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255, 196, 0, 181, 16, 0, 2, 1, 3, 3, 2, 4, 3, 5,
        5, 4, 4, 0, 0, 1, 125, 1, 2, 3, 0, 4, 17, 5, 18, 33, 49, 65, 6, 19, 81, 97, 7, 34, 113, 20, 50, 129,
        145, 161, 8, 35, 66, 177, 193, 21, 82, 209, 240, 36, 51, 98, 114, 130, 9, 10, 22, 23, 24, 25, 26, 37,
        38, 39, 40, 41, 42, 52, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83, 84, 85, 86, 87,
        88, 89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121, 122, 131, 132,
        133, 134, 135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152, 153, 154, 162, 163, 164, 165, 166,
        167, 168, 169, 170, 178, 179, 180, 181, 182, 183, 184, 185, 186, 194, 195, 196, 197, 198, 199, 200,
        201, 202, 210, 211, 212, 213, 214, 215, 216, 217, 218, 225, 226, 227, 228, 229, 230, 231, 232, 233,
        234, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 255, 196, 0, 31, 1, 0, 3, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 255, 196, 0, 181, 17, 0, 2, 1, 2, 4, 4, 3,
        4, 7, 5, 4, 4, 0, 1, 2, 119, 0, 1, 2, 3, 17, 4, 5, 33, 49, 6, 18, 65, 81, 7, 97, 113, 19, 34, 50,
        129, 8, 20, 66, 145, 161, 177, 193, 9, 35, 51, 82, 240, 21, 98, 114, 209, 10, 22, 36, 52, 225, 37,
        241, 23, 24, 25, 26, 38, 39, 40, 41, 42, 53, 54, 55, 56, 57, 58, 67, 68, 69, 70, 71, 72, 73, 74, 83,
        84, 85, 86, 87, 88, 89, 90, 99, 100, 101, 102, 103, 104, 105, 106, 115, 116, 117, 118, 119, 120, 121,
        122, 130, 131, 132, 133, 134, 135, 136, 137, 138, 146, 147, 148, 149, 150, 151, 152, 153, 154, 162,
        163, 164, 165, 166, 167, 168, 169, 170, 178, 179, 180, 181, 182, 183, 184, 185, 186, 194, 195, 196,
        197, 198, 199, 200, 201, 202, 210, 211, 212, 213, 214, 215, 216, 217, 218, 226, 227, 228, 229, 230,
        231, 232, 233, 234, 242, 243, 244, 245, 246, 247, 248, 249, 250, 255, 218, 0, 12, 3, 1, 0, 2, 17, 3,
        17, 0, 63, 0, 249, 210, 191, 12, 63, 213, 51, 192, 171, 253, 198, 63, 199, 67, 255, 217,
    ];

    #[test]
    fn files_are_png_or_jpeg_whatever_their_name() {
        let good = png(ColorType::Rgb, png::BitDepth::Eight, 2, &[1, 2, 3, 4, 5, 6]);
        let mut wide = JPEG_FILE.to_vec();
        let size = wide.windows(2).position(|pair| pair == [0xff, 0xc0]).expect("a frame header");
        wide[size + 5..size + 9].copy_from_slice(&[0xff, 0xff, 0xff, 0xff]);
        let mut bomb = JPEG_FILE.to_vec();
        bomb[size + 5..size + 9].copy_from_slice(&[0x1f, 0x00, 0x1f, 0x00]);
        let dir = folder(&[
            ("a.jpg", JPEG_FILE),
            ("b.jpg", &good),
            ("cut.jpg", &JPEG_FILE[..size + 12]),
            ("wide.jpg", &wide),
            ("bomb.jpg", &bomb),
            ("text.jpg", b"nothing"),
            ("empty.jpg", b""),
        ]);
        let load = |name: &str| load_file(&dir.path().join(name));
        let picture = load("a.jpg").expect("a JPEG");
        assert_eq!((picture.width(), picture.height()), (16, 8));
        let [left, right] = [2, 13].map(|x| picture.as_image().pixel(x, 4));
        assert!(left[0] > 240 && left[2] < 16 && right[2] > 240 && right[0] < 16, "{left:?} {right:?}");
        assert_eq!(load("b.jpg").expect("a PNG").rgb(), [1, 2, 3, 4, 5, 6]);
        for name in ["cut.jpg", "wide.jpg", "text.jpg", "empty.jpg", "none.jpg"] {
            let said = load(name).expect_err(name).to_string();
            assert!(said.contains(name) && said.contains(';') && said.lines().count() == 1, "{name}: {said}");
        }
        // As large as is allowed, with hardly any data: read as far as it goes, or an error, but no panic.
        let _ = load("bomb.jpg");
        let said = load_file(dir.path()).expect_err("a folder").to_string();
        assert!(said.contains("Is a directory") && said.contains("give a good PNG or JPEG file"), "{said}");
    }

    #[test]
    fn pictures_that_need_too_much_are_all_halved() {
        let grey = |width: u32, data: &[u8]| png(ColorType::Grayscale, png::BitDepth::Eight, width, data);
        let dir = folder(&[
            ("1.png", &grey(4, &[10, 20, 30, 50])),
            ("2.png", &grey(3, &[7, 8, 100])),
            ("3.png", &grey(1, &[5])),
        ]);
        let reads = |room: fn(u64) -> usize| -> Vec<Vec<u8>> {
            let films = read_films(&[dir.path().to_path_buf()], room).expect("good pictures");
            films[0].iter().map(|p| p.rgb().iter().step_by(3).copied().collect()).collect()
        };
        assert_eq!(reads(|_| 24), [vec![10, 20, 30, 50], vec![7, 8, 100], vec![5]]);
        assert_eq!(reads(|_| 23), [vec![15, 40], vec![7, 100], vec![5]]);
        assert_eq!(reads(|_| 14), [vec![27], vec![53], vec![5]]);
        assert_eq!(reads(|_| 0), [vec![27], vec![53], vec![5]], "no smaller than a pixel");
    }

    /// A small file of a large black picture.
    fn empty(side: u32) -> Vec<u8> {
        let mut out = vec![];
        let mut encoder = png::Encoder::new(&mut out, side, side);
        encoder.set_color(ColorType::Rgb);
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().expect("memory takes bytes");
        writer.write_image_data(&vec![0; 3 * side as usize * side as usize]).expect("memory takes bytes");
        writer.finish().expect("memory takes bytes");
        out
    }

    #[test]
    fn small_files_do_not_become_much_memory_in_sum() {
        // Twelve of 13 MB, of a few kilobytes each.
        let file = empty(2100);
        assert!(file.len() < 40_000, "{}", file.len());
        let names: Vec<String> = (0..12).map(|i| format!("{i}.png")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(|name| (&**name, &*file)).collect();
        let in_all = |film: &[ImageBuf]| film.iter().map(|picture| picture.rgb().len()).sum::<usize>();
        let film = load_film(folder(&files).path()).expect("good pictures");
        assert_eq!((film.len(), film[0].width()), (12, 1050));
        assert!(in_all(&film) <= room(12 * file.len() as u64), "{}", in_all(&film));
        // Seventy frames of one megabyte.
        let mut film = foveate_film::GifFilm::new(600, 600, 10.0).expect("a size");
        let mut bytes = vec![];
        for _ in 0..70 {
            film.frame(ImageBuf::black(600, 600).as_image(), &mut bytes).expect("its size");
        }
        film.finish(&mut bytes).expect("frames");
        let dir = folder(&[("a.gif", &bytes)]);
        let film = load_film(&dir.path().join("a.gif")).expect("a film");
        assert_eq!((film.len(), film[0].width()), (70, 300));
        // What is no more than a few pictures is as it is, however empty.
        let film = load_film(folder(&[("a.png", &file)]).path()).expect("a picture");
        assert_eq!(film[0].width(), 2100);
    }

    #[test]
    fn bad_folders() {
        let good = png(ColorType::Rgb, png::BitDepth::Eight, 2, &[1, 2, 3, 4, 5, 6]);
        let mut wide = good.clone();
        wide[16..20].copy_from_slice(&[0, 1, 0, 0]);
        let mut summed = flate2::Crc::new();
        summed.update(&wide[12..29]);
        wide[29..33].copy_from_slice(&summed.sum().to_be_bytes());
        for (files, wants) in [
            (&[("a.txt", &good[..])][..], "holds no *.png or *.jpg"),
            (&[("a.png", b"nothing")], "a.png: "),
            (&[("a.png", &good), ("b.png", &good[..good.len() - 30])], "b.png: "),
            (&[("a.png", &wide)], "65536x1 pixels"),
        ] {
            let said = load_film(folder(files).path()).expect_err("must fail").to_string();
            assert!(said.contains(wants) && said.contains(';') && said.lines().count() == 1, "{said}");
        }
        #[cfg(unix)]
        {
            let dir = folder(&[("a.png", &good)]);
            let made = std::process::Command::new("mkfifo").arg(dir.path().join("b.png")).status();
            assert!(made.expect("mkfifo exists").success());
            let said = load_film(dir.path()).expect_err("it would wait for ever").to_string();
            assert!(said.contains("b.png: it is a FIFO, not a file; give a good PNG or JPEG file"), "{said}");
        }
        // A film, and files that are none.
        let mut film = foveate_film::GifFilm::new(4, 2, 10.0).expect("a size");
        let mut bytes = vec![];
        for value in [0, 200] {
            let picture = ImageBuf::from_rgb(4, 2, vec![value; 24]).expect("its size");
            film.frame(picture.as_image(), &mut bytes).expect("its size");
        }
        film.finish(&mut bytes).expect("frames");
        let dir = folder(&[("a.gif", &bytes), ("cut.gif", &bytes[..40]), ("a.mp4", b"\0\0\0\x18ftyp")]);
        let frames = load_film(&dir.path().join("a.gif")).expect("a film");
        assert_eq!((frames.len(), frames[1].rgb().len()), (2, 24));
        for (name, wants) in [("cut.gif", "give a good GIF file"), ("a.mp4", "ffmpeg")] {
            let said = load_film(&dir.path().join(name)).expect_err("must fail").to_string();
            assert!(said.contains(name) && said.contains(wants) && said.lines().count() == 1, "{said}");
        }
        // Several films in one folder.
        let dir = tempfile::tempdir().expect("a temporary folder");
        for (name, of) in [("b10", &[1, 2][..]), ("b9", &[3]), ("b11", &[4])] {
            fs::create_dir(dir.path().join(name)).expect("new");
            for number in of {
                let picture = png(ColorType::Grayscale, png::BitDepth::Eight, 1, &[*number]);
                fs::write(dir.path().join(name).join(format!("{number}.png")), picture).expect("writable");
            }
        }
        let firsts = |most: usize| -> Result<Vec<Vec<u8>>, String> {
            let films = load_films(dir.path(), most).map_err(|error| error.to_string())?;
            Ok(films.iter().map(|film| film.iter().map(|picture| picture.rgb()[0]).collect()).collect())
        };
        assert_eq!(firsts(2), Ok(vec![vec![3], vec![1, 2]]));
        assert_eq!(firsts(usize::MAX), Ok(vec![vec![3], vec![1, 2], vec![4]]));
        assert!(firsts(1).is_err_and(|said| said.contains("holds no *.png")));
        fs::create_dir(dir.path().join("b1")).expect("new");
        assert!(firsts(2).is_err_and(|said| said.contains("b1") && said.contains("holds no *.png")));
        fs::write(dir.path().join("0.png"), &good).expect("writable");
        assert_eq!(firsts(2).map(|films| films.len()), Ok(1), "its own pictures are the film");
        let said = load_film(Path::new("/does/not/exist")).expect_err("must fail").to_string();
        assert!(said.contains("check the path"), "{said}");
    }
}

use std::process::{Command, Stdio};

use super::*;
use foveate_core::{ImageBuf, Rng, Seed};

/// Planes of a decoded picture, cropped to the film: luma, blue and red difference.
type Planes = [Vec<u8>; 3];

fn have(program: &str) -> bool {
    Command::new(program).arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Encodes `frames`; returns the file and the encoder's reconstructed pictures.
fn encode(frames: &[ImageBuf], fps: f64) -> (Vec<u8>, Vec<Planes>) {
    let (width, height) = (frames[0].width(), frames[0].height());
    let mut film = Mp4Film::new(width, height, fps).expect("in range");
    let mut body = Vec::new();
    let mut shown = Vec::new();
    for frame in frames {
        film.frame(frame.as_image(), &mut body).expect("the right size");
        let planes = &film.encoder.shown().planes;
        let crop = |i: usize| {
            let plane = &planes[i];
            let (w, h) = if i == 0 { (width, height) } else { (width / 2, height / 2) };
            (0..h).flat_map(|y| plane.bytes[plane.at(0, y as isize)..][..w].iter().copied()).collect()
        };
        shown.push([crop(0), crop(1), crop(2)]);
    }
    let mut file = film.finish().expect("frames were taken");
    file.extend(body);
    (file, shown)
}

/// Decodes with `FFmpeg`, which must not report errors; returns its pictures as coded.
fn decode(file: &[u8], width: usize, height: usize) -> Vec<Planes> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("film.mp4");
    std::fs::write(&path, file).expect("writable");
    let output = Command::new("ffmpeg")
        .args(["-v", "warning", "-xerror", "-i"])
        .arg(&path)
        .args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"])
        .output()
        .expect("ffmpeg was found");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "ffmpeg: {said}");
    let (luma, chroma) = (width * height, width * height / 4);
    let mut pictures = output.stdout.chunks_exact(luma + 2 * chroma);
    let planes = pictures
        .by_ref()
        .map(|p| [p[..luma].to_vec(), p[luma..luma + chroma].to_vec(), p[luma + chroma..].to_vec()])
        .collect();
    assert!(pictures.remainder().is_empty(), "whole pictures");
    planes
}

#[track_caller]
fn check(name: &str, frames: &[ImageBuf]) {
    let (width, height) = (frames[0].width(), frames[0].height());
    let (file, shown) = encode(frames, 50.0);
    let decoded = decode(&file, width, height);
    assert_eq!(decoded.len(), frames.len(), "{name}: pictures");
    for (i, (ours, theirs)) in shown.iter().zip(&decoded).enumerate() {
        for plane in 0..3 {
            let first = ours[plane].iter().zip(&theirs[plane]).position(|(a, b)| a != b);
            let row = if plane == 0 { width } else { width / 2 };
            let place = first.map(|at| (at % row, at / row));
            assert_eq!(place, None, "{name}: first difference in plane {plane} of picture {i}");
        }
    }
}

fn noise(width: usize, height: usize, amplitude: u64, rng: &mut Rng) -> ImageBuf {
    let mut image = ImageBuf::black(width, height);
    for byte in image.rgb_mut() {
        *byte = (128 - amplitude / 2 + rng.below(amplitude + 1)) as u8;
    }
    image
}

/// A rotating and moving board of soft squares over a still frame, similar to a driving film.
fn drive(width: usize, height: usize, t: usize) -> ImageBuf {
    let mut image = ImageBuf::black(width, height);
    let (sin, cos) = (t as f64 * 0.02).sin_cos();
    for (i, pixel) in image.rgb_mut().chunks_exact_mut(3).enumerate() {
        let (x, y) = ((i % width) as f64 - width as f64 / 2.0, (i / width) as f64 - height as f64 / 2.0);
        if x.abs() > width as f64 * 0.45 || y.abs() > height as f64 * 0.4 {
            pixel.copy_from_slice(&[15, 18, 23]);
            continue;
        }
        let (u, v) = (cos * x - sin * y, sin * x + cos * y - 3.7 * t as f64);
        let edge = |w: f64| ((w * 0.12).sin() * 9.0).clamp(-1.0, 1.0);
        let light = 0.5 + 0.5 * edge(u) * edge(v);
        for (byte, (dark, bright)) in pixel.iter_mut().zip([(102.0, 102.0), (204.0, 230.0), (102.0, 102.0)]) {
            *byte = (dark + (bright - dark) * light) as u8;
        }
    }
    image
}

#[test]
fn a_decoder_shows_what_the_encoder_says() {
    if !have("ffmpeg") {
        foveate_toy::needs::skip("no ffmpeg, whose decoder the H.264 encoder is compared with");
        return;
    }
    let mut rng = Seed::root(1).rng();
    let black = ImageBuf::black(48, 32);
    check("one picture", std::slice::from_ref(&black));
    check("nothing moves", &vec![black; 12]);
    check("a size of no whole macroblocks", &(0..8).map(|t| drive(150, 74, t)).collect::<Vec<_>>());
    check("driving", &(0..40).map(|t| drive(320, 176, t)).collect::<Vec<_>>());
    // Noise of all amplitudes reaches every code of the tables, including levels beyond their last entry.
    for amplitude in [3, 8, 16, 30, 60, 120, 255] {
        let frames: Vec<_> = (0..6).map(|_| noise(64, 64, amplitude, &mut rng)).collect();
        check(&format!("noise of {amplitude}"), &frames);
    }
    let mut sparks: Vec<_> = (0..30).map(|_| ImageBuf::black(160, 96)).collect();
    for frame in &mut sparks {
        for _ in 0..40 {
            let at = rng.below(160 * 96) as usize * 3;
            frame.rgb_mut()[at..at + 3].copy_from_slice(&[rng.below(256) as u8, 255, rng.below(256) as u8]);
        }
    }
    check("sparks", &sparks);
    let flat = |grey: u8| ImageBuf::from_rgb(64, 64, vec![grey; 64 * 64 * 3]).expect("sizes agree");
    let flips: Vec<_> = [0, 255, 0, 255, 1].map(flat).to_vec();
    check("black and white", &flips);
    check("beyond a key picture", &(0..262).map(|t| drive(64, 48, t)).collect::<Vec<_>>());
}

/// Peak signal-to-noise ratio of luma in decibels.
fn psnr(image: &ImageBuf, luma: &[u8]) -> f64 {
    let error: f64 = image
        .rgb()
        .chunks_exact(3)
        .zip(luma)
        .map(|(p, &y)| {
            let exact = 16.0
                + 219.0 * (0.2126 * f64::from(p[0]) + 0.7152 * f64::from(p[1]) + 0.0722 * f64::from(p[2]))
                    / 255.0;
            (exact - f64::from(y)).powi(2)
        })
        .sum();
    10.0 * (255.0_f64.powi(2) * luma.len() as f64 / error).log10()
}

#[test]
fn a_driving_film_is_small_and_good_to_the_last_picture() {
    let frames: Vec<_> = (0..60).map(|t| drive(320, 176, t)).collect();
    let (file, shown) = encode(&frames, 50.0);
    let worst = frames.iter().zip(&shown).map(|(f, s)| psnr(f, &s[0])).fold(f64::INFINITY, f64::min);
    let per_frame = file.len() / frames.len();
    assert!(worst >= 36.0, "{worst:.1} dB");
    assert!(per_frame < 2500, "{per_frame} bytes a frame, {} raw", 320 * 176 * 3 / 2);
}

#[test]
fn still_frames_take_next_to_nothing() {
    let frame = drive(320, 176, 5);
    let size = |n: usize| encode(&vec![frame.clone(); n], 50.0).0.len();
    let per_frame = (size(41) - size(21)) / 20;
    assert!(per_frame < 24, "{per_frame} bytes");
}

#[test]
fn the_same_frames_give_the_same_bytes() {
    let frames: Vec<_> = (0..10).map(|t| drive(96, 64, t)).collect();
    assert_eq!(encode(&frames, 25.0).0, encode(&frames, 25.0).0);
}

#[test]
fn wrong_input_is_an_error() {
    for (width, height) in [(0, 0), (15, 16), (16, 8), (17, 32), (4098, 32)] {
        assert!(matches!(Mp4Film::new(width, height, 25.0), Err(FilmError::Size { .. })), "{width}x{height}");
    }
    assert!(matches!(Mp4Film::new(32, 32, 0.0), Err(FilmError::FrameRate { .. })));
    let mut film = Mp4Film::new(32, 32, 25.0).expect("in range");
    let wrong = ImageBuf::black(32, 30);
    assert!(matches!(film.frame(wrong.as_image(), &mut Vec::new()), Err(FilmError::FrameSize { .. })));
    assert!(matches!(film.finish(), Err(FilmError::Empty)));
}

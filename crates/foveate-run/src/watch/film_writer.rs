//! Writes frames to a file that is complete or absent.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use foveate_core::Image;
use foveate_film::{FilmError, FrameComposer, GifFilm, Mp4Film};

use crate::RunError;
use crate::atomic::AtomicFile;

/// Formats, by the extension of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FilmFormat {
    Mp4,
    Gif,
    Png,
}

impl FilmFormat {
    pub(super) fn of(out: &Path) -> Result<Self, RunError> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("mp4") => Ok(FilmFormat::Mp4),
            Some("gif") => Ok(FilmFormat::Gif),
            Some("png") => Ok(FilmFormat::Png),
            _ => Err(RunError::BadRequest {
                why: format!(
                    "{}: end the name in .mp4 or .gif for a film, or in .png for a picture of a single step",
                    out.display()
                ),
            }),
        }
    }

    /// Default width and height of the format: observations of 96 x 96 are scaled by an integer.
    pub(super) fn size(self) -> (usize, usize) {
        let (width, height) = FrameComposer::SIZE;
        match self {
            FilmFormat::Mp4 => (width, height),
            FilmFormat::Gif => (width * 3 / 4, height * 3 / 4),
            FilmFormat::Png => (width * 3 / 2, height * 3 / 2),
        }
    }
}

/// A video being written.
pub(super) struct FilmWriter {
    film: Encoder,
    file: AtomicFile,
    path: PathBuf,
    ready: Vec<u8>,
    frames: usize,
    bytes: u64,
}

enum Encoder {
    Gif(Box<GifFilm>),
    /// The header of an MP4 file comes first but is known last; the body is buffered in a temporary file.
    Mp4(Box<Mp4Film>, Spool),
}

impl FilmWriter {
    pub(super) fn new(
        kind: FilmFormat,
        (width, height): (usize, usize),
        fps: f64,
        file: AtomicFile,
        path: &Path,
    ) -> Result<Self, RunError> {
        let film = if kind == FilmFormat::Mp4 {
            let film = Mp4Film::new(width, height, fps).map_err(|e| failed(path, e))?;
            Encoder::Mp4(Box::new(film), Spool(file.scratch().map_err(RunError::io("write", path))?))
        } else {
            Encoder::Gif(Box::new(GifFilm::new(width, height, fps).map_err(|e| failed(path, e))?))
        };
        Ok(FilmWriter { film, file, path: path.to_path_buf(), ready: Vec::new(), frames: 0, bytes: 0 })
    }

    pub(super) fn frame(&mut self, frame: Image<'_>) -> Result<(), RunError> {
        let (taken, to): (_, &mut dyn Write) = match &mut self.film {
            Encoder::Gif(film) => (film.frame(frame, &mut self.ready), &mut self.file),
            Encoder::Mp4(film, spool) => (film.frame(frame, &mut self.ready), &mut spool.0),
        };
        taken.map_err(|e| failed(&self.path, e))?;
        to.write_all(&self.ready).map_err(RunError::io("write", &self.path))?;
        self.frames += 1;
        self.bytes += self.ready.len() as u64;
        self.ready.clear();
        Ok(())
    }

    /// Completes the video; returns its frames and bytes.
    pub(super) fn finish(mut self) -> Result<(usize, u64), RunError> {
        let written = match self.film {
            Encoder::Gif(film) => {
                film.finish(&mut self.ready).map_err(|e| failed(&self.path, e))?;
                self.file.write_all(&self.ready)
            }
            Encoder::Mp4(film, spool) => {
                self.ready = film.finish().map_err(|e| failed(&self.path, e))?;
                self.file.write_all(&self.ready).and_then(|()| spool.pour(&mut self.file))
            }
        };
        written.map_err(RunError::io("write", &self.path))?;
        self.bytes += self.ready.len() as u64;
        self.file.commit()?;
        Ok((self.frames, self.bytes))
    }
}

fn failed(path: &Path, source: FilmError) -> RunError {
    RunError::Film { path: path.to_path_buf(), source }
}

/// An unnamed temporary file as a buffer.
struct Spool(File);

impl Spool {
    /// Copies everything to `to`.
    fn pour(mut self, to: &mut impl Write) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = self.0.read(&mut buffer)?;
            if count == 0 {
                return Ok(());
            }
            to.write_all(&buffer[..count])?;
        }
    }
}

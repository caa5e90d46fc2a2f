//! Frames into a file that is whole or absent.

use std::io::Write;
use std::path::{Path, PathBuf};

use foveate_core::Image;
use foveate_film::{FilmError, GifFilm, Stage};

use crate::RunError;
use crate::atomic::AtomicFile;

/// Formats, by the ending of the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Gif,
    Png,
}

impl Kind {
    pub(super) fn of(out: &Path) -> Result<Self, RunError> {
        let ending = out.extension().map(|e| e.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("gif") => Ok(Kind::Gif),
            Some("png") => Ok(Kind::Png),
            _ => Err(RunError::BadRequest {
                why: format!(
                    "{}: end the name in .gif for a film or .png for a picture of a single step",
                    out.display()
                ),
            }),
        }
    }

    /// Width and height that suit the format: observations of 96 x 96 are shown a whole number of times larger.
    pub(super) fn size(self) -> (usize, usize) {
        let (width, height) = Stage::SIZE;
        match self {
            Kind::Gif => (width * 3 / 4, height * 3 / 4),
            Kind::Png => (width * 3 / 2, height * 3 / 2),
        }
    }
}

/// A film being written.
pub(super) struct Reel {
    encoder: GifFilm,
    file: AtomicFile,
    path: PathBuf,
    ready: Vec<u8>,
    frames: usize,
    bytes: u64,
}

impl Reel {
    pub(super) fn new(
        _kind: Kind,
        (width, height): (usize, usize),
        fps: f64,
        file: AtomicFile,
        path: &Path,
    ) -> Result<Self, RunError> {
        let path = path.to_path_buf();
        let failed = |source: FilmError| RunError::Film { path: path.clone(), source };
        let encoder = GifFilm::new(width, height, fps).map_err(failed)?;
        Ok(Reel { encoder, file, path, ready: Vec::new(), frames: 0, bytes: 0 })
    }

    pub(super) fn frame(&mut self, frame: Image<'_>) -> Result<(), RunError> {
        self.encoder.frame(frame, &mut self.ready).map_err(|e| failed(&self.path, e))?;
        self.frames += 1;
        write_out(&mut self.file, &mut self.ready, &mut self.bytes, &self.path)
    }

    /// Ends the film; gives its frames and bytes.
    pub(super) fn finish(mut self) -> Result<(usize, u64), RunError> {
        self.encoder.finish(&mut self.ready).map_err(|e| failed(&self.path, e))?;
        write_out(&mut self.file, &mut self.ready, &mut self.bytes, &self.path)?;
        self.file.commit()?;
        Ok((self.frames, self.bytes))
    }
}

fn failed(path: &Path, source: FilmError) -> RunError {
    RunError::Film { path: path.to_path_buf(), source }
}

fn write_out(
    file: &mut AtomicFile,
    ready: &mut Vec<u8>,
    bytes: &mut u64,
    path: &Path,
) -> Result<(), RunError> {
    file.write_all(ready).map_err(RunError::io("write", path))?;
    *bytes += ready.len() as u64;
    ready.clear();
    Ok(())
}

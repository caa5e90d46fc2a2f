//! Event files for TensorBoard: `tensorboard --logdir runs` shows the curves of every run over its training
//! steps.
//!
//! An event file is a sequence of records, each framed by its length and two masked CRC-32C checksums (the
//! TFRecord framing). A record is an `Event` message of protocol buffers; the ones here only hold scalars, so
//! this module encodes both by hand.
//!
//! The event file is derived from the log: a resumed run writes a new file from the log, truncated to its
//! checkpoint, under a higher number, and empties the old one. So no step occurs twice, and a running
//! TensorBoard switches to the new file (it would not if the old file vanished). Times are the start of the
//! run plus its running time, without the time during which it was stopped.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use foveate_train::{Event, Summary};

use crate::RunError;
use crate::folder::FolderHandle;
use crate::progress::LogLine;

/// The prefix of an event file's name; TensorBoard looks for it.
const NAME: &str = "events.out.tfevents.";

/// Bytes of a file's first record, which contains its version.
const VERSION_BYTES: u64 = 40;

/// The event file of a run, being written.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    path: PathBuf,
    maker: Maker,
}

impl EventFile {
    /// Creates an event file in `folder` with the events of the log so far, and replaces existing ones.
    /// `started` is the start of the run, in seconds since 1970.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(folder: &Path, started: u64, log: &[LogLine]) -> Result<Self, RunError> {
        Self::begin_in(&FolderHandle::open(folder)?, started, log)
    }

    /// As [`EventFile::begin`], in the folder of a run.
    pub(crate) fn begin_in(folder: &FolderHandle, started: u64, log: &[LogLine]) -> Result<Self, RunError> {
        let old = list(folder)?;
        let number = old.iter().map(|(number, _)| number + 1).max().unwrap_or(0);
        let mut maker = Maker { started: started as f64, before: (0.0, 0) };
        let mut bytes = maker.head();
        for line in log {
            bytes.extend(maker.record(line));
        }
        // Files are read in the order of their names.
        let name = format!("{NAME}{started:010}.foveate.{number:05}");
        let path = folder.path().join(&name);
        folder.write(&name, bytes)?;
        for (other, old) in old {
            if other + 1 < number {
                folder.remove(&old)?;
            } else {
                let file = folder.open_to_append(&old)?;
                file.set_len(VERSION_BYTES).map_err(RunError::io("write", &folder.path().join(&old)))?;
            }
        }
        let file = folder.open_to_append(&name)?;
        Ok(EventFile { file, path, maker })
    }

    /// Adds a line of the log.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, line: &LogLine) -> Result<(), RunError> {
        let record = self.maker.record(line);
        self.file.write_all(&record).map_err(RunError::io("write", &self.path))
    }
}

/// The names of the event files in `folder` with their numbers.
fn list(folder: &FolderHandle) -> Result<Vec<(u64, String)>, RunError> {
    let mut found = Vec::new();
    for entry in folder.entries()? {
        let Some(name) = entry.name.to_str() else { continue };
        let number = name.strip_prefix(NAME).and_then(|rest| rest.split_once(".foveate."));
        if let Some(number) = number.and_then(|(_, number)| number.parse::<u32>().ok()) {
            found.push((number.into(), name.to_owned()));
        }
    }
    Ok(found)
}

/// Converts lines of the log to records.
#[derive(Debug)]
struct Maker {
    /// Seconds since 1970.
    started: f64,
    /// Run seconds at the end of the last line, and training steps of the last generation.
    before: (f64, u64),
}

impl Maker {
    /// The first records of an event file: its version, and a start at step 0, at which a running TensorBoard
    /// discards the events of an earlier file of this run.
    fn head(&self) -> Vec<u8> {
        let mut version = Message::default();
        version.double(1, self.started);
        version.bytes(3, b"brain.Event:2");
        let mut start = Message::default();
        start.int(1, 1); // SessionLog.START
        let mut session = Message::default();
        session.double(1, self.started);
        session.bytes(7, &start.0);
        [record(&version.0), record(&session.0)].concat()
    }

    /// The record of a line; empty when there is nothing to plot.
    fn record(&mut self, line: &LogLine) -> Vec<u8> {
        let (seconds_before, steps_before) = self.before;
        self.before.0 = line.seconds;
        let (at, scalars) = match &line.event {
            Event::Generation { steps, best, mean, length, norm, sigma, measures, .. } => {
                self.before.1 = *steps;
                let speed = steps.saturating_sub(steps_before) as f64 / (line.seconds - seconds_before);
                let all = [
                    ("return/best", Some(*best)),
                    ("return/mean", Some(*mean)),
                    ("search/sigma", Some(*sigma)),
                    ("search/norm", Some(*norm)),
                    ("episode/length", Some(*length)),
                    // If no time passed there is no speed.
                    ("speed/steps_per_second", Some(speed).filter(|s| s.is_finite())),
                ];
                let all = all.into_iter().filter_map(|(tag, value)| Some((tag.to_owned(), value?)));
                let measures = measures.iter().map(|(name, value)| (format!("learning/{name}"), *value));
                (*steps, all.chain(measures).collect::<Vec<_>>())
            }
            Event::Validation { steps, summary, .. } => {
                (*steps, judged(["validation/mean", "validation/std"], summary))
            }
            Event::Evaluation { steps, summary, .. } => {
                (*steps, judged(["evaluation/mean", "evaluation/std"], summary))
            }
            Event::Report { steps, summary, .. } => (*steps, judged(["report/mean", "report/std"], summary)),
            // Several at the same number of steps: not a curve.
            Event::Stagnation { .. } | Event::Chosen { .. } | Event::Final { .. } => return Vec::new(),
        };
        let mut summary = Message::default();
        for (tag, value) in scalars {
            let mut scalar = Message::default();
            scalar.bytes(1, tag.as_bytes());
            scalar.float(2, value as f32);
            summary.bytes(1, &scalar.0);
        }
        let mut event = Message::default();
        event.double(1, self.started + line.seconds);
        event.int(2, at);
        event.bytes(5, &summary.0);
        record(&event.0)
    }
}

/// A message of protocol buffers, written field by field.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn key(&mut self, field: u64, wire_type: u64) {
        self.varint(field << 3 | wire_type);
    }

    /// Seven bits per byte, the lowest first; the top bit says that more bytes follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn int(&mut self, field: u64, value: u64) {
        self.key(field, 0);
        self.varint(value);
    }

    fn double(&mut self, field: u64, value: f64) {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
    }

    fn float(&mut self, field: u64, value: f32) {
        self.key(field, 5);
        self.0.extend(value.to_le_bytes());
    }
}

/// Frames a message: its length, the checksum of the length, the message, the checksum of the message.
fn record(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    [&length, &masked(crc32c(&length)).to_le_bytes()[..], message, &masked(crc32c(message)).to_le_bytes()]
        .concat()
}

/// Checksums are masked, since a checksum of data that contains its own checksum is weak.
const fn masked(sum: u32) -> u32 {
    sum.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C (Castagnoli), reflected.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ (sum >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut sum = i as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
            bit += 1;
        }
        table[i] = sum;
        i += 1;
    }
    table
};

/// Mean and standard deviation under these tags; no standard deviation for one episode.
fn judged([mean, std]: [&str; 2], summary: &Summary) -> Vec<(String, f64)> {
    [(mean, Some(summary.mean)), (std, summary.std)]
        .into_iter()
        .filter_map(|(tag, value)| Some((tag.to_owned(), value?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use foveate_train::Summary;
    use std::fs;

    use super::*;

    fn generation(generation: u64, seconds: f64) -> LogLine {
        let event = Event::Generation {
            generation,
            steps: generation * 1000,
            stage: "learn".into(),
            start: 1,
            best: 300.5,
            mean: -20.25,
            length: 31.5,
            norm: 15.0,
            sigma: 0.125,
            replayed: 0,
            tasks: vec![],
            measures: std::collections::BTreeMap::new(),
        };
        LogLine::of(event, seconds, seconds)
    }

    fn validation(generation: u64, seconds: f64) -> LogLine {
        let event = Event::Validation {
            generation,
            steps: generation * 1000,
            stage: "learn".into(),
            start: 1,
            summary: Summary::of(&[700.0, 800.0]),
            best: true,
        };
        LogLine::of(event, seconds, seconds)
    }

    #[test]
    fn sums_of_the_standard() {
        // RFC 3720, B.4.
        let rising: Vec<u8> = (0..32).collect();
        let falling: Vec<u8> = (0..32).rev().collect();
        for (bytes, sum) in [
            (&[0; 32][..], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&rising, 0x46dd_794e),
            (&falling, 0x113f_db5c),
            (b"123456789", 0xe306_9283),
            (b"", 0),
        ] {
            assert_eq!(crc32c(bytes), sum, "{bytes:?}");
        }
    }

    #[test]
    fn the_first_record_is_what_every_event_file_begins_with() {
        // The bytes that TensorFlow writes, except for the time, which is 0 here and therefore omitted: 24
        // bytes and their checksum.
        let maker = Maker { started: 0.0, before: (0.0, 0) };
        let head = maker.head();
        assert_eq!(head[..12], [0x18, 0, 0, 0, 0, 0, 0, 0, 0xa3, 0x7f, 0x4b, 0x22]);
        assert_eq!(head[12..36], *b"\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2");
    }

    #[test]
    fn numbers_that_take_several_bytes() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x80, 1]),
            (300, &[0xac, 2]),
            (u64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ] {
            let mut message = Message::default();
            message.varint(value);
            assert_eq!(message.0, bytes);
        }
    }

    #[test]
    fn a_file_begun_again_is_the_file_gone_on_with() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let lines = [generation(1, 1.5), validation(1, 2.0), generation(2, 3.0), generation(3, 3.0)];
        let only = || {
            let mut files = list(&FolderHandle::open(dir.path()).expect("ours")).expect("listable");
            files.sort();
            let (number, name) = files.pop().expect("one");
            // One of the earlier files stays, and is empty.
            assert_eq!(files.len() as u64, number.min(1), "{files:?}");
            for (_, old) in files {
                let bytes = fs::read(dir.path().join(old)).expect("readable");
                assert!(bytes.len() == 40 && bytes[23..36] == *b"brain.Event:2", "{bytes:?}");
            }
            (number, fs::read(dir.path().join(name)).expect("readable"))
        };
        let mut file = EventFile::begin(dir.path(), 1_700_000_000, &[]).expect("writable");
        for line in &lines {
            file.add(line).expect("writable");
        }
        let (number, straight) = only();
        assert_eq!(number, 0);
        // Killed while writing the third line, truncated to the second, and resumed.
        fs::write(&file.path, &straight[..straight.len() - 100]).expect("writable");
        let mut file = EventFile::begin(dir.path(), 1_700_000_000, &lines[..2]).expect("writable");
        file.add(&lines[2]).expect("writable");
        file.add(&lines[3]).expect("writable");
        assert_eq!(only(), (1, straight));
        EventFile::begin(dir.path(), 1_700_000_000, &lines).expect("writable");
        assert_eq!(only().0, 2);
    }

    #[test]
    fn what_cannot_be_written_is_said() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let said = EventFile::begin(&dir.path().join("none"), 0, &[]).expect_err("no folder").to_string();
        assert!(said.contains("cannot read") && said.contains(';'), "{said}");
    }
}

//! The MP4 container of coded pictures (ISO/IEC 14496-12 and -15).

use crate::h264::{Format, PROFILE, PROFILE_FLAGS};

/// Data of the file's head about the samples that follow it.
pub(crate) struct Index<'a> {
    pub(crate) format: Format,
    /// Parameter sets as NAL units.
    pub(crate) sequence: &'a [u8],
    pub(crate) picture: &'a [u8],
    /// Size of every sample in bytes; a sample is one picture.
    pub(crate) sizes: &'a [u32],
    /// Numbers of the samples that are key pictures, starting from 1.
    pub(crate) keys: &'a [u32],
}

impl Index<'_> {
    /// Everything before the samples. It comes first so that a browser can start playing at once.
    ///
    /// `None` if the file would need more than 32 bits for its length.
    pub(crate) fn head(&self) -> Option<Vec<u8>> {
        let samples: u64 = self.sizes.iter().map(|&size| u64::from(size)).sum();
        // The offset of the first sample depends on the length of the head, which does not depend on the
        // offset.
        let length = self.boxes(0, 0).len();
        let place = u32::try_from(length).ok()?;
        let data = u32::try_from(samples + 8).ok()?;
        u32::try_from(length as u64 + samples).ok()?;
        Some(self.boxes(place, data))
    }

    fn boxes(&self, first_sample: u32, data: u32) -> Vec<u8> {
        let mut out = Vec::new();
        boxed(&mut out, *b"ftyp", |b| {
            b.extend(b"isom");
            int(b, 0x200);
            b.extend(b"isomiso2avc1mp41");
        });
        boxed(&mut out, *b"moov", |b| self.movie(b, first_sample));
        int(&mut out, data);
        out.extend(b"mdat");
        out
    }

    fn duration(&self) -> u32 {
        u32::try_from(self.sizes.len() as u64 * u64::from(self.format.ticks_per_frame)).unwrap_or(u32::MAX)
    }

    fn movie(&self, out: &mut Vec<u8>, first_sample: u32) {
        boxed(out, *b"mvhd", |b| {
            ints(b, &[0, 0, 0, self.format.ticks_per_second, self.duration()]);
            int(b, 0x0001_0000); // normal speed
            short(b, 0x0100); // full volume
            b.extend([0; 10]);
            unit_matrix(b);
            ints(b, &[0; 6]);
            int(b, 2); // number of the next track
        });
        boxed(out, *b"trak", |b| {
            boxed(b, *b"tkhd", |b| {
                ints(b, &[3, 0, 0, 1, 0, self.duration()]); // enabled; track 1
                ints(b, &[0, 0, 0, 0]);
                unit_matrix(b);
                ints(b, &[(self.format.width as u32) << 16, (self.format.height as u32) << 16]);
            });
            boxed(b, *b"mdia", |b| {
                boxed(b, *b"mdhd", |b| {
                    ints(b, &[0, 0, 0, self.format.ticks_per_second, self.duration()]);
                    short(b, 0x55c4); // language "und" (undetermined)
                    short(b, 0);
                });
                boxed(b, *b"hdlr", |b| {
                    ints(b, &[0, 0]);
                    b.extend(b"vide");
                    ints(b, &[0, 0, 0]);
                    b.extend(b"film\0");
                });
                boxed(b, *b"minf", |b| {
                    boxed(b, *b"vmhd", |b| ints(b, &[1, 0, 0]));
                    boxed(b, *b"dinf", |b| {
                        boxed(b, *b"dref", |b| {
                            ints(b, &[0, 1]);
                            boxed(b, *b"url ", |b| int(b, 1)); // the samples are in this file
                        });
                    });
                    boxed(b, *b"stbl", |b| self.table(b, first_sample));
                });
            });
        });
    }

    fn table(&self, out: &mut Vec<u8>, first_sample: u32) {
        let count = self.sizes.len() as u32;
        boxed(out, *b"stsd", |b| {
            ints(b, &[0, 1]);
            boxed(b, *b"avc1", |b| self.sample_entry(b));
        });
        boxed(out, *b"stts", |b| ints(b, &[0, 1, count, self.format.ticks_per_frame]));
        boxed(out, *b"stss", |b| {
            ints(b, &[0, self.keys.len() as u32]);
            ints(b, self.keys);
        });
        boxed(out, *b"stsc", |b| ints(b, &[0, 1, 1, count, 1])); // all samples in one chunk
        boxed(out, *b"stsz", |b| {
            ints(b, &[0, 0, count]);
            ints(b, self.sizes);
        });
        boxed(out, *b"stco", |b| ints(b, &[0, 1, first_sample]));
    }

    fn sample_entry(&self, out: &mut Vec<u8>) {
        out.extend([0; 6]);
        short(out, 1); // data reference
        out.extend([0; 16]);
        short(out, self.format.width as u16);
        short(out, self.format.height as u16);
        ints(out, &[0x0048_0000, 0x0048_0000, 0]); // 72 dots per inch
        short(out, 1); // one picture per sample
        out.extend([0; 32]); // no compressor name
        short(out, 24);
        short(out, 0xffff); // no colour table
        boxed(out, *b"avcC", |b| {
            b.extend([1, PROFILE, PROFILE_FLAGS, self.format.level()]);
            b.push(0xff); // lengths of NAL units have four bytes
            b.push(0xe1); // one sequence parameter set
            short(b, self.sequence.len() as u16);
            b.extend(self.sequence);
            b.push(1);
            short(b, self.picture.len() as u16);
            b.extend(self.picture);
        });
        boxed(out, *b"pasp", |b| ints(b, &[1, 1]));
        boxed(out, *b"colr", |b| {
            b.extend(b"nclx");
            for _ in 0..3 {
                short(b, 1); // ITU-R BT.709
            }
            b.push(0); // video range: black is 16 and white is 235
        });
    }
}

/// Appends a box: its length, name and content.
fn boxed(out: &mut Vec<u8>, name: [u8; 4], content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    int(out, 0);
    out.extend(name);
    content(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn int(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_be_bytes());
}

fn ints(out: &mut Vec<u8>, values: &[u32]) {
    for &value in values {
        int(out, value);
    }
}

fn short(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_be_bytes());
}

fn unit_matrix(out: &mut Vec<u8>) {
    ints(out, &[0x0001_0000, 0, 0, 0, 0x0001_0000, 0, 0, 0, 0x4000_0000]);
}

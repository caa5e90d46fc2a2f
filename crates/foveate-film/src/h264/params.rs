//! Parameter sets, which a decoder needs before the first picture (ITU-T H.264, 7.3.2 and annexes A and E).

use super::bits::{BitWriter, nal};
use crate::FilmError;

/// Constrained baseline profile, which every decoder supports.
pub(crate) const PROFILE: u8 = 66;
pub(crate) const PROFILE_FLAGS: u8 = 0b1100_0000;
/// `frame_num` counts modulo 2 to the power of this.
pub(crate) const FRAME_NUMBER_BITS: u32 = 8;

/// Level, macroblocks per second, macroblocks per picture (table A-1).
const LEVELS: [(u8, u64, u64); 15] = [
    (10, 1_485, 99),
    (11, 3_000, 396),
    (12, 6_000, 396),
    (13, 11_880, 396),
    (21, 19_800, 792),
    (22, 20_250, 1_620),
    (30, 40_500, 1_620),
    (31, 108_000, 3_600),
    (32, 216_000, 5_120),
    (40, 245_760, 8_192),
    (42, 522_240, 8_704),
    (50, 589_824, 22_080),
    (51, 983_040, 36_864),
    (52, 2_073_600, 36_864),
    (62, 16_711_680, 139_264),
];

/// Constant properties of a film.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Format {
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Clock ticks per second, and per frame.
    pub(crate) ticks_per_second: u32,
    pub(crate) ticks_per_frame: u32,
}

impl Format {
    pub(crate) const MIN: usize = 16;
    pub(crate) const MAX: usize = 4096;

    pub(crate) fn new(width: usize, height: usize, fps: f64) -> Result<Self, FilmError> {
        let fits = |side: usize| (Self::MIN..=Self::MAX).contains(&side) && side.is_multiple_of(2);
        if !fits(width) || !fits(height) {
            return Err(FilmError::Size {
                format: "MP4 (even sides)",
                width,
                height,
                min_width: Self::MIN,
                min_height: Self::MIN,
                max_width: Self::MAX,
                max_height: Self::MAX,
            });
        }
        if !(1.0..=240.0).contains(&fps) {
            return Err(FilmError::FrameRate { fps });
        }
        Ok(Format { width, height, ticks_per_second: (fps * 1000.0).round() as u32, ticks_per_frame: 1000 })
    }

    /// Width of the coded picture in macroblocks of 16 x 16.
    pub(crate) fn columns(&self) -> usize {
        self.width.div_ceil(16)
    }

    /// Height of the coded picture in macroblocks.
    pub(crate) fn rows(&self) -> usize {
        self.height.div_ceil(16)
    }

    /// The lowest level that allows the size and the frame rate.
    pub(crate) fn level(&self) -> u8 {
        let picture = (self.columns() * self.rows()) as u64;
        let second = picture * u64::from(self.ticks_per_second) / u64::from(self.ticks_per_frame);
        // A side may be at most the square root of eight times the largest picture.
        let longest = self.columns().max(self.rows()) as u64;
        LEVELS
            .iter()
            .find(|(_, rate, size)| second <= *rate && picture <= *size && longest * longest <= 8 * size)
            .map_or(62, |(level, _, _)| *level)
    }

    /// The sequence parameter set as a NAL unit.
    pub(crate) fn sequence(&self) -> Vec<u8> {
        let mut w = BitWriter::default();
        w.bits(u32::from(PROFILE), 8);
        w.bits(u32::from(PROFILE_FLAGS), 8);
        w.bits(u32::from(self.level()), 8);
        w.ue(0); // id of the parameter set
        w.ue(FRAME_NUMBER_BITS - 4);
        w.ue(2); // output order is coding order
        w.ue(1); // one reference picture
        w.flag(false); // no gaps in frame_num
        w.ue(self.columns() as u32 - 1);
        w.ue(self.rows() as u32 - 1);
        w.flag(true); // frames only, no fields
        w.flag(true); // direct_8x8_inference, required with frames only
        let (right, bottom) = (self.columns() * 16 - self.width, self.rows() * 16 - self.height);
        w.flag(right + bottom > 0);
        if right + bottom > 0 {
            w.ue(0);
            w.ue(right as u32 / 2);
            w.ue(0);
            w.ue(bottom as u32 / 2);
        }
        w.flag(true); // VUI parameters follow
        w.flag(true);
        w.bits(1, 8); // square pixels
        w.flag(false); // nothing on overscan
        w.flag(true);
        w.bits(5, 3); // unspecified video format
        w.flag(false); // video range: black is 16 and white is 235
        w.flag(true);
        for _ in 0..3 {
            w.bits(1, 8); // primaries, transfer and matrix of ITU-R BT.709
        }
        w.flag(false); // default chroma location
        w.flag(true);
        w.bits(self.ticks_per_frame, 32);
        w.bits(2 * self.ticks_per_second, 32); // the clock counts fields, two per frame
        w.flag(true); // fixed frame rate
        w.flag(false); // no buffer model
        w.flag(false);
        w.flag(false); // no picture structure
        w.flag(true);
        w.flag(true); // motion vectors may point outside the picture
        w.ue(0); // no limit on bytes per picture
        w.ue(0); // no limit on bits per macroblock
        w.ue(10); // motion vectors below 2^10 quarter pixels
        w.ue(10);
        w.ue(0); // no reordering
        w.ue(1); // one picture is buffered
        w.trail();
        let mut unit = Vec::new();
        nal(0x67, w.as_bytes(), &mut unit);
        unit
    }

    /// The picture parameter set as a NAL unit; `qp` is the initial quantiser parameter of slices.
    pub(crate) fn picture(qp: i32) -> Vec<u8> {
        let mut w = BitWriter::default();
        w.ue(0); // id of the parameter set
        w.ue(0); // id of the sequence parameter set
        w.flag(false); // CAVLC
        w.flag(false); // no bottom fields
        w.ue(0); // one slice group
        w.ue(0); // one reference picture
        w.ue(0);
        w.flag(false); // no weighted prediction
        w.bits(0, 2);
        w.se(qp - 26);
        w.se(0);
        w.se(0); // chroma quantised like luma
        w.flag(true); // slices control deblocking
        w.flag(false); // intra prediction may use inter blocks
        w.flag(false); // no redundant pictures
        w.trail();
        let mut unit = Vec::new();
        nal(0x68, w.as_bytes(), &mut unit);
        unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_grow_with_size_and_rate() {
        for (width, height, fps, level) in [
            (96, 96, 50.0, 11),
            (640, 480, 30.0, 30),
            (1072, 544, 25.0, 31),
            (1072, 544, 50.0, 32),
            (1920, 1080, 30.0, 40),
            (4096, 4096, 240.0, 62),
        ] {
            let format = Format::new(width, height, fps).expect("in range");
            assert_eq!(format.level(), level, "{width}x{height} at {fps}");
        }
    }

    #[test]
    fn sizes_and_rates_out_of_range_are_errors() {
        for (width, height) in [(0, 16), (16, 14), (17, 16), (16, 17), (4098, 16)] {
            assert!(
                matches!(Format::new(width, height, 25.0), Err(FilmError::Size { .. })),
                "{width}x{height}"
            );
        }
        for fps in [0.0, 0.5, f64::NAN, f64::INFINITY, 1000.0] {
            assert!(matches!(Format::new(16, 16, fps), Err(FilmError::FrameRate { .. })), "{fps}");
        }
    }
}

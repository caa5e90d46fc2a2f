//! Bit writer, Exp-Golomb codes and NAL units (ITU-T H.264, 7.2, 7.4.1 and 9.1).

/// Collects bits into bytes, most significant first.
#[derive(Debug, Clone, Default)]
pub(crate) struct BitWriter {
    bytes: Vec<u8>,
    /// Bits not yet in `bytes`, in the low end.
    pending: u64,
    count: u32,
}

impl BitWriter {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        (self.pending, self.count) = (0, 0);
    }

    /// Writes the low `count` bits of `value`; `count` is at most 32.
    pub(crate) fn bits(&mut self, value: u32, count: u32) {
        debug_assert!(count == 32 || value >> count == 0, "{value} has more than {count} bits");
        self.pending = self.pending << count | u64::from(value);
        self.count += count;
        while self.count >= 8 {
            self.count -= 8;
            self.bytes.push((self.pending >> self.count) as u8);
        }
    }

    pub(crate) fn flag(&mut self, value: bool) {
        self.bits(u32::from(value), 1);
    }

    /// Writes `ue(v)`: an unsigned Exp-Golomb code.
    pub(crate) fn ue(&mut self, value: u32) {
        let length = (value + 1).ilog2();
        self.bits(0, length);
        self.bits(value + 1, length + 1);
    }

    /// Writes `se(v)`: a signed Exp-Golomb code, in the order 0, 1, -1, 2, -2, …
    pub(crate) fn se(&mut self, value: i32) {
        self.ue(signed_code(value));
    }

    /// Writes the trailing bits of a NAL unit: a one, then zeros up to the next byte.
    pub(crate) fn trail(&mut self) {
        self.bits(1, 1);
        if self.count > 0 {
            self.bits(0, 8 - self.count);
        }
    }

    /// The bytes written; whole bytes only.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        debug_assert_eq!(self.count, 0, "trail first");
        &self.bytes
    }
}

/// The code number of a signed value.
fn signed_code(value: i32) -> u32 {
    if value > 0 { value as u32 * 2 - 1 } else { value.unsigned_abs() * 2 }
}

/// Number of bits of `se(v)`.
pub(crate) fn signed_bits(value: i32) -> u32 {
    2 * (signed_code(value) + 1).ilog2() + 1
}

/// Appends a NAL unit, its header byte first. Inserts a byte 3 where the payload would contain a start code.
pub(crate) fn nal(header: u8, payload: &[u8], out: &mut Vec<u8>) {
    out.push(header);
    let mut zeros = 0;
    for &byte in payload {
        if zeros >= 2 && byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
}

#[cfg(test)]
impl BitWriter {
    /// The bits as text of zeros and ones.
    pub(crate) fn to_text(&self) -> String {
        let bit = |byte: u8, i: u32| if byte >> (7 - i) & 1 == 1 { '1' } else { '0' };
        self.as_bytes().iter().flat_map(|&byte| (0..8).map(move |i| bit(byte, i))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(write: impl Fn(&mut BitWriter), expect: &str) {
        let mut writer = BitWriter::default();
        write(&mut writer);
        writer.trail();
        let bits = writer.to_text();
        let padded = format!("{expect}1");
        assert_eq!(bits.trim_end_matches('0'), padded.replace(' ', ""));
        assert_eq!(bits.len() % 8, 0);
    }

    #[test]
    fn codes_are_those_of_the_standard() {
        for (value, expect) in
            [(0, "1"), (1, "010"), (2, "011"), (3, "00100"), (7, "0001000"), (255, "00000000100000000")]
        {
            check(|w| w.ue(value), expect);
        }
        for (value, expect) in
            [(0, "1"), (1, "010"), (-1, "011"), (2, "00100"), (-2, "00101"), (4, "0001000")]
        {
            check(|w| w.se(value), expect);
            assert_eq!(signed_bits(value) as usize, expect.len());
        }
        check(|w| w.bits(0xdead_beef, 32), "11011110101011011011111011101111");
        check(|w| (0..9).for_each(|_| w.flag(true)), "111111111");
    }

    #[test]
    fn start_codes_never_appear_inside() {
        for (payload, expect) in [
            (&[0, 0, 1][..], &[9, 0, 0, 3, 1][..]),
            (&[0, 0, 0, 0, 0], &[9, 0, 0, 3, 0, 0, 3, 0]),
            (&[0, 0, 4], &[9, 0, 0, 4]),
            (&[0, 1, 0, 0, 3], &[9, 0, 1, 0, 0, 3, 3]),
        ] {
            let mut out = Vec::new();
            nal(9, payload, &mut out);
            assert_eq!(out, expect);
        }
    }
}

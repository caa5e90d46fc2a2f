//! The variable-length codes of CAVLC, as printed in the standard (ITU-T H.264, 9.1.2 and 9.2).

/// A code word: its bits and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Code {
    pub(crate) bits: u16,
    pub(crate) len: u8,
}

/// All tables, parsed once.
pub(crate) struct Tables {
    /// `coeff_token`: `[context][total coefficients][trailing ones]`; contexts 0 to 2, and 3 for chroma DC.
    tokens: [[[Code; 4]; 17]; 4],
    /// `total_zeros`: `[total coefficients - 1][zeros]`, for blocks of 15 or 16.
    zeros: [[Code; 16]; 15],
    /// The same for chroma DC, with blocks of 4.
    chroma_zeros: [[Code; 16]; 3],
    /// `run_before`: `[zeros left - 1, at most 6][run]`.
    runs: [[Code; 16]; 7],
    /// Code number of each `coded_block_pattern` of inter macroblocks.
    pub(crate) inter_pattern: [u8; 48],
}

impl Tables {
    pub(crate) fn new() -> Self {
        let mut tokens = [[[Code::default(); 4]; 17]; 4];
        for (context, rows) in COEFF_TOKEN.iter().enumerate() {
            for (total, row) in rows.lines().map(str::trim).filter(|l| !l.is_empty()).enumerate() {
                for (ones, code) in codes(row).enumerate() {
                    tokens[context][total][ones] = code;
                }
            }
        }
        let mut inter_pattern = [0; 48];
        for (number, pattern) in INTER_PATTERNS.iter().enumerate() {
            inter_pattern[usize::from(*pattern)] = number as u8;
        }
        Tables {
            tokens,
            zeros: rows(&TOTAL_ZEROS),
            chroma_zeros: rows(&CHROMA_DC_TOTAL_ZEROS),
            runs: rows(&RUN_BEFORE),
            inter_pattern,
        }
    }

    /// Code of `coeff_token` if the neighbours have `context` coefficients; -1 for chroma DC.
    pub(crate) fn token(&self, context: i32, total: usize, ones: usize) -> Code {
        let table = match context {
            -1 => 3,
            0 | 1 => 0,
            2 | 3 => 1,
            4..8 => 2,
            // From 8 coefficients on, a fixed-length code of six bits.
            _ => {
                let bits = if total == 0 { 3 } else { (total - 1) << 2 | ones };
                return Code { bits: bits as u16, len: 6 };
            }
        };
        self.tokens[table][total][ones]
    }

    /// Code of `total_zeros` for a block of `size` coefficients, `total` of them nonzero.
    pub(crate) fn zeros(&self, size: usize, total: usize, zeros: usize) -> Code {
        if size == 4 { self.chroma_zeros[total - 1][zeros] } else { self.zeros[total - 1][zeros] }
    }

    /// Code of `run_before` if `left` zeros (at least one) remain to be placed.
    pub(crate) fn run(&self, left: usize, run: usize) -> Code {
        self.runs[left.min(7) - 1][run]
    }
}

/// Parses code words separated by spaces; `-` if there is none.
fn codes(row: &str) -> impl Iterator<Item = Code> + '_ {
    row.split_whitespace().map(|word| {
        if word == "-" {
            return Code::default();
        }
        let bits = word.bytes().fold(0, |bits, digit| bits << 1 | u16::from(digit - b'0'));
        Code { bits, len: word.len() as u8 }
    })
}

fn rows<const N: usize>(table: &[&str; N]) -> [[Code; 16]; N] {
    table.map(|row| {
        let mut out = [Code::default(); 16];
        for (slot, code) in out.iter_mut().zip(codes(row)) {
            *slot = code;
        }
        out
    })
}

/// Table 9-5. One line per total (0 to 16), with the codes for 0 to 3 trailing ones.
const COEFF_TOKEN: [&str; 4] = [
    "1 - - -
    000101 01 - -
    00000111 000100 001 -
    000000111 00000110 0000101 00011
    0000000111 000000110 00000101 000011
    00000000111 0000000110 000000101 0000100
    0000000001111 00000000110 0000000101 00000100
    0000000001011 0000000001110 00000000101 000000100
    0000000001000 0000000001010 0000000001101 0000000100
    00000000001111 00000000001110 0000000001001 00000000100
    00000000001011 00000000001010 00000000001101 0000000001100
    000000000001111 000000000001110 00000000001001 00000000001100
    000000000001011 000000000001010 000000000001101 00000000001000
    0000000000001111 000000000000001 000000000001001 000000000001100
    0000000000001011 0000000000001110 0000000000001101 000000000001000
    0000000000000111 0000000000001010 0000000000001001 0000000000001100
    0000000000000100 0000000000000110 0000000000000101 0000000000001000",
    "11 - - -
    001011 10 - -
    000111 00111 011 -
    0000111 001010 001001 0101
    00000111 000110 000101 0100
    00000100 0000110 0000101 00110
    000000111 00000110 00000101 001000
    00000001111 000000110 000000101 000100
    00000001011 00000001110 00000001101 0000100
    000000001111 00000001010 00000001001 000000100
    000000001011 000000001110 000000001101 00000001100
    000000001000 000000001010 000000001001 00000001000
    0000000001111 0000000001110 0000000001101 000000001100
    0000000001011 0000000001010 0000000001001 0000000001100
    0000000000111 00000000001011 0000000000110 0000000001000
    00000000001001 00000000001000 00000000001010 0000000000001
    00000000000111 00000000000110 00000000000101 00000000000100",
    "1111 - - -
    001111 1110 - -
    001011 01111 1101 -
    001000 01100 01110 1100
    0001111 01010 01011 1011
    0001011 01000 01001 1010
    0001001 001110 001101 1001
    0001000 001010 001001 1000
    00001111 0001110 0001101 01101
    00001011 00001110 0001010 001100
    000001111 00001010 00001101 0001100
    000001011 000001110 00001001 00001100
    000001000 000001010 000001101 00001000
    0000001101 000000111 000001001 000001100
    0000001001 0000001100 0000001011 0000001010
    0000000101 0000001000 0000000111 0000000110
    0000000001 0000000100 0000000011 0000000010",
    "01 - - -
    000111 1 - -
    000100 000110 001 -
    000011 0000011 0000010 000101
    000010 00000011 00000010 0000000",
];

/// Tables 9-7 and 9-8. One line per total (1 to 15), with the codes for 0, 1, … zeros.
const TOTAL_ZEROS: [&str; 15] = [
    "1 011 010 0011 0010 00011 00010 000011 000010 0000011 0000010 00000011 00000010 000000011 000000010 000000001",
    "111 110 101 100 011 0101 0100 0011 0010 00011 00010 000011 000010 000001 000000",
    "0101 111 110 101 0100 0011 100 011 0010 00011 00010 000001 00001 000000",
    "00011 111 0101 0100 110 101 100 0011 011 0010 00010 00001 00000",
    "0101 0100 0011 111 110 101 100 011 0010 00001 0001 00000",
    "000001 00001 111 110 101 100 011 010 0001 001 000000",
    "000001 00001 101 100 011 11 010 0001 001 000000",
    "000001 0001 00001 011 11 10 010 001 000000",
    "000001 000000 0001 11 10 001 01 00001",
    "00001 00000 001 11 10 01 0001",
    "0000 0001 001 010 1 011",
    "0000 0001 01 1 001",
    "000 001 1 01",
    "00 01 1",
    "0 1",
];

/// Table 9-9 (a).
const CHROMA_DC_TOTAL_ZEROS: [&str; 3] = ["1 01 001 000", "1 01 00", "1 0"];

/// Table 9-10. One line per number of zeros left (1 to 6, then more), with the codes for runs of 0, 1, …
const RUN_BEFORE: [&str; 7] = [
    "1 0",
    "1 01 00",
    "11 10 01 00",
    "11 10 01 001 000",
    "11 10 011 010 001 000",
    "11 000 001 011 010 101 100",
    "111 110 101 100 011 010 001 0001 00001 000001 0000001 00000001 000000001 0000000001 00000000001",
];

/// Table 9-4, inter column: the coded block pattern of every code number.
const INTER_PATTERNS: [u8; 48] = [
    0, 16, 1, 2, 4, 8, 32, 3, 5, 10, 12, 15, 47, 7, 11, 13, 14, 6, 9, 31, 35, 37, 42, 44, 33, 34, 36, 40, 39,
    43, 45, 46, 17, 18, 20, 24, 19, 21, 26, 28, 23, 27, 29, 30, 22, 25, 38, 41,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no code word is a prefix of another; returns the used part of the code space, in units of
    /// 2^-16.
    #[track_caller]
    fn check_prefix_free(name: &str, words: &[Code]) -> u32 {
        let words: Vec<Code> = words.iter().copied().filter(|c| c.len > 0).collect();
        for (i, a) in words.iter().enumerate() {
            assert!(u32::from(a.bits) >> a.len == 0, "{name}");
            for b in &words[i + 1..] {
                let len = a.len.min(b.len);
                assert_ne!(a.bits >> (a.len - len), b.bits >> (b.len - len), "{name}: {a:?} and {b:?}");
            }
        }
        words.iter().map(|c| 1 << (16 - c.len)).sum()
    }

    #[test]
    fn every_table_is_a_prefix_code_with_all_its_words() {
        let tables = Tables::new();
        let counts = [62, 62, 62, 14];
        for (i, table) in tables.tokens.iter().enumerate() {
            let words = table.as_flattened();
            assert_eq!(words.iter().filter(|c| c.len > 0).count(), counts[i], "coeff_token {i}");
            check_prefix_free("coeff_token", words);
        }
        for (i, row) in tables.zeros.iter().enumerate() {
            assert_eq!(row.iter().filter(|c| c.len > 0).count(), 16 - i, "total_zeros {i}");
            // All rows except the first use every bit pattern.
            let full = check_prefix_free("total_zeros", row);
            assert_eq!(full, if i == 0 { (1 << 16) - (1 << 7) } else { 1 << 16 }, "total_zeros {i}");
        }
        for (i, row) in tables.chroma_zeros.iter().enumerate() {
            assert_eq!(row.iter().filter(|c| c.len > 0).count(), 4 - i, "chroma total_zeros {i}");
            assert_eq!(check_prefix_free("chroma total_zeros", row), 1 << 16);
        }
        for (i, row) in tables.runs.iter().enumerate() {
            assert_eq!(
                row.iter().filter(|c| c.len > 0).count(),
                if i == 6 { 15 } else { i + 2 },
                "run_before {i}"
            );
            let full = check_prefix_free("run_before", row);
            assert_eq!(full, if i == 6 { (1 << 16) - (1 << 5) } else { 1 << 16 }, "run_before {i}");
        }
        let mut patterns = tables.inter_pattern;
        patterns.sort_unstable();
        assert!(patterns.iter().enumerate().all(|(i, &n)| usize::from(n) == i), "a permutation");
    }
}

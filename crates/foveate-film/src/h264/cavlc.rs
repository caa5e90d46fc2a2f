//! Encodes coefficients as bits: context-adaptive variable-length coding (ITU-T H.264, 9.2).

use super::bits::BitWriter;
use super::tables::{Code, Tables};

/// The largest level that the code of the baseline profile can always represent.
pub(crate) const MAX_LEVEL: i32 = 2063;

/// Writes the coefficients of one block, lowest frequency first; returns the number of nonzero ones.
///
/// `context` is the mean coefficient count of the neighbouring blocks, or -1 for chroma DC.
pub(crate) fn residual(writer: &mut BitWriter, tables: &Tables, levels: &[i32], context: i32) -> usize {
    // Highest frequency first: the levels, and the number of zeros before each.
    let mut found = [(0_i32, 0_usize); 16];
    let mut total = 0;
    let mut zeros = 0;
    let mut run = 0;
    for &level in levels.iter().rev() {
        if level != 0 {
            if total > 0 {
                found[total - 1].1 = run;
                zeros += run;
            }
            found[total] = (level, 0);
            total += 1;
            run = 0;
        } else if total > 0 {
            run += 1;
        }
    }
    if total > 0 {
        found[total - 1].1 = run;
        zeros += run;
    }
    let found = &found[..total];
    let ones = found.iter().take(3).take_while(|(level, _)| level.abs() == 1).count();
    put(writer, tables.token(context, total, ones));
    if total == 0 {
        return 0;
    }
    for (level, _) in &found[..ones] {
        writer.flag(*level < 0);
    }
    let mut suffix = u32::from(total > 10 && ones < 3);
    for (i, &(level, _)) in found.iter().enumerate().skip(ones) {
        let mut code = if level > 0 { 2 * level - 2 } else { -2 * level - 1 } as u32;
        // After fewer than three ones, the next level cannot be a one.
        if i == ones && ones < 3 {
            code -= 2;
        }
        put_level(writer, code, suffix);
        if suffix == 0 {
            suffix = 1;
        }
        if level.abs() > 3 << (suffix - 1) && suffix < 6 {
            suffix += 1;
        }
    }
    if total < levels.len() {
        put(writer, tables.zeros(levels.len(), total, zeros));
    }
    let mut left = zeros;
    for &(_, run) in &found[..total - 1] {
        if left == 0 {
            break;
        }
        put(writer, tables.run(left, run));
        left -= run;
    }
    total
}

fn put(writer: &mut BitWriter, code: Code) {
    debug_assert!(code.len > 0, "no such code");
    writer.bits(u32::from(code.bits), u32::from(code.len));
}

/// Writes the code of a level: a prefix of zeros terminated by a one, and a suffix.
fn put_level(writer: &mut BitWriter, code: u32, suffix: u32) {
    let (prefix, bits, len) = if suffix == 0 && code < 14 {
        (code, 0, 0)
    } else if suffix == 0 && code < 30 {
        (14, code - 14, 4)
    } else if suffix > 0 && code < 15 << suffix {
        (code >> suffix, code & ((1 << suffix) - 1), suffix)
    } else {
        let base = if suffix == 0 { 30 } else { 15 << suffix };
        (15, (code - base).min(4095), 12)
    };
    writer.bits(1, prefix + 1);
    writer.bits(bits, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[i32], context: i32, expect: &str) {
        let mut writer = BitWriter::default();
        residual(&mut writer, &Tables::new(), levels, context);
        writer.trail();
        let bits = writer.to_text();
        assert_eq!(bits.trim_end_matches('0'), format!("{}1", expect.replace(' ', "")), "{levels:?}");
    }

    #[test]
    fn worked_examples() {
        // Richardson, "The H.264 Advanced Video Compression Standard", examples of CAVLC blocks.
        check(&[0, 3, 0, 1, -1, -1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], 0, "0000100 0 1 1 1 0010 111 10 1 101");
        check(
            &[-2, 4, 3, -3, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            0,
            "0000000110 1 0001 0010 00010 111 0011 00",
        );
    }

    #[test]
    fn plain_cases() {
        check(&[0; 16], 0, "1");
        check(&[0; 16], 2, "11");
        check(&[0; 16], 8, "000011");
        check(&[0; 4], -1, "01");
        check(&[1, 0, 0, 0], -1, "1 0 1");
        check(&[1; 15], 9, "111011 000 1 10 10 10 10 10 10 10 10 10 10 10");
    }
}

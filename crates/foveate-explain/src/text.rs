//! Text for pages.

/// `text` with the characters replaced that mean something in HTML and SVG.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Of no use in a page, and not allowed in SVG.
            c if c.is_control() && c != '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// A table for LaTeX with the package `booktabs`: the first column flush left, all others flush right.
pub fn latex<'a>(
    columns: impl ExactSizeIterator<Item = &'a str>,
    rows: impl Iterator<Item = impl Iterator<Item = &'a str>>,
) -> String {
    let kinds = "r".repeat(columns.len().saturating_sub(1));
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let mut out = format!("\\begin{{tabular}}{{l{kinds}}}\n\\toprule\n{}", line(columns.map(tex).collect()));
    out += "\\midrule\n";
    for row in rows {
        out += &line(row.map(tex).collect());
    }
    out + "\\bottomrule\n\\end{tabular}\n"
}

/// `text` with what LaTeX does not set as it is; what stands between `**` is bold.
fn tex(text: &str) -> String {
    let text = text.trim();
    if let Some(bold) = text.strip_prefix("**").and_then(|text| text.strip_suffix("**")) {
        return format!("\\textbf{{{}}}", tex(bold));
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', c]),
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("$<$"),
            '>' => out.push_str("$>$"),
            '−' => out.push_str("$-$"),
            '±' => out.push_str("$\\pm$"),
            '×' => out.push_str("$\\times$"),
            '·' => out.push_str("$\\cdot$"),
            '…' => out.push_str("\\,\\ldots\\,"),
            '–' => out.push_str("--"),
            '—' => out.push_str("---"),
            '↑' => out.push_str("$\\uparrow$"),
            '↓' => out.push_str("$\\downarrow$"),
            'σ' => out.push_str("$\\sigma$"),
            '≥' => out.push_str("$\\geq$"),
            '≤' => out.push_str("$\\leq$"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// One text after the other.
pub fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().concat()
}

/// `bytes` in base 64 (RFC 4648), with padding.
pub fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let known = digit <= three.len();
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if known { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_for_latex() {
        let rows = [["a_b & 50 %", "**−1.5 ± 2**"], ["x < y", "—"]];
        let table = latex(["name", "RIS ↓"].into_iter(), rows.iter().map(|row| row.iter().copied()));
        let expect = "\\begin{tabular}{lr}\n\\toprule\nname & RIS $\\downarrow$ \\\\\n\\midrule\n\
                      a\\_b \\& 50 \\% & \\textbf{$-$1.5 $\\pm$ 2} \\\\\nx $<$ y & --- \\\\\n\\bottomrule\n\\end{tabular}\n";
        assert_eq!(table, expect);
    }

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, expect) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), expect);
        }
        assert_eq!(base64(&[0xff, 0xfe, 0xfd]), "//79");
    }

    #[test]
    fn nothing_escapes() {
        assert_eq!(escape("<script>\"a\" & 'b'\u{1}"), "&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39; ");
    }
}

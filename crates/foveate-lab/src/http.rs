//! As much of HTTP/1.1 as a page of a few files needs: one GET per connection.

use std::fmt::Write as _;
use std::io::{self, Read, Write};

/// Longest head of a request in bytes.
pub(super) const MAX_HEAD: usize = 8 << 10;

/// The head of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// Without the query.
    pub(super) path: String,
    /// What follows the question mark.
    pub(super) query: String,
    headers: Vec<(String, String)>,
}

/// A request that is not answered with what it asks for: status and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal(pub(super) u16, pub(super) &'static str);

impl Head {
    /// The value of header `name`, which is in lower case; `None` when it is absent or there are several.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.headers.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let first = all.next();
        if all.next().is_some() { None } else { first }
    }

    /// Returns whether there is a header `name`, however often.
    pub(super) fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(key, _)| key == name)
    }

    /// Returns whether header `name` lists `word`, in any case.
    pub(super) fn lists(&self, name: &str, word: &str) -> bool {
        let mut all = self.headers.iter().filter(|(key, _)| key == name);
        all.any(|(_, value)| value.split(',').any(|part| part.trim().eq_ignore_ascii_case(word)))
    }

    /// The value of `key` in the query. Values are letters, digits, `-` and `_`: nothing is escaped.
    pub(super) fn asks(&self, key: &str) -> Option<&str> {
        self.query.split('&').find_map(|part| part.strip_prefix(key)?.strip_prefix('='))
    }

    /// Understands the bytes of a head, the empty line at its end included.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, Refusal> {
        let bad = Refusal(400, "this is no HTTP request");
        let text = std::str::from_utf8(bytes).map_err(|_| bad.clone())?;
        let text = text.strip_suffix("\r\n\r\n").ok_or(bad.clone())?;
        if text.bytes().any(|b| (b < b' ' && b != b'\r' && b != b'\n' && b != b'\t') || b == 0x7f) {
            return Err(bad);
        }
        let mut lines = text.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let &[method, target, version] = &first[..] else { return Err(bad) };
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || !target.starts_with('/') {
            return Err(bad);
        }
        if method != "GET" {
            return Err(Refusal(405, "only GET is answered here"));
        }
        let mut headers = Vec::new();
        for line in lines {
            let (name, value) = line.split_once(':').ok_or(bad.clone())?;
            let token =
                !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
            if !token || value.contains(['\r', '\n']) || headers.len() >= 100 {
                return Err(bad);
            }
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Ok(Head { path: path.to_owned(), query: query.to_owned(), headers })
    }
}

/// Reads up to the end of a head. Gives back the head and what came after it; `in_time` is asked before every read.
pub(super) fn read_head(
    from: &mut impl Read,
    in_time: &mut dyn FnMut() -> bool,
) -> Result<(Head, Vec<u8>), Refusal> {
    let mut bytes = Vec::with_capacity(1024);
    let mut part = [0; 1024];
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(at + 4);
            return Ok((Head::parse(&bytes)?, rest));
        }
        if bytes.len() > MAX_HEAD {
            return Err(Refusal(431, "the head of this request is too long"));
        }
        if !in_time() {
            return Err(Refusal(408, "this request took too long"));
        }
        match from.read(&mut part) {
            Ok(0) => return Err(Refusal(400, "this request ended early")),
            Ok(n) => bytes.extend(&part[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return Err(Refusal(408, "this request took too long")),
        }
    }
}

/// Sends a whole answer; the connection ends with it.
pub(super) fn answer(to: &mut impl Write, status: u16, kind: &str, body: &[u8]) -> io::Result<()> {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        426 => "Upgrade Required",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    for (name, value) in [
        ("Content-Type", kind),
        ("Connection", "close"),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        // Nothing from elsewhere, nothing to elsewhere, nobody around us.
        (
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ] {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
    to.write_all(head.as_bytes())?;
    to.write_all(body)?;
    to.flush()
}

/// Answers with a line for people.
pub(super) fn refuse(to: &mut impl Write, Refusal(status, why): &Refusal) -> io::Result<()> {
    answer(to, *status, "text/plain; charset=utf-8", format!("{why}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<(&str, &str), u16>) {
        let got = Head::parse(text.as_bytes());
        let got = got.as_ref().map(|head| (&*head.path, &*head.query)).map_err(|refusal| refusal.0);
        assert_eq!(got, expect, "{text:?}");
    }

    #[test]
    fn heads() {
        check("GET / HTTP/1.1\r\nHost: a\r\n\r\n", Ok(("/", "")));
        check("GET /ws?token=a&b=c HTTP/1.1\r\n\r\n", Ok(("/ws", "token=a&b=c")));
        check("POST / HTTP/1.1\r\n\r\n", Err(405));
        for bad in [
            "",
            "\r\n\r\n",
            "GET /\r\n\r\n",
            "GET  / HTTP/1.1\r\n\r\n",
            "GET / HTTP/2\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nno colon\r\n\r\n",
            "GET / HTTP/1.1\r\n folded: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        ] {
            check(bad, Err(400));
        }
        check(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(101)), Err(400));
    }

    #[test]
    fn headers_are_found_whatever_their_case() {
        let text = "GET /?token=x&tokens=y HTTP/1.1\r\nHOST: a:1\r\nconnection: keep-alive, UPGRADE\r\ntwice: 1\r\nTwice: 2\r\n\r\n";
        let head = Head::parse(text.as_bytes()).expect("good");
        assert_eq!(head.header("host"), Some("a:1"));
        assert_eq!((head.header("none"), head.header("twice")), (None, None));
        assert!(head.lists("connection", "upgrade") && !head.lists("connection", "grade"));
        assert_eq!((head.asks("token"), head.asks("tok")), (Some("x"), None));
    }

    #[test]
    fn reading_ends() {
        let read = |bytes: &[u8], patience: usize| {
            let mut left = patience;
            let mut in_time = || {
                left = left.saturating_sub(1);
                left > 0
            };
            read_head(&mut { bytes }, &mut in_time)
        };
        let (head, rest) = read(b"GET / HTTP/1.1\r\n\r\nmore", 9).expect("good");
        assert_eq!((&*head.path, &rest[..]), ("/", &b"more"[..]));
        let fails = |bytes: &[u8], patience| read(bytes, patience).expect_err("bad").0;
        assert_eq!(fails(b"GET / HTTP/1.1\r\n", 9), 400);
        assert_eq!(fails(&vec![b'a'; 1 << 20], 99), 431);
        assert_eq!(fails(&vec![b'a'; 1 << 20], 3), 408);
    }
}

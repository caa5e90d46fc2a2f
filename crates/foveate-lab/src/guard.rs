//! Who may speak to the lab.
//!
//! A browser is an open door: any page that its user visits can send requests to this machine. Two headers that a page
//! cannot forge close it. `Host` must name this machine, or a foreign name that was pointed here (DNS rebinding) could
//! read along; `Origin` of a WebSocket must be the lab itself, or any page could drive. Neither keeps out other users
//! of this machine, or those who reach it from elsewhere: a session needs the token, too.

use std::net::IpAddr;

use crate::http::{Head, Refusal};

/// What is let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guard {
    /// Only this machine can reach the lab.
    local: bool,
    token: String,
}

impl Guard {
    /// For a lab that listens at `address`.
    pub(super) fn new(address: IpAddr, token: String) -> Self {
        Guard { local: address.is_loopback(), token }
    }

    /// Whether anything may be fetched.
    pub(super) fn host(&self, head: &Head) -> Result<(), Refusal> {
        let Some(host) = head.header("host") else {
            return Err(Refusal(400, "a request needs one Host header"));
        };
        // Ports may differ, as through a tunnel.
        if self.local && !is_here(name(host)) {
            return Err(Refusal(403, "this lab answers to localhost and this machine's own addresses only"));
        }
        Ok(())
    }

    /// Whether a session may begin.
    pub(super) fn session(&self, head: &Head) -> Result<(), Refusal> {
        self.host(head)?;
        // Browsers always say where a WebSocket comes from; what says nothing is no browser.
        if let Some(origin) = head.header("origin") {
            let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if from.is_none() || from != head.header("host") {
                return Err(Refusal(403, "another site may not drive here"));
            }
        } else if head.has("origin") || head.header("sec-fetch-site").is_some_and(|s| s == "cross-site") {
            return Err(Refusal(403, "another site may not drive here"));
        }
        let given = head.asks("token").unwrap_or_default();
        if same(self.token.as_bytes(), given.as_bytes()) {
            return Ok(());
        }
        Err(Refusal(
            403,
            "this lab wants its token: open the address with the token, which the lab gave when it started",
        ))
    }
}

/// A `Host` without its port.
fn name(host: &str) -> &str {
    let port = host.rfind(':').filter(|&at| host[at + 1..].bytes().all(|b| b.is_ascii_digit()));
    port.map_or(host, |at| &host[..at])
}

/// Returns whether a name can mean this machine alone: no foreign name server has a say in it.
fn is_here(name: &str) -> bool {
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    name == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Compares in a time that does not tell how much agrees.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (x, y)| differ | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: &str = "127.0.0.1";
    const GOOD: &str = "/ws?token=secret";

    fn ask(address: &str, target: &str, headers: &str) -> Result<(), u16> {
        let text = format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
        let head = Head::parse(text.as_bytes()).expect("a good head");
        let guard = Guard::new(address.parse().expect("an address"), "secret".to_owned());
        guard.session(&head).map_err(|refusal| refusal.0)
    }

    #[test]
    fn the_machine_itself_is_let_in() {
        for host in ["127.0.0.1:8080", "localhost:8080", "localhost", "[::1]:9", "127.0.0.2:80", "127.1.2.3"]
        {
            assert_eq!(ask(LOCAL, GOOD, &format!("Host: {host}\r\n")), Ok(()), "{host}");
            let same = format!("Host: {host}\r\nOrigin: http://{host}\r\n");
            assert_eq!(ask(LOCAL, GOOD, &same), Ok(()), "{host}");
            // Other users of the machine do not know the token.
            for target in ["/ws", "/ws?token=", "/ws?token=secrets", "/ws?token=secre"] {
                assert_eq!(ask(LOCAL, target, &same), Err(403), "{host} {target}");
            }
        }
    }

    #[test]
    fn foreign_names_and_foreign_pages_are_not() {
        for headers in [
            "",
            "Host: evil.example\r\n",
            "Host: evil.example:8080\r\nOrigin: http://evil.example:8080\r\n",
            "Host: 127.0.0.1.evil.example\r\n",
            "Host: 127.1\r\n",
            "Host: 0x7f000001\r\n",
            "Host: 192.168.0.7\r\n",
            "Host: [::2]:80\r\n",
            "Host: localhost:80:80\r\n",
            "Host: 127.0.0.1:1\r\nHost: evil.example\r\n",
            "Host: 127.0.0.1:1\r\nOrigin: http://evil.example\r\n",
            "Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:2\r\n",
            "Host: 127.0.0.1:1\r\nOrigin: null\r\n",
            "Host: 127.0.0.1:1\r\nOrigin: http://127.0.0.1:1\r\nOrigin: http://evil.example\r\n",
            "Host: 127.0.0.1:1\r\nOrigin: file://\r\n",
            "Host: 127.0.0.1:1\r\nSec-Fetch-Site: cross-site\r\n",
        ] {
            assert!(ask(LOCAL, GOOD, headers).is_err(), "{headers:?}");
        }
    }

    #[test]
    fn where_others_can_reach_it_the_token_counts() {
        let host = "Host: 192.168.0.7:8080\r\nOrigin: http://192.168.0.7:8080\r\n";
        for (target, expect) in [
            (GOOD, Ok(())),
            ("/ws?token=secre", Err(403)),
            ("/ws?token=secrets", Err(403)),
            ("/ws?token=", Err(403)),
            ("/ws", Err(403)),
        ] {
            assert_eq!(ask("0.0.0.0", target, host), expect, "{target}");
        }
    }
}

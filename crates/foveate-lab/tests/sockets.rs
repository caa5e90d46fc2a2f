//! The lab at its sockets: who is let in, what hostile bytes do, and that no page harms another.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use foveate_core::{ActMode, Seed};
use foveate_envs::registry::EnvRequest;
use foveate_lab::{Lab, LabRequest, MAX_SESSIONS, Token, lab_setup};
use foveate_run::champion::champion;
use foveate_run::evaluate::{EvalRequest, Labels, Seeds, run};
use foveate_run::workers::Stop;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Error, Message, WebSocket};

const TOKEN: &str = "a-token-for-tests";

fn world() -> EnvRequest {
    let options = [("max_steps".to_owned(), "100".to_owned())].into();
    EnvRequest { id: "car-racing".into(), picture: Some("fast".into()), options, ..EnvRequest::default() }
}

/// A lab that listens at a port of its own, until dropped.
struct Served {
    address: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        Served::at(Ipv4Addr::LOCALHOST).expect("a free port")
    }

    fn at(host: Ipv4Addr) -> Option<Self> {
        let setup = lab_setup(world(), vec![]).expect("the champion drives");
        let request = LabRequest { setup, host: IpAddr::V4(host), port: 0, token: Token::Text(TOKEN.into()) };
        let lab = Lab::open(request).ok()?;
        let url = lab.url();
        let address = url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
        let address = address.and_then(|text| text.parse().ok()).expect("an address");
        assert!(url.ends_with(&format!("/?token={TOKEN}")), "{url}");
        let stop = Stop::default();
        let asked = stop.clone();
        let thread = thread::spawn(move || lab.serve(&asked).expect("the socket holds"));
        Some(Served { address, stop, thread: Some(thread) })
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_mins(1))).expect("a good socket");
        stream
    }

    /// Sends bytes; gives back all that comes until the other side closes.
    fn ask(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        stream.write_all(bytes).expect("it takes them");
        let mut answer = vec![];
        // A connection that is reset said what it had to say.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The status of a GET with these headers.
    fn get(&self, target: &str, headers: &str) -> String {
        let answer = self.ask(format!("GET {target} HTTP/1.1\r\n{headers}\r\n").as_bytes());
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn host(&self) -> String {
        format!("Host: {}\r\n", self.address)
    }

    fn open(&self) -> Page {
        let request =
            format!("ws://{}/ws?token={TOKEN}", self.address).into_client_request().expect("a good address");
        let (socket, _) = tungstenite::client(request, self.connect()).expect("let in");
        Page { socket }
    }

    /// A page that got a slot, however long the slots of others take to be given back.
    fn admitted(&self) -> Page {
        for _ in 0..600 {
            let mut page = self.open();
            if page.word()["type"] == "hello" {
                return page;
            }
            thread::sleep(Duration::from_millis(100));
        }
        panic!("no runner");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.ask();
        let ended = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            ended.expect("there is one").expect("the lab does not panic");
        }
    }
}

struct Page {
    socket: WebSocket<TcpStream>,
}

impl Page {
    fn send(&mut self, command: &Value) {
        self.socket.send(Message::text(command.to_string())).expect("it takes commands");
    }

    /// The next word; frames before it are drawn at once.
    fn word(&mut self) -> Value {
        loop {
            match self.socket.read().expect("it speaks") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Binary(frame) => self.drawn(&frame),
                _ => {}
            }
        }
    }

    /// The next word of this kind.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let word = self.word();
            if word["type"] == kind {
                return word;
            }
        }
    }

    fn drawn(&mut self, frame: &[u8]) {
        assert_eq!(frame[0], 1, "a frame");
        let number = u32::from_le_bytes(frame[2..6].try_into().expect("four bytes"));
        self.send(&json!({ "type": "shown", "frame": number }));
    }

    /// Steps and score of the first runner in the next frame.
    fn frame(&mut self) -> (u32, f64) {
        loop {
            if let Message::Binary(frame) = self.socket.read().expect("it speaks") {
                self.drawn(&frame);
                let steps = u32::from_le_bytes(frame[7..11].try_into().expect("four"));
                return (steps, f64::from_le_bytes(frame[11..19].try_into().expect("eight")));
            }
        }
    }
}

#[test]
fn files_are_served_and_nothing_else() {
    let lab = Served::new();
    let host = lab.host();
    for path in [
        "/",
        "/?token=whatever",
        "/lab.css",
        "/lab.js",
        "/connection.js",
        "/display.js",
        "/panel.js",
        "/input.js",
        "/icon.svg",
    ] {
        assert_eq!(lab.get(path, &host), "200", "{path}");
    }
    for path in ["/x", "/../Cargo.toml", "/lab.js/", "/%2e%2e/etc/passwd", "//etc/passwd", "/index.html"] {
        assert_eq!(lab.get(path, &host), "404", "{path}");
    }
    assert_eq!(lab.get("/", "Host: evil.example\r\n"), "403");
    assert_eq!(lab.get("/", ""), "400");
    assert_eq!(lab.get("/ws", &host), "403", "no token");
    assert_eq!(lab.get(&format!("/ws?token={TOKEN}"), &host), "426", "no WebSocket");
    assert!(lab.ask(b"POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(lab.ask(b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n").starts_with("HTTP/1.1 400"), "TLS");
    assert!(lab.ask(&vec![b'a'; 20_000]).starts_with("HTTP/1.1 431"));
    let page = lab.ask(format!("GET / HTTP/1.1\r\n{host}\r\n").as_bytes());
    assert!(page.contains("Content-Security-Policy: default-src 'none'") && page.contains("nosniff"));
    // Nothing on the page comes from elsewhere.
    for path in ["/", "/lab.css", "/lab.js", "/connection.js", "/display.js", "/panel.js", "/input.js"] {
        let file = lab.ask(format!("GET {path} HTTP/1.1\r\n{host}\r\n").as_bytes());
        assert!(
            !file.contains("http://") && !file.contains("https://") && !file.contains("@import"),
            "{path}"
        );
    }
}

#[test]
fn a_session_is_for_the_page_itself_with_its_token() {
    let lab = Served::new();
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let host = lab.host();
    let good = format!("/ws?token={TOKEN}");
    for (target, headers) in [
        ("/ws", host.clone()),
        ("/ws?token=a-token-for-test", host.clone()),
        (&good, format!("{host}Origin: http://evil.example\r\n")),
        (&good, format!("{host}Origin: null\r\n")),
        (&good, "Host: evil.example\r\nOrigin: http://evil.example\r\n".to_owned()),
    ] {
        assert_eq!(lab.get(target, &format!("{headers}{upgrade}")), "403", "{target} {headers:?}");
    }
    let mut stream = lab.connect();
    let request = format!("GET {good} HTTP/1.1\r\n{host}Origin: http://{}\r\n{upgrade}\r\n", lab.address);
    stream.write_all(request.as_bytes()).expect("it takes it");
    let mut answer = [0; 129];
    stream.read_exact(&mut answer).expect("it answers");
    let answer = String::from_utf8_lossy(&answer);
    // The example of RFC 6455, section 1.3.
    assert!(
        answer.starts_with("HTTP/1.1 101") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{answer}"
    );
}

#[test]
fn two_pages_drive_apart_and_one_that_sleeps_holds_nobody_up() {
    let lab = Served::new();
    let (mut one, mut two, _sleeper) = (lab.admitted(), lab.admitted(), lab.admitted());
    one.send(&json!({ "type": "set", "seed": 11, "speed": 0 }));
    two.send(&json!({ "type": "set", "seed": 12, "speed": 0, "shifts": ["hue:3"] }));
    let (first, second) = (one.until("end"), two.until("end"));
    assert_eq!((&first["seed"], &second["seed"]), (&json!(11), &json!(12)));

    // What a page drives undisturbed is the evaluation.
    let (file, _) = champion("car-racing").expect("it comes with us");
    let (env, agent) = (foveate_registry::make(&world()).expect("a world"), file.agent().expect("an agent"));
    let request = EvalRequest {
        env: &*env,
        agent: &*agent,
        labels: Labels::default(),
        seeds: Seeds::Each(11..12),
        workers: 1,
        max_steps: None,
        mode: ActMode::Greedy,
        reference: None,
    };
    let report = run(&request, &Stop::default()).expect("it drives");
    assert_eq!(first["runners"][0]["score"].as_f64(), Some(report.returns[0]));
    assert_eq!(first["runners"][0]["steps"].as_u64(), Some(report.lengths[0]));
}

#[test]
fn slots_are_few_and_are_given_back() {
    let lab = Served::new();
    let mut pages: Vec<Page> = (0..MAX_SESSIONS).map(|_| lab.admitted()).collect();
    let refused = lab.open().word();
    assert_eq!(refused["final"], true, "{refused}");
    assert!(refused["error"].as_str().is_some_and(|why| why.contains("8 pages drive already")), "{refused}");
    // One leaves politely, one just vanishes.
    pages.pop().expect("eight").socket.close(None).expect("it can leave");
    drop(pages.pop());
    let (mut again, mut more) = (lab.admitted(), lab.admitted());
    again.frame();
    more.frame();
}

#[test]
fn a_thousand_hostile_messages() {
    let lab = Served::new();
    let mut rng = Seed::root(3).child("hostile", 0).rng();
    let mut pick = |n: u64| rng.below(n);
    let mut neighbour = lab.admitted();
    let mut page = lab.admitted();
    for i in 0..1000 {
        let bytes: Vec<u8> = (0..pick(300)).map(|_| pick(256) as u8).collect();
        let message = match i % 4 {
            0 => Message::binary(bytes),
            1 => Message::text(String::from_utf8_lossy(&bytes).into_owned()),
            2 => Message::text(format!(r#"{{"type":"set","seed":{},"speed":{}}}"#, pick(1 << 60), pick(20))),
            _ => Message::Ping(bytes.into_iter().take(100).collect::<Vec<u8>>().into()),
        };
        page.socket.send(message).expect("it takes anything");
        // Draw now and then, as a page would.
        if i % 25 == 0 {
            page.frame();
        }
    }
    page.send(&json!({ "type": "set", "seed": 42 }));
    while page.until("state")["settings"]["seed"] != 42 {}
    neighbour.frame();
}

#[test]
fn broken_frames_end_their_own_session_only() {
    let lab = Served::new();
    let mut neighbour = lab.admitted();
    for (name, bytes) in [
        ("unmasked", &b"\x81\x02{}"[..]),
        ("reserved bits", b"\xf1\x80\0\0\0\0"),
        ("unknown opcode", b"\x83\x80\0\0\0\0"),
        ("long ping", b"\x89\xfe\x10\0\0\0\0\0"),
        ("not UTF-8", b"\x81\x82\0\0\0\0\xff\xfe"),
        ("continued from nothing", b"\x80\x80\0\0\0\0"),
        ("announces 2^63 bytes", b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0"),
        ("announces 64 KiB", b"\x81\xff\0\0\0\0\0\x01\0\0\0\0\0\0"),
        ("half a head", b"\x81"),
        ("half a message", b"\x81\xfe\x10\0\0\0\0\0abc"),
    ] {
        let mut page = lab.admitted();
        let stream = page.socket.get_mut();
        stream.write_all(bytes).expect("it takes bytes");
        if name.starts_with("half") {
            // Half-open: nothing more ever comes, and then the line is cut.
            thread::sleep(Duration::from_millis(50));
            stream.shutdown(std::net::Shutdown::Both).expect("cut");
            continue;
        }
        let ended = loop {
            match page.socket.read() {
                Ok(Message::Close(frame)) => break format!("{frame:?}"),
                Ok(_) => {}
                Err(Error::ConnectionClosed | Error::AlreadyClosed | Error::Io(_) | Error::Protocol(_)) => {
                    break "cut".into();
                }
                Err(error) => panic!("{name}: {error}"),
            }
        };
        assert!(!ended.is_empty(), "{name}");
    }
    // In pieces, and too long in all.
    let mut page = lab.admitted();
    let piece = [&[0x01, 0xfe, 0x0f, 0xa0, 0, 0, 0, 0][..], &[b' '; 4000]].concat();
    let more = [&[0x00, 0xfe, 0x0f, 0xa0, 0, 0, 0, 0][..], &[b' '; 4000]].concat();
    page.socket.get_mut().write_all(&[piece, more.clone(), more].concat()).expect("it takes bytes");
    while !matches!(page.socket.read(), Ok(Message::Close(_)) | Err(_)) {}
    // All slots come back, and the neighbour never noticed.
    drop(page);
    let all: Vec<Page> = (1..MAX_SESSIONS).map(|_| lab.admitted()).collect();
    neighbour.frame();
    drop(all);
}

#[test]
fn who_is_slow_to_ask_is_not_waited_for() {
    let lab = Served::new();
    // Connections that say nothing take none of the slots, and others are served meanwhile.
    let _silent: Vec<TcpStream> = (0..20).map(|_| lab.connect()).collect();
    assert_eq!(lab.get("/", &lab.host()), "200");
    lab.admitted().frame();
}

#[test]
fn slow_connections_make_room() {
    let lab = Served::new();
    let mut driving = lab.admitted();
    // More than there is room for: silent ones, and some that send their request letter by letter.
    let mut slow: Vec<TcpStream> = (0..200).map(|_| lab.connect()).collect();
    for stream in slow.iter_mut().skip(100) {
        // Those that were dropped take nothing more.
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nX: ");
    }
    assert_eq!(lab.get("/", &lab.host()), "200");
    lab.admitted().frame();
    // Who drives is not slow.
    driving.frame();
}

#[test]
fn a_head_that_comes_in_drops_has_its_time_and_no_more() {
    let lab = Served::new();
    let mut stream = lab.connect();
    let mut answer = vec![];
    // One letter a second would last for hours.
    for letter in b"GET / HTTP/1.1\r\nX-Long: ".iter().chain(std::iter::repeat_n(&b'a', 600)) {
        if stream.write_all(&[*letter]).is_err() {
            break;
        }
        stream.set_read_timeout(Some(Duration::from_millis(500))).expect("a good socket");
        match stream.read_to_end(&mut answer) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Ok(_) | Err(_) => break,
        }
    }
    assert!(String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 408"), "{answer:?}");
}

#[test]
fn a_token_is_needed_on_this_machine_too() {
    let setup = lab_setup(world(), vec![]).expect("the champion drives");
    let host = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let lab = Lab::open(LabRequest { setup, host, port: 0, token: Token::Auto }).expect("a free port");
    let token = lab.url().split_once("/?token=").map(|(_, token)| token.to_owned()).expect("a token");
    assert!(token.len() == 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
}

/// Every address of 127.0.0.0/8 is this machine.
#[cfg(target_os = "linux")]
#[test]
fn the_address_that_it_listens_at_is_answered() {
    let lab = Served::at(Ipv4Addr::new(127, 0, 0, 2)).expect("a free port");
    assert_eq!(lab.get("/", &lab.host()), "200");
    lab.admitted().frame();
}

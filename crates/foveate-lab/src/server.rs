//! Sockets of the lab: a thread for each connection, few of them.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::connection;
use crate::guard::Guard;
use crate::http::{self, Head, Refusal};
use foveate_core::hint::Setting;
use foveate_run::RunError;
use foveate_run::clock::Wall;
use foveate_run::workers::Stop;
use foveate_web::{LabSetup, page_file};

/// Most pages that drive at once.
pub const MAX_SESSIONS: usize = 8;
/// Most connections at once, pages and files together.
const MAX_CONNECTIONS: usize = 64;
/// How long a request may take to arrive.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a write may take before its reader counts as gone.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// What must be known to open a page's session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// Something random.
    Auto,
    /// This text.
    Text(String),
}

/// A lab to be opened.
pub struct LabRequest {
    /// Who can drive where.
    pub setup: LabSetup,
    /// Where to listen.
    pub host: IpAddr,
    /// At which port; 0 for any that is free.
    pub port: u16,
    /// What a page must know.
    pub token: Token,
}

/// A lab that listens.
pub struct Lab {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    shared: Arc<LabState>,
}

/// What all connections share.
pub(super) struct LabState {
    pub(super) setup: Arc<LabSetup>,
    guard: Guard,
    sessions: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
    /// Connections that are not yet sessions, oldest first: the slowest request makes room for others.
    pending: Mutex<VecDeque<(u64, TcpStream)>>,
    /// Films being made.
    pub(super) films: Arc<AtomicUsize>,
}

impl Lab {
    /// Listens, but answers nobody before [`Lab::serve`].
    ///
    /// # Errors
    /// When the port is taken or may not be used, or the token is too weak.
    pub fn open(request: LabRequest) -> Result<Self, RunError> {
        let LabRequest { setup, host, port, token } = request;
        let token = match token {
            Token::Auto => random_token()?,
            Token::Text(text) => checked(text)?,
        };
        let listener = TcpListener::bind((host, port)).map_err(|error| RunError::BadRequest {
            why: format!(
                "cannot listen at {host}, port {port}: {error}; choose another one with {}, or 0 for any",
                Setting::Port
            ),
        })?;
        let address = listener.local_addr().map_err(|source| RunError::Output { source })?;
        let guard = Guard::new(host, token.clone());
        let none = || Arc::new(AtomicUsize::new(0));
        let shared = LabState {
            setup: Arc::new(setup),
            guard,
            sessions: none(),
            connections: none(),
            pending: Mutex::default(),
            films: none(),
        };
        Ok(Lab { listener, address, token, shared: Arc::new(shared) })
    }

    /// What to open in a browser.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.token)
    }

    /// Answers until someone asks to stop.
    ///
    /// # Errors
    /// When the socket breaks.
    pub fn serve(&self, stop: &Stop) -> Result<(), RunError> {
        let broken = |source| RunError::Output { source };
        self.listener.set_nonblocking(true).map_err(broken)?;
        let mut number = 0;
        while !stop.asked() {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    number += 1;
                    self.accept(stream, number, stop);
                }
                // Nobody is there, or whoever was there is gone, or there are too many files open for a moment.
                Err(_) => thread::sleep(Duration::from_millis(10)),
            }
        }
        // Sessions see the same flag; they get a moment to say goodbye.
        let clock = Wall::start();
        while self.shared.connections.load(Ordering::SeqCst) > 0 && clock.elapsed() < Duration::from_secs(2) {
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn accept(&self, mut stream: TcpStream, number: u64, stop: &Stop) {
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_write_timeout(Some(WRITE_TIME)))
            .and_then(|()| stream.set_nodelay(true));
        if ready.is_err() {
            return;
        }
        let Some(slot) = self.shared.make_room() else {
            let _ = stream.set_write_timeout(Some(Duration::from_millis(20)));
            let _ = http::refuse(&mut stream, &Refusal(503, "too many connections; close some pages"));
            return;
        };
        let Some(pending) = PendingConnection::begin(&self.shared, number, &stream) else { return };
        let (shared, stop) = (Arc::clone(&self.shared), stop.clone());
        let started = thread::Builder::new().name("lab".into()).spawn(move || {
            let _slot = slot;
            // A connection that breaks is nobody else's concern.
            let _ = handle_connection(stream, pending, &shared, &stop);
        });
        // Without a thread the connection is dropped, and the slot with it.
        drop(started);
    }
}

impl LabState {
    /// Room for one more connection, if need be that of the one that has been asking for the longest.
    fn make_room(&self) -> Option<Slot> {
        for _ in 0..100 {
            if let Some(slot) = Slot::take(&self.connections, MAX_CONNECTIONS) {
                return Some(slot);
            }
            if let Some((_, slowest)) = self.pending().pop_front() {
                // Its thread sees the end and gives the slot back.
                let _ = slowest.shutdown(Shutdown::Both);
            }
            thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An entry of [`LabState::pending`], removed when dropped.
struct PendingConnection {
    shared: Arc<LabState>,
    number: u64,
}

impl PendingConnection {
    fn begin(shared: &Arc<LabState>, number: u64, stream: &TcpStream) -> Option<Self> {
        shared.pending().push_back((number, stream.try_clone().ok()?));
        Some(PendingConnection { shared: Arc::clone(shared), number })
    }
}

impl Drop for PendingConnection {
    fn drop(&mut self) {
        self.shared.pending().retain(|(number, _)| *number != self.number);
    }
}

/// A stream that is read until a moment.
struct Until<'a> {
    stream: &'a TcpStream,
    clock: Wall,
}

impl Read for Until<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = HEAD_TIME.saturating_sub(self.clock.elapsed());
        // A time-out of zero would wait for ever.
        self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        self.stream.read(to)
    }
}

/// One connection: a file, or a session.
fn handle_connection(
    mut stream: TcpStream,
    pending: PendingConnection,
    shared: &LabState,
    stop: &Stop,
) -> io::Result<()> {
    let clock = Wall::start();
    let mut until = Until { stream: &stream, clock: Wall::start() };
    let (head, rest) = match http::read_head(&mut until, &mut || clock.elapsed() < HEAD_TIME) {
        Ok(read) => read,
        Err(refusal) => {
            http::refuse(&mut stream, &refusal)?;
            return drain_request(&mut stream);
        }
    };
    if head.path == "/ws" {
        return match shared.guard.session(&head).and_then(|()| accept_key(&head)) {
            Ok(key) => {
                let answer = format!(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Accept: {key}\r\n\r\n"
                );
                stream.write_all(answer.as_bytes())?;
                let slot = Slot::take(&shared.sessions, MAX_SESSIONS);
                if slot.is_some() {
                    drop(pending);
                }
                connection::serve_session(stream, rest, shared, slot.is_some(), stop)
            }
            Err(refusal) => http::refuse(&mut stream, &refusal),
        };
    }
    if let Err(refusal) = shared.guard.host(&head) {
        return http::refuse(&mut stream, &refusal);
    }
    match page_file(&head.path) {
        Some((kind, body)) => http::answer(&mut stream, 200, kind, body.as_bytes()),
        None => http::refuse(&mut stream, &Refusal(404, "no such page; the lab is at /")),
    }
}

/// Reads what is still sent for a moment: closing a connection with unread input would lose the answer.
fn drain_request(stream: &mut TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let mut part = [0; 4096];
    for _ in 0..64 {
        if stream.read(&mut part)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The answer to the key of a WebSocket handshake (RFC 6455, section 4.2).
fn accept_key(head: &Head) -> Result<String, Refusal> {
    let upgrade = head.lists("connection", "upgrade") && head.lists("upgrade", "websocket");
    let version = head.header("sec-websocket-version") == Some("13");
    match head.header("sec-websocket-key") {
        Some(key) if upgrade && version && key.len() == 24 => {
            Ok(tungstenite::handshake::derive_accept_key(key.as_bytes()))
        }
        _ => Err(Refusal(426, "here a WebSocket of version 13 is spoken")),
    }
}

/// One of a bounded number of slots, released when dropped.
pub(super) struct Slot(Arc<AtomicUsize>);

impl Slot {
    pub(super) fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<Slot> {
        let taken = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| (n < most).then_some(n + 1));
        taken.ok().map(|_| Slot(Arc::clone(count)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// 128 random bits.
fn random_token() -> Result<String, RunError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| RunError::BadRequest {
        why: format!("no random token can be drawn ({error}); choose one with {}", Setting::Token),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn checked(text: String) -> Result<String, RunError> {
    let plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if plain && (8..=128).contains(&text.len()) {
        return Ok(text);
    }
    Err(RunError::BadRequest {
        why: format!(
            "a token is 8 to 128 letters, digits, - and _; leave {} out for a random one",
            Setting::Token
        ),
    })
}

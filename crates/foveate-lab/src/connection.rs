//! A session with its WebSocket.

use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use serde_json::json;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use crate::server::{LabState, MAX_SESSIONS, Slot};
use foveate_run::clock::Wall;
use foveate_run::one_line;
use foveate_run::workers::Stop;
use foveate_web::protocol::MAX_MESSAGE;
use foveate_web::{FILM, Session};

/// Time between frames, at least: as screens have it, and shorter than any step in real time.
const TICK: Duration = Duration::from_millis(16);
/// Share of a tick that is spent on steps at maximum speed.
const BUSY: Duration = Duration::from_millis(11);
/// Interval of checks of the stop flag when idle.
const IDLE: Duration = Duration::from_millis(200);
/// Silence after which a page is pinged, and after which it counts as gone.
const PING_AFTER: Duration = Duration::from_secs(15);
const GONE: Duration = Duration::from_secs(45);
/// Most films being encoded at once.
const MAX_FILMS: usize = 2;

type Socket = WebSocket<TcpStream>;
type Film = Receiver<Result<Vec<u8>, String>>;

/// Drives until the page leaves. `rest` are bytes that came with the handshake; without a free `slot` the page is told so.
pub(super) fn serve_session(
    stream: TcpStream,
    rest: Vec<u8>,
    shared: &LabState,
    slot: bool,
    stop: &Stop,
) -> io::Result<()> {
    let config = WebSocketConfig::default()
        .read_buffer_size(MAX_MESSAGE)
        .write_buffer_size(64 << 10)
        .max_write_buffer_size(64 << 20)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let mut socket = WebSocket::from_partially_read(stream, rest, Role::Server, Some(config));
    let ended = if slot {
        match Session::new(Arc::clone(&shared.setup)) {
            Ok(session) => drive(&mut socket, session, shared, stop),
            Err(error) => reject(&mut socket, &error.to_string()),
        }
    } else {
        let why = format!(
            "{MAX_SESSIONS} pages drive already, which is all this lab takes; close one, then reload"
        );
        reject(&mut socket, &why)
    };
    match ended {
        Err(Error::Io(error)) => return Err(error),
        Err(Error::Capacity(_)) => close_with(&mut socket, CloseCode::Size, "messages are short here"),
        Err(Error::Protocol(_) | Error::Utf8(_)) => {
            close_with(&mut socket, CloseCode::Protocol, "this is no WebSocket");
        }
        _ => {}
    }
    Ok(())
}

fn reject(socket: &mut Socket, why: &str) -> Result<(), Error> {
    socket.send(Message::text(
        json!({ "type": "message", "error": one_line(why), "final": true }).to_string(),
    ))?;
    socket.close(None)?;
    drain(socket);
    Ok(())
}

fn close_with(socket: &mut Socket, code: CloseCode, why: &'static str) {
    let _ = socket.close(Some(CloseFrame { code, reason: why.into() }));
    let _ = socket.flush();
    drain(socket);
}

/// Waits a moment for the other side to close, so that what was written arrives.
fn drain(socket: &mut Socket) {
    let _ = socket.get_ref().set_read_timeout(Some(Duration::from_millis(200)));
    for _ in 0..20 {
        if socket.read().is_err() {
            return;
        }
    }
}

fn drive(socket: &mut Socket, mut session: Session, shared: &LabState, stop: &Stop) -> Result<(), Error> {
    let (clock, mut last_received) = (Wall::start(), Wall::start());
    // When the last tick was, and when the next one is due.
    let (mut last, mut next) = (Duration::ZERO, TICK);
    let mut pinged = false;
    let mut film: Option<Film> = None;
    loop {
        for text in session.take_messages() {
            socket.send(Message::text(text))?;
        }
        if stop.asked() {
            let frame = CloseFrame { code: CloseCode::Away, reason: "the lab was closed".into() };
            socket.close(Some(frame))?;
            drain(socket);
            return Ok(());
        }
        let idle = session.is_idle();
        let wait = if idle { IDLE } else { next.saturating_sub(clock.elapsed()) };
        let received = receive(socket, wait)?;
        if idle {
            // Time that stood still is not made up for.
            last = clock.elapsed();
            next = last;
        }
        match received {
            Received::Nothing => {}
            Received::Text(text) => {
                (last_received, pinged) = (Wall::start(), false);
                session.handle(&text);
            }
            Received::Ping => (last_received, pinged) = (Wall::start(), false),
            Received::Bytes => session.send_error("not understood: commands are texts"),
            Received::Closed => return Ok(()),
        }
        if last_received.elapsed() > GONE {
            return Ok(());
        }
        if last_received.elapsed() > PING_AFTER && !pinged {
            pinged = true;
            socket.send(Message::Ping(Vec::new().into()))?;
        }
        film = show(socket, &mut session, film, shared)?;
        let now = clock.elapsed();
        if now < next {
            continue;
        }
        let passed = now.saturating_sub(last);
        last = now;
        // A tick that comes late does not delay those after it, unless it is later than they are.
        next = if now < next + TICK { next + TICK } else { now + TICK };
        if !session.has_room() {
            // Nobody looks: a hidden tab, or a line that is too slow.
            session.skip_time();
        } else if session.advance(passed, &mut || clock.elapsed().saturating_sub(now) < BUSY) {
            socket.send(Message::binary(session.frame()))?;
        }
    }
}

enum Received {
    Nothing,
    Text(String),
    Bytes,
    Ping,
    Closed,
}

/// Waits for one message, at most `wait`.
fn receive(socket: &mut Socket, wait: Duration) -> Result<Received, Error> {
    // A time-out of zero would wait for ever.
    socket.get_ref().set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
    match socket.read() {
        Ok(Message::Text(text)) => Ok(Received::Text(text.to_string())),
        Ok(Message::Binary(_)) => Ok(Received::Bytes),
        Ok(Message::Close(_)) | Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
            let _ = socket.flush();
            Ok(Received::Closed)
        }
        Ok(_) => Ok(Received::Ping),
        Err(Error::Io(error))
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            ) =>
        {
            Ok(Received::Nothing)
        }
        Err(error) => Err(error),
    }
}

/// Has films made beside the driving, one at a time, and sends them when they are ready.
fn show(
    socket: &mut Socket,
    session: &mut Session,
    film: Option<Film>,
    shared: &LabState,
) -> Result<Option<Film>, Error> {
    if let Some(film) = film {
        match film.try_recv() {
            Err(TryRecvError::Empty) => {
                if session.take_film().is_some() {
                    session.send_error("a film is being made already; it comes in a moment");
                }
                return Ok(Some(film));
            }
            Ok(Ok(file)) => {
                let mut bytes = vec![FILM];
                bytes.extend(file);
                socket.send(Message::binary(bytes))?;
            }
            Ok(Err(why)) => session.send_error(&why),
            Err(TryRecvError::Disconnected) => session.send_error("the film could not be made; try again"),
        }
        return Ok(None);
    }
    let Some(order) = session.take_film() else { return Ok(None) };
    let Some(slot) = Slot::take(&shared.films, MAX_FILMS) else {
        session.send_error("others are having films made; try again in a moment");
        return Ok(None);
    };
    let (to, film) = channel();
    let started = thread::Builder::new().name("lab film".into()).spawn(move || {
        let _slot = slot;
        let _ = to.send(order.make());
    });
    if started.is_err() {
        session.send_error("the film could not be made; try again");
        return Ok(None);
    }
    session.send_note("making a film of the last ten seconds …");
    Ok(Some(film))
}

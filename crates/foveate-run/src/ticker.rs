//! A progress line: rewritten every second on a terminal, written once a minute to a pipe.
//!
//! A [`Ticker`] has its own thread, so that progress is also shown during a long episode or generation. A
//! pipe gets a progress line only if nothing was written for a minute.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fd::AsFd;

use crate::clock::Wall;
use crate::job_cost::{duration, worth_saying};
use crate::workers::Stop;

/// Columns if no terminal reports its width.
const USUAL_WIDTH: usize = 80;

/// Interval at which a terminal's line is rewritten.
const LIVE_EVERY: Duration = Duration::from_secs(1);

/// Longest time until a stop that was asked for is confirmed.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// The line that confirms it: what is in progress may take seconds to end.
const STOPPING: &str = "stopping; a second Ctrl-C ends the program without saving";

/// Longest time without output to a pipe, unless [`EVERY`] sets another.
const PIPED_EVERY: Duration = Duration::from_mins(1);

/// Time after which a job whose duration is not known yet says what it does.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(1);
/// The same if even then nothing tells how long it takes.
const ANNOUNCED_ANYWAY: Duration = Duration::from_secs(5);

/// The environment variable with the seconds between two lines to a pipe.
const EVERY: &str = "FOVEATE_PROGRESS_SECONDS";

/// Columns of the terminal `stream`; 80 if it is not a terminal.
pub fn width(stream: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => USUAL_WIDTH,
    }
}

/// Wraps every line of `text` that is longer than `width` between words. Continuation lines are indented by
/// two columns more than the line. A word longer than `width` is not split.
pub fn wrap(text: &str, width: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| wrap_line(line, width)).collect();
    lines.join("\n")
}

fn wrap_line(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let indent = line.chars().take_while(|c| *c == ' ').count();
    // Limited, so that text fits beside the indentation.
    let hanging = " ".repeat((indent + 2).min(width / 2));
    let mut wrapped = String::new();
    let mut columns = 0;
    for word in line[indent..].split(' ') {
        let length = word.chars().count();
        if columns == 0 {
            wrapped.push_str(&line[..indent]);
            columns = indent;
        } else if columns + 1 + length > width {
            // Alignment spaces at the end of a line are removed.
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.push_str(&hanging);
            columns = hanging.len();
        } else {
            wrapped.push(' ');
            columns += 1;
        }
        wrapped.push_str(word);
        columns += length;
    }
    wrapped
}

/// As many of `parts` as fit on a line of `width` columns, starting with the first, separated by commas.
fn fit(parts: &[String], width: usize) -> String {
    let mut line = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let comma = if line.is_empty() { "" } else { ", " };
        if line.chars().count() + comma.len() + part.chars().count() <= width {
            line.push_str(comma);
            line.push_str(part);
        } else if line.is_empty() {
            // A truncated line is better than a wrapped one, which cannot be rewritten.
            line.extend(part.chars().take(width));
        }
    }
    line
}

/// `m:ss`, or `h:mm:ss`.
pub fn clock(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// Shows progress; see the [module](self).
pub struct Ticker {
    shared: Arc<StatusLine>,
    thread: Option<JoinHandle<()>>,
}

struct StatusLine {
    state: Mutex<State>,
    /// Signals that the thread must end.
    end: Condvar,
}

/// What of a job's cost was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    Nothing,
    /// The parts alone: nothing told how long they take.
    Parts,
    All,
}

struct State {
    out: Box<dyn Write + Send>,
    /// Returns the columns of the terminal; `None` for a pipe.
    width: Option<fn() -> usize>,
    every: Duration,
    clock: Wall,
    /// Offset of the clock: the running time before the run was stopped.
    before: f64,
    /// The current activity, the most important part first.
    parts: Vec<String>,
    /// The workers' progress counter, and the name of their jobs.
    work: Option<(Stop, &'static str)>,
    /// True if it was said that a stop was asked for.
    stopping: bool,
    /// Time of the last output.
    written: Duration,
    /// True if the cursor is behind a status line.
    status: bool,
    /// What of the job's cost was said.
    announced: Announced,
    /// The words of the user's program for the hints of libraries.
    words: fn(&str) -> String,
    /// The first write error.
    failed: Option<io::Error>,
    over: bool,
}

impl Ticker {
    /// Writes to `out`: a terminal whose columns are given by `width`, or a pipe or file.
    pub fn new(out: Box<dyn Write + Send>, width: Option<fn() -> usize>) -> Self {
        let told = std::env::var(EVERY).ok().and_then(|text| text.parse().ok());
        let piped = told.filter(|s| (0.01..=1e6).contains(s)).map_or(PIPED_EVERY, Duration::from_secs_f64);
        Self::every(out, width, if width.is_some() { LIVE_EVERY } else { piped })
    }

    fn every(out: Box<dyn Write + Send>, width: Option<fn() -> usize>, every: Duration) -> Self {
        let state = State {
            out,
            width,
            every,
            clock: Wall::start(),
            before: 0.0,
            parts: Vec::new(),
            work: None,
            stopping: false,
            written: Duration::ZERO,
            status: false,
            announced: Announced::Nothing,
            words: str::to_owned,
            failed: None,
            over: false,
        };
        let shared = Arc::new(StatusLine { state: Mutex::new(state), end: Condvar::new() });
        let theirs = Arc::clone(&shared);
        // Without a thread the line is only updated on events.
        let thread = thread::Builder::new().name("progress".into()).spawn(move || theirs.tick()).ok();
        Ticker { shared, thread }
    }

    /// The same, with these words for the hints in the texts of libraries.
    #[must_use]
    pub fn with_words(self, words: fn(&str) -> String) -> Self {
        self.shared.lock().words = words;
        self
    }

    /// Says the [cost](crate::job_cost) that a job announces to this [`Stop`], and the time left. Shows how many of their jobs,
    /// called `name`, its workers have completed.
    pub fn count(&self, work: &Stop, name: &'static str) {
        self.shared.lock().work = Some((work.clone(), name));
    }

    /// Clears a terminal's status line, so that something else can be written there.
    pub fn clear(&self) {
        self.shared.lock().clear();
    }

    /// Sets the current activity, the most important part first; parts that do not fit are omitted.
    pub fn set(&self, parts: Vec<String>) {
        self.shared.lock().parts = parts;
    }

    /// As [`Ticker::set`], and rewrites the line of a terminal immediately. `seconds` is the time since the
    /// start of the run.
    pub fn show(&self, parts: Vec<String>, seconds: f64) {
        let mut state = self.shared.lock();
        state.parts = parts;
        state.now_is(seconds);
        if state.width.is_some() {
            state.write_status(false);
        }
    }

    /// Writes a permanent line.
    pub fn line(&self, text: &str) {
        self.shared.lock().write_line(text);
    }

    /// The first write error, if there is one.
    pub fn failure(&self) -> Option<io::Error> {
        self.shared.lock().failed.take()
    }

    /// Records that something was written elsewhere, `seconds` after the start of the run.
    pub fn written(&self, seconds: f64) {
        let mut state = self.shared.lock();
        state.now_is(seconds);
        state.written = state.clock.elapsed();
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.over = true;
        state.clear();
        drop(state);
        self.shared.end.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticker").finish_non_exhaustive()
    }
}

impl StatusLine {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self) {
        let mut state = self.lock();
        while !state.over {
            let silent = state.clock.elapsed().saturating_sub(state.written);
            let live = state.width.is_some();
            state.say_stop();
            state.say_cost();
            if live && silent >= state.every {
                state.write_status(true);
            } else if silent >= state.every {
                let line = format!("{} {}", clock(state.seconds()), fit(&state.told(true), usize::MAX));
                state.write_line(&line);
            }
            let silent = state.clock.elapsed().saturating_sub(state.written);
            let rest = state.every.saturating_sub(silent);
            let rest = rest.clamp(Duration::from_millis(1), LOOKS_EVERY);
            state = self.end.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl State {
    /// Seconds since the start of the run.
    fn seconds(&self) -> f64 {
        self.before + self.clock.elapsed().as_secs_f64()
    }

    fn now_is(&mut self, seconds: f64) {
        self.before = seconds - self.clock.elapsed().as_secs_f64();
    }

    /// Says what the job costs: at once if it is known how long it takes, or as soon as it is, and what it does in any case.
    fn say_cost(&mut self) {
        let Some((work, _)) = self.work.as_ref().filter(|_| self.announced != Announced::All) else { return };
        let Some((cost, (elapsed, left))) = work.cost().zip(work.time()) else { return };
        let all = left.map(|left| elapsed + left);
        let waited = Duration::from_secs_f64(elapsed);
        let line = match (all, self.announced) {
            // A job of a moment needs no words.
            (Some(seconds), _) if !worth_saying(seconds) => return,
            (Some(_), Announced::Parts) => all.map(|all| format!("{}: about {}", cost.job, duration(all))),
            (Some(_), _) if cost.seconds.is_some() || waited >= ANNOUNCED_AFTER => Some(cost.line(all)),
            (None, Announced::Nothing) if waited >= ANNOUNCED_ANYWAY => Some(cost.line(None)),
            _ => None,
        };
        if let Some(line) = line {
            self.announced = if all.is_some() { Announced::All } else { Announced::Parts };
            let line = (self.words)(&line);
            self.write_line(&line);
        }
    }

    /// Says once that a stop was asked for.
    fn say_stop(&mut self) {
        if !self.stopping && self.work.as_ref().is_some_and(|(work, _)| work.asked()) {
            self.stopping = true;
            self.write_line(STOPPING);
        }
    }

    /// The current activity; `counted` adds the workers' progress.
    fn told(&self, counted: bool) -> Vec<String> {
        let mut parts = self.parts.clone();
        if let Some((work, name)) = self.work.as_ref().filter(|_| counted) {
            let (done, of) = work.done();
            if of > 1 {
                parts.push(format!("{done} of {of} {name}"));
            }
            if let Some((_, Some(left))) = work.time() {
                parts.push(format!("about {} left", clock(left)));
            }
        }
        if parts.is_empty() {
            parts.push("working".into());
        }
        parts
    }

    fn write_status(&mut self, counted: bool) {
        let columns = self.width.map_or(USUAL_WIDTH, |width| width());
        // The cursor needs a column, too.
        let line = fit(&self.told(counted), columns.saturating_sub(1));
        // Returns to the start of the line, and clears it.
        self.write(&format!("\r\x1b[2K{line}"));
        self.status = true;
        self.written = self.clock.elapsed();
    }

    fn write_line(&mut self, text: &str) {
        self.clear();
        let text = self.width.map_or_else(|| text.to_owned(), |width| wrap(text, width()));
        self.write(&format!("{text}\n"));
        self.written = self.clock.elapsed();
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.status) {
            self.write("\r\x1b[2K");
        }
    }

    fn write(&mut self, text: &str) {
        if let Err(error) = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()) {
            self.failed.get_or_insert(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_cost::JobCost;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Page {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("whole").clone()).expect("text")
        }
    }

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn words_stay_whole() {
        for (text, width, expect) in [
            ("one two three", 80, "one two three"),
            ("one two three", 9, "one two\n  three"),
            ("  one two three", 9, "  one two\n    three"),
            ("unbreakable word", 5, "unbreakable\n  word"),
            ("a\nbcd efg", 5, "a\nbcd\n  efg"),
            ("name      what it is", 12, "name     \n  what it is"),
            ("", 5, ""),
        ] {
            let wrapped = wrap(text, width);
            let same = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(same(&wrapped), same(expect), "{text:?} in {width}");
            assert_eq!(wrapped.lines().count(), expect.lines().count(), "{wrapped:?}");
        }
    }

    #[test]
    fn what_matters_least_is_left_out() {
        let parts = ["generation 3", "9:59 left", "1000 steps/s"].map(str::to_owned);
        for (width, expect) in [
            (80, "generation 3, 9:59 left, 1000 steps/s"),
            (30, "generation 3, 9:59 left"),
            (12, "generation 3"),
            (5, "gener"),
        ] {
            assert_eq!(fit(&parts, width), expect);
        }
    }

    #[test]
    fn a_pipe_hears_something_while_nothing_happens() {
        let page = Page::default();
        let ticker = Ticker::every(Box::new(page.clone()), None, Duration::from_millis(20));
        ticker.set(vec!["filming".into()]);
        while page.text().lines().count() < 3 {
            thread::yield_now();
        }
        drop(ticker);
        for line in page.text().lines() {
            assert_eq!(line, "0:00 filming");
        }
        let quiet = Page::default();
        drop(Ticker::every(Box::new(quiet.clone()), None, Duration::from_hours(1)));
        assert_eq!(quiet.text(), "", "what is done soon says nothing");
    }

    #[test]
    fn a_stop_is_confirmed_while_nothing_else_happens() {
        for width in [None, Some((|| 80) as fn() -> usize)] {
            let (page, stop) = (Page::default(), Stop::default());
            let ticker = Ticker::every(Box::new(page.clone()), width, Duration::from_hours(1));
            ticker.count(&stop, "rollouts");
            stop.ask();
            while !page.text().contains(STOPPING) {
                thread::yield_now();
            }
            thread::sleep(3 * LOOKS_EVERY);
            drop(ticker);
            assert_eq!(page.text().matches("stopping").count(), 1, "{}", page.text());
        }
    }

    /// What a job of this cost says, of whose 12 pieces so many are done, in the first second.
    fn announced(seconds: Option<f64>, done: usize) -> String {
        let (page, stop) = (Page::default(), Stop::default());
        let ticker = Ticker::every(Box::new(page.clone()), None, Duration::from_hours(1))
            .with_words(str::to_uppercase);
        ticker.count(&stop, "episodes");
        stop.announce(JobCost { seconds, ..JobCost::of_episodes("eval", "12 episodes".into(), 12, 1) });
        (0..done).for_each(|_| stop.one_more());
        thread::sleep(ANNOUNCED_AFTER + 3 * LOOKS_EVERY);
        drop(ticker);
        page.text()
    }

    #[test]
    fn a_job_says_what_it_costs_as_soon_as_that_is_known() {
        for (seconds, done, expect) in [
            (Some(60.0), 0, "EVAL: 12 EPISODES: ABOUT 60 S ON 1 CORE\n"),
            (None, 1, "EVAL: 12 EPISODES: ABOUT N S ON 1 CORE\n"),
            // Nothing tells yet.
            (None, 0, ""),
            // A moment needs no words.
            (Some(4.9), 0, ""),
        ] {
            let said = announced(seconds, done);
            // It is not known when the second second begins.
            let said = ["12", "13", "14", "15", "16"]
                .iter()
                .fold(said, |said, n| said.replace(&format!("ABOUT {n} S"), "ABOUT N S"));
            assert_eq!(said, expect, "{seconds:?} {done}");
        }
    }

    #[test]
    fn a_terminal_sees_one_line_that_fits() {
        let page = Page::default();
        let ticker = Ticker::every(Box::new(page.clone()), Some(|| 20), Duration::from_hours(1));
        ticker.show(vec!["generation 3".into(), "9:59 left".into()], 1.0);
        ticker.line("a remark that is longer than twenty columns");
        ticker.show(vec!["generation 4".into()], 2.0);
        drop(ticker);
        assert_eq!(
            page.text(),
            "\r\x1b[2Kgeneration 3\r\x1b[2Ka remark that is\n  longer than twenty\n  columns\n\
             \r\x1b[2Kgeneration 4\r\x1b[2K"
        );
    }

    #[test]
    fn times() {
        for (seconds, text) in
            [(0.0, "0:00"), (59.6, "1:00"), (3599.0, "59:59"), (3600.0, "1:00:00"), (-1.0, "0:00")]
        {
            assert_eq!(clock(seconds), text);
        }
    }
}

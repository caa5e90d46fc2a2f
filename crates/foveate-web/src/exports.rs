//! The exports of the WebAssembly module: [`BrowserLab`] for a caller that has numbers and memory only.
//!
//! The caller writes bytes at [`input`] and calls a function; what that answers lies at [`output`], as long as the function says.
//! There is one thread, and no function calls another.

#![expect(unsafe_code, reason = "an export needs a name that no other function has")]

use std::cell::RefCell;
use std::time::Duration;

use crate::browser_lab::{BrowserLab, MAX_WEIGHTS};
use crate::c_library;
use crate::frame::FILM;

/// The lab, and what goes in and out.
#[derive(Default)]
struct Module {
    lab: Option<BrowserLab>,
    input: Vec<u8>,
    output: Vec<u8>,
}

thread_local! {
    static MODULE: RefCell<Module> = RefCell::default();
}

/// Calls `act` with the lab and the input; its answer becomes the output. Returns the length of that.
fn answer(act: impl FnOnce(&mut BrowserLab, &[u8]) -> Vec<u8>) -> usize {
    MODULE.with_borrow_mut(|Module { lab, input, output }| {
        *output = match lab {
            Some(lab) => act(lab, input),
            None => vec![],
        };
        output.len()
    })
}

/// Room for `length` bytes of input; 0 if that is too much.
#[unsafe(no_mangle)]
extern "C" fn input(length: usize) -> *mut u8 {
    MODULE.with_borrow_mut(|Module { input, .. }| {
        // A name goes before the weights.
        if length > MAX_WEIGHTS + (1 << 10) {
            return std::ptr::null_mut();
        }
        *input = vec![0; length];
        input.as_mut_ptr()
    })
}

/// Where the output lies.
#[unsafe(no_mangle)]
extern "C" fn output() -> *const u8 {
    MODULE.with_borrow(|Module { output, .. }| output.as_ptr())
}

/// Opens the lab; the output is empty, or says why it cannot be opened.
#[unsafe(no_mangle)]
extern "C" fn begin() -> usize {
    MODULE.with_borrow_mut(|Module { lab, output, .. }| {
        output.clear();
        match BrowserLab::new() {
            Ok(opened) => *lab = Some(opened),
            Err(error) => *output = error.to_string().into_bytes(),
        }
        output.len()
    })
}

/// Executes the command in the input.
#[unsafe(no_mangle)]
extern "C" fn handle() {
    answer(|lab, input| {
        lab.handle(&String::from_utf8_lossy(input));
        vec![]
    });
}

/// Takes a weight file; the first `name` bytes of the input are what it is called.
#[unsafe(no_mangle)]
extern "C" fn weights(name: usize) {
    answer(|lab, input| {
        let (name, bytes) = input.split_at(name.min(input.len()));
        lab.add_weights(&String::from_utf8_lossy(name), bytes);
        vec![]
    });
}

/// Advances by `elapsed_ms` milliseconds, at maximum speed by `most_steps`; 1 if there is a frame to draw.
#[unsafe(no_mangle)]
extern "C" fn advance(elapsed_ms: f64, most_steps: u32) -> u32 {
    // Longer stretches are not made up for.
    let elapsed =
        Duration::from_secs_f64(if elapsed_ms >= 0.0 { elapsed_ms.min(1000.0) / 1000.0 } else { 0.0 });
    let drawn = answer(|lab, _| if lab.advance(elapsed, most_steps) { vec![1] } else { vec![] });
    drawn as u32
}

/// The current frame.
#[unsafe(no_mangle)]
extern "C" fn frame() -> usize {
    answer(|lab, _| lab.frame())
}

/// Messages for the page: a JSON list of texts.
#[unsafe(no_mangle)]
extern "C" fn messages() -> usize {
    answer(|lab, _| lab.take_messages().into_bytes())
}

/// The film that the page asked for, as a message of the lab's socket; nothing if there is none.
#[unsafe(no_mangle)]
extern "C" fn film() -> usize {
    answer(|lab, _| lab.take_film().map_or_else(Vec::new, |film| [&[FILM][..], &film].concat()))
}

/// Functions that the standard library calls by these names, in the place of those that come with the compiler.
macro_rules! functions {
    ($($name:ident($($x:ident),*) -> $number:ty;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($($x: $number),*) -> $number {
            c_library::$name($($x),*)
        }
    )*};
}

functions! {
    sin(x) -> f64;
    cos(x) -> f64;
    sinf(x) -> f32;
    cosf(x) -> f32;
    exp(x) -> f64;
    pow(x, y) -> f64;
    hypot(x, y) -> f64;
    hypotf(x, y) -> f32;
}

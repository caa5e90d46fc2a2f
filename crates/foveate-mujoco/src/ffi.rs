//! The functions of MuJoCo's library, and all unsafe code of this crate.
//!
//! **What is trusted.** A library of a supported version has the signatures and layouts of that version's headers; the functions
//! do what MuJoCo's documentation says. Everything else is checked here.
//!
//! **Errors.** When MuJoCo finds an error outside of its parser and compiler (which return theirs), it calls the thread's log
//! handler with the level "error". The default handler ends the process. A handler that returns is no alternative, because the
//! code after the report relies on it not returning. MuJoCo's own Python package leaves such a handler by `longjmp`; so does this
//! module. [`guarded`] saves the stack pointer and the registers that a function must preserve, and calls MuJoCo; the handler
//! copies the message and restores them ([`enter`], [`escape`]), so that control is back in [`guarded`].
//!
//! Why this is sound: leaving frames by restoring the stack pointer is defined as long as the abandoned frames own nothing that
//! must be dropped. Those of Rust are [`run`] and one closure; the closure is `Copy`, so it owns nothing, and its body is one call
//! of a function of MuJoCo with plain arguments. Those of MuJoCo are its engine, C code that is written to be left like this. What
//! it was working on is then in no defined state: a simulation is marked as broken and only deleted afterwards.
//!
//! Unwinding with a panic instead would rely on unwind tables in all of MuJoCo's frames, which the C language does not promise.
//!
//! **Versions.** What differs between supported versions is in one table (`versions.rs`): offsets, sizes, numbers of constants. Its
//! generator compares the types of fields and functions with those here. Three functions are handled here: the thread's handlers
//! of messages are others before 3.10 ([`Handlers`]), `mj_sizeModel` returned an `int` ([`SizeModel`]), and those of the state take
//! their bits as an `unsigned int` before 3.5, which for the bits in use is the same number in the same register.
//!
//! **The parser and the compiler** are C++: they recurse as deep as a model is nested, allocate what it asks for, and throw
//! `std::bad_alloc` through `extern "C"`. Three things follow.
//! * A model of a stranger is compiled in a process of its own with limits (`compiler.rs`). A crash, an exception
//!   and an endless loop end that process, and [`RawModel::load`] reads what it made: that is C code of the engine, and checks
//!   sizes and references.
//! * [`RawModel::compile`] runs there, and in this process for models that the program itself contains, which are known to compile.
//! * Functions are declared `extern "C-unwind"`. So an exception that does leave one, when the memory ends in the middle of such a
//!   model, is no undefined behaviour: it meets [`enter`], has no handler and ends the process. [`RawModel::compile`] makes sure
//!   of some memory before.
//!
//! **Threads.** The handler is the thread's own, set before and restored after each call. So a program that also uses MuJoCo
//! otherwise, such as a Python process, keeps its own handling of errors.

mod jump;

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{MujocoError, one_line};
use crate::versions::{self, Version};

/// `mjModel`, `mjData`, `mjSpec`, `mjvScene` and others, of which only pointers are passed.
type Opaque = c_void;
/// `mjfLogHandler`.
type LogHandler = Option<unsafe extern "C" fn(*const LogMessage)>;
/// A handler of errors, or of warnings, before version 3.10.
type TextHandler = Option<unsafe extern "C" fn(*const c_char)>;

/// The part of `mjLogMessage` that is read.
#[repr(C)]
struct LogMessage {
    level: c_int,
    topic: c_int,
    subject: [u8; 1024],
}

/// `mjLOG_WARNING` and `mjLOG_ERROR`.
const WARNING: c_int = 2;
const ERROR: c_int = 3;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions in use. They are valid as long as the library is open, which is as long as this value lives.
        #[expect(non_snake_case, reason = "the names are MuJoCo's")]
        struct Functions {
            $($name: unsafe extern "C-unwind" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks up all functions. `Err` holds the name of the first one that is missing.
            ///
            /// # Safety
            /// `library` must be a supported version of MuJoCo: then these are the types of its functions.
            unsafe fn of(library: &libloading::Library) -> Result<Self, &'static str> {
                Ok(Functions {
                    $($name: {
                        // SAFETY: the caller promises that the function has this type. The pointer is copied out of the symbol;
                        // `Api` keeps the library open as long as the copy can be used.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|_| stringify!($name))?
                    },)*
                })
            }
        }
    };
}

functions! {
    mj_parseXMLString: fn(*const c_char, *const Opaque, *mut c_char, c_int) -> *mut Opaque;
    mj_parseXML: fn(*const c_char, *const Opaque, *mut c_char, c_int) -> *mut Opaque;
    mj_compile: fn(*mut Opaque, *const Opaque) -> *mut Opaque;
    mjs_getError: fn(*mut Opaque) -> *const c_char;
    mj_deleteSpec: fn(*mut Opaque);
    mj_deleteModel: fn(*mut Opaque);
    mj_saveModel: fn(*const Opaque, *const c_char, *mut Opaque, i64);
    mj_loadModel: fn(*const c_char, *const Opaque) -> *mut Opaque;
    mj_name2id: fn(*const Opaque, c_int, *const c_char) -> c_int;
    mj_makeData: fn(*const Opaque) -> *mut Opaque;
    mj_copyData: fn(*mut Opaque, *const Opaque, *const Opaque) -> *mut Opaque;
    mj_deleteData: fn(*mut Opaque);
    mj_resetData: fn(*const Opaque, *mut Opaque);
    mj_resetDataKeyframe: fn(*const Opaque, *mut Opaque, c_int);
    mj_normalizeQuat: fn(*const Opaque, *mut f64);
    mj_forward: fn(*const Opaque, *mut Opaque);
    mj_step: fn(*const Opaque, *mut Opaque);
    mj_step1: fn(*const Opaque, *mut Opaque);
    mj_step2: fn(*const Opaque, *mut Opaque);
    mj_stateSize: fn(*const Opaque, c_int) -> c_int;
    mj_getState: fn(*const Opaque, *const Opaque, *mut f64, c_int);
    mj_setState: fn(*const Opaque, *mut Opaque, *const f64, c_int);
    mj_local2Global: fn(*mut Opaque, *mut f64, *mut f64, *const f64, *const f64, c_int, u8);
    mjv_defaultOption: fn(*mut Opaque);
    mjv_defaultCamera: fn(*mut Opaque);
    mjv_defaultScene: fn(*mut Opaque);
    mjv_makeScene: fn(*const Opaque, *mut Opaque, c_int);
    mjv_freeScene: fn(*mut Opaque);
    mjv_updateScene: fn(*const Opaque, *mut Opaque, *const Opaque, *const Opaque, *mut Opaque, c_int, *mut Opaque);
}

/// Looks up a function. `Err` holds its name when it is missing.
///
/// # Safety
/// The function must have the type `T`. The pointer is copied out of the symbol: [`Api`] keeps the library open as long as the
/// copy can be used.
unsafe fn symbol<T: Copy>(library: &libloading::Library, name: &'static str) -> Result<T, &'static str> {
    // SAFETY: promised by the caller.
    unsafe { library.get::<T>(name.as_bytes()) }.map(|symbol| *symbol).map_err(|_| name)
}

/// How the thread's handlers of messages are set.
enum Handlers {
    /// One for all levels; the function returns the one before.
    Log(unsafe extern "C" fn(LogHandler) -> LogHandler),
    /// Before version 3.10: one for errors, then one for warnings; functions that return and that set each.
    Texts([(unsafe extern "C" fn() -> TextHandler, unsafe extern "C" fn(TextHandler)); 2]),
}

impl Handlers {
    /// Looks up the functions. `Err` holds the name of the first one that is missing.
    ///
    /// # Safety
    /// `library` must be the supported version of MuJoCo with this number: then these are the types of its functions.
    unsafe fn of(library: &libloading::Library, number: i32) -> Result<Self, &'static str> {
        if number >= 3_010_000 {
            // SAFETY: from version 3.10 on, this is its type.
            return unsafe { symbol(library, "_mjPRIVATE_setTlsLogHandler") }.map(Handlers::Log);
        }
        // SAFETY: before version 3.10, this is its type, as are those of the next three.
        let error = unsafe { symbol(library, "_mjPRIVATE__get_tls_error_fn") }?;
        // SAFETY: as above.
        let set_error = unsafe { symbol(library, "_mjPRIVATE__set_tls_error_fn") }?;
        // SAFETY: as above.
        let warning = unsafe { symbol(library, "_mjPRIVATE__get_tls_warning_fn") }?;
        // SAFETY: as above.
        let set_warning = unsafe { symbol(library, "_mjPRIVATE__set_tls_warning_fn") }?;
        Ok(Handlers::Texts([(error, set_error), (warning, set_warning)]))
    }

    /// Sets this module's handlers for this thread and returns those before.
    fn set(&self) -> Replaced {
        match self {
            // SAFETY: it only stores the pointer. The handler stays valid, and is replaced before `guarded` returns.
            Handlers::Log(set) => Replaced::Log(unsafe { set(Some(on_message)) }),
            Handlers::Texts(functions) => {
                let ours: [TextHandler; 2] = [Some(on_error), Some(on_warning)];
                Replaced::Texts(std::array::from_fn(|i| {
                    let (get, set) = functions[i];
                    // SAFETY: it reads a pointer.
                    let before = unsafe { get() };
                    // SAFETY: it stores one, as above.
                    unsafe { set(ours[i]) };
                    before
                }))
            }
        }
    }

    /// Sets again what [`set`](Self::set) replaced.
    fn restore(&self, before: Replaced) {
        match (self, before) {
            (Handlers::Log(set), Replaced::Log(before)) => {
                // SAFETY: `before` is what was set before.
                unsafe { set(before) };
            }
            (Handlers::Texts(functions), Replaced::Texts(before)) => {
                for ((_, set), before) in functions.iter().zip(before) {
                    // SAFETY: as above.
                    unsafe { set(before) };
                }
            }
            // `before` comes from the same library.
            (Handlers::Log(_), Replaced::Texts(_)) | (Handlers::Texts(_), Replaced::Log(_)) => {}
        }
    }
}

/// Handlers that [`Handlers::set`] replaced.
#[derive(Clone, Copy)]
enum Replaced {
    Log(LogHandler),
    Texts([TextHandler; 2]),
}

/// `mj_sizeModel`, which returns an `int` in old versions.
enum SizeModel {
    Int(unsafe extern "C" fn(*const Opaque) -> c_int),
    Long(unsafe extern "C" fn(*const Opaque) -> i64),
}

impl SizeModel {
    /// Looks it up.
    ///
    /// # Safety
    /// `library` must be MuJoCo of this version.
    unsafe fn of(library: &libloading::Library, version: &Version) -> Result<Self, &'static str> {
        let name = "mj_sizeModel";
        if version.model.size_size == size_of::<c_int>() {
            // SAFETY: the table of versions says how large its result is, and so which type it has.
            unsafe { symbol(library, name) }.map(SizeModel::Int)
        } else {
            // SAFETY: as above.
            unsafe { symbol(library, name) }.map(SizeModel::Long)
        }
    }
}

/// An open library.
struct Api {
    functions: Functions,
    handlers: Handlers,
    size_model: SizeModel,
    version: &'static Version,
    path: PathBuf,
    /// Closed last: fields are dropped in their order, and the functions do nothing when dropped.
    _library: libloading::Library,
}

/// MuJoCo's library, open and of a supported version. Copies share it; it is closed with the last of them and of all models.
#[derive(Clone)]
pub struct Library(Arc<Api>);

impl Library {
    /// Opens the library in the file `path`. This runs code in the file, so the path must be one that the user trusts.
    ///
    /// # Errors
    /// [`MujocoError::Platform`], [`MujocoError::Load`], [`MujocoError::NotMujoco`] or [`MujocoError::Version`].
    pub fn open(path: &Path) -> Result<Library, MujocoError> {
        if !jump::SUPPORTED {
            return Err(MujocoError::Platform);
        }
        let load = |error: &libloading::Error| {
            let source = std::error::Error::source(error);
            let why = source.map_or_else(|| error.to_string(), ToString::to_string);
            MujocoError::Load { path: path.to_owned(), why: one_line(&why) }
        };
        let missing = |function| MujocoError::NotMujoco { path: path.to_owned(), function };
        // SAFETY: the initialisers of a library are arbitrary code; the user chose to run it. Those of MuJoCo have no preconditions.
        let library = unsafe { libloading::Library::new(path) }.map_err(|error| load(&error))?;
        let number = {
            // SAFETY: in every release of MuJoCo, `mj_version` has this type. No other library is known to export this name.
            let function = unsafe { library.get::<unsafe extern "C" fn() -> c_int>(b"mj_version\0") };
            let function = function.map_err(|_| missing("mj_version"))?;
            // SAFETY: it has no preconditions.
            unsafe { function() }
        };
        let version = versions::supported(number)
            .map_err(|found| MujocoError::Version { path: path.to_owned(), found })?;
        // SAFETY: the library is a supported version.
        let functions = unsafe { Functions::of(&library) }.map_err(missing)?;
        // SAFETY: as above, with this number.
        let handlers = unsafe { Handlers::of(&library, number) }.map_err(missing)?;
        // SAFETY: as above.
        let size_model = unsafe { SizeModel::of(&library, version) }.map_err(missing)?;
        let path = path.to_owned();
        Ok(Library(Arc::new(Api { functions, handlers, size_model, version, path, _library: library })))
    }

    /// The version, such as `3.17.0`.
    pub fn version(&self) -> &'static str {
        self.0.version.name
    }

    /// The library's file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn layouts(&self) -> &'static Version {
        self.0.version
    }
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Library")
            .field("path", &self.0.path)
            .field("version", &self.0.version.name)
            .finish_non_exhaustive()
    }
}

/// What MuJoCo reported during a call.
struct Messages {
    error: Option<String>,
    warnings: Vec<String>,
}

/// More warnings of one call than this are dropped.
const MOST_WARNINGS: usize = 16;

thread_local! {
    /// Where [`escape`] leads to: the frame of the innermost [`guarded`] call of this thread; null outside of one.
    static FRAME: Cell<*mut jump::Frame> = const { Cell::new(ptr::null_mut()) };
    static MESSAGES: RefCell<Messages> = const { RefCell::new(Messages { error: None, warnings: Vec::new() }) };
}

/// The thread's log handler during a [`guarded`] call.
///
/// # Safety
/// `message` must be null or point to a message of MuJoCo; only MuJoCo calls this, within [`guarded`].
unsafe extern "C" fn on_message(message: *const LogMessage) {
    // SAFETY: MuJoCo passes a pointer to a message on its stack, valid during the call.
    let Some(message) = (unsafe { message.as_ref() }) else { return };
    let is_error = message.level == ERROR;
    if is_error || message.level == WARNING {
        keep(&message.subject, is_error);
    }
    if is_error {
        // SAFETY: only MuJoCo calls this, within `guarded`, and nothing in this frame needs to be dropped.
        unsafe { leave() }
    }
}

/// The thread's handler of errors during a [`guarded`] call, before version 3.10.
///
/// # Safety
/// `text` must be null or a text that ends with a zero; only MuJoCo calls this, within [`guarded`].
unsafe extern "C" fn on_error(text: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { keep_text(text, true) };
    // SAFETY: only MuJoCo calls this, within `guarded`, and nothing in this frame needs to be dropped.
    unsafe { leave() }
}

/// The thread's handler of warnings during a [`guarded`] call, before version 3.10.
///
/// # Safety
/// As for [`on_error`].
unsafe extern "C" fn on_warning(text: *const c_char) {
    // SAFETY: promised by the caller.
    unsafe { keep_text(text, false) };
}

/// Keeps a message.
///
/// # Safety
/// `text` must be null or a text that ends with a zero.
unsafe fn keep_text(text: *const c_char, is_error: bool) {
    if !text.is_null() {
        // SAFETY: promised by the caller.
        let text = unsafe { CStr::from_ptr(text) };
        keep(text.to_bytes(), is_error);
    }
}

/// Keeps a message, which ends with the slice or with a zero.
fn keep(text: &[u8], is_error: bool) {
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let text = one_line(&String::from_utf8_lossy(&text[..length]));
    // A thread that is ending may have no list any more; then the text is lost, but the error is not.
    let _ = MESSAGES.try_with(|messages| {
        let Ok(mut messages) = messages.try_borrow_mut() else { return };
        if is_error {
            messages.error = Some(text);
        } else if messages.warnings.len() < MOST_WARNINGS {
            messages.warnings.push(text);
        }
    });
}

/// Goes back to the innermost [`guarded`] call of this thread.
///
/// # Safety
/// Only for handlers, when MuJoCo calls them within [`guarded`]; nothing in the frame of the caller may need to be dropped.
unsafe fn leave() -> ! {
    let frame = FRAME.get();
    if frame.is_null() {
        // Not reachable: handlers are set within `guarded` only, which sets the frame first.
        std::process::abort();
    }
    // SAFETY: the frame is that of the `guarded` call that is running on this thread, in which `enter` is active: `guarded` sets it
    // before `enter` and replaces it after. The frames in between own nothing that must be dropped, see the module's documentation.
    unsafe { jump::escape(frame) }
}

/// A closure and its result.
struct Job<F, T> {
    call: F,
    result: MaybeUninit<T>,
}

/// # Safety
/// `job` must point to a `Job<F, T>` that nothing else uses.
unsafe extern "C-unwind" fn run<F: Fn() -> T + Copy, T: Copy>(job: *mut c_void) {
    // SAFETY: promised by the caller.
    let job = unsafe { &mut *job.cast::<Job<F, T>>() };
    job.result.write((job.call)());
}

/// Calls MuJoCo, returns what it reports as an error, and appends its warnings to `warnings`.
///
/// `call` must do nothing but call one function of MuJoCo: it is abandoned without unwinding when MuJoCo reports an error. `Copy`
/// makes sure that neither it nor its result owns anything. `function` is that function's name.
fn guarded<T: Copy>(
    api: &Api,
    function: &'static str,
    warnings: &mut Vec<String>,
    call: impl Fn() -> T + Copy,
) -> Result<T, MujocoError> {
    /// The entry of `run` for the type of `call`.
    fn entry<F: Fn() -> T + Copy, T: Copy>(_: &F) -> unsafe extern "C-unwind" fn(*mut c_void) {
        run::<F, T>
    }
    let entry = entry(&call);
    let mut job = Job { call, result: MaybeUninit::uninit() };
    let mut frame = jump::Frame::new();
    let outer = FRAME.replace(&raw mut frame);
    let before = api.handlers.set();
    // SAFETY: `job` is what `run` expects, both live until `enter` returns, and `frame` is used by no other call.
    let escaped = unsafe { jump::enter(entry, (&raw mut job).cast(), &raw mut frame) } != 0;
    api.handlers.restore(before);
    FRAME.set(outer);
    let error = MESSAGES
        .try_with(|messages| {
            let mut messages = messages.borrow_mut();
            let room = MOST_WARNINGS.saturating_sub(warnings.len());
            warnings.extend(messages.warnings.drain(..).take(room));
            messages.error.take()
        })
        .unwrap_or_default();
    if escaped {
        let why = error.unwrap_or_else(|| "it gave no reason".to_owned());
        return Err(MujocoError::Failed { function, why });
    }
    // SAFETY: `enter` returned 0, so `run` returned, and it writes the result.
    Ok(unsafe { job.result.assume_init() })
}

/// MuJoCo's parser and compiler are used by one thread at a time: they keep some state of the process.
static COMPILER: Mutex<()> = Mutex::new(());

/// A compiled model.
pub(crate) struct RawModel {
    library: Library,
    model: NonNull<Opaque>,
}

// SAFETY: after its compilation a model is only read, by this module and by MuJoCo's functions, which take it as a constant; MuJoCo
// documents that threads may share it. It is deleted once, when nothing refers to it.
unsafe impl Send for RawModel {}
// SAFETY: as above.
unsafe impl Sync for RawModel {}

/// What a model is made of.
#[derive(Clone, Copy)]
pub(crate) enum Source<'a> {
    /// The text of an XML file.
    Text(&'a CStr),
    /// The path of an XML file.
    File(&'a CStr),
}

impl RawModel {
    /// Parses and compiles a model in this process; `Err` holds what is wrong with it, or an error inside of MuJoCo.
    ///
    /// For a model of the program's own, or in a process that may end: see the module's documentation.
    pub(crate) fn compile(
        library: &Library,
        source: Source<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<Result<Self, String>, MujocoError> {
        const LONGEST: usize = 2048;
        let api = &*library.0;
        let functions = &api.functions;
        let _alone = COMPILER.lock().unwrap_or_else(PoisonError::into_inner);
        let mut error = [0_u8; LONGEST];
        let buffer = (&raw mut error).cast::<c_char>();
        let spec = match source {
            Source::Text(text) => {
                let text = text.as_ptr();
                guarded(api, "mj_parseXMLString", warnings, || {
                    // SAFETY: the text ends with a zero; the buffer has `LONGEST` bytes; there may be no file system.
                    unsafe { (functions.mj_parseXMLString)(text, ptr::null(), buffer, LONGEST as c_int) }
                })?
            }
            Source::File(path) => {
                let path = path.as_ptr();
                guarded(api, "mj_parseXML", warnings, || {
                    // SAFETY: as above.
                    unsafe { (functions.mj_parseXML)(path, ptr::null(), buffer, LONGEST as c_int) }
                })?
            }
        };
        if spec.is_null() {
            let length = error.iter().position(|&byte| byte == 0).unwrap_or(LONGEST);
            return Ok(Err(one_line(&String::from_utf8_lossy(&error[..length]))));
        }
        let model = guarded(api, "mj_compile", warnings, || {
            // SAFETY: `spec` was just parsed and is not null; there may be no file system.
            unsafe { (functions.mj_compile)(spec, ptr::null()) }
        })?;
        let made = if let Some(model) = NonNull::new(model) {
            Ok(RawModel { library: library.clone(), model })
        } else {
            let said = guarded(api, "mjs_getError", warnings, || {
                // SAFETY: `spec` is not null and not deleted.
                unsafe { (functions.mjs_getError)(spec) }
            })?;
            // SAFETY: when it is not null, it is a text that ends with a zero and lives as long as `spec`.
            let said = (!said.is_null()).then(|| unsafe { CStr::from_ptr(said) });
            Err(said.map_or_else(String::new, |said| one_line(&said.to_string_lossy())))
        };
        guarded(api, "mj_deleteSpec", warnings, || {
            // SAFETY: `spec` is not used afterwards; models do not refer to it.
            unsafe { (functions.mj_deleteSpec)(spec) }
        })?;
        Ok(made)
    }

    /// Writes the compiled model to the file `path`, for [`load`](Self::load).
    pub(crate) fn save(&self, path: &CStr, warnings: &mut Vec<String>) -> Result<(), MujocoError> {
        let (function, model, path) = (self.functions().mj_saveModel, self.pointer(), path.as_ptr());
        guarded(&self.library.0, "mj_saveModel", warnings, || {
            // SAFETY: the model is valid, the path ends with a zero; without a buffer, its size is not read.
            unsafe { function(model, path, ptr::null_mut(), 0) }
        })
    }

    /// Reads a compiled model from a file that [`save`](Self::save) wrote; `Err` holds what is wrong with it.
    ///
    /// MuJoCo compares the sizes in the file with its length, and checks that every index of the model is within its list.
    pub(crate) fn load(
        library: &Library,
        path: &CStr,
        warnings: &mut Vec<String>,
    ) -> Result<Result<Self, String>, MujocoError> {
        let (function, path) = (library.0.functions.mj_loadModel, path.as_ptr());
        let model = guarded(&library.0, "mj_loadModel", warnings, || {
            // SAFETY: the path ends with a zero; there may be no file system.
            unsafe { function(path, ptr::null()) }
        })?;
        let made = NonNull::new(model).map(|model| RawModel { library: library.clone(), model });
        Ok(made.ok_or_else(|| warnings.pop().unwrap_or_else(|| "there is not enough memory".to_owned())))
    }

    /// The largest numbers of iterations of a step: of the solver, its line search, the solver without slip, the collision of
    /// convex shapes, and that of distance fields (starts, iterations).
    pub(crate) fn iterations(&self) -> [c_int; 6] {
        // In the headers of all supported versions, 4-byte integers follow the integrator in this order: cone, jacobian, solver,
        // these four, three sets of flags, and the two of distance fields.
        const PLACES: [usize; 6] = [4, 5, 6, 7, 11, 12];
        let integrator = self.library.layouts().model.integrator;
        // SAFETY: see above; a test reads each.
        PLACES.map(|place| unsafe { self.field(integrator + 4 * place) })
    }

    /// The body called `name`.
    pub(crate) fn body(self: &Arc<Self>, name: &str) -> Result<Option<Body>, MujocoError> {
        let id = self.id(self.library.layouts().objects.body, name)?;
        Ok(id.map(|id| Body { id, model: Arc::clone(self) }))
    }

    pub(crate) fn library(&self) -> &Library {
        &self.library
    }

    fn functions(&self) -> &Functions {
        &self.library.0.functions
    }

    fn pointer(&self) -> *const Opaque {
        self.model.as_ptr()
    }

    /// Reads a field of `mjModel`.
    ///
    /// # Safety
    /// `offset` must be that of a field of type `T` in this version's `mjModel`, and `T` a plain number.
    unsafe fn field<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: the model is larger than every offset of its layout.
        let field = unsafe { self.pointer().byte_add(offset) };
        // SAFETY: it is a number of that type, initialised by the compiler.
        unsafe { field.cast::<T>().read_unaligned() }
    }

    /// Number of positions, velocities, controls, cameras, sensors and numbers of all sensors.
    pub(crate) fn counts(&self) -> [usize; 6] {
        let layout = &self.library.layouts().model;
        let offsets = [layout.nq, layout.nv, layout.nu, layout.ncam, layout.nsensor, layout.nsensordata];
        // SAFETY: in the table of versions, these are the offsets of counts.
        offsets.map(|offset| unsafe { self.count(offset) })
    }

    /// Reads a count of `mjModel`.
    ///
    /// # Safety
    /// `offset` must be that of a count in this version's `mjModel`.
    unsafe fn count(&self, offset: usize) -> usize {
        let count = if self.library.layouts().model.count_size == size_of::<c_int>() {
            // SAFETY: in the table of versions, this is the size of a count.
            i64::from(unsafe { self.field::<c_int>(offset) })
        } else {
            // SAFETY: in all other versions, a count has 64 bits.
            unsafe { self.field(offset) }
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// A list of the model.
    ///
    /// # Safety
    /// `offset` must be that of a pointer to `count` values of type `T` in this version's `mjModel`, and `T` a plain number, or an
    /// array of them.
    unsafe fn list<T: Copy>(&self, offset: usize, count: usize) -> &[T] {
        // SAFETY: promised by the caller.
        let first: *const T = unsafe { self.field(offset) };
        if count == 0 || first.is_null() {
            return &[];
        }
        // SAFETY: the compiler allots that many values, aligned to 64 bytes as all arrays of a model, and nothing changes them as
        // long as the model is there.
        unsafe { std::slice::from_raw_parts(first, count) }
    }

    /// For each material, whether its colour has a texture, whether the texture's size is that of the world, and how often it is
    /// repeated.
    pub(crate) fn textures(&self) -> Vec<(bool, bool, [f32; 2])> {
        let layout = &self.library.layouts().model;
        // SAFETY: in the table of versions, this is the offset of a count.
        let count = unsafe { self.count(layout.nmat) };
        // SAFETY: in the table of versions, this is the offset of a list of this type and length, as are the next two.
        let ids: &[c_int] = unsafe { self.list(layout.mat_texid, count * layout.texture_roles) };
        // SAFETY: as above.
        let uniform: &[u8] = unsafe { self.list(layout.mat_texuniform, count) };
        // SAFETY: as above.
        let repeat: &[[f32; 2]] = unsafe { self.list(layout.mat_texrepeat, count) };
        let ids = ids.chunks_exact(layout.texture_roles).map(|roles| roles[layout.texture_role]);
        ids.zip(uniform)
            .zip(repeat)
            .map(|((id, &uniform), &repeat)| (id >= 0, uniform != 0, repeat))
            .collect()
    }

    /// Number of keyframes.
    pub(crate) fn keyframes(&self) -> usize {
        // SAFETY: in the table of versions, this is the offset of a count.
        unsafe { self.count(self.library.layouts().model.nkey) }
    }

    /// Makes all quaternions of positions, `[nq]`, unit ones.
    pub(crate) fn normalize(&self, positions: &mut [f64]) -> Result<(), MujocoError> {
        let (wanted, given) = (self.counts()[0], positions.len());
        if given != wanted {
            return Err(MujocoError::Length { what: "positions", wanted, given });
        }
        let (function, model, positions) =
            (self.functions().mj_normalizeQuat, self.pointer(), positions.as_mut_ptr());
        guarded(&self.library.0, "mj_normalizeQuat", &mut Vec::new(), || {
            // SAFETY: the model is valid, and there are as many positions as it has.
            unsafe { function(model, positions) }
        })
    }

    /// `vis.map.shadowclip`, `vis.map.shadowscale` and `stat.extent`.
    pub(crate) fn shadows(&self) -> [f64; 3] {
        let layout = &self.library.layouts().model;
        let [clip, scale] = [layout.shadow_clip, layout.shadow_scale].map(|offset| {
            // SAFETY: in the table of versions, these are the offsets of 32-bit floats.
            let number: f32 = unsafe { self.field(offset) };
            f64::from(number)
        });
        // SAFETY: in the table of versions, this is the offset of a 64-bit float.
        let extent: f64 = unsafe { self.field(layout.extent) };
        [clip, scale, extent]
    }

    /// Seconds of a step of the simulation.
    pub(crate) fn time_step(&self) -> f64 {
        // SAFETY: in the table of versions, this is the offset of a 64-bit float.
        unsafe { self.field(self.library.layouts().model.time_step) }
    }

    /// The number of the integrator, of `mjtIntegrator`.
    pub(crate) fn integrator(&self) -> c_int {
        // SAFETY: in the table of versions, this is the offset of a 32-bit integer.
        unsafe { self.field(self.library.layouts().model.integrator) }
    }

    /// The range of each control; `None` for one without.
    pub(crate) fn control_ranges(&self) -> Vec<Option<[f64; 2]>> {
        let layout = &self.library.layouts().model;
        let count = self.counts()[2];
        // SAFETY: in the table of versions, this is the offset of a list of bytes, one for each control.
        let limited: &[u8] = unsafe { self.list(layout.control_limited, count) };
        // SAFETY: as above, of pairs of 64-bit floats.
        let ranges: &[[f64; 2]] = unsafe { self.list(layout.control_range, count) };
        limited.iter().zip(ranges).map(|(&limited, &range)| (limited != 0).then_some(range)).collect()
    }

    /// Size of the model in bytes.
    pub(crate) fn bytes(&self) -> Result<u64, MujocoError> {
        let (function, model) = (&self.library.0.size_model, self.pointer());
        let size = guarded(&self.library.0, "mj_sizeModel", &mut Vec::new(), || {
            match function {
                // SAFETY: the model is valid.
                SizeModel::Int(function) => i64::from(unsafe { function(model) }),
                // SAFETY: the model is valid.
                SizeModel::Long(function) => unsafe { function(model) },
            }
        })?;
        Ok(u64::try_from(size).unwrap_or(u64::MAX))
    }

    /// Number of numbers in these parts of the state, bits of `mjtState`.
    pub(crate) fn state_size(&self, parts: State) -> Result<usize, MujocoError> {
        let (functions, model, parts) = (self.functions(), self.pointer(), self.bits(parts));
        let size = guarded(&self.library.0, "mj_stateSize", &mut Vec::new(), || {
            // SAFETY: the model is valid, and the bits are defined ones.
            unsafe { (functions.mj_stateSize)(model, parts) }
        })?;
        Ok(usize::try_from(size).unwrap_or(0))
    }

    /// The bits of these parts of the state, of `mjtState`.
    fn bits(&self, parts: State) -> c_int {
        let states = &self.library.layouts().states;
        match parts {
            State::Time => states.time,
            State::Positions => states.positions,
            State::Velocities => states.velocities,
            State::Motion => states.time | states.positions | states.velocities,
            State::Controls => states.controls,
            State::MocapPositions => states.mocap_positions,
        }
    }

    /// The number of the object of a kind of `mjtObj` that is called `name`.
    pub(crate) fn id(&self, kind: c_int, name: &str) -> Result<Option<c_int>, MujocoError> {
        let Ok(name) = CString::new(name) else { return Ok(None) };
        let (functions, model, name) = (self.functions(), self.pointer(), name.as_ptr());
        let id = guarded(&self.library.0, "mj_name2id", &mut Vec::new(), || {
            // SAFETY: the model is valid, and the name ends with a zero.
            unsafe { (functions.mj_name2id)(model, kind, name) }
        })?;
        Ok((id >= 0).then_some(id))
    }
}

impl Drop for RawModel {
    fn drop(&mut self) {
        let (functions, model) = (self.functions(), self.model.as_ptr());
        // An error here leaves memory behind, and nothing can be done about it.
        let _ = guarded(&self.library.0, "mj_deleteModel", &mut Vec::new(), || {
            // SAFETY: the model is valid, and nothing refers to it: data and scenes hold it.
            unsafe { (functions.mj_deleteModel)(model) }
        });
    }
}

/// Parts of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Time,
    Positions,
    Velocities,
    /// Time, positions and velocities, in this order.
    Motion,
    Controls,
    /// Of bodies that are placed from outside.
    MocapPositions,
}

/// A function that takes a model and its data, and returns nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advance {
    Reset,
    Forward,
    Step,
    Step1,
    Step2,
}

/// A sensor of a model.
#[derive(Clone)]
pub struct Sensor {
    id: c_int,
    /// Index of its first number among those of all sensors.
    first: usize,
    length: usize,
    /// The model that it belongs to; no other value has this number of this model.
    model: Arc<RawModel>,
}

impl Sensor {
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns whether it has no numbers, which no sensor is.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// A body of a model.
#[derive(Clone)]
pub struct Body {
    id: c_int,
    model: Arc<RawModel>,
}

impl std::fmt::Debug for Sensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sensor").field("id", &self.id).field("length", &self.length).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Body").field("id", &self.id).finish_non_exhaustive()
    }
}

/// One simulation of a model.
pub(crate) struct RawData {
    model: Arc<RawModel>,
    data: NonNull<Opaque>,
    /// The error inside of MuJoCo after which nothing of the data may be used.
    broken: Option<String>,
    warnings: Vec<String>,
}

// SAFETY: the data belongs to this value alone, and MuJoCo keeps nothing of it that belongs to a thread.
unsafe impl Send for RawData {}

impl RawData {
    /// Makes data in the model's initial state.
    pub(crate) fn new(model: &Arc<RawModel>) -> Result<Self, MujocoError> {
        let (functions, pointer) = (model.functions(), model.pointer());
        let mut warnings = Vec::new();
        let data = guarded(&model.library.0, "mj_makeData", &mut warnings, || {
            // SAFETY: the model is valid.
            unsafe { (functions.mj_makeData)(pointer) }
        })?;
        Self::of(model, data, "mj_makeData", warnings)
    }

    fn of(
        model: &Arc<RawModel>,
        data: *mut Opaque,
        function: &'static str,
        warnings: Vec<String>,
    ) -> Result<Self, MujocoError> {
        let why = "there is not enough memory".to_owned();
        let data = NonNull::new(data).ok_or(MujocoError::Failed { function, why })?;
        Ok(RawData { model: Arc::clone(model), data, broken: None, warnings })
    }

    /// A copy in exactly the same state, with everything that was computed from it.
    pub(crate) fn copied(&self) -> Result<Self, MujocoError> {
        self.check()?;
        let (functions, model, data) = (self.model.functions(), self.model.pointer(), self.data.as_ptr());
        let mut warnings = self.warnings.clone();
        let copy = guarded(&self.model.library.0, "mj_copyData", &mut warnings, || {
            // SAFETY: the data is valid and of this model; without a destination, a new one is made.
            unsafe { (functions.mj_copyData)(ptr::null_mut(), model, data) }
        })?;
        Self::of(&self.model, copy, "mj_copyData", warnings)
    }

    /// Warnings since the last call of this function.
    pub(crate) fn warnings(&mut self) -> &mut Vec<String> {
        &mut self.warnings
    }

    fn check(&self) -> Result<(), MujocoError> {
        self.broken.as_ref().map_or(Ok(()), |why| Err(MujocoError::Broken { why: why.clone() }))
    }

    /// Calls a function that may change the data; an error in it breaks the data.
    fn change<T: Copy>(
        &mut self,
        function: &'static str,
        call: impl Fn() -> T + Copy,
    ) -> Result<T, MujocoError> {
        self.check()?;
        let done = guarded(&self.model.library.0, function, &mut self.warnings, call);
        if let Err(error) = &done {
            self.broken = Some(error.to_string());
        }
        done
    }

    /// Resets, computes, or steps.
    pub(crate) fn advance(&mut self, how: Advance) -> Result<(), MujocoError> {
        let functions = self.model.functions();
        let (name, function) = match how {
            Advance::Reset => ("mj_resetData", functions.mj_resetData),
            Advance::Forward => ("mj_forward", functions.mj_forward),
            Advance::Step => ("mj_step", functions.mj_step),
            Advance::Step1 => ("mj_step1", functions.mj_step1),
            Advance::Step2 => ("mj_step2", functions.mj_step2),
        };
        let (model, data) = (self.model.pointer(), self.data.as_ptr());
        self.change(name, || {
            // SAFETY: the data is valid, not broken, of this model, and borrowed exclusively.
            unsafe { function(model, data) }
        })
    }

    /// Resets to a keyframe.
    pub(crate) fn reset_to(&mut self, keyframe: c_int) -> Result<(), MujocoError> {
        let function = self.model.functions().mj_resetDataKeyframe;
        let (model, data) = (self.model.pointer(), self.data.as_ptr());
        self.change("mj_resetDataKeyframe", || {
            // SAFETY: the data is valid, not broken, of this model, and borrowed exclusively; MuJoCo checks the number.
            unsafe { function(model, data, keyframe) }
        })
    }

    /// Reads parts of the state into `numbers`, whose length must be [`RawModel::state_size`] of the parts.
    pub(crate) fn get(&mut self, parts: State, numbers: &mut [f64]) -> Result<(), MujocoError> {
        self.check_length(parts, numbers.len())?;
        let function = self.model.functions().mj_getState;
        let (model, data, numbers) = (self.model.pointer(), self.data.as_ptr(), numbers.as_mut_ptr());
        let parts = self.model.bits(parts);
        self.change("mj_getState", || {
            // SAFETY: the data is valid and of this model, and the numbers are as many as it writes.
            unsafe { function(model, data, numbers, parts) }
        })
    }

    /// Sets parts of the state from `numbers`, whose length must be [`RawModel::state_size`] of the parts.
    pub(crate) fn set(&mut self, parts: State, numbers: &[f64]) -> Result<(), MujocoError> {
        self.check_length(parts, numbers.len())?;
        let function = self.model.functions().mj_setState;
        let (model, data, numbers) = (self.model.pointer(), self.data.as_ptr(), numbers.as_ptr());
        let parts = self.model.bits(parts);
        self.change("mj_setState", || {
            // SAFETY: the data is valid, of this model, and borrowed exclusively; the numbers are as many as it reads.
            unsafe { function(model, data, numbers, parts) }
        })
    }

    fn check_length(&self, parts: State, given: usize) -> Result<(), MujocoError> {
        let wanted = self.model.state_size(parts)?;
        if given == wanted {
            return Ok(());
        }
        Err(MujocoError::Length { what: "the state", wanted, given })
    }

    /// The sensor `id` with its number of numbers. `None` when there is none, or one with a delay.
    pub(crate) fn sensor(&mut self, id: c_int) -> Option<Sensor> {
        let layout = &self.model.library.layouts().model;
        let [_, _, _, _, count, numbers] = self.model.counts();
        // SAFETY: in the table of versions, this is the offset of a list of integers, one for each sensor.
        let lengths: &[c_int] = unsafe { self.model.list(layout.sensor_dim, count) };
        // SAFETY: as above.
        let places: &[c_int] = unsafe { self.model.list(layout.sensor_adr, count) };
        // SAFETY: as above, of 64-bit floats.
        let delays = layout.sensor_delay.map(|offset| unsafe { self.model.list::<f64>(offset, count) });
        let at = usize::try_from(id).ok()?;
        let length = usize::try_from(*lengths.get(at)?).ok().filter(|&length| length > 0)?;
        let first = usize::try_from(*places.get(at)?).ok()?;
        let is_delayed = delays.is_some_and(|delays| delays.get(at).is_none_or(|&delay| delay != 0.0));
        let fits = first.checked_add(length).is_some_and(|end| end <= numbers);
        (fits && !is_delayed).then(|| Sensor { id, first, length, model: Arc::clone(&self.model) })
    }

    /// Reads a sensor of this model into `numbers`, as many as it has.
    pub(crate) fn read_sensor(&mut self, sensor: &Sensor, numbers: &mut [f64]) -> Result<(), MujocoError> {
        self.check()?;
        if numbers.len() != sensor.length {
            let (wanted, given) = (sensor.length, numbers.len());
            return Err(MujocoError::Length { what: "a sensor", wanted, given });
        }
        if !Arc::ptr_eq(&sensor.model, &self.model) {
            return Err(MujocoError::Length {
                what: "a sensor of another model",
                wanted: 0,
                given: numbers.len(),
            });
        }
        let field = self.model.library.layouts().model.sensor_data;
        // SAFETY: the data is larger than every offset of its layout.
        let field = unsafe { self.data.as_ptr().byte_add(field) };
        // SAFETY: in the table of versions, this is a pointer to the numbers of all sensors.
        let all = unsafe { field.cast::<*const f64>().read_unaligned() };
        // SAFETY: the sensor is of this model, so its numbers are among them (`sensor`).
        let first = unsafe { all.add(sensor.first) };
        // SAFETY: as above; they belong to the data and are not changed meanwhile.
        let theirs = unsafe { std::slice::from_raw_parts(first, sensor.length) };
        numbers.copy_from_slice(theirs);
        Ok(())
    }

    /// The place and the rotation of a body of this model, or with `place`, of that point in the body's frame.
    pub(crate) fn body_frame(
        &mut self,
        body: &Body,
        place: Option<[f64; 3]>,
    ) -> Result<([f64; 3], [f64; 9]), MujocoError> {
        /// `mjSAMEFRAME_NONE` and `mjSAMEFRAME_BODY`.
        const FRAMES: [u8; 2] = [0, 1];
        if !Arc::ptr_eq(&body.model, &self.model) {
            return Err(MujocoError::Length { what: "a body of another model", wanted: 0, given: 1 });
        }
        let function = self.model.functions().mj_local2Global;
        let (mut at, mut rotation) = ([0.0; 3], [0.0; 9]);
        let frame = FRAMES[usize::from(place.is_none())];
        let (place, turn) = (place.unwrap_or_default(), [1.0, 0.0, 0.0, 0.0]);
        let (data, id) = (self.data.as_ptr(), body.id);
        let (to, turned) = (at.as_mut_ptr(), rotation.as_mut_ptr());
        let (place, turn) = (place.as_ptr(), turn.as_ptr());
        self.change("mj_local2Global", || {
            // SAFETY: the data is valid, the body is one of its model; the arrays have 3, 9, 3 and 4 numbers.
            unsafe { function(data, to, turned, place, turn, id, frame) }
        })?;
        Ok((at, rotation))
    }
}

impl Drop for RawData {
    fn drop(&mut self) {
        let (function, data) = (self.model.functions().mj_deleteData, self.data.as_ptr());
        // An error here leaves memory behind, and nothing can be done about it.
        let _ = guarded(&self.model.library.0, "mj_deleteData", &mut Vec::new(), || {
            // SAFETY: the data is valid or broken, and nothing refers to it. Deleting it frees its blocks without reading its state.
            unsafe { function(data) }
        });
    }
}

/// What a camera of a model shows, or the contacts: an `mjvScene` with the options to fill it.
pub(crate) struct RawScene {
    model: Arc<RawModel>,
    /// `mjvScene`; 8-byte words, so that it is aligned for its pointers.
    scene: Box<[u64]>,
    option: Box<[u64]>,
    camera: Box<[u64]>,
    perturb: Box<[u64]>,
    categories: c_int,
}

// SAFETY: the scene and its lists belong to this value alone.
unsafe impl Send for RawScene {}

/// Zeroed memory of at least `bytes` bytes.
fn zeroed(bytes: usize) -> Box<[u64]> {
    vec![0; bytes.div_ceil(8)].into_boxed_slice()
}

fn opaque(memory: &mut [u64]) -> *mut Opaque {
    memory.as_mut_ptr().cast()
}

/// The bytes of `memory`.
fn bytes(memory: &[u64]) -> &[u8] {
    // SAFETY: the memory is initialised and borrowed, and bytes have no alignment.
    unsafe { std::slice::from_raw_parts(memory.as_ptr().cast(), size_of_val(memory)) }
}

/// Writes `values` at a byte offset of `memory`.
fn write(memory: &mut [u64], offset: usize, values: &[u8]) {
    for (i, &value) in values.iter().enumerate() {
        let (word, shift) = ((offset + i) / 8, (offset + i) % 8);
        let mut all = memory[word].to_ne_bytes();
        all[shift] = value;
        memory[word] = u64::from_ne_bytes(all);
    }
}

/// The 4 bytes at `offset` as an integer.
pub(crate) fn int(bytes: &[u8], offset: usize) -> i32 {
    bytes.get(offset..offset + 4).map_or(0, |four| i32::from_ne_bytes(four.try_into().unwrap_or_default()))
}

impl RawScene {
    /// Room for `most` geoms, with MuJoCo's default options, as the camera of this number sees them; or with no camera, the contact
    /// points alone.
    pub(crate) fn new(model: &Arc<RawModel>, camera: Option<c_int>, most: u16) -> Result<Self, MujocoError> {
        const DECORATION: c_int = 4;
        const ALL: c_int = 7;
        const FIXED: c_int = 2;
        let layout = &model.library.layouts().scene;
        let mut made = RawScene {
            model: Arc::clone(model),
            scene: zeroed(layout.scene_size),
            option: zeroed(layout.option_size),
            camera: zeroed(layout.camera_size),
            perturb: zeroed(layout.perturb_size),
            categories: if camera.is_some() { ALL } else { DECORATION },
        };
        let functions = model.functions();
        let (scene, option, view) =
            (opaque(&mut made.scene), opaque(&mut made.option), opaque(&mut made.camera));
        let mut warnings = Vec::new();
        for (function, name, memory) in [
            (functions.mjv_defaultOption, "mjv_defaultOption", option),
            (functions.mjv_defaultCamera, "mjv_defaultCamera", view),
            (functions.mjv_defaultScene, "mjv_defaultScene", scene),
        ] {
            guarded(&model.library.0, name, &mut warnings, || {
                // SAFETY: the memory is as large and aligned as the structure that the function initialises.
                unsafe { function(memory) }
            })?;
        }
        match camera {
            Some(id) => {
                write(&mut made.camera, layout.camera_type, &FIXED.to_ne_bytes());
                write(&mut made.camera, layout.camera_fixed, &id.to_ne_bytes());
            }
            None => {
                for flag in 0..layout.option_flag_count {
                    let shown = u8::from(flag == layout.contact_points);
                    write(&mut made.option, layout.option_flags + flag, &[shown]);
                }
            }
        }
        let (function, pointer) = (functions.mjv_makeScene, model.pointer());
        guarded(&model.library.0, "mjv_makeScene", &mut warnings, || {
            // SAFETY: the model is valid, and the scene initialised; from now on it owns memory, which `drop` frees.
            unsafe { function(pointer, scene, c_int::from(most)) }
        })?;
        Ok(made)
    }

    /// Fills the scene from the state of `data`.
    pub(crate) fn update(&mut self, data: &mut RawData) -> Result<(), MujocoError> {
        if !Arc::ptr_eq(&self.model, &data.model) {
            return Err(MujocoError::Length { what: "a scene of another model", wanted: 0, given: 1 });
        }
        let function = self.model.functions().mjv_updateScene;
        let (model, simulation, categories) = (self.model.pointer(), data.data.as_ptr(), self.categories);
        let (scene, option, camera, perturb) = (
            opaque(&mut self.scene),
            opaque(&mut self.option),
            opaque(&mut self.camera),
            opaque(&mut self.perturb),
        );
        data.change("mjv_updateScene", || {
            // SAFETY: the data is valid and of the model for which the scene was made; all structures are initialised; a perturbation
            // of zeros selects nothing. MuJoCo checks the number of the camera and writes no more geoms than there is room for.
            unsafe { function(model, simulation, option, perturb, camera, categories, scene) }
        })
    }

    pub(crate) fn library(&self) -> &Library {
        self.model.library()
    }

    /// The structure `mjvScene`.
    pub(crate) fn header(&self) -> &[u8] {
        bytes(&self.scene)
    }

    /// Number of geoms.
    pub(crate) fn len(&self) -> usize {
        let layout = &self.library().layouts().scene;
        let room = int(self.header(), layout.maxgeom);
        usize::try_from(int(self.header(), layout.ngeom).min(room)).unwrap_or(0)
    }

    /// The geoms, `[len, geom_size]` bytes.
    pub(crate) fn geoms(&self) -> &[u8] {
        let layout = &self.library().layouts().scene;
        let address = self.scene[layout.geoms / 8];
        if address == 0 || self.len() == 0 {
            return &[];
        }
        let geoms = ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the scene owns room for `maxgeom` geoms, of which MuJoCo has filled the first `ngeom`. They are not changed while
        // this value is borrowed.
        unsafe { std::slice::from_raw_parts(geoms, self.len() * layout.geom_size) }
    }
}

impl Drop for RawScene {
    fn drop(&mut self) {
        let (function, scene) = (self.model.functions().mjv_freeScene, opaque(&mut self.scene));
        let _ = guarded(&self.model.library.0, "mjv_freeScene", &mut Vec::new(), || {
            // SAFETY: the scene is initialised, and nothing refers to what it owns.
            unsafe { function(scene) }
        });
    }
}

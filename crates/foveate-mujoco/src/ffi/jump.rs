//! Leaving C functions without returning.

use std::ffi::c_void;

/// The stack pointer at which [`enter`] saved the registers.
#[repr(transparent)]
pub(super) struct Frame(*mut c_void);

impl Frame {
    pub(super) const fn new() -> Self {
        Frame(std::ptr::null_mut())
    }
}

/// True if the functions below exist for this machine.
pub(super) const SUPPORTED: bool = cfg!(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "macos"),
    target_pointer_width = "64"
));

/// Calls `call(argument)` and returns 0; or returns 1 after [`escape`] with this `frame`.
///
/// It saves all registers that the calling convention requires a function to preserve, and the floating-point control words,
/// on the stack, and the stack pointer in `frame`. So it returns to its caller once, with everything preserved, either way.
///
/// It has no unwind table: an exception of C++ that nothing in `call` catches finds no handler and ends the process, as the C++
/// standard has it (`std::terminate`), before any frame is left.
///
/// # Safety
/// `call` must be safe to call with `argument` and must not panic. `frame` must be valid for a write.
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "macos")))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter(
    call: unsafe extern "C-unwind" fn(*mut c_void),
    argument: *mut c_void,
    frame: *mut Frame,
) -> usize {
    // System V calling convention: arguments in rdi, rsi, rdx; the stack is aligned to 16 bytes at a call, so it is 8 off at
    // entry, 8 off again after six pushes, and aligned after the subtraction.
    core::arch::naked_asm!(
        "push rbp",
        "push rbx",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "stmxcsr [rsp]",
        "fnstcw [rsp + 4]",
        "mov [rdx], rsp",
        "mov rax, rdi",
        "mov rdi, rsi",
        "call rax",
        "xor eax, eax",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// Returns from the [`enter`] call of `frame` with 1.
///
/// # Safety
/// That call must be running on this thread, and the frames above it are abandoned: none may own anything that must be dropped.
#[cfg(all(target_arch = "x86_64", any(target_os = "linux", target_os = "macos")))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn escape(frame: *mut Frame) -> ! {
    // The direction flag is clear at entry, as the calling convention demands of every call.
    core::arch::naked_asm!(
        "mov rsp, [rdi]",
        "ldmxcsr [rsp]",
        "fldcw [rsp + 4]",
        "mov eax, 1",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbx",
        "pop rbp",
        "ret",
    )
}

/// As for x86-64. Registers x19 to x30, the lower halves of v8 to v15 and the floating-point control register are preserved, and
/// the stack pointer is always a multiple of 16; x18 belongs to the system.
///
/// # Safety
/// `call` must be safe to call with `argument` and must not panic. `frame` must be valid for a write.
#[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "macos")))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn enter(
    call: unsafe extern "C-unwind" fn(*mut c_void),
    argument: *mut c_void,
    frame: *mut Frame,
) -> usize {
    core::arch::naked_asm!(
        "stp x29, x30, [sp, #-176]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "stp d8, d9, [sp, #96]",
        "stp d10, d11, [sp, #112]",
        "stp d12, d13, [sp, #128]",
        "stp d14, d15, [sp, #144]",
        "mrs x9, fpcr",
        "str x9, [sp, #160]",
        "mov x9, sp",
        "str x9, [x2]",
        "mov x9, x0",
        "mov x0, x1",
        "blr x9",
        "mov x0, #0",
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #176",
        "ret",
    )
}

/// As for x86-64.
///
/// # Safety
/// The [`enter`] call of `frame` must be running on this thread, and the frames above it are abandoned: none may own anything
/// that must be dropped.
#[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_os = "macos")))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn escape(frame: *mut Frame) -> ! {
    core::arch::naked_asm!(
        "ldr x9, [x0]",
        "mov sp, x9",
        "ldr x9, [sp, #160]",
        "msr fpcr, x9",
        "mov x0, #1",
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp d8, d9, [sp, #96]",
        "ldp d10, d11, [sp, #112]",
        "ldp d12, d13, [sp, #128]",
        "ldp d14, d15, [sp, #144]",
        "ldp x29, x30, [sp], #176",
        "ret",
    )
}

/// Never called: [`super::Library::open`] refuses machines that are not [`SUPPORTED`], so nothing else of this module is
/// reached there.
///
/// # Safety
/// It does nothing.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "macos")
)))]
pub(super) unsafe extern "C" fn enter(
    _: unsafe extern "C-unwind" fn(*mut c_void),
    _: *mut c_void,
    _: *mut Frame,
) -> usize {
    1
}

/// Never called, see [`enter`].
///
/// # Safety
/// It ends the process.
#[cfg(not(all(
    any(target_arch = "x86_64", target_arch = "aarch64"),
    any(target_os = "linux", target_os = "macos")
)))]
pub(super) unsafe extern "C" fn escape(_: *mut Frame) -> ! {
    std::process::abort()
}

//! What a network needs of an accelerator: memory, the kernels of `kernels.cu`, and products of matrices.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// The kernels, in the C that NVRTC and C compilers have in common.
pub const KERNELS: &str = include_str!("kernels.cu");

/// An accelerator refused something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// The arguments of a kernel, as `Args` in `kernels.cu`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Args {
    /// Addresses of arrays on the device.
    pub arrays: [u64; 8],
    /// Sizes.
    pub sizes: [i32; 12],
    /// Other numbers.
    pub numbers: [f32; 2],
    /// Threads that have work.
    pub threads: i32,
}

/// A matrix of a product, row-major, or its transpose.
#[derive(Debug, Clone, Copy)]
pub struct Matrix {
    /// Address of its first number.
    pub at: u64,
    /// Numbers from one stored row to the next.
    pub stride: usize,
    /// True if the transpose of what is stored is meant.
    pub transposed: bool,
    /// Numbers from one matrix of a batch to the next.
    pub apart: usize,
}

/// The sizes of products C = A B, or C += A B: rows of A, columns of B, columns of A, and how many products there are.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Products.
    pub batch: usize,
}

/// An accelerator, or what stands in for it. Everything happens in the order of the calls.
///
/// # Safety
/// Addresses come from [`Device::allocate`] and stay valid until [`Device::free`]. Callers pass only ranges that lie inside
/// such memory; `ops.rs` checks the length of every array before it calls.
#[allow(unsafe_code, reason = "the contract of addresses; kept in ops.rs")]
pub unsafe trait Device: Send + Sync {
    /// What it is called.
    fn name(&self) -> String;
    /// Bytes that are free.
    ///
    /// # Errors
    /// What the driver says.
    fn free_bytes(&self) -> Result<usize, DeviceError>;
    /// The address of this many bytes, all 0.
    ///
    /// # Errors
    /// When there are not that many.
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;
    /// Gives them back.
    fn free(&self, at: u64);
    /// Copies to the device.
    ///
    /// # Safety
    /// The bytes at `to` belong to memory of this device.
    ///
    /// # Errors
    /// What the driver says.
    unsafe fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError>;
    /// Copies from the device, after everything that was begun.
    ///
    /// # Safety
    /// As [`Device::upload`].
    ///
    /// # Errors
    /// What the driver says, also of an earlier call.
    unsafe fn download(&self, from: u64, bytes: &mut [u8]) -> Result<(), DeviceError>;
    /// Copies from one place to another.
    ///
    /// # Safety
    /// As [`Device::upload`], for both.
    ///
    /// # Errors
    /// What the driver says.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Sets bytes to 0.
    ///
    /// # Safety
    /// As [`Device::upload`].
    ///
    /// # Errors
    /// What the driver says.
    unsafe fn clear(&self, at: u64, bytes: usize) -> Result<(), DeviceError>;
    /// Starts a kernel.
    ///
    /// # Safety
    /// The arrays have the lengths that the kernel's sizes and threads imply.
    ///
    /// # Errors
    /// What the driver says.
    unsafe fn launch(&self, kernel: &'static str, args: &Args) -> Result<(), DeviceError>;
    /// C = A B, or C += A B; the numbers of C lie one after the other, batches `apart` numbers apart.
    ///
    /// # Safety
    /// The matrices lie inside memory of this device.
    ///
    /// # Errors
    /// What the library says.
    unsafe fn product(
        &self,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        sizes: Sizes,
        add: bool,
    ) -> Result<(), DeviceError>;
}

/// Memory of a device.
pub struct Memory {
    device: Arc<dyn Device>,
    at: u64,
    bytes: usize,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.device.free(self.at);
    }
}

impl Memory {
    /// `len` numbers, all 0.
    ///
    /// # Errors
    /// When the device has not that much.
    pub fn numbers(device: &Arc<dyn Device>, len: usize) -> Result<Self, DeviceError> {
        Memory::bytes(device, len.saturating_mul(4))
    }

    /// `bytes` bytes, all 0.
    ///
    /// # Errors
    /// When the device has not that much.
    pub fn bytes(device: &Arc<dyn Device>, bytes: usize) -> Result<Self, DeviceError> {
        let at = device.allocate(bytes)?;
        Ok(Memory { device: Arc::clone(device), at, bytes })
    }

    /// All of its numbers.
    pub const fn all(&self) -> Numbers<'_> {
        Numbers { at: self.at, len: self.bytes / 4, memory: PhantomData }
    }

    /// All of its bytes.
    pub const fn all_bytes(&self) -> Bytes<'_> {
        Bytes { at: self.at, len: self.bytes, memory: PhantomData }
    }
}

/// Numbers in the memory of a device.
///
/// They borrow the [`Memory`] and cannot outlive it:
///
/// ```compile_fail,E0505
/// # fn test(memory: foveate_gpu::device::Memory) {
/// let numbers = memory.all();
/// drop(memory);
/// let _ = numbers.len();
/// # }
/// ```
///
/// ```
/// # fn test(memory: foveate_gpu::device::Memory) {
/// let numbers = memory.all();
/// let _ = numbers.len();
/// drop(memory);
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    pub(crate) at: u64,
    pub(crate) len: usize,
    memory: PhantomData<&'a Memory>,
}

/// Bytes in the memory of a device.
///
/// They borrow the [`Memory`] and cannot outlive it:
///
/// ```compile_fail,E0505
/// # fn test(memory: foveate_gpu::device::Memory) {
/// let bytes = memory.all_bytes();
/// drop(memory);
/// let _ = bytes.len();
/// # }
/// ```
///
/// ```
/// # fn test(memory: foveate_gpu::device::Memory) {
/// let bytes = memory.all_bytes();
/// let _ = bytes.len();
/// drop(memory);
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Bytes<'a> {
    pub(crate) at: u64,
    pub(crate) len: usize,
    memory: PhantomData<&'a Memory>,
}

impl<'a> Numbers<'a> {
    /// `len` of them from number `begin` on.
    ///
    /// # Panics
    /// When there are not that many.
    #[must_use]
    pub fn part(self, begin: usize, len: usize) -> Numbers<'a> {
        assert!(
            begin.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} numbers from {begin} on, of {}",
            self.len
        );
        Numbers { at: self.at + 4 * begin as u64, len, memory: PhantomData }
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

impl<'a> Bytes<'a> {
    /// `len` of them from byte `begin` on.
    ///
    /// # Panics
    /// When there are not that many.
    #[must_use]
    pub fn part(self, begin: usize, len: usize) -> Bytes<'a> {
        assert!(
            begin.checked_add(len).is_some_and(|end| end <= self.len),
            "{len} bytes from {begin} on, of {}",
            self.len
        );
        Bytes { at: self.at + begin as u64, len, memory: PhantomData }
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

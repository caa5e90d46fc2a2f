//! This machine's processor in place of a GPU. The kernels are compiled by the C compiler that links Rust programs, `cc`.
#![allow(unsafe_code, reason = "stands in for a GPU: addresses are those of this process")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use foveate_gpu::device::{Args, Device, DeviceError, KERNELS, Matrix, Sizes};

/// The processor.
pub(crate) struct Host {
    library: libloading::Library,
    memory: Mutex<BTreeMap<u64, Vec<u64>>>,
    _folder: tempfile::TempDir,
}

impl Host {
    pub(crate) fn device() -> Arc<dyn Device> {
        let folder = tempfile::tempdir().expect("a folder");
        let (source, library) = (folder.path().join("kernels.c"), folder.path().join("kernels.so"));
        std::fs::write(&source, format!("#include <stddef.h>\n{KERNELS}")).expect("written");
        let mut compile = Command::new("cc");
        compile
            .args(["-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source)
            .arg("-lm");
        let output = compile.output().expect("cc, which links Rust programs too");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // SAFETY: the library that was just compiled.
        let library = unsafe { libloading::Library::new(Path::new(&library)) }.expect("it loads");
        Arc::new(Host { library, memory: Mutex::default(), _folder: folder })
    }
}

// SAFETY: addresses are those of vectors that live until they are freed.
unsafe impl Device for Host {
    fn name(&self) -> String {
        "this processor".into()
    }

    fn free_bytes(&self) -> Result<usize, DeviceError> {
        Ok(1 << 32)
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let memory = vec![0_u64; bytes.div_ceil(8).max(1)];
        let at = memory.as_ptr() as u64;
        self.memory.lock().expect("alive").insert(at, memory);
        Ok(at)
    }

    fn free(&self, at: u64) {
        self.memory.lock().expect("alive").remove(&at);
    }

    unsafe fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }

    unsafe fn download(&self, from: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn clear(&self, at: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's.
        unsafe { std::ptr::write_bytes(at as *mut u8, 0, bytes) };
        Ok(())
    }

    unsafe fn launch(&self, kernel: &'static str, args: &Args) -> Result<(), DeviceError> {
        // SAFETY: every kernel of the source has this form.
        unsafe {
            let function: libloading::Symbol<'_, unsafe extern "C" fn(*const Args)> =
                self.library.get(kernel.as_bytes()).map_err(|error| DeviceError(error.to_string()))?;
            function(args);
        }
        Ok(())
    }

    unsafe fn product(
        &self,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        sizes: Sizes,
        add: bool,
    ) -> Result<(), DeviceError> {
        let Sizes { m, n, k, batch } = sizes;
        let place = |of: Matrix, which: usize, row: usize, column: usize| {
            let (row, column) = if of.transposed { (column, row) } else { (row, column) };
            of.at + 4 * (which * of.apart + row * of.stride + column) as u64
        };
        for which in 0..batch {
            for i in 0..m {
                for j in 0..n {
                    // SAFETY: the caller's.
                    unsafe {
                        let at = |of: Matrix, i, j| f64::from(*(place(of, which, i, j) as *const f32));
                        let sum: f64 = (0..k).map(|l| at(a, i, l) * at(b, l, j)).sum();
                        let c = place(c, which, i, j) as *mut f32;
                        *c = (sum + if add { f64::from(*c) } else { 0.0 }) as f32;
                    }
                }
            }
        }
        Ok(())
    }
}

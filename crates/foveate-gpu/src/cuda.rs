//! NVIDIA GPUs: the driver, NVRTC and cuBLAS, found at run time.
#![allow(unsafe_code, reason = "calls of the driver and of cuBLAS; addresses are checked in ops.rs")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::cublas::{result as cublas, sys as blas};
use cudarc::driver::{CudaContext, result as driver, sys};
use cudarc::nvrtc::{CompileError, CompileOptions, compile_ptx_with_opts};

use crate::device::{Args, Device, DeviceError, KERNELS, Matrix, Sizes};

/// Threads of a block.
const BLOCK: u32 = 256;

/// How products of matrices are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Precision {
    /// With 10 bits of each factor, sums in single precision; several times as fast.
    #[default]
    Tf32,
    /// Single precision.
    F32,
}

/// A GPU.
pub struct Cuda {
    context: Arc<CudaContext>,
    blas: Mutex<Blas>,
    functions: BTreeMap<&'static str, Function>,
    precision: Precision,
}

struct Blas(blas::cublasHandle_t);
// SAFETY: the handle is used by one thread at a time, behind a mutex.
unsafe impl Send for Blas {}

struct Function(sys::CUfunction);
// SAFETY: functions of a loaded module may be launched from any thread; the module is never unloaded.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// The libraries, and the names of their files.
const LIBRARIES: [(&str, &[&str]); 3] = [
    ("the driver", &["libcuda.so.1", "libcuda.so", "nvcuda.dll"]),
    ("NVRTC", &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "nvrtc64_130_0.dll", "nvrtc64_120_0.dll"]),
    ("cuBLAS", &["libcublas.so", "libcublas.so.13", "libcublas.so.12", "cublas64_13.dll", "cublas64_12.dll"]),
];

impl Cuda {
    /// The GPU of this number.
    ///
    /// # Errors
    /// When a library is missing, there is no such GPU, or the kernels do not compile.
    pub fn new(number: usize, precision: Precision) -> Result<Self, DeviceError> {
        for (what, names) in LIBRARIES {
            // SAFETY: these libraries of NVIDIA's run nothing of ours when they are loaded.
            if !names.iter().any(|name| unsafe { libloading::Library::new(*name) }.is_ok()) {
                return Err(DeviceError(format!(
                    "{what} was not found ({}); install NVIDIA's driver and the CUDA toolkit (12 or newer), and name the folder \
                     of its libraries in LD_LIBRARY_PATH",
                    names[0]
                )));
            }
        }
        let context = CudaContext::new(number)
            .map_err(|error| DeviceError(format!("GPU {number} cannot be used: {error}")))?;
        let (major, minor) = context.compute_capability().map_err(refused)?;
        let options = CompileOptions {
            options: vec![format!("--gpu-architecture=compute_{major}{minor}")],
            fmad: Some(true),
            ..CompileOptions::default()
        };
        let ptx = compile_ptx_with_opts(KERNELS, options).map_err(|error| match error {
            CompileError::CompileError { log, .. } => {
                DeviceError(format!("the kernels do not compile: {}", log.to_string_lossy().trim()))
            }
            other => DeviceError(format!("the kernels do not compile: {other:?}")),
        })?;
        let source = CString::new(ptx.to_src()).map_err(|error| DeviceError(error.to_string()))?;
        // SAFETY: PTX that NVRTC has just written, ended by a zero.
        let module = unsafe { driver::module::load_data(source.as_ptr().cast()) }.map_err(refused)?;
        let mut functions = BTreeMap::new();
        for name in kernels() {
            let c_name = CString::new(name).map_err(|error| DeviceError(error.to_string()))?;
            // SAFETY: the module was loaded above.
            let function = unsafe { driver::module::get_function(module, c_name) }.map_err(refused)?;
            functions.insert(name, Function(function));
        }
        let handle = cublas::create_handle().map_err(|error| DeviceError(format!("cuBLAS: {error}")))?;
        Ok(Cuda { context, blas: Mutex::new(Blas(handle)), functions, precision })
    }

    fn bind(&self) -> Result<(), DeviceError> {
        self.context.bind_to_thread().map_err(refused)
    }
}

/// The names of all kernels, as their source has them.
fn kernels() -> impl Iterator<Item = &'static str> {
    KERNELS.split("\nKERNEL(").skip(1).filter_map(|rest| rest.split(')').next())
}

fn refused(error: driver::DriverError) -> DeviceError {
    DeviceError(format!("the GPU refused: {error}"))
}

fn int(n: usize) -> Result<i32, DeviceError> {
    i32::try_from(n)
        .map_err(|_| DeviceError(format!("a matrix of {n} rows or columns is too large for cuBLAS")))
}

// SAFETY: addresses come from `malloc_sync` of the same context, and all calls use the one default stream, in order.
unsafe impl Device for Cuda {
    fn name(&self) -> String {
        self.context.name().unwrap_or_else(|_| "a GPU".into())
    }

    fn free_bytes(&self) -> Result<usize, DeviceError> {
        self.bind()?;
        driver::mem_get_info().map(|(free, _)| free).map_err(refused)
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.bind()?;
        // SAFETY: the context is current.
        let at = unsafe { driver::malloc_sync(bytes.max(1)) }.map_err(|error| {
            let free = driver::mem_get_info().map_or(0, |(free, _)| free);
            DeviceError(format!(
                "no memory for {} MB, {} MB are free ({error}); lower the number of worlds, unroll or batch",
                bytes >> 20,
                free >> 20
            ))
        })?;
        // SAFETY: that many bytes were allocated.
        unsafe { self.clear(at, bytes)? };
        Ok(at)
    }

    fn free(&self, at: u64) {
        if self.bind().is_ok() {
            // SAFETY: allocated by `allocate`, and freed once, by its owner.
            let _ = unsafe { driver::free_sync(at) };
        }
    }

    unsafe fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: the caller's.
        unsafe { driver::memcpy_htod_sync(to, bytes) }.map_err(refused)
    }

    unsafe fn download(&self, from: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: the caller's.
        unsafe { driver::memcpy_dtoh_sync(bytes, from) }.map_err(refused)
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: the caller's.
        unsafe { driver::memcpy_dtod_async(to, from, bytes, std::ptr::null_mut()) }.map_err(refused)
    }

    unsafe fn clear(&self, at: u64, bytes: usize) -> Result<(), DeviceError> {
        self.bind()?;
        // SAFETY: the caller's.
        unsafe { driver::memset_d8_async(at, 0, bytes, std::ptr::null_mut()) }.map_err(refused)
    }

    unsafe fn launch(&self, kernel: &'static str, args: &Args) -> Result<(), DeviceError> {
        self.bind()?;
        if args.threads == 0 {
            return Ok(());
        }
        let mut args = *args;
        let mut params = [(&raw mut args).cast::<c_void>()];
        let blocks = (args.threads as u32).div_ceil(BLOCK);
        let function = self.functions[kernel].0;
        // SAFETY: the kernel takes one argument, `Args`; its arrays are the caller's.
        unsafe {
            driver::launch_kernel(
                function,
                (blocks, 1, 1),
                (BLOCK, 1, 1),
                0,
                std::ptr::null_mut(),
                &mut params,
            )
        }
        .map_err(|error| DeviceError(format!("kernel {kernel}: {error}")))
    }

    unsafe fn product(
        &self,
        a: Matrix,
        b: Matrix,
        c: Matrix,
        sizes: Sizes,
        add: bool,
    ) -> Result<(), DeviceError> {
        self.bind()?;
        let handle = self.blas.lock().unwrap_or_else(PoisonError::into_inner);
        let Sizes { m, n, k, batch } = sizes;
        // cuBLAS stores columns, so it computes Cᵀ = Bᵀ Aᵀ.
        let operation = |matrix: &Matrix| {
            if matrix.transposed {
                blas::cublasOperation_t::CUBLAS_OP_T
            } else {
                blas::cublasOperation_t::CUBLAS_OP_N
            }
        };
        let (alpha, beta) = (1.0_f32, if add { 1.0_f32 } else { 0.0 });
        let compute = match self.precision {
            Precision::Tf32 => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
            Precision::F32 => blas::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let number = blas::cudaDataType_t::CUDA_R_32F;
        // SAFETY: the caller's; the handle is alive as long as `self`.
        unsafe {
            cublas::gemm_strided_batched_ex(
                handle.0,
                operation(&b),
                operation(&a),
                int(n)?,
                int(m)?,
                int(k)?,
                (&raw const alpha).cast(),
                b.at as *const c_void,
                number,
                int(b.stride)?,
                b.apart as i64,
                a.at as *const c_void,
                number,
                int(a.stride)?,
                a.apart as i64,
                (&raw const beta).cast(),
                c.at as *mut c_void,
                number,
                int(c.stride)?,
                c.apart as i64,
                int(batch)?,
                compute,
                blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(|error| DeviceError(format!("product of {m} x {k} and {k} x {n}: {error}")))
    }
}

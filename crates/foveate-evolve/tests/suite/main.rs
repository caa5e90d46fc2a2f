//! The integration tests of `foveate-evolve`, in one program: it is linked once.

mod cma_es;
mod contract;
mod functions;
mod oracle_cma;
mod oracle_evosax;
mod standstill;

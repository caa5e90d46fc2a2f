//! The integration tests of `foveate-mujoco`, in one program: it is linked once.

mod hostile;

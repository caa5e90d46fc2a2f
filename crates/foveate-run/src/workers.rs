//! Rollouts over all cores.

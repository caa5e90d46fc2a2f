//! Films of an agent driving.

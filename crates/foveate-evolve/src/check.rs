//! Checks that the settings of all strategies share.

use foveate_core::EvolveError;

fn refuse(why: String) -> Result<(), EvolveError> {
    Err(EvolveError::BadConfig { why })
}

/// At least two genomes; an even number when they come in pairs.
pub(crate) fn population(population: usize, mirrored: bool) -> Result<(), EvolveError> {
    if population < 2 {
        return refuse(format!("population = {population}; a generation needs at least 2 genomes"));
    }
    if mirrored && !population.is_multiple_of(2) {
        return refuse(format!(
            "population = {population}; mirrored pairs need an even number, such as {}",
            population + 1
        ));
    }
    Ok(())
}

/// Finite and above zero.
pub(crate) fn above_zero(settings: &[(&str, f64)]) -> Result<(), EvolveError> {
    match settings.iter().find(|(_, value)| !(value.is_finite() && *value > 0.0)) {
        Some((name, value)) => refuse(format!("{name} = {value}; it must be above 0")),
        None => Ok(()),
    }
}

/// At least zero, and finite.
pub(crate) fn not_negative(settings: &[(&str, f64)]) -> Result<(), EvolveError> {
    match settings.iter().find(|(_, value)| !(value.is_finite() && *value >= 0.0)) {
        Some((name, value)) => refuse(format!("{name} = {value}; it must be 0 or more")),
        None => Ok(()),
    }
}

/// At least zero and below one.
pub(crate) fn share(settings: &[(&str, f64)]) -> Result<(), EvolveError> {
    match settings.iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
        Some((name, value)) => refuse(format!("{name} = {value}; it must be at least 0 and below 1")),
        None => Ok(()),
    }
}

/// Above zero and at most one.
pub(crate) fn factor(settings: &[(&str, f64)]) -> Result<(), EvolveError> {
    match settings.iter().find(|(_, value)| !(*value > 0.0 && *value <= 1.0)) {
        Some((name, value)) => refuse(format!("{name} = {value}; it must be above 0 and at most 1")),
        None => Ok(()),
    }
}

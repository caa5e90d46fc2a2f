//! Worlds with everything they need from files.

use std::path::Path;
use std::sync::Arc;

use foveate_core::Env;
use foveate_envs::car_racing;
use foveate_envs::car_racing::variants::Variants;
use foveate_envs::registry::{self, EnvRequest};
use foveate_envs::shift::{Plan, Shifted};

use crate::error::RunError;
use crate::pictures;

/// Builds the world that `request` describes, after reading the pictures that a `video` variant or a shift asks for.
///
/// # Errors
/// When there is no such world, picture, variant, shift or option, when they do not go together, or when the pictures of
/// a video cannot be read.
pub fn make(mut request: EnvRequest) -> Result<Box<dyn Env>, RunError> {
    if request.video.is_none() && request.id == car_racing::ID {
        let variants = Variants::parse_all(&request.variants)?;
        // Without a folder the world itself says what is missing.
        if let Some(folder) = variants.missing_video().filter(|folder| !folder.is_empty()) {
            request.video = Some(Arc::new(pictures::load_folder(Path::new(folder))?));
        }
    }
    let shifts = std::mem::take(&mut request.shifts);
    let env = registry::make(&request)?;
    let plan = plan(&shifts)?;
    if plan.is_empty() { Ok(env) } else { Ok(Box::new(Shifted::new(env, &plan)?)) }
}

/// Reads shifts, and the pictures that they ask for.
///
/// # Errors
/// When a text is no plan, or the pictures cannot be read.
pub fn plan<S: AsRef<str>>(texts: &[S]) -> Result<Plan, RunError> {
    let mut plan = Plan::parse_all(texts)?;
    while let Some(folder) = plan.missing_folder().map(str::to_owned) {
        plan.set_pictures(&folder, &Arc::new(pictures::load_folder(Path::new(&folder))?));
    }
    Ok(plan)
}

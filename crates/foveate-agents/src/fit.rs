//! Settings that fit an agent to the shape of a world.

use foveate_core::EnvSpec;

/// Patches of the usual picture of 96 × 96: as many as fit at a distance of 4 pixels.
const MOST_PATCHES: usize = 529;
/// Fewer patches than these tell an agent too little; the distance between them is then smaller.
const FEWEST_PATCHES: usize = 64;

/// Width and height of the picture, and a distance between patches of 7 × 7 that gives an agent no more of them than it
/// has on the usual picture of 96 × 96; `None` without a picture.
pub fn picture(spec: &EnvSpec) -> Option<([usize; 2], usize)> {
    let (width, height) = spec.observation.picture()?;
    let patches =
        |stride: usize| (width.saturating_sub(7) / stride + 1) * (height.saturating_sub(7) / stride + 1);
    let stride = if patches(4) < FEWEST_PATCHES {
        (1..4).rev().find(|&stride| patches(stride) >= FEWEST_PATCHES).unwrap_or(1)
    } else {
        (4..4096).find(|&stride| patches(stride) <= MOST_PATCHES).unwrap_or(4096)
    };
    Some(([width, height], stride))
}

#[cfg(test)]
mod tests {
    use foveate_core::{ActionSpace, ObservationSpace};

    use super::*;

    #[test]
    fn a_picture_has_about_as_many_patches_as_usual() {
        for (width, height, stride) in
            [(96, 96, 4), (64, 64, 4), (210, 160, 8), (28, 28, 3), (8, 8, 1), (100_000, 100_000, 4096)]
        {
            let spec = EnvSpec {
                id: "test".into(),
                observation: ObservationSpace::rgb(width, height),
                action: ActionSpace::Discrete { n: 3 },
                max_steps: None,
                fps: 1.0,
            };
            let found = picture(&spec);
            assert_eq!(found, Some(([width, height], stride)), "{width} x {height}");
        }
    }
}

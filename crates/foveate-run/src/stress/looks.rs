//! A contact sheet of variants.

use foveate_core::episode::RecordedActor;
use foveate_core::{Agent, Env, ImageBuf};
use foveate_envs::registry::EnvRequest;
use foveate_film::{Face, encode_png};

use super::conditions::{What, conditions};
use super::sheet::{play, put, record};
use crate::error::RunError;
use crate::worlds;

/// Blocks side by side.
const ACROSS: usize = 2;
/// Size in pixels of the view for people, and of a side of the agent's observation.
const VIEW: [usize; 2] = [320, 240];
const SEEN: usize = 240;
/// Pixels between both, around blocks, and for a block's name.
const GAP: usize = 4;
const AROUND: usize = 14;
const NAME: usize = 22;

/// The same step in the unmodified world and in each of `variants` (as `--variants` takes them), as a PNG
/// file: on the left the view for people, on the right the agent's observation. The actions up to this step
/// are those of `agent` in the unmodified world.
///
/// # Errors
/// When a variant does not exist, the world or the agent reports an error, or the episode ends before the
/// step.
pub fn looks(
    world: &EnvRequest,
    variants: &str,
    agent: &dyn Agent,
    seed: u64,
    step: usize,
) -> Result<Vec<u8>, RunError> {
    let rows = conditions(world, variants, "none", &[1.0], None)?;
    let plain = worlds::make(world.clone())?;
    let actions = record(&*plain, agent, seed, step)?;
    let block = [VIEW[0] + GAP + SEEN + AROUND, VIEW[1] + NAME + AROUND];
    let size = [ACROSS * block[0] + AROUND, rows.len().div_ceil(ACROSS) * block[1] + AROUND];
    let mut sheet = ImageBuf::black(size[0], size[1]);
    sheet.rgb_mut().fill(255);
    let face = Face::new(9.0, 1.2);
    for (i, row) in rows.iter().enumerate() {
        let mut env = match row.what {
            What::Original => plain.boxed_clone(),
            _ => worlds::make(row.in_world(world))?,
        };
        let mut recorded = RecordedActor(&actions);
        let rules = recorded.rules();
        play(&mut *env, &mut recorded, seed, rules, &mut ())?;
        let [x, y] = [AROUND + i % ACROSS * block[0], AROUND + i / ACROSS * block[1]];
        face.write(&mut sheet, x as f32, y as f32 + 3.0, &row.name, [40; 3]);
        let mut view = ImageBuf::black(VIEW[0], VIEW[1]);
        env.render(&mut view)?;
        put(&mut sheet, view.as_image(), [x, y + NAME]);
        let mut seen = ImageBuf::black(SEEN, SEEN);
        seen.fit(picture(&*env)?.as_image());
        put(&mut sheet, seen.as_image(), [x + VIEW[0] + GAP, y + NAME]);
    }
    encode_png(sheet.as_image())
        .map_err(|error| RunError::BadRequest { why: format!("{error}; name fewer variants") })
}

fn picture(env: &dyn Env) -> Result<ImageBuf, RunError> {
    env.observation().image().map(|pixels| pixels.to_image()).ok_or_else(|| RunError::BadRequest {
        why: format!("{} shows numbers; choose another world", env.spec().id),
    })
}

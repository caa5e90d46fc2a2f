//! A contact sheet of shifts.

use foveate_core::episode::{ActionRecorder, Actor, Episode, EpisodeRules, Observer, RecordedActor};
use foveate_core::{Agent, Env, Image, ImageBuf};
use foveate_envs::shift::{Plan, SHIFTS, Shift, Shifted, Target};
use foveate_film::{Face, encode_png};

use super::conditions::fitting_shifts;
use crate::error::RunError;

/// Blocks side by side.
const ACROSS: usize = 3;
/// Pixels between tiles, around blocks, and for a block's name.
const GAP: usize = 4;
const AROUND: usize = 14;
const NAME: usize = 22;

/// The contents of a contact sheet.
pub struct SheetRequest<'a> {
    /// The world without shifts; it is copied.
    pub env: &'a dyn Env,
    /// The agent that acts up to the shown step.
    pub agent: &'a dyn Agent,
    /// Seed of the world's reset.
    pub seed: u64,
    /// The step.
    pub step: usize,
    /// Columns of every block.
    pub severities: &'a [f64],
}

/// The same step under every shift in every severity, as a PNG file. The actions up to this step are those of
/// the agent in the unmodified world, so that all tiles show the same place; only under shifts of actions
/// does the agent act again.
///
/// # Errors
/// When the world shows no picture, the world or the agent reports an error, or the episode ends before the
/// step.
pub fn sheet(request: &SheetRequest<'_>) -> Result<Vec<u8>, RunError> {
    let actions = record(request.env, request.agent, request.seed, request.step)?;
    let plain = seen(request, &actions, &Plan::none())?;
    let (width, height) = (plain.width(), plain.height());
    let columns = request.severities.len();
    let block = [columns * (width + GAP) + AROUND, height + NAME + AROUND];
    let (fitting, _) = fitting_shifts(request.env.spec());
    let count = fitting.len() + 1;
    let size = [ACROSS * block[0] + AROUND, count.div_ceil(ACROSS) * block[1] + AROUND];
    let mut sheet = ImageBuf::black(size[0], size[1]);
    sheet.rgb_mut().fill(255);
    let face = Face::new(9.0, 1.2);
    let corner = |i: usize| [AROUND + i % ACROSS * block[0], AROUND + i / ACROSS * block[1]];
    let label = |sheet: &mut ImageBuf, [x, y]: [usize; 2], text: &str| {
        face.write(sheet, x as f32, y as f32 + 3.0, text, [40; 3]);
    };
    label(&mut sheet, corner(0), &format!("unmodified, step {}", request.step));
    put(&mut sheet, plain.as_image(), [corner(0)[0], corner(0)[1] + NAME]);
    for (i, info) in fitting.iter().enumerate() {
        let [x, y] = corner(i + 1);
        let levels: Vec<String> = request.severities.iter().map(ToString::to_string).collect();
        label(&mut sheet, [x, y], &format!("{} {}", info.name, levels.join(", ")));
        for (column, &severity) in request.severities.iter().enumerate() {
            let plan = Plan::new(vec![Shift::new(info.name, severity)?]);
            let picture = seen(request, &actions, &plan)?;
            put(&mut sheet, picture.as_image(), [x + column * (width + GAP), y + NAME]);
        }
    }
    encode_png(sheet.as_image())
        .map_err(|error| RunError::BadRequest { why: format!("{error}; choose another world") })
}

/// The agent's actions in the unmodified world up to `step`.
pub(super) fn record(
    env: &dyn Env,
    agent: &dyn Agent,
    seed: u64,
    step: usize,
) -> Result<Vec<Vec<f64>>, RunError> {
    let (mut env, mut agent) = (env.boxed_clone(), agent.boxed_clone());
    let mut recorder = ActionRecorder::default();
    let rules = EpisodeRules { max_steps: step as u64, ..EpisodeRules::WHOLE };
    play(&mut *env, &mut *agent, seed, rules, &mut recorder)?;
    let actions = recorder.actions;
    if actions.len() < step {
        return Err(RunError::BadRequest {
            why: format!("the episode ends after {} steps; choose an earlier one", actions.len()),
        });
    }
    Ok(actions)
}

/// The observation at the step under `plan`.
fn seen(request: &SheetRequest<'_>, actions: &[Vec<f64>], plan: &Plan) -> Result<ImageBuf, RunError> {
    let mut env = Shifted::new(request.env.boxed_clone(), plan)?;
    let mut agent = request.agent.boxed_clone();
    // Recorded actions would soon fail if a shift modifies them; in that case the agent acts by itself.
    let looks = plan.list().iter().any(|shift| shift.info().target == Target::Action);
    // A shift of actions may end the episode early; its last picture is then shown.
    let mut recorded = RecordedActor(actions);
    let rules = recorded.rules();
    if looks {
        play(&mut env, &mut *agent, request.seed, rules, &mut ())?;
    } else {
        play(&mut env, &mut recorded, request.seed, rules, &mut ())?;
    }
    let Some(image) = env.observation().image() else {
        let names: Vec<&str> =
            SHIFTS.iter().filter(|info| info.target == Target::Picture).map(|info| info.name).collect();
        return Err(RunError::BadRequest {
            why: format!(
                "{} shows numbers, and {} change pictures; choose another world",
                env.spec().id,
                names.join(", ")
            ),
        });
    };
    Ok(image.to_image())
}

/// Resets the world and lets `actor` act.
pub(super) fn play(
    env: &mut dyn Env,
    actor: &mut (impl Actor + ?Sized),
    seed: u64,
    rules: EpisodeRules,
    observer: &mut dyn Observer<RunError>,
) -> Result<(), RunError> {
    let played = Episode::of_seed(seed, rules).run(env, actor, observer);
    played.map(|_| ()).map_err(RunError::of_weights("the sheet's driver"))
}

pub(super) fn put(sheet: &mut ImageBuf, picture: Image<'_>, [x, y]: [usize; 2]) {
    let stride = sheet.width() * 3;
    for (row, line) in picture.rgb().chunks_exact(picture.width() * 3).enumerate() {
        let at = (y + row) * stride + x * 3;
        sheet.rgb_mut()[at..at + line.len()].copy_from_slice(line);
    }
}

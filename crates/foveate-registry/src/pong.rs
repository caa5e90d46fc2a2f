//! `PongNoFrameskip-v4`: Atari's Pong in a worker process, shown as AttentionNeuron's Pong agent sees it.

use foveate_core::{ActionSpace, Env, EnvError, EnvSpec, ObservationSpace, PixelShape};
use foveate_envs::registry::{Choice, EnvRequest, Published, PublishedScore, WorldDescriptor, WorldError};
use foveate_envs::wrap::Wrapped;
use foveate_gym::GymWorld;
use foveate_gym::pong::{self, NAME};

use crate::atari::STICKY;
use crate::{atari, gymnasium};

/// Wrappers of the game: 1 to 30 frames of doing nothing, then each action lasts four frames, of which the
/// last two are shown, the larger of each colour value.
const GAME: &str = "noop:30+repeat:4+max";
/// Wrappers of the picture. The 10 topmost rows hold the score. 27,000 actions are 108,000 frames, after which
/// the emulator truncates an episode; it counts the frames before the first action, too.
const PICTURE: &str = "grey:opencv+resize:84x84:area+blank:top=10+stack:4+limit:27000";
/// Steps after which an episode is truncated.
const MAX_STEPS: usize = 27_000;
/// Actions per second: one for four of 60 frames.
const FPS: f64 = 15.0;

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 4] = [
    (STICKY, "probability that a frame repeats the action before (default: 0)"),
    ("timeout", "seconds until an emulator that does not answer counts as hung (default: 60)"),
    ("start_timeout", "seconds until an emulator that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that an emulator may use before it is replaced (default: 4000)"),
];

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    pictures: &[Choice { name: "world", about: "the last four pictures, grey, 84x84, without the score" }],
    options: &const { Choice::all(OPTIONS) },
    actions: &["nothing", "fire", "right", "left", "right and fire", "left and fire"],
    published: &[Published {
        release: ["attention-neuron", "puzzle_pong"],
        source: "AttentionNeuron, patches shuffled in every episode, 100 episodes: code of Tang and Ha, The Sensory Neuron as \
                 a Transformer, NeurIPS 2021",
        scores: &[PublishedScore { variant: "original", mean: 21.0, std: 0.0 }],
    }],
    reference: |_| atari::reference(NAME),
    has_expert: true,
    has_process: true,
    spec: Some(spec),
    ..WorldDescriptor::new(
        NAME,
        "Atari's Pong in grey pictures of 84x84, four at once; the game is ale-py, a Python package: docs/gymnasium.md",
        make,
    )
};

/// Its spec, without starting the emulator.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    atari::sticky(NAME, request.options.get(STICKY).map(|given| &**given))?;
    let shape = PixelShape { frames: 4, height: 84, width: 84, channels: 1 };
    Ok(EnvSpec {
        id: NAME.into(),
        observation: ObservationSpace::Image(shape),
        action: ActionSpace::Discrete { n: 6 },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    })
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let sticky = atari::sticky(NAME, request.options.get(STICKY).map(|given| &**given))?;
    let mut settings = pong::settings(sticky);
    let options = request.options.iter().map(|(name, value)| (&**name, &**value));
    let options = options.filter(|(name, _)| *name != STICKY);
    settings.set(options).map_err(WorldError::source_of)?;
    let game = GymWorld::new(gymnasium::start(settings).map_err(WorldError::source_of)?);
    // Two layers, so that the larger values are those of the colours, not of the greys.
    let game = Wrapped::new(Box::new(game), GAME.parse()?)?;
    Ok(Box::new(Wrapped::new(Box::new(game), PICTURE.parse()?)?))
}

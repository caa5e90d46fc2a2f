//! `atari`: one of 57 Atari games in a worker process, shown as S3TA's agent sees it.

mod games;

use std::collections::BTreeMap;

use foveate_core::{ActionSpace, Env, EnvError, EnvSpec, ObservationSpace, PixelShape};
use foveate_envs::registry::{Choice, EnvRequest, ReferenceScores, WorldDescriptor, WorldError};
use foveate_envs::wrap::Wrapped;
use foveate_gym::GymWorld;
use foveate_gym::atari::{self, Atari, NAME};

use crate::gymnasium;
use games::{GAMES, Game};

/// Wrappers of the game: 1 to 30 frames of doing nothing, then each action lasts four frames, whose rewards add up; the last
/// frame is shown. An episode is truncated after 27,000 actions, which are 108,000 frames.
const LAST_FRAME: &str = "noop:30+repeat:4+limit:27000";
/// The same, with the larger of each colour value in the last two frames.
const LARGER_OF_TWO: &str = "noop:30+repeat:4+max+limit:27000";

/// Steps after which an episode is truncated.
const MAX_STEPS: usize = 27_000;
/// Actions per second: one for four of 60 frames.
const FPS: f64 = 15.0;
/// The screen, the same in all 57 games.
const SCREEN: PixelShape = PixelShape { frames: 1, height: 210, width: 160, channels: 3 };
/// Positions of stick and button.
const ALL_ACTIONS: usize = 18;

const GAME: &str = "game";
const STICKY: &str = "sticky";
const ACTIONS: &str = "actions";
const FRAME: &str = "frame";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 7] = [
    (GAME, "the game, as in breakout, montezuma_revenge, ms_pacman (default: pong)"),
    (STICKY, "probability that a frame repeats the action before; 0.25 is that of ALE's v5 (default: 0)"),
    (ACTIONS, "minimal: those that the game distinguishes; full: all 18 (default: minimal)"),
    (
        FRAME,
        "last: the last of an action's four frames; max: the larger colour values of the last two, against flicker \
         (default: last)",
    ),
    ("timeout", "seconds until an emulator that does not answer counts as hung (default: 60)"),
    ("start_timeout", "seconds until an emulator that does not begin counts as hung (default: 180)"),
    ("memory", "megabytes that an emulator may use before it is replaced (default: 4000)"),
];

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = WorldDescriptor {
    pictures: &[Choice { name: "world", about: "the last frame in colours, 160x210" }],
    options: &const { Choice::all(OPTIONS) },
    presets: &["s3ta-small", "s3ta", "gymnasium-pictures"],
    reference: |request| reference(request.options.get(GAME).map_or(DEFAULT_GAME, String::as_str)),
    has_process: true,
    spec: Some(spec),
    ..WorldDescriptor::new(
        NAME,
        "one of 57 Atari games in colours, `game=breakout`; the games are in ale-py, a Python package: docs/gymnasium.md",
        make,
    )
};

/// The game where no other is named.
const DEFAULT_GAME: &str = "pong";

/// The scores by which those in `game` are normalised.
pub(crate) fn reference(game: &str) -> Option<ReferenceScores> {
    let Game { name, random, human, .. } = *GAMES.iter().find(|known| known.name == game)?;
    Some(ReferenceScores { task: name, random, human })
}

/// What the options of a request mean.
#[derive(Debug, PartialEq)]
struct Options<'a> {
    atari: Atari,
    wrappers: &'static str,
    /// The options of the process.
    process: BTreeMap<&'a str, &'a str>,
}

fn unknown(what: &'static str, given: &str, known: &[&str]) -> EnvError {
    EnvError::UnknownOption { env: NAME.into(), what, given: given.into(), known: known.join(", ") }
}

/// Reads the options.
fn options(request: &EnvRequest) -> Result<Options<'_>, EnvError> {
    let mut process: BTreeMap<&str, &str> =
        request.options.iter().map(|(name, value)| (&**name, &**value)).collect();
    let game = process.remove(GAME).unwrap_or(DEFAULT_GAME);
    let known = GAMES.iter().find(|known| known.name == game);
    let game = known.ok_or_else(|| unknown("game", game, &GAMES.map(|game| game.name)))?.name;
    let sticky = match process.remove(STICKY) {
        None => 0.0,
        Some(given) => given.parse().ok().filter(|chance| (0.0..=1.0).contains(chance)).ok_or_else(|| {
            let why = format!("sticky is {given:?}; give a probability from 0 to 1, such as 0.25");
            EnvError::BadOption { env: NAME.into(), why }
        })?,
    };
    let mut second = |name: &'static str, what, [first, second]: [&str; 2]| match process.remove(name) {
        None => Ok(false),
        Some(given) if given == first => Ok(false),
        Some(given) if given == second => Ok(true),
        Some(given) => Err(unknown(what, given, &[first, second])),
    };
    let all_actions = second(ACTIONS, "set of actions", ["minimal", "full"])?;
    let wrappers = if second(FRAME, "kind of frame", ["last", "max"])? { LARGER_OF_TWO } else { LAST_FRAME };
    Ok(Options { atari: Atari { game, sticky, all_actions }, wrappers, process })
}

/// Its spec, without starting the emulator.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    let Atari { game, all_actions, .. } = options(request)?.atari;
    let own = GAMES.iter().find(|known| known.name == game).map_or(ALL_ACTIONS, |game| game.actions);
    Ok(EnvSpec {
        id: NAME.into(),
        observation: ObservationSpace::Image(SCREEN),
        action: ActionSpace::Discrete { n: if all_actions { ALL_ACTIONS } else { own } },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    })
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let Options { atari, wrappers, process } = options(request)?;
    let mut settings = atari::settings(atari);
    settings.set(process).map_err(WorldError::source_of)?;
    let game = GymWorld::new(gymnasium::start(settings).map_err(WorldError::source_of)?);
    Ok(Box::new(Wrapped::new(Box::new(game), wrappers.parse()?)?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn request(options: &[(&str, &str)]) -> EnvRequest {
        EnvRequest {
            id: NAME.into(),
            options: options.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            ..EnvRequest::default()
        }
    }

    #[test]
    fn options_say_which_game_and_how() {
        let plain = Atari { game: "pong", sticky: 0.0, all_actions: false };
        for (given, atari, wrappers) in [
            (&[][..], plain, LAST_FRAME),
            (&[("game", "breakout")], Atari { game: "breakout", ..plain }, LAST_FRAME),
            (
                &[("sticky", "0.25"), ("actions", "full")],
                Atari { sticky: 0.25, all_actions: true, ..plain },
                LAST_FRAME,
            ),
            (
                &[("sticky", "1"), ("actions", "minimal"), ("frame", "max")],
                Atari { sticky: 1.0, ..plain },
                LARGER_OF_TWO,
            ),
        ] {
            let request = request(given);
            let expect = Options { atari, wrappers, process: BTreeMap::new() };
            assert_eq!(options(&request).expect("good options"), expect, "{given:?}");
        }
        let with_memory = request(&[("memory", "500"), ("game", "qbert")]);
        assert_eq!(options(&with_memory).expect("good options").process, [("memory", "500")].into());
    }

    #[test]
    fn bad_options_say_what_to_do() {
        for (name, value, part) in [
            (
                "game",
                "brekout",
                "atari has no game \"brekout\"; did you mean breakout? choose from: alien, amidar",
            ),
            ("game", "os.path", "atari has no game \"os.path\""),
            ("game", "", "atari has no game \"\""),
            ("sticky", "1.5", "sticky is \"1.5\"; give a probability from 0 to 1, such as 0.25"),
            ("sticky", "NaN", "sticky is \"NaN\""),
            ("sticky", "-0.1", "sticky is \"-0.1\""),
            (
                "actions",
                "ful",
                "atari has no set of actions \"ful\"; did you mean full? choose from: minimal, full",
            ),
            ("frame", "mean", "atari has no kind of frame \"mean\";"),
        ] {
            let said = DESCRIPTOR.build(&request(&[(name, value)])).map(drop).expect_err(value).to_string();
            assert!(said.contains(part), "{said}");
        }
        let said =
            DESCRIPTOR.build(&request(&[("gaem", "pong")])).map(drop).expect_err("no option").to_string();
        assert!(said.contains("atari has no option \"gaem\"; did you mean game?"), "{said}");
        let said =
            DESCRIPTOR.build(&request(&[("memory", "0")])).map(drop).expect_err("too little").to_string();
        assert!(said.starts_with("atari: memory is \"0\"; give a number"), "{said}");
    }

    #[test]
    fn every_game_has_scores() {
        let names: BTreeSet<&str> = GAMES.iter().map(|game| game.name).collect();
        assert_eq!(names.len(), 57);
        assert!(GAMES.is_sorted_by_key(|game| game.name));
        for game in GAMES {
            assert!(
                game.random < game.human && game.random.is_finite() && game.human.is_finite(),
                "{game:?}"
            );
        }
    }

    /// Scores whose normalised value is published: S3TA (Mott et al. 2019), table of all games.
    #[test]
    fn normalised_scores_are_those_published() {
        for (game, score, published) in [
            ("pong", 21.0, 118.1),
            ("boxing", 100.0, 832.5),
            ("pitfall", 0.0, 3.4),
            ("montezuma_revenge", 2500.0, 52.6),
            ("freeway", 0.0, 0.0),
        ] {
            let normalised = reference(game).expect("a game").normalise(score);
            assert!((normalised - published).abs() <= 0.05, "{game}: {normalised}, not {published}");
        }
    }

    #[test]
    fn returns_are_normalised_where_they_are_comparable() {
        let task = |options: &[(&str, &str)]| crate::reference(&request(options)).map(|known| known.task);
        assert_eq!(task(&[]), Some("pong"));
        assert_eq!(task(&[("game", "hero"), ("wrap", "grey+resize:84x84+stack:4")]), Some("hero"));
        for changed in ["clip", "lives", "limit:100", "grey+clip"] {
            assert_eq!(task(&[("wrap", changed)]), None, "{changed}");
        }
        assert_eq!(task(&[("game", "chess")]), None);
        let of = |id: &str| crate::reference(&EnvRequest { id: id.into(), ..EnvRequest::default() });
        assert_eq!(of("pong").map(|known| known.task), Some("pong"));
        assert_eq!(of("car-racing"), None);
    }
}

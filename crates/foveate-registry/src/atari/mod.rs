//! `atari`: one of 57 Atari games in a worker process, shown as S3TA's agent sees it.

mod games;

use std::collections::BTreeMap;

use foveate_core::{ActionSpace, Env, EnvError, EnvSpec, ObservationSpace, PixelShape};
use foveate_envs::levels::{Level, Levels};
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
pub(crate) const STICKY: &str = "sticky";
const ACTIONS: &str = "actions";
const FRAME: &str = "frame";

/// Options by name: default and description.
const OPTIONS: [(&str, &str); 7] = [
    (
        GAME,
        "the game, as in breakout, montezuma_revenge, ms_pacman; or several, of which each episode is one: \
         pong+breakout, or pong+breakout*5 for five of Breakout to one of Pong (default: pong)",
    ),
    (STICKY, "probability that a frame repeats the action before; 0.25 is that of ALE's v5 (default: 0)"),
    (
        ACTIONS,
        "minimal: those that the game distinguishes; full: all 18 (default: minimal, of several games full)",
    ),
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
    reference: |request| reference(request.options.get(GAME).map_or(DEFAULT_GAME, String::as_str)),
    has_expert: true,
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
/// Between several games.
const SEPARATOR: char = '+';
/// Before a game's share of the episodes.
const SHARE: char = '*';
/// The largest share.
const MOST_SHARES: u64 = 1000;

/// The scores by which those in `game` are normalised.
pub(crate) fn reference(game: &str) -> Option<ReferenceScores> {
    GAMES.iter().find(|known| known.name == game).map(Game::scores)
}

/// What the options of a request mean.
#[derive(Debug, PartialEq)]
struct Options<'a> {
    /// With each one's share of the episodes.
    games: Vec<(&'static Game, u64)>,
    sticky: f64,
    all_actions: bool,
    wrappers: &'static str,
    /// The options of the process.
    process: BTreeMap<&'a str, &'a str>,
}

/// The probability that `given` says, the value of the option [`STICKY`]; 0 without it.
pub(crate) fn sticky(world: &str, given: Option<&str>) -> Result<f64, EnvError> {
    let Some(given) = given else { return Ok(0.0) };
    given.parse().ok().filter(|chance| (0.0..=1.0).contains(chance)).ok_or_else(|| EnvError::BadOption {
        env: world.into(),
        why: format!("sticky is {given:?}; give a probability from 0 to 1, such as 0.25"),
    })
}

fn unknown(what: &'static str, given: &str, known: &[&str]) -> EnvError {
    EnvError::UnknownOption { env: NAME.into(), what, given: given.into(), known: known.join(", ") }
}

/// Reads the options.
fn options(request: &EnvRequest) -> Result<Options<'_>, EnvError> {
    let mut process: BTreeMap<&str, &str> =
        request.options.iter().map(|(name, value)| (&**name, &**value)).collect();
    let bad = |why: String| EnvError::BadOption { env: NAME.into(), why };
    let mut games: Vec<(&Game, u64)> = Vec::new();
    let named = process.remove(GAME).unwrap_or(DEFAULT_GAME);
    let shared = named.contains(SHARE);
    for part in named.split(SEPARATOR) {
        let (name, share) = part.split_once(SHARE).map_or((part, None), |(name, share)| (name, Some(share)));
        let known = GAMES.iter().find(|known| known.name == name);
        let game = known.ok_or_else(|| unknown("game", name, &GAMES.map(|game| game.name)))?;
        if games.iter().any(|&(other, _)| other == game) {
            return Err(bad(format!("{name} is named twice in game; name each game once")));
        }
        let share = share.map_or(Some(1), |given| given.parse().ok());
        let share = share.filter(|share| (1..=MOST_SHARES).contains(share)).ok_or_else(|| {
            bad(format!("{part} gives {name} no share of the episodes; give one from 1 to {MOST_SHARES}, as in {name}*5"))
        })?;
        games.push((game, share));
    }
    if let [(game, _)] = games[..]
        && shared
    {
        return Err(bad(format!("{0} alone has all episodes; name it without a share, game={0}", game.name)));
    }
    let sticky = sticky(NAME, process.remove(STICKY))?;
    let mut second =
        |name: &'static str, what, [first, second]: [&str; 2], default| match process.remove(name) {
            None => Ok(default),
            Some(given) if given == first => Ok(false),
            Some(given) if given == second => Ok(true),
            Some(given) => Err(unknown(what, given, &[first, second])),
        };
    let all_actions = second(ACTIONS, "set of actions", ["minimal", "full"], games.len() > 1)?;
    let wrappers =
        if second(FRAME, "kind of frame", ["last", "max"], false)? { LARGER_OF_TWO } else { LAST_FRAME };
    Ok(Options { games, sticky, all_actions, wrappers, process })
}

/// Its spec, without starting the emulator.
fn spec(request: &EnvRequest) -> Result<EnvSpec, EnvError> {
    let Options { games, all_actions, .. } = options(request)?;
    let own = games.first().map_or(ALL_ACTIONS, |(game, _)| game.actions);
    if !all_actions && let Some((other, _)) = games.iter().find(|(game, _)| game.actions != own) {
        return Err(other_choices(games[0].0, other));
    }
    Ok(EnvSpec {
        id: NAME.into(),
        observation: ObservationSpace::Image(SCREEN),
        action: ActionSpace::Discrete { n: if all_actions { ALL_ACTIONS } else { own } },
        max_steps: Some(MAX_STEPS),
        fps: FPS,
    })
}

fn other_choices(first: &Game, other: &Game) -> EnvError {
    let why = format!(
        "{} distinguishes {} actions and {} {}; leave out actions=minimal",
        first.name, first.actions, other.name, other.actions
    );
    EnvError::BadOption { env: NAME.into(), why }
}

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    spec(request)?;
    let Options { games, sticky, all_actions, wrappers, process } = options(request)?;
    let start = |game: &Game| -> Result<Box<dyn Env>, WorldError> {
        let mut settings = atari::settings(Atari { game: game.name, sticky, all_actions });
        settings.set(process.clone()).map_err(WorldError::source_of)?;
        let game = GymWorld::new(gymnasium::start(settings).map_err(WorldError::source_of)?);
        Ok(Box::new(Wrapped::new(Box::new(game), wrappers.parse()?)?))
    };
    if let [(game, _)] = games[..] {
        return start(game);
    }
    let level =
        |&(game, share): &(&'static Game, u64)| Ok(Level { env: start(game)?, scores: game.scores(), share });
    let levels: Result<Vec<Level>, WorldError> = games.iter().map(level).collect();
    Ok(Box::new(Levels::new(NAME, levels?)?))
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
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], f64, bool, &'static str);
        let cases: [Case<'_>; 6] = [
            (&[], &["pong"], 0.0, false, LAST_FRAME),
            (&[("game", "breakout")], &["breakout"], 0.0, false, LAST_FRAME),
            (&[("sticky", "0.25"), ("actions", "full")], &["pong"], 0.25, true, LAST_FRAME),
            (
                &[("sticky", "1"), ("actions", "minimal"), ("frame", "max")],
                &["pong"],
                1.0,
                false,
                LARGER_OF_TWO,
            ),
            (&[("game", "seaquest+pong")], &["seaquest", "pong"], 0.0, true, LAST_FRAME),
            (
                &[("game", "pong+ms_pacman"), ("actions", "minimal")],
                &["pong", "ms_pacman"],
                0.0,
                false,
                LAST_FRAME,
            ),
        ];
        for (given, names, sticky, all_actions, wrappers) in cases {
            let request = request(given);
            let found = options(&request).expect("good options");
            assert_eq!(found.games.iter().map(|(game, _)| game.name).collect::<Vec<_>>(), names, "{given:?}");
            assert_eq!(
                (found.sticky, found.all_actions, found.wrappers),
                (sticky, all_actions, wrappers),
                "{given:?}"
            );
            assert_eq!(found.process, BTreeMap::new(), "{given:?}");
        }
        let with_memory = request(&[("memory", "500"), ("game", "qbert")]);
        assert_eq!(options(&with_memory).expect("good options").process, [("memory", "500")].into());
        let shares = request(&[("game", "pong+breakout*5")]);
        let shares = options(&shares).expect("good options").games;
        let shares: Vec<_> = shares.iter().map(|(game, share)| (game.name, *share)).collect();
        assert_eq!(shares, [("pong", 1), ("breakout", 5)]);
        let choices = |given: &[(&str, &str)]| spec(&request(given)).expect("good options").action.len();
        assert_eq!(choices(&[("game", "pong+breakout")]), 18);
        assert_eq!(choices(&[("game", "boxing+seaquest"), ("actions", "minimal")]), 18);
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
            ("game", "pong+", "atari has no game \"\""),
            ("game", "pong+breakout+pong", "pong is named twice in game; name each game once"),
            (
                "game",
                "pong+breakout*0",
                "breakout*0 gives breakout no share of the episodes; give one from 1 to 1000",
            ),
            ("game", "pong*+breakout", "pong* gives pong no share"),
            ("game", "pong+breakout*1e9", "breakout*1e9 gives breakout no share"),
            ("game", "pong*2+pong*3", "pong is named twice in game"),
            ("game", "pong*1", "pong alone has all episodes"),
            ("game", "pong*2", "pong alone has all episodes; name it without a share, game=pong"),
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
        let two = request(&[("game", "pong+breakout"), ("actions", "minimal")]);
        let said = DESCRIPTOR.build(&two).map(drop).expect_err("other choices").to_string();
        assert!(
            said.contains("pong distinguishes 6 actions and breakout 4; leave out actions=minimal"),
            "{said}"
        );
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
        // Each of its episodes is normalised by itself.
        assert_eq!(task(&[("game", "pong+hero")]), None);
        let of = |id: &str| crate::reference(&EnvRequest { id: id.into(), ..EnvRequest::default() });
        assert_eq!(of("pong").map(|known| known.task), Some("pong"));
        assert_eq!(of("car-racing"), None);
    }
}

//! The game of DoomTakeCover in its worker processes. Needs a Python with vizdoom.
//!
//! Every test runs again in a separate process, with that Python and with a private folder for temporary
//! files. The name of the folder identifies all processes of the game, and the folder must be empty in the
//! end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, thread};

use foveate_core::{Action, Env, Fact, Step};
use foveate_envs::take_cover::TakeCover;
use foveate_envs::take_cover::variants::Variants;
use foveate_envs::take_cover::wad::Wad;
use foveate_gym::{Gym, GymWorld, take_cover};
use sha2::{Digest, Sha256};

/// Starts the test `name` as a process with its own folder, if there is a Python for it.
fn start(name: &str, folder: &Path) -> Option<Child> {
    let python = foveate_toy::needs::worlds_python()?;
    let mut again = foveate_toy::test_alone(&format!("take_cover::{name}"));
    again.env("FOVEATE_PYTHON", python);
    again.env("TMPDIR", folder).env("FOVEATE_TEST_AGAIN", name);
    Some(again.spawn().expect("a test can be started"))
}

/// Whether this process is the one that runs the test `name`; if not, starts it and checks that it leaves
/// nothing behind.
fn again(name: &str) -> bool {
    if env::var_os("FOVEATE_TEST_AGAIN").is_some_and(|again| again == name) {
        return true;
    }
    let before = shared();
    let folder = tempfile::tempdir().expect("a temporary folder");
    if let Some(mut test) = start(name, folder.path()) {
        assert!(test.wait().expect("it ends").success(), "{name}");
        nothing_left(folder.path(), &before);
    }
    false
}

/// ViZDoom's files in shared memory.
fn shared() -> BTreeSet<PathBuf> {
    let all = fs::read_dir("/dev/shm").expect("Linux").flatten().map(|entry| entry.path());
    all.filter(|path| path.to_string_lossy().contains("ViZDoom")).collect()
}

/// Processes whose temporary files are in `folder`: name and process id.
fn family(folder: &Path) -> Vec<(String, u64)> {
    let all = fs::read_dir("/proc").expect("Linux").flatten().map(|entry| entry.path());
    let marked = |path: &Path| {
        let surroundings = fs::read(path.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&surroundings).contains(&format!("TMPDIR={}", folder.display()))
    };
    all.filter(|path| marked(path))
        .filter_map(|path| {
            let name = fs::read_to_string(path.join("comm")).ok()?.trim().to_owned();
            Some((name, path.file_name()?.to_str()?.parse().ok()?))
        })
        .collect()
}

/// Whether any process has a file of shared memory open.
fn is_open(file: &Path) -> bool {
    let all = fs::read_dir("/proc").expect("Linux").flatten();
    all.map(|entry| fs::read_to_string(entry.path().join("maps")).unwrap_or_default())
        .any(|maps| maps.contains(&*file.to_string_lossy()))
}

/// Checks that no process and no file in `folder` is left, and that shared memory holds nothing more than
/// `before`, except files that other processes use.
#[track_caller]
fn nothing_left(folder: &Path, before: &BTreeSet<PathBuf>) {
    let mut left = (vec![], vec![], vec![]);
    for _ in 0..300 {
        let files = fs::read_dir(folder).expect("it is ours").flatten().map(|entry| entry.path());
        let new = shared().into_iter().filter(|file| !before.contains(file) && !is_open(file));
        left = (family(folder), files.collect(), new.collect());
        if left == (vec![], vec![], vec![]) {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("processes, files and shared memory are left: {left:?}");
}

fn game(size: [usize; 2], map: Option<&[u8]>) -> GymWorld {
    let notice = |text: &str| eprintln!("{text}");
    GymWorld::new(Gym::new(take_cover::settings(size, map), Arc::new(notice)).expect("vizdoom works"))
}

fn small_game() -> GymWorld {
    game([160, 120], None)
}

/// The map that comes with ViZDoom.
fn map() -> Vec<u8> {
    take_cover::map().expect("vizdoom is there").1
}

/// Record of an episode: all pictures, number of steps, the end.
#[derive(Debug, PartialEq)]
struct Played {
    pictures: Vec<u8>,
    steps: usize,
    last: Step,
}

/// Plays an episode with actions derived from its seed; `meddle` may interfere before each step.
fn play(env: &mut dyn Env, seed: u64, meddle: &dyn Fn(&dyn Env, usize)) -> Played {
    let mut pictures = Sha256::new();
    env.reset(Some(seed));
    let mut played = Played { pictures: vec![], steps: 0, last: Step::default() };
    while !played.last.is_over() {
        pictures.update(env.observation().picture().expect("a screen").rgb());
        meddle(&*env, played.steps);
        let choice = (seed as usize + played.steps / 17) % 3;
        played.last = env.step(Action::Discrete(choice)).expect("it goes on");
        assert_eq!(played.last.reward.to_bits(), 1.0_f64.to_bits(), "every step is worth 1");
        played.steps += 1;
    }
    pictures.update(env.observation().picture().expect("a last screen").rgb());
    played.pictures = pictures.finalize().to_vec();
    played
}

fn undisturbed(_: &dyn Env, _: usize) {}

#[test]
fn an_episode_is_its_seed_whatever_came_before() {
    if !again("an_episode_is_its_seed_whatever_came_before") {
        return;
    }
    let mut first = small_game();
    let all: Vec<Played> = (0..4).map(|seed| play(&mut first, seed, &undisturbed)).collect();
    for played in &all {
        assert!(played.steps > 60, "monsters have to wake up: {played:?}");
        assert!(played.last.terminated && !played.last.truncated, "{played:?}");
    }
    assert!((1..4).all(|i| all[i].pictures != all[0].pictures), "seeds differ");
    let mut second = small_game();
    for seed in [3, 1, 1, 0, 2] {
        assert_eq!(play(&mut second, seed, &undisturbed), all[seed as usize], "seed {seed}");
    }
    // A copy made in the middle of an episode continues like the original.
    first.reset(Some(2));
    for _ in 0..50 {
        first.step(Action::Discrete(1)).expect("it goes on");
    }
    let mut copy = first.boxed_clone();
    for _ in 0..20 {
        let outcome = first.step(Action::Discrete(2)).expect("it goes on");
        assert_eq!(copy.step(Action::Discrete(2)).expect("it goes on"), outcome);
        assert_eq!(copy.observation(), first.observation());
    }
}

#[test]
fn the_screen_of_death_is_seen() {
    if !again("the_screen_of_death_is_seen") {
        return;
    }
    let mut env = small_game();
    play(&mut env, 1, &undisturbed);
    // A hit of that strength turns the whole screen red.
    let picture = env.observation().picture().expect("a screen");
    let pixels = picture.rgb().as_chunks::<3>().0;
    let red = pixels.iter().filter(|[r, g, b]| u32::from(*r) > 2 * (u32::from(*g) + u32::from(*b))).count();
    assert!(red * 10 > pixels.len() * 9, "{red} of {} pixels are red", pixels.len());
    let Fact::Named(facts) = env.state() else { panic!("facts") };
    let dead = |fact: &Fact| matches!(fact, Fact::Number(health) if *health <= 0.0);
    assert!(facts.iter().any(|(name, fact)| name == "health" && dead(fact)), "{facts:?}");
}

#[test]
fn time_is_up_after_2100_steps() {
    if !again("time_is_up_after_2100_steps") {
        return;
    }
    // Without its scripts the map has no monsters.
    let mut peaceful = Wad::read(&map()).expect("a good file");
    peaceful.find_mut("BEHAVIOR").expect("it has scripts").clear();
    let mut env = game([160, 120], Some(&peaceful.write().expect("small")));
    let played = play(&mut env, 1, &undisturbed);
    assert_eq!((played.steps, played.last.terminated, played.last.truncated), (2100, false, true));
}

#[test]
fn its_expert_lives() {
    if !again("its_expert_lives") {
        return;
    }
    let mut env = TakeCover::new(Box::new(small_game()), None).expect("it fits");
    for seed in 0..3 {
        env.reset(Some(seed));
        let (mut action, mut steps) = ([0.0], 0);
        loop {
            env.expert(&mut action).expect("it has one");
            steps += 1;
            let step = env.step(Action::Continuous(&action)).expect("it goes on");
            if step.is_over() {
                break;
            }
        }
        assert!(steps > 1500, "seed {seed}: {steps} steps; doing nothing it is about 100");
    }
}

/// Fireballs are brighter and redder than all that is behind them, the walls beside the far one are darker than it, and the
/// expert's own choice costs nothing.
#[test]
fn its_expert_looks_at_fireballs_and_corners_and_knows_what_choices_cost() {
    if !again("its_expert_looks_at_fireballs_and_corners_and_knows_what_choices_cost") {
        return;
    }
    let mut env = TakeCover::new(Box::new(game([640, 480], None)), None).expect("it fits");
    let (mut action, mut costs, mut points) = ([0.0], vec![], vec![]);
    let (mut looks, mut bright) = (0, 0);
    let (mut corners, mut edges) = (0, 0);
    env.reset(Some(3));
    for step in 0..600 {
        env.expert(&mut action).expect("it has one");
        env.costs(&mut costs).expect("it says");
        assert_eq!(costs.len(), 3);
        let own = costs[(action[0] + 1.0) as usize];
        assert!(own == 0.0 && costs.iter().all(|&cost| cost >= 0.0), "step {step}: {action:?} of {costs:?}");
        env.gaze(&mut points).expect("it says");
        let picture = env.observation().picture().expect("a picture");
        // The corners come last, with the least weight.
        let fireballs = points.iter().take_while(|point| point.weight > 1.0).count();
        assert!(
            (1..=2).contains(&(points.len() - fireballs)),
            "step {step}: a corner is in view: {points:?}"
        );
        for point in &points[fireballs..] {
            assert!(point.is_valid() && point.weight == 1.0, "{point:?}");
            let [x, y] = [point.x, point.y].map(|share| (share * 96.0) as usize);
            if (4..92).contains(&x) {
                let brightness = |x| picture.pixel(x, y).map(i32::from).iter().sum::<i32>();
                let inwards = if x < 48 { [x - 3, x + 3] } else { [x + 3, x - 3] };
                corners += 1;
                edges += usize::from(brightness(inwards[0]) < brightness(inwards[1]));
            }
        }
        for point in &points[..fireballs] {
            assert!(point.is_valid(), "{point:?}");
            let [x, y] = [point.x, point.y].map(|share| (share * 96.0) as usize);
            let around = (y.saturating_sub(2)..=(y + 2).min(95))
                .flat_map(|y| (x.saturating_sub(2)..=(x + 2).min(95)).map(move |x| (x, y)));
            let fiery = |(x, y)| {
                let [red, _, blue] = picture.pixel(x, y).map(i32::from);
                red > 110 && red - blue > 60
            };
            looks += 1;
            bright += usize::from(around.into_iter().any(fiery));
        }
        if env.step(Action::Continuous(&action)).expect("it goes on").is_over() {
            break;
        }
    }
    // Some are hidden behind a monster, or as dark as what is behind them when they are far away.
    assert!(looks > 300 && bright * 10 > looks * 8, "{bright} of {looks} places are bright");
    // Some are hidden behind a fireball or a monster.
    assert!(corners > 300 && edges * 10 > corners * 8, "{edges} of {corners} corners are edges");
}

#[test]
fn maps_are_changed_as_published() {
    if !again("maps_are_changed_as_published") {
        return;
    }
    let file = map();
    assert_eq!(Variants::default().apply(&file).expect("a good file"), file, "unchanged to the byte");
    let changed = |text: &str| {
        let variants = Variants::parse_all(&[text]).expect("a variant");
        variants.apply(&file).expect("the map has what is to be changed")
    };
    let text = |file: &[u8]| {
        let lump = Wad::read(file).expect("our own").find_mut("TEXTMAP").expect("a map").clone();
        String::from_utf8(lump).expect("text")
    };
    let (plain, higher, floor) = (text(&file), changed("higher-walls"), changed("floor-texture"));
    assert_eq!(text(&higher), plain.replace("heightceiling = 104;", "heightceiling = 404;"));
    assert_eq!(text(&floor), plain.replace("texturefloor = \"CRATOP1\"", "texturefloor = \"CRATOP2\""));
    assert!(higher.len() == file.len() && floor.len() == file.len());

    let first = |map: Option<&[u8]>| {
        let mut env = TakeCover::new(Box::new(game([320, 240], map)), None).expect("it fits");
        env.reset(Some(5));
        env.observation().picture().expect("a picture").rgb().to_vec()
    };
    let (plain, higher, floor) = (first(None), first(Some(&higher)), first(Some(&floor)));
    assert_eq!(first(Some(&file)), plain, "a map in memory is as good as one in a file");
    // Of the 96 rows, the upper ones show the ceiling, those below the wall the floor, the last ones the
    // status bar.
    let differ = |a: &[u8], b: &[u8], rows: std::ops::Range<usize>| {
        let rows = rows.start * 96 * 3..rows.end * 96 * 3;
        let count = a[rows.clone()].iter().zip(&b[rows.clone()]).filter(|(a, b)| a != b).count();
        count as f64 / rows.len() as f64
    };
    assert!(differ(&plain, &higher, 0..25) > 0.9 && differ(&plain, &higher, 52..96) < 0.05);
    assert!(differ(&plain, &floor, 52..80) > 0.9 && differ(&plain, &floor, 0..40) < 0.05);
}

#[test]
fn a_killed_game_is_played_again_and_goes_on() {
    if !again("a_killed_game_is_played_again_and_goes_on") {
        return;
    }
    let folder = env::temp_dir();
    let mut env = small_game();
    let expect = play(&mut env, 2, &undisturbed);
    let kill = |who: &'static str| {
        let folder = folder.clone();
        move |_: &dyn Env, step: usize| {
            if step == 40 {
                let found: Vec<u64> =
                    family(&folder).into_iter().filter(|(name, _)| name == who).map(|(_, pid)| pid).collect();
                let last = found.last().expect("it runs").to_string();
                assert!(Command::new("kill").args(["-9", &last]).status().expect("kill runs").success());
            }
        }
    };
    for (times, who) in [(1, "vizdoom"), (2, "python")] {
        assert_eq!(play(&mut env, 2, &kill(who)), expect, "{who}");
        assert_eq!(env.gym().replaced(), times);
    }
    assert_eq!(family(&folder).iter().filter(|(name, _)| name == "vizdoom").count(), 1, "one game is left");
}

/// The test below starts this one and then kills it.
#[test]
fn a_game_to_be_killed() {
    if env::var_os("FOVEATE_TEST_AGAIN").is_some_and(|again| again == "a_game_to_be_killed") {
        let mut env = small_game();
        env.reset(Some(1));
        for _ in 0..10_000 {
            if env.step(Action::Discrete(0)).expect("it goes on").is_over() {
                env.reset(Some(1));
            }
        }
    }
}

#[test]
fn nothing_is_left_of_a_game_whenever_it_is_killed() {
    if env::var_os("FOVEATE_TEST_AGAIN").is_some() {
        return;
    }
    for (turn, wait_ms) in
        [0, 150, 250, 300, 350, 400, 450, 500, 550, 600, 700, 800, 1000, 1500].into_iter().enumerate()
    {
        let before = shared();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let Some(mut victim) = start("a_game_to_be_killed", folder.path()) else { return };
        thread::sleep(Duration::from_millis(wait_ms));
        if turn % 2 == 0 {
            victim.kill().expect("it can be killed");
        } else {
            // The worker is the younger of the two; it is replaced, even while it starts.
            let workers = family(folder.path());
            if let Some((_, worker)) =
                workers.iter().filter(|(name, _)| name.starts_with("python")).max_by_key(|p| p.1)
            {
                let _ = Command::new("kill").args(["-9", &worker.to_string()]).status();
            }
            thread::sleep(Duration::from_millis(200));
            victim.kill().expect("it can be killed");
        }
        victim.wait().expect("it was killed");
        nothing_left(folder.path(), &before);
    }
}

//! Compares all MiniGrid worlds with the package, transition by transition, byte by byte.

use foveate_core::{Action, Env, ImageBuf, Observation};
use foveate_envs::minigrid::DESCRIPTORS;
use foveate_envs::registry::EnvRequest;
use foveate_toy::oracle::Oracle;

/// Pixels of a cell in the picture for people.
const TILE: usize = 13;

fn world(name: &str, picture: &str) -> Box<dyn Env> {
    let descriptor = DESCRIPTORS.iter().find(|world| world.name == name).expect("a world of ours");
    let picture = Some(picture.to_owned());
    descriptor
        .build(&EnvRequest { id: name.into(), picture, ..EnvRequest::default() })
        .expect("it can be built")
}

fn shown(env: &dyn Env) -> &[u8] {
    match env.observation() {
        Observation::Grid(grid) => grid.codes(),
        Observation::Image(pixels) => pixels.bytes(),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn compare(oracle: &mut Oracle, ours: &[u8], place: &str) {
    let mut theirs = vec![0; ours.len()];
    oracle.raw(&mut theirs);
    if let Some(at) = ours.iter().zip(&theirs).position(|(a, b)| a != b) {
        panic!("{place}: byte {at} of {} is {}, the package's is {}", ours.len(), ours[at], theirs[at]);
    }
}

#[test]
fn worlds_are_those_of_the_package() {
    let Some(mut oracle) = Oracle::start("oracle/mini_grid.py") else { return };
    let (mut worlds, mut transitions, mut solved) = (0, 0_u64, 0);
    while oracle.flag() {
        let name = oracle.text();
        let mut env = world(&name, "view");
        // The same world with the other observations, kept in step.
        let mut others = ["one-hot", "full", "rgb", "rgb-full"].map(|picture| world(&name, picture));
        while oracle.flag() {
            let seed = oracle.seed();
            env.reset(seed);
            for env in &mut others {
                env.reset(seed);
            }
            compare(&mut oracle, shown(&*env), &format!("{name}, reset with {seed:?}"));
            loop {
                let place = format!("{name}, transition {transitions}");
                let action = Action::Discrete(oracle.count());
                let step = env.step(action).expect("a good action");
                assert_eq!(step.reward, oracle.number(), "{place}: reward");
                assert_eq!(
                    (step.terminated, step.truncated),
                    (oracle.flag(), oracle.flag()),
                    "{place}: ends"
                );
                for env in &mut others {
                    assert_eq!(env.step(action), Ok(step), "{place}");
                }
                let pictures = oracle.flag();
                compare(&mut oracle, shown(&*env), &place);
                if pictures {
                    for env in &others {
                        compare(
                            &mut oracle,
                            shown(&**env),
                            &format!("{place}, {:?}", env.spec().observation),
                        );
                    }
                    let cells = f64::sqrt(shown(&*others[1]).len() as f64 / 3.0) as usize;
                    let mut view = ImageBuf::black(cells * TILE, cells * TILE);
                    env.render(&mut view).expect("it has a picture for people");
                    compare(&mut oracle, view.rgb(), &format!("{place}, for people"));
                }
                transitions += 1;
                solved += u32::from(step.reward > 0.0);
                if oracle.flag() {
                    break;
                }
            }
        }
        worlds += 1;
    }
    oracle.finish();
    assert_eq!(worlds, DESCRIPTORS.len(), "every world of ours");
    assert!(transitions >= 4 * 50_000 && solved > 200, "{transitions} transitions, {solved} solved");
    eprintln!("{worlds} worlds, {transitions} transitions, {solved} episodes solved");
}

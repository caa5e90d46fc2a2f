//! Contract tests for every registered agent.

use foveate_agents::registry::{self, AgentConfig, Init, Sees};
use foveate_core::{
    ActContext, ActMode, ActionDistribution, ActionSpace, Agent, Env, EnvSpec, Grid, ImageBuf, Observation,
    ObservationSpace, Opened, OutputKind, PixelShape, PixelsBuf, PolicyError, Seed, TensorShape, Turn,
    episode_seed,
};
use foveate_envs::registry::EnvRequest;
use foveate_registry::{AGENTS, AgentDescriptor, make};
use serde_json::{Value, json};

/// Number of decisions compared.
const STEPS: usize = 12;
const NUMBERS: usize = 5;
/// Rows, columns and channels of a grid.
const GRID: [usize; 3] = [4, 3, 2];

/// What a classifier of digits sees: its networks have one size.
const DIGIT: PixelShape = PixelShape { frames: 1, height: 28, width: 28, channels: 1 };

/// The spec of a world with the observation that `agent` takes.
fn spec_for(agent: &AgentDescriptor) -> EnvSpec {
    let spec = world().spec().clone();
    match agent.sees {
        _ if agent.name == "classifier" => EnvSpec {
            observation: ObservationSpace::Image(DIGIT),
            action: ActionSpace::Discrete { n: 10 },
            ..spec
        },
        Sees::Picture | Sees::Nothing => spec,
        Sees::Grid => EnvSpec {
            observation: ObservationSpace::Grid { rows: GRID[0], columns: GRID[1], channels: GRID[2] },
            action: ActionSpace::Discrete { n: 4 },
            ..spec
        },
        Sees::Numbers | Sees::PictureOrNumbers | Sees::Anything => {
            EnvSpec { observation: ObservationSpace::Vector { len: NUMBERS }, ..spec }
        }
    }
}

/// Whether it acts on numbers in the world of [`spec_for`].
fn takes_numbers(agent: &AgentDescriptor) -> bool {
    agent.sees_in(&spec_for(agent).observation) == Sees::Numbers
}

fn world() -> Box<dyn Env> {
    let request =
        EnvRequest { id: "car-racing".into(), picture: Some("fast".into()), ..EnvRequest::default() };
    make(&request).expect("a native world")
}

/// The settings that fit `agent` to that world, next to the agent's defaults.
fn settings(agent: &AgentDescriptor) -> Value {
    let ranges: &[[f64; 2]] = if takes_numbers(agent) { &[[-1.0, 1.0]; NUMBERS] } else { &[] };
    (agent.fit)(&spec_for(agent), ranges)
}

fn config(agent: &AgentDescriptor) -> Box<dyn AgentConfig> {
    registry::config(agent.name, &settings(agent)).unwrap_or_else(|error| panic!("{}: {error}", agent.name))
}

/// The agent with weights that produce varying actions.
fn driver(agent: &AgentDescriptor) -> Box<dyn Agent> {
    let config = config(agent);
    let mut driver = config.make().expect("its settings fit");
    driver.set_params(&config.initial_params(Init::Torch, Seed::root(2))).expect("its own parameters");
    driver
}

/// The observations of each step.
enum Film {
    Pictures(Vec<PixelsBuf>),
    Numbers(Vec<Vec<f32>>),
    Grids(Vec<Vec<u8>>),
}

impl Film {
    fn of(agent: &AgentDescriptor) -> Self {
        if takes_numbers(agent) {
            let mut rng = Seed::root(9).rng();
            let mut numbers = || (0..NUMBERS).map(|_| rng.uniform(-1.0, 1.0) as f32).collect();
            return Film::Numbers((0..STEPS).map(|_| numbers()).collect());
        }
        if agent.name == "classifier" {
            let mut rng = Seed::root(9).rng();
            let mut bytes = || (0..28 * 28).map(|_| rng.below(256) as u8).collect();
            let picture = |bytes| PixelsBuf::new(DIGIT, bytes).expect("as many bytes");
            return Film::Pictures((0..STEPS).map(|_| picture(bytes())).collect());
        }
        if agent.sees == Sees::Grid {
            let mut rng = Seed::root(9).rng();
            let mut codes = || (0..GRID.iter().product()).map(|_| rng.below(10) as u8).collect();
            return Film::Grids((0..STEPS).map(|_| codes()).collect());
        }
        let mut world = world();
        world.reset(Some(1));
        let mut frames = vec![];
        while frames.len() < STEPS {
            for _ in 0..5 {
                world.step(foveate_core::Action::Continuous(&[0.2, 0.4, 0.0])).expect("a good action");
            }
            let picture = world.observation().image().expect("a picture");
            frames.push(PixelsBuf::new(picture.shape(), picture.bytes().to_vec()).expect("as many bytes"));
        }
        Film::Pictures(frames)
    }

    fn at(&self, step: usize) -> Observation<'_> {
        match self {
            Film::Pictures(frames) => Observation::Image(frames[step].as_pixels()),
            Film::Numbers(numbers) => Observation::Vector(&numbers[step]),
            Film::Grids(codes) => {
                let [rows, columns, channels] = GRID;
                Observation::Grid(Grid::new(rows, columns, channels, &codes[step]).expect("as many codes"))
            }
        }
    }
}

fn context(seed: u64) -> ActContext {
    ActContext::new(episode_seed(seed, 0), ActMode::Greedy)
}

/// Acts in `steps` with the agent's current memory; returns the bits of the actions.
fn go_on(
    agent: &mut dyn Agent,
    film: &Film,
    steps: std::ops::Range<usize>,
    context: &mut ActContext,
) -> Vec<u64> {
    let act = |step| agent.act(film.at(step), context).expect("it sees that").action.to_vec();
    steps.flat_map(act).map(f64::to_bits).collect()
}

/// The same for a whole episode with seed `seed`.
fn play(agent: &mut dyn Agent, film: &Film, seed: u64) -> Vec<u64> {
    agent.begin_episode(episode_seed(seed, 0));
    go_on(agent, film, 0..STEPS, &mut context(seed))
}

#[test]
fn settings_survive_a_round_trip_and_a_misspelt_key_does_not() {
    for agent in AGENTS.iter() {
        let name = agent.name;
        for given in [Value::Null, json!({}), settings(agent)] {
            let full = registry::full_config(name, &given).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(registry::full_config(name, &full).expect("its own"), full, "{name}");
            let tensors = registry::tensors(name, &given).expect("good settings");
            assert_eq!(registry::tensors(name, &full).expect("its own"), tensors, "{name}");
            let made = registry::make(name, &given).expect("good settings");
            assert_eq!(made.tensors(), tensors, "{name}");
            let count: usize = tensors.iter().map(TensorShape::len).sum();
            assert_eq!(made.params().len(), count, "{name}");
            if let Value::Object(fitted) = &given {
                assert!(
                    fitted.iter().all(|(key, value)| full[key] == *value || full[key].is_object()),
                    "{name}: {full}"
                );
            }
        }
        let mut wrong = settings(agent);
        wrong["actoins"] = json!([[0.0, 1.0]]);
        let said = registry::config(name, &wrong).err().expect("no such key").to_string();
        assert!(said.contains(name) && said.contains("actoins") && said.contains("actions"), "{said}");
        let said = registry::config(name, &json!({ "actions": [] })).err().expect("no action").to_string();
        assert!(said.contains("actions") || said.contains("action"), "{name}: {said}");
        assert!(registry::config(name, &json!({ "actions": "left" })).is_err(), "{name}");
    }
    assert!(registry::config("attention-agnet", &Value::Null).is_err());
}

#[test]
fn parameters_are_taken_whole_or_not_at_all() {
    for agent in AGENTS.iter() {
        let (name, config) = (agent.name, config(agent));
        let count: usize = config.tensors().iter().map(TensorShape::len).sum();
        let mut made = config.make().expect("good settings");
        assert_eq!(made.tensors(), config.tensors(), "{name}");
        let flat: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37).sin()).collect();
        made.set_params(&flat).expect("the right count");
        assert_eq!(made.params(), flat, "{name}");
        for wrong in [vec![0.0; count + 1], flat[..count.saturating_sub(1)].to_vec()] {
            if wrong.len() != count {
                let said = made.set_params(&wrong).expect_err("another count").to_string();
                assert!(said.contains(&count.to_string()), "{name}: {said}");
            }
        }
        for bad in [f32::NAN, f32::INFINITY] {
            let Some(last) = count.checked_sub(1) else { continue };
            let mut wrong = flat.clone();
            wrong[last] = bad;
            assert!(made.set_params(&wrong).is_err(), "{name}: {bad}");
        }
        assert_eq!(made.params(), flat, "{name}: what was refused changed nothing");
        for init in [Init::Torch, Init::He, Init::Zeros] {
            let [first, again, other] = [1, 1, 2].map(|seed| {
                registry::initial_params(name, &settings(agent), init, Seed::root(seed)).expect("fine")
            });
            assert_eq!((first.len(), &first), (count, &again), "{name}");
            assert!(init == Init::Zeros || count == 0 || first != other, "{name}: another seed");
        }
    }
}

#[test]
fn an_episode_is_its_seed_and_what_is_seen() {
    for agent in AGENTS.iter() {
        let (name, film) = (agent.name, Film::of(agent));
        let bounds = spec_for(agent).action.bounds();
        let mut driver = driver(agent);
        let first = play(&mut *driver, &film, 3);
        assert_eq!(first.len(), STEPS * bounds.len(), "{name}: a number for each of the world's");
        for (i, bits) in first.iter().enumerate() {
            let ([low, high], x) = (bounds[i % bounds.len()], f64::from_bits(*bits));
            // A choice has a score, of which the largest counts.
            let is_score = agent.sees == Sees::Grid && x.is_finite();
            assert!(is_score || (low..=high).contains(&x), "{name}: {x} is not in {low} ..= {high}");
        }
        play(&mut *driver, &film, 4);
        assert_eq!(play(&mut *driver, &film, 3), first, "{name}: whatever was played before");
        assert_eq!(play(&mut *self::driver(agent), &film, 3), first, "{name}: made anew");

        // A copy continues like the original.
        driver.begin_episode(episode_seed(3, 0));
        let mut original = context(3);
        let half = STEPS / 2;
        let begun = go_on(&mut *driver, &film, 0..half, &mut original);
        let (mut copy, mut copied) = (driver.boxed_clone(), original.clone());
        let rest = go_on(&mut *copy, &film, half..STEPS, &mut copied);
        assert_eq!([begun, rest].concat(), first, "{name}: a copy");
        let rest = go_on(&mut *driver, &film, half..STEPS, &mut original);
        assert_eq!(rest, first[half * bounds.len()..], "{name}: the original");
    }
}

#[test]
fn a_batch_decides_as_its_agents_would_alone() {
    const SEEDS: [u64; 3] = [3, 8, 3];
    for agent in AGENTS.iter() {
        let (name, film) = (agent.name, Film::of(agent));
        let mut driver = driver(agent);
        let alone = SEEDS.map(|seed| play(&mut *driver, &film, seed));
        let mut batch = driver.batch(SEEDS.len());
        assert_eq!(batch.episodes(), SEEDS.len(), "{name}");
        let mut contexts = SEEDS.map(context);
        for (episode, seed) in SEEDS.into_iter().enumerate() {
            batch.begin_episode(episode, episode_seed(seed, 0));
        }
        let mut together: [Vec<u64>; 3] = Default::default();
        for step in 0..STEPS {
            let mut turns: Vec<Turn<'_>> = contexts
                .iter_mut()
                .enumerate()
                .map(|(episode, context)| Turn { episode, observation: film.at(step), context })
                .collect();
            let mut keep = |turn: usize, decision: foveate_core::Decision<'_>| {
                together[turn].extend(decision.action.iter().map(|x| x.to_bits()));
            };
            batch.act(&mut turns, &mut keep).expect("it sees that");
        }
        assert_eq!(together, alone, "{name}");
    }
}

/// A decision opened at its attention and ended again is the decision, to the bit; with other values it is another, and what
/// does not fit is refused.
#[test]
fn opened_decisions_end_as_they_would_have() {
    let mut opens = vec![];
    for agent in AGENTS.iter() {
        let name = agent.name;
        let film = Film::of(agent);
        let (mut whole, mut parts) = (driver(agent), driver(agent));
        for driver in [&mut whole, &mut parts] {
            driver.begin_episode(episode_seed(3, 0));
        }
        let (mut context, mut other) = (context(3), context(3));
        let mut opened = Opened::default();
        let (mut changed, mut moved_by_weights) = (0, 0);
        for step in 0..STEPS {
            if !parts.open(film.at(step), &other, &mut opened).expect("it sees that") {
                assert_eq!(step, 0, "{name} opens in some steps only");
                break;
            }
            let expect = whole.act(film.at(step), &mut context).expect("it sees that");
            let (action, logits) = (expect.action.to_vec(), expect.logits.map(<[f32]>::to_vec));
            let attention = expect.attention.expect("what can be opened attends to something");
            assert_eq!(opened.tokens.len(), opened.units, "{name}");
            assert!(opened.tokens.iter().all(|&token| (token as usize) < attention.tokens().len()), "{name}");
            assert_eq!(opened.weights.len(), opened.readers * opened.units, "{name}");
            assert_eq!(opened.values.len(), opened.width() * opened.units, "{name}");
            let [mut again, mut once_more] = [parts.boxed_clone(), parts.boxed_clone()];
            let decision = parts.resume(&opened, &mut other).expect("its own");
            assert_eq!((decision.action, decision.logits), (&action[..], logits.as_deref()), "{name} {step}");
            let values = opened.values.iter().map(|value| value + 1.0).collect();
            let moved = Opened { values, ..opened.clone() };
            changed +=
                usize::from(again.resume(&moved, &mut other.clone()).expect("as many").action != action);
            // Soft weights matter, too, and must be as many; those of hard attention have done their part.
            let turned = Opened { weights: opened.weights.iter().rev().copied().collect(), ..opened.clone() };
            let action_then = once_more.resume(&turned, &mut other.clone()).expect("as many").action.to_vec();
            moved_by_weights += usize::from(action_then != action);
            if !opened.hard {
                let few = Opened { weights: opened.weights[1..].to_vec(), ..opened.clone() };
                let refused = again.resume(&few, &mut other.clone()).expect_err("one weight is missing");
                assert!(refused.to_string().contains(&few.weights.len().to_string()), "{name}: {refused}");
            }
            let short = Opened { values: opened.values[1..].to_vec(), ..opened.clone() };
            let refused = again.resume(&short, &mut other.clone()).expect_err("one value is missing");
            assert!(
                refused.to_string().contains(&(opened.values.len() - 1).to_string()),
                "{name}: {refused}"
            );
        }
        if changed > 0 {
            assert_eq!(moved_by_weights > 0, !opened.hard, "{name}: whether its weights matter");
            opens.push(name);
        }
    }
    for name in ["attention-agent", "iap", "iap-hierarchical", "attention-neuron", "relational", "s3ta"] {
        assert!(opens.contains(&name), "{name} can be opened, and its values matter: {opens:?}");
    }
    assert!(!opens.contains(&"actor-critic") && !opens.contains(&"random-actions"), "{opens:?}");
}

#[test]
fn what_it_cannot_see_is_refused_in_a_line() {
    let small = ImageBuf::black(20, 10);
    for agent in AGENTS.iter().filter(|agent| agent.sees != Sees::Nothing) {
        let (name, mut driver) = (agent.name, driver(agent));
        let numbers = [0.0; NUMBERS + 2];
        let other = match agent.sees {
            Sees::Numbers | Sees::PictureOrNumbers | Sees::Anything => Observation::rgb(small.as_image()),
            _ => Observation::Vector(&numbers[..NUMBERS]),
        };
        let size = match agent.sees {
            Sees::Numbers | Sees::Anything => Observation::Vector(&numbers),
            // Any number of numbers will do, but not none.
            Sees::PictureOrNumbers => Observation::Vector(&[]),
            _ => Observation::rgb(small.as_image()),
        };
        for observation in [other, size] {
            let said = driver.act(observation, &mut context(1)).expect_err("not what it sees").to_string();
            assert!(said.lines().count() == 1 && said.contains("built for"), "{name}: {said}");
        }
    }
}

#[test]
fn patches_can_be_hidden_from_agents_that_have_some() {
    for agent in AGENTS.iter() {
        let (name, film) = (agent.name, Film::of(agent));
        let mut driver = driver(agent);
        driver.begin_episode(episode_seed(1, 0));
        let chosen = driver.act(film.at(0), &mut context(1)).expect("it sees that").attention;
        let chosen = chosen.and_then(|attention| attention.selected()).map(|chosen| chosen.tokens.len());
        let Some(k) = driver.patches() else {
            assert_eq!(chosen, None, "{name}: one that chooses patches can be shown fewer");
            assert_eq!(driver.limit_patches(1), Err(PolicyError::NoPatches), "{name}");
            continue;
        };
        assert_eq!(chosen, Some(k), "{name}");
        let (first, params) = (play(&mut *driver, &film, 3), driver.params());
        driver.limit_patches(0).expect("it has patches");
        assert_ne!(play(&mut *driver, &film, 3), first, "{name}: blind");
        driver.limit_patches(k).expect("it has patches");
        assert_eq!(play(&mut *driver, &film, 3), first, "{name}: all of its patches again");
        assert_eq!(driver.params(), params, "{name}: its weights are what they were");
    }
}

#[test]
fn students_learn_a_part_of_their_agents() {
    let mut students = 0;
    for agent in AGENTS.iter() {
        let (name, config) = (agent.name, config(agent));
        let Ok(Some(mut model)) = config.model() else {
            let said = registry::model(name, &settings(agent)).err().expect("it has none").to_string();
            assert!(said.contains(name) && said.contains("expert") && said.contains(';'), "{said}");
            continue;
        };
        students += 1;
        let count: usize = config.tensors().iter().map(TensorShape::len).sum();
        assert!(!model.learns().is_empty() && model.learns().end <= count, "{name}");
        let actions = spec_for(agent).action.len();
        if let Some(network) = model.outputs() {
            use OutputKind::{Policy, Values};
            let (normal, choices) =
                (ActionDistribution::Normal(actions), ActionDistribution::Choices(actions));
            let possible = [Policy(normal), Policy(choices), Values(actions)];
            assert!(possible.contains(&network.kind()), "{name}");
        }
        let student = model.student().expect("it learns from demonstrations");
        assert_eq!(student.actions(), actions, "{name}");
        let mut driver = driver(agent);
        driver.act(Film::of(agent).at(0), &mut context(1)).expect("it sees that");
        let learnt_from = driver.study_inputs().expect("it saw something");
        let sizes = (learnt_from.numbers.len(), learnt_from.picture.len());
        assert_eq!(sizes, (student.inputs(), student.picture()), "{name}: it learns from what the agent saw");
    }
    assert!(students > 0);
}

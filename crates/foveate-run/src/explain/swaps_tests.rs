//! Tests of swaps, with agents of which it is known what they act on: made-up ones, and the champion with parts of it disabled.

use foveate_core::{
    ActContext, Attention, Decision, Labels, Observation, Opened, Policy, PolicyAgent, PolicyError, Seed,
    TensorShape, Tokens,
};
use foveate_envs::registry::EnvRequest;
use foveate_explain::study::{Answer, EffectMeter, Encodings, Erasures, Order, SwapReport};

use super::*;

/// Rows and columns of parts.
const SIDE: usize = 3;
const PARTS: usize = SIDE * SIDE;

/// An agent that attends to the parts of the picture that are the least green, and steers by how red what it attends to is.
#[derive(Debug, Clone)]
struct Planted {
    /// True if it says so; if not it says the opposite, and acts as it would otherwise.
    honest: bool,
}

#[derive(Debug, Clone, Default)]
struct PlantedMemory {
    opened: Opened,
    action: Vec<f64>,
}

impl Planted {
    fn look(&self, observation: Observation<'_>, opened: &mut Opened) -> Result<(), PolicyError> {
        let Some(pixels) = observation.image() else {
            return Err(PolicyError::BadConfig { why: "a picture, please".into() });
        };
        let (width, height) = pixels.shape().tall();
        let (mut red, mut green) = (vec![0.0_f32; PARTS], vec![0.0_f32; PARTS]);
        for (i, pixel) in pixels.bytes().chunks_exact(3).enumerate() {
            let part = i / width * SIDE / height * SIDE + i % width * SIDE / width;
            let area = (width * height / PARTS * 255) as f32;
            red[part] += f32::from(pixel[0]) / area;
            green[part] += f32::from(pixel[1]) / area;
        }
        let scores: Vec<f32> = green.iter().map(|green| (-12.0 * green).exp()).collect();
        let sum: f32 = scores.iter().sum();
        opened.units = PARTS;
        opened.readers = 1;
        opened.tokens = (0..PARTS as u32).collect();
        opened.weights = scores.iter().map(|score| score / sum).collect();
        opened.values = red;
        if !self.honest {
            let most = opened.weights.iter().copied().fold(0.0, f32::max);
            for (weight, value) in opened.weights.iter_mut().zip(&mut opened.values) {
                *value *= *weight;
                *weight = most - *weight;
            }
        }
        Ok(())
    }

    fn decide<'m>(&self, opened: &Opened, action: &'m mut Vec<f64>) -> Decision<'m> {
        let pairs = opened.weights.iter().zip(&opened.values);
        let answer: f32 =
            pairs.map(|(weight, value)| if self.honest { weight * value } else { *value }).sum();
        *action = vec![f64::from(8.0 * (answer - 0.4)).clamp(-1.0, 1.0), 0.3, 0.0];
        Decision::new(action)
    }
}

impl Policy for Planted {
    type Memory = PlantedMemory;

    fn memory(&self) -> PlantedMemory {
        PlantedMemory::default()
    }

    fn reset(&self, _: &mut PlantedMemory, _: Seed) {}

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut PlantedMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let PlantedMemory { opened, action } = memory;
        self.look(observation, opened)?;
        let decision = self.decide(opened, action);
        let cells = Tokens::Cells { rows: SIDE, columns: SIDE };
        Ok(decision.with_attention(Attention::soft(cells, 1, 1, &opened.weights)?))
    }

    fn open(
        &self,
        observation: Observation<'_>,
        _: &mut PlantedMemory,
        _: &ActContext,
        opened: &mut Opened,
    ) -> Result<bool, PolicyError> {
        self.look(observation, opened).map(|()| true)
    }

    fn resume<'m>(
        &self,
        opened: &Opened,
        memory: &'m mut PlantedMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        Ok(self.decide(opened, &mut memory.action))
    }

    fn tensors(&self) -> Vec<TensorShape> {
        vec![]
    }

    fn params(&self) -> Vec<f32> {
        vec![]
    }

    fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
        Ok(())
    }
}

fn swaps(agent: &dyn Agent, episodes: usize, workers: usize) -> (SwapReport, tests::Files) {
    swaps_against(agent, 0, episodes, workers)
}

/// The report, against so many untrained agents, and the bytes of its files by name.
fn swaps_against(
    agent: &dyn Agent,
    untrained: usize,
    episodes: usize,
    workers: usize,
) -> (SwapReport, tests::Files) {
    let world = EnvRequest { id: "car-racing".into(), picture: Some("fast".into()), ..EnvRequest::default() };
    swaps_in(world, agent, untrained, episodes, workers)
}

fn swaps_in(
    world: EnvRequest,
    agent: &dyn Agent,
    untrained: usize,
    episodes: usize,
    workers: usize,
) -> (SwapReport, tests::Files) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let out = dir.path().join("compared");
    let env = crate::worlds::make(world.clone()).expect("a world");
    let request = ExplainRequest {
        env: &*env,
        agent,
        labels: Labels {
            env: world.id,
            picture: world.picture.unwrap_or_default(),
            variant: "original".into(),
            weights: "planted".into(),
        },
        sensors: &[],
        seed: 5,
        episodes,
        decisions: 5,
        untrained,
        asked: None,
        max_steps: Some(160),
        workers,
        out: &out,
    };
    let stop = Stop::default();
    let compared = compare(&[("planted".into(), request)], &stop, &mut |_| ()).expect("a comparison");
    tests::plays_what_it_announced(&stop);
    let mut files = tests::files(&out);
    let of_agent = tests::files(&out.join("planted"));
    files.extend(of_agent.into_iter().map(|(name, bytes)| (format!("planted/{name}"), bytes)));
    (compared.agents[0].report.clone(), files)
}

fn attended(report: &SwapReport) -> &Order {
    report.orders.iter().find(|order| !order.places).expect("it can be opened")
}

/// Whether its action moves, by what it attends to, and whether the order of that is right; where that is not known by itself,
/// whether what it names is right.
fn answers(report: &SwapReport) -> [Answer; 3] {
    let order = if report.verdict.iter().any(|line| line.question == "order") { "order" } else { "right" };
    ["moves", "path", order].map(|question| report.answer(question))
}

#[test]
fn an_honest_agent_is_right_and_its_opposite_is_not() {
    let (report, files) = swaps(&PolicyAgent::new(Planted { honest: true }), 10, 2);
    assert_eq!(answers(&report), [Answer::Yes; 3], "{report}");
    assert_eq!(report.answer("right"), Answer::Yes, "{report}");
    let own = attended(&report);
    assert!(own.above_others.is_above(0.0) && own.above_other_moments.is_above(0.0), "{report}");
    assert!(own.of_best.is_none_or(|of_best| of_best.value > 0.8 && of_best.value <= 1.1), "{report}");
    // It has no weights, so there are no untrained ones to compare it with.
    assert!(report.untrained.is_none() && report.answer("untrained") == Answer::Undecided, "{report}");
    assert_eq!(report.memory.expect("a share").value, 0.0, "it has no memory");
    let m = report.attended.expect("a share").value;
    assert!((m - 1.0).abs() < 1e-9, "all of it comes with the attention: {m}");
    for name in ["index.html", "report.json", "figures/forest.png"] {
        assert!(files.contains_key(name), "{name}");
    }
    let (again, other) = swaps(&PolicyAgent::new(Planted { honest: true }), 10, 1);
    assert!(files == other && report == again, "the same with any number of workers");

    let (report, _) = swaps(&PolicyAgent::new(Planted { honest: false }), 10, 2);
    assert!(attended(&report).above_others.is_below(0.0), "{report}");
    assert_eq!(answers(&report)[2], Answer::No, "{report}");
}

/// The champion, with its tensor of this name changed: `change` gets row, column and value.
fn champion(tensor: &str, change: impl Fn(usize, usize, f32) -> f32) -> Box<dyn Agent> {
    let (file, _) = crate::champion::champion("car-racing").expect("there is one");
    let mut agent = file.agent().expect("it fits");
    let mut params = agent.params();
    let mut rest = &mut params[..];
    for shape in agent.tensors() {
        let (own, after) = rest.split_at_mut(shape.len());
        if shape.name == tensor {
            let columns = shape.shape.last().copied().unwrap_or(1);
            for (i, value) in own.iter_mut().enumerate() {
                *value = change(i / columns, i % columns, *value);
            }
        }
        rest = after;
    }
    agent.set_params(&params).expect("as many");
    agent
}

/// Slots have two inputs each: where the patch is.
fn slot(column: usize) -> usize {
    column / 2
}

#[test]
fn disabled_champions_are_found_out() {
    let (report, _) = swaps(&*champion("none", |_, _, value| value), 10, 2);
    assert_eq!(answers(&report)[0], Answer::Yes, "{report}");
    let whole = attended(&report).above_others.value;

    let frozen = champion("output.weight", |_, _, value| 0.001 * value);
    let (report, _) = swaps(&*frozen, 10, 2);
    let hardly = [Answer::No, Answer::Undecided, Answer::Undecided];
    assert_eq!(answers(&report), hardly, "its action hardly moves: {report}");

    let only_last =
        champion("lstm.weight_ih", |_, column, value| if slot(column) == 9 { value } else { 0.0 });
    let (report, _) = swaps(&*only_last, 10, 2);
    let above = attended(&report).above_others;
    assert!(above.is_below(0.0) && above.value < whole, "only the last slot matters: {report}");
    assert_ne!(answers(&report)[2], Answer::Yes, "{report}");

    let no_first = champion("lstm.weight_ih", |_, column, value| if slot(column) < 5 { 0.0 } else { value });
    let (report, _) = swaps(&*no_first, 10, 2);
    let above = attended(&report).above_others;
    assert!(above.is_below(0.0) && above.value < whole, "the first five do not matter: {report}");
    assert_ne!(answers(&report)[2], Answer::Yes, "{report}");
}

#[test]
fn the_effect_of_each_patch_is_what_the_agent_makes_of_it() {
    let request =
        EnvRequest { id: "car-racing".into(), picture: Some("fast".into()), ..EnvRequest::default() };
    let mut env = crate::worlds::make(request).expect("a world");
    // Only these slots go into the memory, and from there into the action.
    let acts_on = |slots: &[usize]| {
        let slots = slots.to_vec();
        champion(
            "lstm.weight_ih",
            move |_, column, value| if slots.contains(&slot(column)) { value } else { 0.0 },
        )
    };
    for slots in [vec![3, 7], vec![0], vec![]] {
        let agent = acts_on(&slots);
        let meter = EffectMeter::of_episode(&*env, &*agent, 5).expect("it drives").expect("it opens");
        env.reset(Some(8));
        let measured = meter.measure(env.observation(), &*agent, &ActContext::default()).expect("it decides");
        let effective: Vec<usize> = measured
            .iter()
            .enumerate()
            .filter(|(_, (_, effect))| *effect > 0.0)
            .map(|(rank, _)| rank)
            .collect();
        assert_eq!((measured.len(), effective), (10, slots), "{measured:?}");
    }
}

/// A choice by the largest score says not only whether another one is made, but what that costs in the agent's own scores.
#[test]
fn choices_by_scores_have_a_regret() {
    let (file, _) = crate::champion::champion("door-key-5x5").expect("there is one");
    let agent = file.agent().expect("it fits");
    let world = EnvRequest {
        id: "door-key-5x5".into(),
        picture: Some("one-hot".into()),
        options: [("actions".to_owned(), "five".to_owned())].into(),
        ..EnvRequest::default()
    };
    let (report, files) = swaps_in(world, &*agent, 0, 5, 2);
    let regret = report.regret.as_ref().expect("it chooses the largest score");
    assert!(regret.natural.value > 0.0, "{report}");
    // Without a temperature it has no memory, and what it attends to is all that it sees.
    assert_eq!((regret.memory.value, regret.attended.value), (0.0, regret.natural.value), "{report}");
    let effects = std::str::from_utf8(&files["planted/figures/effects.csv"]).expect("text");
    let sum = |what: &str| -> f64 {
        let rows = effects.lines().filter(|line| line.split(',').nth(2) == Some(what));
        rows.map(|line| line.rsplit(',').next().and_then(|x| x.parse::<f64>().ok()).expect("a number")).sum()
    };
    let count = effects.lines().filter(|line| line.contains(",everything,")).count();
    let mean = sum("everything: regret") / count as f64;
    assert!((mean - regret.natural.value).abs() < 1e-4 * mean, "{mean} {report}");
    let (report, _) = swaps(&PolicyAgent::new(Planted { honest: true }), 5, 2);
    assert_eq!(report.regret, None, "numbers are no choices");
}

#[test]
fn every_agent_has_a_folder_of_its_own() {
    assert_eq!(file_name("runs/mine blur:2", &[]), "runs-mine-blur:2");
    assert_eq!(file_name("../mine", &["mine"]), "mine-2");
    assert_eq!([file_name("figures", &[]), file_name("..", &[])], ["figures-2", "agent"]);
}

/// An order that comes with the architecture is no merit.
#[test]
fn untrained_agents_are_compared_with_others() {
    let random = |seed| {
        let mut rng = Seed::root(seed).rng();
        let (file, _) = crate::champion::champion("car-racing").expect("there is one");
        let mut agent = file.agent().expect("it fits");
        let params: Vec<f32> = agent.params().iter().map(|_| (0.3 * rng.normal()) as f32).collect();
        agent.set_params(&params).expect("as many");
        agent
    };
    for seed in 0..2 {
        let (report, _) = swaps_against(&*random(seed), 5, 5, 2);
        let untrained = report.untrained.as_ref().expect("five others");
        assert_eq!((untrained.agents, untrained.above_others.len()), (5, 5));
        // Five are too few, however far it is above them.
        assert_ne!(report.answer("untrained"), Answer::Yes, "seed {seed}: {report}");
    }
}

/// What the report of the champion says first, and what it says of the world itself.
#[test]
fn a_report_begins_with_three_lines_and_tests_claims_in_the_world() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let make = |picture: &str, options: &[(&str, &str)]| {
        let options = options.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let request = EnvRequest {
            id: "car-racing".into(),
            picture: Some(picture.into()),
            options,
            ..EnvRequest::default()
        };
        crate::worlds::make(request).expect("a world")
    };
    let explain = |env: &dyn Env, agent: &dyn Agent, name: &str| {
        let out = dir.path().join(name);
        let request = ExplainRequest {
            env,
            agent,
            labels: Labels { env: "car-racing".into(), weights: name.into(), ..Labels::default() },
            sensors: &[],
            seed: 4,
            episodes: 5,
            decisions: 4,
            untrained: 1,
            asked: None,
            max_steps: Some(120),
            workers: 2,
            out: &out,
        };
        let report = run(&request, &Stop::default(), &mut |_| {}).expect("a report");
        tests::told_everywhere(&report, &tests::files(&out));
        (report, std::fs::read_to_string(out.join("index.html")).expect("a page"))
    };
    let (report, page) = explain(&*make("fast", &[]), &*champion("none", |_, _, value| value), "champion");
    let swaps = report.get::<Swaps>().and_then(|of| of.swaps.as_ref()).expect("it can be opened");
    assert_eq!(
        swaps.randomised.len(),
        2 * 4 - 1,
        "query, key, controller and output: {:?}",
        swaps.randomised
    );
    let order = [
        "what it sees moves its action",
        "id=\"matters\"",
        "id=\"true\"",
        "id=\"without\"",
        "id=\"encoded\"",
    ];
    let at: Vec<usize> =
        order.iter().map(|text| page.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(at.is_sorted(), "{at:?}");
    assert!(page.contains("\"effects\":{\"every\":1"), "the film has effects");
    let mut ids: Vec<&str> =
        page.match_indices(" id=\"").filter_map(|(at, _)| page[at + 5..].split('"').next()).collect();
    ids.sort_unstable();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "every anchor has one place: {ids:?}");

    let erasures = |report: &Report| report.get::<Erasures>().expect("of a picture").erasures.clone();
    let encoded = |report: &Report| report.get::<Encodings>().expect("of a picture").encoded.clone();
    let (things, positions) = (erasures(&report), encoded(&report));
    let kinds: Vec<&str> = things.iter().map(|of| &*of.kind).collect();
    assert_eq!(kinds, ["road", "kerbs", "grass", "indicators"]);
    let [road, .., indicators] = &things[..] else { panic!("four") };
    assert!(
        road.looked_at.expect("it looks").value > 2.0 * road.pixels.value,
        "it looks at the road: {road:?}"
    );
    assert!(road.change.value > 5.0 * indicators.change.value, "{report}");
    assert!(road.cost.is_some_and(|(lost, _)| lost > 0.0), "{road:?}");

    let told = |name: &str| {
        let of = positions.iter().find(|of| of.quantity == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(of.moves.len(), 10, "as many as it selects");
        of.r2.value
    };
    assert!(told("heading of the road") < 1.0 && told("bend ahead") > told("speed") - 1.0);

    // An agent that does not get the positions alone, in a world that keeps earlier pictures: neither can be said.
    let (report, page) = explain(
        &*make("fast", &[("wrap", "stack:2")]),
        &PolicyAgent::new(Planted { honest: true }),
        "planted",
    );
    assert!(erasures(&report).is_empty() && encoded(&report).is_empty(), "{report}");
    assert!(!page.contains("id=\"without\"") && page.contains("id=\"matters\""));
}

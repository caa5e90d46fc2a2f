//! Spaces, episodes and copies.

use foveate_core::{
    Action, ActionSpace, DEPTH, Env, Fact, IMAGE, ImageBuf, Observation, ObservationSpace, PixelShape,
    SENSORS, Step,
};

use crate::common::{python, toy, try_drawn, try_toy};

/// Plays `steps` steps by a fixed rule; returns all results.
fn drive(env: &mut dyn Env, steps: usize) -> Vec<(Step, Vec<f32>)> {
    let mut all = vec![];
    for t in 0..steps {
        let step = env.step(Action::Continuous(&[(t as f64 * 0.7).sin()])).expect("it goes on");
        let Observation::Vector(seen) = env.observation() else { panic!("numbers") };
        all.push((step, seen.to_vec()));
        if step.is_over() {
            break;
        }
    }
    all
}

#[test]
fn an_episode_is_its_seed_and_its_actions() {
    if !python() {
        return;
    }
    let mut env = toy("Toy", &[]);
    let spec = env.spec().clone();
    assert_eq!(spec.observation, ObservationSpace::Vector { len: 2 });
    assert_eq!(spec.action, ActionSpace::Box { low: vec![-1.0], high: vec![1.0] });
    assert_eq!((spec.max_steps, spec.fps, &*spec.id), (Some(60), 20.0, "gym:foveate_toys:Toys/Toy-v0"));
    env.reset(Some(3));
    let first = drive(&mut env, 100);
    assert_eq!(first.len(), 60);
    let last = first[59].0;
    assert!(last.truncated && !last.terminated, "Gymnasium's time limit: {last:?}");
    assert_eq!(first[59].1[1], 60.0, "the final observation stays readable");
    assert!(env.step(Action::Continuous(&[0.0])).expect_err("over").to_string().contains("call reset first"));
    env.reset(Some(4));
    assert_ne!(drive(&mut env, 100), first);
    env.reset(Some(3));
    assert_eq!(drive(&mut env, 100), first);

    // A stream continues with other episodes, the same ones every time.
    env.reset(None);
    let second = drive(&mut env, 100);
    env.reset(None);
    let third = drive(&mut env, 100);
    assert!(second != first && third != second);
    env.reset(Some(3));
    env.reset(None);
    assert_eq!(drive(&mut env, 100), second);
}

#[test]
fn a_repeated_action_is_as_many_steps() {
    if !python() {
        return;
    }
    let action = [0.4];
    let action = Action::Continuous(&action);
    let seen = |env: &dyn Env| env.observation().numbers().expect("numbers").to_vec();
    // What the trait does by default.
    let mut steps = toy("Toy", &[]);
    steps.reset(Some(2));
    let mut expect = vec![];
    while expect.last().is_none_or(|(step, _): &(Step, Vec<f32>)| !step.is_over()) {
        let mut all = steps.step(action).expect("it goes on");
        for _ in 1..9 {
            if all.is_over() {
                break;
            }
            let step = steps.step(action).expect("it goes on");
            all = Step { reward: all.reward + step.reward, ..step };
        }
        expect.push((all, seen(&steps)));
    }
    let last = expect.last().expect("one").1[1];
    assert!(last % 9.0 != 0.0, "it ends within a repeat, after {last} steps");
    let play = |env: &mut dyn Env, from: usize| {
        for (step, numbers) in &expect[from..] {
            assert_eq!(env.repeat(action, 9).expect("it goes on"), *step);
            assert_eq!(seen(env), *numbers);
        }
        assert!(env.repeat(action, 9).expect_err("over").to_string().contains("call reset first"));
    };
    let mut env = toy("Toy", &[]);
    env.reset(Some(2));
    play(&mut env, 0);
    // A copy, and a new worker after a crash within a repeat, play the same requests again.
    env.reset(Some(2));
    env.repeat(action, 9).expect("it goes on");
    play(&mut *env.boxed_clone(), 1);
    let dir = tempfile::tempdir().expect("a folder");
    let mark = serde_json::to_string(&dir.path().join("broken")).expect("text");
    let mut breaks = toy("Breaks", &[("arg.how", "\"exit\""), ("arg.at", "10"), ("arg.once", &mark)]);
    breaks.reset(Some(2));
    play(&mut breaks, 0);
    assert_eq!(breaks.gym().replaced(), 1);
}

#[test]
fn copies_go_on_to_the_bit() {
    if !python() {
        return;
    }
    let mut env = toy("Toy", &[]);
    env.reset(Some(8));
    drive(&mut env, 20);
    let mut copy = env.boxed_clone();
    let mut other = copy.boxed_clone();
    assert_eq!(env.observation(), copy.observation());
    let rest = drive(&mut env, 100);
    assert_eq!(drive(&mut *copy, 100), rest);
    let mut late = copy.boxed_clone();
    assert!(late.step(Action::Continuous(&[0.0])).is_err(), "it was over when it was copied");
    late.reset(None);
    copy.reset(None);
    assert_eq!(drive(&mut *late, 9), drive(&mut *copy, 9), "the stream was copied too");
    assert_eq!(drive(&mut *other, 100), rest);
    assert_eq!(env.gym().replaced(), 0);
}

#[test]
fn info_and_pictures_for_people() {
    if !python() {
        return;
    }
    let mut env = toy("Toy", &[]);
    let mut view = ImageBuf::black(90, 40);
    assert!(env.render(&mut view).is_err(), "there is nothing to see yet");
    env.reset(Some(8));
    drive(&mut env, 3);
    let copy = env.boxed_clone();
    for env in [&env as &dyn Env, &*copy] {
        let Fact::Named(facts) = env.state() else { panic!("named facts") };
        let names: Vec<_> = facts.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["t", "words", "x"], "what is large or no number is left out");
        assert_eq!(facts[0].1, Fact::Count(3));
        env.render(&mut view).expect("a picture");
        let lit: Vec<usize> = (0..90).filter(|&x| view.as_image().pixel(x, 20) != [0; 3]).collect();
        assert_eq!(lit.len(), 1, "60 columns fit 90 as they are, one is lit");
        assert!((15..75).contains(&lit[0]));
        assert_eq!(view.as_image().pixel(lit[0], 20), [255, 128, 3]);
    }
}

#[test]
fn dicts_become_a_picture_and_numbers() {
    if !python() {
        return;
    }
    let mut env = toy("Mixed", &[]);
    assert_eq!(env.spec().observation, mixed(24, 20, true, 17));
    assert_eq!(env.gym().hello().left_out, [["mission", "Text"]]);
    // One score for each choice of each of the two discrete parts.
    assert_eq!(env.spec().action, ActionSpace::Box { low: vec![0.0; 5], high: vec![1.0; 5] });
    env.reset(Some(1));
    let x = |env: &dyn Env| {
        env.observation().part(SENSORS).and_then(Observation::numbers).expect("numbers").to_vec()
    };
    let parts: Vec<_> = env.gym().hello().parts.iter().map(|part| part[0].clone()).collect();
    assert_eq!(parts, ["angles", "bits", "dice", "mode", "pair.0", "pair.1", "screen", "depth"]);
    for t in 1..=7_usize {
        env.step(Action::Continuous(&[0.1, -2.0, 0.3, 0.5, 0.5])).expect("fine");
        let seen = env.observation();
        assert_eq!(seen.space(), env.spec().observation);
        assert!(seen.image().expect("a picture").bytes().iter().all(|&byte| usize::from(byte) == t));
        let depth = seen.depth().expect("it has one");
        assert!(depth.bytes().iter().all(|&byte| usize::from(byte) == 255 - t));
        let mut expect = vec![0.25, 0.5, t as f32, (t % 2) as f32, 1.0];
        let hot = |n: usize, i: usize| (0..n).map(move |k| f32::from(u8::from(k == i)));
        expect.extend(hot(2, t % 2).chain(hot(3, t % 3)).chain(hot(3, t % 3)));
        expect.push(0.75);
        expect.extend(hot(2, t % 2));
        assert_eq!(x(&env)[1..], expect);
    }
    let before = x(&env)[0];
    let third = env.step(Action::Continuous(&[0.0, 0.0, 0.0, 0.0, 0.0])).expect("fine");
    assert!(third.reward.is_finite());
    assert!((f64::from(x(&env)[0] - before) + 0.1).abs() < 0.3, "the first of equals: choice 0 moves left");
    assert!(env.step(Action::Continuous(&[0.0])).expect_err("too few").to_string().contains("takes 5"));
    assert!(env.step(Action::Discrete(1)).expect_err("no choice").to_string().contains("5 numbers"));
}

#[test]
fn what_is_drawn_for_people_can_be_the_picture() {
    if !python() {
        return;
    }
    let mut env = try_drawn("Toy").expect("it draws");
    assert_eq!(env.spec().observation, mixed(60, 40, false, 2));
    env.reset(Some(8));
    let copy = env.boxed_clone();
    for t in 0..4_u8 {
        let seen = env.observation();
        let (image, sensors) = (seen.picture().expect("a picture"), seen.numbers().expect("numbers"));
        let x = (30.0 + 10.0 * f64::from(sensors[0])) as usize;
        assert_eq!(sensors[1], f32::from(t));
        assert_eq!(image.pixel(x, 39), [255, 128, t], "drawn after the step, not before");
        assert_eq!(image.pixel(x + 1, 39), [0; 3]);
        let mut view = ImageBuf::black(60, 40);
        env.render(&mut view).expect("a picture");
        assert_eq!(view.as_image().rgb(), image.rgb());
        env.step(Action::Continuous(&[0.5])).expect("fine");
    }
    assert_ne!(env.observation(), copy.observation());

    // Replaces the picture in the observation, whose depth then has no picture.
    let env = try_drawn("Mixed").expect("it draws");
    assert_eq!(env.spec().observation, mixed(60, 40, false, 17));
    let left_out: Vec<&str> = env.gym().hello().left_out.iter().map(|[name, _]| &**name).collect();
    assert_eq!(left_out, ["mission", "screen", "depth"]);

    let said = try_drawn("Trivial").err().expect("it draws nothing").to_string();
    assert!(said.contains("it has no render mode rgb_array") && said.contains("leave out"), "{said}");
}

#[test]
fn wrappers_of_gymnasium_go_around_it() {
    if !python() {
        return;
    }
    let mut env = toy("Toy", &[("gym_wrapper", "foveate_toys.Times(factor=3)+foveate_toys.Times(2.0)")]);
    let mut bare = toy("Toy", &[]);
    for env in [&mut env, &mut bare] {
        env.reset(Some(5));
    }
    let step = |env: &mut dyn Env| env.step(Action::Continuous(&[0.25])).expect("fine").reward;
    assert_eq!(step(&mut env), 6.0 * step(&mut bare));
    let one = toy("Grey", &[("gym_wrapper", "FlattenObservation")]);
    assert_eq!(
        one.spec().observation,
        ObservationSpace::Vector { len: 288 },
        "Gymnasium's own by name alone"
    );
    let check = |text: &str, part: &str| {
        let said = try_toy("Toy", &[("gym_wrapper", text)]).0.expect_err(text).to_string();
        assert!(said.contains(part) && said.contains("write it as in minigrid.wrappers"), "{said}");
    };
    check("foveate_toys:Times(2)", "it cannot be read");
    check("foveate_toys.Times(x)", "its arguments must be plain values");
    check("foveate_toys.Nothing", "has no attribute 'Nothing'");
    check("no_such_module.A", "No module named 'no_such_module'");
    check("f()()", "it is no name with dots");
    check("os.system", "os.system is no class of wrappers, which all derive from gymnasium.Wrapper");
    check("gymnasium.Env", "gymnasium.Env is no class of wrappers");
    check("foveate_toys.Times.close", "No module named 'foveate_toys.Times'");
    check("foveate_toys.Times(**{'factor': 2})", "its arguments must be plain values");
}

/// A picture, optionally with depth and further numbers.
fn mixed(width: usize, height: usize, depth: bool, numbers: usize) -> ObservationSpace {
    let picture = PixelShape::rgb(width, height);
    let distances = ObservationSpace::Image(PixelShape { channels: 1, ..picture });
    let parts = [
        Some((IMAGE, ObservationSpace::Image(picture))),
        depth.then_some((DEPTH, distances)),
        Some((SENSORS, ObservationSpace::Vector { len: numbers })),
    ];
    ObservationSpace::Dict(parts.into_iter().flatten().map(|(name, part)| (name.to_owned(), part)).collect())
}

#[test]
fn stacks_of_pictures_arrive_frame_by_frame() {
    if !python() {
        return;
    }
    for (channels, bytes) in [(1, 4 * 18 * 16), (3, 4 * 18 * 16 * 3)] {
        let name = if channels == 1 { "Stack" } else { "ColourStack" };
        let mut env = toy(name, &[]);
        let shape = PixelShape { frames: 4, height: 18, width: 16, channels };
        assert_eq!(env.spec().observation, ObservationSpace::Image(shape));
        env.reset(Some(1));
        for t in 1..=4_u8 {
            env.step(Action::Discrete(0)).expect("fine");
            let seen = env.observation().image().expect("pictures");
            assert_eq!((seen.shape(), seen.bytes().len()), (shape, bytes));
            for (frame, age) in [3, 2, 1, 0].into_iter().enumerate() {
                let expect = t.saturating_sub(age);
                let frame = seen.frame(frame).expect("four of them");
                assert!(frame.iter().all(|&byte| byte == expect), "{name}, step {t}, {age} steps ago");
            }
        }
    }
}

#[test]
fn grey_pictures_and_choices() {
    if !python() {
        return;
    }
    let mut env = toy("Grey", &[]);
    let shape = PixelShape { frames: 1, height: 18, width: 16, channels: 1 };
    assert_eq!(env.spec().observation, ObservationSpace::Image(shape));
    assert_eq!(env.spec().action, ActionSpace::Discrete { n: 3 });
    env.reset(Some(1));
    for (choice, grey) in [(0, 64), (1, 128), (2, 191), (1, 255), (1, 0)] {
        env.step(Action::Discrete(choice)).expect("fine");
        let seen = env.observation().image().expect("a picture");
        assert_eq!(seen.shape(), shape);
        assert!(seen.bytes().iter().all(|&byte| byte == grey), "{grey}: {:?}", seen.bytes()[0]);
    }
    assert!(env.step(Action::Discrete(3)).expect_err("too many").to_string().contains("from 0 to 2"));
    assert!(env.step(Action::Continuous(&[0.0])).is_err());
}

#[test]
fn composed_actions_arrive_as_the_space_says() {
    if !python() {
        return;
    }
    let mut env = toy("Acts", &[]);
    let ActionSpace::Box { low, high } = &env.spec().action else { panic!("numbers") };
    assert_eq!(env.gym().hello().actions.len(), low.len());
    // Sorted by name: count, gear, lamps, push.
    assert_eq!(low, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0]);
    assert_eq!(high, &[9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
    env.reset(Some(1));
    env.step(Action::Continuous(&[3.6, 0.2, 0.9, 0.1, 0.7, 0.3, -0.25, 1.5])).expect("fine");
    let Fact::Named(facts) = env.state() else { panic!("named facts") };
    let text = format!("{facts:?}");
    for part in ["[Count(4)]", "Count(2)", "[Count(1), Count(0)]", "[Number(-0.25), Number(1.5)]"] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn what_cannot_be_made_says_what_to_do() {
    if !python() {
        return;
    }
    let check = |name: &str, options: &[(&str, &str)], part: &str| {
        let said = try_toy(name, options).0.expect_err("it must fail").to_string();
        assert!(said.contains(part) && said.contains(';') && !said.contains('\n'), "{said}");
    };
    check("Nothing", &[], "(path=. is this one), and name its module too");
    check("Trivial", &[("arg.unknown", "1")], "TypeError");
    check("Trivial", &[("arg.height", "5000")], "sides of 1 to 4096 pixels are possible");
    check("Trivial", &[("arg.height", "true")], "Error");
}

use super::*;

/// A game whose screen encodes the seed, the last choice and the step.
#[derive(Clone)]
struct Toy {
    spec: EnvSpec,
    screen: ImageBuf,
    steps: u8,
}

impl Toy {
    fn new(width: usize, height: usize) -> Self {
        let spec = EnvSpec {
            id: "toy".into(),
            observation: ObservationSpace::rgb(width, height),
            action: ActionSpace::Discrete { n: 3 },
            max_steps: None,
            fps: 1.0,
        };
        Toy { spec, screen: ImageBuf::black(width, height), steps: 0 }
    }

    fn paint(&mut self, rgb: [u8; 3]) {
        self.screen.rgb_mut().as_chunks_mut::<3>().0.fill(rgb);
    }
}

impl Env for Toy {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, seed: Option<u64>) {
        self.steps = 0;
        self.paint([seed.unwrap_or(99) as u8, 0, 0]);
    }

    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        let Action::Discrete(choice) = action else { panic!("the game takes choices") };
        self.steps += 1;
        self.paint([0, choice as u8, self.steps]);
        Ok(Step { reward: 1.0, terminated: self.steps == 5, truncated: self.steps == 5 })
    }

    fn observation(&self) -> Observation<'_> {
        Observation::rgb(self.screen.as_image())
    }

    fn render(&self, _: &mut ImageBuf) -> Result<(), EnvError> {
        panic!("the screen is enough")
    }

    fn state(&self) -> Fact {
        Fact::Count(self.steps.into())
    }

    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        action.fill(0.0);
        action[usize::from(self.steps % 3)] = 1.0;
        Ok(())
    }

    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        costs.clear();
        costs.extend([0.5, 0.25, 0.0]);
        Ok(())
    }

    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        points.clear();
        points.push(GazePoint { x: 0.25, y: 0.5, weight: 2.0 });
        Ok(())
    }

    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

fn world() -> TakeCover {
    TakeCover::new(Box::new(Toy::new(32, 24)), None).expect("it fits")
}

fn seen(env: &dyn Env) -> [u8; 3] {
    env.observation().picture().expect("it shows a picture").pixel(50, 50)
}

#[test]
fn one_number_becomes_a_button() {
    let mut env = world();
    env.reset(Some(7));
    assert_eq!(seen(&env), [7, 0, 0]);
    for (action, button) in
        [(0.3333, 0), (-0.3333, 0), (0.333_300_1, 1), (-0.333_300_1, 2), (1.0, 1), (-9.0, 2), (0.0, 0)]
    {
        env.reset(Some(7));
        let step = env.step(Action::Continuous(&[action])).expect("a good action");
        assert_eq!((seen(&env)[1], step.reward, step.is_over()), (button, 1.0, false), "{action}");
    }
    for (action, words) in [
        (Action::Continuous(&[f64::NAN]), "action[0] is NaN; take-cover takes finite"),
        (Action::Continuous(&[0.0, 1.0]), "2 numbers was given, take-cover takes 1"),
        (Action::Discrete(1), "take-cover does not take the action Discrete(1)"),
    ] {
        let said = env.step(action).expect_err(words).to_string();
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn what_the_game_shows_and_says_comes_through() {
    let mut env = world();
    env.reset(None);
    assert_eq!(seen(&env), [99, 0, 0]);
    let mut copy = None;
    for step in 1..=5_u8 {
        let over = env.step(Action::Continuous(&[0.5])).expect("it goes on");
        assert_eq!((over.terminated, over.truncated), (step == 5, step == 5));
        assert_eq!(seen(&env), [0, 1, step]);
        if step == 2 {
            copy = Some(env.boxed_clone());
        }
    }
    assert_eq!(env.state(), Fact::Count(5));
    let mut copy = copy.expect("it was made");
    assert_eq!((seen(&*copy), copy.state()), ([0, 1, 2], Fact::Count(2)));
    copy.step(Action::Continuous(&[-0.5])).expect("it goes on");
    assert_eq!(seen(&*copy), [0, 2, 3]);
    // The view for people shows the whole screen with its aspect ratio.
    let mut view = ImageBuf::black(64, 100);
    env.render(&mut view).expect("there is always a screen");
    assert_eq!(view.as_image().pixel(32, 50), [0, 1, 5]);
    assert_eq!(view.as_image().pixel(32, 10), [0, 0, 0]);
}

#[test]
fn an_expert_s_choice_becomes_one_number() {
    let mut env = world();
    env.reset(None);
    let mut action = [9.0];
    for expect in [0.0, 1.0, -1.0] {
        env.expert(&mut action).expect("the game has one");
        assert_eq!(action, [expect]);
        env.step(Action::Continuous(&action)).expect("it goes on");
    }
    let said = env.expert(&mut [0.0; 2]).expect_err("one number").to_string();
    assert!(said.contains("2 numbers was given, take-cover takes 1"), "{said}");
}

#[test]
fn choices_are_left_nothing_and_right() {
    let mut env = world().with_choices();
    for (choice, button) in [(0, 2), (1, 0), (2, 1)] {
        env.reset(Some(7));
        let step = env.step(Action::Discrete(choice)).expect("a choice");
        assert_eq!((seen(&env)[1], step.reward), (button, 1.0), "{choice}");
    }
    let said = env.step(Action::Discrete(3)).expect_err("three choices").to_string();
    assert!(said.contains("take-cover"), "{said}");
    env.reset(None);
    // The game's expert does nothing, then goes right, then left.
    let (mut scores, mut costs) = ([9.0; 3], vec![]);
    for expect in [1, 2, 0] {
        env.expert(&mut scores).expect("the game has one");
        let best = (0..3).max_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        assert_eq!(best, Some(expect), "{scores:?}");
        env.step(Action::Discrete(expect)).expect("it goes on");
    }
    env.costs(&mut costs).expect("the game says");
    assert_eq!(costs, [0.0, 0.5, 0.25]);
    let said = env.expert(&mut [0.0]).expect_err("three scores").to_string();
    assert!(said.contains("take-cover takes 3"), "{said}");
}

#[test]
fn costs_are_those_of_left_nothing_and_right() {
    let mut env = world();
    env.reset(None);
    let (mut costs, mut points) = (vec![9.0], vec![]);
    env.costs(&mut costs).expect("the game says");
    // The game's choices are nothing, right, left.
    assert_eq!(costs, [0.0, 0.5, 0.25]);
    env.gaze(&mut points).expect("the game says");
    assert_eq!(points, [GazePoint { x: 0.25, y: 0.5, weight: 2.0 }]);
}

#[test]
fn the_screen_is_made_smaller_as_pillow_does() {
    // 640 to 96 columns: the edge between a black and a white half is blurred over one target pixel on either
    // side.
    let mut game = Toy::new(640, 480);
    for row in game.screen.rgb_mut().chunks_exact_mut(640 * 3) {
        row[320 * 3..].fill(255);
    }
    let mut env = TakeCover::new(Box::new(game), None).expect("it fits");
    env.look();
    let picture = env.observation().picture().expect("a picture");
    assert_eq!((picture.width(), picture.height()), (96, 96));
    let row: Vec<u8> = (45..51).map(|x| picture.pixel(x, 17)[0]).collect();
    assert_eq!(row, [0, 0, 32, 223, 255, 255]);
}

#[test]
fn another_game_is_refused() {
    let refused = |change: fn(&mut EnvSpec)| {
        let mut game = Toy::new(32, 24);
        change(&mut game.spec);
        TakeCover::new(Box::new(game), None).map(|_| ()).expect_err("it does not fit").to_string()
    };
    let said = refused(|spec| spec.action = ActionSpace::Discrete { n: 4 });
    assert!(said.contains("three choices are due"), "{said}");
    let said = refused(|spec| spec.observation = ObservationSpace::Vector { len: 3 });
    assert!(said.contains("its game shows 3 numbers"), "{said}");
}

#[test]
fn what_may_be_asked_for() {
    use crate::registry::EnvRequest;
    let request = |picture: Option<&str>, variants: &[&str], options: &[(&str, &str)]| EnvRequest {
        id: ID.into(),
        picture: picture.map(str::to_owned),
        variants: variants.iter().map(|&text| text.to_owned()).collect(),
        options: options.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..EnvRequest::default()
    };
    let config = |picture, variants: &[&str], options: &[(&str, &str)]| {
        request::config(&request(picture, variants, options)).map_err(|error| error.to_string())
    };
    let plain = config(None, &[], &[]).expect("fine");
    assert_eq!((plain.picture.screen(), plain.variants.change_map()), ([640, 480], false));
    let all = ["higher-walls+floor-texture:texture=brick1", "hovering-text"];
    let changed = config(Some("fast"), &all, &[("timeout", "9")]).expect("fine");
    let expect = variants::Variants {
        higher_walls: Some(404),
        floor_texture: Some("BRICK1".into()),
        hovering_text: true,
    };
    assert_eq!((changed.picture.screen(), changed.variants), ([200, 150], expect));
    assert_eq!(changed.process["timeout"], "9");
    let choices = config(None, &[], &[("actions", "choices")]).expect("fine");
    assert_eq!((choices.choices, choices.process.len()), (true, 0));
    assert_eq!(config(None, &[], &[("actions", "number")]).as_ref(), Ok(&plain));
    assert_eq!(config(None, &["original"], &[]), Ok(plain));
    for (picture, variants, options, words) in [
        (Some("classic"), &[][..], &[][..], "picture \"classic\"; choose from: exact, near, fast"),
        (None, &["bar"], &[], "variant \"bar\"; choose from: higher-walls, floor-texture, hovering-text"),
        (None, &["higher-walls:size=3"], &[], "parameter \"size\"; choose from: height"),
        (None, &["hovering-text:size=3"], &[], "parameter \"size\"; choose from: none"),
        (None, &["higher-walls:height=9"], &[], "\"9\" must be a number from 80 to 2000"),
        (None, &["floor-texture:texture=A\"B"], &[], "must be 1 to 8 letters"),
        (None, &["floor-texture:texture=TOOLONGNAME"], &[], "must be 1 to 8 letters"),
        (None, &["higher-walls", "higher-walls"], &[], "higher-walls is there twice"),
        (None, &[], &[("continuous", "false")], "option \"continuous\"; choose from: actions, timeout"),
        (None, &[], &[("actions", "five")], "actions \"five\"; choose from: number, choices"),
    ] {
        let said = config(picture, variants, options).expect_err(words);
        assert!(said.contains(words), "{said}");
    }
    for info in variants::catalogue() {
        let tuned = info.parameters.iter().map(|p| format!("{}:{}={}", info.name, p.name, p.default));
        for text in std::iter::once(info.name.to_owned()).chain(tuned) {
            let by_name = config(None, &[info.name], &[]).expect("it is in the list");
            assert_eq!(config(None, &[&text], &[]).expect("its default"), by_name, "{text}");
        }
    }
}

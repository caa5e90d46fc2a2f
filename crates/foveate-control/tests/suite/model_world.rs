//! A user's own model as a world. `FOVEATE_WORLDS_PYTHON` names a Python with mujoco, whose library is used.

use foveate_control::{Expression, ModelConfig, ModelError, ModelWorld, Shown};
use foveate_core::{Action, ActionSpace, Env, EnvError, ImageBuf};
use foveate_mujoco::{Library, Model, Search};

/// A pendulum with a motor that has a range and one that has none, and terrain that cannot be drawn.
const PENDULUM: &str = r#"<mujoco model="pendulum">
  <option timestep="0.01"/>
  <asset><hfield name="hills" nrow="2" ncol="2" size="1 1 .1 .1" elevation="0 1 1 0"/></asset>
  <worldbody>
    <light pos="0 0 3"/>
    <camera name="front" pos="0 -3 1" xyaxes="1 0 0 0 0 1"/>
    <camera name="above" pos="0 0 4"/>
    <geom type="hfield" hfield="hills" pos="0 0 -2"/>
    <body name="pole" pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping=".01"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.6" size=".12" rgba=".8 .2 .2 1"/>
      <site name="tip" pos="0 0 -.6"/>
    </body>
    <body name="slider" pos="0 1 0">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="sphere" size=".1"/>
    </body>
  </worldbody>
  <actuator>
    <motor joint="hinge" ctrlrange="-.5 2" ctrllimited="true"/>
    <motor joint="slide"/>
  </actuator>
  <sensor>
    <framepos name="tip" objtype="site" objname="tip"/>
    <jointvel name="speed" joint="hinge"/>
  </sensor>
</mujoco>"#;

fn library() -> Option<Library> {
    let python = foveate_toy::needs::worlds_python()?;
    let found = Search { library: None, python: Some(python) }.find().expect("mujoco is installed there");
    Some(Library::open(&found.path).expect("the pinned version"))
}

fn formula(text: &str) -> Expression {
    Expression::parse(text).expect("a formula")
}

fn world(library: &Library, config: ModelConfig) -> Result<ModelWorld, ModelError> {
    let model = Model::from_xml(library, "pendulum", PENDULUM).expect("a model");
    ModelWorld::new("mjcf:pendulum.xml", &model, config)
}

#[test]
fn a_model_is_a_world() {
    let Some(library) = library() else { return };
    let config = ModelConfig {
        shown: Shown::Both,
        size: [48, 32],
        repeat: 2,
        max_steps: 30,
        reward: Some(formula("tip[2] + 1000 * time - 0.5 * effort")),
        ..ModelConfig::default()
    };
    let mut env = world(&library, config.clone()).expect("a world");
    let bounds = ActionSpace::Box { low: vec![-0.5, -1.0], high: vec![2.0, 1.0] };
    assert_eq!(env.spec().action, bounds);
    assert!((env.spec().fps - 50.0).abs() < 1e-9 && env.spec().max_steps == Some(30));
    assert_eq!(env.left_out().expect("a picture"), 1, "the terrain");
    env.reset(Some(1));
    let start = env.observation().part("sensors").and_then(|part| part.numbers().map(<[f32]>::to_vec));
    let start = start.expect("numbers");
    assert!(start.len() == 4 && start[..2].iter().all(|x| x.abs() <= 0.01) && start[..2] != [0.0; 2]);
    let picture = env.observation().image().expect("a picture").bytes().to_vec();
    assert!(picture.chunks_exact(3).any(|rgb| rgb[0] / 2 > rgb[2].max(10)), "the red pole is seen");
    let step = env.step(Action::Continuous(&[1.0, 0.0])).expect("an action");
    let tip = step.reward - 20.0 + 0.25;
    assert!((0.39..0.41).contains(&tip), "20 ms later the tip still hangs, at {tip}");
    // A copy goes on like the original.
    let mut copy = env.boxed_clone();
    for number in 2..=30 {
        let action = [0.5, (f64::from(number)).sin()];
        let (mine, other) = (env.step(Action::Continuous(&action)), copy.step(Action::Continuous(&action)));
        assert_eq!(mine, other);
        assert!(env.observation() == copy.observation());
        assert_eq!(mine.expect("an action").truncated, number == 30);
    }
    assert!(matches!(env.step(Action::Continuous(&[0.0; 2])), Err(EnvError::NeedsReset { .. })));
    // Another camera shows another picture; people see any size.
    let above = ModelConfig { camera: Some("above".into()), ..config };
    let mut above = world(&library, above).expect("a world");
    above.reset(Some(1));
    assert!(above.observation().image().expect("a picture").bytes() != picture);
    let mut view = ImageBuf::black(61, 47);
    above.render(&mut view).expect("a picture");
    assert!(view.rgb().iter().any(|&byte| byte > 40));
}

#[test]
fn episodes_start_in_a_keyframe_and_quaternions_are_unit_ones() {
    let Some(library) = library() else { return };
    let xml = r#"<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size=".1"/></body>
        <body><joint name="hinge" axis="0 1 0"/><geom size=".1" pos="1 0 0"/></body></worldbody>
        <actuator><motor joint="hinge"/></actuator>
        <sensor><jointpos name="robot/hinge-angle" joint="hinge"/></sensor>
        <keyframe><key qpos="0 0 1 1 0 0 0 0"/><key name="up" qpos="0 0 3 3 0 4 0 0.5" qvel="0 0 0 0 0 0 2"/></keyframe></mujoco>"#;
    let model = Model::from_xml(&library, "toy", xml).expect("a model");
    let start = |keyframe: Option<&str>, noise: f64| {
        let config = ModelConfig {
            keyframe: keyframe.map(Into::into),
            noise,
            reward: Some(formula("'robot/hinge-angle'[0]")),
            ..ModelConfig::default()
        };
        let mut env = ModelWorld::new("mjcf:toy.xml", &model, config).expect("a world");
        env.reset(Some(3));
        let numbers = env.observation().numbers().expect("numbers").to_vec();
        let reward = env.step(Action::Continuous(&[0.0])).expect("an action").reward;
        (numbers, reward)
    };
    for noise in [0.0, 0.3] {
        for keyframe in [None, Some("0"), Some("1"), Some("up")] {
            let (numbers, _) = start(keyframe, noise);
            let norm: f32 = numbers[3..7].iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-6, "{keyframe:?}: {numbers:?}");
        }
    }
    let (numbers, reward) = start(Some("up"), 0.0);
    assert_eq!(numbers[..8], [0.0, 0.0, 3.0, 0.6, 0.0, 0.8, 0.0, 0.5]);
    assert_eq!(numbers[14], 2.0, "its velocities, too");
    assert!((0.5..0.6).contains(&reward), "{reward}");
    assert_eq!(start(Some("1"), 0.0), (numbers, reward));
    assert_eq!(start(None, 0.0).0[2], 1.0);
    for missing in ["2", "down", "-1", ""] {
        let config = ModelConfig { keyframe: Some(missing.into()), ..ModelConfig::default() };
        let said = ModelWorld::new("mjcf:toy.xml", &model, config).err().expect(missing).to_string();
        assert!(said == format!("toy has no keyframe {missing:?}"), "{said}");
    }
}

#[test]
fn a_formula_ends_episodes() {
    let Some(library) = library() else { return };
    let config = ModelConfig { end: Some(formula("time > 0.095")), noise: 0.0, ..ModelConfig::default() };
    let mut env = world(&library, config).expect("a world");
    env.reset(None);
    let over: Vec<bool> = (0..10)
        .map(|_| {
            let step = env.step(Action::Continuous(&[0.0; 2])).expect("an action");
            assert!(!step.truncated && step.reward == 0.0);
            step.terminated
        })
        .collect();
    assert_eq!(over.iter().position(|&over| over), Some(9));
}

#[test]
fn what_is_wrong_is_one_line() {
    let Some(library) = library() else { return };
    let refused = |config: ModelConfig, part: &str| {
        let said = world(&library, config).err().expect(part).to_string();
        assert!(said.contains(part) && said.lines().count() == 1, "{said}");
    };
    let plain = ModelConfig::default;
    refused(ModelConfig { reward: Some(formula("height")), ..plain() }, "no sensor");
    refused(ModelConfig { end: Some(formula("tip[3]")), ..plain() }, "sensor \"tip\" has 3 numbers");
    refused(ModelConfig { repeat: 0, ..plain() }, "repeat = 0 is not between 1 and 1000");
    refused(ModelConfig { max_steps: 0, ..plain() }, "max_steps = 0 is not between 1 and 1000000");
    let pixels = ModelConfig { shown: Shown::Pixels, ..plain() };
    refused(ModelConfig { camera: Some("side".into()), ..pixels.clone() }, "no camera \"side\"");
    refused(ModelConfig { size: [0, 9], ..pixels.clone() }, "0x9");
    for (from, to, part) in [
        (
            "timestep=\"0.01\"",
            "timestep=\"nan\"",
            "pendulum: a time step of NaN s; it must be finite and above 0",
        ),
        ("timestep=\"0.01\"", "timestep=\"-1\"", "a time step of -1 s"),
        (
            "ctrlrange=\"-.5 2\"",
            "ctrlrange=\"-.5 inf\"",
            "the range of actuator 0 is -0.5 to inf; both must be finite",
        ),
    ] {
        let model =
            Model::from_xml(&library, "pendulum", &PENDULUM.replace(from, to)).expect("MuJoCo takes it");
        let said = ModelWorld::new("mjcf:pendulum.xml", &model, plain()).err().expect(part).to_string();
        assert!(said.contains(part), "{said}");
    }
    // Positions that are not finite are an error of the reset, and of the step that follows.
    let lost = PENDULUM.replace(
        "<body name=\"slider\" pos=\"0 1 0\">",
        "<body><freejoint/><geom size='.1'/></body><body name=\"slider\">",
    );
    let lost = lost.replace("<body><freejoint/>", "<body pos='0 0 nan'><freejoint/>");
    let model = Model::from_xml(&library, "pendulum", &lost).expect("MuJoCo takes it");
    let mut env = ModelWorld::new("mjcf:pendulum.xml", &model, plain()).expect("a world");
    env.reset(Some(1));
    let said = env.reset_error().expect("no number").to_string();
    assert!(said.contains("mjcf:pendulum.xml: reset: positions[") && said.contains("is NaN"), "{said}");
    assert_eq!(env.step(Action::Continuous(&[0.0; 2])).expect_err("the same").to_string(), said);
    let bare = "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body></worldbody></mujoco>";
    let model = Model::from_xml(&library, "bare", bare).expect("a model");
    let said = ModelWorld::new("mjcf:bare.xml", &model, plain()).err().expect("no motors").to_string();
    assert!(said.contains("has no actuators"), "{said}");
    let moved = bare.replace("</worldbody>", "</worldbody><actuator><motor site='s' gear='1'/></actuator>");
    let moved = moved.replace("<geom size='.1'/>", "<geom size='.1'/><site name='s'/>");
    let model = Model::from_xml(&library, "moved", &moved).expect("a model");
    let said = ModelWorld::new("mjcf:moved.xml", &model, pixels).err().expect("no camera").to_string();
    assert!(said.contains("has no camera"), "{said}");
    // A formula without a value, and a simulation that explodes, are errors of the step.
    let mut env = world(&library, ModelConfig { reward: Some(formula("1 / (speed * 0)")), ..plain() })
        .expect("a world");
    env.reset(Some(1));
    let said = env.step(Action::Continuous(&[0.0; 2])).expect_err("no number").to_string();
    assert!(said.contains("step 1: the formula of the reward gives"), "{said}");
    let mut env = world(&library, ModelConfig { repeat: 1000, ..plain() }).expect("a world");
    env.reset(Some(1));
    let exploded = (0..20).find_map(|_| env.step(Action::Continuous(&[0.0, 1e300])).err());
    let said = exploded.expect("a force beyond all bounds").to_string();
    assert!(said.contains("diverged") && said.lines().count() == 1, "{said}");
    env.reset(Some(1));
    env.step(Action::Continuous(&[0.0; 2])).expect("it goes on after a reset");
}

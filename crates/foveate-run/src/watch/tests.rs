use super::*;
use foveate_core::{
    ActContext, Action, ActionSpace, Attention, Decision, EnvError, EnvSpec, Fact, ImageBuf, Observation,
    ObservationSpace, PatchGrid, Policy, PolicyAgent, PolicyError, Seed, Selected, Step, TensorShape,
};
use foveate_toy::{ToyWorld, toy_agent};

/// A world of one grey square: brighter in every step, over after `length` steps, reward 1 per step.
#[derive(Clone)]
struct Dawn {
    spec: EnvSpec,
    image: ImageBuf,
    length: u8,
    step: u8,
    resets: u8,
}

impl Dawn {
    fn of(length: u8) -> Self {
        let spec = EnvSpec {
            id: "dawn".into(),
            observation: ObservationSpace::rgb(24, 24),
            action: ActionSpace::Discrete { n: 3 },
            max_steps: None,
            fps: 20.0,
        };
        Dawn { spec, image: ImageBuf::black(24, 24), length, step: 0, resets: 0 }
    }

    fn paint(&mut self) {
        let grey = self.step * 8 + self.resets;
        self.image.rgb_mut().fill(grey);
    }
}

impl Env for Dawn {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, seed: Option<u64>) {
        self.resets = if seed.is_some() { 0 } else { self.resets + 1 };
        self.step = 0;
        self.paint();
    }
    fn step(&mut self, action: Action<'_>) -> Result<Step, EnvError> {
        assert_eq!(action, Action::Discrete(1), "the agent always prefers 1");
        self.step += 1;
        self.paint();
        Ok(Step { reward: 1.0, terminated: self.step == self.length, truncated: false })
    }
    fn observation(&self) -> Observation<'_> {
        Observation::rgb(self.image.as_image())
    }
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view.rgb_mut().fill(self.step * 8);
        Ok(())
    }
    fn state(&self) -> Fact {
        Fact::Count(self.step.into())
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

/// Attends to the first patch and prefers choice 1; counts its decisions and rejects the same brightness
/// twice.
#[derive(Clone)]
struct Looker;

impl Policy for Looker {
    type Memory = (Vec<f64>, Vec<f32>, Option<u8>);
    fn memory(&self) -> Self::Memory {
        (vec![0.0, 7.0, 7.0], vec![0.0; 9], None)
    }
    fn reset(&self, memory: &mut Self::Memory, _: Seed) {
        memory.2 = None;
    }
    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut Self::Memory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let Some(image) = observation.picture() else { panic!("a picture is due") };
        let brightness = image.rgb()[0];
        assert_ne!(memory.2.replace(brightness), Some(brightness), "looked twice at one observation");
        let chosen = Selected { tokens: &[0], ranks: &[0] };
        let attention = Attention::patches(PatchGrid::tile(24, 24, 8, 8)?, &memory.1, chosen)?;
        Ok(Decision::new(&memory.0).with_attention(attention))
    }
    fn tensors(&self) -> Vec<TensorShape> {
        Vec::new()
    }
    fn params(&self) -> Vec<f32> {
        Vec::new()
    }
    fn set_params(&mut self, _: &[f32]) -> Result<(), PolicyError> {
        Ok(())
    }
}

fn labels() -> Labels {
    Labels { env: "dawn".into(), picture: "plain".into(), variant: String::new(), weights: "none".into() }
}

struct Filmed {
    result: Result<WatchReport, RunError>,
    bytes: Option<Vec<u8>>,
    left_over: usize,
    progress: Vec<usize>,
}

fn shoot(env: &dyn Env, agent: &dyn Agent, name: &str, change: impl FnOnce(&mut WatchRequest<'_>)) -> Filmed {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join(name);
    let mut request = WatchRequest {
        env,
        agent,
        labels: labels(),
        seed: 1,
        episode: 0,
        steps: None,
        every: 1,
        size: Some((320, 162)),
        out: &out,
        at: None,
        effects: false,
    };
    change(&mut request);
    let mut progress = Vec::new();
    let result = run(&request, &Stop::default(), &mut |step| progress.push(step));
    let bytes = std::fs::read(&out).ok();
    let files = std::fs::read_dir(folder.path()).expect("the test's own folder").count();
    Filmed { result, left_over: files - usize::from(bytes.is_some()), bytes, progress }
}

fn dawn(length: u8, name: &str, change: impl FnOnce(&mut WatchRequest<'_>)) -> Filmed {
    shoot(&Dawn::of(length), &PolicyAgent::new(Looker), name, change)
}

#[track_caller]
fn refused(filmed: &Filmed, expect: &str) {
    let message = filmed.result.as_ref().expect_err("must be refused").to_string();
    assert!(message.contains(expect), "{message}");
    assert_eq!((filmed.bytes.as_ref(), filmed.left_over), (None, 0), "nothing is written");
}

/// Brightness in the middle of the world's picture of every PNG.
fn world_of(filmed: &Filmed) -> u8 {
    let file = filmed.bytes.as_ref().expect("a file");
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().expect("a PNG file");
    let mut rgb = vec![0; reader.output_buffer_size().expect("small")];
    reader.next_frame(&mut rgb).expect("one frame");
    rgb[(70 * 320 + 100) * 3]
}

#[test]
fn a_film_shows_the_reset_and_every_step() {
    for (steps, expect, ended) in
        [(None, 7, true), (Some(4), 4, false), (Some(0), 0, false), (Some(99), 7, true)]
    {
        for (name, magic) in [("a.gif", &b"GIF89a"[..]), ("a.mp4", b"\0\0\0\x20ftypisom")] {
            let filmed = dawn(7, name, |r| r.steps = steps);
            let report = filmed.result.expect("films");
            assert_eq!(
                (report.steps, report.score, report.ended),
                (expect, expect as f64, ended),
                "{steps:?}"
            );
            assert_eq!(report.frames, expect + 1);
            assert_eq!(filmed.progress, (0..=expect).collect::<Vec<_>>());
            let bytes = filmed.bytes.expect("a file");
            assert_eq!(bytes.len() as u64, report.bytes);
            assert!(bytes.starts_with(magic));
            assert_eq!(filmed.left_over, 0);
        }
    }
}

#[test]
fn a_picture_shows_the_step_that_was_asked_for() {
    for (at, steps, expect) in
        [(Some(0), None, 0), (Some(3), None, 3), (Some(9), None, 9), (None, None, 9), (None, Some(5), 5)]
    {
        let filmed = dawn(9, "a.PNG", |r| (r.at, r.steps) = (at, steps));
        assert_eq!(
            filmed.result.as_ref().map(|r| r.steps).ok(),
            Some(usize::from(expect)),
            "{at:?} {steps:?}"
        );
        assert_eq!(world_of(&filmed), expect * 8);
    }
}

#[test]
fn effects_are_drawn_where_they_can_be_measured_and_change_no_episode() {
    let request = foveate_envs::registry::EnvRequest {
        id: "car-racing".into(),
        picture: Some("fast".into()),
        ..Default::default()
    };
    let env = crate::worlds::make(request).expect("a world");
    let agent = crate::champion::champion("car-racing").expect("there is one").0.agent().expect("it fits");
    let filmed = |effects| shoot(&*env, &*agent, "a.png", |r| (r.at, r.effects) = (Some(30), effects));
    let [without, with] = [false, true].map(filmed);
    assert_ne!(without.bytes, with.bytes);
    assert_eq!(without.result.expect("a picture").score, with.result.expect("a picture").score);
    // This agent cannot be opened: there is nothing to measure.
    let blind = |effects| dawn(7, "a.png", |r| (r.at, r.effects) = (Some(3), effects)).bytes.expect("a file");
    assert_eq!(blind(true), blind(false));
}

#[test]
fn later_episodes_are_reached_by_resets() {
    let picture =
        |episode| dawn(9, "a.png", |r| (r.at, r.episode) = (Some(2), episode)).bytes.expect("a file");
    assert_ne!(picture(0), picture(3), "the observation is three levels brighter");
    assert_eq!(picture(3), picture(3));
}

#[test]
fn worlds_without_a_view_and_agents_without_attention_are_filmed_too() {
    let filmed = shoot(&ToyWorld::default(), &toy_agent(-0.3), "toy.gif", |_| {});
    assert!(filmed.result.expect("films").frames > 1);
}

/// A grid world is filmed with maps of where cells attend to; they depend on the weights.
#[test]
fn a_grid_world_is_filmed_with_maps_of_attention() {
    let request = foveate_envs::registry::EnvRequest { id: "door-key-5x5".into(), ..Default::default() };
    let env = crate::worlds::make(request).expect("a world");
    let picture = |name: &str, seed: u64| {
        let settings =
            (foveate_agents::registry::find(name).expect("it exists").fit)(env.spec(), &[[0.0, 1.0]; 7]);
        let init = foveate_agents::registry::Init::Torch;
        let params = foveate_agents::registry::initial_params(name, &settings, init, Seed::root(seed));
        let mut agent = foveate_agents::registry::make(name, &settings).expect("an agent");
        agent.set_params(&params.expect("numbers")).expect("its own");
        let filmed = shoot(&*env, &*agent, "a.png", |request| request.at = Some(0));
        filmed.result.as_ref().expect("fine");
        filmed.bytes.expect("a file")
    };
    assert_eq!(picture("relational", 1), picture("relational", 1));
    assert_ne!(picture("relational", 1), picture("relational", 2), "other weights, other maps");
    assert_ne!(picture("relational", 1), picture("random-actions", 1), "no attention: the view");
}

#[test]
fn wrong_requests_say_what_to_do() {
    refused(&dawn(9, "a.avi", |_| {}), ".mp4 or .gif");
    refused(&dawn(9, "noending", |_| {}), ".png");
    refused(&dawn(9, "a.gif", |r| r.at = Some(3)), "name a .png");
    refused(&dawn(9, "a.png", |r| r.at = Some(10)), "choose one from 0 to 9 with the setting `at`");
    refused(
        &dawn(9, "a.png", |r| (r.at, r.steps) = (Some(5), Some(4))),
        "choose one from 0 to 4 with the setting `at`",
    );
    refused(&dawn(9, "a.gif", |r| r.size = Some((20, 20))), "320x160");
    refused(&dawn(9, "nofolder/a.gif", |_| {}), "create the folder");
    refused(
        &shoot(&ToyWorld::default(), &toy_agent(f32::NAN), "a.gif", |_| {}),
        "step 1: the agent's action[0]",
    );
    // Without a population there is no genome: the message names the weights.
    refused(
        &shoot(&ToyWorld::default(), &toy_agent(f32::NAN), "a.gif", |r| {
            r.labels.weights = "w.safetensors".into();
        }),
        "w.safetensors, episode 0 (seed",
    );
    let nan = [1.0, f64::NAN];
    refused(&shoot(&ToyWorld::paying(&nan), &toy_agent(0.0), "a.gif", |_| {}), "step 2: the reward is NaN");
}

#[test]
fn the_summary_is_one_line() {
    let report =
        |bytes| WatchReport { file: "a.gif".into(), bytes, frames: 4, steps: 3, score: 2.25, ended: true };
    assert_eq!(report(95_106).to_string(), "a.gif: 96 kB; 3 steps, to the end; score 2.250");
    assert_eq!(report(4_123_456).to_string(), "a.gif: 4.1 MB; 3 steps, to the end; score 2.250");
}

#[test]
fn asked_to_stop_it_still_finishes_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("a.gif");
    let (env, agent, stop) = (Dawn::of(30), PolicyAgent::new(Looker), Stop::default());
    let request = WatchRequest {
        env: &env,
        agent: &agent,
        labels: labels(),
        seed: 1,
        episode: 0,
        steps: None,
        every: 1,
        size: Some((320, 162)),
        out: &out,
        at: None,
        effects: false,
    };
    let asker = stop.clone();
    let report = run(&request, &stop, &mut |step| {
        if step == 5 {
            asker.ask();
        }
    });
    assert_eq!(report.map(|r| (r.steps, r.ended)).ok(), Some((5, false)));
    let file = std::fs::read(&out).expect("a file");
    assert!(file.starts_with(b"GIF89a") && file.ends_with(b";"));
}

#[test]
fn every_second_step_and_always_the_last() {
    for (length, every, frames) in [(6, 2, 4), (7, 2, 5), (7, 1, 8), (7, 20, 2)] {
        let filmed = dawn(length, "a.gif", |request| request.every = every);
        let report = filmed.result.as_ref().expect("fine");
        assert_eq!((report.frames, report.steps), (frames, usize::from(length)));
        assert_eq!(filmed.progress.len(), 1 + usize::from(length));
    }
}

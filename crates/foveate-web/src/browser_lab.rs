//! The lab of a page without a server: a few scenes, one session at a time, weight files that its visitor opens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use foveate_agents::registry::{self, Init, initial_params};
use foveate_agents::stored_agent::StoredAgent;
use foveate_core::tensor_file::TensorFile;
use foveate_core::{ActContext, Agent, Env, PolicyError, Seed, one_line};
use foveate_envs::registry::{Champion, EnvRequest, WorldDescriptor};
use foveate_envs::shift::Plan;
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_envs::{car_racing, cartpole_swingup, minigrid};
use serde::Deserialize;
use serde_json::json;

use crate::session::Session;
use crate::setup::{LabAgent, LabSetup, Scenes, SessionError};

/// Largest weight file that is read, in bytes.
pub(super) const MAX_WEIGHTS: usize = 16 << 20;
/// The option that adds wrappers to a world.
const WRAP: &str = "wrap";

/// A world with the agent that acts in it first.
struct Scene {
    name: &'static str,
    world: &'static WorldDescriptor,
    champion: &'static str,
    /// Shifts that are on at the start.
    shifts: &'static [&'static str],
}

/// All scenes; a session begins in the first.
static SCENES: [Scene; 5] = [
    Scene { name: "car-racing", world: &car_racing::DESCRIPTOR, champion: "car-racing", shifts: &[] },
    Scene {
        name: "cartpole",
        world: &cartpole_swingup::DESCRIPTOR,
        champion: "cartpole-swingup-harder",
        shifts: &["shuffle:5"],
    },
    Scene { name: "door-key", world: &minigrid::DESCRIPTORS[0], champion: "door-key-5x5", shifts: &[] },
    Scene {
        name: "large-door-key",
        world: &minigrid::DESCRIPTORS[3],
        champion: "door-key-16x16",
        shifts: &[],
    },
    Scene {
        name: "shuffled-car-racing",
        world: &car_racing::DESCRIPTOR,
        champion: "car-racing-attention-neuron",
        shifts: &["shuffle:5"],
    },
];

/// Name and label of all scenes.
const LABELS: &[(&str, &str)] = &[
    ("car-racing", "CarRacing: AttentionAgent"),
    ("cartpole", "CartPole: sensors in any order"),
    ("door-key", "DoorKey 5×5: relations"),
    ("large-door-key", "DoorKey 16×16: relations"),
    ("shuffled-car-racing", "CarRacing: patches in any order"),
];

/// What a page asks for beside the commands of its session.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
enum SceneCommand {
    /// Changes to a scene.
    Open { scene: String },
}

/// Sessions in worlds that need no file, no library and no process, one after the other.
pub struct BrowserLab {
    session: Session,
    messages: Vec<String>,
}

impl BrowserLab {
    /// A session in the first scene.
    ///
    /// # Errors
    /// When a bundled agent is broken.
    pub fn new() -> Result<Self, SessionError> {
        Ok(BrowserLab { session: Session::new(Arc::new(setup(&SCENES[0], None)?))?, messages: vec![] })
    }

    /// The session of the present scene.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Executes the command in `text`, or answers with an error message.
    pub fn handle(&mut self, text: &str) {
        match serde_json::from_str(text) {
            Ok(SceneCommand::Open { scene }) => {
                let opened = find(&scene).and_then(|scene| setup(scene, None));
                self.begin(opened);
            }
            Err(_) => self.session.handle(text),
        }
    }

    /// Lets the agent of a weight file act in the world that the file was made for, if that is one of ours, else in the present
    /// one; answers with an error message if that cannot be.
    pub fn add_weights(&mut self, name: &str, bytes: &[u8]) {
        let name = one_line(&name.chars().take(60).collect::<String>());
        let present = self.session.setup();
        let opened = read_weights(bytes).and_then(|stored| {
            let (world, request) = match noted_world(&stored) {
                Some(noted) => noted,
                None => match present.descriptor {
                    Some(world) => (world, present.world.clone()),
                    None => (SCENES[0].world, plain(SCENES[0].world)),
                },
            };
            let scene = SCENES.iter().find(|scene| scene.world.name == world.name).unwrap_or(&SCENES[0]);
            let scene = Scene { world, shifts: &[], ..*scene };
            setup(&scene, Some((name.clone(), stored, request)))
        });
        let opened = opened.map_err(|error| SessionError::BadRequest { why: format!("{name}: {error}") });
        self.begin(opened);
    }

    /// Begins a session, or says why not.
    fn begin(&mut self, setup: Result<LabSetup, SessionError>) {
        match setup.and_then(|setup| Session::new(Arc::new(setup))) {
            Ok(session) => {
                self.messages.extend(self.session.take_messages());
                self.session = session;
            }
            Err(error) => self.session.send_error(&error.to_string()),
        }
    }

    /// Advances by `elapsed`, at maximum speed by `most_steps`. Returns whether there is a frame to draw.
    pub fn advance(&mut self, elapsed: Duration, most_steps: u32) -> bool {
        if !self.session.has_room() {
            // Nobody looks.
            self.session.skip_time();
            return false;
        }
        let mut left = most_steps;
        self.session.advance(elapsed, &mut || {
            left = left.saturating_sub(1);
            left > 0
        })
    }

    /// The current frame.
    pub fn frame(&mut self) -> Vec<u8> {
        self.session.frame()
    }

    /// Messages for the page, a JSON list of texts.
    pub fn take_messages(&mut self) -> String {
        self.messages.extend(self.session.take_messages());
        json!(std::mem::take(&mut self.messages)).to_string()
    }

    /// The film that the page asked for, an MP4 file; `None` when it asked for none, or it cannot be made, which a message says.
    pub fn take_film(&mut self) -> Option<Vec<u8>> {
        let made = self.session.take_film()?.make();
        made.map_err(|why| self.session.send_error(&why)).ok()
    }
}

fn find(name: &str) -> Result<&'static Scene, SessionError> {
    SCENES.iter().find(|scene| scene.name == name).ok_or_else(|| {
        let known: Vec<&str> = SCENES.iter().map(|scene| scene.name).collect();
        SessionError::BadRequest {
            why: format!("no scene is called {name:?}; there are {}", known.join(", ")),
        }
    })
}

/// All worlds that need no file, no library and no process.
fn worlds() -> impl Iterator<Item = &'static WorldDescriptor> {
    [&car_racing::DESCRIPTOR, &cartpole_swingup::DESCRIPTOR].into_iter().chain(&minigrid::DESCRIPTORS)
}

/// The unmodified world.
fn plain(world: &WorldDescriptor) -> EnvRequest {
    EnvRequest { id: world.name.into(), ..EnvRequest::default() }
}

/// The world that the weights were made for, if it is one of ours.
fn noted_world(stored: &StoredAgent) -> Option<(&'static WorldDescriptor, EnvRequest)> {
    #[derive(Deserialize)]
    struct Noted {
        id: String,
        picture: Option<String>,
        variants: Vec<String>,
        options: BTreeMap<String, String>,
    }
    let Noted { id, picture, variants, options } = serde_json::from_str(stored.about.get("world")?).ok()?;
    let world = worlds().find(|world| world.name == id)?;
    Some((world, EnvRequest { id, picture, variants, options, ..EnvRequest::default() }))
}

fn read_weights(bytes: &[u8]) -> Result<StoredAgent, SessionError> {
    if bytes.len() > MAX_WEIGHTS {
        let why = format!("{} bytes; at most {MAX_WEIGHTS} are read; choose smaller weights", bytes.len());
        return Err(SessionError::BadRequest { why });
    }
    Ok(StoredAgent::from_tensors(TensorFile::from_bytes(bytes)?)?)
}

/// The world of `scene` with its champions and an untrained agent; first the visitor's own, in its world, if there is one.
fn setup(scene: &Scene, own: Option<(String, StoredAgent, EnvRequest)>) -> Result<LabSetup, SessionError> {
    let champions = scene.world.champions;
    let first = champions.iter().find(|champion| champion.name == scene.champion);
    let others = champions.iter().filter(|champion| champion.name != scene.champion);
    let mut stored: Vec<(String, StoredAgent)> = vec![];
    let mut world = plain(scene.world);
    for champion in first.into_iter().chain(others) {
        let file = read_weights(champion.weights)?;
        if champion.name == scene.champion {
            world = acts_in(champion, &file, scene.world);
        }
        stored.push((format!("{} champion", champion.name), file));
    }
    if let Some((name, file, request)) = own {
        stored.insert(0, (name, file));
        world = request;
    }
    let env = make(world.clone())?;
    let fits = |file: &StoredAgent| sees(&*env, &mut *build(file)?);
    let Some((_, chosen)) = stored.first() else {
        return Err(SessionError::BadRequest { why: "this scene has no agent; open a weight file".into() });
    };
    fits(chosen)?;
    let params = initial_params(&chosen.agent, &chosen.config, Init::Torch, Seed::root(0))?;
    let untrained = StoredAgent { params, ..chosen.clone() };
    // Others may see the world through other wrappers.
    stored.retain(|(_, file)| fits(file).is_ok());
    stored.push(("untrained".to_owned(), untrained));
    let agents = stored.into_iter().map(|(name, file)| {
        let patches = build(&file)?.patches();
        Ok(LabAgent { name, patches, make: Box::new(move || build(&file)) })
    });
    Ok(LabSetup {
        descriptor: Some(scene.world),
        world,
        make,
        plan: Plan::parse_all(scene.shifts)?,
        agents: agents.collect::<Result<_, SessionError>>()?,
        scenes: Scenes { present: scene.name, all: LABELS },
    })
}

/// The world that a bundled agent acts in.
fn acts_in(champion: &Champion, file: &StoredAgent, world: &WorldDescriptor) -> EnvRequest {
    let noted = if champion.as_trained { noted_world(file) } else { None };
    noted.map_or_else(|| plain(world), |(_, request)| request)
}

fn build(file: &StoredAgent) -> Result<Box<dyn Agent>, PolicyError> {
    let mut agent = registry::make(&file.agent, &file.config)?;
    agent.set_params(&file.params)?;
    Ok(agent)
}

/// Refuses an agent that cannot see this world.
fn sees(env: &dyn Env, agent: &mut dyn Agent) -> Result<(), SessionError> {
    let mut env = env.boxed_clone();
    env.reset(Some(0));
    agent.act(env.observation(), &mut ActContext::default())?;
    Ok(())
}

/// Builds a world with its wrappers.
fn make(mut request: EnvRequest) -> Result<Box<dyn Env>, SessionError> {
    let wrappers = request.options.remove(WRAP).map(|text| text.parse::<Wrappers>()).transpose()?;
    let known = worlds().find(|world| world.name == request.id);
    let world = known.ok_or_else(|| SessionError::BadRequest {
        why: format!("{} is no world of this page; choose another scene", request.id),
    })?;
    let env = world.build(&request)?;
    Ok(match wrappers {
        Some(wrappers) => Box::new(Wrapped::new(env, wrappers)?),
        None => env,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lab that stands still in `scene` at the start of an episode.
    fn paused(scene: &str) -> BrowserLab {
        let mut lab = BrowserLab::new().expect("the bundled agents act");
        lab.handle(&json!({ "type": "open", "scene": scene }).to_string());
        lab.handle(r#"{"type":"set","paused":true,"effects":false,"shifts":[]}"#);
        lab.handle(r#"{"type":"view","width":96,"height":96}"#);
        assert!(!lab.take_messages().contains("\\\"error"), "{scene}");
        lab
    }

    /// The action of the first agent, and what it would be without interventions.
    fn actions(lab: &mut BrowserLab) -> [Vec<f32>; 2] {
        let frame = lab.frame();
        let mut at = 6 + 13;
        [0, 1].map(|_| {
            let n = usize::from(frame[at]);
            let numbers = frame[at + 1..at + 1 + 4 * n].chunks_exact(4);
            at += 1 + 4 * n;
            numbers.map(|four| f32::from_le_bytes(four.try_into().expect("four bytes"))).collect()
        })
    }

    fn step(lab: &mut BrowserLab, steps: usize) {
        for _ in 0..steps {
            lab.handle(r#"{"type":"step"}"#);
        }
    }

    #[test]
    fn every_scene_begins_with_its_agent() {
        for scene in &SCENES {
            assert!(LABELS.iter().any(|(name, _)| *name == scene.name), "{} has a label", scene.name);
            let mut lab = paused(scene.name);
            let first = &lab.session().setup().agents[0];
            assert_eq!(first.name, format!("{} champion", scene.champion));
            step(&mut lab, 3);
            assert_eq!(lab.session().scores()[0].0, 3, "{}", scene.name);
        }
        assert_eq!(LABELS.len(), SCENES.len());
    }

    #[test]
    fn the_effect_is_against_a_clone_that_sees_the_world_unchanged() {
        let (mut plain, mut covered) = (paused("car-racing"), paused("car-racing"));
        step(&mut plain, 60);
        step(&mut covered, 60);
        let [before, none] = actions(&mut plain);
        assert!(none.is_empty(), "nobody intervenes");
        covered.handle(r#"{"type":"set","shifts":["brightness:5"]}"#);
        let [with, without] = actions(&mut covered);
        assert_eq!(without, before, "the clone decides as the agent did");
        assert!(with != before, "brightness changes the action");
        // The clone never drives, and goes when the interventions end.
        step(&mut covered, 5);
        let [with, without] = actions(&mut covered);
        assert!(with != without && !without.is_empty());
        covered.handle(r#"{"type":"set","shifts":[]}"#);
        assert!(actions(&mut covered)[1].is_empty());
    }

    #[test]
    fn sensors_in_another_order_change_no_action_of_an_agent_that_takes_any_order() {
        let mut lab = paused("cartpole");
        lab.handle(r#"{"type":"set","shifts":["shuffle:5"]}"#);
        for _ in 0..50 {
            step(&mut lab, 1);
            let [with, without] = actions(&mut lab);
            assert!((with[0] - without[0]).abs() < 1e-4, "{with:?} {without:?}");
        }
        lab.handle(r#"{"type":"set","shifts":["missing:3"]}"#);
        assert_eq!(lab.session().scores()[0].0, 0, "with fewer sensors the episode begins again");
        let differs = |lab: &mut BrowserLab| {
            step(lab, 1);
            let [with, without] = actions(lab);
            with != without
        };
        assert!((0..100).any(|_| differs(&mut lab)), "sensors that are not there do");
        assert!(lab.session().scores()[0].0 > 0 && !lab.take_messages().contains("\\\"error"));
    }

    #[test]
    fn a_weight_file_of_a_visitor_acts_in_its_world_and_a_broken_one_changes_nothing() {
        let mut lab = paused("car-racing");
        let weights = minigrid::DESCRIPTORS[0].champions[0].weights;
        lab.add_weights("mine\n.safetensors", weights);
        assert_eq!(lab.session().setup().world.id, "door-key-5x5");
        assert_eq!(lab.session().setup().agents[0].name, "mine .safetensors");
        lab.take_messages();
        for (bytes, why) in [
            (&b""[..], "not a safetensors file"),
            (&weights[..weights.len() - 1], "bytes"),
            (&[&weights[..weights.len() - 1], b"\x01"].concat()[..], "checksum"),
            (&vec![b'{'; MAX_WEIGHTS + 1][..], "at most"),
        ] {
            lab.add_weights("broken", bytes);
            let said = lab.take_messages();
            assert!(said.contains("broken: ") && said.contains(why), "{why}: {said}");
            assert_eq!(lab.session().setup().agents[0].name, "mine .safetensors");
        }
        lab.handle(r#"{"type":"open","scene":"moon"}"#);
        assert!(lab.take_messages().contains("no scene is called"));
    }
}

//! Every wrapper has the capabilities of the world that it holds, apart from those that it changes, which are listed here with the
//! reason.

use foveate_core::{
    Action, ActionSpace, Env, EnvError, EnvSpec, Fact, GazePoint, GridView, ImageBuf, Observation,
    ObservationSpace, StateEdit, Step, StepDerivatives,
};
use foveate_envs::levels::{Level, Levels};
use foveate_envs::registry::ReferenceScores;
use foveate_envs::shift::{Plan, Shifted};
use foveate_envs::taught::Taught;
use foveate_envs::wrap::{Wrapped, Wrappers};
use foveate_toy::toy_agent;

/// A world that has every capability.
#[derive(Clone)]
struct Rich {
    spec: EnvSpec,
    shown: [f32; 2],
    edited: bool,
    option: String,
}

fn rich() -> Box<dyn Env> {
    Box::new(Rich {
        spec: EnvSpec {
            id: "rich".into(),
            observation: ObservationSpace::Vector { len: 2 },
            action: ActionSpace::Box { low: vec![-1.0], high: vec![1.0] },
            max_steps: Some(100),
            fps: 1.0,
        },
        shown: [0.25, 1.0],
        edited: false,
        option: String::new(),
    })
}

impl Env for Rich {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: Option<u64>) {
        self.edited = false;
    }
    fn reset_error(&self) -> Option<EnvError> {
        Some(EnvError::Outside { env: "rich".into(), why: "a test".into() })
    }
    fn reset_option(&mut self, name: &str, value: &str) -> Result<(), EnvError> {
        self.option = format!("{name} {value}");
        Ok(())
    }
    fn step(&mut self, _: Action<'_>) -> Result<Step, EnvError> {
        Ok(Step { reward: 1.0, ..Step::default() })
    }
    /// In one message, which pays more here.
    fn repeat(&mut self, _: Action<'_>, times: u64) -> Result<Step, EnvError> {
        Ok(Step { reward: 100.0 * times as f64, ..Step::default() })
    }
    fn observation(&self) -> Observation<'_> {
        Observation::Vector(&self.shown)
    }
    fn score(&self, total: f64) -> f64 {
        2.0 * total
    }
    fn task(&self) -> usize {
        3
    }
    fn tasks(&self) -> Vec<&'static str> {
        vec!["a", "b", "c", "d"]
    }
    fn render(&self, view: &mut ImageBuf) -> Result<(), EnvError> {
        view.rgb_mut().fill(7);
        Ok(())
    }
    fn state(&self) -> Fact {
        let option = Fact::Text(self.option.clone());
        Fact::Named(vec![("edited".into(), Fact::Flag(self.edited)), ("option".into(), option)])
    }
    fn expert(&mut self, action: &mut [f64]) -> Result<(), EnvError> {
        action.fill(0.75);
        Ok(())
    }
    fn costs(&mut self, costs: &mut Vec<f64>) -> Result<(), EnvError> {
        *costs = vec![0.0, 0.5, 1.0];
        Ok(())
    }
    fn gaze(&mut self, points: &mut Vec<GazePoint>) -> Result<(), EnvError> {
        *points = vec![GazePoint { x: 0.5, y: 0.5, weight: 1.0 }];
        Ok(())
    }
    fn derivatives(&self, _: &[f64], derivatives: &mut StepDerivatives) -> Result<(), EnvError> {
        derivatives.reward = vec![3.0];
        Ok(())
    }
    fn sensor_order(&self) -> Option<&[u32]> {
        Some(&[1, 0])
    }
    fn grid_view(&self) -> Option<GridView> {
        Some(GridView {
            size: [1, 1],
            cells: vec![],
            agent: 0,
            front: None,
            objects: vec![],
            colors: &["red"],
            picture: ImageBuf::black(1, 1),
        })
    }
    fn kinds(&self) -> &'static [&'static str] {
        &["door"]
    }
    fn situation(&self, quantities: &mut Vec<(&'static str, f64)>) {
        *quantities = vec![("distance", 4.0)];
    }
    fn edit_state(&mut self, _: &StateEdit<'_>) -> Result<(), EnvError> {
        self.edited = true;
        Ok(())
    }
    fn boxed_clone(&self) -> Box<dyn Env> {
        Box::new(self.clone())
    }
}

type Ask = fn(&mut dyn Env) -> String;

/// Every capability, and what a world answers.
const CAPABILITIES: [(&str, Ask); 16] = [
    ("reset_error", |env| format!("{:?}", env.reset_error())),
    ("reset_option", |env| format!("{:?} {:?}", env.reset_option("mood", "calm"), env.state())),
    ("repeat", |env| format!("{:?}", env.repeat(Action::Continuous(&[0.5]), 3))),
    ("score", |env| format!("{:?}", env.score(21.0))),
    ("task", |env| format!("{:?}", env.task())),
    ("tasks", |env| format!("{:?}", env.tasks())),
    ("render", |env| {
        let mut view = ImageBuf::black(2, 2);
        format!("{:?} {view:?}", env.render(&mut view))
    }),
    ("state", |env| format!("{:?}", env.state())),
    ("expert", |env| {
        let mut action = [0.0];
        format!("{:?} {action:?}", env.expert(&mut action))
    }),
    ("costs", |env| {
        let mut costs = vec![];
        format!("{:?} {costs:?}", env.costs(&mut costs))
    }),
    ("gaze", |env| {
        let mut points = vec![];
        format!("{:?} {points:?}", env.gaze(&mut points))
    }),
    ("derivatives", |env| {
        let mut derivatives = StepDerivatives::default();
        format!("{:?} {derivatives:?}", env.derivatives(&[0.5], &mut derivatives))
    }),
    ("sensor_order", |env| format!("{:?}", env.sensor_order())),
    ("grid_view", |env| format!("{:?}", env.grid_view())),
    ("kinds and situation", |env| {
        let mut quantities = vec![];
        env.situation(&mut quantities);
        format!("{:?} {quantities:?}", env.kinds())
    }),
    ("edit_state", |env| format!("{:?} {:?}", env.edit_state(&StateEdit::Erase("door")), env.state())),
];

fn taught() -> Box<dyn Env> {
    Box::new(Taught::new(rich(), Box::new(toy_agent(0.1))))
}

fn levels() -> Box<dyn Env> {
    let scores = ReferenceScores { task: "rich", random: 0.0, human: 1.0 };
    Box::new(Levels::new("levels", vec![Level { env: rich(), scores, share: 1 }]).expect("one task"))
}

fn shifted(shifts: &str) -> Box<dyn Env> {
    Box::new(Shifted::new(rich(), &shifts.parse::<Plan>().expect(shifts)).expect(shifts))
}

fn wrapped(wrappers: &str) -> Box<dyn Env> {
    Box::new(Wrapped::new(rich(), wrappers.parse::<Wrappers>().expect(wrappers)).expect(wrappers))
}

/// A wrapper, and the capabilities that are not those of the world, with the reason.
struct Wrapper {
    name: &'static str,
    make: fn() -> Box<dyn Env>,
    changes: &'static [(&'static str, &'static str)],
}

const WRAPPERS: [Wrapper; 6] = [
    Wrapper {
        name: "taught",
        make: taught,
        changes: &[
            ("expert", "the teacher is the expert"),
            ("costs", "they are those of the world's own expert"),
        ],
    },
    Wrapper {
        name: "levels",
        make: levels,
        changes: &[
            ("score", "scores of several tasks are compared with people's"),
            ("task", "it says which of its worlds runs"),
            ("tasks", "they are its worlds"),
            ("state", "it begins with the task"),
            ("reset_option", "it is seen in the state"),
            ("edit_state", "it is seen in the state"),
        ],
    },
    Wrapper {
        name: "shift of sensors",
        make: || shifted("shuffle:5"),
        changes: &[
            ("repeat", "every step is looked at"),
            ("gaze", "it moves what is looked at"),
            ("derivatives", "they are those of what the world shows"),
            ("sensor_order", "it changes it"),
        ],
    },
    Wrapper {
        name: "shift of actions",
        make: || shifted("unsteady:1"),
        changes: &[
            ("repeat", "every step has noise of its own"),
            ("derivatives", "they are those of the agent's own action"),
        ],
    },
    Wrapper { name: "limit", make: || wrapped("limit:50"), changes: &[] },
    Wrapper {
        name: "stack",
        make: || wrapped("stack:2"),
        changes: &[
            ("gaze", "a stack shows other moments, too"),
            ("derivatives", "they are those of one moment"),
            ("sensor_order", "a stack has more sensors"),
            ("edit_state", "a stack shows moments before the edit"),
        ],
    },
];

#[test]
fn wrappers_have_every_capability_of_their_world_or_say_why_not() {
    for Wrapper { name, make, changes } in WRAPPERS {
        for (capability, ask) in CAPABILITIES {
            let [own, wrapped] = [rich(), make()].map(|mut env| {
                env.reset(Some(1));
                ask(&mut *env)
            });
            let change = changes.iter().find(|(changed, _)| *changed == capability);
            match change {
                Some((_, why)) => {
                    assert_ne!(own, wrapped, "{name} has the world's {capability}; listed because {why}");
                }
                None => assert_eq!(own, wrapped, "{name} drops the world's {capability}"),
            }
        }
        for (changed, why) in changes {
            assert!(CAPABILITIES.iter().any(|(name, _)| name == changed), "{name}: {changed} ({why})");
        }
    }
}

//! Policies whose truth is known, each with a claim of what it acts on.

use foveate_core::{
    ActContext, ActionSpace, Attention, Decision, Env, EnvSpec, Observation, Policy, PolicyError, Seed,
    TensorShape, Tokens,
};
use foveate_envs::registry::EnvRequest;

use super::asked::Answer;
use super::cart_pole::CartPole;
use crate::RunError;
use crate::worlds;

/// Rows and columns of places in a picture.
pub(super) const SIDE: usize = 12;

/// Writes the action on an observation in a step of an episode, which is counted from 0.
pub(super) type Acts = fn(Observation<'_>, u32, &mut [f64]);

/// Writes how much each place of an observation is said to matter, `[places]`, into zeros: of a picture 12 × 12 places, of
/// numbers one each, of a grid its cells.
pub(super) type Claims = fn(Observation<'_>, &mut [f32]);

/// A policy that is planted in a world, its claim, and what is true of both.
pub(super) struct PlantedCase {
    /// Its name.
    pub(super) name: &'static str,
    /// Where it acts.
    pub(super) world: PlantedWorld,
    /// What it does and claims, and why the answers follow from that.
    pub(super) about: &'static str,
    pub(super) acts: Acts,
    pub(super) claims: Claims,
    /// True if the claim is handed in by a caller's function; otherwise it is the policy's own attention.
    pub(super) handed: bool,
    /// The true answers, known from how it is planted.
    pub(super) expected: Expected,
}

/// The true answers to the four questions; undecided where no honest answer is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Expected {
    /// Does anything it sees move its action?
    pub(super) moves: Answer,
    /// Does what it sees move its action more than its memory?
    pub(super) path: Answer,
    /// Do the parts that it names matter more than others?
    pub(super) right: Answer,
    /// Does the claim say more than the same claim of other moments?
    pub(super) moment: Answer,
}

impl Expected {
    /// Of a policy that acts on what it sees and has no memory.
    pub(super) const fn sees(right: Answer, moment: Answer) -> Self {
        Expected { moves: Answer::Yes, path: Answer::Yes, right, moment }
    }

    /// With the questions.
    pub(super) fn each(self) -> [(&'static str, Answer); 4] {
        let Expected { moves, path, right, moment } = self;
        [("moves", moves), ("path", path), ("right", right), ("moment", moment)]
    }

    /// Whether the claim is true; `None` where that cannot be decided.
    pub(super) fn truth(self) -> Option<bool> {
        match self.right {
            Answer::Yes => Some(true),
            Answer::No => Some(false),
            Answer::Undecided => None,
        }
    }
}

/// Where policies are planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlantedWorld {
    /// `car-racing`, picture `fast`: a picture, three numbers to act.
    CarRacing,
    /// A pole on a cart: four numbers, two choices.
    CartPole,
    /// `cartpole-swingup-harder`: five numbers, one number to act.
    SwingUp,
    /// `door-key-8x8`: a grid of 7 × 7 cells, five choices.
    DoorKey,
}

impl PlantedWorld {
    /// The world.
    pub(super) fn make(self) -> Result<Box<dyn Env>, RunError> {
        let request = |id: &str| EnvRequest { id: id.into(), ..EnvRequest::default() };
        let request = match self {
            PlantedWorld::CartPole => return Ok(Box::new(CartPole::new())),
            PlantedWorld::CarRacing => EnvRequest { picture: Some("fast".into()), ..request("car-racing") },
            PlantedWorld::SwingUp => request("cartpole-swingup-harder"),
            PlantedWorld::DoorKey => {
                let five = [("actions".to_owned(), "five".to_owned())];
                EnvRequest { picture: Some("view".into()), options: five.into(), ..request("door-key-8x8") }
            }
        };
        worlds::make(request)
    }

    /// What is observed there.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            PlantedWorld::CarRacing => "picture",
            PlantedWorld::CartPole | PlantedWorld::SwingUp => "numbers",
            PlantedWorld::DoorKey => "grid",
        }
    }

    /// Returns whether its actions are choices.
    #[cfg(test)]
    pub(super) const fn is_discrete(self) -> bool {
        matches!(self, PlantedWorld::CartPole | PlantedWorld::DoorKey)
    }

    /// Steps after which an episode is truncated.
    pub(super) const fn steps(self) -> usize {
        match self {
            PlantedWorld::DoorKey => 24,
            _ => 100,
        }
    }
}

/// The policy of a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Planted {
    acts: Acts,
    claims: Claims,
    outputs: usize,
}

impl Planted {
    /// That of `case`, in its world.
    pub(super) fn new(case: &PlantedCase, spec: &EnvSpec) -> Self {
        let outputs = match &spec.action {
            ActionSpace::Box { low, .. } => low.len(),
            ActionSpace::Discrete { n } => *n,
        };
        Planted { acts: case.acts, claims: case.claims, outputs }
    }
}

/// The step of the episode, and the last decision.
#[derive(Debug, Clone, Default)]
pub(super) struct PlantedMemory {
    step: u32,
    action: Vec<f64>,
    claim: Vec<f32>,
    names: Vec<String>,
}

impl Policy for Planted {
    type Memory = PlantedMemory;

    fn memory(&self) -> PlantedMemory {
        PlantedMemory { action: vec![0.0; self.outputs], ..PlantedMemory::default() }
    }

    fn reset(&self, memory: &mut PlantedMemory, _: Seed) {
        memory.step = 0;
    }

    fn act<'m>(
        &self,
        observation: Observation<'_>,
        memory: &'m mut PlantedMemory,
        _: &mut ActContext,
    ) -> Result<Decision<'m>, PolicyError> {
        let PlantedMemory { step, action, claim, names } = memory;
        action.fill(0.0);
        (self.acts)(observation, *step, action);
        *step = step.saturating_add(1);
        claim.clear();
        claim.resize(places(observation), 0.0);
        (self.claims)(observation, claim);
        let tokens = match observation {
            Observation::Grid(grid) => Tokens::Grid { rows: grid.rows(), columns: grid.columns() },
            Observation::Vector(numbers) => {
                if names.len() != numbers.len() {
                    *names = (0..numbers.len()).map(|i| format!("number {i}")).collect();
                }
                Tokens::Named(names)
            }
            _ => Tokens::Cells { rows: SIDE, columns: SIDE },
        };
        Ok(Decision::new(action).with_attention(Attention::soft(tokens, 1, 1, claim)?))
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

/// Places of an observation.
pub(super) fn places(observation: Observation<'_>) -> usize {
    match observation {
        Observation::Grid(grid) => grid.rows() * grid.columns(),
        Observation::Vector(numbers) => numbers.len(),
        _ => SIDE * SIDE,
    }
}

/// All places alike.
pub(super) fn uniform(_: Observation<'_>, claim: &mut [f32]) {
    claim.fill(1.0);
}

/// Each place at random, drawn anew for every observation; the same observation has the same claim.
pub(super) fn random(observation: Observation<'_>, claim: &mut [f32]) {
    let mut seed = Seed::root(0);
    let mut add = |byte: u8| seed = seed.child("byte", u64::from(byte));
    match observation {
        Observation::Image(pixels) => pixels.bytes().iter().step_by(97).for_each(|&byte| add(byte)),
        Observation::Vector(numbers) => numbers.iter().flat_map(|x| x.to_le_bytes()).for_each(add),
        Observation::Grid(grid) => grid.codes().iter().for_each(|&code| add(code)),
        Observation::Dict(_) => {}
    }
    let mut rng = seed.rng();
    for claim in claim {
        *claim = rng.next_f64() as f32;
    }
}

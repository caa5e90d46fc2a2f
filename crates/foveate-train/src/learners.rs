//! The registry of learners.
//!
//! [`LEARNERS`] is the only list: it has a descriptor for each evolution strategy, for
//! [imitation](crate::imitation), [gradients through a world](crate::short_horizon), [deep Q-learning](crate::dqn) and [policy
//! gradients](crate::ppo), [V-trace](crate::vtrace), [populations](crate::population), and for every learner that a program registers at start-up. Recipes, help, completions and tests read it; no other code knows a learner by name. A custom learner is a type with its
//! settings ([`LearnerSettings`]) and one descriptor:
//!
//! ```
//! use foveate_core::Seed;
//! use foveate_train::{Fitness, LEARNERS, LearnerParts};
//!
//! let table = "population = 8\nsigma = 0.2".parse().expect("TOML");
//! let settings = LEARNERS.find("rank-es")?.settings(&table)?;
//! let parts = LearnerParts { weights: vec![0.0; 10], seed: Seed::root(1), model: None, fitness: Fitness::Mean };
//! let learner = settings.build(parts)?;
//! assert_eq!((settings.rows(10), learner.weights().len()), (8, 10));
//! assert!(LEARNERS.names().contains(&"imitation"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use foveate_core::Registry;

use crate::descriptor::LearnerDescriptor;
use crate::{dqn, evolution, imitation, population, ppo, short_horizon, vtrace};

/// All learners: first the evolution strategies, the default at the front, then the others.
pub static LEARNERS: Registry<LearnerDescriptor> = Registry::new("strategy", &LIST);

/// Learners other than evolution strategies, one entry each.
const OTHERS: [LearnerDescriptor; 6] = [
    imitation::DESCRIPTOR,
    short_horizon::DESCRIPTOR,
    dqn::DESCRIPTOR,
    ppo::DESCRIPTOR,
    vtrace::DESCRIPTOR,
    population::DESCRIPTOR,
];

const COUNT: usize = evolution::COUNT + OTHERS.len();

static ALL: [LearnerDescriptor; COUNT] = {
    let mut all = [OTHERS[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        all[i] = if i < evolution::COUNT { evolution::DESCRIPTORS[i] } else { OTHERS[i - evolution::COUNT] };
        i += 1;
    }
    all
};

static LIST: [&LearnerDescriptor; COUNT] = {
    let mut list = [&ALL[0]; COUNT];
    let mut i = 0;
    while i < COUNT {
        list[i] = &ALL[i];
        i += 1;
    }
    list
};

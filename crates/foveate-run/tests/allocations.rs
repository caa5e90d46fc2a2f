//! Rollouts allocate nothing, and neither does a generation of workers, once every buffer has its size.
//!
//! A counting allocator stands under this whole program, so there is but one test in it.

use std::alloc::System;
use std::collections::BTreeMap;

use foveate_agents::registry::{Init, initial_params, make};
use foveate_core::episode::Episode;
use foveate_core::{
    Agent, Demonstration, EpisodeResult, Evaluator, ObservationBuf, Population, RolloutJob, Seed,
};
use foveate_envs::registry::EnvRequest;
use foveate_envs::shift::SHIFTS;
use foveate_run::rollout;
use foveate_run::workers::{Stop, Workers};
use foveate_run::worlds;
use foveate_train::Rules;
use serde_json::{Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static COUNTING: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const GENOMES: usize = 4;
const TRACKS: usize = 2;

/// Allocations and reallocations while `work` ran, on all threads.
fn count(work: impl FnOnce()) -> usize {
    let region = Region::new(COUNTING);
    work();
    let change = region.change();
    change.allocations + change.reallocations
}

fn population(agent: &dyn Agent) -> Population {
    let mut population = Population::zeros(GENOMES, agent.params().len());
    for i in 0..GENOMES {
        let weights = initial_params("attention-agent", &Value::Null, Init::Torch, Seed::root(i as u64));
        population.genome_mut(i).copy_from_slice(&weights.expect("the defaults are good"));
    }
    population
}

fn jobs(first_seed: u64) -> Vec<RolloutJob> {
    let job = |genome, episode| RolloutJob { genome, episode, env_seed: first_seed + episode as u64 };
    (0..GENOMES).flat_map(|genome| (0..TRACKS).map(move |episode| job(genome, episode))).collect()
}

#[test]
fn nothing_is_allocated_in_the_loop() {
    assert!(count(|| drop(std::hint::black_box(vec![0_u8; 100]))) > 0, "the counter counts");
    let rules = Rules { max_steps: 100, patience: Some(20), demonstration: None };
    let every_shift = SHIFTS.iter().map(|info| info.name).collect::<Vec<_>>().join("+");
    let stacked = || [("wrap".to_owned(), "grey+resize:48x48+stack:2".to_owned())].into();
    for (picture, shifts, options) in [
        ("fast", vec![], BTreeMap::new()),
        ("classic", vec![], BTreeMap::new()),
        ("exact", vec![], BTreeMap::new()),
        ("fast", vec![every_shift.clone()], BTreeMap::new()),
        ("fast", vec![], stacked()),
        ("fast", vec![every_shift], stacked()),
    ] {
        let image = if options.is_empty() { [96, 96] } else { [48, 96] };
        let request = EnvRequest {
            id: "car-racing".into(),
            picture: Some(picture.into()),
            shifts,
            options,
            ..EnvRequest::default()
        };
        let mut env = worlds::make(request).expect("it exists");
        let mut agent = make("attention-agent", &json!({ "image": image })).expect("it exists");
        let population = population(&*agent);
        let mut demonstration = Demonstration::default();

        // One rollout after the other, each with other weights, the reset included; the first round warms up.
        let mut round = |warm: bool| {
            for job in jobs(40) {
                let mut result = EpisodeResult::default();
                let allocations = count(|| {
                    agent.set_params(population.genome(job.genome)).expect("the right count");
                    let mut episode = Episode::new(job, rules.episode());
                    result = rollout::run(&mut episode, &mut *env, &mut *agent, None, &mut demonstration)
                        .expect("it drives");
                });
                assert!(result.steps > 20, "{result:?}");
                assert!(!warm || allocations == 0, "{picture}: {allocations} allocations in {result:?}");
            }
        };
        round(false);
        round(true);
        let mut stored = ObservationBuf::from(env.observation());
        assert_eq!(count(|| stored.set(env.observation())), 0, "{picture}: a stored observation");

        for workers in [1, 3] {
            let mut workers = Workers::new(&*env, &*agent, workers, rules, Stop::default());
            let mut results = Vec::new();
            let (first, other) = (jobs(40), jobs(70));
            // Any worker may meet any track, so each must have seen them all: as many rounds as that takes.
            let mut generation = |jobs: &[RolloutJob]| {
                count(|| workers.evaluate(&population, jobs, &mut results).expect("it drives"))
            };
            let mut quiet = 0;
            for round in 0.. {
                quiet = if generation(&first) + generation(&other) == 0 { quiet + 1 } else { 0 };
                if quiet == 2 {
                    break;
                }
                assert!(round < 30, "{picture}, {} workers: a generation still allocates", workers.count());
            }
        }
    }
}

//! Rollouts, generations of workers and gradients on several threads allocate nothing after a warm-up.
//!
//! Some counts are of all threads, so this program contains only one test.

use std::collections::BTreeMap;
use std::sync::Arc;

use foveate_agents::registry::{self, Init, initial_params, make};
use foveate_core::episode::{Episode, EpisodeRules};
use foveate_core::{
    Agent, Demonstration, EpisodeResult, Executor, Experience, GradientParts, LossSums, Model,
    ObservationBuf, Piece, Pieces, Population, Purpose, Record, RolloutJob, Seed, Work, add_gradients,
    run_episode,
};
use foveate_envs::registry::EnvRequest;
use foveate_run::parallel_model::ParallelModel;
use foveate_run::stress::fitting_shifts;
use foveate_run::workers::{Stop, Workers};
use foveate_run::worlds;
use foveate_toy::allocations::{COUNTER, Counter, count, count_on_all_threads};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Counter = COUNTER;

const GENOMES: usize = 4;
const TRACKS: usize = 2;

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
    rollouts();
    gradients();
}

fn rollouts() {
    let rules = EpisodeRules { max_steps: 100, patience: Some(20) };
    let world = worlds::make(EnvRequest { id: "car-racing".into(), ..EnvRequest::default() });
    let (fitting, _) = fitting_shifts(world.expect("native").spec());
    let every_shift = fitting.iter().map(|info| info.name).collect::<Vec<_>>().join("+");
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

        // Several rollouts with different weights, resets included; the first round is the warm-up.
        let mut round = |warm: bool| {
            for job in jobs(40) {
                let mut result = EpisodeResult::default();
                let allocations = count(|| {
                    agent.set_params(population.genome(job.genome)).expect("the right count");
                    let mut episode = Episode::new(job, rules);
                    let driven = run_episode(&mut episode, &mut *env, &mut *agent, Record::Returns);
                    result = driven.expect("it drives").0;
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
            let mut workers = Workers::new(&*env, &*agent, workers, Stop::default());
            let mut experience = Experience::default();
            let work = |jobs| Work {
                purpose: Purpose::Training,
                weights: population.clone(),
                jobs,
                rules,
                record: Record::Returns,
                epsilon: 0.0,
                draw_actions: false,
            };
            let (first, other) = (work(jobs(40)), work(jobs(70)));
            // Any worker may get any track, so each must have run them all before: repeat until that is so.
            let mut generation = |work: &Work| {
                count_on_all_threads(|| workers.execute(work, &mut experience).expect("it drives"))
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

fn gradients() {
    let model = || registry::model("attention-agent", &Value::Null).expect("it exists");
    let params = initial_params("attention-agent", &Value::Null, Init::Torch, Seed::root(1))
        .expect("the defaults are good");
    let demonstration = Arc::new(Demonstration {
        inputs: vec![0.5; 60 * 20],
        actions: vec![0.25; 60 * 3],
        steps: 60,
        ..Demonstration::default()
    });
    let pieces =
        (0..24).map(|i| Piece { demonstration: Arc::clone(&demonstration), steps: i..i + 30 }).collect();
    let parts: Arc<dyn GradientParts> = Arc::new(Pieces { pieces, burn_in: 10, dropout: None });
    let mut gradient = vec![0.0; params.len()];
    let mut update = |group: &mut dyn Model| {
        group.set_params(&params).expect("the right count");
        let mut receive = |sums: &LossSums| assert!(sums[0] > 0.0);
        add_gradients(group, &parts, &mut gradient, &mut receive).expect("fine");
    };
    let mut alone = ParallelModel::new(model(), 1);
    assert!(count(|| update(&mut alone)) > 0, "the first update makes room");
    for _ in 0..3 {
        assert_eq!(count(|| update(&mut alone)), 0);
    }
    let mut group = ParallelModel::new(model(), 3);
    assert!(count(|| update(&mut group)) > 0, "the first update begins threads");
    // A thread allocates when it gets its first segment, which may be late on a busy machine; after that,
    // nothing.
    let mut in_fifty = || count_on_all_threads(|| (0..50).for_each(|_| update(&mut group)));
    assert!((0..100).any(|_| in_fifty() == 0), "every fifty updates allocate");
}

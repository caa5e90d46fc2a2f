use std::fs;
use std::path::Path;

use foveate_core::{DemonstrationPlan, Seed};
use foveate_train::Teacher;

use super::*;
use crate::train::{ResumeRequest, TrainRequest, resume, resume_on, run, run_on};
use crate::worlds;

/// Machines that answer in another order, twice, and lose work on the way.
#[derive(Default)]
struct Unreliable {
    workers: Vec<ClusterWorker>,
    setup: Vec<u8>,
    weights: Vec<u8>,
    batches: Vec<Vec<u8>>,
    /// Batches to answer, the last one first.
    due: Vec<usize>,
    turns: usize,
    /// Asks the run to stop after this many answers.
    stop_after: Option<(usize, Stop)>,
}

impl Cluster for Unreliable {
    fn open(&mut self, setup: &[u8]) -> Result<(), String> {
        self.setup = setup.to_vec();
        for _ in 0..2 {
            self.workers.push(ClusterWorker::new(setup).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn workers(&mut self) -> usize {
        // Machines come and go.
        self.turns % 5
    }

    fn begin(&mut self, weights: Vec<u8>, batches: Vec<Vec<u8>>) -> Result<(), String> {
        // Every third batch is run twice.
        self.due = (0..batches.len()).chain((0..batches.len()).step_by(3)).collect();
        (self.weights, self.batches) = (weights, batches);
        Ok(())
    }

    fn wait(&mut self) -> Result<Option<(usize, Vec<u8>)>, String> {
        self.turns += 1;
        if let Some((after, stop)) = &self.stop_after
            && self.turns >= *after
        {
            stop.ask();
        }
        if self.turns.is_multiple_of(4) {
            // A machine is lost, and another one takes its place.
            self.workers[0] = ClusterWorker::new(&self.setup).map_err(|error| error.to_string())?;
            return Ok(None);
        }
        let index = self.due.pop().ok_or("nothing is due")?;
        let worker = &mut self.workers[self.turns % 2];
        let answer = worker.run(&self.weights, &self.batches[index]).map_err(|error| error.to_string())?;
        Ok(Some((index, answer)))
    }

    fn cancel(&mut self) {
        self.due.clear();
    }
}

fn config(sets: &[&str]) -> TrainConfig {
    TrainConfig::load("cartpole-swingup", None, sets).expect("the preset")
}

/// Three stages of the preset, short.
const SHORT: &[&str] = &[
    "videos=false",
    "workers=2",
    "recipe.max_steps=60",
    "recipe.selection.every=2000",
    "recipe.selection.tracks=3",
    "recipe.selection.final_tracks=2",
    "recipe.selection.report_tracks=4",
];

fn work(weights: &Population, record: Record) -> Work {
    let jobs = (0..7).map(|i| RolloutJob { genome: i % weights.len(), episode: i, env_seed: 90 + i as u64 });
    Work {
        purpose: Purpose::Training,
        weights: weights.clone(),
        jobs: jobs.collect(),
        rules: EpisodeRules { max_steps: 40, patience: None },
        record,
        epsilon: 0.0,
        draw_actions: false,
    }
}

#[test]
fn any_record_comes_back_to_the_bit() {
    let config = config(&[]);
    let (env, agent) = (
        worlds::make(config.env.request().expect("native")).expect("native"),
        config.agent.build().expect("it is"),
    );
    let settings = config.agent.settings().expect("JSON");
    let mut weights = Population::zeros(0, agent.params().len());
    for row in 0..3 {
        let init = foveate_agents::registry::Init::Torch;
        let drawn =
            foveate_agents::registry::initial_params(&config.agent.name, &settings, init, Seed::root(row));
        weights.push(drawn.expect("good settings").into_iter());
    }
    let mut here = Workers::new(&*env, &*agent, 2, Stop::default());
    let mut there =
        ClusterExecutor::open(Box::new(Unreliable::default()), &config, Stop::default()).expect("it opens");
    let plan = DemonstrationPlan { pushes: 3.0, ..DemonstrationPlan::default() };
    for record in [
        Record::Returns,
        Record::Demonstrations(plan),
        Record::Transitions { unroll: 16 },
        Record::Derivatives,
        Record::Window { steps: 8 },
    ] {
        let work = work(&weights, record);
        let (mut expect, mut experience) = (Experience::default(), Experience::default());
        here.execute(&work, &mut expect).expect("fine");
        there.execute(&work, &mut experience).expect("fine");
        assert!(experience == expect, "{record:?}");
    }
    // The first failed job of all is the error, as here.
    let mut broken = work(&weights, Record::Returns);
    broken.weights.genome_mut(1).fill(f32::NAN);
    let mut experience = Experience::default();
    let expect = here.execute(&broken, &mut experience).expect_err("not finite").to_string();
    assert!(expect.starts_with("genome 1, episode 1 (seed 91), step "), "{expect}");
    assert_eq!(there.execute(&broken, &mut experience).expect_err("not finite").to_string(), expect);
}

/// The weights and the log without its times.
fn outcome(folder: &Path) -> (Vec<u8>, Vec<serde_json::Value>) {
    let log = fs::read_to_string(folder.join("log.jsonl")).expect("a log");
    let lines = log.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let fields = line.as_object_mut().expect("an object");
        fields.retain(|name, _| !name.contains("seconds"));
        line
    });
    (fs::read(folder.join("last.safetensors")).expect("weights"), lines.collect())
}

#[test]
fn a_run_on_a_cluster_is_the_run_of_one_machine() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut config = config(SHORT);
    for stage in &mut config.recipe.stages {
        stage.steps = 4_000;
    }
    let request = |name: &str| TrainRequest {
        config: config.clone(),
        runs: dir.path().into(),
        name: Some(name.into()),
    };
    let here = run(&request("here"), &mut (), &Stop::default()).expect("it trains").folder;
    let there = run_on(&request("there"), Some(Box::new(Unreliable::default())), &mut (), &Stop::default());
    let expect = outcome(&here);
    assert!(outcome(&there.expect("it trains").folder) == expect, "the same bits");

    // Stopped on the cluster, resumed on this machine, stopped, and ended on a cluster.
    let resumed =
        |folder: &Path| ResumeRequest { folder: folder.into(), trust: false, ..ResumeRequest::default() };
    let stop = Stop::default();
    let unreliable = Unreliable { stop_after: Some((9, stop.clone())), ..Unreliable::default() };
    let stopped =
        run_on(&request("moved"), Some(Box::new(unreliable)), &mut (), &stop).expect("stopped safely");
    assert_eq!(stopped.report, None);
    let stop = Stop::default();
    stop.ask();
    let stopped = resume(&resumed(&stopped.folder), &mut (), &stop).expect("stopped safely");
    assert_eq!(stopped.report, None);
    let cluster: Box<dyn Cluster> = Box::new(Unreliable::default());
    let ended =
        resume_on(&resumed(&stopped.folder), Some(cluster), &mut (), &Stop::default()).expect("it ends");
    assert!(ended.report.is_some() && outcome(&ended.folder) == expect, "the same bits");
}

#[test]
fn a_teacher_goes_along() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut config = config(SHORT);
    let settings = config.agent.settings().expect("JSON");
    let params = foveate_agents::registry::initial_params(
        &config.agent.name,
        &settings,
        foveate_agents::registry::Init::Torch,
        Seed::root(5),
    );
    let file =
        AgentFile::new(&config.agent.name, &settings, params.expect("good settings")).expect("they fit");
    let weights = dir.path().join("teacher.safetensors");
    file.save(&weights).expect("writable");
    config.recipe.teacher = Some(Teacher { weights: weights.clone(), sha256: None });

    let mut open = Unreliable::default();
    ClusterExecutor::open(Box::new(Unreliable::default()), &config, Stop::default()).expect("it opens");
    let setup = ClusterSetup {
        program: VERSION.into(),
        setup: Setup {
            world: (&config.env.request().expect("native")).into(),
            agent: AgentSetup { name: config.agent.name.clone(), config: settings.to_string() },
        },
        teacher: Some(file.to_bytes()),
    };
    // The file itself stays where it is.
    fs::remove_file(&weights).expect("it is there");
    open.open(&pack(&setup)).expect("it opens");
    let record = Record::Demonstrations(DemonstrationPlan::default());
    let work = work(&Population::of(file.params()), record);
    let answer = open.workers[0].run(&weights_to_bytes(&work.weights), &pack(&Batch::of(&work, &work.jobs)));
    let env = teacher::taught(config.env.request().expect("native"), Some(&file)).expect("it fits");
    let mut expect = Experience::default();
    Workers::new(&*env, &*file.agent().expect("an agent"), 1, Stop::default())
        .execute(&work, &mut expect)
        .expect("fine");
    let answer = Batch::of(&work, &work.jobs).answer(&answer.expect("it runs")).expect("an answer");
    assert!(answer == Ok(expect), "the teacher's demonstrations");
}

#[test]
fn what_arrives_is_checked() {
    let config = config(&[]);
    let fails = |setup: &[u8]| ClusterWorker::new(setup).err().expect("refused").to_string();
    assert!(fails(b"nonsense").contains("what arrived is not a setup"), "{}", fails(b"nonsense"));
    let setup = |program: &str, agent: &str| {
        pack(&ClusterSetup {
            program: program.into(),
            setup: Setup {
                world: (&config.env.request().expect("native")).into(),
                agent: AgentSetup { name: config.agent.name.clone(), config: agent.into() },
            },
            teacher: None,
        })
    };
    let said = fails(&setup("0.0.9 (build 0)", "{}"));
    assert!(said.contains("0.0.9 (build 0)") && said.contains("the same build on all machines"), "{said}");
    assert!(fails(&setup(VERSION, "{")).contains("the agent's settings"));

    let settings = config.agent.settings().expect("JSON").to_string();
    let mut worker = ClusterWorker::new(&setup(VERSION, &settings)).expect("it opens");
    let good = work(&Population::of(&config.agent.build().expect("it is").params()), Record::Returns);
    let (weights, batch) = (weights_to_bytes(&good.weights), pack(&Batch::of(&good, &good.jobs)));
    assert!(worker.run(&weights, &batch).is_ok());
    let mut fails =
        |weights: &[u8], batch: &[u8]| worker.run(weights, batch).expect_err("refused").to_string();
    for cut in [0, 7, 15, 17, weights.len() - 1] {
        assert!(fails(&weights[..cut], &batch).contains("bytes of weights"), "{cut}");
    }
    let mut huge = weights.clone();
    huge[..8].fill(0xff);
    assert!(fails(&huge, &batch).contains("bytes of weights"));
    for cut in 0..batch.len() {
        fails(&weights, &batch[..cut]);
    }
    let stray =
        Batch { jobs: vec![RolloutJob { genome: 9, ..RolloutJob::default() }], ..Batch::of(&good, &[]) };
    assert!(fails(&weights, &pack(&stray)).contains("row 9"));
    // Too few results are no answer.
    let answer: Answer = Ok(Experience::default());
    let said = Batch::of(&good, &good.jobs).answer(&pack(&answer)).expect_err("none of 7");
    assert!(said.contains("0 results for 7 jobs"), "{said}");
}

#[test]
fn many_workers_get_fewer_batches_each() {
    let check = |jobs: usize, workers: usize, batches: usize| {
        let size = batch_size(jobs, workers);
        assert_eq!(jobs.div_ceil(size), batches, "{jobs} jobs on {workers} workers");
    };
    check(4096, 1, 4);
    check(4096, 256, 1024);
    check(4096, 512, 1024);
    check(4096, 1000, 820);
    check(4096, 4000, 2048);
    check(32, 1000, 32);
    check(0, 3, 0);
}

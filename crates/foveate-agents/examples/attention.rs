//! Attention by every kernel: CPU time of whole decisions at growing numbers of patches, and how well estimates agree.
//!
//! `cargo run --release -p foveate-agents --example attention [-- --level=LEVEL --only=KERNEL --gain=GAIN
//! --patch=SIDE --stride=PIXELS --threads=N --write FOLDER]`
//!
//! Pictures are cut into patches of 2 × 2 pixels side by side unless told otherwise, queries have 4 numbers; the 10 best patches' places go
//! through an LSTM of 16 to 3 actions, on one thread. With `--threads`, times are those of the clock on the wall. JSON: for every kernel and picture the microseconds of the fastest pass, whole and
//! step by step; for every estimate the part of the 10 best patches that the pairs, one by one, choose too. `--gain`
//! multiplies the weights of queries and keys, which begin as PyTorch's do. With `--write`, the largest picture, the
//! layers and the random directions are left in a folder, for another language to do the same work.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "scene/mod.rs"]
mod scene;
#[path = "../../foveate-kernels/tests/suite/spawned.rs"]
mod threads;

use std::path::Path;

use foveate_core::Threads;
use foveate_kernels::dense::{self, Dense};
use foveate_kernels::kernel_vote::{Elementwise, FeatureMap, KernelVotes, PairVotes, Positive};
use foveate_kernels::lstm::{CellState, CellWeights, LstmCell};
use foveate_kernels::near_vote::NearVotes;
use foveate_kernels::project::{Linear, Projector, Scales, Strip};
use foveate_kernels::top_k::top_k;
use foveate_kernels::vote::Votes;
use foveate_kernels::{Embedded, Level};
use peak_alloc::PeakAlloc;
use rustix::time::{ClockId, clock_gettime};
use scene::{Scene, numbers};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Width and height of pictures: 529, 2,116, 4,800 and 19,200 patches.
const PICTURES: [(usize, usize); 4] = [(46, 46), (92, 92), (160, 120), (320, 240)];

/// CPU time to spend on each measurement, in nanoseconds.
const SPEND: u64 = 100_000_000;

const TOP: usize = 10;
const HIDDEN: usize = 16;
const ACTIONS: usize = 3;

/// With what.
#[derive(Clone)]
struct Setup {
    level: Level,
    threads: Threads,
}

/// How patches vote.
enum Voter {
    Softmax(Votes),
    Near(Box<NearVotes>),
    Pairs(PairVotes),
    Features(KernelVotes),
}

/// Everything between a picture's bytes and the actions.
struct Forward {
    level: Level,
    projector: Projector,
    strip: Strip,
    embedded: Embedded,
    voter: Voter,
    importance: Vec<f32>,
    best: Vec<u32>,
    order: Vec<u32>,
    columns: usize,
    patch: usize,
    stride: usize,
    height: usize,
    width: usize,
    inputs: Vec<f32>,
    cell: LstmCell,
    state: CellState,
    output: Dense,
    actions: Vec<f32>,
}

impl Forward {
    fn new(scene: &Scene, kernel: &Kernel, Setup { level, threads }: &Setup) -> Self {
        let (width, height, patches) = (scene.width, scene.height, scene.patches());
        let mut projector = Projector::new(width, height, scene.patch, scene.stride, scene.dim);
        // Softmax votes are powers of two; the other kernels share the scale between queries and keys (equation 4).
        let root = (scene.dim as f64).sqrt();
        let scales = match *kernel {
            Kernel::Softmax | Kernel::Near => Scales { query: std::f64::consts::LOG2_E / root, key: 1.0 },
            _ => Scales { query: 1.0 / root.sqrt(), key: 1.0 / root.sqrt() },
        };
        projector.set(scene.query(), scene.key(), scales);
        let dim = scene.dim;
        let features = |map| Voter::Features(KernelVotes::new(&map).with_threads(threads));
        let voter = match *kernel {
            Kernel::Softmax => Voter::Softmax(Votes::new(patches, dim).with_threads(threads)),
            Kernel::Near => Voter::Near(Box::new(NearVotes::new(patches, dim, 1e-4).with_threads(threads))),
            Kernel::Pairs => Voter::Pairs(PairVotes::new(patches, dim, None).with_threads(threads)),
            Kernel::Elementwise(f) => features(FeatureMap::elementwise(dim, f, None)),
            Kernel::Random { estimate, m, n, draw } => {
                let (omega, planes) = (scene.omega(m, draw), scene.planes(n, draw));
                features(match estimate {
                    Estimate::Trigonometric => FeatureMap::trigonometric(dim, &omega),
                    Estimate::Positive(kind) => FeatureMap::positive(dim, &omega, kind),
                    Estimate::Hybrid(kind) => FeatureMap::hybrid(dim, &omega, kind, &planes),
                })
            }
        };
        let inputs = 2 * TOP;
        let weights: Vec<f32> =
            numbers(9).take(4 * HIDDEN * (inputs + HIDDEN + 2) + ACTIONS * (HIDDEN + 1)).collect();
        let (ih, rest) = weights.split_at(4 * HIDDEN * inputs);
        let (hh, rest) = rest.split_at(4 * HIDDEN * HIDDEN);
        let (bias_ih, rest) = rest.split_at(4 * HIDDEN);
        let (bias_hh, rest) = rest.split_at(4 * HIDDEN);
        let (mut cell, mut output) = (LstmCell::new(inputs, HIDDEN), Dense::new(HIDDEN, ACTIONS));
        cell.set(CellWeights { weight_ih: ih, weight_hh: hh, bias_ih, bias_hh });
        let (weight, bias) = rest.split_at(ACTIONS * HIDDEN);
        output.set(Linear { weight, bias });
        Forward {
            level: *level,
            strip: projector.strip_for(threads),
            embedded: projector.embedded(),
            projector,
            voter,
            importance: vec![0.0; patches],
            best: vec![0; TOP],
            order: Vec::with_capacity(patches),
            columns: scene.columns(),
            patch: scene.patch,
            stride: scene.stride,
            height,
            width,
            inputs: vec![0.0; inputs],
            cell,
            state: CellState::new(HIDDEN),
            output,
            actions: vec![0.0; ACTIONS],
        }
    }

    fn project(&mut self, rgb: &[u8]) {
        self.projector.project(self.level, rgb, &mut self.strip, &mut self.embedded);
    }

    fn vote(&mut self) {
        let importance = &mut self.importance;
        match &mut self.voter {
            Voter::Softmax(votes) => votes.compute(self.level, &self.embedded, importance),
            Voter::Near(votes) => votes.compute(self.level, &self.embedded, importance),
            Voter::Pairs(votes) => {
                votes.compute(self.level, &self.embedded, None, importance).expect("short vectors");
            }
            Voter::Features(votes) => {
                votes.compute(self.level, &self.embedded, None, importance).expect("short vectors");
            }
        }
    }

    fn choose(&mut self) {
        top_k(&self.importance, &mut self.best, &mut self.order);
    }

    fn control(&mut self) {
        for (&patch, to) in self.best.iter().zip(self.inputs.chunks_exact_mut(2)) {
            let (row, column) = (patch as usize / self.columns, patch as usize % self.columns);
            to[0] = (row * self.stride + self.patch / 2) as f32 / self.height as f32;
            to[1] = (column * self.stride + self.patch / 2) as f32 / self.width as f32;
        }
        self.cell.step(self.level, &self.inputs, &mut self.state);
        self.output.apply(self.level, self.state.h(), &mut self.actions);
        dense::tanh(self.level, &mut self.actions);
    }

    fn act(&mut self, rgb: &[u8]) {
        self.project(rgb);
        self.vote();
        self.choose();
        self.control();
    }
}

/// What is measured.
#[derive(Clone, Copy)]
enum Kernel {
    Softmax,
    Near,
    Pairs,
    Elementwise(Elementwise),
    Random { estimate: Estimate, m: usize, n: usize, draw: u64 },
}

/// What random features estimate with.
#[derive(Clone, Copy)]
enum Estimate {
    Trigonometric,
    Positive(Positive),
    Hybrid(Positive),
}

const RANDOM: [(&str, Estimate); 5] = [
    ("trigonometric", Estimate::Trigonometric),
    ("positive", Estimate::Positive(Positive::Plain)),
    ("hyperbolic", Estimate::Positive(Positive::Hyperbolic)),
    ("hybrid", Estimate::Hybrid(Positive::Plain)),
    ("hybrid++", Estimate::Hybrid(Positive::Hyperbolic)),
];

/// Numbers of directions and of hyperplanes that the paper's study goes through.
const SIZES: [(usize, usize); 5] = [(1, 1), (2, 1), (4, 3), (8, 7), (16, 15)];

/// Every kernel by name, random ones with 8 directions and 7 hyperplanes.
fn kernels() -> Vec<(&'static str, Kernel)> {
    let mut all = vec![
        ("softmax", Kernel::Softmax),
        ("near softmax", Kernel::Near),
        ("pairs", Kernel::Pairs),
        ("relu", Kernel::Elementwise(Elementwise::Relu { epsilon: 0.001 })),
        ("exp", Kernel::Elementwise(Elementwise::Exp)),
        ("elu+1", Kernel::Elementwise(Elementwise::Elu1)),
    ];
    all.extend(RANDOM.map(|(name, estimate)| (name, Kernel::Random { estimate, m: 8, n: 7, draw: 0 })));
    all
}

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |key: &str| args.iter().find_map(|arg| arg.strip_prefix(key));
    let level = value("--level=")
        .map_or(Level::best(), |name| Level::named(name).expect("a level of this processor"));
    let gain = value("--gain=").map_or(1.0, |gain| gain.parse().expect("a number"));
    let whole = |key, otherwise| value(key).map_or(otherwise, |text| text.parse().expect("a whole number"));
    let setup = Setup { level, threads: threads::threads(whole("--threads=", 1)) };
    let patch = whole("--patch=", 2);
    let patches = [patch, whole("--stride=", patch)];
    if let Some(folder) = args.iter().position(|arg| arg == "--write").and_then(|i| args.get(i + 1)) {
        let (width, height) = PICTURES[3];
        Scene::new(width, height, patches, gain).write(Path::new(folder))?;
    }
    let only = value("--only=");
    let mut rows = Vec::new();
    for (name, kernel) in kernels().iter().filter(|(name, _)| only.is_none_or(|only| *name == only)) {
        for (width, height) in PICTURES {
            rows.push(measure(&Scene::new(width, height, patches, gain), name, kernel, &setup));
        }
    }
    let agreement = if only.is_none() && patches == [2, 2] { agreement(&setup, gain) } else { Vec::new() };
    println!("{{\"attention\":[\n{}\n],\"agreement\":[\n{}\n]}}", rows.join(",\n"), agreement.join(",\n"));
    Ok(())
}

/// Times and memory of one kernel on one picture, as JSON.
fn measure(scene: &Scene, name: &str, kernel: &Kernel, setup: &Setup) -> String {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut forward = Forward::new(scene, kernel, setup);
    forward.act(&scene.rgb);
    let peak_mb = (MEMORY.peak_usage() - before) as f64 / 1e6;
    let steps = [
        best(setup, || forward.act(&scene.rgb)),
        best(setup, || forward.project(&scene.rgb)),
        best(setup, || forward.vote()),
        best(setup, || forward.choose()),
        best(setup, || forward.control()),
    ];
    let best: Vec<String> = forward.best.iter().map(u32::to_string).collect();
    let mut how = String::new();
    if let Voter::Near(votes) = &forward.voter {
        // How far it is from the exact votes, and whether it chooses the same patches.
        let near = forward.importance.clone();
        let mut exact = Forward::new(scene, &Kernel::Softmax, setup);
        exact.act(&scene.rgb);
        let worst = near.iter().zip(&exact.importance).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f32::max);
        how = format!(
            ",\"method\":\"{:?}\",\"worst\":{worst:e},\"same_best\":{}",
            votes.method(),
            exact.best == forward.best
        );
    }
    format!(
        "{{\"kernel\":\"{name}\",\"level\":\"{}\",\"threads\":{},\"patches\":{},\"us\":{:.2},\"project_us\":{:.2},\
         \"vote_us\":{:.2},\"top_us\":{:.2},\"control_us\":{:.2},\"peak_mb\":{peak_mb:.3}{how},\"best\":[{}]}}",
        setup.level,
        setup.threads.count(),
        scene.patches(),
        steps[0],
        steps[1],
        steps[2],
        steps[3],
        steps[4],
        best.join(",")
    )
}

/// Draws of directions that agreement is averaged over.
const DRAWS: u64 = 24;

/// Which part of the 10 patches that the pairs choose an estimate chooses too, on the picture of 4,800 patches.
fn agreement(setup: &Setup, gain: f32) -> Vec<String> {
    let (width, height) = PICTURES[2];
    let scene = Scene::new(width, height, [2, 2], gain);
    let chosen = |kernel: &Kernel| {
        let mut forward = Forward::new(&scene, kernel, setup);
        forward.act(&scene.rgb);
        forward.best
    };
    let wanted = chosen(&Kernel::Pairs);
    let shared =
        |kernel: &Kernel| chosen(kernel).iter().filter(|patch| wanted.contains(patch)).count() as f64;
    let mut rows = Vec::new();
    for (name, kernel) in &kernels()[3..6] {
        rows.push(format!(
            "{{\"kernel\":\"{name}\",\"m\":0,\"n\":0,\"shared\":{:.3}}}",
            shared(kernel) / TOP as f64
        ));
    }
    for (name, estimate) in RANDOM {
        for (m, n) in SIZES {
            let sum: f64 = (0..DRAWS).map(|draw| shared(&Kernel::Random { estimate, m, n, draw })).sum();
            let part = sum / DRAWS as f64 / TOP as f64;
            rows.push(format!("{{\"kernel\":\"{name}\",\"m\":{m},\"n\":{n},\"shared\":{part:.3}}}"));
        }
    }
    rows
}

/// Microseconds of the fastest run: what is left when others on the machine do not disturb.
fn best(setup: &Setup, mut what: impl FnMut()) -> f64 {
    let now =
        || nanoseconds(if setup.threads.count() == 1 { ClockId::ThreadCPUTime } else { ClockId::Monotonic });
    let (start, mut best) = (now(), u64::MAX);
    loop {
        let pass = now();
        what();
        let end = now();
        best = best.min(end - pass);
        if end - start > SPEND {
            return best as f64 / 1e3;
        }
    }
}

/// A clock in nanoseconds.
fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

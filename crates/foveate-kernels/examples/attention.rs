//! CPU time of one thread for a whole decision, from bytes to actions, by every kernel at growing numbers of patches.
//!
//! `cargo run --release -p foveate-kernels --example attention [-- --level=LEVEL --only=KERNEL --write FOLDER]`
//!
//! Pictures are cut into patches of 2 × 2 pixels, queries have 4 numbers; the 10 best patches' places go through an LSTM
//! of 16 to 3 actions. JSON: for every kernel and picture the microseconds of the fastest pass, step by step. With
//! `--write`, the picture, the layers and the random directions of the largest are left in a folder, for another
//! language to do the same work.

#![allow(clippy::print_stdout, reason = "printing is what it is for")]

#[path = "scene/mod.rs"]
mod scene;

use std::path::Path;

use foveate_kernels::dense::{self, Dense};
use foveate_kernels::kernel_vote::{Elementwise, FeatureMap, KernelVotes, PairVotes, Positive};
use foveate_kernels::lstm::{Cell, CellState, CellWeights};
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

/// How patches vote.
enum Voter {
    Softmax(Votes),
    Near(NearVotes),
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
    height: usize,
    width: usize,
    inputs: Vec<f32>,
    cell: Cell,
    state: CellState,
    output: Dense,
    actions: Vec<f32>,
}

impl Forward {
    fn new(scene: &Scene, kernel: &str, level: Level) -> Self {
        let (width, height, patches) = (scene.width, scene.height, scene.patches());
        let mut projector = Projector::new(width, height, scene.patch, scene.stride, scene.dim);
        // Softmax votes are powers of two; the other kernels share the scale between queries and keys (equation 4).
        let root = (scene.dim as f64).sqrt();
        let scales = match kernel {
            "softmax" | "near softmax" => Scales { query: std::f64::consts::LOG2_E / root, key: 1.0 },
            _ => Scales { query: 1.0 / root.sqrt(), key: 1.0 / root.sqrt() },
        };
        projector.set(scene.query(), scene.key(), scales);
        let (omega, planes) = (scene.omega(8), scene.planes(7));
        let map = |map: FeatureMap| Voter::Features(KernelVotes::new(&map));
        let dim = scene.dim;
        let voter = match kernel {
            "softmax" => Voter::Softmax(Votes::new(patches, dim)),
            "near softmax" => Voter::Near(NearVotes::new(patches, dim, 1e-4)),
            "brute force" => Voter::Pairs(PairVotes::new(patches, dim, None)),
            "relu" => map(FeatureMap::elementwise(dim, Elementwise::Relu { epsilon: 0.001 }, None)),
            "exp" => map(FeatureMap::elementwise(dim, Elementwise::Exp, None)),
            "elu+1" => map(FeatureMap::elementwise(dim, Elementwise::Elu1, None)),
            "trigonometric (8)" => map(FeatureMap::trigonometric(dim, &omega)),
            "positive (8)" => map(FeatureMap::positive(dim, &omega, Positive::Plain)),
            "hyperbolic (8)" => map(FeatureMap::positive(dim, &omega, Positive::Hyperbolic)),
            "hybrid (8, 7)" => map(FeatureMap::hybrid(dim, &omega, Positive::Plain, &planes)),
            "hybrid++ (8, 7)" => map(FeatureMap::hybrid(dim, &omega, Positive::Hyperbolic, &planes)),
            other => panic!("no kernel is called {other}"),
        };
        let inputs = 2 * TOP;
        let weights: Vec<f32> =
            numbers(9).take(4 * HIDDEN * (inputs + HIDDEN + 2) + ACTIONS * (HIDDEN + 1)).collect();
        let (ih, rest) = weights.split_at(4 * HIDDEN * inputs);
        let (hh, rest) = rest.split_at(4 * HIDDEN * HIDDEN);
        let (bias_ih, rest) = rest.split_at(4 * HIDDEN);
        let (bias_hh, rest) = rest.split_at(4 * HIDDEN);
        let (mut cell, mut output) = (Cell::new(inputs, HIDDEN), Dense::new(HIDDEN, ACTIONS));
        cell.set(CellWeights { weight_ih: ih, weight_hh: hh, bias_ih, bias_hh });
        let (weight, bias) = rest.split_at(ACTIONS * HIDDEN);
        output.set(Linear { weight, bias });
        Forward {
            level,
            strip: projector.strip(),
            embedded: projector.embedded(),
            projector,
            voter,
            importance: vec![0.0; patches],
            best: vec![0; TOP],
            order: Vec::with_capacity(patches),
            columns: scene.columns(),
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
            Voter::Softmax(votes) => votes.cast(self.level, &self.embedded, importance),
            Voter::Near(votes) => votes.cast(self.level, &self.embedded, importance),
            Voter::Pairs(votes) => {
                votes.cast(self.level, &self.embedded, None, importance).expect("short vectors");
            }
            Voter::Features(votes) => {
                votes.cast(self.level, &self.embedded, None, importance).expect("short vectors");
            }
        }
    }

    fn choose(&mut self) {
        top_k(&self.importance, &mut self.best, &mut self.order);
    }

    fn control(&mut self) {
        for (&patch, to) in self.best.iter().zip(self.inputs.chunks_exact_mut(2)) {
            let (row, column) = (patch as usize / self.columns, patch as usize % self.columns);
            to[0] = (row * 2 + 1) as f32 / self.height as f32;
            to[1] = (column * 2 + 1) as f32 / self.width as f32;
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

const KERNELS: [&str; 11] = [
    "softmax",
    "near softmax",
    "brute force",
    "relu",
    "exp",
    "elu+1",
    "trigonometric (8)",
    "positive (8)",
    "hyperbolic (8)",
    "hybrid (8, 7)",
    "hybrid++ (8, 7)",
];

fn main() -> std::io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let level = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--level="))
        .map_or(Level::best(), |name| Level::named(name).expect("a level of this processor"));
    if let Some(folder) = args.iter().position(|arg| arg == "--write").and_then(|i| args.get(i + 1)) {
        let (width, height) = PICTURES[3];
        Scene::new(width, height).write(Path::new(folder))?;
    }
    let mut rows = Vec::new();
    let only = args.iter().find_map(|arg| arg.strip_prefix("--only="));
    for kernel in KERNELS.into_iter().filter(|&kernel| only.is_none_or(|only| kernel == only)) {
        for (width, height) in PICTURES {
            let scene = Scene::new(width, height);
            let before = MEMORY.current_usage();
            MEMORY.reset_peak_usage();
            let mut forward = Forward::new(&scene, kernel, level);
            forward.act(&scene.rgb);
            let peak_mb = (MEMORY.peak_usage() - before) as f64 / 1e6;
            let steps = [
                best(|| forward.act(&scene.rgb)),
                best(|| forward.project(&scene.rgb)),
                best(|| forward.vote()),
                best(|| forward.choose()),
                best(|| forward.control()),
            ];
            let best: Vec<String> = forward.best.iter().map(u32::to_string).collect();
            rows.push(format!(
                "{{\"kernel\":\"{kernel}\",\"level\":\"{level}\",\"patches\":{},\"us\":{:.2},\"project_us\":{:.2},\
                 \"vote_us\":{:.2},\"top_us\":{:.2},\"control_us\":{:.2},\"peak_mb\":{peak_mb:.3},\"best\":[{}]}}",
                scene.patches(),
                steps[0],
                steps[1],
                steps[2],
                steps[3],
                steps[4],
                best.join(",")
            ));
        }
    }
    println!("{{\"attention\":[\n{}\n]}}", rows.join(",\n"));
    Ok(())
}

/// Microseconds of the fastest run: what is left when others on the machine do not disturb.
fn best(mut what: impl FnMut()) -> f64 {
    let (start, mut best) = (cpu_ns(), u64::MAX);
    loop {
        let pass = cpu_ns();
        what();
        let now = cpu_ns();
        best = best.min(now - pass);
        if now - start > SPEND {
            return best as f64 / 1e3;
        }
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

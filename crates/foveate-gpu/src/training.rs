//! Training by V-trace on a GPU: many worlds are stepped by threads while the GPU computes.
//!
//! Worlds lie in groups, which take turns: while one group's worlds are stepped, the GPU computes the actions of the other. After
//! [`unroll`](VtraceConfig::unroll) steps of a group the learner makes an update from every
//! [`batch`](VtraceConfig::batch) of its worlds. Unrolls run across the ends of episodes. The step after an end resets the
//! world: it holds the final observation, whose value counts after a truncation, and nothing is learnt from its action.
//!
//! The same seed gives the same numbers on the same GPU for any number of threads. A run that goes on from its state begins new
//! episodes.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use foveate_core::{Env, LossSums, Rng, Seed};
use foveate_envs::lane::{Autoreset, LaneStep};
use foveate_learn::Optimizer;
use foveate_run::vector::{Actions, Batch, VectorError, VectorWorld};
use foveate_train::vtrace::{Behaviour, VtraceConfig, measures};

use crate::device::{DeviceError, Memory};
use crate::network::{BuildError, Network, Pass, States};

/// Returns of the last episodes that a report means.
const RECENT: usize = 100;

/// Why a training ends early.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The worlds.
    #[error(transparent)]
    Worlds(#[from] VectorError),
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] BuildError),
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The worlds' thread is gone.
    #[error("the thread that steps the worlds ended: {0}")]
    Thread(String),
    /// A number is not finite.
    #[error("update {update}: {what}; lower learning_rate, or clip gradients more")]
    Diverged {
        /// Which, counted from 0.
        update: u64,
        /// What is not finite.
        what: String,
    },
    /// Sizes that do not fit each other.
    #[error("{0}")]
    Sizes(String),
}

/// Worlds in a thread of their own.
struct Stepped {
    choices: Sender<(Vec<usize>, Vec<u8>)>,
    seen: Receiver<Result<Turn, VectorError>>,
}

/// What worlds show after a step.
struct Turn {
    /// `[worlds, picture]`
    pictures: Vec<u8>,
    steps: Vec<LaneStep>,
    /// The buffer of the choices.
    choices: Vec<usize>,
}

impl Stepped {
    fn new(
        env: &dyn Env,
        seeds: Vec<u64>,
        threads: usize,
        max_steps: Option<usize>,
        pixels: usize,
    ) -> Result<Self, VectorError> {
        let count = seeds.len();
        let mut worlds = VectorWorld::new(env, count, threads, Autoreset::NextStep, max_steps)?;
        let (choices, taken) = channel::<(Vec<usize>, Vec<u8>)>();
        let (show, seen) = channel();
        thread::spawn(move || {
            let seeds: Vec<Option<u64>> = seeds.into_iter().map(Some).collect();
            let turn = |worlds: &mut VectorWorld, choices: Vec<usize>, mut pictures: Vec<u8>, begin: bool| {
                if begin {
                    worlds.reset(&seeds, None, &[])?;
                } else {
                    worlds.step(Actions::Choices(&choices))?;
                }
                worlds.observe(Batch::Bytes(&mut pictures))?;
                let mut steps = Vec::with_capacity(choices.len());
                worlds.outcomes(|_, step| steps.push(step));
                Ok(Turn { pictures, steps, choices })
            };
            // Whoever waits may have given up.
            if show.send(turn(&mut worlds, vec![], vec![0; count * pixels], true)).is_err() {
                return;
            }
            while let Ok((choices, pictures)) = taken.recv() {
                if show.send(turn(&mut worlds, choices, pictures, false)).is_err() {
                    return;
                }
            }
        });
        Ok(Stepped { choices, seen })
    }

    fn next(&self) -> Result<Turn, TrainingError> {
        match self.seen.recv() {
            Ok(turn) => Ok(turn?),
            Err(error) => Err(TrainingError::Thread(error.to_string())),
        }
    }

    fn step(&self, choices: Vec<usize>, pictures: Vec<u8>) -> Result<(), TrainingError> {
        self.choices.send((choices, pictures)).map_err(|error| TrainingError::Thread(error.to_string()))
    }
}

/// Sizes of a training.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Worlds, a multiple of two batches.
    pub worlds: usize,
    /// Threads that step them.
    pub threads: usize,
    /// Steps after which an episode is truncated.
    pub max_steps: Option<usize>,
}

/// What happened in a world's step.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    choice: usize,
    /// The logarithm of its probability.
    log: f64,
    reward: f64,
    terminated: bool,
    /// True if the episode ended with it, in either way.
    over: bool,
    /// True if it only reset the world.
    reset: bool,
}

/// Worlds that take their turn together.
struct Group {
    worlds: Stepped,
    count: usize,
    rngs: Vec<Rng>,
    states: States,
    /// Those at the beginning of the unroll.
    begin: States,
    /// `[worlds, picture]`
    frames: Memory,
    /// For each batch `[unroll + 1, batch, picture]`.
    unrolls: Vec<Memory>,
    /// `[unroll + 1, worlds, …]`
    told: Vec<f32>,
    fresh: Vec<u8>,
    /// `[unroll, worlds]`
    taken: Vec<Taken>,
    /// The next row.
    row: usize,
    /// Whether the world's episode is over, so that its next step resets it.
    over: Vec<bool>,
    /// The return and the steps of the running episode.
    running: Vec<(f64, u64)>,
    begun: bool,
}

/// The returns of finished episodes.
#[derive(Debug, Default)]
pub struct Returns {
    /// The last ones.
    pub recent: VecDeque<f64>,
    /// How many there were.
    pub episodes: u64,
}

impl Returns {
    fn push(&mut self, total: f64) {
        self.episodes += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(total);
    }

    /// Their mean; `None` before the first end of an episode.
    pub fn mean(&self) -> Option<f64> {
        let n = self.recent.len();
        (n > 0).then(|| self.recent.iter().sum::<f64>() / n as f64)
    }
}

/// A training.
pub struct Training<'n> {
    network: &'n Network,
    acting: Pass,
    learning: Pass,
    groups: Vec<Group>,
    turn: usize,
    unroll: usize,
    batch: usize,
    /// The parameters, as on the device.
    pub params: Vec<f32>,
    /// The optimiser.
    pub optimizer: Optimizer,
    /// Steps of all worlds.
    pub steps: u64,
    /// Updates made.
    pub updates: u64,
    /// Returns.
    pub returns: Returns,
    sums: LossSums,
    norms: f64,
    since: u64,
}

const GROUPS: usize = 2;

impl<'n> Training<'n> {
    /// Begins at these parameters. `part` counts how often the run was begun or resumed: each part has its own episodes.
    ///
    /// # Errors
    /// When the sizes do not fit each other or the device, or a world cannot be made.
    pub fn new(
        network: &'n Network,
        env: &dyn Env,
        config: &VtraceConfig,
        sizes: Sizes,
        (params, optimizer): (Vec<f32>, Optimizer),
        seed: Seed,
        part: u64,
    ) -> Result<Self, TrainingError> {
        let (batch, unroll) = (config.batch, config.unroll);
        if sizes.worlds == 0 || !sizes.worlds.is_multiple_of(GROUPS * batch) {
            return Err(TrainingError::Sizes(format!(
                "{} worlds; with a batch of {batch} choose a multiple of {}",
                sizes.worlds,
                GROUPS * batch
            )));
        }
        network.set_params(&params)?;
        let settings = network.config();
        let pixels: usize = settings.view.iter().product();
        let (count, told) = (sizes.worlds / GROUPS, 1 + settings.actions);
        let device = network.ops().device();
        let mut groups = Vec::with_capacity(GROUPS);
        for group in 0..GROUPS {
            let world = |i: usize| seed.child("world", (group * count + i) as u64).child("part", part);
            let seeds = (0..count).map(|i| world(i).child("episodes", 0).value()).collect();
            let threads = (sizes.threads / GROUPS).max(1);
            groups.push(Group {
                worlds: Stepped::new(env, seeds, threads, sizes.max_steps, pixels)?,
                count,
                rngs: (0..count).map(|i| world(i).child("actions", 0).rng()).collect(),
                states: network.states(count)?,
                begin: network.states(count)?,
                frames: Memory::bytes(device, count * pixels)?,
                unrolls: (0..count / batch)
                    .map(|_| Memory::bytes(device, (unroll + 1) * batch * pixels))
                    .collect::<Result<_, _>>()?,
                told: vec![0.0; (unroll + 1) * count * told],
                fresh: vec![0; (unroll + 1) * count],
                taken: vec![Taken::default(); unroll * count],
                row: 0,
                over: vec![false; count],
                running: vec![(0.0, 0); count],
                begun: false,
            });
        }
        Ok(Training {
            acting: network.pass(1, count, false)?,
            learning: network.pass(unroll + 1, batch, true)?,
            network,
            groups,
            turn: 0,
            unroll,
            batch,
            params,
            optimizer,
            steps: 0,
            updates: 0,
            returns: Returns::default(),
            sums: LossSums::default(),
            norms: 0.0,
            since: 0,
        })
    }

    /// The turn of the next group: takes what its worlds show, learns if an unroll is complete, and acts.
    ///
    /// # Errors
    /// When a world or the device refuses, or numbers are not finite.
    pub fn turn(&mut self, config: &VtraceConfig) -> Result<(), TrainingError> {
        let Training { network, unroll, groups, turn, .. } = self;
        let (ops, settings, unroll) = (network.ops(), network.config(), *unroll);
        let pixels: usize = settings.view.iter().product();
        let told_len = 1 + settings.actions;
        let which = *turn;
        *turn = (*turn + 1) % GROUPS;
        let group = &mut groups[which];
        let Turn { pictures, steps, mut choices } = group.worlds.next()?;
        if group.begun {
            self.steps += group.take(&steps, &mut self.returns, settings.reward_clip, told_len);
        } else {
            group.begun = true;
            group.fresh[..group.count].fill(1);
        }
        ops.write_bytes(group.frames.all_bytes(), &pictures)?;
        group.keep_frames(ops, pixels, self.batch)?;
        if group.row == unroll {
            self.learn(which, config)?;
            let group = &mut self.groups[which];
            group.next_unroll(told_len);
            group.keep_frames(ops, pixels, self.batch)?;
        }
        let group = &mut self.groups[which];
        if group.row == 0 {
            self.acting.begin_at(ops, &group.states, 0)?;
            self.acting.copy_begin(ops, &group.begin)?;
        }
        let row = group.row * group.count..(group.row + 1) * group.count;
        self.acting.begin_at(ops, &group.states, 0)?;
        let told = &group.told[row.start * told_len..row.end * told_len];
        self.acting.tell(ops, told, &group.fresh[row.clone()])?;
        self.network.forward(&self.acting, group.frames.all_bytes())?;
        self.acting.end(ops, &group.states)?;
        let (logits, _) = self.acting.outputs(ops)?;
        choices.clear();
        let mut weights = vec![0.0; settings.actions];
        for (i, logits) in logits.chunks_exact(settings.actions).enumerate() {
            let choice = draw(&mut group.rngs[i], logits, &mut weights);
            let log = VtraceConfig::log_probability(logits, choice);
            if !log.is_finite() {
                let what = format!("the actor's probability of an action is exp({log})");
                return Err(TrainingError::Diverged { update: self.updates, what });
            }
            group.taken[row.start + i] = Taken { choice, log, reset: group.over[i], ..Taken::default() };
            choices.push(choice);
        }
        group.row += 1;
        group.worlds.step(choices, pictures)
    }

    /// An update from every batch of a group.
    fn learn(&mut self, which: usize, config: &VtraceConfig) -> Result<(), TrainingError> {
        let (network, ops) = (self.network, self.network.ops());
        let (unroll, batch, actions) = (self.unroll, self.batch, self.network.config().actions);
        let group = &self.groups[which];
        let (rows, told_len) = (unroll + 1, 1 + actions);
        for part in 0..group.count / batch {
            let first = part * batch;
            let mut told = Vec::with_capacity(rows * batch * told_len);
            let mut fresh = Vec::with_capacity(rows * batch);
            for row in 0..rows {
                let begin = row * group.count + first;
                told.extend_from_slice(&group.told[begin * told_len..(begin + batch) * told_len]);
                fresh.extend_from_slice(&group.fresh[begin..begin + batch]);
            }
            self.learning.begin_at(ops, &group.begin, first)?;
            self.learning.tell(ops, &told, &fresh)?;
            let pictures = group.unrolls[part].all_bytes();
            network.forward(&self.learning, pictures)?;
            let (outputs, values) = self.learning.outputs(ops)?;
            let (mut d_outputs, mut d_values) = (vec![0.0; outputs.len()], vec![0.0; values.len()]);
            let taken = |row: usize, i: usize| group.taken[row * group.count + first + i];
            let learnt = (0..unroll).map(|row| (0..batch).filter(|&i| !taken(row, i).reset).count()).sum();
            let scale = config.scale(learnt);
            for i in 0..batch {
                let mut begin = 0;
                while begin < unroll {
                    if taken(begin, i).reset {
                        begin += 1;
                        continue;
                    }
                    // Steps of one episode.
                    let mut end = begin + 1;
                    while end < unroll && !taken(end - 1, i).over {
                        end += 1;
                    }
                    let steps = (begin..end).map(|row| taken(row, i));
                    let bound = config.reward_clip;
                    let behaviour = Behaviour {
                        choices: steps.clone().map(|step| step.choice).collect(),
                        logs: steps.clone().map(|step| step.log).collect(),
                        rewards: steps.map(|step| step.reward.clamp(-bound, bound)).collect(),
                        terminated: taken(end - 1, i).terminated,
                        kept: vec![],
                    };
                    let at = |row: usize| row * batch + i;
                    let own: Vec<f32> = (begin..=end)
                        .flat_map(|row| &outputs[at(row) * actions..(at(row) + 1) * actions])
                        .copied()
                        .collect();
                    let valued: Vec<f32> = (begin..=end).map(|row| values[at(row)]).collect();
                    let (mut d_own, mut d_valued) = (vec![0.0; own.len()], vec![0.0; valued.len()]);
                    let sums = config.differentiate(
                        &behaviour,
                        actions,
                        scale,
                        (&own, &valued),
                        (&mut d_own, &mut d_valued),
                    );
                    self.sums.iter_mut().zip(sums).for_each(|(all, x)| *all += x);
                    for (row, (d_own, d_value)) in
                        (begin..end).zip(d_own.chunks_exact(actions).zip(&d_valued))
                    {
                        d_outputs[at(row) * actions..(at(row) + 1) * actions].copy_from_slice(d_own);
                        d_values[at(row)] = *d_value;
                    }
                    begin = end;
                }
            }
            let mut gradient = network.backward(&self.learning, pictures, &d_outputs, &d_values)?;
            let norm = config.clip(&mut gradient);
            if !norm.is_finite() {
                let what = format!("the norm of the gradient is {norm}");
                return Err(TrainingError::Diverged { update: self.updates, what });
            }
            self.optimizer.step(config.learning_rate, &gradient, &mut self.params);
            network.set_params(&self.params)?;
            self.updates += 1;
            self.since += 1;
            self.norms += norm;
        }
        Ok(())
    }

    /// What the log says of the updates since the last call.
    pub fn measures(&mut self) -> Vec<(&'static str, f64)> {
        let mut all = measures(&self.sums, self.since);
        all.push(("gradient_norm", self.norms / self.since.max(1) as f64));
        (self.sums, self.norms, self.since) = (LossSums::default(), 0.0, 0);
        all
    }
}

/// Draws a choice from the softmax of logits; `weights` is scratch space.
fn draw(rng: &mut Rng, logits: &[f32], weights: &mut [f64]) -> usize {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for (weight, &logit) in weights.iter_mut().zip(logits) {
        *weight = f64::from(logit - most).exp();
    }
    rng.weighted(weights)
}

impl Group {
    /// Takes the outcomes of the last row's steps: rewards, ends, and what the agent is told of them. Returns how many steps were
    /// made that are no resets.
    fn take(&mut self, steps: &[LaneStep], returns: &mut Returns, bound: f64, told_len: usize) -> u64 {
        let mut made = 0;
        let (last, row) = ((self.row - 1) * self.count, self.row * self.count);
        for (i, &LaneStep { step, is_reset }) in steps.iter().enumerate() {
            let taken = &mut self.taken[last + i];
            let told = &mut self.told[(row + i) * told_len..(row + i + 1) * told_len];
            told.fill(0.0);
            self.fresh[row + i] = u8::from(is_reset);
            self.over[i] = step.is_over();
            if is_reset {
                self.running[i] = (0.0, 0);
                continue;
            }
            made += 1;
            taken.reward = step.reward;
            taken.terminated = step.terminated;
            taken.over = step.is_over();
            told[0] = step.reward.clamp(-bound, bound) as f32;
            told[1 + taken.choice] = 1.0;
            self.running[i].0 += step.reward;
            self.running[i].1 += 1;
            if taken.over {
                returns.push(self.running[i].0);
            }
        }
        made
    }

    /// Copies the frames to the current row of the unrolls.
    fn keep_frames(&self, ops: &crate::ops::Ops, pixels: usize, batch: usize) -> Result<(), DeviceError> {
        for (part, unroll) in self.unrolls.iter().enumerate() {
            let len = batch * pixels;
            let to = unroll.all_bytes().part(self.row * len, len);
            ops.copy_bytes(to, self.frames.all_bytes().part(part * len, len))?;
        }
        Ok(())
    }

    /// The last row becomes the first one.
    fn next_unroll(&mut self, told_len: usize) {
        let begin = self.row * self.count;
        self.told.copy_within(begin * told_len..(begin + self.count) * told_len, 0);
        self.fresh.copy_within(begin..begin + self.count, 0);
        self.row = 0;
    }
}

/// Returns of the first episode of each of `count` worlds. With `greedy` the most probable action is taken, otherwise one is drawn.
///
/// # Errors
/// When a world or the device refuses.
pub fn evaluate(
    network: &Network,
    env: &dyn Env,
    sizes: Sizes,
    greedy: bool,
    seed: Seed,
) -> Result<Vec<f64>, TrainingError> {
    let (ops, settings, count) = (network.ops(), network.config(), sizes.worlds);
    let pixels: usize = settings.view.iter().product();
    let told_len = 1 + settings.actions;
    let seeds: Vec<u64> = (0..count).map(|i| seed.child("episode", i as u64).value()).collect();
    let mut rngs: Vec<Rng> =
        (0..count).map(|i| seed.child("episode", i as u64).child("actions", 0).rng()).collect();
    let worlds = Stepped::new(env, seeds, sizes.threads.max(1), sizes.max_steps, pixels)?;
    let (pass, states) = (network.pass(1, count, false)?, network.states(count)?);
    let frames = Memory::bytes(ops.device(), count * pixels)?;
    let (mut totals, mut over) = (vec![0.0; count], vec![false; count]);
    let mut told = vec![0.0; count * told_len];
    let mut fresh = vec![1_u8; count];
    let mut weights = vec![0.0; settings.actions];
    let mut first = true;
    loop {
        let Turn { pictures, steps, mut choices } = worlds.next()?;
        if !first {
            fresh.fill(0);
            for (i, LaneStep { step, .. }) in
                steps.iter().enumerate().filter(|(i, _)| !over[*i]).collect::<Vec<_>>()
            {
                totals[i] += step.reward;
                over[i] = step.is_over();
                let told = &mut told[i * told_len..(i + 1) * told_len];
                told.fill(0.0);
                told[0] = step.reward.clamp(-settings.reward_clip, settings.reward_clip) as f32;
                told[1 + choices[i]] = 1.0;
            }
        }
        first = false;
        if over.iter().all(|&over| over) {
            return Ok(totals);
        }
        ops.write_bytes(frames.all_bytes(), &pictures)?;
        pass.begin_at(ops, &states, 0)?;
        pass.tell(ops, &told, &fresh)?;
        network.forward(&pass, frames.all_bytes())?;
        pass.end(ops, &states)?;
        let (logits, _) = pass.outputs(ops)?;
        choices.clear();
        for (rng, logits) in rngs.iter_mut().zip(logits.chunks_exact(settings.actions)) {
            let best =
                || (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a }).unwrap_or(0);
            choices.push(if greedy { best() } else { draw(rng, logits, &mut weights) });
        }
        worlds.step(choices, pictures)?;
    }
}

//! Population-based training (Jaderberg et al. 2017, "Population Based Training of Neural Networks"), as IMPALA and S3TA use it:
//! several learners by V-trace, which copy from each other.
//!
//! Every member of the population is a [`Vtrace`] with weights and settings of its own: the learning rate, the weight of the
//! entropy, the optimiser's ε and the bound of gradients. All begin with the same. In each round every member plays episodes of
//! its own and learns from them. A member's fitness is the mean of what its episodes count since the last comparison; in
//! a world of several tasks, episodes count as capped human-normalised scores, and the mean is that of the tasks' means. After every
//! [`interval`](PopulationConfig::interval) rounds, each member
//!
//! 1. is compared with another one, drawn at random; if that is better by more than [`margin`](PopulationConfig::margin), it
//!    takes over the other's weights, optimiser and settings, as they were before the comparison;
//! 2. then multiplies or divides each setting by [`factor`](PopulationConfig::factor), with probability
//!    [`chance`](PopulationConfig::chance).
//!
//! [`Learner::weights`] are those of the fittest member. Like all learners, it has the same bits for any number of workers and
//! after any kill: draws depend on the seed and the number of the comparison alone.

#[cfg(test)]
mod tests;

use foveate_core::{
    Episodes, Experience, LearnError, Learner, Population as Rows, Progress, Purpose, Record, Seed,
    StateDict, StateReader, StopRequest, Tensor, Work,
};
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::descent::{check_saved, rounded};
use crate::descriptor::{
    JobSize, LearnerDescriptor, LearnerParts, LearnerSettings, LearnerSize, LearnsFrom, parse,
};
use crate::fingerprint::SettingsOrder;
use crate::learning::returns;
use crate::recipe::values::Fitness;
use crate::vtrace::{EVOLVED, Heritage, Vtrace, VtraceConfig};

/// Descriptor for the registry.
pub(crate) const DESCRIPTOR: LearnerDescriptor = LearnerDescriptor {
    name: "population",
    summary: "several learners by V-trace that copy weights and settings from each other (population-based training)",
    learns_from: LearnsFrom::Policies,
    schedulable: false,
    parse: parse::<PopulationConfig>,
};

/// Settings of a population. The defaults are those that S3TA was published with; the paper does not state `interval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PopulationConfig {
    /// Members, at least 2.
    pub members: usize,
    /// Rounds from one comparison to the next, at least 1.
    pub interval: u64,
    /// Rounds before the first comparison.
    pub begin: u64,
    /// By how much the other one must be better, in the unit of the returns (of several tasks: percent), at least 0.
    pub margin: f64,
    /// Probability with which a setting changes after a comparison, 0 to 1.
    pub chance: f64,
    /// By which it is multiplied or divided, above 1.
    pub factor: f64,
    /// The settings with which every member begins.
    pub vtrace: VtraceConfig,
}

impl Default for PopulationConfig {
    fn default() -> Self {
        PopulationConfig {
            members: 16,
            interval: 10,
            begin: 0,
            margin: 5.0,
            chance: 1.0 / 3.0,
            factor: 1.2,
            vtrace: VtraceConfig::default(),
        }
    }
}

/// Bounds of settings that grow or shrink for long, in the order of [`EVOLVED`].
const LEAST_OF_SETTINGS: f64 = 1e-12;
const MOST_OF_SETTINGS: [f64; EVOLVED.len()] = [1e6, 1e6, 1.0, 1e12];
/// See [`SettingsOrder`].
const ORDER: SettingsOrder =
    SettingsOrder { always: "members interval begin margin chance factor", later: &[], words: &[] };
/// Most members.
const MOST_MEMBERS: usize = 1000;

impl PopulationConfig {
    /// The learner with these settings and parts.
    fn population(&self, parts: LearnerParts<'_>) -> Result<Population, LearnError> {
        let LearnerParts { weights, seed, model, fitness } = parts;
        let mut members = Vec::with_capacity(self.members);
        for number in 0..self.members as u64 {
            let seed = seed.child("member", number);
            let parts = LearnerParts { weights: weights.clone(), seed, model, fitness };
            members.push(Member { learner: Vtrace::of_parts(&self.vtrace, parts)?, played: vec![] });
        }
        Ok(Population {
            config: self.clone(),
            seed,
            fitness,
            members,
            generation: 0,
            rated: vec![0.0; self.members],
            copies: 0,
            jobs: 0,
        })
    }
}

impl LearnerSettings for PopulationConfig {
    fn check(&self) -> Result<(), LearnError> {
        let refuse = |why: String| Err(LearnError::BadConfig { why });
        let &PopulationConfig { members, interval, margin, chance, factor, .. } = self;
        if !(2..=MOST_MEMBERS).contains(&members) {
            return refuse(format!("members = {members}; choose from 2 to {MOST_MEMBERS}"));
        }
        if interval == 0 {
            return refuse("interval = 0; choose 1 or more".into());
        }
        if !(margin >= 0.0 && margin.is_finite()) {
            return refuse(format!("margin = {margin}; it must be at least 0"));
        }
        if !(0.0..=1.0).contains(&chance) {
            return refuse(format!("chance = {chance}; choose from 0 to 1"));
        }
        if !(factor > 1.0 && factor <= 100.0) {
            return refuse(format!("factor = {factor}; choose one above 1, at most 100"));
        }
        self.vtrace.check()
    }

    fn table(&self) -> Table {
        Table::try_from(self).expect("a plain table of numbers")
    }

    fn rows(&self, _: usize) -> usize {
        self.members
    }

    fn build(&self, parts: LearnerParts<'_>) -> Result<Box<dyn Learner>, LearnError> {
        Ok(Box::new(self.population(parts)?))
    }

    fn size(&self, job: &JobSize) -> LearnerSize {
        let one = self.vtrace.size(job);
        let members = self.members as u64;
        LearnerSize {
            memory: one.memory.saturating_mul(members),
            saved: one.saved.saturating_mul(members),
            what: format!("for each of {members} members {}", one.what),
            remedy: "lower members, max_steps, or the stage's tracks",
        }
    }
}

/// The learner; see the [module documentation](self).
struct Population {
    config: PopulationConfig,
    seed: Seed,
    fitness: Fitness,
    members: Vec<Member>,
    generation: u64,
    /// `[members]`: the fitness by the episodes since the last comparison, this round's included.
    rated: Vec<f64>,
    /// How often a member took over another one's weights.
    copies: u64,
    /// Episodes of each member in the work that is due; 0 before it was asked for.
    jobs: usize,
}

struct Member {
    learner: Vtrace,
    /// The episodes since the last comparison: which task each was of, and what it counted.
    played: Vec<(usize, f64)>,
}

impl Population {
    /// The number of the comparison that is due after this many rounds, if one is.
    const fn comparison(&self) -> Option<u64> {
        let PopulationConfig { interval, begin, .. } = self.config;
        let since = self.generation.saturating_sub(begin);
        if self.generation > begin && since.is_multiple_of(interval) { Some(since / interval) } else { None }
    }

    /// The members' fitness, by what they played since the last comparison.
    fn rate(&mut self) {
        for (fitness, member) in self.rated.iter_mut().zip(&self.members) {
            if !member.played.is_empty() {
                *fitness = self.fitness.of_tasks(&member.played);
            }
        }
    }

    /// The number of the fittest member, the first of equals.
    fn leader(&self) -> usize {
        (1..self.rated.len()).fold(0, |best, one| if self.rated[one] > self.rated[best] { one } else { best })
    }

    /// Members take over from better ones, then change their settings.
    fn compare(&mut self, number: u64) -> Result<(), LearnError> {
        let PopulationConfig { margin, chance, factor, .. } = self.config;
        let count = self.members.len();
        let before = self.heritage();
        for (one, member) in self.members.iter_mut().enumerate() {
            let mut rng = self.seed.child("comparison", number).child("member", one as u64).rng();
            let mut other = rng.below(count as u64 - 1) as usize;
            other += usize::from(other >= one);
            if self.rated[other] > self.rated[one] + margin {
                member.learner.inherit(&before[other])?;
                self.copies += 1;
            }
            let mut settings = member.learner.evolved();
            for (setting, most) in settings.iter_mut().zip(MOST_OF_SETTINGS) {
                // Both draws are made in any case, so that one setting's luck does not change another's.
                let (changes, grows) = (rng.next_f64() < chance, rng.next_f64() < 0.5);
                if changes {
                    let changed = if grows { *setting * factor } else { *setting / factor };
                    // A setting of 0 stays 0.
                    *setting = if *setting == 0.0 { 0.0 } else { changed.clamp(LEAST_OF_SETTINGS, most) };
                }
            }
            member.learner.evolve(settings)?;
            member.played.clear();
        }
        Ok(())
    }

    /// What every member has learnt.
    fn heritage(&self) -> Vec<Heritage> {
        self.members.iter().map(|member| member.learner.heritage()).collect()
    }

    /// Goes back to what every member had learnt.
    fn inherit(&mut self, before: &[Heritage]) -> Result<(), LearnError> {
        self.members.iter_mut().zip(before).try_for_each(|(member, before)| member.learner.inherit(before))
    }

    /// Restores what a member has learnt; returns what its episodes counted.
    fn restore_member(&mut self, number: usize, state: &StateDict) -> Result<Vec<(usize, f64)>, LearnError> {
        let prefix = format!("member{number}.");
        let own: StateDict = state
            .iter()
            .filter_map(|(name, tensor)| Some((name.strip_prefix(&prefix)?.to_owned(), tensor.clone())))
            .collect();
        let saved = StateReader(&own);
        let evolved = saved.f64s("evolved", EVOLVED.len())?;
        let learner = &mut self.members[number].learner;
        learner.evolve(std::array::from_fn(|i| evolved[i])).map_err(|error| bad_state(error.to_string()))?;
        learner.restore(&own)?;
        let played = saved.any_f64s("played")?;
        // Without `tasks` there was one, or the state is of an older build, which did not tell tasks apart.
        let tasks = if own.contains_key("tasks") { saved.counts("tasks", played.len())? } else { &[] };
        let task = |episode: usize| tasks.get(episode).map_or(0, |&task| task as usize);
        Ok(played.iter().enumerate().map(|(episode, &counted)| (task(episode), counted)).collect())
    }

    /// Its own settings as numbers, to detect a state that was saved with others.
    fn numbers(&self) -> Vec<f64> {
        let mut settings = self.config.table();
        settings.remove("vtrace");
        [ORDER.numbers(settings), self.config.vtrace.numbers()].concat()
    }
}

fn bad_state(why: String) -> LearnError {
    LearnError::BadState { why }
}

impl Learner for Population {
    fn work(&mut self, episodes: &Episodes<'_>) -> Work {
        let mut weights = Rows::zeros(0, self.weights().len());
        for member in &self.members {
            weights.push(rounded(member.learner.weights()).into_iter());
        }
        self.jobs = episodes.per_row;
        Work {
            purpose: Purpose::Training,
            weights,
            jobs: episodes.jobs(self.members.len()),
            rules: episodes.rules,
            record: Record::Transitions { unroll: self.config.vtrace.unroll },
            epsilon: 0.0,
            draw_actions: false,
        }
    }

    fn receive(&mut self, experience: Experience) -> Result<Progress, LearnError> {
        let count = self.members.len();
        if self.jobs == 0 {
            return Err(LearnError::NothingAsked);
        }
        let totals = returns("population", self.generation, &experience)?;
        let tasks = experience.episodes.iter().map(|episode| episode.task);
        let played: Vec<(usize, f64)> = tasks.zip(totals.iter().copied()).collect();
        let Experience { version, episodes, recordings } = experience;
        let wanted = count * self.jobs;
        if episodes.len() != wanted || recordings.len() != wanted {
            let (episodes, recordings) = (episodes.len(), recordings.len());
            return Err(LearnError::Experience {
                why: format!("{episodes} episodes and {recordings} recordings, {wanted} of each are due"),
            });
        }
        let before = self.heritage();
        let (mut episodes, mut recordings) = (episodes.into_iter(), recordings.into_iter());
        for number in 0..count {
            let own = Experience {
                version,
                episodes: episodes.by_ref().take(self.jobs).collect(),
                recordings: recordings.by_ref().take(self.jobs).collect(),
            };
            if let Err(error) = self.members[number].learner.receive(own) {
                self.inherit(&before)?;
                return Err(match error {
                    LearnError::Diverged { generation, what } => {
                        LearnError::Diverged { generation, what: format!("member {}: {what}", number + 1) }
                    }
                    other => other,
                });
            }
        }
        self.generation += 1;
        let rounds: Vec<f64> = totals.chunks(self.jobs).map(|totals| self.fitness.of(totals)).collect();
        for (member, played) in self.members.iter_mut().zip(played.chunks(self.jobs)) {
            member.played.extend_from_slice(played);
        }
        self.rate();
        if let Some(number) = self.comparison() {
            self.compare(number)?;
        }
        Ok(Progress {
            generation: self.generation,
            best: rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            mean: rounds.iter().sum::<f64>() / count as f64,
            sigma: 0.0,
        })
    }

    fn stop_when(&mut self, asked: &StopRequest) {
        self.members.iter_mut().for_each(|member| member.learner.stop_when(asked));
    }

    fn weights(&self) -> &[f64] {
        self.members[self.leader()].learner.weights()
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    /// Those of the fittest member, its number and its settings, and how often weights were taken over.
    fn measures(&self) -> Vec<(&'static str, f64)> {
        let number = self.leader();
        let leader = &self.members[number].learner;
        let mut measures = leader.measures();
        measures.extend([
            ("fitness", self.rated[number]),
            ("member", (number + 1) as f64),
            ("copies", self.copies as f64),
        ]);
        measures.extend(EVOLVED.into_iter().zip(leader.evolved()));
        measures
    }

    fn state(&self) -> StateDict {
        let mut state = StateDict::from([
            ("settings".into(), Tensor::from(self.numbers())),
            ("seed".into(), Tensor::from(vec![self.seed.value()])),
            ("counts".into(), Tensor::from(vec![self.generation, self.copies])),
            ("fitness".into(), Tensor::from(self.rated.clone())),
        ]);
        for (number, member) in self.members.iter().enumerate() {
            let evolved = member.learner.evolved().to_vec();
            state.insert(format!("member{number}.evolved"), Tensor::from(evolved));
            let (tasks, counted): (Vec<u64>, Vec<f64>) =
                member.played.iter().map(|&(task, counted)| (task as u64, counted)).unzip();
            state.insert(format!("member{number}.played"), Tensor::from(counted));
            if tasks.iter().any(|&task| task > 0) {
                state.insert(format!("member{number}.tasks"), Tensor::from(tasks));
            }
            for (name, tensor) in member.learner.state() {
                state.insert(format!("member{number}.{name}"), tensor);
            }
        }
        state
    }

    fn restore(&mut self, state: &StateDict) -> Result<(), LearnError> {
        let saved = StateReader(state);
        check_saved(saved, &self.numbers(), self.seed)?;
        let counts = saved.counters("counts", 2)?;
        let count = self.members.len();
        let rated = saved.f64s("fitness", count)?.to_vec();
        let before = self.heritage();
        let mut played = Vec::with_capacity(count);
        for number in 0..count {
            match self.restore_member(number, state) {
                Ok(own) => played.push(own),
                Err(error) => {
                    self.inherit(&before)?;
                    return Err(error);
                }
            }
        }
        for (member, played) in self.members.iter_mut().zip(played) {
            member.played = played;
        }
        (self.generation, self.copies, self.rated) = (counts[0], counts[1], rated);
        Ok(())
    }
}

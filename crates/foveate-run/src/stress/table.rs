//! Results: rows, columns, and their comparison.

use foveate_core::statistics::{holm, paired};
use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use foveate_train::Summary;
use serde::{Deserialize, Serialize};

use super::conditions::{Condition, What};
use super::keep::RowResult;
use super::published::{self, Published};
use super::{Contender, StressRequest};
use crate::replay::sha256_hex;

/// Agents side by side, in the same modified worlds. Serialises to `table.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressTable {
    /// The file format: `foveate-stress-1`.
    pub format: String,
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Variants and shifts that are active in every row.
    pub base: Vec<String>,
    /// The seed of the random stream.
    pub seed: u64,
    /// Episodes of every row.
    pub episodes: usize,
    /// Steps after which episodes were truncated, if they were.
    pub max_steps: Option<u64>,
    /// The mean return at which the world counts as solved.
    pub solved_at: Option<f64>,
    /// Pictures that an observation holds, the newest and earlier ones; 1 where it holds one or none.
    #[serde(default = "one")]
    pub frames: usize,
    /// The sources of the published numbers, if there are any.
    pub published_source: Option<String>,
    /// One column per agent.
    pub agents: Vec<AgentColumn>,
    /// SHA-256 over all returns and lengths, to compare runs.
    pub digest: String,
}

/// An agent's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentColumn {
    /// Its name.
    pub name: String,
    /// The origin of its weights.
    pub weights: String,
    /// The kind of agent.
    pub agent: String,
    /// SHA-256 of its weights.
    pub sha256: String,
    /// The same in every column, the unmodified world first.
    pub rows: Vec<StressRow>,
}

/// Results of an agent in one modified world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressRow {
    /// The modification, such as `bar` or `noise:3@200`.
    pub name: String,
    /// `original`, `variant` or `shift`.
    pub kind: String,
    /// For a shift that is part of a curve: its operators without their severity.
    pub curve: Option<String>,
    /// For a shift that is part of a curve: its severity.
    pub severity: Option<f64>,
    /// Why the agent did not act in this world, such as its fixed number of inputs; the row then has no episodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// True if it began to act and the world or the agent then reported an error; `skipped` says which.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Statistics of the returns.
    #[serde(flatten)]
    pub summary: Summary,
    /// Whether the mean reaches the threshold for solved.
    pub solved: Option<bool>,
    /// Difference from the unmodified world; `None` in its own row.
    pub change: Option<Change>,
    /// True if the modification changed nothing: every episode has the return, the length and the end that it has in the
    /// unmodified world.
    #[serde(default)]
    pub no_effect: bool,
    /// The published result for this row.
    pub published: Option<Published>,
    /// Sum of rewards of every episode.
    pub returns: Vec<f64>,
    /// Steps of every episode.
    pub lengths: Vec<u64>,
    /// Whether the task itself ended the episode.
    pub terminated: Vec<bool>,
}

/// Why a row has no result.
pub(super) struct NoResult {
    pub(super) why: String,
    /// True if that is an error, and not an agent that does not fit the world.
    pub(super) failed: bool,
}

/// Difference between a row and the unmodified world, paired by episode on the same tracks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean difference; negative is a drop.
    pub difference: f64,
    /// Its 95 % interval, for this row alone: only `p_holm` is corrected. `None` (`null`) for one episode.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided p-value of the paired sign-flip test.
    pub p: f64,
    /// The p-value after Holm's correction over the rows of this agent.
    pub p_holm: f64,
    /// True if all assignments of signs were counted; otherwise 100,000 random ones were.
    pub exact: bool,
}

impl Change {
    /// Returns whether the row differs significantly, at a family-wise level of 5 % for all rows.
    pub fn is_significant(&self) -> bool {
        self.p_holm < 0.05
    }
}

const fn one() -> usize {
    1
}

/// The mean return at which a world counts as solved.
pub fn solved_at(world: &str) -> Option<f64> {
    WORLDS.get(world)?.solved_at
}

impl AgentColumn {
    /// Returns whether any result of it was published.
    pub(super) fn has_published(&self) -> bool {
        self.rows.iter().any(|row| row.published.is_some())
    }

    pub(super) fn new(
        contender: &Contender,
        world: &EnvRequest,
        conditions: &[Condition],
        outcomes: Vec<Result<RowResult, NoResult>>,
    ) -> Self {
        let base = outcomes[0].as_ref().cloned().unwrap_or_default();
        let threshold = solved_at(&world.id);
        let plain = world.variants.is_empty() && world.shifts.is_empty();
        let scores = published::scores(&world.id, &contender.tested).filter(|_| plain);
        let mut rows: Vec<StressRow> = conditions
            .iter()
            .zip(outcomes)
            .enumerate()
            .map(|(i, (condition, outcome))| {
                let (outcome, skipped, failed) = match outcome {
                    Ok(outcome) => (outcome, None, false),
                    Err(NoResult { why, failed }) => (RowResult::default(), Some(why), failed),
                };
                let ran = skipped.is_none();
                let summary = Summary::of(&outcome.returns);
                let compared = if i == 0 || !ran { None } else { paired(&base.returns, &outcome.returns) };
                let (kind, curve) = match &condition.what {
                    What::Original => ("original", None),
                    What::Variant(_) => ("variant", None),
                    What::Shift { curve, .. } => ("shift", curve.clone()),
                };
                let (curve, severity) = curve.unzip();
                StressRow {
                    name: condition.name.clone(),
                    kind: kind.into(),
                    curve,
                    severity,
                    skipped,
                    failed,
                    summary,
                    solved: threshold.filter(|_| ran).map(|at| summary.mean >= at),
                    change: compared.map(|c| Change {
                        difference: c.difference,
                        ci95: c.interval,
                        p: c.p,
                        p_holm: c.p,
                        exact: c.exact,
                    }),
                    no_effect: i > 0 && ran && outcome == base,
                    published: scores
                        .filter(|_| kind != "shift")
                        .and_then(|scores| published::in_variant(scores, &condition.name)),
                    returns: outcome.returns,
                    lengths: outcome.lengths,
                    terminated: outcome.terminated,
                }
            })
            .collect();
        let p: Vec<f64> = rows.iter().filter_map(|row| Some(row.change?.p)).collect();
        for (change, p) in rows.iter_mut().filter_map(|row| row.change.as_mut()).zip(holm(&p)) {
            change.p_holm = p;
        }
        AgentColumn {
            name: contender.name.clone(),
            weights: contender.source.clone(),
            agent: contender.tested.kind().into(),
            sha256: contender.tested.sha256(),
            rows,
        }
    }
}

impl StressTable {
    /// What failed, in one line: how many rows, and the first error of each kind; `None` when no row did.
    pub fn failed(&self) -> Option<String> {
        let rows = || self.agents.iter().flat_map(|agent| &agent.rows);
        let failed: Vec<&StressRow> = rows().filter(|row| row.failed).collect();
        let first = failed.first()?;
        let why = first.skipped.as_deref().unwrap_or_default();
        let (count, all) = (failed.len(), rows().count());
        Some(format!("{count} of {all} rows failed; the first is {}: {why}", first.name))
    }

    pub(super) fn new(request: &StressRequest<'_>, frames: usize, agents: Vec<AgentColumn>) -> Self {
        let EnvRequest { id, picture, variants, shifts, .. } = &request.world;
        let own = || WORLDS.get(id)?.pictures.first();
        let mut sources: Vec<&str> = vec![];
        let with = agents.iter().zip(&request.agents).filter(|(column, _)| column.has_published());
        for scores in with.filter_map(|(_, contender)| published::scores(id, &contender.tested)) {
            if !sources.contains(&scores.source) {
                sources.push(scores.source);
            }
        }
        let mut bytes = Vec::new();
        for row in agents.iter().flat_map(|agent| &agent.rows) {
            row.returns.iter().for_each(|r| bytes.extend_from_slice(&r.to_bits().to_le_bytes()));
            row.lengths.iter().for_each(|n| bytes.extend_from_slice(&n.to_le_bytes()));
        }
        StressTable {
            format: "foveate-stress-1".into(),
            env: id.clone(),
            picture: picture.clone().or_else(|| Some(own()?.name.to_owned())).unwrap_or_default(),
            base: variants.iter().chain(shifts).cloned().collect(),
            seed: request.seed,
            episodes: request.episodes,
            max_steps: request.max_steps,
            solved_at: solved_at(id),
            frames,
            published_source: (!sources.is_empty()).then(|| sources.join("; ")),
            agents,
            digest: sha256_hex(&bytes),
        }
    }
}

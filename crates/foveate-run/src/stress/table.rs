//! What came out: rows, columns, and how they compare.

use foveate_core::statistics::{holm, paired};
use foveate_envs::registry::EnvRequest;
use foveate_registry::WORLDS;
use foveate_train::Summary;
use serde::{Deserialize, Serialize};

use super::conditions::{Condition, What};
use super::keep::RowResult;
use super::published::{Published, published, source};
use super::{Contender, StressRequest};
use crate::replay::sha256_hex;

/// Agents side by side, in the same rows of changed worlds. Serialises to `table.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressTable {
    /// What this is: `foveate-stress-1`.
    pub format: String,
    /// The world.
    pub env: String,
    /// Its picture.
    pub picture: String,
    /// Variants and shifts that are on in every row.
    pub base: Vec<String>,
    /// The seed of the random stream.
    pub seed: u64,
    /// Episodes of every row.
    pub episodes: usize,
    /// Steps after which episodes were ended, if they were.
    pub max_steps: Option<u64>,
    /// The mean return from which on the world counts as solved.
    pub solved_at: Option<f64>,
    /// Where the published numbers come from, if there are any.
    pub published_source: Option<String>,
    /// One for each agent.
    pub agents: Vec<AgentColumn>,
    /// SHA-256 over every return and every length, to compare runs by.
    pub digest: String,
}

/// An agent's rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentColumn {
    /// What it is called.
    pub name: String,
    /// Where its weights came from.
    pub weights: String,
    /// Which kind of agent it is.
    pub agent: String,
    /// SHA-256 of its weights.
    pub sha256: String,
    /// The same in every column, the unmodified world first.
    pub rows: Vec<StressRow>,
}

/// An agent in one changed world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StressRow {
    /// What was changed, as in `bar` or `noise:3@200`.
    pub name: String,
    /// `original`, `variant` or `shift`.
    pub kind: String,
    /// Of a shift that is part of a curve: its operators without their severity.
    pub curve: Option<String>,
    /// And the severity.
    pub severity: Option<f64>,
    /// What the returns come to.
    #[serde(flatten)]
    pub summary: Summary,
    /// Whether the mean reaches what counts as solved.
    pub solved: Option<bool>,
    /// Against the unmodified world; `None` in its own row.
    pub change: Option<Change>,
    /// What was published about such a row.
    pub published: Option<Published>,
    /// Sum of rewards of every episode.
    pub returns: Vec<f64>,
    /// Steps of every episode.
    pub lengths: Vec<u64>,
    /// Whether the task itself ended the episode.
    pub terminated: Vec<bool>,
}

/// How a row differs from the unmodified world, episode by episode on the same tracks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Mean difference; negative is a drop.
    pub difference: f64,
    /// Its 95 % interval, for this row alone: Holm's correction is of `p_holm` only. `None` (`null`) for one episode.
    pub ci95: Option<[f64; 2]>,
    /// Two-sided p-value of the paired sign-flip test.
    pub p: f64,
    /// The same after Holm's correction over the rows of this agent.
    pub p_holm: f64,
    /// Every assignment of signs was counted; else 100,000 random ones were.
    pub exact: bool,
}

impl Change {
    /// Whether the row differs, at the level of 5 % for all rows together.
    pub fn is_significant(&self) -> bool {
        self.p_holm < 0.05
    }
}

/// The mean return from which on a world counts as solved.
pub fn solved_at(world: &str) -> Option<f64> {
    WORLDS.get(world)?.solved_at
}

impl AgentColumn {
    pub(super) fn new(
        contender: &Contender,
        world: &EnvRequest,
        conditions: &[Condition],
        outcomes: Vec<RowResult>,
    ) -> Self {
        let base = outcomes[0].returns.clone();
        let threshold = solved_at(&world.id);
        let plain = world.variants.is_empty() && world.shifts.is_empty();
        let mut rows: Vec<StressRow> = conditions
            .iter()
            .zip(outcomes)
            .enumerate()
            .map(|(i, (condition, outcome))| {
                let summary = Summary::of(&outcome.returns);
                let compared = if i == 0 { None } else { paired(&base, &outcome.returns) };
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
                    summary,
                    solved: threshold.map(|at| summary.mean >= at),
                    change: compared.map(|c| Change {
                        difference: c.difference,
                        ci95: c.interval,
                        p: c.p,
                        p_holm: c.p,
                        exact: c.exact,
                    }),
                    published: published(&world.id, &condition.name).filter(|_| plain && kind != "shift"),
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
            agent: contender.file.name().into(),
            sha256: contender.file.sha256(),
            rows,
        }
    }
}

impl StressTable {
    pub(super) fn new(request: &StressRequest<'_>, agents: Vec<AgentColumn>) -> Self {
        let EnvRequest { id, picture, variants, shifts, .. } = &request.world;
        let own = || WORLDS.get(id)?.pictures.first();
        let any_published = agents.iter().flat_map(|agent| &agent.rows).any(|row| row.published.is_some());
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
            published_source: source(id).filter(|_| any_published).map(str::to_owned),
            agents,
            digest: sha256_hex(&bytes),
        }
    }
}

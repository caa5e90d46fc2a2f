//! Checks whether a generation has enough rollouts for its workers.
//!
//! A generation ends when its longest rollout ends, so workers idle when there are few rollouts per worker.

use crate::recipe::{Recipe, ReplayJudge, Stage};

/// Rollouts per worker and generation above which little time is lost. Late in training, when rollout lengths
/// differ most, 32 rollouts on 16 workers kept the workers busy for 56 % of the time.
const ENOUGH: usize = 8;

/// Returns a warning if workers will wait for one another, about the stage in which they wait most; `None` if
/// they will not. The agent has `params` parameters.
///
/// Learners by gradients are not counted: they have one genome, and their number of tracks is chosen for learning,
/// not for speed.
pub fn warning(recipe: &Recipe, params: usize, workers: usize) -> Option<String> {
    let rollouts = |stage: &Stage| {
        let learner = stage.learner(&recipe.algorithm, 0).ok()?;
        if learner.descriptor().learns_from.needs_model() {
            return None;
        }
        let judges = stage.replay.as_ref().is_some_and(|replay| replay.judge == ReplayJudge::Mean);
        Some((learner.rows(params) + usize::from(judges)).saturating_mul(stage.tracks))
    };
    let all = recipe.stages.iter().enumerate();
    let counted = all.filter_map(|(index, stage)| Some((rollouts(stage)?, index, stage)));
    let (rollouts, index, stage) = counted.min_by_key(|&(rollouts, ..)| rollouts)?;
    let wanted = workers.saturating_mul(ENOUGH);
    if workers < 2 || rollouts >= wanted {
        return None;
    }
    let fewer = match rollouts / ENOUGH {
        0 | 1 => "1".to_owned(),
        most => format!("{most} or fewer"),
    };
    Some(format!(
        "stage {:?} drives {rollouts} rollouts a generation on {workers} workers, {:.1} for each; with fewer than {ENOUGH} \
         they wait for one another: set recipe.stage.{index}.population to {} or more, which trains differently, or \
         workers to {fewer}, which gives the same digits",
        stage.name,
        rollouts as f64 / workers as f64,
        wanted.div_ceil(stage.tracks),
    ))
}

//! Whether a generation has enough rollouts for its workers.
//!
//! A generation is over when its longest rollout is, so workers wait when there are few rollouts for each of them.

use crate::config::TrainConfig;
use crate::recipe::{ReplayJudge, Stage};

/// Rollouts of a generation for each worker from which on little time is lost. Late in training, when rollouts differ
/// most, 32 rollouts on 16 workers kept these busy for 56 % of the time.
const ENOUGH: usize = 8;

/// What to tell before a training begins whose workers will wait for one another, about the stage in which they wait
/// most; the agent has `params` parameters.
///
/// Demonstrations count for nothing here: they have one genome, and their number of tracks is a matter of what is learnt.
pub(crate) fn warning(config: &TrainConfig, params: usize, workers: usize) -> Option<String> {
    let recipe = &config.recipe;
    let rollouts = |stage: &Stage| {
        let strategy = stage.strategy(&recipe.algorithm, 0).ok().filter(|s| s.name() != "imitation")?;
        let judges = stage.replay.as_ref().is_some_and(|replay| replay.judge == ReplayJudge::Mean);
        Some((strategy.population(params) + usize::from(judges)).saturating_mul(stage.tracks))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn said(preset: &str, sets: &[&str], workers: usize) -> Option<String> {
        warning(&TrainConfig::load(preset, None, sets).expect("a preset"), 3667, workers)
    }

    #[test]
    fn the_default_recipe_fits_four_workers() {
        for preset in ["laptop", "evolution", "take-cover"] {
            for workers in 1..=4 {
                assert_eq!(said(preset, &[], workers), None, "{preset} on {workers}");
            }
        }
        assert_eq!(said("paper", &[], 128), None, "256 genomes of 16 tracks");
        let expect = "stage \"tries\" drives 32 rollouts a generation on 16 workers, 2.0 for each; with fewer than 8 they \
                      wait for one another: set recipe.stage.0.population to 128 or more, which trains differently, or \
                      workers to 4 or fewer, which gives the same digits";
        assert_eq!(said("laptop", &[], 16).as_deref(), Some(expect));
    }

    #[test]
    fn rollouts_count_not_genomes() {
        let tracks = ["recipe.stage.0.tracks=4"];
        assert_eq!(said("laptop", &tracks, 16), None);
        let text = said("laptop", &tracks, 17).expect("128 rollouts on 17 workers");
        assert!(text.contains("128 rollouts") && text.contains("population to 34 or more"), "{text}");
        // Rollouts of the mean count, too.
        let replay = "recipe.stage.0.replay={share=0.5,keep=8,judge=\"mean\"}";
        assert_eq!(said("laptop", &["recipe.stage.0.population=31", replay], 4), None);
        let text = said("laptop", &["recipe.stage.0.population=4"], 2).expect("4 rollouts on 2 workers");
        assert!(text.contains("workers to 1, which"), "{text}");
        assert_eq!(said("laptop", &["recipe.stage.0.population=4"], 1), None, "no one waits");
    }
}

//! The answers of a study, by question.

use foveate_core::{Agent, Observation, ObservationBuf};
pub use foveate_explain::study::Answer;
use foveate_explain::study::{ClaimMap, ClaimOfMoments, StudyError, SwapReport};

use super::planted::{PlantedCase, SIDE, places};

/// From 0, *no*, to 1, *yes*.
pub(super) const fn rank(answer: Answer) -> f64 {
    match answer {
        Answer::Yes => 1.0,
        Answer::No => 0.0,
        Answer::Undecided => 0.5,
    }
}

/// What a study answers to a question, and the number that decides it; undecided where it is not asked.
pub(super) fn given(report: &SwapReport, question: &str) -> (Answer, Option<f64>) {
    let line = report.verdict.iter().find(|line| line.question == question);
    line.map_or((Answer::Undecided, None), |line| (line.answer, line.number.map(|number| number.value)))
}

/// The claim of a case, handed in beside the policy.
pub(super) struct HandedClaim<'a>(pub(super) &'a PlantedCase);

impl ClaimOfMoments for HandedClaim<'_> {
    fn name(&self) -> &str {
        self.0.name
    }

    fn at(&self, _: &dyn Agent, seen: &[&ObservationBuf]) -> Result<Vec<ClaimMap>, StudyError> {
        let map = |seen: &&ObservationBuf| {
            let seen = seen.as_observation();
            let mut claim = vec![0.0; places(seen)];
            (self.0.claims)(seen, &mut claim);
            let (rows, columns) = match seen {
                Observation::Grid(grid) => (grid.rows(), grid.columns()),
                Observation::Vector(numbers) => (1, numbers.len()),
                _ => (SIDE, SIDE),
            };
            ClaimMap { rows, columns, weights: claim.into_iter().map(f64::from).collect() }
        };
        Ok(seen.iter().map(map).collect())
    }
}

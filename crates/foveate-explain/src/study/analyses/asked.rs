//! What a function was asked, and what was not asked of it.

use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::twice::AskedTwice;
use crate::figure::count_steps;

/// What a function was asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AskedFunction {
    /// Whether it gave the same answers to the same questions.
    pub twice: AskedTwice,
    /// How often it could be asked beside playing; `None` for as often as the method wants.
    pub questions: Option<usize>,
}

/// The numbers of [`AskedFunction`] under a key of their own.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FunctionAsked {
    /// Of an agent that is a function of the calling program.
    pub function: AskedFunction,
}

/// What a function was asked, and what was not.
#[derive(Debug)]
pub(in crate::study) struct AskedOfFunction;

impl Analysis for AskedOfFunction {
    fn name(&self) -> &'static str {
        "asked"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(&function) = bench.get::<AskedFunction>() else { return Ok(None) };
        let AskedFunction { twice, questions } = function;
        let sentences = twice.sentence().into_iter().collect();
        let within = questions.map_or(String::new(), |questions| {
            format!(
                " It was asked at most {} questions beside playing; questions=None asks as many as the method wants.",
                count_steps(questions as u64)
            )
        });
        let notes = vec![format!(
            "A function has no weights, so nothing is compared with untrained ones.{within} Left out are covered places, whole \
             episodes with a change in every step, and things taken out of the world: foveate explain does these with agents of files."
        )];
        Ok(Some(Finding { sentences, notes, ..Finding::new(FunctionAsked { function }) }))
    }
}

impl AskedTwice {
    /// What a user must know of a function that is not steady; `None` of one that is.
    pub fn sentence(self) -> Option<String> {
        let AskedTwice { questions, differed, .. } = self;
        (!self.is_steady()).then(|| {
            format!(
                "Asked the same question twice, it answered differently in {differed} of {questions} cases: it keeps a state or draws \
                 at random, and what it sees cannot be told from that. Hand over get_state and set_state, or make it deterministic."
            )
        })
    }
}

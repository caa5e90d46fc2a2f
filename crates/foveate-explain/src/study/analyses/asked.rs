//! What a function was asked, and what was not asked of it.

use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::swaps::{Answer, SwapReport};
use super::super::twice::{AskedFunction, AskedTwice};
use crate::figure::count_steps;
use crate::page::{Mood, PageAnswer};

impl AskedFunction {
    /// Leaves every question open if the same question got different answers: a state or chance moves its action then, too.
    pub(in crate::study) fn unsettle(self, report: &mut SwapReport) {
        let AskedTwice { questions, differed, .. } = self.twice;
        if self.twice.is_steady() {
            return;
        }
        for line in &mut report.verdict {
            (line.answer, line.number, line.p) = (Answer::Undecided, None, None);
            line.why = format!(
                "asked the same question twice, it answered differently in {differed} of {questions} cases, so that its memory or chance \
                 moves its action, too"
            );
        }
    }
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
        let AskedFunction { twice, questions, .. } = function;
        let sentences: Vec<String> = twice.sentence().into_iter().collect();
        let answers = sentences.iter().map(|sentence| PageAnswer {
            answer: String::new(),
            sentence: sentence.clone(),
            number: String::new(),
            mood: Mood::Bad,
            more: "findings",
        });
        let answers = answers.collect();
        let within = questions.map_or(String::new(), |questions| {
            format!(
                " It may be asked {} questions beside playing; questions=None allows as many as the method wants.",
                count_steps((questions + twice.questions) as u64)
            )
        });
        let unclaimed = match (function.claims, questions) {
            (0, Some(_)) => {
                " Nothing is claimed of what matters to it, so no claim is tested: claims= names some, and questions=None tests \
                 perturbation saliency on pictures."
            }
            (0, None) => "",
            _ => " Weights of claims count by their magnitude.",
        };
        let untrained = match function.untrained {
            0 if function.claims > 0 => {
                " Nothing is compared with untrained networks; module= of a Function names its network."
            }
            _ => "",
        };
        let notes = vec![format!(
            "It is a function of the calling program.{within}{unclaimed}{untrained} Left out are covered places, whole \
             episodes with a change in every step, and things taken out of the world; foveate explain tests these of agents of files."
        )];
        Ok(Some(Finding { answers, sentences, notes, ..Finding::new(FunctionAsked { function }) }))
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

//! The questions of a report, and their answers.

use std::fmt;

use foveate_core::statistics::holm;
use serde::Serialize;

use crate::estimate::{Estimate, FEWEST_EPISODES, Tested};
use crate::study::words::count;

/// Below this much change, in parts of the action's whole range, nothing is claimed.
pub(in crate::study) const FLOOR: f64 = 0.01;
/// A corrected p-value up to this decides.
pub(in crate::study) const LEVEL: f64 = 0.05;
/// Fewer untrained agents give no *yes*: an agent above all of n has the p-value 1 / (n + 1) by its rank.
pub(in crate::study) const FEWEST_UNTRAINED: usize = 20 - 1;
/// More episodes than this are not advised.
const MOST_ADVISED: f64 = 1000.0;

/// An answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The test decides for it.
    Yes,
    /// The test decides against it.
    No,
    /// The test does not decide, or there is nothing to test.
    Undecided,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::Undecided => "undecided",
        })
    }
}

/// A question of a report with its answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerdictLine {
    /// The question's key: `moves`, `path`, `right`, `moment`, `order` or `untrained`.
    pub question: &'static str,
    /// The claim that it is about, where somebody else than the agent makes it.
    pub claim: Option<String>,
    /// The question in words.
    pub asks: &'static str,
    /// Its answer.
    pub answer: Answer,
    /// The number that decides, with its 95 % interval.
    pub number: Option<Estimate>,
    /// The p-value of the sign-flip test over episodes, corrected for the number of questions (Holm).
    pub p: Option<f64>,
    /// The numbers that say so, in a sentence; of what is undecided also what would decide it.
    pub why: String,
}

impl VerdictLine {
    /// The question in words, with the claim that it is about.
    pub fn words(&self) -> String {
        self.claim.as_ref().map_or_else(|| self.asks.to_owned(), |claim| format!("{claim}: {}", self.asks))
    }
}

/// A question before it is answered.
pub(in crate::study) struct Asked {
    pub(in crate::study) question: &'static str,
    pub(in crate::study) claim: Option<String>,
    pub(in crate::study) asks: &'static str,
    pub(in crate::study) ground: Ground,
}

/// What an answer rests on.
pub(in crate::study) enum Ground {
    /// A number against a limit, and what it says. Where the second number is given and lies below the floor, the answer is *no*.
    Test { tested: Tested, limit: f64, says: String, floored: Option<Tested> },
    /// It is known without a test.
    Known { answer: Answer, number: Option<Estimate>, why: String },
}

/// Answers the questions, all of one family. The first says whether anything is to be explained: unless it is *yes*, all others but
/// the path are undecided.
pub(in crate::study) fn answers(episodes: usize, asked: Vec<Asked>) -> Vec<VerdictLine> {
    let p: Vec<f64> = asked
        .iter()
        .filter_map(|asked| match &asked.ground {
            Ground::Test { tested, limit, .. } => Some(tested.p(*limit)),
            Ground::Known { .. } => None,
        })
        .collect();
    let family = p.len();
    let mut corrected = holm(&p).into_iter();
    let few = (episodes < FEWEST_EPISODES).then(|| {
        format!(
            "{} {} too few to say; {FEWEST_EPISODES} are the least",
            count(episodes, "episode"),
            if episodes == 1 { "is" } else { "are" }
        )
    });
    let mut first = None;
    let mut lines = vec![];
    for Asked { question, claim, asks, ground } in asked {
        let mut line = VerdictLine {
            question,
            claim,
            asks,
            answer: Answer::Undecided,
            number: None,
            p: None,
            why: String::new(),
        };
        match ground {
            Ground::Test { tested, limit, says, floored } => {
                let p = corrected.next().unwrap_or(1.0);
                (line.number, line.p) = (Some(tested.estimate), Some(p));
                line.answer = match tested.estimate.value {
                    _ if few.is_some() || p > LEVEL => Answer::Undecided,
                    value if value > limit => Answer::Yes,
                    _ => Answer::No,
                };
                line.why = says;
                let hardly = floored.filter(|floored| {
                    floored.estimate.value < FLOOR && floored.p(FLOOR) <= LEVEL / family.max(1) as f64
                });
                if let (Some(hardly), true) = (hardly, few.is_none()) {
                    line.answer = Answer::No;
                    let named = hardly.estimate.percent();
                    line.why += &format!("; by themselves they move it by {named}, and the floor is 1 %");
                }
                if let Some(few) = &few {
                    line.why += &format!("; {few}");
                } else if line.answer == Answer::Undecided {
                    line.why += &format!("; {}", would_decide(&tested, limit, episodes, family));
                }
            }
            Ground::Known { answer, number, why } => {
                (line.answer, line.number, line.why) = (answer, number, why);
                if let (Some(few), true) = (&few, answer != Answer::Undecided) {
                    (line.answer, line.why) = (Answer::Undecided, format!("{}; {few}", line.why));
                }
            }
        }
        match first {
            None => first = Some(line.answer),
            Some(Answer::Yes) => {}
            // An action that nothing it sees moves may depend on the memory.
            Some(Answer::No) if question == "path" => {}
            Some(moves) => {
                line.answer = Answer::Undecided;
                line.why = match (moves, &few) {
                    (Answer::No, _) => "nothing to explain: what it sees hardly moves its action".into(),
                    (_, Some(few)) => few.clone(),
                    _ => "it is open whether what it sees moves its action at all".into(),
                };
            }
        }
        lines.push(line);
    }
    lines
}

/// What would decide a question that is open.
fn would_decide(tested: &Tested, limit: f64, episodes: usize, family: usize) -> String {
    let needed = tested.episodes_for(limit, LEVEL / family.max(1) as f64).map(|needed| {
        // In steps of five, and more than there are.
        ((needed / 5.0).ceil() * 5.0).max((episodes + 1) as f64)
    });
    match needed {
        None => "the number lies at its limit, so that more episodes may not decide it".into(),
        Some(needed) if needed <= MOST_ADVISED => {
            format!(
                "about {:.0} episodes more would decide it, if the numbers stay",
                needed - episodes as f64
            )
        }
        Some(_) => {
            format!("more than {MOST_ADVISED:.0} episodes would have to decide it, if the numbers stay")
        }
    }
}

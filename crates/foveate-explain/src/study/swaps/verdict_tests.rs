//! Every combination of findings: what tiles, sentences, terminal and comparison say of it must agree.

use foveate_core::Labels;

use super::compare::Compared;
use super::measure::ClaimSeen;
use super::page::{OwnTest, differences, sentences, tiles, verdict_lines};
use super::report::{Grounds, Order, SwapReport, Untrained, verdict};
use super::verdict::{Answer, FEWEST_UNTRAINED, LEVEL};
use crate::estimate::{Pair, Scale, Tested};
use crate::faithful::{Conclusion, Faithfulness};
use crate::page::Mood;
use crate::study::analyses::covers::COVERING;
use crate::study::{Claim, Covers, Findings, Method, ReportHead};

/// A number of so many episodes, `spread` apart.
fn tested(value: f64, spread: f64, episodes: usize) -> Tested {
    let pairs: Vec<Pair> = (0..episodes)
        .map(|e| {
            let above = value + spread * (e as f64 / (episodes - 1).max(1) as f64 - 0.5);
            Pair { recipient: e, donor: e, above, below: 1.0 }
        })
        .collect();
    Tested::of(&pairs, episodes, Scale::Signed).expect("something to divide by")
}

/// Above 0, open, below 0.
const SIDES: [f64; 3] = [0.5, 0.0, -0.5];

fn claim(name: Option<&str>) -> ClaimSeen {
    ClaimSeen { name: name.map(Into::into), moments: 9, flat: 0, constant: false, named: 9 }
}

fn order(places: bool, above_others: f64, above_other_moments: f64, episodes: usize) -> Order {
    let tests = [above_others, above_other_moments, 0.5].map(|value| tested(value, 0.1, episodes));
    Order {
        name: "the 10 selected, their values swapped".into(),
        claim: None,
        places,
        parts: 10,
        swapped: 5,
        above_others: tests[0].estimate,
        above_other_moments: tests[1].estimate,
        named: tests[2].estimate,
        of_best: None,
        reliability: None,
        flat: 0.0,
        constant: false,
        matched: None,
        rank_correlation: None,
        tests,
    }
}

/// One above so many of so many untrained agents.
fn untrained(above: usize, agents: usize) -> Untrained {
    let above_others = (0..agents).map(|agent| if agent < above { 0.0 } else { 0.9 }).collect();
    Untrained { above_others, agents, percentile: Some(above as f64 / agents as f64), moving: agents }
}

fn head(episodes: usize) -> ReportHead {
    ReportHead::new(&Labels::default(), 1, vec![0.0; episodes], vec![100; episodes], 6 * episodes)
}

/// A report of these numbers.
fn report(
    episodes: usize,
    seen: f64,
    apart: f64,
    orders: Vec<Order>,
    untrained: Option<Untrained>,
) -> SwapReport {
    let share = Some(tested(0.6, 0.05, episodes).estimate);
    let (seen, apart) = (tested(seen, 0.4 * seen, episodes), tested(apart, 0.1, episodes));
    let verdict = verdict(&Grounds {
        episodes,
        opened: true,
        remembers: true,
        natural: seen.estimate,
        seen: &seen,
        attended: share,
        memory: share,
        above_memory: Some(&apart),
        claims: vec![claim(None), claim(None)],
        orders: &orders,
        untrained: untrained.as_ref(),
    });
    SwapReport {
        head: head(episodes),
        distance: "",
        units: Some([10, 10]),
        hard: true,
        attends: true,
        natural: seen.estimate,
        seen: seen.estimate,
        attended: share,
        selection: None,
        values: None,
        memory: share,
        attended_above_memory: Some(apart.estimate),
        regret: None,
        orders,
        xrl_bench: vec![],
        untrained,
        randomised: vec![],
        verdict,
        interval: 0.95,
    }
}

/// All combinations of findings.
fn all() -> Vec<SwapReport> {
    let others = [None, Some(untrained(2, 2)), Some(untrained(19, 19)), Some(untrained(3, 20))];
    let mut all = vec![];
    for episodes in [1, 4, 5, 20] {
        for seen in [0.2, 0.01, 0.001] {
            for apart in SIDES {
                for right in SIDES {
                    for attended in SIDES {
                        for others in &others {
                            let moment = -attended;
                            let of = |places, right| order(places, right, moment, episodes);
                            let orders = vec![of(false, attended), of(true, right)];
                            all.push(report(episodes, seen, apart, orders, others.clone()));
                        }
                    }
                }
                all.push(report(episodes, seen, apart, vec![], None));
            }
        }
    }
    all
}

/// What sentences assert: the words, the question, its answer.
const SAID: [(&str, &str, Answer); 20] = [
    ("What it sees moves its action", "moves", Answer::Yes),
    ("What it sees hardly moves its action", "moves", Answer::No),
    ("what it sees hardly moves its action, so there is nothing to explain", "moves", Answer::No),
    ("hether what it sees moves its action", "moves", Answer::Undecided),
    ("cts more on what it attends to than on its memory", "path", Answer::Yes),
    ("attends to moves its action more than its memory does;", "path", Answer::Yes),
    ("cts more on its memory than on what it attends to", "path", Answer::No),
    ("its memory moves its action more still", "path", Answer::No),
    ("What it looks at is what it acts on", "right", Answer::Yes),
    ("what it looks at matters more than what it does not look at", "right", Answer::Yes),
    ("parts that it names move its action more than others, when", "right", Answer::Yes),
    ("What it looks at is not what it acts on", "right", Answer::No),
    ("what it looks at matters less than what it does not look at", "right", Answer::No),
    ("but parts that it does not name move its action more", "right", Answer::No),
    ("Whether what it looks at is what it acts on is open", "right", Answer::Undecided),
    ("At each moment, what it looks at is what matters then", "moment", Answer::Yes),
    ("What it attends to most matters most:", "order", Answer::Yes),
    ("The order of its attention misleads", "order", Answer::No),
    ("the order of its attention misleads", "order", Answer::No),
    ("but the order within what it attends to is wrong", "order", Answer::No),
];

#[track_caller]
fn check_words(report: &SwapReport, texts: &[String]) {
    for text in texts {
        for (words, question, answer) in SAID {
            if text.contains(words) {
                assert_eq!(report.answer(question), answer, "“{text}” beside {:?}", report.verdict);
            }
        }
    }
}

/// The test with covers of a report, with these verdicts.
fn covers(swaps: &SwapReport, own: Conclusion, driving: Conclusion) -> Covers {
    let figure = Faithfulness { value: 0.5, interval: Some([0.4, 0.6]) };
    let claim =
        |verdict| Claim { name: "claim".into(), blur: figure, mean: figure, null: [figure; 2], verdict };
    let verdict = own.to_string();
    Covers {
        differences: differences(&COVERING, &verdict, Some(swaps)),
        distance: "",
        verdict,
        driving: driving.to_string(),
        cost: vec![],
        claims: vec![claim(Some(own)), claim(None), claim(None), claim(None), claim(None), claim(None)],
        interventions: vec![],
        drives: vec![],
        method: Method::ours(),
    }
}

#[test]
fn no_two_sentences_of_a_page_contradict() {
    let mut seen = std::collections::BTreeSet::new();
    for report in all() {
        seen.insert(["moves", "path", "right", "order"].map(|question| report.answer(question)));
        for (tile, line) in tiles(&report).zip(&report.verdict) {
            let mood = match line.answer {
                Answer::Yes => Mood::Good,
                Answer::No => Mood::Bad,
                Answer::Undecided => Mood::Plain,
            };
            assert_eq!((&*tile.value, tile.mood), (&*line.answer.to_string(), mood));
        }
        let first = sentences(&report);
        assert_eq!(first.len(), report.verdict.len());
        for (sentence, line) in first.iter().zip(&report.verdict) {
            assert_eq!(
                sentence.contains(" open"),
                line.answer == Answer::Undecided,
                "“{sentence}” beside {line:?}"
            );
        }
        let compared =
            Compared { name: "it".into(), report: report.clone(), more: Findings::default() }.sentence();
        check_words(&report, &[first.clone(), vec![compared]].concat());
        for own in [Conclusion::Supported, Conclusion::NotSupported, Conclusion::Undecided] {
            let study = covers(&report, own, own);
            let episodes = report.head.scores.len();
            let terminal = [verdict_lines(&report), study.lines()].concat().join("\n");
            let texts = [study.sentences(episodes, true), vec![terminal]].concat();
            check_words(&report, &texts);
            // What seems to contradict is explained, on the page and on a terminal; nothing else is.
            let is = |question, answer| report.answer(question) == answer;
            let seems = match own {
                Conclusion::Supported => {
                    ["moves", "path", "right", "order"].iter().any(|question| is(question, Answer::No))
                }
                Conclusion::NotSupported => is("path", Answer::Yes) || is("right", Answer::Yes),
                Conclusion::Undecided => false,
            };
            assert_eq!(!study.differences.is_empty(), seems, "{own}: {:?}", report.verdict);
            for told in &study.differences {
                assert!(texts.iter().filter(|text| text.contains(told)).count() == 2, "{told}");
            }
        }
    }
    assert_eq!(seen.len(), 27 + 2, "27 with an action that moves, two without: {seen:?}");
}

#[test]
fn an_answer_rests_on_what_is_defined() {
    for report in all() {
        let few = report.head.scores.len() < 5;
        let moves = report.answer("moves");
        for line in &report.verdict {
            assert!(!few || line.answer == Answer::Undecided, "{line:?}");
            assert!(
                line.question == "moves" || moves == Answer::Yes || line.answer == Answer::Undecided,
                "{line:?}"
            );
            let says = [
                "would",
                "are the least",
                "is open",
                "nothing to",
                "nothing that",
                "may not decide",
                "could be compared",
                "were not measured",
            ];
            let says = says.iter().any(|words| line.why.contains(words));
            assert!(line.answer != Answer::Undecided || says, "what would decide it? {line:?}");
            assert!(line.p.is_none_or(|p| p <= LEVEL) || line.answer == Answer::Undecided, "{line:?}");
        }
        let agents = report.untrained.as_ref().map_or(0, |untrained| untrained.agents);
        assert!(report.answer("untrained") != Answer::Yes || agents >= FEWEST_UNTRAINED, "{agents}");
    }
    // By its rank, an agent above all of n others has p = 1 / (n + 1).
    assert!(1.0 / (FEWEST_UNTRAINED as f64 + 1.0) <= 0.05 && 1.0 / FEWEST_UNTRAINED as f64 > 0.05);
    let of_agents = |above, agents| {
        let orders = vec![order(false, 0.5, 0.5, 20)];
        report(20, 0.2, 0.5, orders, Some(untrained(above, agents))).answer("untrained")
    };
    assert_eq!(
        [(2, 2), (18, 18), (19, 19), (20, 20), (19, 20), (3, 20)]
            .map(|(above, agents)| of_agents(above, agents)),
        [Answer::Undecided, Answer::Undecided, Answer::Yes, Answer::Yes, Answer::Undecided, Answer::No]
    );
}

/// A claim that is the same at every moment can be right, and is not of its moment.
#[test]
fn two_questions_have_two_answers() {
    let constant = Order { constant: true, ..order(true, 0.5, 0.0, 20) };
    let of = report(20, 0.2, 0.5, vec![constant], None);
    assert_eq!([of.answer("right"), of.answer("moment")], [Answer::Yes, Answer::No]);
    assert!(sentences(&of).iter().any(|said| said.ends_with("it claims the same at every moment.")));
}

/// What it names does nothing at all, though its action moves: that is no question of chance.
#[test]
fn named_parts_that_do_nothing_are_not_right() {
    let mut nothing = order(true, -0.001, 0.0, 20);
    nothing.tests[0] = tested(-0.001, 0.5, 20);
    nothing.tests[2] = tested(0.0, 0.0, 20);
    let of = report(20, 0.2, 0.5, vec![nothing], None);
    let line = of.verdict.iter().find(|line| line.question == "right").expect("asked");
    // The number stays that of the comparison, so that it is not taken for another.
    let number = line.number.map(|number| number.value);
    assert!(line.answer == Answer::No && number.is_some_and(|number| number < 0.0), "{line:?}");
    assert!(line.why.contains("by themselves they move it by 0.000"), "{line:?}");
    // An action that nothing it sees moves may depend on its memory.
    let seen = tested(0.0, 0.0, 20);
    let clock = verdict(&Grounds {
        episodes: 20,
        opened: false,
        remembers: true,
        natural: tested(0.3, 0.1, 20).estimate,
        seen: &seen,
        attended: Some(seen.estimate),
        memory: Some(tested(1.0, 0.1, 20).estimate),
        above_memory: Some(&tested(-1.0, 0.1, 20)),
        claims: vec![],
        orders: &[],
        untrained: None,
    });
    assert_eq!([clock[0].answer, clock[1].answer], [Answer::No; 2], "{clock:?}");
}

/// One number far from its limit among many does not make the others so.
#[test]
fn answers_are_corrected_for_their_number() {
    // Seven episodes of one sign have p = 2 / 128, which one question of six would have to divide by six.
    let orders = vec![order(false, 0.5, 0.5, 7), order(true, 0.5, 0.5, 7)];
    let of = report(7, 0.2, 0.5, orders, None);
    assert!(of.verdict.iter().all(|line| line.answer == Answer::Undecided), "{:?}", of.verdict);
    assert!(of.verdict[0].why.contains("episodes more would decide it"), "{:?}", of.verdict[0]);
}

/// Without attention there is no own test to differ from.
#[test]
fn nothing_differs_from_nothing() {
    let test = OwnTest { done: "", claim: "", asks: "" };
    assert_eq!(differences(&test, "supported", None), Vec::<String>::new());
}

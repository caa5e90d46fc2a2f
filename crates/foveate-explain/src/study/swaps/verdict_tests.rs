//! Every combination of findings: what tiles, sentences, terminal and comparison say of it must agree.

use foveate_core::Labels;

use super::compare::Compared;
use super::page::{OwnTest, differences, sentences, tiles, verdict_lines};
use super::report::{FEWEST_UNTRAINED, Grounds, Order, SwapReport, Untrained, verdict};
use crate::estimate::Estimate;
use crate::faithful::{Conclusion, Faithfulness};
use crate::page::Mood;
use crate::study::analyses::covers::COVERING;
use crate::study::{Claim, Covers, Findings, Method, ReportHead};

fn of(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, interval: Some([low, high]) }
}

/// Above 0, open, below 0.
const SIDES: [Estimate; 3] = [
    Estimate { value: 0.5, interval: Some([0.3, 0.7]) },
    Estimate { value: 0.1, interval: Some([-0.1, 0.3]) },
    Estimate { value: -0.5, interval: Some([-0.7, -0.3]) },
];

fn order(f: Option<Estimate>, above_prior: Option<Estimate>) -> Order {
    Order {
        name: "the 10 selected, their values swapped".into(),
        places: false,
        parts: 10,
        f,
        above_prior,
        above_similar: above_prior,
        p: f.map(|_| 0.01),
        matched: None,
        rank_correlation: None,
    }
}

fn untrained(agents: usize, limit: f64) -> Untrained {
    Untrained { f: vec![0.0; agents], agents, percentile: Some(1.0), limit: Some(limit), moving: agents }
}

fn head(episodes: usize) -> ReportHead {
    ReportHead::new(&Labels::default(), 1, vec![0.0; episodes], vec![100; episodes], 6 * episodes)
}

/// A report of these numbers.
fn report(
    episodes: usize,
    natural: Estimate,
    apart: Estimate,
    order: Option<Order>,
    untrained: Option<Untrained>,
) -> SwapReport {
    let share = Some(of(0.6, 0.5, 0.7));
    let verdict = verdict(Grounds {
        episodes,
        opened: true,
        natural: &natural,
        attended: share,
        memory: share,
        above_memory: Some(apart),
        order: order.as_ref(),
        untrained: untrained.as_ref(),
    });
    SwapReport {
        head: head(episodes),
        distance: "",
        units: Some([10, 10]),
        hard: true,
        natural,
        attended: share,
        selection: None,
        values: None,
        memory: share,
        attended_above_memory: Some(apart),
        regret: None,
        orders: order.into_iter().collect(),
        untrained,
        randomised: vec![],
        verdict,
        interval: 0.95,
    }
}

/// All combinations of findings.
fn all() -> Vec<SwapReport> {
    let orders = [None, Some(order(None, None))].into_iter().chain(
        SIDES.into_iter().flat_map(|f| SIDES.into_iter().map(move |prior| Some(order(Some(f), Some(prior))))),
    );
    let orders: Vec<_> = orders.collect();
    let others = [None, Some(untrained(2, 0.1)), Some(untrained(18, 0.1)), Some(untrained(19, 0.1))];
    let others: Vec<_> =
        others.into_iter().chain([Some(untrained(20, 0.9)), Some(untrained(20, 1.4))]).collect();
    let mut all = vec![];
    for episodes in [1, 4, 5, 20] {
        for natural in [of(0.2, 0.1, 0.3), of(0.02, 0.005, 0.03), of(0.001, 0.0005, 0.002)] {
            for apart in SIDES {
                for order in &orders {
                    for others in &others {
                        all.push(report(episodes, natural, apart, order.clone(), others.clone()));
                    }
                }
            }
        }
    }
    all
}

fn answers(report: &SwapReport) -> [&'static str; 3] {
    report.verdict.each_ref().map(|line| line.answer)
}

/// What sentences assert: the words, the line, its answer.
const SAID: [(&str, usize, &str); 17] = [
    ("Its action depends on what", 0, "yes"),
    ("Its action hardly depends on what", 0, "no"),
    ("its action hardly changes between moments", 0, "no"),
    ("from moment to moment its action hardly differs", 0, "no"),
    ("nothing to explain", 0, "no"),
    ("whether its action depends on", 0, "undecided"),
    ("cts more on what it attends to than on its memory", 1, "yes"),
    ("attends to moves its action more than its memory does", 1, "yes"),
    ("cts more on its memory than on what it attends to", 1, "no"),
    ("its memory moves its action more still", 1, "no"),
    ("What it attends to most matters most.", 2, "yes"),
    ("What it attends to most matters most:", 2, "yes"),
    ("in the order of the attention move its action first", 2, "yes"),
    ("misleads about what matters", 2, "no"),
    ("says less about what matters", 2, "no"),
    ("the order within what it attends to is wrong", 2, "no"),
    ("In which order is not said", 2, "undecided"),
];

#[track_caller]
fn check_words(report: &SwapReport, texts: &[String]) {
    let answers = answers(report);
    for text in texts {
        for (words, line, answer) in SAID {
            if text.contains(words) {
                assert_eq!(answers[line], answer, "“{text}” beside {:?}", report.verdict);
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
        let now = answers(&report);
        seen.insert(now);
        for (tile, line) in tiles(&report).zip(&report.verdict) {
            let mood = match line.answer {
                "yes" => Mood::Good,
                "no" => Mood::Bad,
                _ => Mood::Plain,
            };
            assert_eq!((&*tile.value, tile.mood), (line.answer, mood));
        }
        let first = sentences(&report);
        for (sentence, line) in first.iter().zip(&report.verdict) {
            let open = ["open", "not said", "set it apart"].iter().any(|words| sentence.contains(words));
            assert_eq!(open, line.answer == "undecided", "“{sentence}” beside {line:?}");
        }
        let compared =
            Compared { name: "it".into(), report: report.clone(), more: Findings::default() }.sentence();
        check_words(&report, &[first.to_vec(), vec![compared]].concat());
        for own in [Conclusion::Supported, Conclusion::NotSupported, Conclusion::Undecided] {
            for driving in [Conclusion::Supported, Conclusion::NotSupported, Conclusion::Undecided] {
                let study = covers(&report, own, driving);
                let episodes = report.head.scores.len();
                let terminal = [verdict_lines(&report), study.lines()].concat().join("\n");
                let texts = [study.sentences(episodes, true), vec![terminal]].concat();
                check_words(&report, &texts);
                // What seems to contradict is explained, on the page and on a terminal; nothing else is.
                let seems = match own {
                    Conclusion::Supported => now.contains(&"no"),
                    Conclusion::NotSupported => now[1] == "yes" || now[2] == "yes",
                    Conclusion::Undecided => false,
                };
                assert_eq!(!study.differences.is_empty(), seems, "{own}: {:?}", report.verdict);
                for told in &study.differences {
                    assert!(texts.iter().filter(|text| text.contains(told)).count() == 2, "{told}");
                }
            }
        }
    }
    assert_eq!(seen.len(), 9 + 2, "nine with an action that moves, two without: {seen:?}");
}

#[test]
fn an_answer_rests_on_what_is_defined() {
    for report in all() {
        let [moves, carries, right] = answers(&report);
        let few = report.head.scores.len() < 5;
        assert!(!few || [moves, carries, right] == ["undecided"; 3], "{:?}", report.verdict);
        assert!(moves == "yes" || [carries, right] == ["undecided"; 2], "{:?}", report.verdict);
        let f = report.orders.first().and_then(|order| order.f);
        assert!(f.is_some() || right == "undecided", "an undefined F decides nothing: {:?}", report.verdict);
        let agents = report.untrained.as_ref().map_or(0, |untrained| untrained.agents);
        assert!(right != "yes" || agents >= FEWEST_UNTRAINED, "{agents}: {:?}", report.verdict);
        for line in &report.verdict {
            let says =
                ["would", "are the least", "may define", "is open", "none to test", "nothing to explain"];
            let says = says.iter().any(|words| line.why.contains(words));
            assert!(line.answer != "undecided" || says, "what would decide it? {line:?}");
        }
    }
    // By its rank, an agent above all of n others has p = 1 / (n + 1).
    assert!(1.0 / (FEWEST_UNTRAINED as f64 + 1.0) <= 0.05 && 1.0 / FEWEST_UNTRAINED as f64 > 0.05);
    let of_agents = |agents| {
        let order = order(Some(SIDES[0]), Some(SIDES[0]));
        report(20, of(0.2, 0.1, 0.3), SIDES[0], Some(order), Some(untrained(agents, 0.1)))
    };
    assert_eq!(
        [2, 18, 19, 20].map(|agents| answers(&of_agents(agents))[2]),
        ["undecided", "undecided", "yes", "yes"]
    );
    assert!(of_agents(2).verdict[2].why.ends_with(
        "above 2 of 2 untrained agents, which are too few for a yes; at least 19 untrained agents would decide it"
    ));
}

/// An order above chance that is not called right lacks what the answer lacks, and nothing else.
#[test]
fn what_sets_an_order_not_apart_is_named() {
    let [above, open, _] = SIDES;
    let third = |prior, agents, theirs| {
        let order = Some(order(Some(above), Some(prior)));
        sentences(&report(20, of(0.2, 0.1, 0.3), above, order, Some(untrained(agents, theirs))))[2].clone()
    };
    for (sentence, says, silent) in [
        (third(open, 20, 0.1), "from where it usually attends:", "untrained"),
        (third(above, 20, 1.4), "from untrained agents of its kind:", "usually"),
        (third(open, 20, 1.4), "from where it usually attends and from untrained agents of its kind:", "few"),
        (third(above, 2, 0.1), "too few untrained agents", "usually"),
    ] {
        assert!(sentence.contains(says) && !sentence.contains(silent), "{says}: {sentence}");
    }
}

#[test]
fn what_is_open_says_how_many_episodes_would_decide_it() {
    let of_natural = |natural| report(20, natural, SIDES[0], None, None).verdict[0].why.clone();
    // Half of the interval is four times what lies between the number and the limit: sixteen times the episodes.
    assert!(
        of_natural(of(0.02, -0.02, 0.06))
            .ends_with("about 320 episodes would decide it, if the numbers stay")
    );
    assert!(of_natural(of(0.011, -0.02, 0.06)).contains("more than 1000 episodes"));
    assert!(of_natural(of(0.01, 0.0, 0.02)).contains("may not decide it"));
}

/// Without attention there is no own test to differ from.
#[test]
fn nothing_differs_from_nothing() {
    let test = OwnTest { done: "", claim: "", asks: "" };
    assert_eq!(differences(&test, "supported", None), Vec::<String>::new());
}

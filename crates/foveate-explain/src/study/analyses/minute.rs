//! What can be read in a minute: an answer to each question, in the words of somebody who uses the agent, and one picture of claim
//! beside effect.

use foveate_core::statistics::mean;
use foveate_core::{Image, ObservationBuf, PatchGrid, PixelShape, Pixels};
use serde::Serialize;

use super::super::cells::MeasuredCells;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::sensors::MeasuredSensors;
use super::super::swaps::{Answer, Measured, Measurement, Places, SwapReport, Swapped, VerdictLine};
use super::super::words::{capital, count};
use super::super::{AskedFunction, StudyError, Swaps};
use crate::charts::glow;
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink};
use crate::page::{Mood, PageAnswer};

/// Width of the picture, and size of its letters: it is read on a phone, too.
const WIDTH: f64 = 720.0;
const LETTERS: f64 = 19.0;
/// Rows in a chart of bars.
const ROWS: usize = 8;

/// Nothing that other findings do not have.
#[derive(Debug, Serialize)]
struct Nothing {}

/// What can be read in a minute.
#[derive(Debug)]
pub(in crate::study) struct InAMinute;

impl Analysis for InAMinute {
    fn name(&self) -> &'static str {
        "minute"
    }

    fn find(&self, bench: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(Swaps { swaps: Some(report) }) = before.get() else { return Ok(None) };
        let words = Words::of(bench, report);
        let picture = bench.get::<Swapped>().and_then(|swapped| picture(bench, &swapped.measured, &words));
        let answers = report.verdict.iter().map(|line| answer(line, &words)).collect();
        Ok(Some(Finding { answers, picture, ..Finding::new(Nothing {}) }))
    }
}

/// How a driver would say it.
#[derive(Clone)]
struct Words {
    /// What the agent's own claim is: `what it looks at`, `what its saliency names`.
    claimed: String,
    /// `steers by` or `acts on`.
    acts: &'static str,
    /// `what it looks at`, or `what it sees` where its attention cannot be told apart from that.
    seen: String,
}

impl Words {
    fn of(bench: &Bench<'_>, report: &SwapReport) -> Words {
        let claimed = match bench.shown.verb {
            // What a function looks at is what it is said to.
            _ if bench.get::<AskedFunction>().is_some() => "what it says it looks at".to_owned(),
            _ if !report.attends => "what its saliency names".into(),
            "" => "what it attends to".into(),
            verb => format!("what it {verb}"),
        };
        let steers = bench.dimensions.iter().any(|dimension| dimension.name.contains("steer"));
        let seen = if report.units.is_some() { claimed.clone() } else { "what it sees".into() };
        Words { claimed, acts: if steers { "steers by" } else { "acts on" }, seen }
    }
}

fn answer(line: &VerdictLine, words: &Words) -> PageAnswer {
    let number = match (&line.number, line.question) {
        (Some(number), _) if line.p.is_none() && number.interval.is_none() => line.why.clone(),
        (None, _) => line.why.clone(),
        (Some(number), "moves") => {
            format!("it moves the action by {} of its range; below 1 % is nothing", number.percent())
        }
        (Some(number), "path") => {
            format!("the difference is {} of how far the action varies", number.percent())
        }
        (Some(number), "moment") => format!(
            "its action changes by {} more than with what it names at other moments; 100 % is how far it varies",
            number.percent()
        ),
        (Some(number), _) => format!(
            "its action changes by {} more than with as many other parts; 100 % is how far it varies",
            number.percent()
        ),
    };
    // What would decide it stands last.
    let open = match (line.answer, line.why.rsplit_once("; ")) {
        (Answer::Undecided, Some((_, decide))) if !number.ends_with(decide) => {
            format!("; {}", decide.replace(" are the least", " episodes are the least"))
        }
        _ => String::new(),
    };
    PageAnswer {
        answer: line.answer.to_string(),
        sentence: sentence(line.question, line.answer, line.claim.as_deref(), words),
        number: format!("{}{open}.", capital(&number)),
        mood: match line.answer {
            Answer::Yes => Mood::Good,
            // A claim that never changes may be right.
            Answer::No if line.question != "moment" => Mood::Bad,
            _ => Mood::Plain,
        },
        more: "matters",
    }
}

/// What is named by a claim that somebody else makes, or by the agent's own.
fn named(claim: Option<&str>, words: &Words) -> String {
    claim.map_or_else(|| words.claimed.clone(), |claim| format!("what “{claim}” names"))
}

/// The answer to a question as a sentence; of a claim that somebody else makes, with its name.
fn sentence(question: &str, answer: Answer, claim: Option<&str>, words: &Words) -> String {
    use Answer::{No, Undecided, Yes};
    let Words { acts, seen, .. } = words;
    let named = named(claim, words);
    // "by" or "on"
    let by = acts.split(' ').next_back().unwrap_or_default();
    let said = match (question, answer) {
        ("moves", Yes) => "what it sees moves its action".into(),
        ("moves", No) => "it does nearly the same whatever it sees, so there is nothing to explain".into(),
        ("moves", Undecided) => "whether anything that it sees moves its action is open".into(),
        ("path", Yes) => format!("it {acts} {seen} more than {by} its memory"),
        ("path", No) => format!("it {acts} its memory more than {by} {seen}"),
        ("path", Undecided) => format!("whether it {acts} {seen} or {by} its memory is open"),
        ("right", Yes) => format!("{named} is what it {acts}"),
        ("right", No) => format!("{named} is not what it {acts}: other things move its action more"),
        ("right", Undecided) => format!("whether {named} is what it {acts} is open"),
        ("moment", Yes) => format!("at each moment, {named} is what matters then"),
        ("moment", No) => format!("{named} says no more about the moment than at other moments"),
        ("moment", Undecided) => format!("whether {named} says what matters at the moment is open"),
        ("order", Yes) => format!("of {named}, what comes first matters most"),
        ("order", No) => format!("of {named}, what comes first does not matter most"),
        ("order", Undecided) => format!("whether what comes first in {named} matters most is open"),
        (_, Yes) => "untrained agents of its kind do not have this".into(),
        (_, No) => "untrained agents of its kind have it, too, and more so".into(),
        (_, Undecided) => "whether untrained agents of its kind have this, too, is open".into(),
    };
    capital(&said) + "."
}

/// Of each part its number, the claim and its effect alone.
type Singles = Vec<(u32, f64, f64)>;

/// Of the first claim over places.
fn of_places(measured: &Measured) -> Option<Singles> {
    let curves = measured.inputs.first()?.as_ref()?;
    (!curves.single.is_empty()).then(|| curves.single.clone())
}

/// Claim beside effect: over the picture that it saw at one moment, part by part, or, where the effects of single parts are not known,
/// of each claim as a whole.
fn picture(bench: &Bench<'_>, measured: &Measurement, words: &Words) -> Option<Figure> {
    let own = measured.claims.first().and_then(|claim| claim.name.as_deref());
    let words = &Words { claimed: named(own, words), ..words.clone() };
    // The moment in which most depends on single places.
    let total = |single: &Singles| single.iter().map(|(_, _, effect)| effect).sum::<f64>();
    let first = measured.episodes.first().map_or(&[][..], |all| &all[..]);
    let moments = first.iter().filter_map(|measured| Some((measured.step, of_places(measured)?)));
    let most = moments.max_by(|a, b| total(&a.1).total_cmp(&total(&b.1)).then(b.0.cmp(&a.0)));
    let over_picture = most.and_then(|(step, single)| {
        let (_, seen, places) = measured.seen.iter().find(|(at, _, _)| *at == step)?;
        maps(step, seen, places.as_ref()?, &single, words)
    });
    let all = || measured.episodes.iter().flatten();
    over_picture
        .or_else(|| {
            let (names, inputs) = (names(bench), all().filter_map(of_places).collect::<Vec<_>>());
            let name =
                |part: u32| names.get(part as usize).cloned().unwrap_or_else(|| format!("part {}", part + 1));
            bars(&inputs, &name, words)
        })
        .or_else(|| wholes(measured, words))
        .or_else(|| {
            let values: Vec<_> =
                all().filter_map(|of| of.values.as_ref()).map(|curves| curves.single.clone()).collect();
            bars(&values, &|part| format!("part {}", part + 1), words)
        })
}

/// Names of the parts of what is observed, where they are not places of a picture.
fn names(bench: &Bench<'_>) -> Vec<String> {
    if let Some(found) = bench.get::<MeasuredSensors>() {
        return found.records.first().map_or(vec![], |record| record.names.clone());
    }
    let Some(found) = bench.get::<MeasuredCells>() else { return vec![] };
    let Some(view) = found.moments.first().map(|moment| &moment.view) else { return vec![] };
    let Some(agent) = view.cells.get(view.agent).map(|cell| cell.in_view) else { return vec![] };
    // A view that turns with the agent has what is ahead of it above it.
    let turns = found.moments.iter().all(|moment| {
        let front = moment.view.front.and_then(|front| moment.view.cells.get(front)).map(|cell| cell.in_view);
        let above = front.is_some_and(|front| front[0] == agent[0] && front[1] + 1 == agent[1]);
        above && moment.view.agent == view.agent
    });
    let name = |column: usize, row: usize| {
        if !turns {
            return format!("column {}, row {}", column + 1, row + 1);
        }
        let side = |from: usize, to: usize, [before, after]: [&str; 2]| match to.cmp(&from) {
            std::cmp::Ordering::Less => Some(format!("{} {before}", from - to)),
            std::cmp::Ordering::Greater => Some(format!("{} {after}", to - from)),
            std::cmp::Ordering::Equal => None,
        };
        let parts = [side(agent[1], row, ["ahead", "behind"]), side(agent[0], column, ["left", "right"])];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "where it stands".into() } else { parts.join(", ") }
    };
    view.cells.iter().map(|cell| name(cell.in_view[0], cell.in_view[1])).collect()
}

/// What it sees, what it claims and what moves its action, side by side.
fn maps(
    step: usize,
    seen: &ObservationBuf,
    places: &Places,
    single: &[(u32, f64, f64)],
    words: &Words,
) -> Option<Figure> {
    const GAP: f64 = 12.0;
    let Places::Pixels { tall, rectangles, .. } = places else { return None };
    let columns = rectangles.iter().take_while(|rectangle| rectangle[0] == rectangles[0][0]).count();
    let grid = PatchGrid::tile(columns, rectangles.len() / columns.max(1), 1, 1).ok()?;
    let mut scratch = vec![];
    let picture = newest(seen.as_observation().image()?, *tall, &mut scratch)?;
    let mut maps = [vec![0.0; rectangles.len()], vec![0.0; rectangles.len()]];
    let mut table = DataTable::new(&["step", "place", "claim", "effect"]);
    for &(place, claim, effect) in single {
        *maps[0].get_mut(place as usize)? = claim;
        *maps[1].get_mut(place as usize)? = effect;
        table.row([step.into(), (place as usize).into(), claim.into(), effect.into()]);
    }
    let side = (WIDTH - 2.0 * GAP) / 3.0;
    let tall = side * picture.height() as f64 / picture.width().max(1) as f64;
    let top = LETTERS + 11.0;
    let mut sheet = Drawing::new(WIDTH, top + tall);
    let panels = [
        (
            "what it sees".to_owned(),
            foveate_core::ImageBuf::from_rgb(picture.width(), picture.height(), picture.rgb().to_vec())?,
        ),
        (words.claimed.clone(), glow(picture, grid, &maps[0])),
        (format!("what it {}", words.acts), glow(picture, grid, &maps[1])),
    ];
    for (i, (name, image)) in panels.into_iter().enumerate() {
        let x = i as f64 * (side + GAP);
        sheet.text((x, LETTERS), LETTERS, Anchor::Start, Ink::Text, name);
        sheet.picture([x, top, side, tall], image);
    }
    Some(Figure {
        name: "claim-and-effect",
        title: format!("{}, and what it {}", capital(&words.claimed), words.acts),
        caption: format!(
            "Step {step} of the first episode. Middle: {}, the brighter the more. Right: the brighter, the more its action changes when \
             that place shows another moment. The closer both are, the better the first explains the second.",
            words.claimed
        ),
        wide: true,
        drawing: sheet,
        table,
    })
}

/// The picture, or the newest of a stack.
fn newest<'s>(pixels: Pixels<'s>, tall: bool, scratch: &'s mut Vec<u8>) -> Option<Image<'s>> {
    let one = PixelShape { frames: 1, ..pixels.shape() };
    let shown = match pixels.frames().checked_sub(1) {
        Some(last) if !tall => Pixels::new(one, pixels.frame(last)?)?,
        _ => pixels,
    };
    Some(shown.to_rgb(scratch))
}

/// Rows of two bars each.
fn pairs(kinds: &[(Ink, String); 2], rows: &[(String, [f64; 2])]) -> Drawing {
    const LEFT: f64 = 190.0;
    const ROW: f64 = 44.0;
    const ABOVE: f64 = 74.0;
    let most = rows.iter().flat_map(|(_, values)| *values).fold(1e-12, f64::max);
    let mut sheet = Drawing::new(WIDTH, ABOVE + rows.len() as f64 * ROW);
    for (i, (ink, said)) in kinds.iter().enumerate() {
        let y = LETTERS + i as f64 * (LETTERS + 7.0);
        sheet.rect([LEFT, y - 14.0, 16.0, 16.0], *ink, 1.0);
        sheet.text((LEFT + 24.0, y), LETTERS, Anchor::Start, Ink::Text, said.clone());
    }
    for (i, (name, values)) in rows.iter().enumerate() {
        let y = ABOVE + i as f64 * ROW;
        sheet.text((LEFT - 12.0, y + 25.0), 16.0, Anchor::End, Ink::Text, name.clone());
        for (k, (ink, _)) in kinds.iter().enumerate() {
            let long = (WIDTH - LEFT) * (values[k] / most).max(0.0);
            sheet.rect([LEFT, y + 3.0 + 17.0 * k as f64, long.max(1.5), 15.0], *ink, 1.0);
        }
    }
    sheet
}

/// Two bars for each part: its share of the claim, and of the effects, means over decisions.
fn bars(decisions: &[Singles], name: &dyn Fn(u32) -> String, words: &Words) -> Option<Figure> {
    let parts = decisions.iter().flatten().map(|(part, _, _)| *part as usize + 1).max()?;
    let mut shares = vec![[0.0; 2]; parts];
    // Decisions in which something is claimed, and in which something moves the action.
    let mut told = [0; 2];
    for single in decisions {
        let sums = single.iter().fold([0.0; 2], |[a, b], (_, claim, effect)| [a + claim, b + effect]);
        for (k, sum) in sums.into_iter().enumerate().filter(|(_, sum)| *sum > 0.0) {
            told[k] += 1;
            for &(part, claim, effect) in single {
                shares[part as usize][k] += [claim, effect][k] / sum;
            }
        }
    }
    if told[0] == 0 {
        return None;
    }
    for share in &mut shares {
        *share = [0, 1].map(|k| share[k] / f64::from(told[k].max(1)));
    }
    let mut order: Vec<usize> = (0..parts).collect();
    let most = |part: usize| shares[part][0].max(shares[part][1]);
    order.sort_by(|&a, &b| most(b).total_cmp(&most(a)));
    order.truncate(ROWS);
    order.sort_by(|&a, &b| shares[b][0].total_cmp(&shares[a][0]));
    let rows: Vec<(String, [f64; 2])> = order.iter().map(|&part| (name(part as u32), shares[part])).collect();
    let mut table = DataTable::new(&["part", "claim", "effect"]);
    for (part, [claim, effect]) in shares.iter().enumerate() {
        table.row([name(part as u32).into(), (*claim).into(), (*effect).into()]);
    }
    let which = if parts > order.len() {
        format!("The {} most important of {}", order.len(), count(parts, "part"))
    } else {
        "All parts".into()
    };
    let kinds = [(Ink::Attention, words.claimed.clone()), (Ink::Control, format!("what it {}", words.acts))];
    Some(Figure {
        name: "claim-and-effect",
        title: format!("{}, and what it {}", capital(&words.claimed), words.acts),
        caption: format!(
            "{which}, mean over decisions. Above: the part's share of {}. Below: its share of how far the action changes when single \
             parts show another moment. If the claim is right, both bars of a part are about as long.",
            words.claimed
        ),
        wide: true,
        drawing: pairs(&kinds, &rows),
        table,
    })
}

/// Of each claim, how far the action moves with the parts that it names, and with as many others.
fn wholes(measured: &Measurement, words: &Words) -> Option<Figure> {
    let rows = measured.claims.iter().enumerate().filter_map(|(number, claim)| {
        let all: Vec<[f64; 2]> = measured
            .episodes
            .iter()
            .flatten()
            .filter_map(|of| of.inputs.get(number)?.as_ref())
            .filter(|curves| !curves.claim.is_empty())
            .map(|curves| [mean(&curves.claim), mean(&curves.null)])
            .collect();
        let over = |k: usize| mean(&all.iter().map(|of| of[k]).collect::<Vec<_>>());
        let name = claim.name.clone().unwrap_or_else(|| words.claimed.clone());
        (!all.is_empty()).then(|| (name, [over(0), over(1)]))
    });
    let rows: Vec<(String, [f64; 2])> = rows.take(ROWS).collect();
    if rows.is_empty() {
        return None;
    }
    let mut table = DataTable::new(&["claim", "named", "others"]);
    for (name, [named, others]) in &rows {
        table.row([name.clone().into(), (*named).into(), (*others).into()]);
    }
    let kinds =
        [(Ink::Attention, "what is named".to_owned()), (Ink::Control, "as many other parts".to_owned())];
    Some(Figure {
        name: "claim-and-effect",
        title: "Does what is named move the action more than the rest?".into(),
        caption: "How far the action changes when the named parts show another moment, and when as many others do. The longer the first \
                  bar beside the second, the better the claim."
            .into(),
        wide: true,
        drawing: pairs(&kinds, &rows),
        table,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> Words {
        Words { claimed: "what it looks at".into(), acts: "steers by", seen: "what it looks at".into() }
    }

    #[test]
    fn answers_are_sentences_of_a_driver() {
        use Answer::{No, Undecided, Yes};
        for (question, answer, claim, expect) in [
            ("right", Yes, None, "What it looks at is what it steers by."),
            (
                "right",
                No,
                None,
                "What it looks at is not what it steers by: other things move its action more.",
            ),
            ("right", Undecided, None, "Whether what it looks at is what it steers by is open."),
            ("right", Yes, Some("Grad-CAM"), "What “Grad-CAM” names is what it steers by."),
            ("path", No, None, "It steers by its memory more than by what it looks at."),
            ("moment", No, Some("x"), "What “x” names says no more about the moment than at other moments."),
        ] {
            assert_eq!(sentence(question, answer, claim, &words()), expect);
        }
        for question in ["moves", "path", "right", "moment", "order", "untrained"] {
            for answer in [Yes, No, Undecided] {
                let said = sentence(question, answer, None, &words());
                assert_eq!(said.contains("open"), answer == Undecided, "{said}");
            }
        }
    }

    #[test]
    fn the_picture_is_of_what_was_claimed_and_measured() {
        let shape = PixelShape { frames: 2, height: 24, width: 24, channels: 1 };
        let seen =
            ObservationBuf::Image(foveate_core::PixelsBuf::new(shape, vec![90; 2 * 24 * 24]).expect("bytes"));
        let places = Places::of(None, seen.as_observation()).expect("pictures");
        let single: Vec<(u32, f64, f64)> =
            (0..144).map(|i| (i, f64::from(u8::from(i == 0)), f64::from(u8::from(i == 143)))).collect();
        let figure = maps(7, &seen, &places, &single, &words()).expect("a picture");
        let bright: Vec<[bool; 2]> = figure
            .drawing
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                crate::figure::Shape::Picture { image, .. } => {
                    let red = |x, y| image.as_image().pixel(x, y)[0] > 150;
                    Some([red(0, 0), red(23, 23)])
                }
                _ => None,
            })
            .collect();
        assert_eq!(bright, [[false, false], [true, false], [false, true]]);
        assert_eq!(figure.table.rows.len(), 144);
    }

    #[test]
    fn bars_are_shares_of_claim_and_effect() {
        let single = [(0, 3.0, 0.5), (1, 1.0, 0.5)];
        let none = [(0, 0.0, 0.0), (1, 0.0, 0.0)];
        let figure =
            bars(&[single.into(), none.into()], &|part| format!("sensor {part}"), &words()).expect("a chart");
        let numbers: Vec<_> = figure.table.rows.iter().map(|row| row[1..].to_vec()).collect();
        assert_eq!(numbers, [[0.75.into(), 0.5.into()], [0.25.into(), 0.5.into()]]);
        let still = bars(&[vec![(0, 1.0, 0.0)]], &|_| String::new(), &words()).expect("a claim");
        assert_eq!(still.table.rows[0][1..], [1.0.into(), 0.0.into()], "nothing moves the action");
        assert!(bars(&[none.into()], &|_| String::new(), &words()).is_none());
        assert!(bars(&[], &|_| String::new(), &words()).is_none());
    }
}

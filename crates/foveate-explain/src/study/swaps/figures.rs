//! Figures: shares of each path, curves of swaps, claims beside effects.

use foveate_core::statistics::{mean, mean_interval};

use super::effects::{Curves, Regret};
use super::measure::{Measured, Measurement};
use super::report::{Order, Pick, SwapReport};
use super::verdict::Answer;
use crate::charts::{DotPlot, DotRow, HALF, WHOLE, dots, percent};
use crate::estimate::Estimate;
use crate::figure::{DataTable, Figure, Ink, Plot, short};
use crate::study::words::{dot, intervals};

/// The figure that sets the claims of others side by side, the first where there is any.
pub(in crate::study) const METHODS: &str = "methods";

/// The figure whose table has every effect.
pub(in crate::study) const EFFECTS: &str = "effects";

pub(in crate::study) fn figures(report: &SwapReport, measured: &Measurement) -> Vec<Figure> {
    let mut all: Vec<Figure> = methods(report).into_iter().chain([shares(report)]).collect();
    let mut orders = report.orders.iter();
    for (pick, _) in Pick::all(measured) {
        let any = measured.episodes.iter().flatten().any(|measured| pick.of(measured).is_some());
        let Some(order) = any.then(|| orders.next()).flatten() else { continue };
        // The pictures of several claims are in the table of effects.
        let [curves_name, single_name] = match pick {
            Pick::Attended => ["swap-curves", "claims"],
            Pick::Places(0) => ["swap-curves-places", "claims-places"],
            Pick::Places(_) => continue,
        };
        all.push(curves(curves_name, order, measured, pick));
        if measured.episodes.iter().flatten().filter_map(|of| pick.of(of)).any(|of| !of.single.is_empty()) {
            all.push(claims(single_name, order, measured, pick));
        }
    }
    all.push(effects(measured));
    all
}

/// Shares of the natural variation, by path.
fn shares(report: &SwapReport) -> Figure {
    let row = |name: &str, ink: Ink, of: &Estimate| DotRow {
        remark: Some((Ink::Text, of.plain())),
        ..dot(name, "", ink, (of.value, of.interval))
    };
    let rest = match (&report.attended, &report.memory) {
        (Some(m), Some(memory)) => Some(Estimate { value: 1.0 - m.value - memory.value, interval: None }),
        _ => None,
    };
    let rows = [
        ("attended path", Ink::Attention, &report.attended),
        ("its weights alone", Ink::Muted, &report.selection),
        ("its values alone", Ink::Muted, &report.values),
        ("memory", Ink::Control, &report.memory),
        ("only together", Ink::Muted, &rest),
    ];
    dots(DotPlot {
        name: "paths",
        title: "By which path the action depends on the moment",
        caption: format!(
            "The share of the action's natural variation, {} of its range, that comes when one part of a decision is that of \
             another episode and all others stay. “Only together” is what is left: above 0 what needs several parts at once, \
             below 0 what either part brings by itself.",
            super::report::natural_percent(report)
        ),
        wide: false,
        axis: "share of the natural variation",
        domain: Some(share_axis(rows.iter().filter_map(|(_, _, of)| of.as_ref()))),
        band: None,
        label: short,
        rows: rows
            .into_iter()
            .filter_map(|(name, ink, of)| of.as_ref().map(|of| row(name, ink, of)))
            .collect(),
    })
}

/// Which of the claims that somebody else than the agent makes tell the truth about it.
fn methods(report: &SwapReport) -> Option<Figure> {
    let claims = || report.orders.iter().filter_map(|order| Some((order.claim.as_deref()?, order)));
    claims().next()?;
    let rows = claims().flat_map(|(name, order)| {
        [
            ("right", Ink::Attention, "right", order.above_others),
            ("of the moment", Ink::Control, "moment", order.above_other_moments),
        ]
        .map(|(kind, ink, question, of)| {
            let answer = report.answer_about(question, name);
            let ink = if answer == Answer::Yes { ink } else { Ink::Muted };
            let word = if question == "right" { "right" } else { "of the moment" };
            DotRow {
                remark: Some((ink, format!("{word}: {answer}, {}", of.percent()))),
                ..dot(
                    name,
                    if answer == Answer::Yes { kind } else { "not shown" },
                    ink,
                    (of.value, of.interval),
                )
            }
        })
    });
    let shown = claims().flat_map(|(_, order)| [&order.above_others, &order.above_other_moments]);
    Some(dots(DotPlot {
        name: METHODS,
        title: "Which method tells the truth about this model?",
        caption: "How much further its action moves when the parts that a method names come from another moment than when others do, \
                  in parts of the action's natural variation: as many other parts (above 0 the method is right, below 0 it misleads), or \
                  those that it names at other moments (a map that never changes can be right, but is not of its moment). Bars: 95 % over \
                  episodes; the answers are corrected for their number (Holm)."
            .into(),
        wide: true,
        axis: "named parts above others, of the natural variation",
        domain: Some(share_axis(shown)),
        band: None,
        label: percent,
        rows: rows.collect(),
    }))
}

/// The ends of an axis for shares, which hold all numbers, and intervals as far as they lie between −1 and 2: that of few
/// episodes may be so wide that nothing else could be seen beside it.
fn share_axis<'a>(shares: impl Iterator<Item = &'a Estimate>) -> [f64; 2] {
    let [low, high] = shares.fold([0.0_f64, 0.0_f64], |[low, high], share| {
        let [from, to] = share.interval.unwrap_or([share.value; 2]).map(|end| end.clamp(-1.0, 2.0));
        [low.min(share.value).min(from), high.max(share.value).max(to)]
    });
    [low - 0.02 * (high - low), high + 0.04 * (high - low)]
}

#[cfg(test)]
#[test]
fn a_wide_interval_does_not_stretch_the_axis() {
    let of = |value, from, to| Estimate { value, interval: Some([from, to]) };
    let [low, high] = share_axis([of(1.0, 0.9, 1.1), of(1.24, 0.68, 151.45)].iter());
    assert!(low < 0.0 && low > -0.1 && high > 2.0 && high < 2.2, "{low} … {high}");
    assert!(share_axis([of(4.0, 3.0, 5.0)].iter())[1] > 4.0, "a number is always shown");
}

/// Means over decisions, for every episode: `[levels][episodes]`; nothing where a curve was not measured.
fn levels(measured: &Measurement, pick: Pick, of: fn(&Curves) -> &[f64]) -> Vec<Vec<f64>> {
    let all = || measured.episodes.iter().flatten().filter_map(|measured| pick.of(measured));
    let count = all().map(|curves| of(curves).len()).max().unwrap_or(0);
    (0..count)
        .map(|level| {
            let episodes = measured.episodes.iter().map(|all| {
                let at: Vec<f64> = all
                    .iter()
                    .filter_map(|measured| pick.of(measured))
                    .filter_map(|curves| of(curves).get(level).copied())
                    .collect();
                (!at.is_empty()).then(|| mean(&at))
            });
            episodes.flatten().collect()
        })
        .collect()
}

/// How far the action changes, the more parts are swapped.
fn curves(name: &'static str, order: &Order, measured: &Measurement, pick: Pick) -> Figure {
    type Line = (&'static str, Ink, fn(&Curves) -> &[f64]);
    const LINES: [Line; 4] = [
        ("named by the claim", Ink::Attention, |curves| &curves.claim),
        ("as many others", Ink::Muted, |curves| &curves.null),
        ("named at other moments", Ink::Control, |curves| &curves.elsewhere),
        ("the best order found", Ink::Text, |curves| &curves.best),
    ];
    let budgets: Vec<usize> =
        measured.episodes.iter().flatten().find_map(|of| pick.of(of)).map_or(vec![], |of| of.budgets.clone());
    let mut table = DataTable::new(&["order", "swapped", "change", "low", "high"]);
    let mut lines = vec![];
    for (line, ink, of) in LINES {
        let means: Vec<(f64, Option<[f64; 2]>)> =
            levels(measured, pick, of).iter().map(|all| (mean(all), mean_interval(all))).collect();
        for (&budget, (value, interval)) in budgets.iter().zip(&means) {
            let [low, high] = interval.map_or([None; 2], |ends| ends.map(Some));
            table.row([line.into(), budget.into(), (*value).into(), low.into(), high.into()]);
        }
        if !means.is_empty() {
            lines.push((line, ink, means));
        }
    }
    let top = lines
        .iter()
        .flat_map(|(_, _, means)| means)
        .map(|(value, interval)| interval.map_or(*value, |i| i[1]));
    let top = top.fold(1e-6, f64::max);
    let last = budgets.len().max(2) as f64 - 1.0;
    let mut plot = Plot::new(HALF, 332.0, [76.0, 18.0, 52.0, 62.0], [-0.1, last + 0.1], [0.0, 1.06 * top]);
    plot.y_axis("change of the action", 4, short);
    plot.x_labels(
        "parts swapped",
        budgets.iter().enumerate().map(|(i, budget)| (i as f64, budget.to_string())),
    );
    for (_, ink, means) in &lines {
        let band: Vec<(f64, f64, f64)> = means
            .iter()
            .enumerate()
            .filter_map(|(i, (_, interval))| interval.map(|[low, high]| (i as f64, low, high)))
            .collect();
        plot.band(&band, *ink, 0.15);
        plot.series(means.iter().enumerate().map(|(i, (value, _))| (i as f64, *value)), *ink, 1.8);
    }
    let names: Vec<(Ink, &str)> = lines.iter().map(|(name, ink, _)| (*ink, *name)).collect();
    for (row, pair) in names.chunks(2).enumerate() {
        let x = plot.x.range[0];
        for (column, (ink, name)) in pair.iter().enumerate() {
            let (x, y) = (x + 210.0 * column as f64, 22.0 + 18.0 * row as f64);
            plot.sheet.line(vec![(x, y - 4.0), (x + 16.0, y - 4.0)], *ink, 2.5, 1.0);
            plot.sheet.text(
                (x + 22.0, y),
                crate::figure::LETTERS,
                crate::figure::Anchor::Start,
                Ink::Text,
                *name,
            );
        }
    }
    Figure {
        name,
        title: format!("Named parts above others by {}: {}", order.above_others.plain(), order.name),
        caption: format!(
            "Parts of a decision are replaced by those of other episodes, more and more of them: those that the claim names first, \
             and as many that it does not name and that change as much. The best order is that of single effects and of a greedy \
             search with other donors. {}.",
            intervals("Bands", measured.episodes.len())
        ),
        wide: false,
        drawing: plot.sheet,
        table,
    }
}

/// Claimed weight against measured effect, by rank of the claim.
fn claims(name: &'static str, order: &Order, measured: &Measurement, pick: Pick) -> Figure {
    let mut ranks: Vec<Vec<f64>> = vec![];
    for measured in measured.episodes.iter().flatten() {
        let Some(curves) = pick.of(measured) else { continue };
        let mut single = curves.single.clone();
        single.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranks.resize_with(ranks.len().max(single.len()), Vec::new);
        for (rank, (_, _, effect)) in single.into_iter().enumerate() {
            ranks[rank].push(effect);
        }
    }
    let mut table = DataTable::new(&["rank of the claim", "mean effect alone"]);
    let means: Vec<f64> = ranks.iter().map(|all| mean(all)).collect();
    for (rank, value) in means.iter().enumerate() {
        table.row([(rank + 1).into(), (*value).into()]);
    }
    let top = means.iter().copied().fold(1e-9, f64::max);
    let count = means.len().max(1) as f64;
    let mut plot = Plot::new(HALF, 320.0, [34.0, 18.0, 52.0, 62.0], [0.0, count], [0.0, 1.06 * top]);
    plot.y_axis("change of the action, swapped alone", 4, short);
    let every = (means.len() / 10).max(1);
    let ticks = (0..means.len()).step_by(every).map(|rank| (rank as f64 + 0.5, (rank + 1).to_string()));
    plot.x_labels("rank in the claim, the most important first", ticks);
    for (rank, value) in means.iter().enumerate() {
        plot.bar(rank as f64 + 0.1, rank as f64 + 0.9, *value, Ink::Attention);
    }
    let correlation = order
        .rank_correlation
        .map_or(String::new(), |r| format!("; rank correlation {r:.2}").replace('-', "−"));
    Figure {
        name,
        title: format!("Claim and effect{correlation}"),
        caption: format!(
            "Of {}: how far the action changes when one part alone is that of another episode, by its rank in the claim. \
             If the claim is right the bars fall from left to right.",
            order.name
        ),
        wide: false,
        drawing: plot.sheet,
        table,
    }
}

/// Every effect of every decision, so that all numbers can be computed again; drawn as the natural variation of each episode.
fn effects(measured: &Measurement) -> Figure {
    let mut table = DataTable::new(&["episode", "step", "what", "swapped", "change"]);
    for (episode, all) in measured.episodes.iter().enumerate() {
        for of in all {
            let Measured { step, paths, values, inputs, .. } = of;
            let mut row = |what: &str, swapped: Option<usize>, change: Option<f64>| {
                if let Some(change) = change {
                    let swapped = swapped.map_or(crate::figure::Cell::Nothing, Into::into);
                    table.row([episode.into(), (*step).into(), what.into(), swapped, change.into()]);
                }
            };
            let soft = paths.first().is_some_and(|paths| paths.selection.is_some());
            row("everything", None, Some(of.mean(|paths| paths.natural)));
            row("attended path", None, Some(of.mean(|paths| paths.attended)));
            row("weights", None, soft.then(|| of.mean(|paths| paths.selection.unwrap_or(0.0))));
            row("values", None, soft.then(|| of.mean(|paths| paths.values.unwrap_or(0.0))));
            row("memory", None, Some(of.mean(|paths| paths.memory)));
            if paths.first().is_some_and(|paths| paths.regret.is_some()) {
                let regret =
                    |part: fn(Regret<f64>) -> f64| Some(of.mean(|paths| paths.regret.map_or(0.0, part)));
                row("everything: regret", None, regret(|regret| regret.natural));
                row("attended path: regret", None, regret(|regret| regret.attended));
                row("memory: regret", None, regret(|regret| regret.memory));
            }
            let names = inputs.iter().enumerate().map(|(i, curves)| {
                let claim = measured.claims.get(i).and_then(|claim| claim.name.as_ref());
                (claim.map_or_else(|| "places".into(), |claim| format!("places, {claim}")), curves.as_ref())
            });
            for (what, curves) in std::iter::once(("values".to_owned(), values.as_ref())).chain(names) {
                let Some(curves) = curves else { continue };
                for (name, curve) in [
                    ("claim", &curves.claim),
                    ("others", &curves.null),
                    ("other moments", &curves.elsewhere),
                    ("best", &curves.best),
                ] {
                    for (&budget, &change) in curves.budgets.iter().zip(curve) {
                        row(&format!("{what}: {name}"), Some(budget), Some(change));
                    }
                }
            }
        }
    }
    let means: Vec<f64> = measured
        .episodes
        .iter()
        .map(|all| mean(&all.iter().map(|of| of.mean(|paths| paths.natural)).collect::<Vec<_>>()))
        .collect();
    let top = means.iter().copied().fold(1e-9, f64::max);
    let count = means.len().max(1) as f64;
    let mut plot = Plot::new(WHOLE, 220.0, [34.0, 18.0, 52.0, 62.0], [0.0, count], [0.0, 1.06 * top]);
    plot.y_axis("natural variation", 4, short);
    plot.x_labels("episode", means.iter().enumerate().map(|(i, _)| (i as f64 + 0.5, (i + 1).to_string())));
    for (episode, value) in means.iter().enumerate() {
        plot.bar(episode as f64 + 0.15, episode as f64 + 0.85, *value, Ink::Muted);
    }
    Figure {
        name: EFFECTS,
        title: "How far the action varies, by episode".into(),
        caption: "The mean change of the action when everything comes from another episode. The table behind this figure has \
                  every effect of every decision."
            .into(),
        wide: true,
        drawing: plot.sheet,
        table,
    }
}

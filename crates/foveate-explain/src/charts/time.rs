//! What happened in the episode, as lines over its steps.

use super::WHOLE;
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, Scale, short};
use crate::trajectory::{Dimension, Trajectory};

const ROW: f64 = 54.0;
const GAP: f64 = 14.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 52.0;

/// Action, reward, score and importance, one below the other.
pub fn traces(episode: &Trajectory, dimensions: &[Dimension]) -> Figure {
    let mut rows: Vec<(&str, Ink, [f64; 2], Vec<f64>)> = dimensions
        .iter()
        .enumerate()
        .map(|(d, dimension)| {
            let values = episode.actions.iter().map(|a| a.get(d).copied().unwrap_or(0.0)).collect();
            (&*dimension.name, Ink::SERIES[d % 4], [dimension.low, dimension.high], values)
        })
        .collect();
    rows.push(("score", Ink::Text, extent(&episode.scores()), episode.scores()));
    if episode.grid.is_some() {
        let shares: Vec<f64> = episode.shares.iter().map(|s| s.iter().map(|&s| f64::from(s)).sum()).collect();
        rows.push(("importance", Ink::Attention, extent(&shares), shares));
    }
    let mut sheet = Drawing::new(WHOLE, rows.len() as f64 * (ROW + GAP) + 50.0);
    let x = Scale::new([0.0, episode.len().saturating_sub(1) as f64], [LEFT, WHOLE - RIGHT]);
    for (i, (name, ink, bounds, values)) in rows.iter().enumerate() {
        let top = 10.0 + i as f64 * (ROW + GAP);
        let y = Scale::new(*bounds, [top + ROW, top]);
        sheet.line(vec![(LEFT, top + ROW), (WHOLE - RIGHT, top + ROW)], Ink::Grid, 1.0, 1.0);
        sheet.text((LEFT - 12.0, top + ROW / 2.0 + 4.0), LETTERS, Anchor::End, *ink, *name);
        for bound in bounds {
            sheet.tick((WHOLE - RIGHT + 8.0, y.at(*bound) + 4.0), 11.0, Anchor::Start, short(*bound));
        }
        let points = values.iter().enumerate().map(|(t, &v)| (x.at(t as f64), y.within(v))).collect();
        sheet.line(points, *ink, 1.3, 1.0);
    }
    let bottom = sheet.height - 38.0;
    for tick in x.ticks(8) {
        sheet.tick((x.at(tick), bottom + 14.0), LETTERS, Anchor::Middle, short(tick));
    }
    sheet.text((WHOLE / 2.0, bottom + 32.0), LETTERS, Anchor::Middle, Ink::Muted, "step");

    let columns = ["step", "reward", "score", "importance of what is looked at", "action"];
    let mut table = DataTable::new(&columns);
    for (t, score) in episode.scores().into_iter().enumerate() {
        let share: f64 = episode.shares[t].iter().map(|&s| f64::from(s)).sum();
        let action: Vec<String> = episode.actions[t].iter().map(f64::to_string).collect();
        table.row([t.into(), episode.rewards[t].into(), score.into(), share.into(), action.join(" ").into()]);
    }
    Figure {
        name: "traces",
        title: "The episode in lines".into(),
        caption: "Action, score, and which part of all importance the patches hold that the agent looks at."
            .into(),
        wide: true,
        drawing: sheet,
        table,
    }
}

fn extent(values: &[f64]) -> [f64; 2] {
    values.iter().fold([0.0, 0.0], |[low, high], &v| [f64::min(low, v), f64::max(high, v)])
}

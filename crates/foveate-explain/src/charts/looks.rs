//! Where an agent looks, drawn.

use foveate_core::{Image, ImageBuf, PatchGrid};

use super::dots::ends_of;
use super::{HALF, WHOLE, percent};
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, Plot, Scale, short};
use crate::interest::ImportanceCounts;
use crate::looks::{AroundChanges, Region};
use crate::overlay::{pixel_range, rectangle};
use crate::trajectory::Trajectory;

/// A value from 0 to 1 as a colour of heat, over black.
pub(super) fn heat(value: f64) -> [f64; 3] {
    let v = value.clamp(0.0, 1.0);
    [(v * 2.2).min(1.0), (v * 1.5 - 0.25).clamp(0.0, 0.95), (v * 1.6 - 0.85).clamp(0.0, 0.8)]
        .map(|c| c * 255.0)
}

/// `under`, darkened, with the values of patches glowing over it; the largest glows most.
pub(crate) fn glow(under: Image<'_>, grid: PatchGrid, values: &[f64]) -> ImageBuf {
    let (width, height) = (under.width(), under.height());
    let most = values.iter().copied().fold(0.0, f64::max).max(1e-300);
    let (mut sums, mut counts) = (vec![0.0; width * height], vec![0_u32; width * height]);
    for (patch, value) in values.iter().enumerate() {
        let [x, y, across, down] = rectangle(width, height, grid, patch as u32);
        for row in pixel_range(y, down, height) {
            for column in pixel_range(x, across, width) {
                sums[row * width + column] += value / most;
                counts[row * width + column] += 1;
            }
        }
    }
    let mut out = ImageBuf::black(width, height);
    let pixels = out.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(under.rgb().as_chunks::<3>().0);
    for ((pixel, ground), (sum, count)) in pixels.zip(sums.iter().zip(&counts)) {
        let level = (sum / f64::from((*count).max(1))).sqrt();
        let grey = ground.iter().map(|&c| f64::from(c)).sum::<f64>() / 3.0 * 0.38;
        let alpha = (level * 1.25).min(1.0);
        for (byte, glow) in pixel.iter_mut().zip(heat(level)) {
            *byte = (grey * (1.0 - alpha) + glow * alpha).round() as u8;
        }
    }
    out
}

/// How often each place is looked at, over the mean of the pictures.
pub fn attention_map(density: &[f64], grid: PatchGrid, mean_picture: Image<'_>, caption: String) -> Figure {
    let side = 360.0;
    let height = side * grid.height() as f64 / grid.width() as f64;
    let mut sheet = Drawing::new(HALF, height + 30.0);
    let left = (HALF - side) / 2.0;
    sheet.picture([left, 8.0, side, height], glow(mean_picture, grid, density));
    let mut table = DataTable::new(&["patch", "column", "row", "share of looks"]);
    for (patch, &share) in density.iter().enumerate() {
        let (x, y) = grid.centre(patch);
        table.row([patch.into(), x.into(), y.into(), share.into()]);
    }
    let most = density.iter().copied().fold(0.0, f64::max);
    let remark = format!("the brightest place gets {} of all looks", percent(most));
    sheet.text((HALF / 2.0, height + 25.0), LETTERS, Anchor::Middle, Ink::Muted, remark);
    Figure { name: "gaze-map", title: "Where it looks".into(), caption, wide: false, drawing: sheet, table }
}

/// Looks by region, beside what an agent would give that looks anywhere.
pub fn region_shares(regions: &[Region], caption: String) -> Figure {
    let (cell, gap, top) = ((HALF - 40.0) / 3.0, 8.0, 10.0);
    let tall = 104.0;
    let mut sheet = Drawing::new(HALF, top + 3.0 * (tall + gap) + 22.0);
    let most = regions.iter().map(|r| r.looks).fold(1e-9, f64::max);
    let mut table = DataTable::new(&["region", "share of looks", "share of patches", "times its area"]);
    for (i, region) in regions.iter().enumerate() {
        let (x, y) = (12.0 + (i % 3) as f64 * (cell + gap), top + (i / 3) as f64 * (tall + gap));
        sheet.rect([x, y, cell, tall], Ink::Grid, 0.5);
        sheet.rect([x, y, cell, tall], Ink::Attention, 0.6 * region.looks / most);
        let middle = x + cell / 2.0;
        sheet.text((middle, y + 50.0), 24.0, Anchor::Middle, Ink::Text, percent(region.looks));
        sheet.text((middle, y + 74.0), LETTERS, Anchor::Middle, Ink::Text, &*region.name);
        let times = region.looks / region.patches.max(1e-9);
        let said = format!("{}× its area", short(times));
        sheet.text((middle, y + 91.0), 11.0, Anchor::Middle, Ink::Text, said);
        table.row([(&*region.name).into(), region.looks.into(), region.patches.into(), times.into()]);
    }
    Figure {
        name: "gaze-regions",
        title: "Looks by region of the picture".into(),
        caption,
        wide: false,
        drawing: sheet,
        table,
    }
}

/// Columns of the picture of looks over time.
const MOMENTS: usize = 260;

/// Where the looks of one episode go over time: from left to right, and from top to bottom of the picture.
pub fn over_time(episode: &Trajectory, grid: PatchGrid, caption: String) -> Figure {
    let moments = episode.len().clamp(1, MOMENTS);
    let mut table = DataTable::new(&["from step", "to step", "mean column", "mean row", "new patches"]);
    let strips = [(grid.columns(), "left to right"), (grid.rows(), "top to bottom")];
    let mut counts = strips.map(|(places, _)| vec![0_u32; places * moments]);
    for moment in 0..moments {
        let (from, to) = (moment * episode.len() / moments, (moment + 1) * episode.len() / moments);
        let (mut x_sum, mut y_sum, mut looks, mut fresh) = (0, 0, 0, 0);
        for t in from..to {
            for &patch in &episode.selected[t] {
                let (column, row) = (patch as usize % grid.columns(), patch as usize / grid.columns());
                counts[0][column * moments + moment] += 1;
                counts[1][row * moments + moment] += 1;
                let (x, y) = grid.centre(patch as usize);
                (x_sum, y_sum, looks) = (x_sum + x, y_sum + y, looks + 1);
                fresh += usize::from(t > 0 && !episode.selected[t - 1].contains(&patch));
            }
        }
        let part = |sum: usize| sum as f64 / f64::from(looks.max(1));
        table.row([from.into(), to.into(), part(x_sum).into(), part(y_sum).into(), part(fresh).into()]);
    }
    let (left, right, tall, gap) = (108.0, 20.0, 130.0, 16.0);
    let mut sheet = Drawing::new(WHOLE, 2.0 * tall + gap + 60.0);
    for (i, ((places, name), counts)) in strips.iter().zip(&counts).enumerate() {
        let top = 8.0 + i as f64 * (tall + gap);
        let most = f64::from(counts.iter().copied().max().unwrap_or(0).max(1));
        let mut image = ImageBuf::black(moments, *places);
        for (pixel, &count) in image.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(counts) {
            let glow = heat((f64::from(count) / most).sqrt());
            *pixel = std::array::from_fn(|c| (glow[c] + [14.0, 18.0, 26.0][c]).min(255.0) as u8);
        }
        sheet.picture([left, top, WHOLE - left - right, tall], image);
        sheet.text((left - 12.0, top + tall / 2.0 + 4.0), LETTERS, Anchor::End, Ink::Text, *name);
    }
    let x = Scale::new([0.0, episode.len() as f64], [left, WHOLE - right]);
    let bottom = 8.0 + 2.0 * tall + gap;
    for tick in x.ticks(8) {
        sheet.tick((x.at(tick), bottom + 18.0), LETTERS, Anchor::Middle, short(tick));
    }
    sheet.text((WHOLE / 2.0, bottom + 38.0), LETTERS, Anchor::Middle, Ink::Muted, "step of the episode");
    Figure {
        name: "gaze-over-time",
        title: "Attention over time".into(),
        caption,
        wide: true,
        drawing: sheet,
        table,
    }
}

/// Longest hold that has a bar of its own.
const LONGEST: usize = 30;

/// How long patches are held, by time spent.
pub fn hold_lengths(holds: &[u64], caption: String) -> Figure {
    let spent: Vec<u64> = holds.iter().enumerate().map(|(i, count)| (i as u64 + 1) * count).collect();
    let all = spent.iter().sum::<u64>().max(1) as f64;
    let mut bars: Vec<f64> = spent.iter().take(LONGEST).map(|&s| s as f64 / all).collect();
    bars.resize(LONGEST, 0.0);
    let rest = spent.iter().skip(LONGEST).sum::<u64>() as f64 / all;
    bars.push(rest);
    let most = bars.iter().copied().fold(1e-9, f64::max);
    let mut plot =
        Plot::new(HALF, 280.0, [30.0, 14.0, 46.0, 52.0], [0.5, LONGEST as f64 + 1.5], [0.0, most * 1.08]);
    plot.y_axis("share of all looks", 4, percent);
    for (i, &bar) in bars.iter().enumerate() {
        let at = i as f64 + 1.0;
        plot.bar(at - 0.5, at + 0.5, bar, if i == LONGEST { Ink::Muted } else { Ink::Attention });
    }
    plot.x_axis("decisions in a row that a patch is looked at", 6, |v| {
        if v > LONGEST as f64 { String::new() } else { short(v) }
    });
    let last = (plot.x.at(LONGEST as f64 + 1.0), plot.y.within(rest) - 6.0);
    plot.sheet.text((last.0 + 6.0, last.1), 11.0, Anchor::End, Ink::Muted, "more");
    let mut table = DataTable::new(&["decisions in a row", "holds", "share of looks"]);
    for (i, (&count, &spent)) in holds.iter().zip(&spent).enumerate() {
        table.row([(i + 1).into(), (count as usize).into(), (spent as f64 / all).into()]);
    }
    Figure {
        name: "holds",
        title: "How long patches are held".into(),
        caption,
        wide: false,
        drawing: plot.sheet,
        table,
    }
}

/// How the attention moves around changes of the action.
pub fn around(changes: &AroundChanges, caption: String) -> Figure {
    let tops = changes.lags.iter().map(|(_, mean, interval)| interval.map_or(*mean, |[_, high]| high));
    let most = tops.fold(changes.usual, f64::max).max(1e-9);
    let ends = changes.lags.last().map_or(1.0, |last| last.0 as f64);
    let mut plot = Plot::new(HALF, 280.0, [34.0, 14.0, 46.0, 52.0], [-ends, ends], [0.0, most * 1.08]);
    plot.y_axis("new patches", 4, percent);
    let band = changes.lags.iter().map(|&(lag, _, ends)| ends.map(|[low, high]| (lag as f64, low, high)));
    plot.upright(0.0, "", Ink::Muted);
    plot.series([(-ends, changes.usual), (ends, changes.usual)], Ink::Control, 1.6);
    if let Some(band) = band.collect::<Option<Vec<_>>>() {
        plot.band(&band, Ink::Attention, 0.2);
    }
    plot.series(changes.lags.iter().map(|&(lag, mean, _)| (lag as f64, mean)), Ink::Attention, 2.2);
    plot.x_axis("decisions before (−) and after (+) the action changes", 6, short);
    plot.legend(&[(Ink::Attention, "around a change"), (Ink::Control, "usually")]);
    let mut table = DataTable::new(&["lag", "share of new patches", "low", "high", "usual"]);
    for &(lag, mean, interval) in &changes.lags {
        let [low, high] = ends_of(interval);
        table.row([(lag as f64).into(), mean.into(), low.into(), high.into(), changes.usual.into()]);
    }
    let title = "Attention before the action changes".into();
    Figure { name: "before-a-change", title, caption, wide: false, drawing: plot.sheet, table }
}

/// The histogram of the importance of the patches in the best twentieth, on a logarithmic scale of counts.
pub fn importance(counts: &ImportanceCounts, uniform: f64, caption: String) -> Figure {
    let (low, high) = (counts.quantile(0.95), counts.quantile(0.99995));
    let bars = counts.bars(low, high, 80);
    let logs = |count: u64| (count.max(1) as f64).log10();
    let most = bars.iter().map(|bar| logs(bar.2)).fold(1.0, f64::max);
    let mut plot = Plot::new(WHOLE, 260.0, [30.0, 14.0, 46.0, 64.0], [low, high], [0.0, most * 1.05]);
    plot.y_axis("patches", 5, |v| if v.fract() == 0.0 { short(10_f64.powf(v)) } else { String::new() });
    for &(from, to, count) in &bars {
        plot.bar(from, to, logs(count), Ink::Attention);
    }
    if uniform > low {
        plot.upright(uniform, "every patch alike", Ink::Muted);
    }
    plot.x_axis("importance of a patch (votes)", 10, short);
    let mut table = DataTable::new(&["from", "to", "patches"]);
    for (from, to, count) in bars {
        table.row([from.into(), to.into(), (count as usize).into()]);
    }
    let title = "Importance of the best twentieth of all patches".into();
    Figure { name: "importance", title, caption, wide: true, drawing: plot.sheet, table }
}

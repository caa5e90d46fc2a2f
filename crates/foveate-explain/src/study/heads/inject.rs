//! An object that never occurs, pasted into the picture (Mott et al. 2019, section 4.2): whether a head attends to it, and
//! whether the policy changes, against the same moments without it.
//!
//! The object comes in from the left and crosses the picture. Everything happens twice at the same moments of an undisturbed
//! episode: an agent that sees the object, with a memory of its own, beside the agent that acts. A box of the picture's mean
//! colour, as large and at the same places, is the control for what merely covers the picture. Last, the agent plays
//! whole episodes with the object.

use foveate_core::{ActContext, Agent, Env, ImageBuf, Opened, PixelShape};

use super::super::seen::{SeenPicture, pictures};
use super::super::{Scheduler, StudyError};
use super::drive::{divergence, drive, probabilities, total_variation, with_bytes};
use super::maps::{bright, sheet, to_buf};
use super::weights::MOMENTS;
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::WHOLE;
use crate::figure::{DataTable, Figure, Ink, Plot, short};

/// The object: a fish, our own. `#` is light, `o` dark; the rest is the picture.
const FISH: [&str; 9] = [
    "....####......",
    "#..########...",
    "##.###########",
    "#########oo###",
    "#########oo###",
    "##############",
    "##.###########",
    "#..########...",
    "....####......",
];
const LIGHT: [u8; 3] = [250, 220, 60];
const DARK: [u8; 3] = [20, 20, 20];
/// Width of the object, as a part of the picture's; it moves by a pixel every two steps.
const WIDTH: f64 = 0.14;
/// Height of its middle, as a part of the picture's.
const MIDDLE: f64 = 0.5;

/// What is pasted.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Object {
    Fish,
    /// The mean colour of the picture.
    Box,
}

/// Left and top of the object at a step, and its width and height, in pixels; the left may lie outside.
fn place(shape: PixelShape, step: usize) -> (i64, i64, usize, usize) {
    let wide = ((shape.width as f64 * WIDTH).round() as usize).max(FISH[0].len() / 2);
    let tall = (wide * FISH.len()).div_ceil(FISH[0].len());
    let top = (shape.height as f64 * MIDDLE) as i64 - tall as i64 / 2;
    (step as i64 / 2 - wide as i64 + 1, top, wide, tall)
}

/// Steps until the object has left.
fn crossing(shape: PixelShape) -> usize {
    2 * (shape.width + place(shape, 0).2)
}

/// Pastes the object into all pictures of a stack, each where it was when that picture was new.
fn paste(shape: PixelShape, bytes: &mut [u8], step: usize, object: Object) {
    let PixelShape { frames, height, width, channels } = shape;
    for (frame, bytes) in bytes.chunks_exact_mut((height * width * channels).max(1)).enumerate() {
        let Some(step) = step.checked_sub(frames - 1 - frame) else { continue };
        let (left, top, wide, tall) = place(shape, step);
        let mut mean = [0_u64; 4];
        for pixel in bytes.chunks_exact(channels) {
            for (sum, &byte) in mean.iter_mut().zip(pixel) {
                *sum += u64::from(byte);
            }
        }
        let mean = mean.map(|sum| (sum / (height * width) as u64) as u8);
        for y in 0..tall {
            for x in 0..wide {
                let (at_x, at_y) = (left + x as i64, top + y as i64);
                if !(0..width as i64).contains(&at_x) || !(0..height as i64).contains(&at_y) {
                    continue;
                }
                let sign = FISH[y * FISH.len() / tall].as_bytes()[x * FISH[0].len() / wide];
                let colour = match (object, sign) {
                    (Object::Box, _) => None,
                    (Object::Fish, b'#') => Some(LIGHT),
                    (Object::Fish, b'o') => Some(DARK),
                    (Object::Fish, _) => continue,
                };
                let pixel = &mut bytes[(at_y as usize * width + at_x as usize) * channels..][..channels];
                match colour {
                    None => pixel.copy_from_slice(&mean[..channels]),
                    Some(colour) if channels == 3 => pixel.copy_from_slice(&colour),
                    Some([r, g, b]) => {
                        let grey = (299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)) / 1000;
                        pixel.fill(grey as u8);
                    }
                }
            }
        }
    }
}

/// `[places]`: the part of each place that the object covers.
fn covered(shape: PixelShape, step: usize, [rows, columns]: [usize; 2]) -> Vec<f64> {
    let (left, top, wide, tall) = place(shape, step);
    let overlap = |from: f64, to: f64, cell: usize, cells: usize, pixels: usize| {
        let size = pixels as f64 / cells as f64;
        let (a, b) = (cell as f64 * size, (cell + 1) as f64 * size);
        ((to.min(b) - from.max(a)) / size).max(0.0)
    };
    let mut all = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        let down = overlap(top as f64, top as f64 + tall as f64, row, rows, shape.height);
        for column in 0..columns {
            let across = overlap(left as f64, left as f64 + wide as f64, column, columns, shape.width);
            all.push(down * across);
        }
    }
    all
}

/// An agent that sees the object beside the one that acts.
struct Beside {
    agent: Box<dyn Agent>,
    object: Object,
    bytes: Vec<u8>,
    opened: Opened,
}

impl Beside {
    /// What it attends to, and the probabilities of its choices.
    fn look(&mut self, env: &dyn Env, step: usize, context: &ActContext) -> Result<Vec<f64>, StudyError> {
        let pixels = pictures(env)?;
        self.bytes.clear();
        self.bytes.extend_from_slice(pixels.bytes());
        paste(pixels.shape(), &mut self.bytes, step, self.object);
        let observation = with_bytes(env.observation(), &self.bytes);
        let refused = |error: foveate_core::PolicyError| StudyError::Refused { why: error.to_string() };
        self.agent.open(observation, context, &mut self.opened).map_err(refused)?;
        let mut context = context.clone();
        Ok(probabilities(&self.agent.resume(&self.opened, &mut context).map_err(refused)?))
    }
}

/// One episode.
struct Played {
    score: f64,
    /// Score of the episode that is played with the object.
    with_object: f64,
    /// `[heads]`: mean share of attention on the object's place with the fish, the box, and neither.
    mass: Vec<[f64; 3]>,
    /// Mean divergence, and total variation, of the policy that sees the fish, the box.
    kl: [f64; 2],
    variation: [f64; 2],
    /// The first step in which the most likely choice is another with the fish, the box; that of the end if there is none.
    first: [f64; 2],
    /// Of the first episode: by step the mass with fish, box and neither, and the variation with fish and box.
    steps: Vec<[f64; 5]>,
    moments: Vec<(usize, ImageBuf, Vec<f32>)>,
}

fn play(job: &Job, episode: usize) -> Result<Played, StudyError> {
    let heads = job.heads;
    let sides = job.fields.sides();
    let start = job.start(episode);
    let shape = pictures(&*start.env)?.shape();
    let most = crossing(shape);
    let mut beside = [Object::Fish, Object::Box].map(|object| {
        let mut agent = start.agent.boxed_clone();
        agent.begin_episode(start.job.episode_seed());
        Beside { agent, object, bytes: vec![], opened: Opened::default() }
    });
    let mut played = Played {
        score: 0.0,
        with_object: 0.0,
        mass: vec![[0.0; 3]; heads],
        kl: [0.0; 2],
        variation: [0.0; 2],
        first: [f64::NAN; 2],
        steps: vec![],
        moments: vec![],
    };
    let wanted = super::super::probes::spread(most, MOMENTS);
    let mut steps = 0_usize;
    let result = drive(start, &mut |_| (), None, &mut |now| {
        if now.step >= most {
            return Ok(());
        }
        let covered = covered(shape, now.step, sides);
        let mass = |weights: &[f32], h: usize| -> f64 {
            let row = job.fields.of_head(weights, h);
            let all: f64 = row.iter().sum();
            row.iter().zip(&covered).map(|(weight, share)| weight * share).sum::<f64>() / all.max(1e-30)
        };
        let mut line = [0.0; 5];
        for h in 0..heads {
            let own = mass(&now.opened.weights, h);
            played.mass[h][2] += own;
            line[2] += own / heads as f64;
        }
        for (i, beside) in beside.iter_mut().enumerate() {
            let probabilities = beside.look(now.env, now.step, now.context)?;
            for h in 0..heads {
                let there = mass(&beside.opened.weights, h);
                played.mass[h][i] += there;
                line[i] += there / heads as f64;
            }
            let variation = total_variation(now.probabilities, &probabilities);
            played.kl[i] += divergence(now.probabilities, &probabilities);
            played.variation[i] += variation;
            line[3 + i] = variation;
            let best = |of: &[f64]| (1..of.len()).fold(0, |best, i| if of[i] > of[best] { i } else { best });
            if played.first[i].is_nan() && best(&probabilities) != best(now.probabilities) {
                played.first[i] = now.step as f64;
            }
        }
        if episode == 0 {
            played.steps.push(line);
            if wanted.contains(&now.step) {
                let fish = &beside[0];
                let pixels = with_bytes(now.env.observation(), &fish.bytes);
                let seen = SeenPicture::of_pixels(pixels.image(), now.env)?;
                let picture = to_buf(seen.newest_frame());
                played.moments.push((now.step, picture, fish.opened.weights.clone()));
            }
        }
        steps += 1;
        Ok(())
    })?;
    let share = 1.0 / steps.max(1) as f64;
    for x in played.mass.iter_mut().flatten() {
        *x *= share;
    }
    for x in played.kl.iter_mut().chain(&mut played.variation) {
        *x *= share;
    }
    for first in &mut played.first {
        if first.is_nan() {
            *first = steps as f64;
        }
    }
    played.score = result.total;
    let mut shown = |step: usize, env: &dyn Env, bytes: &mut Vec<u8>| {
        let pixels = pictures(env)?;
        bytes.clear();
        bytes.extend_from_slice(pixels.bytes());
        paste(pixels.shape(), bytes, step, Object::Fish);
        Ok(())
    };
    played.with_object = drive(job.start(episode), &mut |_| (), Some(&mut shown), &mut |_| Ok(()))?.total;
    Ok(played)
}

/// An object pasted into the picture, against the same moments without it.
#[derive(Debug)]
pub(in crate::study) struct Inject;

impl OfHeads for Inject {
    const NAME: &'static str = "inject";
    const TITLE: &'static str = "An object pasted into the picture";

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let played = scheduler.ordered(job.episodes(), |e| play(job, e), each)?;
        let of = |value: &dyn Fn(&Played) -> f64| -> Vec<f64> { played.iter().map(value).collect() };
        let mut findings = vec![];
        for h in 0..job.heads {
            findings.push(HeadNumber::against(
                format!("head {h}: share of its attention on the object; null: on its place without it"),
                &of(&|p| p.mass[h][0]),
                &of(&|p| p.mass[h][2]),
            ));
        }
        let all = |p: &Played, i: usize| p.mass.iter().map(|mass| mass[i]).sum::<f64>() / p.mass.len() as f64;
        findings.push(HeadNumber::against(
            "all heads: share on the object; null: on a box of mean colour",
            &of(&|p| all(p, 0)),
            &of(&|p| all(p, 1)),
        ));
        findings.push(HeadNumber::against(
            "change of the policy, total variation; null: by the box",
            &of(&|p| p.variation[0]),
            &of(&|p| p.variation[1]),
        ));
        findings.push(HeadNumber::against(
            "change of the policy, divergence in nats; null: by the box",
            &of(&|p| p.kl[0]),
            &of(&|p| p.kl[1]),
        ));
        findings.push(HeadNumber::against(
            "steps until another choice is the most likely; null: by the box",
            &of(&|p| p.first[0]),
            &of(&|p| p.first[1]),
        ));
        findings.push(HeadNumber::against(
            "score of episodes with the object; null: without it",
            &of(&|p| p.with_object),
            &of(&|p| p.score),
        ));
        let figures = played.first().map_or(vec![], |first| vec![moments(job, first), over_time(first)]);
        Ok(Found { scores: of(&|p| p.score), findings, figures })
    }
}

fn moments(job: &Job, first: &Played) -> Figure {
    let mut columns = vec!["seen".to_owned()];
    columns.extend((0..job.heads).map(|head| format!("head {head}")));
    let mut table = DataTable::new(&["step", "head", "place", "weight"]);
    let rows: Vec<_> = first
        .moments
        .iter()
        .map(|(step, picture, weights)| {
            let mut pictures = vec![picture.clone()];
            for h in 0..job.heads {
                let weights = job.fields.of_head(weights, h);
                for (place, &weight) in weights.iter().enumerate() {
                    table.row([(*step).into(), h.into(), place.into(), weight.into()]);
                }
                pictures.push(bright(picture.as_image(), job.fields.grid(), &weights));
            }
            (format!("step {step}"), pictures)
        })
        .collect();
    Figure {
        name: "object",
        title: "An object that never occurs".into(),
        caption: "Moments of the first episode with a fish pasted into the picture, which the world does not have. Bright is \
                  attended, for each head by itself, drawn at the places that change its cells."
            .into(),
        wide: true,
        drawing: sheet(&columns, &rows),
        table,
    }
}

fn over_time(first: &Played) -> Figure {
    let most = first.steps.iter().flatten().copied().fold(1e-9, f64::max);
    let domain = [0.0, first.steps.len().max(2) as f64 - 1.0];
    let mut plot = Plot::new(WHOLE, 300.0, [40.0, 20.0, 60.0, 70.0], domain, [0.0, 1.05 * most]);
    plot.x_axis("step", 8, short);
    plot.y_axis("share of attention, change of the policy", 5, short);
    let lines = [
        (Ink::Attention, "attention on the fish"),
        (Ink::Other, "on the box"),
        (Ink::Muted, "on its place without it"),
        (Ink::Control, "change by the fish"),
        (Ink::Extra, "change by the box"),
    ];
    let mut table = DataTable::new(&["step", "fish", "box", "neither", "change by fish", "change by box"]);
    for (step, line) in first.steps.iter().enumerate() {
        let [a, b, c, d, e] = line.map(Into::into);
        table.row([step.into(), a, b, c, d, e]);
    }
    for (i, (ink, _)) in lines.iter().enumerate() {
        plot.series(first.steps.iter().enumerate().map(|(t, line)| (t as f64, line[i])), *ink, 1.5);
    }
    plot.legend(&lines);
    Figure {
        name: "object-over-time",
        title: "Attention to the object, and what it changes, step by step".into(),
        caption: "The first episode. Shares are means over heads; changes are total variations of the choices' probabilities, \
                  from 0 to 1."
            .into(),
        wide: true,
        drawing: plot.sheet,
        table,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: PixelShape = PixelShape { frames: 2, height: 84, width: 84, channels: 1 };

    #[test]
    fn an_object_comes_in_from_the_left_and_leaves() {
        let blank = vec![100; 2 * 84 * 84];
        let changed = |step, object| {
            let mut bytes = blank.clone();
            paste(SHAPE, &mut bytes, step, object);
            let of = |frame: usize| -> Vec<usize> {
                let all = bytes[frame * 84 * 84..][..84 * 84].iter().enumerate();
                all.filter(|(_, byte)| **byte != 100).map(|(i, _)| i).collect()
            };
            [of(0), of(1)]
        };
        let [older, newer] = changed(0, Object::Fish);
        assert!(older.is_empty(), "it was not there before the first step");
        assert!(!newer.is_empty() && newer.iter().all(|i| i % 84 == 0), "one column of it");
        let [older, newer] = changed(61, Object::Fish);
        assert_eq!(older.len(), newer.len());
        assert!(older.iter().zip(&newer).all(|(a, b)| a == b), "it moves by a pixel every two steps");
        let [older, newer] = changed(62, Object::Fish);
        assert!(older.iter().zip(&newer).all(|(a, b)| a + 1 == *b));
        let end = crossing(SHAPE);
        assert_eq!(changed(end, Object::Fish)[1], [0_usize; 0]);
        assert!(!changed(end - 4, Object::Fish)[1].is_empty());
        assert_eq!(changed(61, Object::Box)[1], [0_usize; 0], "the mean of an even picture");
    }

    #[test]
    fn places_are_covered_in_part() {
        let step = 60;
        let (left, top, wide, tall) = place(SHAPE, step);
        let parts = covered(SHAPE, step, [12, 12]);
        let pixels: f64 = parts.iter().sum::<f64>() * 49.0;
        assert!((pixels - (wide * tall) as f64).abs() < 1e-9, "{pixels}");
        let cell = (top as usize + tall / 2) / 7 * 12 + (left as usize + wide / 2) / 7;
        let most = parts.iter().copied().fold(0.0, f64::max);
        assert!(parts[cell] == most && most > 0.5, "the middle of it: {} of {most}", parts[cell]);
    }
}

//! What measures of explanations that other tools use are made of.
//!
//! XRL-Bench (Xiong et al., *XRL-Bench: A Benchmark for Evaluating and Comparing Explainable Reinforcement Learning Techniques*, KDD
//! 2024, arXiv:2402.12685; github.com/fuxiAIlab/xrl-bench, `xrlbench/custom_metrics`) has AIM and AUM, the accuracy when the important
//! or the unimportant features are set to zero; PGI and PGU, the prediction gap when noise of σ = 0.05 is added to the important or
//! the unimportant ones; RIS, the relative input stability (Agarwal et al. 2022, arXiv:2203.06877).
//!
//! They are made for choices; of actions that are numbers an action counts as the same if it differs by less than 1 % of its range.
//! As there, the order of equal claims is that of their indices.

use foveate_core::{EnvSpec, GridBuf, Observation, ObservationBuf, Rng};

/// Important features, as in XRL-Bench; 1 of observations with fewer than ten parts.
const IMPORTANT: usize = 5;
/// σ of the noise; pixels count from 0 to 1.
const NOISE: f64 = 0.05;
/// An action that differs by less of its range counts as the same.
const SAME: f64 = 0.01;
/// The least size of what is divided by, as in XRL-Bench.
const LEAST: f64 = 0.001;

/// How many of so many parts are important.
pub fn important(parts: usize) -> usize {
    if parts < 2 * IMPORTANT { parts.min(1) } else { IMPORTANT }
}

/// Parts from the largest claim to the smallest; of equal ones the first comes first.
pub fn order(claim: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..claim.len()).collect();
    order.sort_by(|&a, &b| claim[b].total_cmp(&claim[a]));
    order
}

/// The same observation with other contents: `byte` makes those of pictures and grids, `number` those of numbers; each gets the
/// index of the content.
pub fn changed(
    of: &ObservationBuf,
    byte: &mut dyn FnMut(usize, u8) -> u8,
    number: &mut dyn FnMut(usize, f32) -> f32,
) -> ObservationBuf {
    let mut out = of.clone();
    change(&mut out, byte, number);
    out
}

fn change(
    out: &mut ObservationBuf,
    byte: &mut dyn FnMut(usize, u8) -> u8,
    number: &mut dyn FnMut(usize, f32) -> f32,
) {
    match out {
        ObservationBuf::Image(pixels) => {
            pixels.bytes_mut().iter_mut().enumerate().for_each(|(i, x)| *x = byte(i, *x));
        }
        ObservationBuf::Vector(numbers) => {
            numbers.iter_mut().enumerate().for_each(|(i, x)| *x = number(i, *x));
        }
        ObservationBuf::Grid(grid) => {
            let old = grid.as_grid();
            let codes = old.codes().iter().enumerate().map(|(i, &x)| byte(i, x)).collect();
            if let Some(new) = GridBuf::new(old.rows(), old.columns(), old.channels(), codes) {
                *grid = new;
            }
        }
        ObservationBuf::Dict(parts) => parts.iter_mut().for_each(|(_, part)| change(part, byte, number)),
    }
}

/// The observation with zeros everywhere: black, unseen cells.
pub fn blank(of: &ObservationBuf) -> ObservationBuf {
    changed(of, &mut |_, _| 0, &mut |_, _| 0.0)
}

/// The observation of `all` at `index` with noise in all parts: normal, or of a grid each code as at a moment of another episode.
pub fn noisy(all: &[&ObservationBuf], index: usize, rng: &mut Rng) -> ObservationBuf {
    let mut other = rng.below(all.len().saturating_sub(1) as u64) as usize;
    other += usize::from(other >= index);
    let own = all[index];
    if matches!(own, ObservationBuf::Grid(_))
        && let Some(&other) = all.get(other)
    {
        return other.clone();
    }
    let mut second = rng.clone();
    let noise = |rng: &mut Rng| NOISE * rng.normal();
    changed(
        own,
        &mut |_, x| (f64::from(x) + 255.0 * noise(rng)).round().clamp(0.0, 255.0) as u8,
        &mut |_, x| x + noise(&mut second) as f32,
    )
}

/// How two actions differ, 0 to 1: of numbers in parts of their ranges; of choices whether another one is the best, and of
/// probabilities the total variation.
pub fn apart(spec: &EnvSpec, a: &[f64], b: &[f64]) -> f64 {
    if spec.action.is_discrete() {
        let are_probabilities =
            [a, b].iter().all(|x| x.iter().all(|&p| p >= 0.0) && (x.iter().sum::<f64>() - 1.0).abs() < 1e-5);
        if are_probabilities {
            return a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>() / 2.0;
        }
        return f64::from(u8::from(best(a) != best(b)));
    }
    let ranges = spec.action.bounds();
    let all =
        a.iter().zip(b).zip(&ranges).map(|((a, b), [low, high])| (a - b).abs() / (high - low).max(1e-12));
    all.sum::<f64>() / a.len().max(1) as f64
}

fn best(scores: &[f64]) -> usize {
    (0..scores.len()).fold(0, |best, i| if scores[i] > scores[best] { i } else { best })
}

/// Returns whether an action counts as the same.
pub fn same(spec: &EnvSpec, a: &[f64], b: &[f64]) -> bool {
    if spec.action.is_discrete() { best(a) == best(b) } else { apart(spec, a, b) < SAME }
}

/// The change of what is predicted: of the score of what was chosen, or of numbers in parts of their ranges.
pub fn gap(spec: &EnvSpec, before: &[f64], after: &[f64]) -> f64 {
    if spec.action.is_discrete() {
        let chosen = best(before);
        return (before[chosen] - after[chosen]).abs();
    }
    apart(spec, before, after)
}

/// The relative input stability: the relative change of a claim, divided by that of what is observed.
pub fn stability(claims: [&[f64]; 2], seen: [&ObservationBuf; 2]) -> f64 {
    let [before, after] = seen.map(|seen| {
        let mut wide = vec![];
        append(seen.as_observation(), &mut wide);
        wide
    });
    relative(claims[0], claims[1]) / relative(&before, &after).max(1e-12)
}

/// The size of a relative change.
fn relative(before: &[f64], after: &[f64]) -> f64 {
    let parts =
        before.iter().zip(after).map(|(before, after)| ((before - after) / before.max(LEAST)).powi(2));
    parts.sum::<f64>().sqrt()
}

fn append(observation: Observation<'_>, wide: &mut Vec<f64>) {
    match observation {
        Observation::Image(pixels) => wide.extend(pixels.bytes().iter().map(|&x| f64::from(x) / 255.0)),
        Observation::Vector(numbers) => wide.extend(numbers.iter().map(|&x| f64::from(x))),
        Observation::Grid(grid) => wide.extend(grid.codes().iter().map(|&x| f64::from(x))),
        Observation::Dict(parts) => {
            for (_, part) in (0..parts.count()).filter_map(|i| parts.part(i)) {
                append(part, wide);
            }
        }
    }
}

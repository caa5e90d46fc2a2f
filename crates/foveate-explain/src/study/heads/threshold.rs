//! The test of hard attention (Mott et al. 2019): whether the agent still plays when all weights but the large ones are zero.

use foveate_core::statistics::{mean, std};
use foveate_core::{Opened, Rng};

use super::super::{Scheduler, StudyError};
use super::drive::drive;
use super::{Found, HeadNumber, Job, OfHeads};
use crate::charts::WHOLE;
use crate::figure::{DataTable, Figure, Ink, Plot, short};

/// Weights below this part of their head's largest are dropped.
const SHARES: [f32; 8] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0];

/// How often an episode is played: with each share of the weights, and with as many dropped at random.
const PLAYS: usize = 2 * SHARES.len() - 1;

/// What is done to the weights.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Cut {
    /// Small ones are dropped.
    Small(f32),
    /// As many are dropped of each head, whichever they are.
    AsManyAtRandom(f32),
}

impl Cut {
    fn apply(self, opened: &mut Opened, rng: &mut Rng) {
        let share = match self {
            Cut::Small(share) => return opened.threshold(share),
            Cut::AsManyAtRandom(share) => share,
        };
        let mut thresholded = opened.clone();
        thresholded.threshold(share);
        for (row, after) in
            opened.weights.chunks_exact_mut(opened.units).zip(thresholded.weights.chunks_exact(opened.units))
        {
            let all: f32 = row.iter().sum();
            let mut dropped = row.iter().zip(after).filter(|(a, b)| **a > 0.0 && **b == 0.0).count();
            let mut order: Vec<usize> = (0..row.len()).filter(|&i| row[i] > 0.0).collect();
            while dropped > 0 && order.len() > 1 {
                row[order.swap_remove(rng.below(order.len() as u64) as usize)] = 0.0;
                dropped -= 1;
            }
            let left: f32 = row.iter().sum();
            if left > 0.0 {
                for weight in row.iter_mut() {
                    *weight *= all / left;
                }
            }
        }
    }

    const fn share(self) -> f32 {
        match self {
            Cut::Small(share) | Cut::AsManyAtRandom(share) => share,
        }
    }
}

/// The mean of `a` divided by that of `b`, with the standard error that both give: `R √(s_a² / (n m_a²) + s_b² / (n m_b²))`.
/// `None` where the second is not above 0, so that a quotient says nothing.
fn ratio(a: &[f64], b: &[f64]) -> Option<(f64, Option<f64>)> {
    let (above, below) = (mean(a), mean(b));
    if below.is_nan() || below <= 0.0 {
        return None;
    }
    // The deviation divides by n, that of a sample by n − 1.
    let relative = |of: &[f64], mean: f64| Some((std(of)? / mean).powi(2) / (of.len() - 1) as f64);
    let ratio = above / below;
    let error = relative(a, above).zip(relative(b, below)).map(|(a, b)| ratio.abs() * (a + b).sqrt());
    Some((ratio, error.filter(|error| error.is_finite())))
}

/// The score with small weights set to zero.
#[derive(Debug)]
pub(in crate::study) struct Threshold;

impl OfHeads for Threshold {
    const STICKY: bool = true;
    const NAME: &'static str = "threshold";
    const TITLE: &'static str = "Small weights set to zero";
    const TIMES: usize = PLAYS;

    fn find(job: &Job, scheduler: &dyn Scheduler, each: &mut dyn FnMut()) -> Result<Found, StudyError> {
        let n = job.starts.len();
        let random = SHARES[1..].iter().map(|&share| Cut::AsManyAtRandom(share));
        let cuts: Vec<Cut> = SHARES.iter().map(|&share| Cut::Small(share)).chain(random).collect();
        let jobs = cuts.iter().flat_map(|&cut| (0..n).map(move |episode| (cut, episode)));
        let play = |(cut, episode): (Cut, usize)| {
            let mut rng = job
                .seed
                .child("cut", u64::from(cut.share().to_bits()))
                .child("episode", episode as u64)
                .rng();
            let result =
                drive(job.start(episode), &mut |opened| cut.apply(opened, &mut rng), None, &mut |_| Ok(()))?;
            Ok(result.total)
        };
        let jobs: Vec<_> = jobs.collect();
        let scores = scheduler.ordered(jobs, play, each)?;
        let scores: Vec<(Cut, &[f64])> = cuts.iter().copied().zip(scores.chunks(n)).collect();
        let whole = scores[0].1;
        let random = |share: f32| {
            scores.iter().find(|(cut, _)| *cut == Cut::AsManyAtRandom(share)).map(|(_, scores)| *scores)
        };
        let mut findings = vec![HeadNumber::plain("score with all weights", whole)];
        for &(cut, of) in &scores[1..] {
            if let (Cut::Small(share), Some(null)) = (cut, random(cut.share())) {
                let relative =
                    ratio(of, whole).map_or("no ratio: the score is not above 0".into(), |(ratio, error)| {
                        let error = error.map_or(String::new(), |error| format!(" ± {:.0}", 100.0 * error));
                        format!("{:.0}{error} % of it", 100.0 * ratio)
                    });
                findings.push(HeadNumber::against(format!("score at t = {share} ({relative})"), of, null));
            }
        }
        Ok(Found { scores: whole.to_vec(), findings, figures: vec![figure(&scores)] })
    }
}

fn figure(scores: &[(Cut, &[f64])]) -> Figure {
    let whole = scores[0].1;
    let mut table =
        DataTable::new(&["t", "dropped", "episode", "score", "mean ratio", "standard error of the ratio"]);
    for (cut, of) in scores {
        let (ratio, error) = ratio(of, whole).map_or((None, None), |(ratio, error)| (Some(ratio), error));
        let kind = if matches!(cut, Cut::Small(_)) { "small weights" } else { "as many at random" };
        for (episode, &score) in of.iter().enumerate() {
            let share = f64::from(cut.share());
            table.row([share.into(), kind.into(), episode.into(), score.into(), ratio.into(), error.into()]);
        }
    }
    let all = scores.iter().flat_map(|(_, of)| of.iter().copied());
    let [low, high] = all.fold([f64::MAX, f64::MIN], |[low, high], x| [low.min(x), high.max(x)]);
    let margin = (0.05 * (high - low)).max(0.5);
    let mut plot =
        Plot::new(WHOLE, 360.0, [40.0, 20.0, 60.0, 70.0], [-0.02, 1.02], [low - margin, high + margin]);
    plot.x_axis("t: weights below this part of the largest are dropped", 6, short);
    plot.y_axis("score", 5, short);
    for (small, ink) in [(false, Ink::Muted), (true, Ink::Attention)] {
        let of_kind =
            scores.iter().filter(|(cut, _)| matches!(cut, Cut::Small(_)) == small || cut.share() == 0.0);
        let means: Vec<_> = of_kind
            .map(|(cut, of)| {
                let interval = foveate_core::statistics::mean_interval(of);
                (f64::from(cut.share()), mean(of), interval)
            })
            .collect();
        plot.series(means.iter().map(|&(x, y, _)| (x, y)), ink, 1.5);
        for (x, y, interval) in means {
            plot.mean_at(x, y, interval, 4.5, ink);
        }
    }
    plot.legend(&[(Ink::Attention, "small weights dropped"), (Ink::Muted, "as many at random")]);
    Figure {
        name: "threshold",
        title: "The score without small weights".into(),
        caption: "Weights below a part t of their head's largest are set to zero and the others scaled to the same sum, in \
                  every step. Grey: as many weights are dropped from each head, whichever they are. Bars: 95 % over episodes."
            .into(),
        wide: true,
        drawing: plot.sheet,
        table,
    }
}

#[cfg(test)]
mod tests {
    use foveate_core::Seed;

    use super::*;

    #[test]
    fn errors_of_both_means_propagate() {
        // Means 2 and 4; variances 1 and 4 of three numbers each.
        let (ratio, error) = ratio(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).expect("above 0");
        assert_eq!(ratio, 0.5);
        let expect = 0.5 * (1.0_f64 / (3.0 * 4.0) + 4.0 / (3.0 * 16.0)).sqrt();
        assert!((error.expect("three each") - expect).abs() < 1e-12);
        assert_eq!(super::ratio(&[1.0], &[-1.0]), None);
        assert_eq!(super::ratio(&[1.0], &[2.0]), Some((0.5, None)), "one episode has no error");
    }

    #[test]
    fn as_many_are_dropped_at_random() {
        let weights = vec![0.6, 0.3, 0.06, 0.04, 0.25, 0.25, 0.25, 0.25];
        let mut rng = Seed::root(1).rng();
        let mut other = 0;
        for _ in 0..50 {
            let mut opened = Opened { units: 4, readers: 2, weights: weights.clone(), ..Opened::default() };
            Cut::AsManyAtRandom(0.2).apply(&mut opened, &mut rng);
            let zeros = opened.row(0).iter().filter(|w| **w == 0.0).count();
            assert_eq!(
                (zeros, opened.row(1)),
                (2, &weights[4..]),
                "two of the first head, none of the second"
            );
            assert!((opened.row(0).iter().sum::<f32>() - 1.0).abs() < 1e-6);
            other += usize::from(opened.row(0)[0] == 0.0);
        }
        assert!((10..40).contains(&other), "the largest goes as often as any: {other} of 50");
    }
}

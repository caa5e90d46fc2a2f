//! The numbers of a learning curve.

use std::collections::BTreeMap;

use crate::event::Event;

/// Returns over the training steps of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Curve {
    /// Training steps so far.
    pub steps: f64,
    /// Mean of each generation, as (training steps, return).
    pub mean: Vec<(f64, f64)>,
    /// Best of each generation.
    pub best: Vec<(f64, f64)>,
    /// Mean of each validation.
    pub validation: Vec<(f64, f64)>,
    /// Mean of each evaluation.
    pub evaluation: Vec<(f64, f64)>,
    /// Training steps at which a stage chose one of its starts.
    pub chosen: Vec<f64>,
    /// The final report: training steps, mean return, and the 95 % interval of the mean.
    pub report: Option<(f64, f64, Option<[f64; 2]>)>,
    /// What the learner measured in each generation, by name, as (training steps, value).
    pub measures: BTreeMap<String, Vec<(f64, f64)>>,
}

impl Curve {
    /// Collects the learning curve from the events of a run, in their order.
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut curve = Curve::default();
        for event in events {
            let now = curve.steps;
            match event {
                Event::Generation { steps, mean, best, measures, .. } => {
                    curve.steps = *steps as f64;
                    curve.mean.push((curve.steps, *mean));
                    curve.best.push((curve.steps, *best));
                    for (name, &value) in measures {
                        curve.measures.entry(name.clone()).or_default().push((curve.steps, value));
                    }
                }
                Event::Validation { steps, summary, .. } => {
                    curve.validation.push((*steps as f64, summary.mean));
                }
                Event::Evaluation { steps, summary, .. } => {
                    curve.evaluation.push((*steps as f64, summary.mean));
                }
                Event::Chosen { .. } => curve.chosen.push(now),
                Event::Report { summary, .. } => curve.report = Some((now, summary.mean, summary.ci95)),
                Event::Stagnation { .. } | Event::Final { .. } => {}
            }
        }
        curve
    }

    /// Every return of the curve, the ends of the report's interval included.
    pub fn returns(&self) -> impl Iterator<Item = f64> {
        let points = [&self.mean, &self.best, &self.validation, &self.evaluation];
        let report = self
            .report
            .iter()
            .flat_map(|&(_, mean, ci95)| [mean].into_iter().chain(ci95.into_iter().flatten()));
        points.into_iter().flatten().map(|point| point.1).chain(report)
    }

    /// Reduces `points` to at most `most` points, which must be above 0: each is the mean of neighbouring
    /// points.
    ///
    /// ```
    /// use foveate_train::Curve;
    /// let points = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 9.0)];
    /// assert_eq!(Curve::thin(&points, 2), [(0.5, 2.0), (2.5, 7.0)]);
    /// ```
    pub fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
        let group = points.len().div_ceil(most.max(1)).max(1);
        let mean = |group: &[(f64, f64)]| {
            let n = group.len() as f64;
            (group.iter().map(|p| p.0).sum::<f64>() / n, group.iter().map(|p| p.1).sum::<f64>() / n)
        };
        points.chunks(group).map(mean).collect()
    }
}

//! The learning curve of a run as an SVG picture.

use foveate_explain::charts::{LearningCurve, learning_curve};
use foveate_train::{Curve, Event};

/// More points than pixels would only enlarge the file.
const POINTS: usize = 760;

/// The same of the smaller plots of what a learner measured.
const MEASURED: usize = 240;

/// Draws returns over training steps: the population (mean and best of each generation, reduced to means of
/// neighbours), the mean weights on the validation and evaluation tracks, and the final report; below, in a plot each, what the
/// learner measured: losses, norms of gradients.
pub fn svg<'a>(title: &str, events: impl IntoIterator<Item = &'a Event>) -> String {
    let curve = Curve::of(events);
    let measures: Vec<_> =
        curve.measures.iter().map(|(name, points)| (&**name, Curve::thin(points, MEASURED))).collect();
    learning_curve(
        title,
        &LearningCurve {
            steps: curve.steps,
            best: &Curve::thin(&curve.best, POINTS),
            mean: &Curve::thin(&curve.mean, POINTS),
            validation: &curve.validation,
            evaluation: &curve.evaluation,
            marks: &curve.chosen,
            report: curve.report.map(|(_, mean, interval)| (mean, interval)),
            measures: &measures,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Left, top, right and bottom of the plot within the picture.
    const PLOT: [f64; 4] = [64.0, 40.0, 830.0, 372.0];
    use foveate_train::Summary;

    fn generation(i: u64) -> Event {
        Event::Generation {
            generation: i,
            steps: i * 1000,
            stage: "learn".into(),
            start: 1,
            best: 900.0,
            mean: -40.0 + i as f64,
            length: 100.0,
            norm: 1.0,
            sigma: 0.1,
            replayed: 0,
            tasks: vec![],
            measures: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn the_curve_holds_everything_and_stays_small() {
        let mut events: Vec<Event> = (1..=5000).map(generation).collect();
        let summary = Summary::of(&[700.0, 800.0]);
        events.push(Event::Validation {
            generation: 5000,
            steps: 2_500_000,
            stage: "learn".into(),
            start: 1,
            summary,
            best: true,
        });
        events.push(Event::Evaluation {
            generation: 5000,
            steps: 5_000_000,
            stage: "learn".into(),
            start: 1,
            summary,
            seeds: vec![],
            returns: vec![],
        });
        events.push(Event::Report {
            generation: 1,
            steps: 1,
            judging_steps: 1,
            summary,
            seeds: vec![],
            returns: vec![],
        });
        let svg = svg("a <run> & its curve", &events);
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("a &lt;run&gt; &amp; its curve"));
        assert!(svg.len() < 40_000, "{} bytes", svg.len());
        // Half of the steps is the middle of the plot; checks the height of 750 in the range -500..5000.
        let y = PLOT[3] - (PLOT[3] - PLOT[1]) * (750.0 + 500.0) / 5500.0;
        assert!(
            svg.contains(&format!("<circle cx=\"{:.0}\" cy=\"{y:.2}\"", f64::midpoint(PLOT[0], PLOT[2]))),
            "{svg}"
        );
        assert_eq!(svg.matches("#2b8a5a").count(), 2, "a point and its legend");
        assert!(svg.contains(">5.00 M<") && svg.contains("final report"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn what_a_learner_measures_has_plots_of_its_own() {
        let plain: Vec<Event> = (1..=900).map(generation).collect();
        let mut measured = plain.clone();
        for event in &mut measured {
            let Event::Generation { generation, measures, .. } = event else { panic!("{event:?}") };
            for (name, factor) in
                [("loss", 1.0), ("gradient_norm", 10.0), ("kl", 1e-3), ("entropy", f64::NAN)]
            {
                measures.insert(name.to_owned(), factor / *generation as f64);
            }
        }
        let (plain, svg) = (svg("a run", &plain), svg("a run", &measured));
        assert!(!plain.contains("loss"));
        for name in ["loss", "gradient norm", "kl", "entropy"] {
            assert_eq!(svg.matches(&format!(">{name}<")).count(), 1, "{name}: {svg}");
        }
        assert!(svg.len() < 60_000 && !svg.contains("NaN") && !svg.contains("inf"), "{} bytes", svg.len());
    }

    /// The labels of the horizontal lines, from the bottom up.
    fn labels(svg: &str) -> Vec<&str> {
        let ends = svg.split("text-anchor=\"end\">").skip(1);
        ends.filter_map(|rest| rest.split_once('<')).map(|(label, _)| label).collect()
    }

    #[test]
    fn the_axis_is_that_of_the_worlds_returns() {
        let curve = |best: f64, worst: f64, report: &[f64]| {
            let (steps, seeds, returns) = (40_000, vec![], vec![]);
            let event = Event::Generation {
                generation: 1,
                steps,
                stage: "learn".into(),
                start: 1,
                best,
                mean: worst,
                length: 1.0,
                norm: 1.0,
                sigma: 0.1,
                replayed: 0,
                tasks: vec![],
                measures: std::collections::BTreeMap::new(),
            };
            let summary = Summary::of(report);
            let report = Event::Report { generation: 1, steps, judging_steps: 1, summary, seeds, returns };
            svg("a run", &[event, report])
        };
        for (best, worst, report, expect) in [
            // The plot of CarRacing is unchanged.
            (912.0, -62.0, &[880.0, 902.0][..], &["-100", "0", "100", "200"][..]),
            (-110.0, -200.0, &[-120.0, -130.0], &["-200", "-180", "-160"]),
            (-200.0, -200.0, &[-200.0], &["-200", "-180", "-160"]),
            (0.955, 0.0, &[0.2, 0.9], &["0", "0.1", "0.2"]),
            (2e7, -1.0, &[1e7, 2e7], &["-2e6", "0", "2e6"]),
        ] {
            let svg = curve(best, worst, report);
            assert_eq!(&labels(&svg)[..expect.len()], expect, "{best} {worst}");
            assert!(svg.contains(">10,000<") && svg.contains(">40,000<") && !svg.contains("NaN"), "{svg}");
            // All points lie within the plot.
            for circle in svg.split("cy=\"").skip(1).filter_map(|rest| rest.split_once('"')) {
                let y: f64 = circle.0.parse().expect("a number");
                assert!((PLOT[1]..=PLOT[3]).contains(&y), "{y}: {svg}");
            }
        }
        let one = curve(-200.0, -200.0, &[-200.0]);
        assert!(one.contains("final report, one episode") && !one.contains("95 %"), "{one}");
    }

    #[test]
    fn nothing_yet_is_a_picture_too() {
        for events in [vec![], vec![generation(1)]] {
            let svg = svg("empty", &events);
            assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}

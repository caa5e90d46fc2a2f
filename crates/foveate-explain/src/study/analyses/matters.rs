//! What matters, by which path, and whether the claims are right: what stands first.

use serde::Serialize;

use super::super::StudyError;
use super::super::finding::{Analysis, Bench, Finding, Findings};
use super::super::swaps::Swapped;
use super::super::swaps::{SwapReport, figures, page, report};
use super::super::twice::AskedFunction;

/// What matters, in numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Swaps {
    /// What matters, by which path, in which order; `None` where nothing can be swapped.
    pub swaps: Option<SwapReport>,
}

/// What matters, by which path, in which order.
#[derive(Debug)]
pub(in crate::study) struct Matters;

impl Analysis for Matters {
    fn name(&self) -> &'static str {
        "matters"
    }

    fn find(&self, bench: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
        let Some(swapped) = bench.get::<Swapped>() else {
            return Ok(Some(Finding::new(Swaps { swaps: None })));
        };
        let mut report = report::report(&bench.head, swapped);
        if let Some(asked) = bench.get::<AskedFunction>() {
            asked.unsettle(&mut report);
        }
        let mut figures = figures::figures(&report, &swapped.measured);
        // Which of several claims is true is the first question of whoever makes them.
        let several = report.xrl_bench.len() > 1 && figures[0].name == figures::METHODS;
        let picture = several.then(|| figures.remove(0));
        let bordered = swapped.measured.film.is_some();
        Ok(Some(Finding {
            tiles: page::tiles(&report).collect(),
            sentences: page::sentences(&report),
            lines: page::verdict_lines(&report),
            picture,
            section: Some(page::section(&report, bordered, figures)),
            ..Finding::new(Swaps { swaps: Some(report) })
        }))
    }
}

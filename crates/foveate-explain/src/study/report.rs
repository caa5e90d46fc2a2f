//! A report: its findings as JSON, as files, as lines on a terminal and as one page.

use std::fmt;

use serde::Serialize;

use super::finding::{EpisodeShown, Finding, Findings};
use super::words::{png, subject};
use super::{AddFile, REPORT_FILE, ReportHead};
use crate::figure::{Dress, Figure, raster, svg};
use crate::page::{FilmEffects, PageEpisode, ReportPage, Section, player_data};
use crate::trajectory::Dimension;

/// What was found of an agent.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// What was studied.
    #[serde(flatten)]
    pub head: ReportHead,
    /// What the analyses found.
    #[serde(flatten)]
    pub findings: Findings,
}

impl Report {
    /// The numbers of this type, if an analysis found some.
    pub fn get<T: super::Numbers>(&self) -> Option<&T> {
        self.findings.get()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head.lines(f)?;
        for line in self.findings.iter().flat_map(Finding::told) {
            writeln!(f, "  {line}")?;
        }
        self.head.place(f)
    }
}

/// A finished study, whose files are to be written.
pub struct Study {
    pub(super) report: Report,
    pub(super) shown: EpisodeShown,
    pub(super) effects: Option<FilmEffects>,
    pub(super) dimensions: Vec<Dimension>,
}

impl Study {
    /// What was found.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Passes name and bytes of every file of the report to `add`: figures as SVG, PNG, CSV and JSON, the page, its
    /// tables for LaTeX, the film if there is one, and last [`REPORT_FILE`].
    ///
    /// # Errors
    /// The first that `add` gives.
    pub fn write<E>(mut self, add: &mut AddFile<'_, E>) -> Result<Report, E> {
        let figures = write_figures(self.report.findings.figures(), add)?;
        let html = self.page().html(&png);
        self.report.head.bytes = html.len();
        add("index.html", html.as_bytes())?;
        for section in self.report.findings.sections() {
            for (number, table) in section.tables.iter().enumerate() {
                let number = if number == 0 { String::new() } else { format!("-{}", number + 1) };
                add(&format!("tables/{}{number}.tex", section.id), table.latex().as_bytes())?;
            }
        }
        if let Some(film) = &self.shown.film {
            add("episode.mp4", film.film().mp4)?;
        }
        let numbers = self.report.findings.iter().map(|finding| finding.numbers.pretty());
        let head = serde_json::to_string_pretty(&self.report.head).unwrap_or_default();
        add(REPORT_FILE, whole_json(std::iter::once(head).chain(numbers), &figures).as_bytes())?;
        Ok(self.report)
    }

    fn page(&mut self) -> ReportPage<'_> {
        let Study { report: Report { head, findings }, shown, effects, dimensions } = self;
        let mut page = ReportPage {
            title: format!("What {} {}", subject(&head.weights), shown.verb),
            subtitle: format!(
                "{} · {}, variant {} · {}",
                head.weights,
                head.on(),
                head.variant,
                head.extent()
            ),
            notes: vec![head.made_note(), head.interval_note()],
            folded: true,
            ..ReportPage::default()
        };
        for finding in &mut findings.0 {
            page.answers.append(&mut finding.answers.clone());
            page.pictures.extend(finding.picture.clone());
            page.tiles.append(&mut finding.tiles.clone());
            page.summary.extend(finding.sentences.iter().cloned());
            // The findings keep the words and tables of their sections.
            let drawn = finding.section.as_mut().map(|section| std::mem::take(&mut section.figures));
            page.sections.extend(
                finding.section.clone().zip(drawn).map(|(section, figures)| Section { figures, ..section }),
            );
            page.notes.extend(finding.notes.iter().cloned());
        }
        page.tiles.extend(head.score_tile());
        page.episode = shown.film.as_ref().map(|film| {
            let film = film.film();
            let EpisodeShown { episode, maps, picture, seen, columns, .. } = &*shown;
            let data = player_data(&film, episode, maps, *picture, dimensions, effects.as_ref());
            PageEpisode { film, seen, columns, data }
        });
        page
    }
}

/// Passes figures as SVG, PNG, CSV and JSON to `add`; gives the rows that each is drawn from, a line per figure.
pub(super) fn write_figures<'f, E>(
    figures: impl Iterator<Item = &'f Figure>,
    add: &mut AddFile<'_, E>,
) -> Result<Vec<String>, E> {
    let mut lines = vec![];
    for figure in figures {
        let (name, rows) = (format!("figures/{}", figure.name), figure.table.json().to_string());
        let drawn = svg(&figure.drawing, &figure.title, Dress::Alone, &png);
        add(&format!("{name}.svg"), drawn.as_bytes())?;
        add(&format!("{name}.png"), &png(raster(&figure.drawing).as_image()))?;
        add(&format!("{name}.csv"), figure.table.csv().as_bytes())?;
        add(&format!("{name}.json"), rows.as_bytes())?;
        lines.push(format!("    {:?}: {rows}", figure.name));
    }
    Ok(lines)
}

/// Objects of JSON as one, and behind them the rows of every figure: every number that the page shows.
pub(super) fn whole_json(objects: impl Iterator<Item = String>, figures: &[String]) -> String {
    let fields = objects.map(|object| object.trim_matches(['{', '}']).trim_matches('\n').to_owned());
    let mut all: Vec<String> = fields.filter(|fields| !fields.is_empty()).collect();
    all.push(format!("  \"figures\": {{\n{}\n  }}", figures.join(",\n")));
    format!("{{\n{}\n}}\n", all.join(",\n"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::convert::Infallible;

    use super::super::cost::{Meter, StudyCost};
    use super::super::finding::{Analysis, Bench};
    use super::super::{Scheduler, StudyError, finish};
    use super::*;
    use crate::page::PageTable;

    /// Runs no jobs.
    struct Alone;

    impl Scheduler for Alone {
        fn run(
            &self,
            _: usize,
            _: &(dyn Fn(usize) -> Result<(), StudyError> + Sync),
            _: &mut dyn FnMut(),
        ) -> Result<(), StudyError> {
            Ok(())
        }

        fn stopped(&self) -> bool {
            false
        }
    }

    /// Two analyses, of which the second builds on the first.
    #[derive(Debug)]
    struct Half;
    #[derive(Debug)]
    struct Whole;
    #[derive(Debug, Serialize)]
    struct OfHalf {
        half: f64,
    }
    #[derive(Debug, Serialize)]
    struct OfWhole {
        whole: f64,
        nothing: Vec<u8>,
    }

    impl Analysis for Half {
        fn name(&self) -> &'static str {
            "half"
        }

        fn find(&self, _: &Bench<'_>, _: &Findings) -> Result<Option<Finding>, StudyError> {
            let sentences = vec!["A half <of it>.".into()];
            Ok(Some(Finding { sentences, ..Finding::new(OfHalf { half: 21.5 }) }))
        }
    }

    impl Analysis for Whole {
        fn name(&self) -> &'static str {
            "whole"
        }

        fn find(&self, _: &Bench<'_>, before: &Findings) -> Result<Option<Finding>, StudyError> {
            let Some(OfHalf { half }) = before.get() else { return Ok(None) };
            let whole = 2.0 * half;
            let section = Section {
                id: "whole".into(),
                title: "The whole".into(),
                tables: vec![PageTable::new(
                    ["whole", "verdict"],
                    [[format!("{whole} (42 … 44)"), "supported".into()]],
                )],
                ..Section::default()
            };
            let lines = vec![format!("whole {whole}")];
            Ok(Some(Finding {
                lines,
                section: Some(section),
                ..Finding::new(OfWhole { whole, nothing: vec![] })
            }))
        }
    }

    /// An analysis of the list is in `report.json`, on the terminal and on the page, and has what is above it.
    #[test]
    fn what_is_in_the_list_is_told_everywhere() {
        let made = |analyses: &[&dyn Analysis]| {
            let mut quiet = |_| ();
            let head = ReportHead::new(&foveate_core::Labels::default(), 1, vec![7.0, 9.0], vec![3, 4], 2);
            let shown = EpisodeShown { verb: "does", ..EpisodeShown::default() };
            let meter = RefCell::new(Meter::new(StudyCost::default(), &mut quiet));
            let scheduler = &Alone;
            let bench = Bench { head, dimensions: vec![], shown, measured: vec![], scheduler, meter };
            let mut files = std::collections::BTreeMap::new();
            let report = finish(analyses, bench).expect("nothing fails").write(&mut |name, bytes| {
                files.insert(name.to_owned(), String::from_utf8_lossy(bytes).into_owned());
                Ok::<_, Infallible>(())
            });
            let Ok(report) = report;
            (report, files)
        };
        let (report, files) = made(&[&Half, &Whole]);
        let written: serde_json::Value = serde_json::from_str(&files[REPORT_FILE]).expect("JSON");
        let mut told = serde_json::to_value(&report).expect("JSON");
        told["figures"] = serde_json::json!({});
        assert_eq!(written, told);
        assert_eq!(
            (&written["half"], &written["whole"], &written["seed"]),
            (&21.5.into(), &43.0.into(), &1.into())
        );
        let terminal = report.to_string();
        assert!(terminal.contains("  A half <of it>.\n  whole 43\n"), "{terminal}");
        let page = &files["index.html"];
        for wants in [
            "<li>A half &lt;of it&gt;.</li>",
            "<details><summary><h2>The whole</h2></summary><section id=\"whole\"",
            "<td>43 <small>(42 … 44)</small></td><td><span class=\"verdict yes\">supported</span></td>",
        ] {
            assert!(page.contains(wants), "{wants}: {page}");
        }
        // The second has nothing to build on if it stands first.
        assert!(made(&[&Whole, &Half]).0.get::<OfWhole>().is_none());
    }
}

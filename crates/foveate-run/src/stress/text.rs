//! The table as Markdown and CSV.

use std::fmt::Write as _;

use super::table::{AgentColumn, Change, StressRow, StressTable};
use foveate_train::{NO_INTERVAL, decimals};

use crate::worlds;

/// The note below every table and picture with intervals and stars, which answer different questions.
pub(super) const CORRECTION: &str = "intervals are 95 % for each row alone, without correction; stars are corrected by \
                                     Holm's method over the rows of an agent, so an interval may leave out 0 where no star \
                                     stands";

/// What is said of a row that changed nothing.
pub(super) const NO_EFFECT: &str = "no effect";

/// What stands in the place of a score that there is none of.
const SKIPPED: &str = "n/a";
/// What stands there when the row ended with an error.
const FAILED: &str = "failed";

impl StressRow {
    /// What stands in the place of its score, if it has none.
    const fn missing(&self) -> Option<&'static str> {
        match (&self.skipped, self.failed) {
            (None, _) => None,
            (_, true) => Some(FAILED),
            (_, false) => Some(SKIPPED),
        }
    }
}

impl AgentColumn {
    /// The rows that the agent did not run to their end, by reason.
    fn skipped(&self) -> Vec<(&'static str, &str, Vec<&str>)> {
        let mut reasons: Vec<(&str, &str, Vec<&str>)> = vec![];
        for row in &self.rows {
            let (Some(what), Some(why)) = (row.missing(), row.skipped.as_deref()) else { continue };
            match reasons.iter_mut().find(|(known_what, known, _)| (*known_what, *known) == (what, why)) {
                Some((.., rows)) => rows.push(&row.name),
                None => reasons.push((what, why, vec![&row.name])),
            }
        }
        reasons
    }
}

impl StressTable {
    /// The table as Markdown: with several agents first side by side, then each by itself with all figures.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}, picture {}", self.env, self.picture);
        if !self.base.is_empty() {
            let _ = write!(out, ", with {}", self.base.join(", "));
        }
        let limit = self.max_steps.map(|steps| format!(", at most {steps} steps each")).unwrap_or_default();
        let _ = write!(
            out,
            "\n\n{} per row{limit}: the random stream of seed {}, so every row has the same {}s.\n",
            count(self.episodes, "episode"),
            self.seed,
            worlds::instance(&self.env)
        );
        if self.agents.len() > 1 {
            out.push_str(&self.side_by_side());
        }
        for agent in &self.agents {
            out.push_str(&self.single(agent));
        }
        out.push_str(&self.notes());
        out
    }

    /// The same tables for LaTeX with the package `booktabs`, each under a comment with its name; what their columns mean stands in the
    /// Markdown.
    pub fn latex(&self) -> String {
        let markdown = self.markdown();
        let mut out =
            String::from("% needs \\usepackage{booktabs}; what the columns mean stands in table.md\n");
        let mut grid: Vec<Vec<String>> = vec![];
        for line in markdown.lines().chain([""]) {
            if let Some(name) = line.strip_prefix("## ").or_else(|| line.strip_prefix("# ")) {
                let _ = writeln!(out, "% {name}");
            }
            if let Some(cells) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
                // A bar of a name is escaped, and so is a star.
                let cells = cells.replace("\\|", "\u{0}").replace("\\*", "*");
                grid.push(cells.split('|').map(|cell| cell.replace('\u{0}', "|")).collect());
            } else if let [head, _, rows @ ..] = &*std::mem::take(&mut grid) {
                let rows = rows.iter().map(|row| row.iter().map(|cell| &**cell));
                out += &foveate_explain::text::latex(head.iter().map(|cell| &**cell), rows);
            }
        }
        out
    }

    /// Digits behind the point of its scores and changes.
    fn digits(&self) -> usize {
        let rows = self.agents.iter().flat_map(|agent| &agent.rows).filter(|row| row.missing().is_none());
        let sizes = rows.flat_map(|row| {
            let s = &row.summary;
            s.ci95.into_iter().flatten().chain([s.mean, s.median])
        });
        decimals(sizes.fold(0.0, |most, x| most.max(x.abs())))
    }

    fn side_by_side(&self) -> String {
        let digits = self.digits();
        let mut out = String::from("\n| world |");
        let mut columns = 0;
        for agent in &self.agents {
            let published = agent.has_published();
            let _ = write!(
                out,
                " {} | change |{}",
                cell(&agent.name),
                if published { " published |" } else { "" }
            );
            columns += 2 + usize::from(published);
        }
        out.push_str("\n|---|");
        out.push_str(&"---:|".repeat(columns));
        out.push('\n');
        for (i, first) in self.agents[0].rows.iter().enumerate() {
            let _ = write!(out, "| {} |", cell(&first.name));
            for agent in &self.agents {
                let row = &agent.rows[i];
                let change = row.change.as_ref().map_or("–".into(), |c| {
                    if row.no_effect {
                        NO_EFFECT.into()
                    } else {
                        format!("{}{}", signed(c.difference, digits), star(c))
                    }
                });
                let score = match row.missing() {
                    Some(what) => what.to_owned(),
                    None => spread(row.summary.mean, row.summary.std, row.solved, digits),
                };
                let _ = write!(out, " {score} | {change} |");
                if agent.has_published() {
                    let _ = write!(out, " {} |", published_cell(row));
                }
            }
            out.push('\n');
        }
        out
    }

    fn single(&self, agent: &AgentColumn) -> String {
        let digits = self.digits();
        let published = agent.has_published();
        let mut out = format!("\n## {}\n\n", agent.name);
        out.push_str(
            "| world | mean ± std | 95 % interval | median | change | 95 % interval | p | p, Holm | solved |",
        );
        out.push_str(if published { " published |\n" } else { "\n" });
        out.push_str("|---|---:|---:|---:|---:|---:|---:|---:|---|");
        out.push_str(if published { "---:|\n" } else { "\n" });
        for row in &agent.rows {
            let s = &row.summary;
            if let Some(what) = row.missing() {
                let _ = write!(out, "| {} | {what} | – | – | – | – | – | – | – |", cell(&row.name));
                out.push_str(if published { " – |\n" } else { "\n" });
                continue;
            }
            let _ = write!(
                out,
                "| {} | {} | {} | {} | ",
                cell(&row.name),
                spread(s.mean, s.std, None, digits),
                interval(s.ci95, digits),
                number(s.median, digits)
            );
            match &row.change {
                Some(_) if row.no_effect => {
                    let _ = write!(out, "{NO_EFFECT} | – | – | – |");
                }
                Some(c) => {
                    let _ = write!(
                        out,
                        "{}{} | {} | {} | {} |",
                        signed(c.difference, digits),
                        star(c),
                        interval(c.ci95, digits),
                        p_value(c.p),
                        p_value(c.p_holm)
                    );
                }
                None => out.push_str("– | – | – | – |"),
            }
            let solved = row.solved.map_or("–", |solved| if solved { "yes" } else { "no" });
            let _ = write!(out, " {solved} |");
            out.push_str(&if published { format!(" {} |\n", published_cell(row)) } else { "\n".into() });
        }
        for (what, why, rows) in agent.skipped() {
            let _ = write!(out, "\n{what}: {}: {why}.\n", rows.join(", "));
        }
        out
    }

    fn any_row(&self, is: impl Fn(&StressRow) -> bool) -> bool {
        self.agents.iter().flat_map(|agent| &agent.rows).any(is)
    }

    fn notes(&self) -> String {
        let mut out = format!(
            "\n± is the standard deviation over episodes; intervals are bootstraps of the mean. Change: mean difference \
             to the unmodified world on the same {}s; p: paired sign-flip test, two-sided; p, Holm: corrected by Holm's \
             method over the rows of an agent; \\*: below 0.05 after the correction. Note that {CORRECTION}.",
            worlds::instance(&self.env)
        );
        if self.any_row(|row| row.no_effect) {
            let _ = write!(
                out,
                " {NO_EFFECT}: every episode has the return, the length and the end that it has in the unmodified world.",
            );
        }
        if self.frames > 1 && self.any_row(|row| row.kind == "shift" && row.name.contains("shuffle")) {
            let _ = write!(
                out,
                " A shuffle moves the patches of all {} frames of an observation alike, the earlier ones too, so what an agent \
                 compares between frames stays in one place.",
                self.frames
            );
        }
        if self.episodes == 1 {
            out.push_str(" One episode has no interval and no standard deviation, and its p is always 1.");
        }
        if let Some(at) = self.solved_at {
            let _ = write!(out, " Solved: a mean of at least {at}");
            out.push_str(if self.agents.len() > 1 { ", in bold." } else { "." });
        }
        if let Some(source) = &self.published_source {
            let _ = write!(out, " Published: {source}.");
        }
        let _ = writeln!(out, "\n\nDigest of all returns and lengths: `{}`", self.digest);
        out
    }

    /// The table as CSV, one line for each agent and row.
    pub fn csv(&self) -> String {
        let mut out = String::from(
            "agent,world,picture,row,kind,curve,severity,episodes,mean,std,ci95_low,ci95_high,median,q25,q75,change,\
             change_low,change_high,p,p_holm,solved,published_mean,published_std,no_effect\n",
        );
        for (agent, row) in
            self.agents.iter().flat_map(|agent| agent.rows.iter().map(move |row| (agent, row)))
        {
            let s = &row.summary;
            let optional = |x: Option<f64>| x.map(|x| x.to_string()).unwrap_or_default();
            let change = |pick: fn(&Change) -> f64| optional(row.change.as_ref().map(pick));
            let change_end = |end: usize| optional(row.change.and_then(|c| Some(c.ci95?[end])));
            let summary = |x: f64| optional(row.skipped.is_none().then_some(x));
            let fields = [
                quoted(&agent.name),
                quoted(&self.env),
                quoted(&self.picture),
                quoted(&row.name),
                row.kind.clone(),
                quoted(row.curve.as_deref().unwrap_or_default()),
                optional(row.severity),
                s.n.to_string(),
                summary(s.mean),
                optional(s.std),
                optional(s.ci95.map(|ci95| ci95[0])),
                optional(s.ci95.map(|ci95| ci95[1])),
                summary(s.median),
                summary(s.q25),
                summary(s.q75),
                change(|c| c.difference),
                change_end(0),
                change_end(1),
                change(|c| c.p),
                change(|c| c.p_holm),
                row.solved.map(|solved| solved.to_string()).unwrap_or_default(),
                optional(row.published.map(|p| p.mean)),
                optional(row.published.map(|p| p.std)),
                if row.skipped.is_some() { String::new() } else { row.no_effect.to_string() },
            ];
            out.push_str(&fields.join(","));
            out.push('\n');
        }
        out
    }
}

fn published_cell(row: &StressRow) -> String {
    row.published.map_or("–".into(), |p| format!("{} ± {}", whole(p.mean), whole(p.std)))
}

/// A number with a typographic minus sign.
fn number(x: f64, digits: usize) -> String {
    format!("{x:.digits$}").replace('-', "−")
}

fn whole(x: f64) -> String {
    format!("{x:.0}").replace('-', "−")
}

fn signed(x: f64, digits: usize) -> String {
    format!("{x:+.digits$}").replace('-', "−")
}

fn spread(mean: f64, std: Option<f64>, solved: Option<bool>, digits: usize) -> String {
    let bold = if solved == Some(true) { "**" } else { "" };
    let std = std.map(|std| format!(" ± {}", number(std, digits))).unwrap_or_default();
    format!("{bold}{}{std}{bold}", number(mean, digits))
}

fn interval(ci95: Option<[f64; 2]>, digits: usize) -> String {
    ci95.map_or_else(
        || NO_INTERVAL.to_owned(),
        |[from, to]| format!("{} … {}", number(from, digits), number(to, digits)),
    )
}

/// `1 episode`, `2 episodes`.
pub(super) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

fn star(change: &Change) -> &'static str {
    if change.is_significant() { " \\*" } else { "" }
}

/// A name with the characters escaped that would break a table.
fn cell(name: &str) -> String {
    name.replace('|', "\\|").replace(['\n', '\r'], " ")
}

/// A field of CSV, quoted so that it breaks no line (RFC 4180) and no spreadsheet reads it as a formula.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

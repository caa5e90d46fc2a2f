//! Tables and numbers of documents, written from the measurements of the repository.
//!
//! `<!-- result PAPER/ITEM -->` … `<!-- /result -->` holds the table of an experiment, `<!-- result PAPER/ITEM ROW -->` … the
//! measured number of a row, within a line.

use foveate_registry::EXPERIMENTS;

use super::measured::Judged;
use crate::error::RunError;

const OPENS: &str = "<!-- result ";
const CLOSES: &str = "<!-- /result -->";

/// `text` with everything between markers written anew.
///
/// # Errors
/// When a marker is not closed, or names no experiment or row.
pub fn written(text: &str) -> Result<String, RunError> {
    let bad = |why: String| RunError::BadRequest { why };
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(OPENS) {
        let (before, marked) = rest.split_at(at);
        let open = marked.find("-->").map(|end| end + "-->".len());
        let open = open.ok_or_else(|| bad("a marker of a result does not end; write -->".into()))?;
        let name = marked[OPENS.len()..open - "-->".len()].trim();
        let close = marked[open..].find(CLOSES).map(|end| open + end);
        let close =
            close.ok_or_else(|| bad(format!("the result {name} is not closed; write {CLOSES} behind it")))?;
        let (id, row) = name.split_once(' ').map_or((name, None), |(id, row)| (id, Some(row.trim())));
        let file = EXPERIMENTS.find(id).map_err(|error| bad(error.to_string()))?;
        let judged = Judged::stored(file)?;
        if !judged.has_run() {
            return Err(bad(format!(
                "{id} has no measurements; name it with `result` in the list of experiments"
            )));
        }
        let content = match row {
            None => format!("\n{}", judged.markdown()),
            Some(row) => judged
                .row(row)
                .map(|row| judged.ours_text(row))
                .ok_or_else(|| bad(format!("{id} has no row {row:?}")))?,
        };
        out.push_str(before);
        out.push_str(&marked[..open]);
        out.push_str(&content);
        out.push_str(CLOSES);
        rest = &marked[close + CLOSES.len()..];
    }
    out.push_str(rest);
    Ok(out)
}

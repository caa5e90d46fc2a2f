//! Tables and numbers of documents, written from the measurements of the repository.
//!
//! `<!-- result PAPER/ITEM -->` … `<!-- /result -->` holds the table of an experiment, `<!-- result PAPER/ITEM ROW -->` … the
//! measured number of a row, within a line. `<!-- result table NAME -->` … holds the table of `results/NAME.json`, which has
//! `columns` and `rows`.

use foveate_registry::EXPERIMENTS;

use super::measured::Judged;
use crate::error::RunError;

const OPENS: &str = "<!-- result ";
const CLOSES: &str = "<!-- /result -->";

/// `text` with everything between markers written anew; `stored` gives the text of `results/NAME.json` by the name.
///
/// # Errors
/// When a marker is not closed, or names no experiment, row or table.
pub fn written(text: &str, stored: &dyn Fn(&str) -> Option<String>) -> Result<String, RunError> {
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
        let whole = [before, &marked[..open]];
        rest = &marked[close + CLOSES.len()..];
        if let ("table", Some(name)) = (id, row) {
            let table = stored(name).ok_or_else(|| bad(format!("there is no results/{name}.json")))?;
            let table = table_of(&table).ok_or_else(|| {
                bad(format!("results/{name}.json has no columns and rows of as many texts"))
            })?;
            push(&mut out, whole, &table);
            continue;
        }
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
        push(&mut out, whole, &content);
    }
    out.push_str(rest);
    Ok(out)
}

fn push(out: &mut String, [before, opens]: [&str; 2], content: &str) {
    for text in [before, opens, content, CLOSES] {
        out.push_str(text);
    }
}

/// A table of a file with `columns` and `rows`.
fn table_of(file: &str) -> Option<String> {
    let file: serde_json::Value = serde_json::from_str(file).ok()?;
    let texts = |of: &serde_json::Value| -> Option<Vec<String>> {
        of.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let columns = texts(file.get("columns")?)?;
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut table = format!("\n{}|{}\n", line(&columns), "---|".repeat(columns.len()));
    for row in file.get("rows")?.as_array()? {
        let row = texts(row).filter(|row| row.len() == columns.len())?;
        table += &line(&row);
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_files() {
        let stored = |name: &str| {
            (name == "a/b").then(|| r#"{"columns": ["x", "y"], "rows": [["1", "2"]]}"#.to_owned())
        };
        let text = "before\n<!-- result table a/b -->\nold\n<!-- /result -->\nafter";
        let expect =
            "before\n<!-- result table a/b -->\n| x | y |\n|---|---|\n| 1 | 2 |\n<!-- /result -->\nafter";
        assert_eq!(written(text, &stored).expect("it is there"), expect);
        let error = written(&text.replace("a/b", "none"), &stored).expect_err("it is not");
        assert_eq!(error.to_string(), "there is no results/none.json");
        let odd = |_: &str| Some(r#"{"columns": ["x"], "rows": [["1", "2"]]}"#.to_owned());
        assert!(written(text, &odd).is_err());
    }
}

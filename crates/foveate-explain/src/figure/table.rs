//! The numbers behind a figure.

use std::fmt::Write;

use serde_json::{Map, Value, json};

/// A number or a word.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A number.
    Number(f64),
    /// A count.
    Count(u64),
    /// A word.
    Word(String),
    /// There is no such number: nothing in CSV, `null` in JSON.
    Nothing,
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Cell::Number(value)
    }
}

impl From<Option<f64>> for Cell {
    fn from(value: Option<f64>) -> Self {
        value.map_or(Cell::Nothing, Cell::Number)
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Count(value as u64)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Word(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Word(value)
    }
}

/// Named columns and rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataTable {
    /// Names of the columns.
    pub columns: Vec<&'static str>,
    /// As many cells per row as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

impl DataTable {
    /// No rows yet.
    pub fn new(columns: &[&'static str]) -> Self {
        DataTable { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it has not a cell for every column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let cells: Vec<Cell> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows.push(cells);
    }

    /// Comma-separated values with a head line; numbers so that they are read back to the bit.
    pub fn csv(&self) -> String {
        let mut out = self.columns.join(",") + "\n";
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                let comma = if i == 0 { "" } else { "," };
                match cell {
                    Cell::Number(value) => write!(out, "{comma}{value}"),
                    Cell::Count(value) => write!(out, "{comma}{value}"),
                    Cell::Word(word) => write!(out, "{comma}{}", quoted(word)),
                    Cell::Nothing => write!(out, "{comma}"),
                }
                .expect("a String takes everything");
            }
            out.push('\n');
        }
        out
    }

    /// A list of objects.
    pub fn json(&self) -> Value {
        let object = |row: &Vec<Cell>| {
            let cells = self.columns.iter().zip(row).map(|(name, cell)| {
                let value = match cell {
                    Cell::Number(value) => json!(value),
                    Cell::Count(value) => json!(value),
                    Cell::Word(word) => json!(word),
                    Cell::Nothing => Value::Null,
                };
                ((*name).to_owned(), value)
            });
            Value::Object(cells.collect::<Map<_, _>>())
        };
        Value::Array(self.rows.iter().map(object).collect())
    }
}

/// A word as it may stand between commas.
fn quoted(word: &str) -> String {
    if word.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", word.replace('"', "\"\""))
    } else {
        word.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_and_json_say_the_same() {
        let mut table = DataTable::new(&["what", "n", "mean"]);
        table.row(["a, \"b\"".into(), 3_usize.into(), 0.1.into()]);
        table.row(["c".into(), 4_usize.into(), (-1.0 / 3.0).into()]);
        table.row(["d".into(), 1_usize.into(), None.into()]);
        assert_eq!(table.csv(), "what,n,mean\n\"a, \"\"b\"\"\",3,0.1\nc,4,-0.3333333333333333\nd,1,\n");
        assert_eq!(table.json()[2]["mean"], Value::Null);
        assert_eq!(table.json()[0], json!({"what": "a, \"b\"", "n": 3, "mean": 0.1}));
        assert_eq!(table.json()[1]["mean"], json!(-1.0 / 3.0));
    }
}

//! Tables as aligned plain text, fit for a terminal and for a code block in a document.

use std::fmt;

/// A column: text is flush left, numbers are flush right.
#[derive(Clone, Copy)]
pub(crate) enum Column {
    /// Flush left.
    Text(&'static str),
    /// Flush right.
    Number(&'static str),
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Column::Text(head) | Column::Number(head) => head,
        }
    }
}

/// Rows of cells under a title.
pub(crate) struct Table {
    title: String,
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub(crate) fn new(title: impl Into<String>, columns: &[Column]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing stay empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(self.columns[column].head().chars().count())
    }

    fn line<'a>(&self, cell: impl Fn(usize) -> &'a str) -> String {
        let mut line = String::new();
        for (index, column) in self.columns.iter().enumerate() {
            let width = self.width(index);
            line.push_str(if index == 0 { "" } else { "  " });
            line.push_str(&match column {
                Column::Text(_) => format!("{:<width$}", cell(index)),
                Column::Number(_) => format!("{:>width$}", cell(index)),
            });
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.title)?;
        let head = self.line(|index| self.columns[index].head());
        let width = (0..self.columns.len()).map(|index| self.width(index) + 2).sum::<usize>() - 2;
        writeln!(f, "{head}\n{}", "-".repeat(width))?;
        for row in &self.rows {
            writeln!(f, "{}", self.line(|index| row.get(index).map_or("", String::as_str)))?;
        }
        Ok(())
    }
}

/// A whole number with its thousands set apart.
pub(crate) fn grouped(number: impl Into<u128>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with about three significant digits.
pub(crate) fn short(number: f64) -> String {
    match number {
        number if !number.is_finite() => "-".to_string(),
        number if number >= 1000.0 => grouped(number.round() as u128),
        number if number >= 100.0 => format!("{number:.0}"),
        number if number >= 10.0 => format!("{number:.1}"),
        number if number >= 0.1 => format!("{number:.2}"),
        number => format!("{number:.4}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new("Title", &[Column::Text("name"), Column::Number("n")]);
        table.row(["a".to_string(), grouped(1_234_567u64)]);
        table.row(["longer".to_string(), short(12.345)]);
        let expected =
            "Title\n\nname            n\n-----------------\na       1,234,567\nlonger       12.3\n";
        assert_eq!(table.to_string(), expected);
    }
}

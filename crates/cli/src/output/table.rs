//! Columns that stand one under the other.

use super::{Paint, Tone};

/// Between two columns.
const GAP: &str = "   ";

/// One place of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Cell { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell::new(text, Tone::Plain)
    }
}

/// Rows under headings. A column that is empty in every row is left out.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(headings: impl IntoIterator<Item = &'static str>) -> Self {
        Table { headings: headings.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each heading.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// As text, a line for each row.
    pub(crate) fn render(&self, paint: Paint) -> String {
        let text = |row: &[Cell], column: usize| row.get(column).map_or(0, |cell| cell.text.chars().count());
        let widths: Vec<usize> = (0..self.headings.len())
            .map(|column| self.rows.iter().map(|row| text(row, column)).max().unwrap_or_default())
            .collect();
        let shown: Vec<usize> = (0..widths.len()).filter(|column| widths[*column] > 0).collect();
        let headings: Vec<Cell> =
            self.headings.iter().map(|heading| Cell::new(*heading, Tone::Quiet)).collect();
        let mut lines = String::new();
        for row in std::iter::once(&headings).chain(&self.rows) {
            let mut line = String::new();
            let mut owed = 0;
            for column in &shown {
                let Some(cell) = row.get(*column) else { continue };
                if !cell.text.is_empty() {
                    line.push_str(&" ".repeat(owed));
                    owed = 0;
                    line.push_str(&paint.paint(cell.tone, &cell.text));
                }
                let width = widths[*column].max(self.headings[*column].chars().count());
                owed += width - cell.text.chars().count() + GAP.len();
            }
            lines.push_str(&line);
            lines.push('\n');
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn columns_are_aligned_and_no_line_ends_with_spaces() {
        let mut table = Table::new(["NAME", "READY", "WHY", "AGE"]);
        table.row(["└─ shop".into(), Cell::new("no", Tone::Bad), Cell::default(), "5m".into()]);
        table.row(["a".into(), "yes".into(), Cell::default(), Cell::default()]);
        expect![[r#"
            NAME      READY   AGE
            └─ shop   no      5m
            a         yes
        "#]]
        .assert_eq(&table.render(Paint::NONE));
    }
}

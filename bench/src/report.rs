//! The numbers as a table.

use std::fmt::Write as _;

/// What the issue that asked for the server aims at.
#[derive(Clone, Copy)]
pub(crate) enum Aim {
    /// At least so many times the real one.
    Times(f64),
    /// Below so much, in the row's unit.
    Below(f64),
    /// So much and no more, in the row's unit.
    AtMost(f64),
    /// Nothing in particular.
    None,
}

/// Which direction is good.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Better {
    More,
    Less,
}

/// One measurement of both.
pub(crate) struct Row {
    pub what: String,
    pub unit: &'static str,
    pub real: Option<f64>,
    pub ours: f64,
    pub better: Better,
    pub aim: Aim,
}

impl Row {
    /// How many times better ours is.
    fn ratio(&self) -> Option<f64> {
        let real = self.real.filter(|real| *real > 0.0)?;
        Some(if self.better == Better::More { self.ours / real } else { real / self.ours.max(1e-9) })
    }

    fn aim(&self) -> (String, &'static str) {
        let verdict = |holds| if holds { "yes" } else { "NO" };
        match self.aim {
            Aim::Times(wanted) => {
                (format!("≥ {wanted}×"), self.ratio().map_or("", |ratio| verdict(ratio >= wanted)))
            }
            Aim::Below(limit) => (format!("< {limit} {}", self.unit), verdict(self.ours < limit)),
            Aim::AtMost(limit) => (format!("≤ {limit} {}", self.unit), verdict(self.ours <= limit)),
            Aim::None => (String::new(), ""),
        }
    }
}

/// A table in Markdown, which is also readable as it is.
pub(crate) fn render(rows: &[Row]) -> String {
    let header = ["", "unit", "real", "ours", "better by", "aim", "holds"].map(str::to_owned);
    let mut lines = vec![header];
    for row in rows {
        let (aim, holds) = row.aim();
        lines.push([
            row.what.clone(),
            row.unit.to_owned(),
            row.real.map_or("–".to_owned(), number),
            number(row.ours),
            row.ratio().map_or(String::new(), |ratio| format!("{}×", number(ratio))),
            aim,
            holds.to_owned(),
        ]);
    }
    render_lines(&lines)
}

/// The lines of a table, the header first. Its third to fifth columns are numbers.
pub(crate) fn render_lines(lines: &[[String; 7]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(width).collect();
    let mut out = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, cell) in line.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            // Numbers stand under each other at their ends.
            let (before, after) =
                if (2..5).contains(&column) { (pad, String::new()) } else { (String::new(), pad) };
            let _ = write!(out, "| {before}{cell}{after} ");
        }
        out.push_str("|\n");
        if index == 0 {
            for (column, width) in widths.iter().enumerate() {
                let right = if (2..5).contains(&column) { ":" } else { "-" };
                let _ = write!(out, "|{}{right}", "-".repeat(width + 1));
            }
            out.push_str("|\n");
        }
    }
    out
}

/// Three digits that count.
pub(crate) fn number(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_is_better_where_a_row_says_so() {
        let row =
            |better, aim| Row { what: "x".into(), unit: "ms", real: Some(10.0), ours: 2.0, better, aim };
        assert_eq!(row(Better::Less, Aim::Times(5.0)).aim().1, "yes");
        assert_eq!(row(Better::More, Aim::Times(1.0)).aim().1, "NO");
        assert_eq!(row(Better::Less, Aim::Below(2.0)).aim().1, "NO");
        assert_eq!(row(Better::Less, Aim::AtMost(2.0)).aim().1, "yes");
        assert_eq!(row(Better::Less, Aim::AtMost(1.9)).aim().1, "NO");
    }
}

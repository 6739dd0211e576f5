//! Objects as the real server prints its own types in refusals.
//!
//! Fields stand in the order of the type rather than of their names, so these are not JSON trees of the usual
//! kind; what they print is JSON all the same.

use super::unified_diff::unified_diff;
use crate::gotext::{go_json, write_json_text};
use serde_json::Value;

/// A printed value: text, or something with lines of its own.
pub(crate) enum Printed {
    /// A scalar, as it is printed.
    Text(String),
    Object(Vec<(String, Printed)>),
    List(Vec<Printed>),
}

impl Printed {
    pub(crate) fn null() -> Self {
        Printed::Text("null".to_owned())
    }

    /// A value whose fields are printed in the order of their names.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Object(map) => {
                Printed::Object(map.iter().map(|(name, value)| (name.clone(), Self::of(value))).collect())
            }
            Value::Array(items) => Printed::List(items.iter().map(Self::of).collect()),
            scalar => Printed::Text(go_json(scalar)),
        }
    }

    /// On one line.
    pub(crate) fn on_one_line(&self) -> String {
        let mut out = String::new();
        self.write(Layout::OneLine, &mut out);
        out
    }

    /// What differs between two values, line by line.
    pub(crate) fn diff(old: &Printed, new: &Printed) -> String {
        let lines = |printed: &Printed| {
            let mut out = String::new();
            printed.write(Layout::Indented(0), &mut out);
            out
        };
        unified_diff(&lines(old), &lines(new))
    }

    fn write(&self, layout: Layout, out: &mut String) {
        match self {
            Printed::Text(text) => out.push_str(text),
            Printed::Object(fields) => layout.write('{', fields, '}', out, |(name, value), inner, out| {
                write_json_text(name, out);
                out.push_str(inner.colon());
                value.write(inner, out);
            }),
            Printed::List(items) => {
                layout.write('[', items, ']', out, Printed::write);
            }
        }
    }
}

/// Where lines end, and how far in they begin.
#[derive(Clone, Copy)]
enum Layout {
    OneLine,
    Indented(usize),
}

impl Layout {
    const fn colon(self) -> &'static str {
        match self {
            Layout::OneLine => ":",
            Layout::Indented(_) => ": ",
        }
    }

    fn begin_line(self, out: &mut String) {
        if let Layout::Indented(depth) = self {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        }
    }

    fn write<T>(
        self,
        open: char,
        parts: &[T],
        close: char,
        out: &mut String,
        write: impl Fn(&T, Layout, &mut String),
    ) {
        let inner = match self {
            Layout::OneLine => self,
            Layout::Indented(depth) => Layout::Indented(depth + 1),
        };
        out.push(open);
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            inner.begin_line(out);
            write(part, inner, out);
        }
        if !parts.is_empty() {
            self.begin_line(out);
        }
        out.push(close);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_on_one_line_or_one_line_each() {
        let printed = Printed::Object(vec![
            ("Z".to_owned(), Printed::of(&json!(["<"]))),
            ("A".to_owned(), Printed::null()),
            ("E".to_owned(), Printed::of(&json!({}))),
        ]);
        assert_eq!(printed.on_one_line(), r#"{"Z":["\u003c"],"A":null,"E":{}}"#);
        let mut lines = String::new();
        printed.write(Layout::Indented(0), &mut lines);
        assert_eq!(lines, "{\n \"Z\": [\n  \"\\u003c\"\n ],\n \"A\": null,\n \"E\": {}\n}");
    }
}

//! Reading a path.

use super::{Comparison, Node, Slice};
use serde_json::Value;

/// Nested filters and unions are parsed by recursion; text deeper than this is refused.
const DEPTH_MAX: usize = 32;

pub(super) fn parse(text: &str) -> Result<Vec<Node>, String> {
    Parser { text, at: 0, depth: 0 }.action()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

fn is_terminator(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn inner(&self, text: &str) -> Result<Vec<Node>, String> {
        if self.depth == DEPTH_MAX {
            return Err("path is nested too deeply".to_owned());
        }
        Parser { text, at: 0, depth: self.depth + 1 }.action()
    }

    /// Reads to the end of the text, or to a closing brace.
    fn action(mut self) -> Result<Vec<Node>, String> {
        let mut nodes = Vec::new();
        loop {
            if self.rest().starts_with("[?(") {
                self.at += 3;
                nodes.push(self.filter()?);
                continue;
            }
            if self.rest().starts_with("..") {
                if matches!(nodes.last(), Some(Node::Recursive)) {
                    return Err("invalid multiple recursive descent".to_owned());
                }
                self.at += 2;
                nodes.push(Node::Recursive);
                if self.rest().starts_with(|c: char| c == '_' || c.is_alphanumeric()) {
                    nodes.push(self.field());
                }
                continue;
            }
            let start = self.at;
            match self.next() {
                None | Some('}') => return Ok(nodes),
                Some('\r' | '\n') => return Err("unclosed action".to_owned()),
                Some(' ' | '@' | '$') => {}
                Some('[') => self.array(&mut nodes)?,
                Some(quote @ ('"' | '\'')) => nodes.push(self.quoted(quote)?),
                Some('.') => nodes.push(self.field()),
                Some(c) if c == '+' || c == '-' || c.is_numeric() => nodes.push(self.number(start)?),
                Some(c) if c == '_' || c.is_alphanumeric() => nodes.push(self.word(start)),
                Some(c) => {
                    let code = u32::from(c);
                    return Err(format!("unrecognized character in action: U+{code:04X} '{c}'"));
                }
            }
        }
    }

    fn field(&mut self) -> Node {
        let start = self.at;
        while let Some(c) = self.rest().chars().next() {
            if c == '\\' {
                self.at += 1;
                self.next();
            } else if is_terminator(c) {
                break;
            } else {
                self.at += c.len_utf8();
            }
        }
        match &self.text[start..self.at] {
            "*" => Node::Wildcard,
            name => Node::Field(name.replace('\\', "")),
        }
    }

    fn word(&mut self, start: usize) -> Node {
        let length = self.text[start..].find(is_terminator).unwrap_or(self.text.len() - start);
        self.at = start + length;
        match &self.text[start..self.at] {
            "true" => Node::Literal(Value::Bool(true)),
            "false" => Node::Literal(Value::Bool(false)),
            _ => Node::Word,
        }
    }

    fn number(&mut self, start: usize) -> Result<Node, String> {
        let digits = self.rest();
        let length = digits.find(|c: char| c != '.' && !c.is_numeric()).unwrap_or(digits.len());
        self.at += length;
        let text = &self.text[start..self.at];
        if let Ok(integer) = text.parse::<i64>() {
            return Ok(Node::Literal(integer.into()));
        }
        match text.parse::<f64>() {
            Ok(float) => Ok(Node::Literal(float.into())),
            Err(_) => Err(format!("cannot parse number {text}")),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Node, String> {
        let mut value = String::new();
        loop {
            match self.next() {
                None | Some('\n') => return Err("unterminated quoted string".to_owned()),
                Some('\\') => match self.next() {
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('r') => value.push('\r'),
                    Some(c) if c == quote || c == '\\' => value.push(c),
                    _ => return Err(format!("unquote string {} error invalid syntax", self.text)),
                },
                Some(c) if c == quote => return Ok(Node::Literal(Value::String(value))),
                Some(c) => value.push(c),
            }
        }
    }

    fn array(&mut self, nodes: &mut Vec<Node>) -> Result<(), String> {
        let rest = self.rest();
        let length = match rest.find([']', '\n']) {
            Some(length) if rest[length..].starts_with(']') => length,
            _ => return Err("unterminated array".to_owned()),
        };
        self.at += length + 1;
        let text = &rest[..length];
        if text.contains(',') {
            let branches = text.split(',').map(|part| self.inner(&format!("[{}]", part.trim_matches(' '))));
            nodes.push(Node::Union(branches.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let quoted = text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).filter(|t| !t.contains('\''));
        match quoted {
            // A quoted key is read as a field path: its dots separate unless escaped.
            Some(key) => nodes.extend(self.inner(&format!(".{key}"))?),
            None => nodes.push(Node::Slice(slice(text)?)),
        }
        Ok(())
    }

    fn filter(&mut self) -> Result<Node, String> {
        let start = self.at;
        let (mut begin, mut end) = (None, false);
        let mut before = '(';
        loop {
            let c = self.next().filter(|c| *c != '\n').ok_or("unterminated filter")?;
            match c {
                '"' | '\'' if begin.is_none() => begin = Some(c),
                '"' | '\'' if before != '\\' && begin == Some(c) => end = true,
                ')' if begin.is_some() == end => break,
                _ => {}
            }
            before = c;
        }
        let text = &self.text[start..self.at - 1];
        if self.next() != Some(']') {
            return Err("unclosed array expect ]".to_owned());
        }
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let Some(split) = text.find(is_operator).filter(|at| *at > 0) else {
            return Ok(Node::Exists(self.inner(text)?));
        };
        let (left, tail) = text.split_at(split);
        let right = tail.trim_start_matches(is_operator);
        let operator = &tail[..tail.len() - right.len()];
        if right.is_empty() && operator.len() == 1 {
            return Ok(Node::Exists(self.inner(text)?));
        }
        let by = match operator {
            "==" => Some(Comparison::Equal),
            "!=" => Some(Comparison::NotEqual),
            "<" => Some(Comparison::Less),
            "<=" => Some(Comparison::LessOrEqual),
            ">" => Some(Comparison::Greater),
            ">=" => Some(Comparison::GreaterOrEqual),
            _ => None,
        };
        Ok(Node::Compare { left: self.inner(left)?, by, right: self.inner(right)? })
    }
}

fn slice(text: &str) -> Result<Slice, String> {
    let text = if text == "*" { ":" } else { text };
    let bad = || format!("invalid array index {text}");
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() > 3 {
        return Err(bad());
    }
    let mut numbers = [None; 3];
    for (number, part) in numbers.iter_mut().zip(&parts) {
        let digits = part.strip_prefix('-').unwrap_or(part);
        if !digits.chars().all(|c| c.is_ascii_digit()) {
            return Err(bad());
        }
        if !part.is_empty() {
            *number = Some(part.parse().map_err(|_| format!("array index {part} is not a number"))?);
        }
    }
    let [start, end, step] = numbers;
    if parts.len() > 1 {
        return Ok(Slice { start, end, single: false, step });
    }
    Ok(Slice { start, end: Some(start.unwrap_or(0).saturating_add(1)), single: true, step })
}

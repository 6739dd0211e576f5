//! Makes expressions from `grammar.txt`.

use std::collections::BTreeMap;

use fastrand::Rng;

/// Expressions nest at most this deeply.
const DEPTH_MAX: u32 = 4;
/// Of this many placeholders, one gets an expression of another type.
const ILL_TYPED: u32 = 50;
/// Of this many expressions, one is damaged as text.
const DAMAGED: u32 = 20;

/// One way to write an expression.
struct Form {
    parts: Vec<Part>,
    is_leaf: bool,
}

enum Part {
    Text(String),
    /// An expression of this type.
    Hole(String),
    /// A new variable of this type.
    Variable(String),
}

/// All ways to write expressions, by type.
pub(super) struct Grammar(BTreeMap<String, Vec<Form>>);

impl Grammar {
    pub(super) fn read(text: &str) -> Self {
        let mut forms: BTreeMap<String, Vec<Form>> = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (kind, form) = line.split_once(' ').unwrap_or_else(|| panic!("no form in {line:?}"));
            forms.entry(kind.to_owned()).or_default().push(Form::read(form.trim_start()));
        }
        for form in forms.values().flatten() {
            for part in &form.parts {
                let (Part::Hole(kind) | Part::Variable(kind)) = part else { continue };
                assert!(forms.contains_key(kind), "the type {kind} has no form");
            }
        }
        Grammar(forms)
    }

    /// An expression. The same numbers make the same one.
    pub(super) fn expression(&self, rng: &mut Rng) -> String {
        let depth = rng.u32(1..=DEPTH_MAX);
        // Rules are boolean, so every other expression is.
        let kind = if rng.bool() { "bool".to_owned() } else { self.any_type(rng) };
        let mut writer = Writer { grammar: self, rng, scope: Vec::new(), names: 0, text: String::new() };
        writer.write(&kind, depth);
        let text = writer.text;
        if rng.u32(0..DAMAGED) == 0 { damage(&text, rng) } else { text }
    }

    fn any_type(&self, rng: &mut Rng) -> String {
        let index = rng.usize(0..self.0.len());
        self.0.keys().nth(index).cloned().unwrap_or_default()
    }
}

impl Form {
    fn read(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        let mut plain = String::new();
        while let Some(character) = rest.chars().next() {
            let after = &rest[character.len_utf8()..];
            let length = after.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(after.len());
            let (word, behind) = after.split_at(length);
            let part = match character {
                '<' if length > 0 && behind.starts_with('>') => {
                    Some((Part::Hole(word.to_owned()), &behind[1..]))
                }
                '$' if length > 0 => Some((Part::Variable(word.to_owned()), behind)),
                _ => None,
            };
            if let Some((part, behind)) = part {
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(part);
                rest = behind;
            } else {
                plain.push(character);
                rest = after;
            }
        }
        parts.push(Part::Text(plain));
        let is_leaf = parts.iter().all(|part| matches!(part, Part::Text(_)));
        Form { parts, is_leaf }
    }
}

struct Writer<'a> {
    grammar: &'a Grammar,
    rng: &'a mut Rng,
    /// Variables that can be used here, with their types.
    scope: Vec<(String, String)>,
    names: usize,
    text: String,
}

impl Writer<'_> {
    fn write(&mut self, kind: &str, depth: u32) {
        let variables: Vec<&String> =
            self.scope.iter().filter(|(_, of)| of == kind).map(|(name, _)| name).collect();
        if !variables.is_empty() && self.rng.u32(0..3) == 0 {
            let index = self.rng.usize(0..variables.len());
            self.text.push_str(variables[index]);
            return;
        }
        let forms: Vec<&Form> =
            self.grammar.0[kind].iter().filter(|form| depth > 0 || form.is_leaf).collect();
        let form = forms[self.rng.usize(0..forms.len())];
        let variables = self.scope.len();
        for part in &form.parts {
            match part {
                Part::Text(text) => self.text.push_str(text),
                Part::Variable(kind) => {
                    self.names += 1;
                    // Few names, so that one hides another at times.
                    let name = format!("v{}", self.names % 4);
                    self.text.push_str(&name);
                    self.scope.push((name, kind.clone()));
                }
                Part::Hole(kind) => self.fill(kind, depth.saturating_sub(1)),
            }
        }
        self.scope.truncate(variables);
    }

    fn fill(&mut self, kind: &str, depth: u32) {
        let kind = match self.rng.u32(0..ILL_TYPED) {
            0 => self.grammar.any_type(self.rng),
            _ => kind.to_owned(),
        };
        // Without parentheses, precedence decides what the text means.
        let bare = self.rng.u32(0..4) == 0;
        let start = self.text.len();
        self.write(&kind, depth);
        if !bare && needs_parentheses(&self.text[start..]) {
            self.text.insert(start, '(');
            self.text.push(')');
        }
    }
}

/// Whether an operator could bind this text otherwise than as a whole.
fn needs_parentheses(text: &str) -> bool {
    text.starts_with(['-', '!']) || text.contains(' ')
}

/// Drops, doubles or replaces a character.
fn damage(text: &str, rng: &mut Rng) -> String {
    const NOISE: [char; 16] =
        ['(', ')', '[', ']', '{', '}', '.', ',', '?', ':', '\'', '"', '!', '-', '$', 'ä'];
    let characters: Vec<char> = text.chars().collect();
    let at = rng.usize(0..characters.len());
    let new: Vec<char> = match rng.u32(0..3) {
        0 => Vec::new(),
        1 => vec![characters[at], characters[at]],
        _ => vec![NOISE[rng.usize(0..NOISE.len())]],
    };
    characters[..at].iter().chain(&new).chain(&characters[at + 1..]).collect()
}

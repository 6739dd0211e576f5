//! Reading the text of a label selector.

use super::labels::{Operator, Requirement, check_key};
use crate::field::Path;
use std::collections::BTreeSet;

/// The requirements of a selector in the order written; the error is kube-apiserver's sentence.
pub(super) fn parse(text: &str) -> Result<Vec<Requirement>, String> {
    Parser { tokens: scan(text), at: 0 }.requirements()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    End,
    Close,
    Open,
    Comma,
    Not,
    Compare(Operator),
    Word(&'a str),
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Token::End => "",
            Token::Close => ")",
            Token::Open => "(",
            Token::Comma => ",",
            Token::Not => "!",
            Token::Compare(Operator::DoubleEquals) => "==",
            Token::Compare(Operator::NotEquals) => "!=",
            Token::Compare(Operator::GreaterThan) => ">",
            Token::Compare(Operator::LessThan) => "<",
            Token::Compare(_) => "=",
            Token::Word(word) => word,
        }
    }
}

/// Splits text into tokens, the last of which is always [`Token::End`]. A NUL ends the text, or the
/// word before it, as in Kubernetes' scanner.
fn scan(text: &str) -> Vec<Token<'_>> {
    let special = |b: u8| matches!(b, b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<');
    let blank = |b: u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        while at < bytes.len() && blank(bytes[at]) {
            at += 1;
        }
        let followed_by_equals = bytes.get(at + 1) == Some(&b'=');
        let token = match bytes.get(at) {
            None | Some(0) => {
                tokens.push(Token::End);
                return tokens;
            }
            Some(b'=') if followed_by_equals => Token::Compare(Operator::DoubleEquals),
            Some(b'!') if followed_by_equals => Token::Compare(Operator::NotEquals),
            Some(b'=') => Token::Compare(Operator::Equals),
            Some(b'!') => Token::Not,
            Some(b'(') => Token::Open,
            Some(b')') => Token::Close,
            Some(b',') => Token::Comma,
            Some(b'>') => Token::Compare(Operator::GreaterThan),
            Some(b'<') => Token::Compare(Operator::LessThan),
            Some(_) => {
                let rest = &bytes[at..];
                let length = rest.iter().position(|b| *b == 0 || special(*b) || blank(*b));
                // The word ends before an ASCII byte or at the end: both are character boundaries.
                Token::Word(&text[at..at + length.unwrap_or(rest.len())])
            }
        };
        at += token.text().len();
        if matches!(token, Token::Word(_)) && bytes.get(at) == Some(&0) {
            at += 1;
        }
        tokens.push(token);
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).copied().unwrap_or(Token::End)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(requirements),
                Token::Word(_) | Token::Not => {}
                other => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
            let requirement =
                self.requirement().map_err(|error| format!("unable to parse requirement: {error}"))?;
            requirements.push(requirement);
            match self.take() {
                Token::End => return Ok(requirements),
                Token::Comma => match self.peek() {
                    Token::Word(_) | Token::Not => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let mut token = self.take();
        let negated = token == Token::Not;
        if negated {
            token = self.take();
        }
        let Token::Word(key) = token else {
            return Err(format!("found '{}', expected: identifier", token.text()));
        };
        check_key(key, &Path::ROOT).map_err(|error| error.to_string())?;
        if negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = match self.take() {
            Token::Compare(operator) => operator,
            Token::Word("in") => Operator::In,
            Token::Word("notin") => Operator::NotIn,
            other => {
                return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text()));
            }
        };
        let values = match operator {
            Operator::In | Operator::NotIn => self.value_list()?,
            _ => self.single_value()?,
        };
        Requirement::new(key, operator, values)
    }

    fn single_value(&mut self) -> Result<Vec<String>, String> {
        if matches!(self.peek(), Token::End | Token::Comma) {
            return Ok(vec![String::new()]);
        }
        match self.take() {
            Token::Word(word) => Ok(vec![word.to_owned()]),
            other => Err(format!("found '{}', expected: identifier", other.text())),
        }
    }

    /// `(a,b)`; an empty place between commas is the empty value.
    fn value_list(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            Token::Open => {}
            other => return Err(format!("found '{}' expected: '('", other.text())),
        }
        let mut values = BTreeSet::new();
        match self.peek() {
            Token::Close => {
                self.take();
                return Ok(vec![String::new()]);
            }
            Token::Comma => drop(values.insert(String::new())),
            Token::Word(_) => {}
            other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
        }
        loop {
            match (self.take(), self.peek()) {
                (Token::Word(word), next) => {
                    values.insert(word.to_owned());
                    match next {
                        Token::Comma => {}
                        Token::Close => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                (Token::Comma, Token::Close) => {
                    values.insert(String::new());
                    break;
                }
                (Token::Comma, Token::Comma) => drop(values.insert(String::new())),
                (Token::Comma, _) => {}
                (other, _) => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
            }
        }
        self.take();
        Ok(values.into_iter().collect())
    }
}

//! Reads names, literals, lists and maps.

use super::lexer::{Token, TokenKind};
use super::parser::{Parse, Parsed, Parser};
use super::unescape::unescape;
use crate::ast::{Entry, Expr, ExprKind, Literal};

const EXPECTED: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, \
                        NUM_UINT, STRING, BYTES, IDENTIFIER}";

/// Names that cannot be variables.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

impl Parser {
    pub(super) fn primary(&mut self) -> Parse<Parsed> {
        let leaf = |expr| Ok(Parsed { expr, depth: 0 });
        let token = self.token().clone();
        match token.kind {
            TokenKind::Ident => self.named(""),
            TokenKind::Int | TokenKind::Uint | TokenKind::Double => {
                self.advance();
                leaf(self.number(&token, false, token.start))
            }
            TokenKind::String | TokenKind::Bytes => {
                self.advance();
                leaf(self.quoted(&token))
            }
            TokenKind::Symbol => match token.text.as_str() {
                "(" => {
                    self.advance();
                    let inside = self.expression()?;
                    self.expect(")")?;
                    Ok(inside)
                }
                "[" => self.list(),
                "{" => self.map(),
                "." => {
                    self.advance();
                    if self.token().kind == TokenKind::Ident {
                        self.named(".")
                    } else {
                        self.unexpected("IDENTIFIER")
                    }
                }
                "-" if self.is_signed_number() => {
                    self.advance();
                    let number = self.advance();
                    leaf(self.number(&number, true, token.start))
                }
                "true" | "false" | "null" => {
                    self.advance();
                    let literal = match token.text.as_str() {
                        "null" => Literal::Null,
                        text => Literal::Bool(text == "true"),
                    };
                    leaf(Expr { id: self.id(token.start), kind: ExprKind::Literal(literal) })
                }
                _ => self.unexpected(EXPECTED),
            },
            TokenKind::End | TokenKind::EscapedIdent => self.unexpected(EXPECTED),
        }
    }

    /// A variable, a call, or a message.
    fn named(&mut self, dot: &str) -> Parse<Parsed> {
        let token = self.advance();
        let name = format!("{dot}{}", token.text);
        if let Some(path) = self.message_name() {
            return self.message(&name, &path);
        }
        let reserved = RESERVED.contains(&token.text.as_str());
        if let Some(open) = self.eat("(") {
            let id = self.id(open);
            let (args, depth) = self.arguments()?;
            let call = if reserved {
                self.wrong(token.start, format!("reserved identifier: {}", token.text))
            } else {
                self.expand(id, name, None, args)
            };
            return Ok(Parsed { expr: call, depth });
        }
        let expr = if reserved {
            self.wrong(token.start, format!("reserved identifier: {}", token.text))
        } else {
            Expr { id: self.id(token.start), kind: ExprKind::Ident(name) }
        };
        Ok(Parsed { expr, depth: 0 })
    }

    /// The rest of a message's name if a message follows: `.b.C{`.
    fn message_name(&self) -> Option<Vec<String>> {
        let mut path = Vec::new();
        let mut at = self.at;
        loop {
            let token = self.tokens.get(at)?;
            match (token.kind, token.text.as_str()) {
                (TokenKind::Symbol, "{") => return Some(path),
                (TokenKind::Symbol, ".") => {
                    let next = self.tokens.get(at + 1).filter(|next| next.kind == TokenKind::Ident)?;
                    path.push(next.text.clone());
                    at += 2;
                }
                _ => return None,
            }
        }
    }

    fn message(&mut self, first: &str, path: &[String]) -> Parse<Parsed> {
        for _ in 0..path.len() * 2 {
            self.advance();
        }
        let name = [std::slice::from_ref(&first.to_owned()), path].concat().join(".");
        let start = self.advance().start;
        let id = self.id(start);
        let mut depth = 0;
        while !self.is("}") {
            self.eat("?");
            if !matches!(self.token().kind, TokenKind::Ident | TokenKind::EscapedIdent) {
                return self.unexpected("'}'");
            }
            self.advance();
            self.expect(":")?;
            depth = depth.max(self.expression()?.depth);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        Ok(Parsed { expr: Expr { id, kind: ExprKind::Struct(name) }, depth })
    }

    fn list(&mut self) -> Parse<Parsed> {
        let start = self.advance().start;
        let id = self.id(start);
        let (mut elements, mut optional, mut depth) = (Vec::new(), Vec::new(), 0);
        while !self.is("]") {
            if elements.is_empty() && self.eat(",").is_some() {
                break;
            }
            if self.eat("?").is_some() {
                optional.push(elements.len());
            }
            let element = self.expression()?;
            depth = depth.max(element.depth);
            elements.push(element.expr);
            if self.eat(",").is_none() {
                break;
            }
        }
        self.expect("]")?;
        Ok(Parsed { expr: Expr { id, kind: ExprKind::List { elements, optional } }, depth })
    }

    fn map(&mut self) -> Parse<Parsed> {
        let start = self.advance().start;
        let id = self.id(start);
        let (mut entries, mut depth) = (Vec::new(), 0);
        while !self.is("}") {
            if entries.is_empty() && self.eat(",").is_some() {
                break;
            }
            let optional = self.eat("?").is_some();
            let key = self.expression()?;
            let colon = self.expect(":")?;
            let entry_id = self.id(colon);
            let value = self.expression()?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push(Entry { id: entry_id, key: key.expr, value: value.expr, optional });
            if self.eat(",").is_none() {
                break;
            }
        }
        self.expect("}")?;
        Ok(Parsed { expr: Expr { id, kind: ExprKind::Map(entries) }, depth })
    }

    fn number(&mut self, token: &Token, negative: bool, start: usize) -> Expr {
        let sign = if negative { "-" } else { "" };
        let text = token.text.as_str();
        let digits = text.trim_end_matches(['u', 'U']);
        let (radix, digits) = match digits.strip_prefix("0x") {
            Some(hex) => (16, hex),
            None => (10, digits),
        };
        let literal = match token.kind {
            TokenKind::Int => i64::from_str_radix(&format!("{sign}{digits}"), radix).ok().map(Literal::Int),
            TokenKind::Uint => u64::from_str_radix(digits, radix).ok().map(Literal::Uint),
            _ => {
                let number = format!("{sign}{text}").parse::<f64>().ok();
                number.filter(|number| number.is_finite()).map(Literal::Double)
            }
        };
        if let Some(literal) = literal {
            Expr { id: self.id(start), kind: ExprKind::Literal(literal) }
        } else {
            let kind = match token.kind {
                TokenKind::Int => "int",
                TokenKind::Uint => "uint",
                _ => "double",
            };
            self.wrong(start, format!("invalid {kind} literal"))
        }
    }

    fn quoted(&mut self, token: &Token) -> Expr {
        let is_bytes = token.kind == TokenKind::Bytes;
        let text = if is_bytes { token.text.get(1..).unwrap_or_default() } else { &token.text };
        let literal = unescape(text, is_bytes).and_then(|bytes| {
            if is_bytes {
                Ok(Literal::Bytes(bytes))
            } else {
                String::from_utf8(bytes).map(Literal::String).map_err(|_| "invalid UTF-8 in string")
            }
        });
        match literal {
            Ok(literal) => Expr { id: self.id(token.start), kind: ExprKind::Literal(literal) },
            Err(message) => self.wrong(token.start, message),
        }
    }
}

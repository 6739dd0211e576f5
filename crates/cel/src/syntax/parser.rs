//! Reads tokens into a tree.

use super::lexer::{Token, TokenKind, lex};
use super::{DEPTH_MAX, TEXT_CHARACTERS_MAX};
use crate::ast::{Ast, Expr, ExprKind, Id, Literal, Source, operators};
use crate::errors::CompileError;

/// Parses an expression and expands its macros.
pub fn parse(text: &str) -> Result<Ast, CompileError> {
    let source = Source { text: text.to_owned() };
    let size = text.chars().count();
    if size > TEXT_CHARACTERS_MAX {
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {TEXT_CHARACTERS_MAX}");
        return Err(CompileError::new(&source, vec![(None, message)]));
    }
    let characters: Vec<char> = text.chars().collect();
    let (tokens, unread) = lex(&characters);
    let mut parser = Parser { tokens, at: 0, offsets: Vec::new(), issues: Vec::new(), depths: [0; 3] };
    for error in unread {
        let message = format!("Syntax error: token recognition error at: '{}'", error.text);
        parser.issues.push((Some(error.at), message));
    }
    // Id 0 belongs to no node.
    parser.offsets.push(None);
    let parsed = parser.expression().and_then(|parsed| parser.end().map(|()| parsed));
    match parsed {
        Ok(parsed) if parser.issues.is_empty() => {
            Ok(Ast { root: parsed.expr, source, offsets: parser.offsets })
        }
        Ok(_) => Err(CompileError::new(&source, parser.issues)),
        Err(stop) => {
            parser.issues.push((stop.at, stop.message));
            Err(CompileError::new(&source, parser.issues))
        }
    }
}

/// A node and the number of nested levels below it.
pub(super) struct Parsed {
    pub expr: Expr,
    pub depth: usize,
}

/// An error after which nothing can be read.
pub(super) struct Stop {
    at: Option<usize>,
    message: String,
}

pub(super) type Parse<T> = Result<T, Stop>;

pub(super) struct Parser {
    pub(super) tokens: Vec<Token>,
    pub(super) at: usize,
    offsets: Vec<Option<u32>>,
    pub(super) issues: Vec<(Option<usize>, String)>,
    /// How deep the rules are nested: expressions, relations, calculations.
    depths: [usize; 3],
}

const EXPRESSION: usize = 0;
const RELATION: usize = 1;
const CALCULATION: usize = 2;

impl Parser {
    /// A new id for a node at an offset.
    pub(super) fn id(&mut self, offset: usize) -> Id {
        let id = Id::try_from(self.offsets.len()).unwrap_or(Id::MAX);
        self.offsets.push(u32::try_from(offset).ok());
        id
    }

    pub(super) fn id_count(&self) -> usize {
        self.offsets.len()
    }

    pub(super) fn offset(&self, id: Id) -> usize {
        let offset = usize::try_from(id).ok().and_then(|id| self.offsets.get(id).copied().flatten());
        offset.map_or(0, |offset| usize::try_from(offset).unwrap_or(0))
    }

    /// Records an error and gives a node in place of what is wrong.
    pub(super) fn wrong(&mut self, offset: usize, message: impl Into<String>) -> Expr {
        self.issues.push((Some(offset), message.into()));
        Expr { id: self.id(offset), kind: ExprKind::Literal(Literal::Null) }
    }

    pub(super) fn token(&self) -> &Token {
        // The last token is the end, and nothing moves past it.
        &self.tokens[self.at]
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.token().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    pub(super) fn is(&self, symbol: &str) -> bool {
        let token = self.token();
        token.kind == TokenKind::Symbol && token.text == symbol
    }

    pub(super) fn eat(&mut self, symbol: &str) -> Option<usize> {
        self.is(symbol).then(|| self.advance().start)
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Parse<T> {
        let token = self.token();
        let message = format!("Syntax error: mismatched input '{}' expecting {expected}", token.text);
        Err(Stop { at: Some(token.start), message })
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Parse<usize> {
        match self.eat(symbol) {
            Some(start) => Ok(start),
            None => self.unexpected(&format!("'{symbol}'")),
        }
    }

    fn end(&mut self) -> Parse<()> {
        if self.token().kind == TokenKind::End {
            return Ok(());
        }
        let token = self.token();
        let message = format!("Syntax error: extraneous input '{}' expecting <EOF>", token.text);
        Err(Stop { at: Some(token.start), message })
    }

    fn enter(&mut self, rule: usize) -> Parse<()> {
        self.depths[rule] += 1;
        if self.depths[rule] > DEPTH_MAX {
            let message = format!("expression recursion limit exceeded: {DEPTH_MAX}");
            return Err(Stop { at: None, message });
        }
        Ok(())
    }

    /// A node one level above others.
    fn above(expr: Expr, depth: usize) -> Parse<Parsed> {
        if depth >= DEPTH_MAX {
            return Err(Stop { at: None, message: "max recursion depth exceeded".to_owned() });
        }
        Ok(Parsed { expr, depth: depth + 1 })
    }

    pub(super) fn expression(&mut self) -> Parse<Parsed> {
        self.enter(EXPRESSION)?;
        let first = self.disjunction()?;
        let parsed = match self.eat("?") {
            None => first,
            Some(start) => self.conditional(start, first)?,
        };
        self.depths[EXPRESSION] -= 1;
        Ok(parsed)
    }

    fn conditional(&mut self, start: usize, first: Parsed) -> Parse<Parsed> {
        let id = self.id(start);
        let second = self.disjunction()?;
        self.expect(":")?;
        let third = self.expression()?;
        let depth = first.depth.max(second.depth).max(third.depth);
        let args = vec![first.expr, second.expr, third.expr];
        Self::above(global(id, operators::CONDITIONAL, args), depth)
    }

    /// A chain of `||` over chains of `&&`. Both are read here, so that nesting takes less of the stack.
    fn disjunction(&mut self) -> Parse<Parsed> {
        let (mut or, mut and) = (Chain::default(), Chain::default());
        loop {
            let term = self.binary(0)?;
            and.push(term);
            if let Some(start) = self.eat("&&") {
                and.operators.push(self.id(start));
                continue;
            }
            or.push(and.take(operators::AND));
            match self.eat("||") {
                Some(start) => or.operators.push(self.id(start)),
                None => return Ok(or.take(operators::OR)),
            }
        }
    }

    /// Operators that bind at least as strongly as `least`: 0 for relations, 1 for `+` and `-`, 2 for `*`,
    /// `/` and `%`.
    fn binary(&mut self, least: u8) -> Parse<Parsed> {
        let rule = if least == 0 { RELATION } else { CALCULATION };
        self.enter(rule)?;
        let mut left = self.unary()?;
        while let Some((operator, strength)) = self.operator().filter(|(_, strength)| *strength >= least) {
            let start = self.advance().start;
            let id = self.id(start);
            let right = self.binary(strength + 1)?;
            let depth = left.depth.max(right.depth);
            left = Self::above(global(id, operator, vec![left.expr, right.expr]), depth)?;
        }
        self.depths[rule] -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<(&'static str, u8)> {
        let token = self.token();
        if token.kind != TokenKind::Symbol {
            return None;
        }
        Some(match token.text.as_str() {
            "<" => (operators::LESS, 0),
            "<=" => (operators::LESS_EQUALS, 0),
            ">" => (operators::GREATER, 0),
            ">=" => (operators::GREATER_EQUALS, 0),
            "==" => (operators::EQUALS, 0),
            "!=" => (operators::NOT_EQUALS, 0),
            "in" => (operators::IN, 0),
            "+" => (operators::ADD, 1),
            "-" => (operators::SUBTRACT, 1),
            "*" => (operators::MULTIPLY, 2),
            "/" => (operators::DIVIDE, 2),
            "%" => (operators::MODULO, 2),
            _ => return None,
        })
    }

    /// Signs in front of a value. An even number of them is none; one minus before a number is its sign.
    fn unary(&mut self) -> Parse<Parsed> {
        let (symbol, operator) = if self.is("!") {
            ("!", operators::NOT)
        } else if self.is("-") && !self.is_signed_number() {
            ("-", operators::NEGATE)
        } else {
            return self.member();
        };
        let start = self.token().start;
        let mut count = 0;
        while self.eat(symbol).is_some() {
            count += 1;
        }
        let id = (count % 2 == 1).then(|| self.id(start));
        let operand = self.member()?;
        Ok(match id {
            Some(id) => Parsed { expr: global(id, operator, vec![operand.expr]), depth: operand.depth },
            None => operand,
        })
    }

    pub(super) fn is_signed_number(&self) -> bool {
        let next = self.tokens.get(self.at + 1);
        self.is("-") && next.is_some_and(|next| matches!(next.kind, TokenKind::Int | TokenKind::Double))
    }

    fn member(&mut self) -> Parse<Parsed> {
        let mut parsed = self.primary()?;
        loop {
            let Parsed { expr: operand, depth } = parsed;
            parsed = if let Some(start) = self.eat(".") {
                self.dotted(operand, depth, start)?
            } else if let Some(start) = self.eat("[") {
                let optional = self.eat("?").is_some();
                let id = self.id(start);
                let index = self.expression()?;
                self.expect("]")?;
                let operator = if optional { operators::OPTIONAL_INDEX } else { operators::INDEX };
                let depth = depth.max(index.depth);
                Self::above(global(id, operator, vec![operand, index.expr]), depth)?
            } else {
                return Ok(Parsed { expr: operand, depth });
            };
        }
    }

    /// What follows a dot: a field, an optional field or a call.
    fn dotted(&mut self, operand: Expr, depth: usize, start: usize) -> Parse<Parsed> {
        let optional = self.eat("?").is_some();
        let name = match self.token().kind {
            TokenKind::Ident => self.advance(),
            TokenKind::EscapedIdent => {
                let token = self.advance();
                self.issues.push((Some(token.start), "unsupported syntax: '`'".to_owned()));
                token
            }
            _ => {
                return self.unexpected(if optional { "{IDENTIFIER, ESC_IDENTIFIER}" } else { "IDENTIFIER" });
            }
        };
        if optional {
            let field = ExprKind::Literal(Literal::String(name.text));
            let field = Expr { id: self.id(name.start), kind: field };
            let id = self.id(start);
            return Self::above(global(id, operators::OPTIONAL_SELECT, vec![operand, field]), depth);
        }
        let Some(open) = self.eat("(") else {
            let kind = ExprKind::Select { operand: Box::new(operand), field: name.text, test: false };
            return Self::above(Expr { id: self.id(start), kind }, depth);
        };
        let id = self.id(open);
        let (args, depth_of_args) = self.arguments()?;
        let call = self.expand(id, name.text, Some(operand), args);
        Self::above(call, depth.max(depth_of_args))
    }

    pub(super) fn arguments(&mut self) -> Parse<(Vec<Expr>, usize)> {
        let (mut args, mut depth) = (Vec::new(), 0);
        if self.eat(")").is_some() {
            return Ok((args, depth));
        }
        loop {
            let argument = self.expression()?;
            depth = depth.max(argument.depth);
            args.push(argument.expr);
            if self.eat(",").is_none() {
                self.expect(")")?;
                return Ok((args, depth));
            }
        }
    }
}

/// A call without a target.
pub(super) fn global(id: Id, function: &str, args: Vec<Expr>) -> Expr {
    Expr { id, kind: ExprKind::Call { function: function.to_owned(), target: None, args } }
}

/// Terms and the operators between them.
#[derive(Default)]
struct Chain {
    terms: Vec<Option<Expr>>,
    operators: Vec<Id>,
    depth: usize,
}

impl Chain {
    fn push(&mut self, term: Parsed) {
        self.depth = self.depth.max(term.depth);
        self.terms.push(Some(term.expr));
    }

    /// The chain as one node; the next chain starts empty.
    fn take(&mut self, operator: &str) -> Parsed {
        let mut chain = std::mem::take(self);
        Parsed { expr: balance(operator, &mut chain.terms, &chain.operators), depth: chain.depth }
    }
}

/// A balanced tree of a chain's terms, of which there is one more than there are operators.
fn balance(operator: &str, terms: &mut [Option<Expr>], ids: &[Id]) -> Expr {
    let middle = ids.len() / 2;
    let Some(id) = ids.get(middle) else {
        // Each term is taken once: the halves do not overlap.
        let nothing = Expr { id: 0, kind: ExprKind::Literal(Literal::Null) };
        return terms.first_mut().and_then(Option::take).unwrap_or(nothing);
    };
    let (left, right) = terms.split_at_mut(middle + 1);
    let left = balance(operator, left, &ids[..middle]);
    let right = balance(operator, right, &ids[middle + 1..]);
    global(*id, operator, vec![left, right])
}

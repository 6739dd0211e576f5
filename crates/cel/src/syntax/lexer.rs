//! Splits the text into tokens.

/// A token with its place, in characters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub start: usize,
    /// The characters of the token.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    End,
    /// Operators, brackets and `in`, `true`, `false`, `null`: told apart by their text.
    Symbol,
    Ident,
    EscapedIdent,
    Int,
    Uint,
    Double,
    String,
    Bytes,
}

/// A character, or a string, that starts no token.
pub(super) struct LexError {
    pub at: usize,
    pub text: String,
}

/// The tokens, the last of which is the end, and what could not be read. Lexing goes on after an error.
pub(super) fn lex(characters: &[char]) -> (Vec<Token>, Vec<LexError>) {
    let mut lexer = Lexer { characters, at: 0 };
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    while lexer.at < characters.len() {
        let start = lexer.at;
        if lexer.blank() {
            continue;
        }
        if let Some(kind) = lexer.token() {
            let text = characters[start..lexer.at].iter().collect();
            tokens.push(Token { kind, start, text });
        } else {
            // The character that does not fit belongs to what cannot be read.
            let end = (lexer.at + 1).min(characters.len());
            lexer.at = end;
            errors.push(LexError { at: start, text: characters[start..end].iter().collect() });
        }
    }
    tokens.push(Token { kind: TokenKind::End, start: characters.len(), text: "<EOF>".to_owned() });
    (tokens, errors)
}

struct Lexer<'a> {
    characters: &'a [char],
    at: usize,
}

const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":",
    "+", "*", "/", "%",
];

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.at + ahead).copied()
    }

    fn eat_while(&mut self, test: impl Fn(char) -> bool) -> usize {
        let start = self.at;
        while self.peek(0).is_some_and(&test) {
            self.at += 1;
        }
        self.at - start
    }

    /// Skips one run of blanks or one comment.
    fn blank(&mut self) -> bool {
        if self.eat_while(|c| matches!(c, '\t' | ' ' | '\r' | '\n' | '\u{c}')) > 0 {
            return true;
        }
        if self.peek(0) == Some('/') && self.peek(1) == Some('/') {
            self.eat_while(|c| c != '\n');
            return true;
        }
        false
    }

    fn token(&mut self) -> Option<TokenKind> {
        let first = self.peek(0)?;
        if first.is_ascii_digit() || (first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit())) {
            return Some(self.number());
        }
        if let Some((bytes, raw, quote)) = self.opening_quote() {
            return self.quoted(bytes, raw, quote);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let start = self.at;
            self.eat_while(|c| c.is_ascii_alphanumeric() || c == '_');
            let word: String = self.characters[start..self.at].iter().collect();
            let reserved = matches!(word.as_str(), "in" | "true" | "false" | "null");
            return Some(if reserved { TokenKind::Symbol } else { TokenKind::Ident });
        }
        if first == '`' {
            return self.escaped_ident();
        }
        // These start a symbol, and are none themselves.
        if matches!(first, '|' | '&' | '=') && self.peek(1) != Some(first) {
            self.at += 1;
            return None;
        }
        let symbol = SYMBOLS.iter().find(|symbol| {
            symbol.chars().enumerate().all(|(ahead, character)| self.peek(ahead) == Some(character))
        })?;
        self.at += symbol.len();
        Some(TokenKind::Symbol)
    }

    fn escaped_ident(&mut self) -> Option<TokenKind> {
        self.at += 1;
        let inside = self.eat_while(|c| c.is_ascii_alphanumeric() || "_.-/ ".contains(c));
        (inside > 0 && self.peek(0) == Some('`')).then(|| {
            self.at += 1;
            TokenKind::EscapedIdent
        })
    }

    fn number(&mut self) -> TokenKind {
        let unsigned = |lexer: &mut Self| {
            let found = matches!(lexer.peek(0), Some('u' | 'U'));
            lexer.at += usize::from(found);
            if found { TokenKind::Uint } else { TokenKind::Int }
        };
        let hex = self.peek(0) == Some('0')
            && self.peek(1) == Some('x')
            && self.peek(2).is_some_and(|c| c.is_ascii_hexdigit());
        if hex {
            self.at += 2;
            self.eat_while(|c| c.is_ascii_hexdigit());
            return unsigned(self);
        }
        self.eat_while(|c| c.is_ascii_digit());
        let mut double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
            self.eat_while(|c| c.is_ascii_digit());
            double = true;
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                self.at += 1 + sign;
                self.eat_while(|c| c.is_ascii_digit());
                double = true;
            }
        }
        if double { TokenKind::Double } else { unsigned(self) }
    }

    /// Whether bytes or a raw string start here, and with which quote; none if nothing is quoted here.
    fn opening_quote(&self) -> Option<(bool, bool, char)> {
        let bytes = matches!(self.peek(0), Some('b' | 'B'));
        let raw = matches!(self.peek(usize::from(bytes)), Some('r' | 'R'));
        let quote = self.peek(usize::from(bytes) + usize::from(raw));
        quote.filter(|quote| matches!(quote, '"' | '\'')).map(|quote| (bytes, raw, quote))
    }

    /// A string or bytes; none if it has no end.
    fn quoted(&mut self, bytes: bool, raw: bool, quote: char) -> Option<TokenKind> {
        let kind = if bytes { TokenKind::Bytes } else { TokenKind::String };
        let first = self.at + usize::from(bytes) + usize::from(raw) + 1;
        let is_quote = |index: usize| self.characters.get(index) == Some(&quote);
        if is_quote(first) && is_quote(first + 1) {
            self.at = first + 2;
            if self.body(quote, raw, true) {
                return Some(kind);
            }
        }
        // Three quotes that nobody closes are an empty string and a quote.
        self.at = first;
        self.body(quote, raw, false).then_some(kind)
    }

    fn body(&mut self, quote: char, raw: bool, triple: bool) -> bool {
        while let Some(character) = self.peek(0) {
            if character == quote {
                if !triple {
                    self.at += 1;
                    return true;
                }
                if self.peek(1) == Some(quote) && self.peek(2) == Some(quote) {
                    self.at += 3;
                    return true;
                }
            }
            if !triple && matches!(character, '\n' | '\r') {
                return false;
            }
            if character == '\\' && !raw {
                let Some(length) = self.escape() else { return false };
                self.at += length;
            } else {
                self.at += 1;
            }
        }
        false
    }

    /// How long the escape sequence here is.
    fn escape(&self) -> Option<usize> {
        let hex = |count: usize| {
            (0..count)
                .all(|index| self.peek(2 + index).is_some_and(|c| c.is_ascii_hexdigit()))
                .then_some(2 + count)
        };
        match self.peek(1)? {
            'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Some(2),
            'x' | 'X' => hex(2),
            'u' => hex(4),
            'U' => hex(8),
            '0'..='3' => {
                let octal = |ahead| self.peek(ahead).is_some_and(|c: char| ('0'..='7').contains(&c));
                (octal(2) && octal(3)).then_some(4)
            }
            _ => None,
        }
    }
}

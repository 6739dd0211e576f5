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
        match lexer.token() {
            Some(kind) => {
                let text = characters[start..lexer.at].iter().collect();
                tokens.push(Token { kind, start, text });
            }
            None => {
                // The character that does not fit belongs to what cannot be read.
                let end = (lexer.at + 1).min(characters.len());
                lexer.at = end;
                errors.push(LexError { at: start, text: characters[start..end].iter().collect() });
            }
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
        if let Some(kind) = self.quoted() {
            return kind;
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

    /// A string or bytes, none if there are no quotes here; the inner none is a string without an end.
    fn quoted(&mut self) -> Option<Option<TokenKind>> {
        let mut ahead = 0;
        let mut bytes = false;
        let mut raw = false;
        if matches!(self.peek(0), Some('b' | 'B')) {
            bytes = true;
            ahead += 1;
        }
        if matches!(self.peek(ahead), Some('r' | 'R')) {
            raw = true;
            ahead += 1;
        }
        let quote = self.peek(ahead).filter(|c| matches!(c, '"' | '\''))?;
        let start = self.at;
        let is_quote = |lexer: &Self, ahead: usize| lexer.peek(ahead) == Some(quote);
        let triple = is_quote(self, ahead + 1) && is_quote(self, ahead + 2);
        if triple {
            self.at = start + ahead + 3;
            if self.body(quote, raw, true) {
                return Some(Some(if bytes { TokenKind::Bytes } else { TokenKind::String }));
            }
        }
        // Three quotes that nobody closes are an empty string and a quote.
        self.at = start + ahead + 1;
        if self.body(quote, raw, false) {
            return Some(Some(if bytes { TokenKind::Bytes } else { TokenKind::String }));
        }
        // What was read so far is one error.
        Some(None)
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

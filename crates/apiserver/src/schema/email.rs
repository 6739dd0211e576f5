//! Mail addresses as Go's `net/mail` reads them: `a@b`, `"a b"@[::1]`, `Some Name <a@b> (comment)`.

use std::net::IpAddr;

/// Whether the text is one mail address.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address().is_some() && parser.skip_comments().is_some() && parser.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?;
        Some(())
    }

    fn address(&mut self) -> Option<()> {
        self.skip_space();
        let start = self.rest;
        if self.addr_spec().is_some() {
            return Some(());
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        self.take('<')?;
        self.addr_spec()?;
        self.take('>')
    }

    fn addr_spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            (!self.quoted()?.is_empty()).then_some(())?;
        } else {
            self.dot_atom(true)?;
        }
        self.take('@')?;
        self.skip_space();
        if self.rest.starts_with('[') {
            let (literal, rest) = self.rest[1..].split_once(']')?;
            self.rest = rest;
            literal.parse::<IpAddr>().ok().map(drop)
        } else {
            self.dot_atom(true)
        }
    }

    /// One or more words; a bad one after the first ends the phrase.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            let word = match self.rest.chars().next() {
                None => break,
                Some('"') => self.quoted().map(drop),
                Some(_) => self.dot_atom(false),
            };
            if word.is_none() {
                break;
            }
            words += 1;
        }
        (words > 0).then_some(())
    }

    fn dot_atom(&mut self, strict: bool) -> Option<()> {
        let atext = |c: char| !c.is_ascii_control() && !"()<>[]:;@\\,\" ".contains(c);
        let end = self.rest.find(|c| !atext(c)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        let dots_fine = !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        (!atom.is_empty() && (!strict || dots_fine)).then_some(())?;
        self.rest = rest;
        Some(())
    }

    fn quoted(&mut self) -> Option<&'a str> {
        let mut escaped = false;
        for (index, c) in self.rest.char_indices().skip(1) {
            match c {
                _ if c.is_ascii_control() && c != '\t' => return None,
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => {
                    let text = &self.rest[1..index];
                    self.rest = &self.rest[index + 1..];
                    return Some(text);
                }
                _ => {}
            }
        }
        None
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(').is_some() {
            let mut depth = 1;
            let mut escaped = false;
            let end = self.rest.char_indices().find(|(_, c)| {
                match c {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                depth == 0
            });
            self.rest = &self.rest[end?.0 + 1..];
            self.skip_space();
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_those_that_go_reads() {
        let good =
            ["a@b", "a.b+c@example.com", "\"a b\"@c", "A B <a@b>", "<a@b>", "a@[127.0.0.1]", "a@b (me)"];
        for text in good {
            assert!(is_address(text), "{text}");
        }
        for text in ["", "a", "a@", "@b", ".a@b", "a..b@c", "a@b c", "A <a@b", "a@b (", "a b@c", "a@[x]"] {
            assert!(!is_address(text), "{text}");
        }
    }
}

//! The values of string and bytes literals.

/// The bytes that a quoted literal stands for. The lexer has checked quotes and the shape of escapes.
pub(super) fn unescape(literal: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    const UNABLE: &str = "unable to unescape string";
    let text = literal.replace("\r\n", "\n").replace('\r', "\n");
    let (raw, text) = match text.strip_prefix(['r', 'R']) {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let long = text.len() >= 6 && (text.starts_with("'''") || text.starts_with("\"\"\""));
    let quotes = if long { 3 } else { 1 };
    let inside = text.get(quotes..text.len().saturating_sub(quotes)).ok_or(UNABLE)?;
    if raw || !inside.contains('\\') {
        return Ok(inside.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inside.len());
    let mut rest = inside.chars();
    while let Some(character) = rest.next() {
        if character != '\\' {
            push(&mut out, character);
            continue;
        }
        let escape = rest.next().ok_or("unable to unescape string, found '\\' as last character")?;
        let plain = match escape {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => escape,
            'u' | 'U' if bytes => return Err(UNABLE),
            _ => {
                let (radix, count, first) = match escape {
                    'x' | 'X' => (16, 2, 0),
                    'u' => (16, 4, 0),
                    'U' => (16, 8, 0),
                    '0'..='3' => (8, 2, escape.to_digit(8).unwrap_or(0)),
                    _ => return Err(UNABLE),
                };
                let mut code: u32 = first;
                for _ in 0..count {
                    let digit = rest.next().and_then(|c| c.to_digit(radix)).ok_or(UNABLE)?;
                    code = code.wrapping_mul(radix).wrapping_add(digit);
                }
                if bytes {
                    out.push(u8::try_from(code).map_err(|_| UNABLE)?);
                    continue;
                }
                char::from_u32(code).ok_or("invalid unicode code point")?
            }
        };
        push(&mut out, plain);
    }
    Ok(out)
}

fn push(out: &mut Vec<u8>, character: char) {
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

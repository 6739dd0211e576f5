//! The clauses of `.format`: `%s`, `%.3f`.

/// What a clause makes of its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    /// `%s`
    Text,
    /// `%d`
    Decimal,
    /// `%f`
    Fixed,
    /// `%e`
    Scientific,
    /// `%b`
    Binary,
    /// `%x`, or `%X` in upper case.
    Hex {
        /// Whether digits are in upper case.
        upper: bool,
    },
    /// `%o`
    Octal,
}

impl Clause {
    /// Why a value of a type cannot be the argument.
    pub(crate) fn refusal(self, type_name: &str) -> String {
        let only = match self {
            Clause::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, \
                 and timestamps"
            }
            Clause::Decimal => "decimal clause can only be used on integers",
            Clause::Fixed => "fixed-point clause can only be used on doubles",
            Clause::Scientific => "scientific clause can only be used on doubles",
            Clause::Binary => "only integers and bools can be formatted as binary",
            Clause::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Clause::Octal => "octal clause can only be used on integers",
        };
        format!("{only}, was given {type_name}")
    }
}

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Text that stays as it is. Of `%%`, one is left.
    Text(&'t str),
    /// A percent sign, and what follows it: read it with [`read_clause`].
    Percent(&'t str),
}

/// The next part of a format and the rest of it; for a clause the rest starts behind its percent sign.
pub(crate) fn next_part(format: &str) -> Option<(Part<'_>, &str)> {
    let Some(rest) = format.strip_prefix('%') else {
        let length = format.find('%').unwrap_or(format.len());
        let (text, rest) = format.split_at(length);
        return (!text.is_empty()).then_some((Part::Text(text), rest));
    };
    Some(match rest.strip_prefix('%') {
        Some(behind) => (Part::Text("%"), behind),
        None => (Part::Percent(rest), rest),
    })
}

/// A clause with its precision, and the text behind it. The text must not be empty.
pub(crate) fn read_clause(text: &str) -> Result<(Clause, Option<usize>, &str), String> {
    let wrong = |why: String| Err(format!("could not parse formatting clause: {why}"));
    let (precision, rest) = match text.strip_prefix('.') {
        None => (None, text),
        Some(rest) => {
            let length = rest.find(|c: char| !c.is_ascii_digit());
            let Some(length) = length else {
                return wrong(
                    "error while parsing precision: could not find end of precision specifier".to_owned(),
                );
            };
            let (digits, rest) = rest.split_at(length);
            // As large as Go's numbers are.
            let Some(precision) = digits.parse::<i64>().ok().and_then(|value| usize::try_from(value).ok())
            else {
                let why = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
                return wrong(format!(
                    "error while parsing precision: error while converting precision to integer: strconv.Atoi: \
                     parsing \"{digits}\": {why}"
                ));
            };
            (Some(precision), rest)
        }
    };
    // Go looks at the byte, not at the character.
    let byte = rest.bytes().next().unwrap_or_default();
    let clause = match byte {
        b's' => Clause::Text,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed,
        b'e' => Clause::Scientific,
        b'b' => Clause::Binary,
        b'x' | b'X' => Clause::Hex { upper: byte == b'X' },
        b'o' => Clause::Octal,
        other => return wrong(format!("unrecognized formatting clause \"{}\"", char::from(other))),
    };
    Ok((clause, precision, rest.get(1..).unwrap_or_default()))
}

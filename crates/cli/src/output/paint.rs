//! Colours, where they are wanted.

use std::ffi::OsString;
use std::io::IsTerminal as _;

/// What a text says beyond its words, or rather again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Good,
    Bad,
    /// Something to know of that is neither.
    Note,
    /// Less important than the rest.
    Quiet,
    /// A heading.
    Strong,
}

impl Tone {
    fn code(self) -> &'static str {
        match self {
            Tone::Plain => "",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Note => "33",
            Tone::Quiet => "2",
            Tone::Strong => "1",
        }
    }
}

/// Whether there are colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// None at all.
    #[cfg(test)]
    pub(crate) const NONE: Paint = Paint { on: false };

    /// As stdout can show them and its reader wants them.
    pub(crate) fn of_stdout() -> Self {
        Paint { on: wanted(std::io::stdout().is_terminal(), |name| std::env::var_os(name)) }
    }

    /// The text in its tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.on || tone == Tone::Plain || text.is_empty() {
            return text.to_owned();
        }
        format!("\x1b[{}m{text}\x1b[0m", tone.code())
    }
}

fn wanted(on_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    on_terminal && !refused && variable("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_for_terminals_whose_users_do_not_refuse_them() {
        let with = |on_terminal, set: &'static [(&'static str, &'static str)]| {
            wanted(on_terminal, |name| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into())
            })
        };
        assert!(with(true, &[]) && with(true, &[("NO_COLOR", ""), ("TERM", "xterm")]));
        assert!(!with(false, &[]) && !with(true, &[("NO_COLOR", "1")]) && !with(true, &[("TERM", "dumb")]));
    }

    #[test]
    fn a_painted_text_ends_its_colour() {
        assert_eq!(Paint { on: true }.paint(Tone::Bad, "no"), "\x1b[31mno\x1b[0m");
        assert_eq!(Paint::NONE.paint(Tone::Bad, "no"), "no");
    }
}

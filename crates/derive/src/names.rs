//! The names that serde gives to fields.

/// A rule of `rename_all`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Rename {
    #[default]
    None,
    Lower,
    Upper,
    Pascal,
    Camel,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

/// As they are written in attributes.
const RULES: [(&str, Rename); 8] = [
    ("snake_case", Rename::None),
    ("lowercase", Rename::Lower),
    ("UPPERCASE", Rename::Upper),
    ("PascalCase", Rename::Pascal),
    ("camelCase", Rename::Camel),
    ("SCREAMING_SNAKE_CASE", Rename::ScreamingSnake),
    ("kebab-case", Rename::Kebab),
    ("SCREAMING-KEBAB-CASE", Rename::ScreamingKebab),
];

impl Rename {
    pub(crate) fn parse(rule: &str) -> Option<Self> {
        RULES.iter().find(|(name, _)| *name == rule).map(|(_, rename)| *rename)
    }

    /// All rules, for people.
    pub(crate) fn known() -> String {
        RULES.map(|(name, _)| name).join(", ")
    }

    /// The name of a field, which is written in snake case.
    pub(crate) fn apply(self, field: &str) -> String {
        let pascal = || -> String { field.split('_').map(capitalised).collect() };
        match self {
            // Serde leaves a field that is lower case already as it is.
            Self::None | Self::Lower => field.to_owned(),
            Self::Upper | Self::ScreamingSnake => field.to_ascii_uppercase(),
            Self::Pascal => pascal(),
            Self::Camel => {
                let pascal = pascal();
                let mut chars = pascal.chars();
                chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
            }
            Self::Kebab => field.replace('_', "-"),
            Self::ScreamingKebab => field.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_renamed_as_serde_renames_them() {
        for (rule, expected) in [
            ("snake_case", "http_port_v2"),
            ("lowercase", "http_port_v2"),
            ("UPPERCASE", "HTTP_PORT_V2"),
            ("PascalCase", "HttpPortV2"),
            ("camelCase", "httpPortV2"),
            ("SCREAMING_SNAKE_CASE", "HTTP_PORT_V2"),
            ("kebab-case", "http-port-v2"),
            ("SCREAMING-KEBAB-CASE", "HTTP-PORT-V2"),
        ] {
            assert_eq!(Rename::parse(rule).unwrap().apply("http_port_v2"), expected);
        }
        assert_eq!(Rename::parse("Camel"), None);
    }
}

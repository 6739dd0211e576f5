//! Keys of YAML that people apply: kubectl reads some words as booleans.

use super::{Files, check, ending, files};

/// Words that YAML 1.1 reads as booleans.
const BOOLEANS: [&str; 6] = ["y", "n", "yes", "no", "on", "off"];

/// What people copy and apply: YAML files of examples and of the demo, and blocks of documents.
fn applied(files: &Files) -> Vec<(&String, usize, &str)> {
    let mut lines = Vec::new();
    for (path, text) in files {
        let is_shown = path.starts_with("examples/") || path.contains("/demo/");
        match ending(path) {
            "yaml" | "yml" if is_shown => {
                lines.extend((1..).zip(text.lines()).map(|(number, line)| (path, number, line)));
            }
            "md" => {
                let mut is_yaml = false;
                for (number, line) in (1..).zip(text.lines()) {
                    if let Some(language) = line.trim_start().strip_prefix("```") {
                        is_yaml = language.starts_with("yaml");
                    } else if is_yaml {
                        lines.push((path, number, line));
                    }
                }
            }
            _ => {}
        }
    }
    lines
}

/// The key of this line, and those in braces, that are booleans.
fn boolean_keys(line: &str) -> Vec<&str> {
    let line = line.split(" #").next().unwrap_or_default();
    let parts = line.split(['{', ',', '}']).filter_map(|part| part.split_once(':'));
    let keys = parts.map(|(key, _)| key.trim_start_matches([' ', '-']).trim_end());
    keys.filter(|key| BOOLEANS.contains(&key.to_lowercase().as_str())).collect()
}

#[test]
fn no_key_that_people_apply_is_a_boolean() {
    assert_eq!(boolean_keys("  - n: 1"), ["n"]);
    assert_eq!(boolean_keys("bootstrap: {method: ring, N: 4}"), ["N"]);
    assert_eq!(boolean_keys("  \"n\": 1 # n: 2"), [""; 0]);
    let files = files();
    let lines = applied(&files);
    assert!(lines.len() > 50, "there is no YAML any more: {}", lines.len());
    let found = lines.iter().flat_map(|(path, number, line)| {
        boolean_keys(line).into_iter().map(move |key| format!("{path}:{number}: {key}"))
    });
    check("keys that kubectl reads as booleans", &found.collect::<Vec<_>>());
}

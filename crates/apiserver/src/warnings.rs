//! Warnings of one answer, as many and as long as kube-apiserver lets them be. Each is a header.

/// How many characters all warnings have together before each is cut off.
const TOTAL_CHARS_MAX: usize = 4 << 10;

/// Where each is cut off then.
const ITEM_CHARS_MAX: usize = 256;

/// How many warnings of a request are remembered. None of those that come later would be shown: each has a character.
const COUNT_MAX: usize = TOTAL_CHARS_MAX;

/// Remembers a warning, once.
pub(crate) fn add(warnings: &mut Vec<String>, warning: String) {
    if !warning.is_empty() && warnings.len() < COUNT_MAX && !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// The warnings that are shown: all of them, or the beginnings of the first ones.
pub(crate) fn shown(warnings: Vec<String>) -> Vec<String> {
    let length = |warning: &String| warning.chars().count();
    if warnings.iter().map(length).sum::<usize>() <= TOTAL_CHARS_MAX {
        return warnings;
    }
    // What had fitted in before the limit was passed stays, cut off, and so does what passed it.
    let mut whole = 0;
    let passed = warnings.iter().take_while(|warning| {
        let fits = whole <= TOTAL_CHARS_MAX;
        whole += length(warning);
        fits
    });
    let replayed = passed.count();
    let mut written = 0;
    let cut = |warning: String| warning.chars().take(ITEM_CHARS_MAX).collect::<String>();
    let mut out = Vec::new();
    for (index, warning) in warnings.into_iter().map(cut).enumerate() {
        if index >= replayed && written >= TOTAL_CHARS_MAX {
            break;
        }
        written += length(&warning);
        out.push(warning);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_shown_as_they_are() {
        let few = vec!["a".to_owned(), "é".repeat(4000)];
        assert_eq!(shown(few.clone()), few);
        let mut warnings = Vec::new();
        for text in ["a", "", "b", "a"] {
            add(&mut warnings, text.to_owned());
        }
        assert_eq!(warnings, ["a", "b"]);
    }

    #[test]
    fn many_are_cut_off_and_end() {
        let many: Vec<String> = (0..1000).map(|at| format!("{at:0300}")).collect();
        let kept = shown(many);
        assert_eq!(kept.len(), 16, "sixteen of 256 characters");
        assert!(kept.iter().all(|warning| warning.len() == ITEM_CHARS_MAX));
        // Short ones that fitted in before a long one are all kept.
        let mut short: Vec<String> = (0..100).map(|at| format!("{at:040}")).collect();
        short.push("x".repeat(5000));
        assert_eq!(shown(short).len(), 101);
        let mut endless = Vec::new();
        (0..10_000).for_each(|at| add(&mut endless, format!("{at}")));
        assert_eq!(endless.len(), COUNT_MAX);
    }
}

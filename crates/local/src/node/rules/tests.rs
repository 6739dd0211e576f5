use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

#[test]
fn a_file_has_both_parts_and_the_first_rule_that_fits_counts() {
    let text = r#"
        images:
        - {image: "shop/worker:*", command: [./worker, run], args: [-v], env: {LOG: debug}, workingDir: /srv}
        simulated:
        - {image: "*/migrate:*", startsAfter: 2s, endsAfter: 1m30s, exitCode: 3, crashes: 2}
        - {image: "*", readyAfter: never, crashes: always, stopsAfter: 500ms, cannotPull: true, log: "hello\n"}
    "#;
    let rules: Rules = text.parse().unwrap();
    let worker = rules.image("shop/worker:7").unwrap();
    assert_eq!(
        (&worker.command[..], &worker.args[..]),
        (&["./worker".to_owned(), "run".into()][..], &["-v".to_owned()][..])
    );
    assert_eq!(worker.working_dir.as_deref(), Some(std::path::Path::new("/srv")));
    assert_eq!(rules.image("shop/web"), None);
    let migrate = rules.behaviour("shop/migrate:1").unwrap();
    assert_eq!(migrate.starts_after, Some(Span(Duration::from_secs(2))));
    assert_eq!(migrate.ends_after, Some(Moment::After(Duration::from_secs(90))));
    assert_eq!((migrate.exit_code, migrate.crashes), (Some(3), Some(Crashes::Times(2))));
    let others = rules.behaviour("nginx").unwrap();
    assert_eq!((others.ready_after, others.crashes), (Some(Moment::Never), Some(Crashes::Always)));
    assert_eq!((others.cannot_pull, others.log.as_deref()), (Some(true), Some("hello\n")));
}

#[test]
fn a_file_without_rules_is_one() {
    for text in ["", "# nothing\n", "{}", "images: []\n"] {
        assert_eq!(text.parse::<Rules>().unwrap(), Rules::default(), "{text:?}");
    }
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&text.parse::<Rules>().unwrap_err().to_string());
}

#[test]
fn what_is_wrong_is_told_with_the_path_of_the_field() {
    check(
        "simulated: [{image: a, endsAfter: soon}]",
        &expect![[
            r#"simulated[0].endsAfter: "soon" is no length of time; write 5s, 500ms or 1m30s, or never"#
        ]],
    );
    check(
        "simulated: [{image: a}, {image: b, startsAfter: -5s}]",
        &expect![[r#"simulated[1].startsAfter: "-5s" is no length of time; write 5s, 500ms or 1m30s"#]],
    );
    check(
        "simulated: [{image: a, crashes: often}]",
        &expect![[r#"simulated[0].crashes: "often" is neither a number nor always"#]],
    );
    check(
        "simulated: [{image: a, exitCode: 256}]",
        &expect!["simulated[0].exitCode: invalid value: integer `256`, expected u8"],
    );
    check(
        "simulated: [{image: a, endAfter: 5s}]",
        &expect![
            "simulated[0].endAfter: unknown field `endAfter`, expected one of `image`, `startsAfter`, `readyAfter`, `endsAfter`, `exitCode`, `crashes`, `stopsAfter`, `cannotPull`, `log`"
        ],
    );
    check("simulated: [{endsAfter: 5s}]", &expect!["simulated[0]: missing field `image`"]);
    check(
        "images: [{image: a, command: []}]",
        &expect!["images[0].command: it has to begin with the program to run"],
    );
    check(
        "images: [{image: '', command: [x]}]",
        &expect!["images[0].image: a pattern for images cannot be empty"],
    );
    check(
        "images: [{image: a, command: x}]",
        &expect![[r#"images[0].command: invalid type: string "x", expected a sequence"#]],
    );
    check("pictures: []", &expect!["pictures: unknown field `pictures`, expected `images` or `simulated`"]);
    check("images: [", &expect!["the rules are not YAML"]);
}

#[test]
fn patterns_fit_whole_images() {
    let fits = |pattern: &str, image| Glob(pattern.to_owned()).fits(image);
    assert!(
        fits("mainstay:*", "mainstay:1.2")
            && fits("*/web:?", "shop/web:1")
            && fits("*", "")
            && fits("a*b*c", "aXbYbc")
    );
    assert!(
        !fits("mainstay", "mainstay:1")
            && !fits("web:?", "web:10")
            && !fits("a*b*c", "aXbYb")
            && !fits("", "a")
    );
}

proptest! {
    #[test]
    fn a_pattern_made_from_an_image_fits_it(image in "[a-c]{0,8}", cuts in prop::collection::vec((0_usize..9, 0_usize..9), 0..3)) {
        let mut pattern = image.clone();
        for (from, to) in cuts {
            let (from, to) = (from.min(to).min(pattern.len()), from.max(to).min(pattern.len()));
            pattern.replace_range(from..to, "*");
        }
        prop_assert!(fits(pattern.as_bytes(), image.as_bytes()), "{} {}", pattern, image);
    }
}

#[test]
fn rules_that_are_small_to_write_and_large_to_read_are_refused() {
    let long = "x".repeat(1 << 20);
    // Enough anchors for so many aliases not to look odd by their number.
    let anchors = (0..2_500).map(|at| format!("- &b{at} b\n")).collect::<Vec<_>>().concat();
    let aliases = vec!["*a"; 20_000].join(",");
    let doubled =
        (1..40).map(|at| format!("a{at}: &a{at} [*a{0},*a{0}]\n", at - 1)).collect::<Vec<_>>().concat();
    let nested = (0..40).map(|at| format!("&a{at} [")).collect::<Vec<_>>().concat();
    let many = vec!["{a: 1}"; 50_000].join(",");
    let merges: String = (0..20_000).map(|_| "- <<: *a\n").collect();
    for text in [
        format!("a: &a {long}\nb: [{aliases}]\n"),
        format!("a: &a {long}\nb:\n{anchors}c: [{aliases}]\n"),
        format!("a: &a {{x: {long}}}\nb:\n{anchors}c:\n{merges}"),
        format!("a0: &a0 []\n{doubled}"),
        format!("a: {nested}{many}{}\n", "]".repeat(40)),
        "[".repeat(1 << 20),
        "{a: ".repeat(1 << 18),
        "- ".repeat(1 << 20),
    ] {
        let start: String = text.chars().take(60).collect();
        assert!(matches!(text.parse::<Rules>(), Err(RulesError::Yaml(_))), "{start}");
    }
}

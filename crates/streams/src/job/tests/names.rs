use expect_test::expect;
use proptest::prelude::*;

use super::backfill;
use crate::job::name::label;
use crate::job::run_name;
use crate::kinds::Purpose;

fn name(stream: &str, kind: &str, number: u64) -> String {
    run_name(stream, "example.com", kind, &Purpose::Stream, number)
}

#[test]
fn a_name_tells_the_stream_and_the_run() {
    expect!["eu-2617c5fb60-1"].assert_eq(&name("eu", "Orders", 1));
    expect!["eu-shop-e597669641-12"].assert_eq(&name("eu.shop", "Orders", 12));
    expect!["long-long-long-long-long-long-long-long-long-long-9ff1695f85-1"].assert_eq(&name(
        &"long-".repeat(50),
        "Orders",
        1,
    ));
}

#[test]
fn streams_that_look_alike_have_different_names() {
    let names = [
        name("eu", "Orders", 1),
        name("eu", "Invoices", 1),
        run_name("eu", "other.com", "Orders", &Purpose::Stream, 1),
        name("eu.a", "Orders", 1),
        name("eu-a", "Orders", 1),
        name(&format!("{}a", "x".repeat(200)), "Orders", 1),
        name(&format!("{}b", "x".repeat(200)), "Orders", 1),
        name("eu", "Orders", 11),
        name("eu-1", "Orders", 1),
    ];
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
}

#[test]
fn a_label_holds_the_beginning_of_a_long_name() {
    assert_eq!(label("eu"), "eu");
    assert_eq!(label(&"x".repeat(64)), "x".repeat(63));
    assert_eq!(label(&format!("{}..y", "x".repeat(61))), "x".repeat(61));
}

proptest! {
    #[test]
    fn every_name_is_a_dns_label_and_short_enough(stream in "[a-z0-9]([-.a-z0-9]{0,250}[a-z0-9])?", number in 1_u64..) {
        for (purpose, max) in [(Purpose::Stream, 63), (backfill(), 63), (Purpose::Schedule, 52)] {
            let name = run_name(&stream, "example.com", "Orders", &purpose, number);
            let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            prop_assert!(name.len() <= max, "{}", name);
            prop_assert!(name.chars().all(plain), "{}", name);
            prop_assert!(!name.starts_with('-') && !name.ends_with('-'), "{}", name);
        }
    }
}

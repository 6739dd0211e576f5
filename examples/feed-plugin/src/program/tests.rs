use super::*;
use expect_test::{Expect, expect};
use std::future::{pending, ready};

const ORDERS: &str =
    r#"{"source": "shop/orders", "sink": "warehouse/orders", "jobTemplateRef": {"name": "feed"}}"#;

fn context(given: &[(&str, &str)]) -> Result<Context, ContextError> {
    let always = [("STREAMCONTEXT__STREAM_ID", "orders"), ("STREAMCONTEXT__STREAM_KIND", "Feed")];
    let all: Vec<_> = always.iter().chain(given).collect();
    Context::read(|name| all.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
}

async fn told(given: &[(&str, &str)], stop: impl Future<Output = ()>) -> String {
    let context = context(given).unwrap();
    let mut lines = Vec::new();
    let code = run(&context, |line| lines.push(line.to_owned()), stop).await;
    format!("{}\n[exit {code}]\n", lines.join("\n"))
}

async fn check(given: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&told(given, pending()).await);
}

#[tokio::test(start_paused = true)]
async fn a_backfill_ends_by_itself() {
    let about = r#"{"count": 1, "range": {"from": "2026-03-01"}}"#;
    check(
        &[
            ("STREAMCONTEXT__SPEC", ORDERS),
            ("STREAMCONTEXT__BACKFILL", "true"),
            ("STREAMCONTEXT__BACKFILL_ID", "march"),
            ("STREAMCONTEXT__OVERRIDE", about),
        ],
        expect![[r#"
            Feed orders backfills (march: 2026-03-01 to the end) shop/orders to warehouse/orders
            copied record 1
            ends with 0 after 1 records
            [exit 0]
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_with_a_schedule_ends_by_itself() {
    let spec = r#"{"source": "a", "sink": "b", "schedule": "@hourly", "count": 2}"#;
    check(
        &[("STREAMCONTEXT__SPEC", spec), ("STREAMCONTEXT__BACKFILL", "false"), ("SINK_TOKEN", "secret")],
        expect![[r#"
            Feed orders copies a to b, with a token
            copied record 1
            copied record 2
            ends with 0 after 2 records
            [exit 0]
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_fails_as_its_spec_says() {
    let spec = r#"{"source": "a", "sink": "b", "failWith": 75, "count": 0}"#;
    check(
        &[("STREAMCONTEXT__SPEC", spec)],
        expect![[r#"
            Feed orders copies a to b
            ends with 75 after 0 records
            [exit 75]
        "#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_runs_until_it_is_told_to_end() {
    let told_once =
        told(&[("STREAMCONTEXT__SPEC", ORDERS)], tokio::time::sleep(Duration::from_secs(11))).await;
    expect![[r#"
        Feed orders copies shop/orders to warehouse/orders
        copied record 1
        copied record 2
        told to end after 2 records
        [exit 143]
    "#]]
    .assert_eq(&told_once);
    assert!(told(&[("STREAMCONTEXT__SPEC", ORDERS)], ready(())).await.contains("after 0 records"));
}

#[test]
fn a_spec_may_be_in_a_file_below_the_pods_directory() {
    let root = std::env::temp_dir().join(format!("feed-plugin-{}", std::process::id()));
    std::fs::create_dir_all(root.join("mounted")).unwrap();
    std::fs::write(root.join("mounted/spec.json"), ORDERS).unwrap();
    let read = context(&[
        ("STREAMCONTEXT__SPEC_FILE", "/mounted/spec.json"),
        ("MAINSTAY_ROOT", root.to_str().unwrap()),
    ]);
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(read.unwrap().spec.source, "shop/orders");
}

#[test]
fn what_is_missing_is_named() {
    assert_eq!(
        context(&[]).unwrap_err().to_string(),
        "STREAMCONTEXT__SPEC is not set: this program is run by a stream's Job"
    );
    let wrong = context(&[("STREAMCONTEXT__SPEC", "{}")]).unwrap_err().to_string();
    assert_eq!(wrong, "STREAMCONTEXT__SPEC is not readable");
}

use super::*;

#[test]
fn a_handler_has_nine_tenths_of_what_the_caller_waits() {
    let registered = Duration::from_secs(10);
    assert_eq!(deadline(None, registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("timeout=10s"), registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("a=b&timeout=1s"), registered), Duration::from_millis(900));
    assert_eq!(deadline(Some("timeout=30s"), registered), Duration::from_secs(9));
    assert_eq!(deadline(Some("timeout=1m0s"), registered), Duration::from_secs(9));
}

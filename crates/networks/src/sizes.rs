//! What fits into the objects and variables that a network is written to. Pure.
//!
//! A server refuses a ConfigMap of more than a mebibyte, etcd any object of more than one and a half, and Linux a variable of more than 128 KiB.
//! What can grow with the number of peers is cut to these limits, and what was left out is counted.

/// Bytes of the text in a ConfigMap, as JSON. The rest of a mebibyte is for metadata.
pub const CONFIG_MAP_BYTES_MAX: usize = 960 * 1024;
/// Bytes of the peers in the status of a network. The spec of the same object may have a mebibyte of edges.
pub const STATUS_PEERS_BYTES_MAX: usize = 256 * 1024;
/// Peers that do not answer and are named in the status of a network.
pub const STATUS_UNREADY_MAX: usize = 100;
/// Bytes of a variable in a container's environment.
pub const VARIABLE_BYTES_MAX: usize = 96 * 1024;

/// Bytes of a text inside a JSON document, without its quotes.
pub fn in_json(text: &str) -> usize {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        // As six characters, `\u001f`.
        0..0x20 => 5,
        _ => 0,
    };
    text.bytes().fold(text.len(), |sum, byte| sum + escape(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_counted_is_what_is_written(text in "(.|[\"\\\\\n\r\t]|[\u{0}-\u{1f}]){0,40}") {
            // Two short escapes are counted as long ones.
            let written = serde_json::to_string(&text).unwrap().len() - 2;
            let short = text.chars().filter(|character| matches!(character, '\u{8}' | '\u{c}')).count();
            prop_assert_eq!(in_json(&text), written + 4 * short);
        }
    }
}

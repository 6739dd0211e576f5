//! OpenAPI v2: a document that describes nothing.
//!
//! kubectl falls back to this document where it cannot have the server validate: for a `kind: List`, and for
//! kinds it does not know. A 404 stops it there; a kind without a definition is one it leaves to the server,
//! which validates every object by the same rules. So the document says where the descriptions are and holds none.

use serde_json::{Value, json};

/// The content type of the protobuf form.
pub(crate) const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The name by which clients of Go still ask for it, which is none that they could read in an answer.
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// Whether a client wants the protobuf form.
pub(crate) fn wants_protobuf(accept: &str) -> bool {
    accept.contains(PROTOBUF) || accept.contains(PROTOBUF_ASKED)
}

const TITLE: &str = "Kubernetes";
const DESCRIPTION: &str = "Kinds are described by the documents under /openapi/v3.";

pub(crate) fn document(version: &str) -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": TITLE, "version": version, "description": DESCRIPTION},
        "paths": {},
        "definitions": {},
    })
}

/// The same, as a protobuf message of gnostic's `Document`.
pub(crate) fn document_protobuf(version: &str) -> Vec<u8> {
    let mut info = Vec::new();
    for (number, text) in [(1, TITLE), (2, version), (3, DESCRIPTION)] {
        push_field(number, text.as_bytes(), &mut info);
    }
    let mut document = Vec::new();
    push_field(1, b"2.0", &mut document);
    push_field(2, &info, &mut document);
    push_field(8, b"", &mut document);
    document
}

/// A field of bytes. All that are written here are shorter than 128, which one byte of length can say.
fn push_field(number: u8, content: &[u8], to: &mut Vec<u8>) {
    let length = content.len().min(127);
    to.extend([number << 3 | 2, u8::try_from(length).unwrap_or(127)]);
    to.extend_from_slice(&content[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_written_whole() {
        let message = document_protobuf("v1.36.3");
        let text = String::from_utf8_lossy(&message);
        for part in ["2.0", TITLE, "v1.36.3", DESCRIPTION] {
            assert!(text.contains(part), "{part}");
        }
        assert_eq!(message.len(), 2 + 3 + 2 + (2 + TITLE.len() + 2 + 7 + 2 + DESCRIPTION.len()) + 2);
        assert!(message.len() < 127);
    }
}

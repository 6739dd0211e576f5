//! Files in the body of a request, as `multipart/form-data` has them.

use bytes::Bytes;
use memchr::memmem;

/// The contents of all parts. None if it is not of that form.
pub(super) fn parts(content_type: &str, body: &Bytes) -> Option<Vec<Bytes>> {
    let delimiter = format!("\r\n--{}", boundary(content_type)?);
    let find = |bytes: &[u8]| memmem::find(bytes, delimiter.as_bytes());
    // The first delimiter may be at the very beginning, where no line ends before it.
    let first = &delimiter.as_bytes()[2..];
    let mut at = if body.starts_with(first) { first.len() } else { find(body)? + delimiter.len() };
    let mut parts = Vec::new();
    loop {
        if body[at..].starts_with(b"--") {
            return Some(parts);
        }
        // Headers end with an empty line; there may be none.
        let start = at + memmem::find(&body[at..], b"\r\n\r\n")? + 4;
        let end = start + find(&body[start..])?;
        parts.push(body.slice(start..end));
        at = end + delimiter.len();
    }
}

fn boundary(content_type: &str) -> Option<&str> {
    let mut fields = content_type.split(';').map(str::trim);
    if !fields.next()?.eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = fields.find_map(|field| field.strip_prefix("boundary="))?.trim_matches('"');
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPE: &str = "multipart/form-data; boundary=x7";

    fn read(body: &str) -> Option<Vec<Bytes>> {
        parts(TYPE, &Bytes::from(body.to_owned()))
    }

    #[test]
    fn files_are_found() {
        let one = "--x7\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nab\r\ncd\r\n--x7--\r\n";
        assert_eq!(read(one).unwrap(), ["ab\r\ncd"]);
        let two = "before\r\n--x7\r\nA: b\r\n\r\none\r\n--x7\r\n\r\n\r\n--x7--";
        assert_eq!(read(two).unwrap(), ["one", ""]);
        assert_eq!(read("--x7--").unwrap(), [""; 0]);
    }

    #[test]
    fn anything_else_is_refused() {
        for body in ["", "--x7", "--x7\r\nA: b\r\n\r\nno end", "--y\r\n\r\n\r\n\r\n--y--", "hello"] {
            assert_eq!(read(body), None, "{body}");
        }
        for content_type in ["", "text/plain", "multipart/form-data", "multipart/form-data; boundary="] {
            assert_eq!(parts(content_type, &Bytes::from_static(b"--x7--")), None, "{content_type}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_in_a_file_comes_out(content: Vec<u8>) {
            prop_assume!(memmem::find(&content, b"--x7").is_none());
            let body = [b"--x7\r\nA: b\r\n\r\n", content.as_slice(), b"\r\n--x7--\r\n"].concat();
            prop_assert_eq!(parts(TYPE, &body.into()), Some(vec![Bytes::from(content)]));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in "(--x7|\r\n|--|a){0,12}") {
            let _ = read(&bytes);
        }
    }
}

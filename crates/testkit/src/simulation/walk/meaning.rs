//! What fields are for, told from their names: a table of what is common among Kubernetes' kinds.
//!
//! A meaning only suggests values; the schema decides whether they are allowed.

use super::formats::{doubled, samples};

/// A field by any of these names says how many of something there shall be. No world can hold a million of them.
const COUNTS: [&str; 14] = [
    "replicas",
    "replica",
    "count",
    "instances",
    "shards",
    "nodes",
    "members",
    "workers",
    "peers",
    "copies",
    "partitions",
    "parallelism",
    "completions",
    "size",
];

/// The most of something that a walk asks for.
pub(super) const COUNT_MAX: i64 = 64;

/// Whether a field says how many of something there shall be.
pub(super) fn is_count(name: &str) -> bool {
    words(name).iter().any(|word| COUNTS.contains(&word.as_str()))
}

/// Numbers that a field of this name may sensibly have, each with what it is.
pub(super) fn numbers(name: &str, present: Option<i64>) -> Vec<(i64, &'static str)> {
    let words = words(name);
    if is_count(name) {
        let more = present.unwrap_or(1).saturating_add(1);
        vec![(0, "none"), (1, "one"), (more, "one more")]
    } else if words.last().is_some_and(|word| word == "port" || word == "ports") {
        let other = present.filter(|port| (1..65535).contains(port)).map_or(8081, |port| port + 1);
        vec![(other, "another port"), (1, "first port"), (65535, "last port")]
    } else if words.iter().any(|word| word.starts_with("percent")) {
        vec![(50, "half"), (0, "none"), (100, "all")]
    } else {
        Vec::new()
    }
}

/// Texts that a field of this name may sensibly have, each with what it is.
pub(super) fn texts(name: &str, present: Option<&str>) -> Vec<(String, &'static str)> {
    let words = words(name);
    let any = |texts: &[&str], what| texts.iter().map(|text| ((*text).to_owned(), what)).collect();
    match words.last().map_or("", String::as_str) {
        "image" => vec![(other_image(present), "another tag")],
        "cpu" => quantities(present, "250m"),
        "memory" | "mem" => quantities(present, "256Mi"),
        "storage" | "size" | "capacity" | "disk" => quantities(present, "2Gi"),
        "schedule" | "cron" => any(&["*/5 * * * *", "0 3 * * *"], "another schedule"),
        "timeout" | "interval" | "duration" | "period" | "ttl" | "delay" | "backoff" | "age"
        | "retention" | "window" => any(samples("duration"), "another duration"),
        "url" | "uri" | "endpoint" => any(samples("uri"), "another address"),
        "host" | "hostname" | "domain" => any(samples("hostname"), "another host"),
        "email" => any(samples("email"), "another address"),
        "version" | "tag" => vec![(raised(present.unwrap_or("1.0.0")), "another version")],
        _ => Vec::new(),
    }
}

/// Names for entries of a map of this name, the first ones first.
pub(super) fn entries(name: &str) -> &'static [&'static str] {
    match name {
        "limits" | "requests" => &["cpu", "memory", "ephemeral-storage"],
        _ => &["walked", "walked-2", "walked-3"],
    }
}

/// A larger quantity, as storage can only grow; nothing for a text that is no quantity.
pub(super) fn quantities(present: Option<&str>, usual: &str) -> Vec<(String, &'static str)> {
    match present {
        None => vec![(usual.to_owned(), "a quantity")],
        Some(present) => doubled(present).into_iter().map(|twice| (twice, "twice as much")).collect(),
    }
}

/// The same image by another tag.
fn other_image(present: Option<&str>) -> String {
    let Some(present) = present.filter(|image| !image.is_empty()) else {
        return "registry.example.org/walked:1".to_owned();
    };
    let image = present.split('@').next().unwrap_or(present);
    let host = image.rfind('/').map_or(0, |slash| slash + 1);
    match image[host..].split_once(':') {
        Some((name, tag)) => format!("{}{name}:{}", &image[..host], raised(tag)),
        None => format!("{image}:walked"),
    }
}

/// A version whose last number is one higher; any other text with a number added.
fn raised(version: &str) -> String {
    let start = version
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |at| at + version[at..].chars().next().map_or(0, char::len_utf8));
    match version[start..].parse::<u64>() {
        Ok(number) if number < u64::MAX => format!("{}{}", &version[..start], number + 1),
        _ => format!("{version}-2"),
    }
}

/// `containerPort` is of the words `container` and `port`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut last = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && !last.is_uppercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        last = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_word_by_word() {
        assert_eq!(words("containerPort"), ["container", "port"]);
        assert_eq!(words("externalURL"), ["external", "url"]);
        assert_eq!(words("ephemeral-storage"), ["ephemeral", "storage"]);
        assert_eq!(numbers("support", Some(3)), []);
        assert_eq!(numbers("hostPort", Some(80))[0], (81, "another port"));
    }

    #[test]
    fn an_image_keeps_its_name_and_gets_another_tag() {
        let other = |image| other_image(Some(image));
        assert_eq!(other("nginx"), "nginx:walked");
        assert_eq!(other("nginx:1.25"), "nginx:1.26");
        assert_eq!(other("nginx:stable"), "nginx:stable-2");
        assert_eq!(other("reg.example.org:5000/a/nginx"), "reg.example.org:5000/a/nginx:walked");
        assert_eq!(other("a/b:v1@sha256:00"), "a/b:v2");
    }
}

//! Files that two entries of one volume put in the same place.

use super::super::json::{list, set, text};
use serde_json::Value;

/// Where a file goes, and which part of a projected volume it is from.
struct Target<'a> {
    path: &'a str,
    source: String,
}

impl Target<'_> {
    fn shown(&self) -> String {
        if self.source.is_empty() {
            format!("{:?}", self.path)
        } else {
            format!("{:?} ({})", self.path, self.source)
        }
    }

    fn overlaps(&self, other: &Target<'_>) -> bool {
        let inside = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        !self.path.is_empty()
            && !other.path.is_empty()
            && (inside(self.path, other.path) || inside(other.path, self.path))
    }
}

/// Warnings about the volumes of a pod spec.
pub(super) fn warnings(spec: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in list(spec, "volumes") {
        let name = text(volume, "name");
        for (field, what, key) in [
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let Some(source) = set(volume, field) else { continue };
            let described =
                if key.is_empty() { what.to_owned() } else { format!("{what} {:?}", text(source, key)) };
            warn(name, &described, &items(source, ""), &mut warnings);
        }
        let Some(projected) = set(volume, "projected") else { continue };
        let mut targets = Vec::new();
        for source in list(projected, "sources") {
            if source.as_object().is_none_or(|parts| parts.values().all(Value::is_null)) {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
                continue;
            }
            targets.extend(projection(source));
        }
        warn(name, "Projected", &targets, &mut warnings);
    }
    warnings
}

fn warn(volume: &str, what: &str, targets: &[Target<'_>], warnings: &mut Vec<String>) {
    for (index, target) in targets.iter().enumerate() {
        for earlier in targets[..index].iter().filter(|earlier| target.overlaps(earlier)) {
            warnings.push(format!(
                "volume {volume:?} ({what}): overlapping paths: {} with {}",
                target.shown(),
                earlier.shown()
            ));
        }
    }
}

fn items<'a>(source: &'a Value, described: &str) -> Vec<Target<'a>> {
    list(source, "items").iter().map(|item| target(text(item, "path"), described.to_owned())).collect()
}

fn target(path: &str, source: String) -> Target<'_> {
    Target { path: path.trim_end_matches('/'), source }
}

fn projection(source: &Value) -> Vec<Target<'_>> {
    for (field, what) in [("configMap", "ConfigMap"), ("secret", "Secret")] {
        if let Some(part) = set(source, field).filter(|part| set(part, "items").is_some()) {
            return items(part, &format!("{what} {:?}", text(part, "name")));
        }
    }
    if let Some(part) = set(source, "downwardAPI").filter(|part| set(part, "items").is_some()) {
        return items(part, "DownwardAPI");
    }
    if let Some(token) = set(source, "serviceAccountToken") {
        return vec![target(text(token, "path"), "ServiceAccountToken".to_owned())];
    }
    if let Some(bundle) = set(source, "clusterTrustBundle") {
        let name = set(bundle, "name").or_else(|| set(bundle, "signerName")).and_then(Value::as_str);
        let described = format!("ClusterTrustBundle {:?}", name.unwrap_or_default());
        return vec![target(text(bundle, "path"), described)];
    }
    Vec::new()
}

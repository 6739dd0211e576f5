//! Temporary.
use super::compare::differences;
use super::state::State;
#[derive(Debug)]
pub(super) struct Normal(serde_json::Value);
#[derive(Clone, Debug)]
pub(super) struct Ignored;
impl Ignored {
    pub(super) fn anywhere(_: &str) -> Self {
        Self
    }
    pub(super) fn in_resource(_: &str, _: &str) -> Self {
        Self
    }
}
pub(super) fn normalise(state: &State, _: &[Ignored]) -> Normal {
    let mut all = serde_json::Map::new();
    for (place, object) in state.objects() {
        if place.to_string().contains("lease") || place.to_string().contains("event") {
            continue;
        }
        let mut object = object.clone();
        if let Some(m) = object["metadata"].as_object_mut() {
            for f in ["uid", "resourceVersion", "creationTimestamp", "generation", "ownerReferences"] {
                m.remove(f);
            }
        }
        fn strip(v: &mut serde_json::Value) {
            match v {
                serde_json::Value::Object(m) => {
                    m.remove("lastTransitionTime");
                    m.remove("observedGeneration");
                    m.remove("startTime");
                    m.values_mut().for_each(strip)
                }
                serde_json::Value::Array(a) => a.iter_mut().for_each(strip),
                _ => {}
            }
        }
        strip(&mut object);
        all.insert(place.to_string(), object);
    }
    Normal(serde_json::Value::Object(all))
}
impl Normal {
    pub(super) fn differences(&self, other: &Normal) -> Vec<String> {
        differences(&self.0, &other.0).iter().map(|d| d.render(true)).collect()
    }
}

//! From property to property: what is proposed for each, and what of it is kept.
//!
//! What is below something that is not set is walked too, as if the smallest valid value stood there. A change is kept
//! if the spec, with defaults, becomes another one, if the schema refuses nothing of it that it did not refuse before,
//! and if a merge patch can bring it about.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::compare::shorten;
use super::compounds;
use super::judge::refusals;
use super::place::{Step, get, merged, patch_between, put, render};
use super::scalars::{self, Proposal};
use super::schema::{Schema, Type};
use super::{SpecChange, SpecWalk};

/// The most changes of one property. A choice out of a list is always made in full.
const CHANGES_MAX: usize = 6;

/// The most changes of a property that is part of something not set.
const CHANGES_BELOW_UNSET_MAX: usize = 2;

/// How many properties deep the walk goes.
const DEPTH_MAX: usize = 8;

/// All changes of a complete spec.
pub(super) fn walk(schema: &Schema, spec: &Value) -> SpecWalk {
    let mut tour = Tour { root: schema, spec, refused: refusals(schema, spec), walk: SpecWalk::default() };
    tour.visit(&Stop {
        schema,
        at: Vec::new(),
        ground: spec,
        required: true,
        frozen: frozen_in(schema).collect(),
    });
    let mut walk = tour.walk;
    walk.changes.sort_by(|one, other| one.path.cmp(&other.path));
    walk.untouched.sort();
    walk
}

struct Tour<'a> {
    root: &'a Schema,
    spec: &'a Value,
    /// What the schema refuses of the spec as it is, and so does not count against a change.
    refused: BTreeSet<String>,
    walk: SpecWalk,
}

/// A property on the way.
struct Stop<'a> {
    schema: &'a Schema,
    at: Vec<Step>,
    /// The spec in which everything around the property is set.
    ground: &'a Value,
    required: bool,
    frozen: Vec<Frozen>,
}

/// A property that may not be changed.
#[derive(Clone)]
struct Frozen {
    /// From where the rule is looked at: empty for that place itself.
    path: String,
    rule: String,
}

impl Stop<'_> {
    fn name(&self) -> &str {
        let fields = self.at.iter().rev().filter_map(|step| match step {
            Step::Field(name) => Some(name.as_str()),
            Step::Item(_) => None,
        });
        fields.into_iter().next().unwrap_or("spec")
    }

    fn path(&self) -> String {
        let path = render(&self.at);
        match path.chars().next() {
            None => "spec".to_owned(),
            Some('[') => format!("spec{path}"),
            Some(_) => format!("spec.{path}"),
        }
    }

    fn depth(&self) -> usize {
        self.at.iter().filter(|step| matches!(step, Step::Field(_))).count()
    }

    fn present(&self) -> Option<&Value> {
        get(self.ground, &self.at)
    }
}

impl Tour<'_> {
    fn visit(&mut self, stop: &Stop<'_>) {
        if let Some(Frozen { rule, .. }) = stop.frozen.iter().find(|frozen| frozen.path.is_empty()) {
            return self.leave(&stop.path(), &format!("immutable ({rule})"));
        }
        if stop.depth() > DEPTH_MAX {
            return self.leave(&stop.path(), &format!("deeper than {DEPTH_MAX} properties"));
        }
        let kept = self.change(stop);
        if stop.schema.is_leaf() {
            if kept == 0 && !stop.at.is_empty() {
                self.leave(&stop.path(), "no other value is known that its schema allows");
            }
            return;
        }
        self.descend(stop);
    }

    fn leave(&mut self, path: &str, why: &str) {
        self.walk.untouched.push(format!("{path}: {why}"));
    }

    /// Changes the property as a whole and tells in how many ways.
    fn change(&mut self, stop: &Stop<'_>) -> usize {
        let limit = if stop.ground == self.spec { CHANGES_MAX } else { CHANGES_BELOW_UNSET_MAX };
        let limit = limit.max(stop.schema.choices.len());
        let mut kept: Vec<SpecChange> = Vec::new();
        // The last resort for what is part of something not set: what was made up for it.
        let made_up = stop
            .present()
            .filter(|_| stop.schema.is_leaf())
            .map(|present| Proposal::new(present.clone(), "set with what it is part of"));
        let others = proposals(stop);
        for (proposal, is_other) in
            others.iter().map(|other| (other, true)).chain(made_up.iter().map(|it| (it, false)))
        {
            if kept.len() == limit || !(is_other || kept.is_empty()) {
                break;
            }
            if let Some(change) = self.judge(stop, proposal)
                && kept.iter().all(|other| other.patch != change.patch)
            {
                kept.push(change);
            }
        }
        let count = kept.len();
        self.walk.changes.extend(kept);
        count
    }

    fn judge(&self, stop: &Stop<'_>, proposal: &Proposal) -> Option<SpecChange> {
        let spec = put(stop.ground, &stop.at, proposal.value.clone());
        let complete = self.root.complete(&spec);
        let patch = patch_between(self.spec, &spec);
        let passes = complete != *self.spec
            && merged(self.spec, &patch) == spec
            && refusals(self.root, &complete).is_subset(&self.refused);
        passes.then(|| {
            let path = stop.path();
            let before = get(self.spec, &stop.at);
            let name = path.strip_prefix("spec.").unwrap_or(&path);
            let label = label(name, before, proposal);
            SpecChange { label, path, patch: json!({"spec": patch}), spec }
        })
    }

    fn descend(&mut self, stop: &Stop<'_>) {
        let schema = stop.schema;
        let Some(present) = stop.present().cloned().or_else(|| compounds::smallest(schema, stop.name()))
        else {
            return self.leave(&stop.path(), "no valid value could be made up for it");
        };
        let ground = put(stop.ground, &stop.at, Some(present.clone()));
        let alone = put(&ground, &stop.at, Some(without_optional(schema, &present)));
        for (name, below) in &schema.properties {
            let at = [&stop.at[..], &[Step::Field(name.clone())]].concat();
            let required = schema.required.contains(name);
            let inherited = stop.frozen.iter().filter_map(|frozen| frozen.seen_from(name));
            let frozen: Vec<Frozen> = inherited.chain(frozen_in(below)).collect();
            let (changed, untouched) = (self.walk.changes.len(), self.walk.untouched.len());
            self.visit(&Stop {
                schema: below,
                at: at.clone(),
                ground: &ground,
                required,
                frozen: frozen.clone(),
            });
            // Fields of which only one may be set are each set in the place of the others.
            if self.walk.changes.len() == changed && alone != ground {
                self.walk.untouched.truncate(untouched);
                self.visit(&Stop { schema: below, at, ground: &alone, required, frozen });
            }
        }
        self.enter_list(stop, &ground, &present);
        self.enter_map(stop, &ground, &present);
    }

    /// Into the first item of a list; into one that is made up if there is none.
    fn enter_list(&mut self, stop: &Stop<'_>, ground: &Value, present: &Value) {
        let Some(below) = stop.schema.items.as_deref() else { return };
        let first = present.get(0).cloned().or_else(|| compounds::fresh_item(stop.schema, stop.name(), &[]));
        let at = [&stop.at[..], &[Step::Item(0)]].concat();
        match first {
            Some(_) if present.get(0).is_some() => {
                self.visit(&Stop {
                    schema: below,
                    at,
                    ground,
                    required: true,
                    frozen: frozen_in(below).collect(),
                });
            }
            Some(item) => {
                let ground = put(ground, &stop.at, Some(json!([item])));
                self.visit(&Stop {
                    schema: below,
                    at,
                    ground: &ground,
                    required: true,
                    frozen: frozen_in(below).collect(),
                });
            }
            None => self.leave(&format!("{}[0]", stop.path()), "no valid item could be made up"),
        }
    }

    /// Into the first entry of a map; into one that is made up if there is none.
    fn enter_map(&mut self, stop: &Stop<'_>, ground: &Value, present: &Value) {
        let (Some(below), Some(fields)) = (stop.schema.additional.as_deref(), present.as_object()) else {
            return;
        };
        let own = fields.iter().find(|(name, _)| !stop.schema.properties.contains_key(*name));
        let fresh = || compounds::fresh_entry(stop.schema, stop.name(), fields);
        let Some((name, value)) = own.map(|(name, value)| (name.clone(), value.clone())).or_else(fresh)
        else {
            return self.leave(&stop.path(), "no valid entry could be made up");
        };
        let at = [&stop.at[..], &[Step::Field(name)]].concat();
        let ground = put(ground, &at, Some(value));
        self.visit(&Stop {
            schema: below,
            at,
            ground: &ground,
            required: false,
            frozen: frozen_in(below).collect(),
        });
    }
}

/// Everything that the property could be instead, best first.
fn proposals(stop: &Stop<'_>) -> Vec<Proposal> {
    let (schema, present) = (stop.schema, stop.present());
    let mut found = match schema.kind {
        Type::Object | Type::Array | Type::Any if schema.choices.is_empty() => {
            compounds::proposals(schema, stop.name(), present)
        }
        _ => scalars::proposals(schema, stop.name(), present),
    };
    found.retain(|proposal| proposal.value.as_ref().is_none_or(|value| !is_same(Some(value), present)));
    if present.is_some() && !stop.required && !stop.at.is_empty() {
        let why = match &schema.default {
            Some(default) => format!("removed, so {} by default", shorten(default)),
            None => "removed".to_owned(),
        };
        // Early, so that no limit cuts it off: fields that are gone again are forgotten more often than any other.
        found.insert(found.len().min(2), Proposal { value: None, why });
    }
    if schema.nullable {
        found.push(Proposal::new(Value::Null, "null"));
    }
    found
}

/// An object with nothing but the fields that it must have.
fn without_optional(schema: &Schema, object: &Value) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let needed = |name: &String| schema.required.contains(name) || !schema.properties.contains_key(name);
    fields
        .iter()
        .filter(|(name, _)| needed(name))
        .map(|(name, field)| (name.clone(), field.clone()))
        .collect()
}

fn is_same(value: Option<&Value>, present: Option<&Value>) -> bool {
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    value == present || (number(value).is_some() && number(value) == number(present))
}

fn label(name: &str, before: Option<&Value>, proposal: &Proposal) -> String {
    let why = &proposal.why;
    let is_whole = |value: Option<&Value>| value.is_some_and(|it| it.is_object() || it.is_array());
    if is_whole(before) || is_whole(proposal.value.as_ref()) {
        return format!("{name}: {why}");
    }
    let text = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), shorten);
    format!("{name}: {} -> {} ({why})", text(before), text(proposal.value.as_ref()))
}

impl Frozen {
    /// The same from one of the fields of where it is looked at; None if it is not about that field.
    fn seen_from(&self, name: &str) -> Option<Self> {
        let rest = self.path.strip_prefix(name)?;
        let path = if rest.is_empty() { rest } else { rest.strip_prefix('.')? };
        Some(Self { path: path.to_owned(), rule: self.rule.clone() })
    }
}

fn frozen_in(schema: &Schema) -> impl Iterator<Item = Frozen> + use<'_> {
    schema.rules.iter().flat_map(|rule| frozen_by(rule).map(|path| Frozen { path, rule: rule.clone() }))
}

/// The fields that a rule freezes, by their path below where the rule stands: empty for the place itself. A field that
/// may be set once counts as frozen: to change it back is refused.
fn frozen_by(rule: &str) -> impl Iterator<Item = String> + use<'_> {
    rule.split("&&").flat_map(|part| part.split("||")).filter_map(|part| {
        let (left, right) =
            part.trim_matches(|c: char| c.is_whitespace() || "()".contains(c)).split_once("==")?;
        let (left, right) = (left.trim(), right.trim());
        let (new, old) = if left.starts_with("oldSelf") { (right, left) } else { (left, right) };
        let (new, old) = (new.strip_prefix("self")?, old.strip_prefix("oldSelf")?);
        (new == old).then(|| new.trim_start_matches('.').to_owned())
    })
}

//! Each stream, read with what is there and with what would be. Pure.

use super::super::find::{Class, Found};
use super::documents::{Documents, key};
use k8s_openapi::api::core::v1::Secret;
use mainstay::Error;
use mainstay_streams::kinds::{Purpose, StreamingJobTemplate};
use mainstay_streams::plan::{Cause, Effect, Side, changed_paths, compare};
use mainstay_streams::wish::Materials;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Templates by namespace and name.
type Templates = BTreeMap<(String, String), StreamingJobTemplate>;

/// The templates of a namespace. Secrets are not looked at: a plan does not change any.
struct Within<'a> {
    namespace: &'a str,
    templates: &'a Templates,
}

impl Materials for Within<'_> {
    fn template(&self, name: &str) -> Result<Option<StreamingJobTemplate>, Error> {
        Ok(self.templates.get(&(self.namespace.to_owned(), name.to_owned())).cloned())
    }

    fn secret(&self, _: &str) -> Result<Option<Secret>, Error> {
        Ok(None)
    }
}

/// What is there, and what would be.
pub(super) struct World {
    now: Vec<Rc<Class>>,
    then: Vec<Rc<Class>>,
    /// Classes of the documents, with the paths that change.
    changed_classes: BTreeMap<String, Vec<String>>,
    templates_now: Templates,
    templates_then: Templates,
    /// Templates of the documents, with the paths that change.
    changed_templates: BTreeMap<(String, String), Vec<String>>,
    pub(super) streams: Vec<Found>,
    pub(super) left_out: Vec<(String, String)>,
}

/// What would become of a stream.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) class: String,
    /// As kubectl names it.
    pub(super) named: String,
    pub(super) runs: bool,
    pub(super) effect: Effect,
    /// What of the documents does it.
    pub(super) because: Vec<String>,
}

impl Planned {
    /// Whether it is something.
    pub(super) fn happens(&self) -> bool {
        self.effect != Effect::Nothing
    }
}

impl World {
    pub(super) fn new(
        now: Vec<Rc<Class>>,
        templates: Vec<StreamingJobTemplate>,
        documents: Documents,
    ) -> Self {
        let templates_now: Templates =
            templates.into_iter().map(|template| (key(&template), template)).collect();
        let (mut then, mut templates_then) = (now.clone(), templates_now.clone());
        let (mut changed_classes, mut changed_templates) = (BTreeMap::new(), BTreeMap::new());
        for class in &documents.classes {
            let class = Rc::new(Class::new(class));
            let old = now.iter().find(|known| known.name == class.name);
            let old = old.map_or(Value::Null, |old| json!({"spec": data(&old.config)}));
            changed_classes
                .insert(class.name.clone(), changed_paths(&old, &json!({"spec": data(&class.config)})));
            then.retain(|known| known.name != class.name);
            then.push(class);
        }
        for template in documents.templates {
            let spec = |template: &StreamingJobTemplate| json!({"spec": template.spec});
            let old = templates_now.get(&key(&template)).map_or(Value::Null, spec);
            changed_templates.insert(key(&template), changed_paths(&old, &spec(&template)));
            templates_then.insert(key(&template), template);
        }
        World {
            now,
            then,
            changed_classes,
            templates_now,
            templates_then,
            changed_templates,
            streams: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// The classes whose streams matter, as they are now or would be, each kind once.
    pub(super) fn classes(&self) -> Vec<Rc<Class>> {
        let mut all: Vec<Rc<Class>> = self.now.clone();
        all.extend(self.then.iter().filter(|new| !self.now.iter().any(|old| old.kind == new.kind)).cloned());
        all
    }

    /// What would become of the streams that the documents are about, by namespace and name.
    pub(super) fn plan(&self) -> Result<Vec<Planned>, Error> {
        let mut planned = Vec::new();
        for stream in &self.streams {
            planned.extend(self.plan_one(stream)?);
        }
        planned.sort_by(|one, other| {
            (&one.namespace, &one.name, &one.class).cmp(&(&other.namespace, &other.name, &other.class))
        });
        Ok(planned)
    }

    fn plan_one(&self, found: &Found) -> Result<Option<Planned>, Error> {
        let namespace = found.stream().namespace().to_owned();
        let of_kind = |class: &&Rc<Class>| class.kind == found.class.kind;
        let (now, then) = (self.now.iter().find(of_kind), self.then.iter().find(of_kind));
        let because = self.because(found, now, then);
        if because.is_empty() {
            return Ok(None);
        }
        let status = found.status();
        let before = Within { namespace: &namespace, templates: &self.templates_now };
        let after = Within { namespace: &namespace, templates: &self.templates_then };
        let effect = match then {
            None => Effect::IsLeft,
            Some(then) => {
                let now = now.map(|class| Side { class: &class.config, materials: &before });
                compare(&found.object, &status, now, Side { class: &then.config, materials: &after })?
            }
        };
        let because = because.into_iter().filter(|(cause, _)| matters(*cause, &effect));
        let because = because.map(|(_, text)| text).filter(|text| !text.is_empty()).collect();
        Ok(Some(Planned {
            name: found.stream().name().to_owned(),
            class: then.or(now).map(|class| class.name.clone()).unwrap_or_default(),
            named: found.named(),
            runs: status.run.is_some(),
            effect,
            because,
            namespace,
        }))
    }

    /// What of the documents a stream has to do with.
    fn because(
        &self,
        found: &Found,
        now: Option<&Rc<Class>>,
        then: Option<&Rc<Class>>,
    ) -> Vec<(Cause, String)> {
        let mut because = Vec::new();
        let mut known = Vec::new();
        for class in [now, then].into_iter().flatten() {
            if let Some(paths) =
                self.changed_classes.get(&class.name).filter(|_| !known.contains(&&class.name))
            {
                because.push((Cause::Spec, told(&format!("class {}", class.name), paths)));
                known.push(&class.name);
            }
            let stream = mainstay_streams::wish::Stream::new(&found.object, &class.config);
            let any_backfill = Purpose::Backfill { request: None, id: String::new(), reload: None };
            for purpose in [Purpose::Stream, any_backfill] {
                let Ok((name, _)) = stream.template_name(&purpose) else { continue };
                let key = (stream.namespace().to_owned(), name.to_owned());
                let Some(paths) = self.changed_templates.get(&key) else { continue };
                let text = told(&format!("template {name}"), paths);
                if !because.iter().any(|(_, known)| *known == text) {
                    because.push((Cause::Template, text));
                }
            }
        }
        because
    }
}

/// Whether a change can be what does this.
fn matters(cause: Cause, effect: &Effect) -> bool {
    match effect {
        Effect::Restarts(causes) if cause == Cause::Template => causes.contains(&Cause::Template),
        Effect::Restarts(causes) => causes.contains(&Cause::Spec) || causes.contains(&Cause::Mode),
        Effect::Stops(_) | Effect::IsLeft => cause != Cause::Template,
        _ => true,
    }
}

/// A document with a few paths that it changes, and how many more; nothing if it changes none.
fn told(document: &str, paths: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match paths.len() {
        0 => String::new(),
        _ if paths == [""] => format!("{document} is new"),
        number if number > SHOWN => format!("{document}: {shown} and {} more", number - SHOWN),
        _ => format!("{document}: {shown}"),
    }
}

/// What of a class a stream is read by.
fn data(config: &mainstay_streams::config::StreamClassConfig) -> Value {
    let paths = &config.paths;
    json!({
        "apiGroupRef": config.api_group_ref, "apiVersion": config.api_version, "kindRef": config.kind_ref,
        "pluralName": config.plural_name, "secretRefs": config.secret_refs, "stopped": config.stopped,
        "paths": {
            "jobTemplateRef": paths.job_template_ref, "suspended": paths.suspended, "schedule": paths.schedule,
            "scheduledJobTemplateRef": paths.scheduled_job_template_ref,
            "backfillJobTemplateRef": paths.backfill_job_template_ref,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::{class, found};
    use super::super::render;
    use super::*;
    use crate::output::Paint;
    use expect_test::{Expect, expect};

    fn template(name: &str, image: &str) -> StreamingJobTemplate {
        serde_json::from_value(json!({
            "apiVersion": "streams.mainstay.dev/v1alpha1", "kind": "StreamingJobTemplate",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"template": {"spec": {"template": {"spec": {"containers": [{"name": "feed", "image": image}]}}}}},
        }))
        .unwrap()
    }

    /// Two streams without a run: one that is suspended, one whose template is not there.
    fn check(documents: Documents, expected: &Expect) {
        let now = vec![Rc::new(Class::new(&class("feeds")))];
        let mut world = World::new(now, vec![template("feed", "feed:1")], documents);
        world.streams = vec![
            found("feeds", json!({"spec": {"suspended": true}})),
            found(
                "feeds",
                json!({"metadata": {"name": "lost"}, "spec": {"jobTemplateRef": {"name": "gone"}, "paused": true}}),
            ),
        ];
        let planned = world.plan().unwrap();
        expected.assert_eq(&(render::table(&planned, Paint::NONE) + &render::summary(&planned)));
    }

    #[test]
    fn a_new_template_mends_what_waits_for_it() {
        let templates = vec![template("gone", "feed:1"), template("feed", "feed:2")];
        check(
            Documents { classes: vec![], templates },
            &expect![[r#"
            NAMESPACE   STREAM   CLASS   RESTARTS   WHY
            shop        lost     feeds   starts     what was wrong with it is mended (template gone is new)
            shop        orders   feeds   no         it stays as it is
            something would happen to 1 of 2 streams; kubectl apply has it happen, as fast as the class allows
        "#]],
        );
    }

    #[test]
    fn another_path_suspends_other_streams() {
        let mut changed = class("feeds");
        changed.spec.paths = serde_json::from_value(json!({"suspended": "spec.paused"})).unwrap();
        check(
            Documents { classes: vec![changed], templates: vec![] },
            &expect![[r#"
            NAMESPACE   STREAM   CLASS   RESTARTS   WHY
            shop        lost     feeds   stops      suspended by its spec (class feeds: spec.paths.suspended)
            shop        orders   feeds   starts     it is not suspended any more (class feeds: spec.paths.suspended)
            something would happen to 2 of 2 streams; kubectl apply has it happen, as fast as the class allows
        "#]],
        );
    }

    #[test]
    fn what_no_stream_uses_has_nothing_to_do_with_any() {
        check(
            Documents { classes: vec![], templates: vec![template("other", "x")] },
            &expect![[r#"
            no stream has to do with it
        "#]],
        );
    }
}

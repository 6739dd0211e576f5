//! A stream, read by its class's paths.

use serde_json::{Map, Value};

use super::reference::{Target, field, name, wrong};
use super::{INVALID_SPEC, Mode, Problem, Suspension, cron};
use crate::config::StreamClassConfig;
use crate::kinds::{GROUP, Purpose, annotations};

const TEMPLATE: Target = Target { kind: "StreamingJobTemplate", group: GROUP };
const SECRET: Target = Target { kind: "Secret", group: "" };

/// A stream and its class. Each of its fields is read when it is asked for, so that what is wrong with one says nothing about others.
#[derive(Debug, Clone, Copy)]
pub struct Stream<'a> {
    object: &'a Value,
    class: &'a StreamClassConfig,
}

impl<'a> Stream<'a> {
    /// An object of the class's kind.
    pub fn new(object: &'a Value, class: &'a StreamClassConfig) -> Self {
        Self { object, class }
    }

    /// Its class.
    pub fn class(&self) -> &'a StreamClassConfig {
        self.class
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.metadata("name")
    }

    /// Its namespace.
    pub fn namespace(&self) -> &'a str {
        self.metadata("namespace")
    }

    /// Its uid.
    pub fn uid(&self) -> &'a str {
        self.metadata("uid")
    }

    fn metadata(&self, field: &str) -> &'a str {
        self.object["metadata"][field].as_str().unwrap_or_default()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&'a str> {
        self.object["metadata"]["annotations"][key].as_str()
    }

    /// Why it shall not run, all of it: its spec, its annotation, then downtimes by their keys.
    pub fn suspensions(&self) -> Result<Vec<Suspension>, Problem> {
        let mut all = Vec::new();
        let path = &self.class.paths.suspended;
        match field(self.object, path)? {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => all.push(Suspension::Spec),
            Some(other) => return Err(wrong(path, other, "true or false")),
        }
        match self.annotation(annotations::SUSPEND) {
            None | Some("false" | "") => {}
            Some("true") => all.push(Suspension::Annotation),
            Some(other) => {
                let path = format!("metadata.annotations[{}]", annotations::SUSPEND);
                let message = format!("is {other:?}, must be \"true\" or \"false\"");
                return Err(Problem { reason: INVALID_SPEC, path, message });
            }
        }
        let annotated = self.object["metadata"]["annotations"].as_object().into_iter().flat_map(Map::keys);
        let mut downtimes: Vec<&str> =
            annotated.filter_map(|key| key.strip_prefix(annotations::DOWNTIME)).collect();
        downtimes.sort_unstable();
        all.extend(downtimes.into_iter().map(|key| Suspension::Downtime(key.to_owned())));
        Ok(all)
    }

    /// When it runs. A schedule that cannot be read is one nonetheless: such a stream does not run all the time instead.
    pub fn mode(&self) -> Mode {
        match self.schedule() {
            Ok(None) => Mode::ChangeCapture,
            Ok(Some(_)) | Err(_) => Mode::Scheduled,
        }
    }

    /// Its cron schedule. An empty one is none.
    pub fn schedule(&self) -> Result<Option<&'a str>, Problem> {
        let path = &self.class.paths.schedule;
        let text = match field(self.object, path)? {
            None => return Ok(None),
            Some(Value::String(text)) if text.is_empty() => return Ok(None),
            Some(Value::String(text)) => text,
            Some(other) => return Err(wrong(path, other, "a string: a cron schedule")),
        };
        cron::check(text)
            .map_err(|message| Problem { reason: INVALID_SPEC, path: path.clone(), message })
            .map(|()| Some(text.as_str()))
    }

    /// The name of the template for a run, and the path of the field that has it.
    pub fn template_name(&self, purpose: &Purpose) -> Result<(&'a str, &'a str), Problem> {
        let own = match purpose {
            Purpose::Backfill { .. } => self.backfill_template_name()?,
            Purpose::Stream | Purpose::Schedule => None,
        };
        if let Some(found) = own {
            return Ok(found);
        }
        let paths = &self.class.paths;
        let path = match self.mode() {
            Mode::Scheduled if !paths.scheduled_job_template_ref.is_empty() => {
                &paths.scheduled_job_template_ref
            }
            Mode::Scheduled | Mode::ChangeCapture => &paths.job_template_ref,
        };
        let missing = || {
            let message = "is not there, must name a StreamingJobTemplate".to_owned();
            Problem { reason: INVALID_SPEC, path: path.clone(), message }
        };
        self.named(path)?.ok_or_else(missing)
    }

    /// The name of the template that is for backfills alone, and the path of the field that has it.
    pub fn backfill_template_name(&self) -> Result<Option<(&'a str, &'a str)>, Problem> {
        self.named(&self.class.paths.backfill_job_template_ref)
    }

    fn named(&self, path: &'a str) -> Result<Option<(&'a str, &'a str)>, Problem> {
        let Some(value) = field(self.object, path)? else { return Ok(None) };
        Ok(Some((name(value, path, self.namespace(), &TEMPLATE)?, path)))
    }

    /// The names of its Secrets, in the order of the class's fields, each once. Fields that are absent are skipped.
    pub fn secrets(&self) -> Result<Vec<&'a str>, Problem> {
        let mut names = Vec::new();
        let mut add = |value: &'a Value, path: &str| {
            let name = name(value, path, self.namespace(), &SECRET)?;
            if !names.contains(&name) {
                names.push(name);
            }
            Ok(())
        };
        for path in &self.class.secret_refs {
            let path = format!("spec.{path}");
            match field(self.object, &path)? {
                None => {}
                Some(Value::Array(values)) => {
                    for (place, value) in values.iter().enumerate() {
                        add(value, &format!("{path}[{place}]"))?;
                    }
                }
                Some(value) => add(value, &path)?,
            }
        }
        Ok(names)
    }

    /// The spec as its program gets to see it: without the fields that refer to Secrets.
    pub fn program_spec(&self) -> Value {
        let mut spec = self.object.get("spec").filter(|spec| !spec.is_null()).cloned();
        for path in &self.class.secret_refs {
            let (parents, last) = path.rsplit_once('.').unwrap_or(("", path));
            let parents = parents.split('.').filter(|part| !part.is_empty());
            let parent = parents.fold(spec.as_mut(), |here, part| here?.get_mut(part));
            if let Some(Value::Object(fields)) = parent {
                fields.remove(last);
            }
        }
        spec.unwrap_or_else(|| Value::Object(Map::new()))
    }
}

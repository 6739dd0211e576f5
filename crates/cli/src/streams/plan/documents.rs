//! What would be applied, read from files.

use crate::failure::Failure;
use crate::fields::refuse_unknown;
use crate::input::read_file_or_stdin;
use mainstay_streams::kinds::{GROUP, StreamClass, StreamingJobTemplate, definitions};
use serde_json::Value;
use std::path::PathBuf;

/// Classes and templates.
#[derive(Debug, Default)]
pub(super) struct Documents {
    pub(super) classes: Vec<StreamClass>,
    pub(super) templates: Vec<StreamingJobTemplate>,
}

impl Documents {
    /// Templates without a namespace are of this one.
    pub(super) fn within(mut self, namespace: &str) -> Self {
        for template in &mut self.templates {
            template.metadata.namespace.get_or_insert_with(|| namespace.to_owned());
        }
        self
    }

    fn add(&mut self, document: Value) -> Result<(), Failure> {
        let has_kind = document["kind"].is_string();
        let told = if has_kind { crate::cluster::named(&document) } else { "what has no kind".to_owned() };
        let is_ours = document["apiVersion"].as_str().and_then(|version| version.split_once('/'));
        let kind = document["kind"].as_str().filter(|_| is_ours.is_some_and(|(group, _)| group == GROUP));
        let unreadable = |error| Failure::new(error).context(format!("cannot read {told}"));
        let refused = |failure: Failure| failure.context(format!("cannot read {told}"));
        refuse_unknown(&document, &definitions()).map_err(refused)?;
        match kind {
            Some("StreamClass") => self.classes.push(serde_json::from_value(document).map_err(unreadable)?),
            Some("StreamingJobTemplate") => {
                self.templates.push(serde_json::from_value(document).map_err(unreadable)?);
            }
            _ => {
                let error =
                    anyhow::anyhow!("{told} is neither a StreamClass nor a StreamingJobTemplate of {GROUP}");
                return Err(Failure::new(error).next("leave it out: a plan is about classes and templates"));
            }
        }
        Ok(())
    }
}

/// All documents of these files.
pub(super) fn read(files: &[PathBuf]) -> Result<Documents, Failure> {
    let mut documents = Documents::default();
    for file in files {
        let doing = format!("cannot plan with {}", file.display());
        let text = read_file_or_stdin(file).map_err(|error| Failure::new(error).context(doing.clone()))?;
        for document in parse(&text).map_err(|failure| failure.context(doing.clone()))? {
            documents.add(document).map_err(|failure| failure.context(doing.clone()))?;
        }
    }
    Ok(documents)
}

fn parse(text: &str) -> Result<Vec<Value>, Failure> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(Failure::new)?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

/// The name of a class or template, with its namespace if it has one.
pub(super) fn key(object: &impl kube::ResourceExt) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(text: &str) -> Result<Documents, String> {
        let mut documents = Documents::default();
        for document in parse(text).map_err(|failure| failure.render())? {
            documents.add(document).map_err(|failure| failure.render())?;
        }
        Ok(documents.within("shop"))
    }

    #[test]
    fn files_have_classes_and_templates_and_nothing_else() {
        let read = add(feed_plugin::PLUGIN[0]).unwrap();
        assert_eq!((read.classes.len(), read.templates.len()), (1, 0));
        let read = add(feed_plugin::PLUGIN[1]).unwrap();
        assert_eq!(key(&read.templates[0]), ("shop".into(), "feed".into()));
        let refused = add(feed_plugin::FEEDS[0]).unwrap_err();
        assert!(refused.starts_with("error: Feed orders is neither a StreamClass nor a"), "{refused}");
        let refused = add(
            "{apiVersion: streams.mainstay.dev/v1alpha1, kind: StreamClass, metadata: {name: a}, spec: {}}",
        );
        assert!(refused.unwrap_err().starts_with("error: cannot read StreamClass a\n"));
        let refused = add(
            "{apiVersion: streams.mainstay.dev/v1alpha1, kind: StreamClass, metadata: {name: a}, spec: {restarts: 1}}",
        );
        assert_eq!(
            refused.unwrap_err(),
            "error: cannot read StreamClass a\n  spec.restarts: unknown field\n"
        );
    }
}

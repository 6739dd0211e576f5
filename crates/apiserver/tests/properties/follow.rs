//! What watches build up, compared with lists of the same moment.
//!
//! The end of a sequence is marked by a last object: when a watch has shown it, the watch has shown everything up to its
//! revision, and a list of exactly that revision must be what was built up, whatever the controllers do meanwhile.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use mainstay_apiserver::{ApiServer, Body};
use serde_json::Value;

use crate::properties::answer::{Sent, send};
use crate::properties::world::{Kind, SENTINELS};

type Objects = BTreeMap<(String, String), Value>;

/// One kind, watched from the beginning, as a whole and by label.
pub(crate) struct Following {
    kind: &'static Kind,
    watches: Vec<Watch>,
    /// Where a watch is resumed: some way between the beginning and the end.
    choice: u64,
}

struct Watch {
    selector: &'static str,
    objects: Objects,
    /// Up to here what comes may be what was there, in the order of names.
    start: u64,
    body: Body,
    rest: Vec<u8>,
}

impl Following {
    pub(crate) async fn start(server: &ApiServer, kind: &'static Kind, choice: u64) -> Self {
        let mut watches = Vec::new();
        for selector in ["", "app%3Dx", "app%21%3Dx"] {
            watches.push(Watch::open(server, kind, selector, "0", Objects::new()).await);
        }
        Following { kind, watches, choice }
    }

    pub(crate) async fn agrees(self, server: &ApiServer) -> Result<(), String> {
        let kind = self.kind;
        // One for those who want the label, one for those who don't.
        let mut last = String::new();
        for label in ["x", "y"] {
            let sentinel = kind.object(&format!("zz-{label}"), label).to_string();
            let path = kind.collection(SENTINELS);
            let answer = send(server, &Sent::new("POST", &path, "application/json", sentinel)).await?;
            version(&answer.body).clone_into(&mut last);
            if answer.status != 201 {
                return Err(format!("no sentinel at {path}: {answer:?}"));
            }
        }
        let first: u64 = last.parse().map_err(|_| format!("a revision {last:?}"))?;
        for mut watch in self.watches {
            let selector = watch.selector;
            // Somewhere on the way, a copy of what there is, from which another watch goes on.
            let end = if selector == "app%3Dx" { "zz-x" } else { "zz-y" };
            let copy_at = watch.start + self.choice % (first - watch.start);
            let resumed = watch.read_until(end, copy_at).await?;
            watch.compare(server, kind, "the watch from the beginning").await?;
            if let Some((revision, objects)) = resumed {
                let mut resumed = Watch::open(server, kind, selector, &revision.to_string(), objects).await;
                resumed.read_until(end, 0).await?;
                resumed.compare(server, kind, &format!("the watch resumed at {revision}")).await?;
            }
        }
        Ok(())
    }
}

impl Watch {
    async fn open(
        server: &ApiServer,
        kind: &Kind,
        selector: &'static str,
        from: &str,
        objects: Objects,
    ) -> Self {
        let target = format!(
            "{}?watch=true&allowWatchBookmarks=true&resourceVersion={from}&labelSelector={selector}",
            kind.everywhere()
        );
        let request = Request::get(target).body(Full::<Bytes>::default()).expect("a request");
        let response = server.handle(request).await;
        assert_eq!(response.status(), 200, "a watch of {kind:?} from {from}");
        let start = from.parse().ok().filter(|from| *from > 0).unwrap_or_else(|| server.revision());
        Watch { selector, objects, start, body: response.into_body(), rest: Vec::new() }
    }

    /// Reads on until an object of this name is added. Gives the state as it was at the last revision not after `copy_at`.
    async fn read_until(&mut self, name: &str, copy_at: u64) -> Result<Option<(u64, Objects)>, String> {
        let (mut copy, mut at) = (None, self.start);
        loop {
            let event = self.next().await?;
            let object = &event["object"];
            let revision: u64 = version(object).parse().map_err(|_| format!("no revision in {event}"))?;
            let initial = revision <= self.start;
            if revision <= at && !initial && event["type"] != "BOOKMARK" {
                return Err(format!("{event} comes after revision {at}"));
            }
            if revision > copy_at && at <= copy_at && !initial {
                copy = Some((at, self.objects.clone()));
            }
            at = at.max(revision);
            if event["type"] == "BOOKMARK" {
                continue;
            }
            let found = self.apply(&event)?;
            if found.1 == name && (found.0 == SENTINELS || found.0.is_empty()) {
                return Ok(copy);
            }
        }
    }

    fn apply(&mut self, event: &Value) -> Result<(String, String), String> {
        let object = &event["object"];
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = (text("namespace"), text("name"));
        let known = self.objects.contains_key(&key);
        match (event["type"].as_str(), known) {
            (Some("ADDED"), false) | (Some("MODIFIED"), true) => {
                self.objects.insert(key.clone(), bare(object.clone()));
            }
            (Some("DELETED"), true) => {
                self.objects.remove(&key);
            }
            _ => return Err(format!("known: {known}, but {event} (selected by {:?})", self.selector)),
        }
        Ok(key)
    }

    async fn next(&mut self) -> Result<Value, String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|e| e.to_string());
            }
            match self.body.frame().await {
                Some(Ok(frame)) => self.rest.extend_from_slice(&frame.into_data().unwrap_or_default()),
                _ => return Err("the watch ended".into()),
            }
        }
    }

    async fn compare(&self, server: &ApiServer, kind: &Kind, what: &str) -> Result<(), String> {
        let revision =
            self.objects.values().map(|object| version(object).parse().unwrap_or(0)).max().unwrap_or(0u64);
        let target = format!(
            "{}?resourceVersion={revision}&resourceVersionMatch=Exact&labelSelector={}",
            kind.everywhere(),
            self.selector
        );
        let answer = send(server, &Sent::get(&target)).await?;
        let items = answer.body["items"].as_array().cloned().unwrap_or_default();
        let listed: Objects = items
            .into_iter()
            .map(|object| {
                let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
                ((text("namespace"), text("name")), bare(object))
            })
            .collect();
        if listed == self.objects {
            return Ok(());
        }
        Err(format!(
            "{what} of {} by {:?} built up\n{:#?}\nbut listed is\n{listed:#?}",
            kind.everywhere(),
            self.selector,
            self.objects
        ))
    }
}

fn version(object: &Value) -> &str {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default()
}

/// Without what lists leave out of their items.
fn bare(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    object
}

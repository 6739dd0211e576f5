//! One case: what a user does, and what can be seen at each rest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use mainstay::Kind;
use mainstay_testkit::{Cluster, eventually_within};
use serde_json::Value;
use tokio::time::Instant;

use super::normal::render;
use super::order::Order;

/// A cluster under load may take its time.
const PATIENCE: Duration = Duration::from_mins(3);
/// What follows something unexpected is not waited for as long.
const IMPATIENCE: Duration = Duration::from_secs(6);
/// When new goldens are written, a cluster in which nothing visible has changed for so long is at rest.
const REST: Duration = Duration::from_secs(4);

/// A case under way in one cluster.
pub(crate) struct Case {
    pub(crate) cluster: Cluster,
    golden: Golden,
    order: Order,
    /// What was seen so far.
    seen: Vec<(String, String)>,
    /// Whether something was not as expected.
    surprised: bool,
}

impl Case {
    pub(crate) async fn begin(cluster: Cluster, golden: Golden) -> Self {
        let order = Order::watch(cluster.client(), cluster.namespace()).await;
        Self { cluster, golden, order, seen: Vec::new(), surprised: false }
    }

    pub(crate) async fn create(&self, object: Value) {
        self.cluster.create(object).await;
    }

    pub(crate) async fn patch(&self, kind: &Kind, name: &str, patch: Value) {
        self.cluster.patch(kind, name, patch).await;
    }

    /// Waits for something about one object.
    pub(crate) async fn until(&self, kind: &Kind, name: &str, what: &str, is: impl Fn(&Value) -> bool) {
        eventually_within(PATIENCE, &format!("{kind} {name}: {what}"), async || {
            self.cluster.find(kind, name).await.filter(|object| is(object)).map(|_| ())
        })
        .await;
    }

    /// The names of all objects of a kind.
    pub(crate) async fn names(&self, kind: &Kind) -> Vec<String> {
        let objects = self.list(kind).await;
        objects.iter().filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)).collect()
    }

    /// What there is of some kinds, once it is as expected, or at rest if nobody expects anything yet.
    pub(crate) async fn show(&mut self, title: &str, kinds: &[&Kind]) {
        let expected = self.golden.section(title);
        let begun = Instant::now();
        let mut last = (String::new(), Instant::now());
        let text = loop {
            let mut objects = Vec::new();
            for kind in kinds {
                objects.append(&mut self.list(kind).await);
            }
            let text = render(&objects, self.cluster.namespace());
            if expected.as_ref() == Some(&text) {
                break text;
            }
            if begun.elapsed() > if self.surprised { IMPATIENCE } else { PATIENCE / 2 } {
                self.surprised = true;
                break text;
            }
            if last.0 != text {
                last = (text, Instant::now());
            } else if expected.is_none() && last.1.elapsed() > REST {
                break text;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        self.seen.push((title.to_owned(), text));
    }

    /// In which order pods came, became ready and went.
    pub(crate) fn show_order(&mut self, title: &str) {
        self.seen.push((title.to_owned(), self.order.told()));
    }

    async fn list(&self, kind: &Kind) -> Vec<Value> {
        let namespace = (kind.scope() == mainstay::Scope::Namespaced).then_some(self.cluster.namespace());
        let (status, list) = self.cluster.get(&kind.collection_path(namespace)).await;
        assert!(status.is_success(), "listing {kind}: {status} {list}");
        let Value::Array(mut items) = list["items"].clone() else { return Vec::new() };
        for item in &mut items {
            item["kind"] = kind.kind().into();
        }
        items
    }

    /// Everything that was seen, as a golden has it.
    pub(crate) fn end(self) -> String {
        let mut text = String::new();
        for (title, seen) in self.seen {
            let _ = writeln!(text, "== {title}\n{seen}\n");
        }
        text.trim_end().to_owned() + "\n"
    }
}

/// What a case is expected to show, by title. Made by the real cluster.
#[derive(Clone, Default)]
pub(crate) struct Golden(BTreeMap<String, String>);

impl Golden {
    pub(crate) fn path(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/parity/golden").join(format!("{name}.txt"))
    }

    pub(crate) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(Self::path(name)).unwrap_or_default();
        let sections = text.split("== ").filter_map(|section| section.split_once('\n'));
        Self(sections.map(|(title, text)| (title.to_owned(), text.trim_end().to_owned())).collect())
    }

    fn section(&self, title: &str) -> Option<String> {
        self.0.get(title).cloned()
    }
}

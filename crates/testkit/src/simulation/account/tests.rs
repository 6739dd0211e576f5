use serde_json::json;

use super::*;

/// An account beside the state that it is kept of.
#[derive(Default)]
struct Book {
    account: Account,
    state: State,
    stage: usize,
}

impl Book {
    /// Somebody writes an object, or removes it.
    fn write(&mut self, who: &str, name: &str, object: Option<Value>) {
        let (place, object) = (place(name), object.map(Arc::new));
        let before = match &object {
            Some(object) => self.state.objects.insert(place.clone(), Arc::clone(object)),
            None => self.state.objects.remove(&place),
        };
        self.account.keep(&self.state, self.stage, &place, &actor(who), before.as_deref(), object.as_deref());
    }

    fn make(&mut self, who: &str, name: &str) {
        self.write(who, name, Some(json!({"metadata": {"name": name, "uid": name}})));
    }

    fn make_owned(&mut self, who: &str, name: &str, owners: &[&str]) {
        let owners: Vec<Value> = owners.iter().map(|owner| json!({"uid": owner})).collect();
        self.write(who, name, Some(json!({"metadata": {"name": name, "ownerReferences": owners}})));
    }

    /// `what, made by, removed by, at which stage` of all removals.
    fn removals(&mut self) -> Vec<String> {
        let told = |removal: Removal| {
            let Removal { place, maker, had_finalizers, by, stage, .. } = removal;
            let finalized = if had_finalizers { ", finalized" } else { "" };
            format!("{} of {maker} by {by} at {stage}{finalized}", place.name)
        };
        self.account.take().into_iter().map(told).collect()
    }
}

fn place(name: &str) -> Place {
    Place::new("configmaps", "default", name)
}

fn actor(name: &str) -> Actor {
    Actor { name: name.into(), incarnation: 1 }
}

fn marked(finalizers: &[&str]) -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}})
}

#[test]
fn removal_tells_who_made_it_who_removed_it_and_when() {
    let mut book = Book::default();
    book.make("user", "a");
    book.write("operator", "a", Some(json!({"data": {}})));
    book.stage = 3;
    book.write("operator", "a", None);
    assert_eq!(book.removals(), ["a of user by operator at 3"]);
    assert!(book.removals().is_empty(), "they are taken once");
}

#[test]
fn what_is_made_anew_is_of_who_made_it_last() {
    let mut book = Book::default();
    book.make("user", "a");
    book.write("user", "a", None);
    book.make("operator", "a");
    book.write("server", "a", None);
    assert_eq!(book.removals(), ["a of user by user at 0", "a of operator by server at 0"]);
}

#[test]
fn who_asked_for_it_has_removed_it_and_not_who_took_off_the_last_finalizer() {
    let mut book = Book::default();
    book.write("operator", "a", Some(json!({"metadata": {"finalizers": ["x"]}})));
    book.write("user", "a", Some(marked(&["x"])));
    book.write("operator", "a", Some(marked(&[])));
    book.write("operator", "a", None);
    assert_eq!(book.removals(), ["a of operator by user at 0, finalized"]);
}

#[test]
fn finalizers_and_marks_are_of_one_object_and_not_of_the_next_of_its_name() {
    let mut book = Book::default();
    book.write("operator", "a", Some(json!({"metadata": {"finalizers": ["x"]}})));
    book.write("user", "a", Some(marked(&["x"])));
    book.write("operator", "a", None);
    book.write("operator", "a", Some(json!({"metadata": {"finalizers": []}})));
    book.write("server", "a", None);
    assert_eq!(book.removals()[1], "a of operator by server at 0");
}

#[test]
fn prefix_of_a_generated_name_is_kept() {
    let mut book = Book::default();
    book.write("operator", "a-x7k", Some(json!({"metadata": {"generateName": "a-"}})));
    book.write("operator", "a-x7k", None);
    assert_eq!(book.account.take()[0].generate_name.as_deref(), Some("a-"));
}

#[test]
fn what_was_made_for_an_owner_that_was_gone_is_no_loss() {
    let mut book = Book::default();
    book.make_owned("operator", "stillborn", &["nobody"]);
    book.write("server", "stillborn", None);
    assert!(book.removals().is_empty());
    // What is made there later is another object.
    book.make("operator", "stillborn");
    book.write("server", "stillborn", None);
    assert_eq!(book.removals(), ["stillborn of operator by server at 0"]);
}

#[test]
fn what_had_a_living_owner_when_it_was_made_is_a_loss() {
    let mut book = Book::default();
    book.make("user", "owner");
    book.make_owned("operator", "child", &["nobody", "owner"]);
    book.write("user", "owner", None);
    book.write("server", "child", None);
    assert_eq!(book.removals(), ["owner of user by user at 0", "child of operator by server at 0"]);
}

#[test]
fn what_nobody_counts_on_is_no_loss_and_the_next_of_its_name_is() {
    let mut book = Book::default();
    book.account.expect_nothing_of(&place("a"));
    book.make("operator", "a");
    book.write("operator", "a", Some(json!({"data": {}})));
    book.write("operator", "a", None);
    assert!(book.removals().is_empty());
    book.make("operator", "a");
    book.write("operator", "a", None);
    assert_eq!(book.removals(), ["a of operator by operator at 0"]);
}

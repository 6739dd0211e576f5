use super::*;

const LABEL: &str = "hash";

fn parent(image: &str) -> Value {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}], "volumes": null},
    });
    json!({
        "metadata": {"name": "web", "annotations": {"note": "x", "mainstay.dev/applied": "y"}},
        "spec": {"template": template},
    })
}

fn observe(image: &str, known: &[ControllerRevision]) -> Revisions {
    choose_with(image, known, |_| Ok(None))
}

fn choose_with(
    image: &str,
    known: &[ControllerRevision],
    other: impl Fn(&str) -> Result<Option<ControllerRevision>, Error>,
) -> Revisions {
    let parent = parent(image);
    let source = Source { name: "web", parent: &parent, hash_label: LABEL };
    choose(source, known.to_vec(), 0, other).unwrap()
}

/// As it is once the server has it: owned, and without nulls.
fn stored(revision: &ControllerRevision) -> ControllerRevision {
    let mut stored = revision.clone();
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": true,
    }]);
    stored.metadata.owner_references = serde_json::from_value(owner).unwrap();
    if let Some(data) = &mut stored.data {
        data.0["spec"]["template"]["spec"].as_object_mut().unwrap().remove("volumes");
    }
    stored
}

/// The revisions after each of these templates in turn.
fn history(images: &[&str]) -> Vec<ControllerRevision> {
    let mut known: Vec<ControllerRevision> = Vec::new();
    for image in images {
        let update = stored(observe(image, &known).update());
        known.retain(|revision| revision.name_any() != update.name_any());
        known.push(update);
    }
    known
}

fn numbers(known: &[ControllerRevision]) -> Vec<i64> {
    known.iter().map(|revision| revision.revision).collect()
}

#[test]
fn a_revision_gives_back_the_template() {
    let revisions = observe("a", &[]);
    let update = revisions.update();
    assert_eq!(update.revision, 1);
    let labels = update.labels();
    assert_eq!(update.name_any(), format!("web-{}", labels[LABEL]));
    assert_eq!(labels["app"], "web");
    assert_eq!(json!(update.annotations()), json!({"note": "x"}));
    assert_eq!(update.data.as_ref().unwrap().0["spec"]["template"]["$patch"], "replace");
    let template = json!(template(update).unwrap());
    assert_eq!(template["spec"]["containers"][0]["image"], "a");
    assert!(template.get("$patch").is_none());
}

#[test]
fn every_template_has_one_revision_and_the_present_one_the_highest_number() {
    assert_eq!(numbers(&history(&["a"])), [1]);
    assert_eq!(numbers(&history(&["a", "a"])), [1]);
    assert_eq!(numbers(&history(&["a", "b", "c"])), [1, 2, 3]);
    let back = history(&["a", "b", "c", "a"]);
    assert_eq!(numbers(&back), [2, 3, 4]);
    assert_eq!(back[2].name_any(), history(&["a"])[0].name_any());
    assert_eq!(numbers(&history(&["a", "b", "a", "b"])), [3, 4]);
}

#[test]
fn a_name_that_is_taken_by_something_else_is_avoided_and_counted() {
    let first = observe("a", &[]).update().name_any();
    let taken = |name: &str| Ok((name == first).then(|| history(&["b"]).remove(0)));
    let revisions = choose_with("a", &[], taken);
    assert_ne!(revisions.update().name_any(), first);
    assert_eq!(revisions.collisions(), 1);
    // What a former parent of the name left behind says the same, and goes.
    let remains = |_: &str| Ok(Some(history(&["a"]).remove(0)));
    let revisions = choose_with("a", &[], remains);
    assert_eq!((revisions.update().name_any(), revisions.collisions()), (first, 0));
}

#[test]
fn only_what_changes_is_named_in_full() {
    let known = history(&["a", "b"]);
    let names = |children: &[Value]| -> Vec<bool> {
        children.iter().map(|child| child.get("data").is_some()).collect()
    };
    assert_eq!(names(&observe("b", &known).children(&[])), [false, false]);
    assert_eq!(names(&observe("a", &known).children(&[])), [false, true]);
    assert_eq!(names(&observe("c", &known).children(&[])), [false, false, true]);
    let revisions = observe("a", &known);
    let rolled_back = revisions.children(&[]).pop().unwrap();
    assert_eq!(
        (&rolled_back["revision"], &rolled_back["metadata"]["labels"]["app"]),
        (&json!(3), &json!("web"))
    );
}

#[test]
fn the_oldest_beyond_the_limit_go_unless_a_pod_is_made_from_them() {
    let known = history(&["a", "b", "c", "d", "e"]);
    let revisions = observe("e", &known);
    let surplus = |limit, counts, live: &[usize]| -> Vec<usize> {
        let is_live = |revision: &ControllerRevision| {
            live.iter().any(|place| known[*place].name_any() == revision.name_any())
        };
        let place = |name: &str| known.iter().position(|revision| revision.name_any() == name).unwrap();
        revisions.surplus(limit, counts, is_live).into_iter().map(place).collect()
    };
    assert_eq!(surplus(None, false, &[]), [0; 0]);
    assert_eq!(surplus(Some(-1), false, &[]), [0; 0]);
    assert_eq!(surplus(Some(2), false, &[]), [0, 1]);
    assert_eq!(surplus(Some(0), false, &[]), [0, 1, 2, 3]);
    assert_eq!(surplus(Some(1), false, &[0, 2]), [1]);
    assert_eq!(surplus(Some(1), true, &[0, 2]), [1, 3]);
    assert_eq!(surplus(Some(2), true, &[0, 1]), [2, 3]);
}

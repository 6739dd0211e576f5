//! From a change in a cache to the parents it concerns.

use tokio::time::Instant;

use super::{ParentId, Runner, Trigger, lock};
use crate::cache::{Change, Object};
use crate::kind::{Key, Kind, Scope};
use crate::plan::{PAUSED, RECONCILE_NOW};
use crate::queue::Priority;

impl Runner {
    /// Wakes all parents that a change concerns, but one: it wrote the change itself and looks again anyway.
    pub(crate) fn changed(&self, kind: &Kind, change: &Change, except: Option<&ParentId>) {
        // Without an object nothing has changed.
        let Some(object) = change.object() else { return };
        if self.active(kind).is_some() {
            self.parent_changed(kind, change, except);
        }
        for parent in self.owners(kind, change) {
            self.push_unless(except, &parent, Priority::Normal, || Trigger::Child(object.reference()));
        }
        let concerned = lock(&self.dependencies).concerned(
            kind,
            change.before().map(AsRef::as_ref),
            change.now().map(AsRef::as_ref),
        );
        for parent in concerned {
            self.push_unless(except, &parent, Priority::Normal, || Trigger::Related(object.reference()));
        }
    }

    fn push_unless(
        &self,
        except: Option<&ParentId>,
        parent: &ParentId,
        priority: Priority,
        trigger: impl FnOnce() -> Trigger,
    ) {
        if except != Some(parent) {
            self.push(parent, priority, trigger());
        }
    }

    /// Puts a parent in the queue.
    pub(crate) fn push(&self, parent: &ParentId, priority: Priority, trigger: Trigger) {
        lock(&self.queue).push(&parent.0, &parent.1, priority, trigger, Instant::now());
        self.wake.notify_one();
    }

    fn parent_changed(&self, kind: &Kind, change: &Change, except: Option<&ParentId>) {
        let Some(object) = change.object() else { return };
        let parent = (kind.clone(), object.key().clone());
        match change {
            Change::Nothing => {}
            Change::Added { .. } if self.active(kind).is_some_and(|active| active.has_found_parents()) => {
                self.push_unless(except, &parent, Priority::Now, || Trigger::Created);
            }
            Change::Added { .. } => self.push_unless(except, &parent, Priority::Low, || Trigger::Found),
            Change::Updated { old, new } => match touch(old, new, except == Some(&parent)) {
                // What a user changed is looked at even if our own write brought it.
                Touch::Changed => self.push(&parent, Priority::Now, Trigger::Changed),
                Touch::Asked => self.push(&parent, Priority::Now, Trigger::Asked),
                // Ends a rest after a terminal error, not a backoff.
                Touch::Labelled => {
                    lock(&self.queue).touch(kind, &parent.1, Trigger::Touched, Instant::now());
                    self.wake.notify_one();
                }
                Touch::Other => self.push_unless(except, &parent, Priority::Normal, || Trigger::Touched),
            },
            Change::Deleted { .. } => {
                self.forget(&parent);
                if let Some(gone) = self.active(kind).and_then(|active| active.controller.when_gone.clone()) {
                    gone(&parent.1, object.uid());
                }
            }
        }
    }

    /// A parent is gone: nothing of it is kept.
    pub(crate) fn forget(&self, parent: &ParentId) {
        lock(&self.queue).forget(&parent.0, &parent.1);
        lock(&self.parents).remove(parent);
        lock(&self.failed).forget(parent);
        lock(&self.loops).forget(&crate::kind::ObjectRef { kind: parent.0.clone(), key: parent.1.clone() });
        self.set_dependencies(parent, std::collections::BTreeSet::new());
        self.unregister_all(parent);
    }

    /// The parents that own, or owned, a child.
    fn owners(&self, kind: &Kind, change: &Change) -> Vec<ParentId> {
        let mut owners = Vec::new();
        for object in [change.before(), change.now()].into_iter().flatten() {
            if object.controller_uid().is_none() {
                continue;
            }
            let Some(owner) = object.owners().into_iter().find(|owner| owner.controller) else { continue };
            for active in self.all_active() {
                let parent = active.controller.parent();
                let ours = parent.kind() == owner.kind && parent.api_version() == owner.api_version;
                if !ours || !active.watches_child(kind) {
                    continue;
                }
                let namespace = object.key().namespace().filter(|_| parent.scope() == Scope::Namespaced);
                let id = (parent.clone(), Key::new(namespace, &owner.name));
                let known = self.caches.get(parent, &id.1).is_some_and(|known| known.uid() == owner.uid);
                if known && !owners.contains(&id) {
                    owners.push(id);
                }
            }
        }
        owners
    }
}

/// What about a parent changed.
enum Touch {
    /// What it asks for.
    Changed,
    /// Somebody wants it synced now.
    Asked,
    /// Its labels or annotations, which handlers may read.
    Labelled,
    /// Something else.
    Other,
}

fn touch(old: &Object, new: &Object, by_ourselves: bool) -> Touch {
    // Kinds without a generation do not tell a change of what they ask for from any other.
    let any_change = new.generation() == 0 && !by_ourselves;
    if any_change
        || old.uid() != new.uid()
        || old.generation() != new.generation()
        || old.is_deleting() != new.is_deleting()
    {
        return Touch::Changed;
    }
    let differs = |name: &str| old.annotation(name) != new.annotation(name);
    if differs(RECONCILE_NOW) || differs(PAUSED) {
        return Touch::Asked;
    }
    if !by_ourselves && !new.is_labelled_as(old) {
        return Touch::Labelled;
    }
    Touch::Other
}

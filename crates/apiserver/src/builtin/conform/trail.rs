//! The way from the object to a value in it, in the two forms that kube-apiserver prints it.

use crate::schema::Field;
use std::fmt::Write as _;

/// Each step is a small value on the stack that borrows the one before it.
#[derive(Clone, Copy)]
pub(super) struct Trail<'a> {
    parent: Option<&'a Trail<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field { owner: &'static str, embedded: Option<&'static str>, name: &'static str },
    Index(usize),
    Key(&'a str),
}

impl<'a> Trail<'a> {
    pub(super) const ROOT: Trail<'static> = Trail { parent: None, step: Step::Root };

    /// A field of a struct of the Go type `owner`.
    pub(super) fn field(&'a self, owner: &'static str, field: &Field) -> Trail<'a> {
        let embedded = field.embedded.map(|embedded| embedded.name);
        Trail { parent: Some(self), step: Step::Field { owner, embedded, name: field.name } }
    }

    pub(super) const fn index(&'a self, index: usize) -> Trail<'a> {
        Trail { parent: Some(self), step: Step::Index(index) }
    }

    pub(super) const fn key(&'a self, key: &'a str) -> Trail<'a> {
        Trail { parent: Some(self), step: Step::Key(key) }
    }

    /// As strict decoding prints the field `name` of the value here: `spec.ports[0].name`.
    pub(super) fn strict_path(&self, name: &str) -> String {
        let mut path = String::new();
        self.walk(&mut |step| match step {
            Step::Root => {}
            Step::Field { name, .. } | Step::Key(name) => push_dotted(&mut path, name),
            // Writing to a String cannot fail.
            Step::Index(index) => drop(write!(path, "[{index}]")),
        });
        push_dotted(&mut path, name);
        crate::field::cut(&mut path);
        path
    }

    /// As type errors print it: fields only, embedded structs among them; empty at the object itself.
    pub(super) fn go_path(&self) -> String {
        let mut path = String::new();
        self.walk(&mut |step| {
            if let Step::Field { embedded, name, .. } = step {
                if let Some(embedded) = embedded {
                    push_dotted(&mut path, embedded);
                }
                push_dotted(&mut path, name);
            }
        });
        path
    }

    /// The Go struct that the nearest field belongs to.
    pub(super) fn owner(&self) -> Option<&'static str> {
        match self.step {
            Step::Field { owner, .. } => Some(owner),
            _ => self.parent.and_then(Trail::owner),
        }
    }

    fn walk(&self, visit: &mut dyn FnMut(&Step<'_>)) {
        if let Some(parent) = self.parent {
            parent.walk(visit);
        }
        visit(&self.step);
    }
}

fn push_dotted(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
}

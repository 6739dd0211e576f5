//! The functions that expressions may call, with the types they take.
//!
//! The list is that of a Kubernetes 1.36 API server without its `authorizer`. What is not in it is an
//! undeclared reference there, too.

use super::signatures::SIGNATURES;
use crate::types::Type;
use std::collections::HashMap;
use std::sync::LazyLock;

/// One way to call a function.
#[derive(Debug)]
pub struct Overload {
    /// Names the overload, with the names of cel-go and Kubernetes where costs depend on them.
    pub id: &'static str,
    /// Whether the first of `takes` stands before the dot.
    pub member: bool,
    /// Types of the arguments. Parameters are numbered from 0.
    pub takes: Vec<Type>,
    /// Type of the result.
    pub gives: Type,
    /// How many type parameters there are.
    pub params: u32,
}

/// All ways to call the function, empty if there is no such function.
pub fn overloads(function: &str) -> &'static [Overload] {
    TABLE.get(function).map_or(&[], Vec::as_slice)
}

static TABLE: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut table: HashMap<&'static str, Vec<Overload>> = HashMap::new();
    for line in SIGNATURES.trim().lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        for text in rest.split(" | ") {
            let expanded = expand(text);
            table.entry(name).or_default().extend(expanded);
        }
    }
    table
});

/// `T` stands for each type that can be ordered, `N` for each that can be added.
fn expand(text: &'static str) -> Vec<Overload> {
    let (id, signature) = text.split_once('=').unwrap_or(("", text));
    let ordered = ["int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes"];
    let added = ["int", "uint", "double", "duration"];
    let types: &[&'static str] = match signature {
        _ if signature.contains("$T") => &ordered,
        _ if signature.contains("$N") => &added,
        _ => &[],
    };
    if types.is_empty() {
        return Reader { rest: signature, params: 0 }.overload(id).into_iter().collect();
    }
    let read = |kind: &&'static str| {
        let text = signature.replace("$T", kind).replace("$N", kind);
        // The table is made once, and what it names lives as long as the program.
        let id: &'static str = id.replace('$', kind).leak();
        Reader { rest: &text, params: 0 }.overload(id)
    };
    types.iter().filter_map(read).collect()
}

struct Reader<'a> {
    rest: &'a str,
    params: u32,
}

impl Reader<'_> {
    fn eat(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn overload(&mut self, id: &'static str) -> Option<Overload> {
        let mut takes = Vec::new();
        let member = !self.eat("(");
        if member {
            takes.push(self.kind()?);
            self.eat(".(").then_some(())?;
        }
        while !self.eat(")") {
            takes.push(self.kind()?);
            self.eat(",");
        }
        self.eat(":").then_some(())?;
        let gives = self.kind()?;
        Some(Overload { id, member, takes, gives, params: self.params })
    }

    fn param(&mut self, index: u32) -> Type {
        self.params = self.params.max(index + 1);
        Type::Param(index)
    }

    fn kind(&mut self) -> Option<Type> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(match word {
            "list" | "optional" | "type" => {
                self.eat("(");
                let inner = self.kind()?;
                self.eat(")");
                match word {
                    "list" => Type::list(inner),
                    "optional" => Type::optional(inner),
                    _ => Type::Type(inner.into()),
                }
            }
            "map" => {
                self.eat("(");
                let key = self.kind()?;
                self.eat(",");
                let value = self.kind()?;
                self.eat(")");
                Type::map(key, value)
            }
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::String,
            "bytes" => Type::Bytes,
            "duration" => Type::Duration,
            "timestamp" => Type::Timestamp,
            "url" => Type::Opaque("kubernetes.URL"),
            "quantity" => Type::Opaque("kubernetes.Quantity"),
            "ip" => Type::Opaque("net.IP"),
            "cidr" => Type::Opaque("net.CIDR"),
            "semver" => Type::Opaque("kubernetes.Semver"),
            "named_format" => Type::Opaque("kubernetes.NamedFormat"),
            "A" => self.param(0),
            "B" => self.param(1),
            _ => return None,
        })
    }
}

/// The type that a name in an expression stands for (`int` in `type(x) == int`).
pub(crate) fn named_type(name: &str) -> Option<Type> {
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "list" => Type::list(Type::Dyn),
        "map" => Type::map(Type::Dyn, Type::Dyn),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(Type::Dyn.into()),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Dyn),
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "kubernetes.URL" => Type::Opaque("kubernetes.URL"),
        "kubernetes.Quantity" => Type::Opaque("kubernetes.Quantity"),
        "kubernetes.Semver" => Type::Opaque("kubernetes.Semver"),
        "kubernetes.NamedFormat" => Type::Opaque("kubernetes.NamedFormat"),
        "net.IP" => Type::Opaque("net.IP"),
        "net.CIDR" => Type::Opaque("net.CIDR"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signature_is_read() {
        for line in SIGNATURES.trim().lines() {
            let (name, rest) = line.split_once(' ').unwrap();
            for text in rest.split(" | ") {
                assert!(!expand(text).is_empty(), "{name}: {text}");
            }
        }
        assert_eq!(overloads("_<_").len(), 14);
        assert_eq!(overloads("max").len(), 8);
    }
}

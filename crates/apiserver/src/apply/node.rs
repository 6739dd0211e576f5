//! What the schema says of ownership at one place of an object.

use super::path::Element;
use crate::field::go_quote;
use crate::schema::{Additional, ListType, Presence, Schema, SchemaRef, Type};
use serde_json::Value;
use std::sync::LazyLock;

/// The kind of values that may stand at one place, and how their parts are owned.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node<'a> {
    /// As this schema says. Unknown fields are allowed from the first `preserve_unknown` downwards.
    Typed { schema: &'a Schema, open: bool },
    /// Anything; entries of objects are owned each on its own, lists as a whole.
    Deduced,
    /// Anything, owned as a whole.
    Opaque,
}

/// How a value is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Map,
    Scalar,
    List,
}

/// What a scalar may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    Text,
    Truth,
    Any,
}

/// Built-in types of which nothing is known beyond their name: any object, and texts that may be numbers.
const OPAQUE: [&str; 2] =
    ["io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.api.resource.Quantity"];

impl<'a> Node<'a> {
    /// The whole object.
    pub(super) fn root(schema: &'a Schema) -> Self {
        Node::Typed { schema, open: schema.preserve_unknown }
    }

    fn child(reference: &'a SchemaRef, open: bool) -> Self {
        // A named type says itself whether it is open; an inline one is as open as what it stands in.
        let inherited = match reference {
            SchemaRef::Owned(_) => open,
            SchemaRef::Builtin(definition) if OPAQUE.contains(&definition.name.as_str()) => {
                return Node::Opaque;
            }
            SchemaRef::Builtin(_) => false,
        };
        let schema: &'a Schema = reference;
        Node::Typed { schema, open: inherited || schema.preserve_unknown }
    }

    const fn allows(self, form: Form) -> bool {
        match self {
            Node::Deduced | Node::Opaque => true,
            Node::Typed { schema, .. } => match schema.kind {
                None => true,
                Some(Type::Object) => matches!(form, Form::Map),
                Some(Type::Array) => matches!(form, Form::List),
                Some(_) => matches!(form, Form::Scalar),
            },
        }
    }

    /// Whether objects may stand here.
    pub(super) const fn is_map(self) -> bool {
        self.allows(Form::Map)
    }

    /// Whether lists may stand here.
    pub(super) const fn is_list(self) -> bool {
        self.allows(Form::List)
    }

    /// How this value is walked here: by what it is if that may stand here, else by what may.
    pub(super) const fn form(self, value: &Value) -> Form {
        let own = match value {
            Value::Null => return self.form_of_none(),
            Value::Array(_) => Form::List,
            Value::Object(_) => Form::Map,
            _ => Form::Scalar,
        };
        if self.allows(own) { own } else { self.form_of_none() }
    }

    /// How the place is walked when no value tells.
    pub(super) const fn form_of_none(self) -> Form {
        if self.allows(Form::Map) {
            Form::Map
        } else if self.allows(Form::Scalar) {
            Form::Scalar
        } else {
            Form::List
        }
    }

    pub(super) fn scalar(self) -> Scalar {
        let Node::Typed { schema, .. } = self else { return Scalar::Any };
        match schema.kind {
            Some(Type::Integer | Type::Number) => Scalar::Numeric,
            Some(Type::Boolean) => Scalar::Truth,
            Some(Type::String) if !schema.int_or_string => {
                let format = schema.checks.as_ref().and_then(|checks| checks.format.as_deref());
                // Texts of other formats may be written as numbers, quantities for one.
                if matches!(format, None | Some("" | "byte")) { Scalar::Text } else { Scalar::Any }
            }
            _ => Scalar::Any,
        }
    }

    pub(super) const fn is_atomic_map(self) -> bool {
        match self {
            Node::Typed { schema, .. } => schema.atomic_map,
            Node::Deduced => false,
            Node::Opaque => true,
        }
    }

    pub(super) const fn is_atomic_list(self) -> bool {
        match self {
            Node::Typed { schema, .. } => matches!(schema.list, ListType::Atomic),
            Node::Deduced | Node::Opaque => true,
        }
    }

    /// Whether nothing is known of the object's fields.
    pub(super) fn is_deduced_map(self) -> bool {
        match self {
            Node::Typed { schema, .. } => {
                schema.properties.is_empty() && matches!(self.entry(), Some(Node::Deduced))
            }
            Node::Deduced => true,
            Node::Opaque => false,
        }
    }

    /// Whether the schema names this field.
    pub(super) fn declares(self, name: &str) -> bool {
        matches!(self, Node::Typed { schema, .. } if schema.properties.contains_key(name))
    }

    /// What stands in the field `name`; none if it may not be there.
    pub(super) fn field(self, name: &str) -> Option<Node<'a>> {
        if let Node::Typed { schema, open } = self
            && let Some(property) = schema.properties.get(name)
        {
            return Some(Node::child(property, open));
        }
        self.entry()
    }

    /// What stands in fields that the schema does not name.
    pub(super) fn entry(self) -> Option<Node<'a>> {
        let Node::Typed { schema, open } = self else { return Some(self) };
        match &schema.additional {
            Additional::Values(values) => Some(Node::child(values, open)),
            Additional::Any => Some(Node::Deduced),
            Additional::None if open || schema.properties.is_empty() => Some(Node::Deduced),
            Additional::None => None,
        }
    }

    /// What the items of a list are.
    pub(super) fn item(self) -> Node<'a> {
        match self {
            Node::Typed { schema, open } => {
                schema.items.as_ref().map_or(Node::Opaque, |items| Node::child(items, open))
            }
            Node::Deduced | Node::Opaque => Node::Opaque,
        }
    }

    /// The step from a list that is not atomic to this item of it.
    pub(super) fn element(self, item: &Value) -> Result<Element, String> {
        self.check_item(item)?;
        let Some(names) = self.key_names() else { return Ok(Element::Value(item.clone())) };
        let mut keys: Vec<(String, Value)> =
            names.iter().filter_map(|name| Some((name.clone(), self.key(item, name)?.clone()))).collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Element::Key(keys))
    }

    /// Whether [`Node::element`] succeeds, at less cost.
    pub(super) fn check_item(self, item: &Value) -> Result<(), String> {
        let problem = match (self.key_names(), item) {
            (None, Value::Object(_)) => "associative list without keys has an element that's a map type",
            (None, Value::Array(_)) => "not supported: associative list with lists as elements",
            (None, Value::Null) => "associative list without keys has an element that's an explicit null",
            (None, _) => return Ok(()),
            (Some(_), Value::Null) => "associative list with keys may not have a null element",
            (Some(names), Value::Object(_)) => {
                if names.is_empty() || names.iter().any(|name| self.key(item, name).is_some()) {
                    return Ok(());
                }
                let names: Vec<String> = names.iter().map(|name| go_quote(name)).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't \
                     have default values for any key fields)",
                    names.join(" ")
                ));
            }
            (Some(_), _) => "associative list with keys may not have non-map elements",
        };
        Err(problem.to_owned())
    }

    fn key_names(self) -> Option<&'a [String]> {
        match self {
            Node::Typed { schema, .. } => match &schema.list {
                ListType::Map(names) => Some(names),
                ListType::Set | ListType::Atomic => None,
            },
            Node::Deduced | Node::Opaque => None,
        }
    }

    /// The value of a key field of this item: its own, or what its absence stands for.
    fn key<'v>(self, item: &'v Value, name: &str) -> Option<&'v Value>
    where
        'a: 'v,
    {
        if let Some(value) = item.get(name) {
            return Some(value);
        }
        let Node::Typed { schema, .. } = self.item() else { return None };
        let member = schema.members.as_ref().and_then(|members| members.get(name));
        let property = schema.properties.get(name);
        let default = member.and_then(|member| member.default.as_ref());
        default.or_else(|| property?.default.as_ref()).or_else(|| {
            // A built-in field that is always written is its zero value when it is left out.
            let always = member.is_some_and(|member| member.presence == Presence::Always);
            property.filter(|_| always).and_then(|property| zero_key(property))
        })
    }
}

fn zero_key(schema: &Schema) -> Option<&'static Value> {
    static TEXT: Value = Value::String(String::new());
    static NUMBER: LazyLock<Value> = LazyLock::new(|| 0.into());
    match schema.kind? {
        Type::String => Some(&TEXT),
        Type::Integer | Type::Number => Some(&NUMBER),
        _ => None,
    }
}

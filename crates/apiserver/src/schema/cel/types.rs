//! The types of expressions, and those that schemas give to `self`.

use crate::schema::{Additional, ListType, Schema, Type as JsonType};
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, Debug)]
pub(super) enum Type<'s> {
    /// Known only at run time.
    Dyn,
    /// Anything: the items of an empty list, or the result of something already complained about.
    Free,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    /// What `type()` gives.
    OfTypes,
    /// A type that only functions look into, like `kubernetes.Quantity`.
    Opaque(&'static str),
    List(Arc<Type<'s>>, Order<'s>),
    Map(Arc<Type<'s>>, Arc<Type<'s>>),
    Optional(Arc<Type<'s>>),
    Object(Arc<Object<'s>>),
    /// A parameter of a function's signature.
    Param(char),
}

/// What tells the items of a list apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order<'s> {
    /// Their places.
    Listed,
    /// Themselves.
    Set,
    /// These fields of theirs.
    Keyed(&'s [String]),
}

/// An object with known fields.
#[derive(Debug)]
pub(super) struct Object<'s> {
    name: String,
    fields: Fields<'s>,
}

#[derive(Debug)]
enum Fields<'s> {
    /// Those of a schema; resources have `apiVersion`, `kind` and `metadata` whatever it says.
    Schema { schema: &'s Schema, resource: bool },
    /// The part of `metadata` that rules may look at.
    Metadata,
}

impl<'s> Type<'s> {
    /// The type of `self` in rules on a schema; none if rules cannot see values of it.
    pub(super) fn of_root(schema: &'s Schema, resource: bool) -> Option<Self> {
        Self::of(schema, resource, "selfType1".to_owned())
    }

    fn of(schema: &'s Schema, resource: bool, name: String) -> Option<Self> {
        if schema.int_or_string {
            return Some(Type::Dyn);
        }
        Some(match schema.kind? {
            JsonType::Array => {
                let items = schema.items.as_deref()?;
                let item = Self::of(items, items.embedded_resource, format!("{name}.@idx"))?;
                let order = match &schema.list {
                    ListType::Atomic => Order::Listed,
                    ListType::Set => Order::Set,
                    ListType::Map(keys) => Order::Keyed(keys),
                };
                Type::List(Arc::new(item), order)
            }
            JsonType::Object => {
                if let Additional::Values(values) = &schema.additional {
                    let value = Self::of(values, values.embedded_resource, format!("{name}.@elem"))?;
                    Type::Map(Arc::new(Type::String), Arc::new(value))
                } else {
                    Type::Object(Arc::new(Object { name, fields: Fields::Schema { schema, resource } }))
                }
            }
            JsonType::String => match schema.checks.as_ref().and_then(|checks| checks.format.as_deref()) {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::String,
            },
            JsonType::Boolean => Type::Bool,
            JsonType::Number => Type::Double,
            JsonType::Integer => Type::Int,
        })
    }

    pub(super) fn list(item: Type<'s>) -> Self {
        Type::List(Arc::new(item), Order::Listed)
    }

    pub(super) fn optional(inner: Type<'s>) -> Self {
        Type::Optional(Arc::new(inner))
    }

    /// Whether nothing is known of the type.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Type::Dyn | Type::Free)
    }
}

impl<'s> Object<'s> {
    /// The type of a field, by its name in expressions.
    pub(super) fn field(&self, name: &str) -> Option<Type<'s>> {
        match &self.fields {
            Fields::Metadata => matches!(name, "name" | "generateName").then_some(Type::String),
            Fields::Schema { resource: true, .. } if matches!(name, "apiVersion" | "kind") => {
                Some(Type::String)
            }
            Fields::Schema { resource: true, .. } if name == "metadata" => {
                let name = format!("{}.metadata", self.name);
                Some(Type::Object(Arc::new(Object { name, fields: Fields::Metadata })))
            }
            Fields::Schema { schema, .. } => {
                let named = |(key, _): &(&String, _)| escape(key).as_deref() == Some(name);
                let (_, property) = schema.properties.iter().find(named)?;
                Type::of(property, property.embedded_resource, format!("{}.{name}", self.name))
            }
        }
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dyn | Type::Free => "dyn",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::OfTypes => "type",
            Type::Opaque(name) => name,
            Type::List(item, _) => return write!(f, "list({item})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(inner) => return write!(f, "optional_type({inner})"),
            Type::Object(object) => &object.name,
            Type::Param(name) => return write!(f, "{name}"),
        })
    }
}

/// Types that stand for the parameters of one call's signature.
#[derive(Clone, Debug, Default)]
pub(super) struct Bindings<'s>(Vec<(char, Type<'s>)>);

impl<'s> Bindings<'s> {
    /// Whether a value of type `actual` can be given where `wanted` is asked for.
    pub(super) fn accept(&mut self, wanted: &Type<'s>, actual: &Type<'s>) -> bool {
        if let Type::Param(name) = wanted {
            let Some(index) = self.0.iter().position(|(bound, _)| bound == name) else {
                self.0.push((*name, actual.clone()));
                return true;
            };
            let bound = self.0[index].1.clone();
            if bound.is_open() || matches!(bound, Type::Null) {
                let fits = self.accept(actual, &bound);
                self.0[index].1 = if matches!(bound, Type::Dyn) { bound } else { actual.clone() };
                return fits;
            }
            return self.accept(&bound, actual);
        }
        match (wanted, actual) {
            (wanted, actual) if wanted.is_open() || actual.is_open() => true,
            (Type::List(wanted, _), Type::List(actual, _))
            | (Type::Optional(wanted), Type::Optional(actual)) => self.accept(wanted, actual),
            (Type::Map(key, value), Type::Map(other_key, other_value)) => {
                self.accept(key, other_key) && self.accept(value, other_value)
            }
            (Type::Object(wanted), Type::Object(actual)) => wanted.name == actual.name,
            (Type::Opaque(wanted), Type::Opaque(actual)) => wanted == actual,
            (nullable, Type::Null) => matches!(
                nullable,
                Type::Null
                    | Type::Object(_)
                    | Type::Duration
                    | Type::Timestamp
                    | Type::Opaque(_)
                    | Type::Optional(_)
            ),
            (wanted, actual) => std::mem::discriminant(wanted) == std::mem::discriminant(actual),
        }
    }

    /// The type with its parameters filled in.
    pub(super) fn fill(&self, wanted: &Type<'s>) -> Type<'s> {
        match wanted {
            Type::Param(name) => {
                self.0.iter().find(|(bound, _)| bound == name).map_or(Type::Free, |(_, bound)| bound.clone())
            }
            Type::List(item, order) => Type::List(Arc::new(self.fill(item)), *order),
            Type::Optional(inner) => Type::optional(self.fill(inner)),
            Type::Map(key, value) => Type::Map(Arc::new(self.fill(key)), Arc::new(self.fill(value))),
            other => other.clone(),
        }
    }
}

/// A property's name as it is written in expressions; none if it cannot be.
pub(super) fn escape(name: &str) -> Option<String> {
    const RESERVED: [&str; 21] = [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ];
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.chars().all(plain) && !name.contains("__") {
        return Some(name.to_owned());
    }
    if !name.chars().all(|c| plain(c) || "-./".contains(c)) {
        return None;
    }
    let escaped = name.replace("__", "__underscores__");
    Some(escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__"))
}

/// Whether the schema's lists may be compared without regard to order.
pub(super) const fn is_unordered(schema: &Schema) -> bool {
    matches!(schema.list, ListType::Set | ListType::Map(_))
}

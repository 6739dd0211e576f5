//! Types of expressions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The type of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Known only when the expression is evaluated.
    Dyn,
    /// The type of something that is wrong, and has been reported.
    Error,
    /// `null`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `google.protobuf.Duration`
    Duration,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// The type of a type.
    Type(Arc<Type>),
    /// A type that only functions look into, like `kubernetes.Quantity` or `net.IP`.
    Opaque(&'static str),
    /// A list of items of one type.
    List(Arc<Type>),
    /// A map with keys and values of one type each.
    Map(Arc<Type>, Arc<Type>),
    /// A value that may be absent.
    Optional(Arc<Type>),
    /// An object with known fields.
    Object(Arc<ObjectType>),
    /// A type that is not known yet, or a parameter of a function's signature.
    Param(u32),
}

/// An object with known fields. Two objects are of the same type if they have the same name.
#[derive(Debug)]
pub struct ObjectType {
    /// Names the type in errors and tells it apart.
    pub name: String,
    /// Types of the fields, by their names in expressions.
    pub fields: BTreeMap<String, Type>,
}

impl PartialEq for ObjectType {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ObjectType {}

impl Type {
    /// A list of such items.
    #[must_use]
    pub fn list(item: Type) -> Self {
        Type::List(Arc::new(item))
    }

    /// A map of such entries.
    #[must_use]
    pub fn map(key: Type, value: Type) -> Self {
        Type::Map(Arc::new(key), Arc::new(value))
    }

    /// An optional value of such a type.
    #[must_use]
    pub fn optional(inner: Type) -> Self {
        Type::Optional(Arc::new(inner))
    }

    /// The type within an optional, or the type itself.
    pub(crate) fn unwrapped(&self) -> (&Type, bool) {
        match self {
            Type::Optional(inner) => (inner, true),
            other => (other, false),
        }
    }

    pub(crate) const fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Error)
    }

    /// The types that this type is made of.
    pub(crate) fn parameters(&self) -> [Option<&Type>; 2] {
        match self {
            Type::List(inner) | Type::Optional(inner) | Type::Type(inner) => [Some(inner), None],
            Type::Map(key, value) => [Some(key), Some(value)],
            _ => [None, None],
        }
    }

    /// The same type with its parameters replaced.
    pub(crate) fn replace(&self, with: &mut impl FnMut(&Type) -> Type) -> Type {
        match self {
            Type::List(inner) => Type::list(with(inner)),
            Type::Optional(inner) => Type::optional(with(inner)),
            Type::Type(inner) => Type::Type(Arc::new(with(inner))),
            Type::Map(key, value) => {
                let key = with(key);
                Type::map(key, with(value))
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Null => "null",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "duration",
            Type::Timestamp => "timestamp",
            Type::Opaque(name) => name,
            Type::Object(object) => &object.name,
            Type::Type(inner) => return write!(f, "type({inner})"),
            Type::List(item) => return write!(f, "list({item})"),
            Type::Map(key, value) => return write!(f, "map({key}, {value})"),
            Type::Optional(inner) => return write!(f, "optional_type({inner})"),
            Type::Param(index) => return write!(f, "_var{index}"),
        })
    }
}

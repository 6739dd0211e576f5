//! Values of expressions.

use crate::functions::kinds::{Cidr, NamedFormat, Quantity, Semver, Url};
use crate::time::Time;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

/// A value. Clones are cheap: what may be large is shared.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// Text.
    String(Arc<str>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A duration in nanoseconds.
    Duration(i64),
    /// A point in time.
    Timestamp(Time),
    /// A type, by its name.
    Type(Arc<str>),
    /// A list.
    List(List),
    /// A map, or an object with its fields.
    Map(Arc<Map>),
    /// A value that may be absent.
    Optional(Option<Arc<Value>>),
    /// `quantity('1Gi')`
    Quantity(Box<Quantity>),
    /// `ip('::1')`
    Ip(Box<IpAddr>),
    /// `cidr('10.0.0.0/8')`
    Cidr(Box<Cidr>),
    /// `url('https://host')`
    Url(Arc<Url>),
    /// `semver('1.2.3')`
    Semver(Arc<Semver>),
    /// `format.dns1123Label()`
    Format(&'static NamedFormat),
}

/// Entries of a map by key.
pub type Map = BTreeMap<Key, Value>;

/// A list, and what tells its items apart.
#[derive(Clone, Debug)]
pub struct List {
    /// The items.
    pub items: Arc<Vec<Value>>,
    /// How the list compares with and adds to others.
    pub identity: Identity,
}

/// What tells the items of a list apart (`x-kubernetes-list-type`).
#[derive(Clone, Debug, Default)]
pub enum Identity {
    /// Their places.
    #[default]
    Place,
    /// Themselves. Order does not matter.
    Item,
    /// These fields of theirs. Order does not matter.
    Keys(Arc<[String]>),
}

/// A key of a map. Integers of both types with the same value are the same key.
#[derive(Clone, Debug)]
pub enum Key {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// Text.
    String(Arc<str>),
}

impl Key {
    fn number(&self) -> Option<i128> {
        match self {
            Key::Int(int) => Some(i128::from(*int)),
            Key::Uint(uint) => Some(i128::from(*uint)),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Key::Bool(_) => 0,
            Key::Int(_) | Key::Uint(_) => 1,
            Key::String(_) => 2,
        }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Key::Bool(first), Key::Bool(second)) => first.cmp(second),
            (Key::String(first), Key::String(second)) => first.cmp(second),
            (first, second) => (first.rank(), first.number()).cmp(&(second.rank(), second.number())),
        }
    }
}

impl From<Key> for Value {
    fn from(key: Key) -> Self {
        match key {
            Key::Bool(flag) => Value::Bool(flag),
            Key::Int(int) => Value::Int(int),
            Key::Uint(uint) => Value::Uint(uint),
            Key::String(text) => Value::String(text),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::String(text.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Value::Int(int)
    }
}

impl Value {
    /// A list whose items are told apart by their places.
    pub fn list(items: Vec<Value>) -> Self {
        Value::List(List { items: Arc::new(items), identity: Identity::Place })
    }

    /// An optional with a value.
    pub fn some(value: Value) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// The name of the value's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null_type",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Uint(_) => "uint",
            Value::Double(_) => "double",
            Value::String(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::Duration(_) => "google.protobuf.Duration",
            Value::Timestamp(_) => "google.protobuf.Timestamp",
            Value::Type(_) => "type",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Optional(_) => "optional_type",
            Value::Quantity(_) => "kubernetes.Quantity",
            Value::Ip(_) => "net.IP",
            Value::Cidr(_) => "net.CIDR",
            Value::Url(_) => "kubernetes.URL",
            Value::Semver(_) => "kubernetes.Semver",
            Value::Format(_) => "kubernetes.NamedFormat",
        }
    }

    /// The value as a key of a map, if it can be one.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Value::Bool(flag) => Key::Bool(*flag),
            Value::Int(int) => Key::Int(*int),
            Value::Uint(uint) => Key::Uint(*uint),
            Value::Double(double) => whole(*double)?,
            Value::String(text) => Key::String(text.clone()),
            _ => return None,
        })
    }

    /// How large the value is: characters, bytes, items or entries; none for what has no size.
    pub(crate) fn size(&self) -> Option<u64> {
        let size = match self {
            Value::String(text) => text.chars().count(),
            Value::Bytes(bytes) => bytes.len(),
            Value::List(list) => list.items.len(),
            Value::Map(map) => map.len(),
            Value::Ip(ip) => {
                if ip.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Value::Cidr(cidr) => usize::from(cidr.bits.div_ceil(8)),
            _ => return None,
        };
        u64::try_from(size).ok()
    }

    /// How two values are ordered; none if they cannot be.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        Some(match (self, other) {
            (Value::Bool(first), Value::Bool(second)) => first.cmp(second),
            (Value::String(first), Value::String(second)) => first.cmp(second),
            (Value::Bytes(first), Value::Bytes(second)) => first.cmp(second),
            (Value::Duration(first), Value::Duration(second)) => first.cmp(second),
            (Value::Timestamp(first), Value::Timestamp(second)) => first.cmp(second),
            _ => return self.compare_numbers(other),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "cel-go compares integers with doubles as doubles")]
    fn compare_numbers(&self, other: &Self) -> Option<Ordering> {
        let int = |value: &Value| match value {
            Value::Int(int) => Some(i128::from(*int)),
            Value::Uint(uint) => Some(i128::from(*uint)),
            _ => None,
        };
        match (self, other) {
            (Value::Double(first), Value::Double(second)) => first.partial_cmp(second),
            (Value::Double(first), second) => first.partial_cmp(&(int(second)? as f64)),
            (first, Value::Double(second)) => (int(first)? as f64).partial_cmp(second),
            (first, second) => Some(int(first)?.cmp(&int(second)?)),
        }
    }

    /// Whether two values are equal. `work` counts the values that were compared.
    pub(crate) fn equals(&self, other: &Self, work: &mut u64) -> bool {
        *work += 1;
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::String(first), Value::String(second)) => {
                *work += u64::try_from(first.len().min(second.len()) / 16).unwrap_or(0);
                first == second
            }
            (Value::Bytes(first), Value::Bytes(second)) => first == second,
            (Value::Type(first), Value::Type(second)) => first == second,
            (Value::Bool(first), Value::Bool(second)) => first == second,
            (Value::Duration(first), Value::Duration(second)) => first == second,
            (Value::Timestamp(first), Value::Timestamp(second)) => first == second,
            (Value::List(first), Value::List(second)) => first.equals(second, work),
            (Value::Map(first), Value::Map(second)) => {
                first.len() == second.len()
                    && first
                        .iter()
                        .all(|(key, value)| second.get(key).is_some_and(|other| value.equals(other, work)))
            }
            (Value::Optional(first), Value::Optional(second)) => match (first, second) {
                (Some(first), Some(second)) => first.equals(second, work),
                (None, None) => true,
                _ => false,
            },
            (Value::Quantity(first), Value::Quantity(second)) => first.nanos == second.nanos,
            (Value::Ip(first), Value::Ip(second)) => first == second,
            (Value::Cidr(first), Value::Cidr(second)) => first == second,
            (Value::Url(first), Value::Url(second)) => first.text == second.text,
            (Value::Semver(first), Value::Semver(second)) => first.compare(second).is_eq(),
            (Value::Format(first), Value::Format(second)) => first.name == second.name,
            (first, second) => first.compare_numbers(second) == Some(Ordering::Equal),
        }
    }

    /// A text that is the same for equal values, to find an item among many.
    fn canonical(&self, out: &mut String) {
        // Text cannot fail to be written to.
        let _ = match self {
            Value::Int(int) => write!(out, "n{int}"),
            Value::Uint(uint) => write!(out, "n{uint}"),
            Value::Double(double) => match whole(*double) {
                Some(Key::Int(int)) => write!(out, "n{int}"),
                Some(Key::Uint(uint)) => write!(out, "n{uint}"),
                _ => write!(out, "d{double}"),
            },
            Value::List(list) => {
                let _ = write!(out, "l{}[", list.items.len());
                list.items.iter().for_each(|item| item.canonical(out));
                write!(out, "]")
            }
            Value::Map(map) => {
                let _ = write!(out, "m{}{{", map.len());
                for (key, value) in map.iter() {
                    Value::from(key.clone()).canonical(out);
                    value.canonical(out);
                }
                write!(out, "}}")
            }
            Value::String(text) => write!(out, "s{}:{text}", text.len()),
            other => write!(out, "{other:?};"),
        };
    }
}

/// The integer that a double is, if it is one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the ranges are checked")]
fn whole(double: f64) -> Option<Key> {
    if double.fract() != 0.0 {
        return None;
    }
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&double) {
        return Some(Key::Int(double as i64));
    }
    (0.0..18_446_744_073_709_551_616.0).contains(&double).then_some(Key::Uint(double as u64))
}

impl List {
    /// What tells an item apart, as a text.
    fn identify(&self, item: &Value) -> String {
        let mut out = String::new();
        match (&self.identity, item) {
            (Identity::Keys(keys), Value::Map(map)) => {
                for key in keys.iter() {
                    match map.get(&Key::String(key.as_str().into())) {
                        Some(value) => value.canonical(&mut out),
                        None => out.push('-'),
                    }
                }
            }
            _ => item.canonical(&mut out),
        }
        out
    }

    fn equals(&self, other: &Self, work: &mut u64) -> bool {
        if self.items.len() != other.items.len() {
            return false;
        }
        if matches!(self.identity, Identity::Place) {
            return Arc::ptr_eq(&self.items, &other.items)
                || self
                    .items
                    .iter()
                    .zip(other.items.iter())
                    .all(|(first, second)| first.equals(second, work));
        }
        *work += u64::try_from(self.items.len()).unwrap_or(0) * 2;
        let mine: HashMap<String, &Value> =
            self.items.iter().map(|item| (self.identify(item), item)).collect();
        other
            .items
            .iter()
            .all(|item| mine.get(&self.identify(item)).is_some_and(|found| found.equals(item, work)))
    }

    /// This list and another: in order, or with the items of the other in place of those they equal.
    pub(crate) fn add(&self, other: &Self) -> Self {
        if matches!(self.identity, Identity::Place) {
            let items = self.items.iter().chain(other.items.iter()).cloned().collect();
            return List { items: Arc::new(items), identity: Identity::Place };
        }
        let mut items: Vec<Value> = self.items.to_vec();
        let mut places: HashMap<String, usize> =
            items.iter().enumerate().map(|(place, item)| (self.identify(item), place)).collect();
        for item in other.items.iter() {
            let identity = self.identify(item);
            if let Some(place) = places.get(&identity) {
                items[*place] = item.clone();
            } else {
                places.insert(identity, items.len());
                items.push(item.clone());
            }
        }
        List { items: Arc::new(items), identity: self.identity.clone() }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other, &mut 0)
    }
}

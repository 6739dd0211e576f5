//! How large values can be, by their schema.

use std::collections::BTreeMap;

/// The largest object that a request can carry, in bytes.
const REQUEST_BYTES_MAX: u64 = 3 * 1024 * 1024;

/// The keys of maps have no bound of their own. Kubernetes counts them as empty.
pub(super) static KEY: Bounds =
    Bounds { elements_max: 0, json_bytes_min: 2, fields: BTreeMap::new(), items: None, is_map: false };

/// How large the values of one node of a schema can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// The most characters, bytes or elements that a value has; 0 for what has no size.
    pub elements_max: u64,
    /// The fewest bytes that a value takes in JSON.
    pub json_bytes_min: u64,
    /// Bounds of the fields of an object, by their names in CEL.
    pub fields: BTreeMap<String, Bounds>,
    /// Bounds of the items of a list or the values of a map.
    pub items: Option<Box<Bounds>>,
    /// Whether this is a map.
    pub is_map: bool,
}

impl Bounds {
    /// Of a boolean.
    pub fn boolean() -> Bounds {
        Bounds { json_bytes_min: 4, ..Bounds::default() }
    }

    /// Of a number.
    pub fn number() -> Bounds {
        Bounds { json_bytes_min: 1, ..Bounds::default() }
    }

    /// Of an integer that can be a string, with its `maxLength`.
    pub fn int_or_string(length_max: Option<u64>) -> Bounds {
        Bounds { elements_max: characters(length_max), json_bytes_min: 1, ..Bounds::default() }
    }

    /// Of a string with its `format`, `maxLength` and `enum`.
    pub fn string<'a>(
        format: Option<&str>,
        length_max: Option<u64>,
        choices: impl IntoIterator<Item = &'a str>,
    ) -> Bounds {
        let (elements_max, json_bytes_min) = match format {
            Some("byte") => (length_max.unwrap_or(REQUEST_BYTES_MAX - 2), 2),
            // The longest and the shortest text of each, with its quotes.
            Some("duration") => (32, 3),
            Some("date") => (12, 12),
            Some("date-time") => (32, 21),
            _ => match (length_max, choices.into_iter().map(str::len).max()) {
                (None, Some(longest)) => (u64::try_from(longest).unwrap_or(u64::MAX), 2),
                (length_max, _) => (characters(length_max), 2),
            },
        };
        Bounds { elements_max, json_bytes_min, ..Bounds::default() }
    }

    /// Of a list with its `maxItems`.
    pub fn list(items: Bounds, items_max: Option<u64>) -> Bounds {
        // Brackets around the list, a comma between its items.
        let fitting = (REQUEST_BYTES_MAX - 2) / (items.json_bytes_min + 1);
        let elements_max = items_max.unwrap_or(fitting);
        Bounds { elements_max, json_bytes_min: 2, items: Some(Box::new(items)), ..Bounds::default() }
    }

    /// Of a map with its `maxProperties`.
    pub fn map(values: Bounds, properties_max: Option<u64>) -> Bounds {
        // Braces around the map; a key of two characters, its quotes, a colon and a comma for each entry.
        let fitting = (REQUEST_BYTES_MAX - 2) / (values.json_bytes_min + 6);
        let elements_max = properties_max.unwrap_or(fitting);
        Bounds {
            elements_max,
            json_bytes_min: 2,
            items: Some(Box::new(values)),
            is_map: true,
            ..Bounds::default()
        }
    }

    /// Of an object. `required` has the names in JSON and the bounds of fields that each object has.
    pub fn object<'a>(
        fields: BTreeMap<String, Bounds>,
        required: impl IntoIterator<Item = (&'a str, u64)>,
    ) -> Bounds {
        let field = |(name, bytes): (&str, u64)| {
            u64::try_from(name.len()).unwrap_or(u64::MAX).saturating_add(bytes).saturating_add(4)
        };
        let json_bytes_min =
            required.into_iter().map(field).fold(2, |sum: u64, bytes| sum.saturating_add(bytes));
        Bounds { json_bytes_min, fields, ..Bounds::default() }
    }

    /// How often a value can stand in one request, wherever nothing else limits it.
    pub fn cardinality_max(&self) -> u64 {
        REQUEST_BYTES_MAX / self.json_bytes_min.saturating_add(1)
    }
}

/// Bytes of a string: a character has at most four.
fn characters(length_max: Option<u64>) -> u64 {
    length_max.map_or(REQUEST_BYTES_MAX - 2, |length| length.saturating_mul(4))
}

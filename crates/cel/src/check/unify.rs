//! Which types go together, and what unknown types turn out to be.

use crate::types::Type;

/// What type parameters stand for. Attempts that fail are rolled back.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    bound: Vec<Option<Type>>,
    /// Parameters that were bound, with what they were before.
    trail: Vec<(usize, Option<Type>)>,
}

impl Mapping {
    /// `count` new parameters, of which the first is given.
    pub(super) fn fresh(&mut self, count: u32) -> u32 {
        let first = u32::try_from(self.bound.len()).unwrap_or(u32::MAX);
        let more = usize::try_from(count).unwrap_or(0);
        self.bound.resize(self.bound.len() + more, None);
        first
    }

    fn find(&self, param: u32) -> Option<&Type> {
        self.bound.get(usize::try_from(param).ok()?)?.as_ref()
    }

    fn bind(&mut self, param: u32, to: Type) {
        let Ok(index) = usize::try_from(param) else { return };
        if let Some(slot) = self.bound.get_mut(index) {
            self.trail.push((index, slot.replace(to)));
        }
    }

    /// Whether all pairs go together. If they do not, nothing is learnt from them.
    pub(super) fn assignable_all(&mut self, pairs: &[(Type, Type)]) -> bool {
        self.trail.clear();
        if pairs.iter().all(|(first, second)| self.assignable(first, second)) {
            return true;
        }
        while let Some((index, before)) = self.trail.pop() {
            self.bound[index] = before;
        }
        false
    }

    fn assignable(&mut self, first: &Type, second: &Type) -> bool {
        if let Type::Param(param) = second {
            let (valid, bound) = self.substitutes(first, *param);
            if valid {
                return true;
            }
            if bound {
                return false;
            }
        }
        if let Type::Param(param) = first {
            return self.substitutes(second, *param).0;
        }
        match (first, second) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) | (Type::Type(_), Type::Type(_)) => {
                true
            }
            (Type::Null, other) | (other, Type::Null) => matches!(
                other,
                Type::Null
                    | Type::Optional(_)
                    | Type::Opaque(_)
                    | Type::Object(_)
                    | Type::Duration
                    | Type::Timestamp
            ),
            (Type::List(first), Type::List(second)) | (Type::Optional(first), Type::Optional(second)) => {
                self.assignable(first, second)
            }
            (Type::Map(key, value), Type::Map(key2, value2)) => {
                self.assignable(key, key2) && self.assignable(value, value2)
            }
            (first, second) => first == second,
        }
    }

    /// Whether the parameter can stand for the type, and whether it stood for one before.
    fn substitutes(&mut self, other: &Type, param: u32) -> (bool, bool) {
        if *other == Type::Param(param) {
            return (true, true);
        }
        if let Some(bound) = self.find(param).cloned() {
            if *other == bound {
                return (true, true);
            }
            if self.assignable(other, &bound) {
                let general = if less_specific(other, &bound) { other.clone() } else { bound };
                if self.absent(param, &general) {
                    self.bind(param, general);
                }
                return (true, true);
            }
            return (false, true);
        }
        if self.absent(param, other) {
            self.bind(param, other.clone());
            return (true, false);
        }
        (false, false)
    }

    /// Whether the parameter occurs nowhere within the type.
    fn absent(&self, param: u32, within: &Type) -> bool {
        match within {
            Type::Param(other) if *other == param => false,
            Type::Param(other) => self.find(*other).is_none_or(|bound| self.absent(param, bound)),
            other => other.parameters().into_iter().flatten().all(|inner| self.absent(param, inner)),
        }
    }

    /// The type with all that is known filled in. What is not known stays, or becomes `dyn`.
    pub(super) fn substitute(&self, of: &Type, unknown_is_dyn: bool) -> Type {
        match of {
            Type::Param(param) => match self.find(*param) {
                Some(bound) => self.substitute(bound, unknown_is_dyn),
                None if unknown_is_dyn => Type::Dyn,
                None => of.clone(),
            },
            other => other.replace(&mut |inner| self.substitute(inner, unknown_is_dyn)),
        }
    }
}

/// The more general of two types that go together.
pub(super) fn most_general(first: &Type, second: &Type) -> Type {
    if less_specific(first, second) { first.clone() } else { second.clone() }
}

/// Whether the first type equals the second or says less.
fn less_specific(first: &Type, second: &Type) -> bool {
    match (first, second) {
        (Type::Dyn | Type::Param(_), _) | (Type::Type(_), Type::Type(_)) => true,
        (_, Type::Dyn | Type::Param(_)) => false,
        (Type::List(first), Type::List(second)) | (Type::Optional(first), Type::Optional(second)) => {
            less_specific(first, second)
        }
        (Type::Map(key, value), Type::Map(key2, value2)) => {
            less_specific(key, key2) && less_specific(value, value2)
        }
        (first, second) => first == second,
    }
}

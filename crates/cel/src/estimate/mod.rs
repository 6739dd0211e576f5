//! How much an expression can cost, from its text and from the bounds of the schema it is about.
//!
//! The estimate is the one by which kube-apiserver accepts or refuses a rule, so it is the same in all its
//! details, also where they seem arbitrary: what a step costs, which sizes are known, and which are not.

mod bounds;
mod calls;
mod lists;
mod range;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use range::Range;

use crate::ast::{Comprehension, Entry, Expr, ExprKind, Id, Literal};
use crate::check::{Checked, Reference};
use crate::types::Type;
use std::collections::HashMap;

/// The cost of reading a variable or selecting a field.
const SELECT: Range = Range::fixed(1);
const MAKE_LIST: Range = Range::fixed(10);
const MAKE_MAP: Range = Range::fixed(30);
const FREE: Range = Range::fixed(0);

/// What evaluating the expression can cost. `bounds` are those of `self`.
pub fn estimate(checked: &Checked, bounds: &Bounds) -> Range {
    let mut estimator = Estimator {
        checked,
        bounds,
        places: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        scope: Vec::new(),
    };
    estimator.cost(&checked.ast.root)
}

/// Where in the schema a value comes from.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    /// It was computed.
    Nowhere,
    /// From this part.
    At(&'a Bounds),
    /// From a part that has no bounds.
    Lost,
}

/// A step from a value into it.
#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    /// An item of a list or a value of a map.
    Item,
    Key,
    Index,
}

/// Sizes of what a list or a map contains.
#[derive(Clone, Copy, Debug)]
struct Entries {
    is_list: bool,
    keys: Range,
    values: Range,
}

impl Entries {
    fn union(self, other: Entries) -> Entries {
        Entries {
            is_list: self.is_list,
            keys: self.keys.union(other.keys),
            values: self.values.union(other.values),
        }
    }
}

/// A variable of a macro.
#[derive(Clone, Debug)]
struct Variable<'a> {
    name: String,
    place: Place<'a>,
    size: Option<Range>,
    entries: Option<Entries>,
}

/// An argument of a call.
#[derive(Clone, Copy, Debug)]
struct Argument<'a> {
    expr: &'a Expr,
    place: Place<'a>,
    of: &'a Type,
    size: Option<Range>,
    cost: Range,
}

struct Estimator<'a> {
    checked: &'a Checked,
    bounds: &'a Bounds,
    places: HashMap<Id, Place<'a>>,
    sizes: HashMap<Id, Range>,
    entries: HashMap<Id, Entries>,
    /// Variables of the macros around, the innermost last.
    scope: Vec<Variable<'a>>,
}

impl<'a> Estimator<'a> {
    fn cost(&mut self, expr: &'a Expr) -> Range {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Struct(_) => FREE,
            ExprKind::Ident(name) => {
                let place = self.variable(name).map_or(Place::At(self.bounds), |variable| variable.place);
                self.places.insert(expr.id, place);
                SELECT
            }
            ExprKind::Select { operand, field, test } => self.select(expr, operand, field, *test),
            ExprKind::Call { function, target, args } => self.call(expr, function, target.as_deref(), args),
            ExprKind::List { elements, .. } => self.list(expr, elements),
            ExprKind::Map(entries) => self.map(expr, entries),
            ExprKind::Comprehension(parts) if is_binding(parts) => self.binding(expr, parts),
            ExprKind::Comprehension(parts) => self.comprehension(expr, parts),
        }
    }

    fn select(&mut self, expr: &'a Expr, operand: &'a Expr, field: &'a str, test: bool) -> Range {
        let cost = self.cost(operand);
        if test {
            return cost;
        }
        let place = self.step(self.place(operand), Step::Field(field));
        self.places.insert(expr.id, place);
        match self.checked.type_of(operand.id) {
            Type::Map(..) | Type::Object(_) | Type::Param(_) => cost.plus(SELECT),
            Type::Opaque(name) if calls::is_object(name) => cost.plus(SELECT),
            _ => cost,
        }
    }

    fn call(
        &mut self,
        expr: &'a Expr,
        function: &'a str,
        target: Option<&'a Expr>,
        args: &'a [Expr],
    ) -> Range {
        if let ("dyn", [argument]) = (function, args) {
            let cost = self.cost(argument);
            self.copy_sizes(expr, argument);
            return cost.plus(Range::fixed(1));
        }
        let arguments: Vec<Argument<'a>> = args.iter().map(|argument| self.argument(argument)).collect();
        let target = target.map(|target| self.argument(target));
        let Some(Reference::Overloads(overloads)) = self.checked.reference(expr.id) else { return FREE };
        let mut cost = Range { min: u64::MAX, max: 0 };
        let mut size: Option<Range> = None;
        for overload in overloads {
            let (costs, sized) = self.overload(expr, function, overload, target.as_ref(), &arguments);
            cost = cost.union(costs);
            size = match (size, sized) {
                (Some(size), Some(sized)) => Some(size.union(sized)),
                (size, sized) => size.or(sized),
            };
            if let ("index_list" | "index_map", [container, ..]) = (*overload, args) {
                size = self.entries(container).map(|entries| entries.values);
                let place = self.step(self.place(container), Step::Item);
                self.places.insert(expr.id, place);
            }
            size = size.or_else(|| self.size(expr));
        }
        self.set_size(expr, size);
        target.map_or(FREE, |target| target.cost).plus(cost)
    }

    fn argument(&mut self, expr: &'a Expr) -> Argument<'a> {
        let cost = self.cost(expr);
        let (place, size) = (self.place(expr), self.size(expr));
        Argument { expr, place, of: self.checked.type_of(expr.id), size, cost }
    }

    fn list(&mut self, expr: &'a Expr, elements: &'a [Expr]) -> Range {
        let mut cost = MAKE_LIST;
        let mut values = Range { min: if elements.is_empty() { 0 } else { u64::MAX }, max: 0 };
        for element in elements {
            cost = cost.plus(self.cost(element));
            values = values.union(self.size_or_unknown(element));
        }
        self.entries.insert(expr.id, Entries { is_list: true, keys: Range::fixed(1), values });
        cost
    }

    fn map(&mut self, expr: &'a Expr, pairs: &'a [Entry]) -> Range {
        let mut cost = MAKE_MAP;
        let none = Range { min: if pairs.is_empty() { 0 } else { u64::MAX }, max: 0 };
        let (mut keys, mut values) = (none, none);
        for pair in pairs {
            cost = cost.plus(self.cost(&pair.key)).plus(self.cost(&pair.value));
            keys = keys.union(self.size_or_unknown(&pair.key));
            values = values.union(self.size_or_unknown(&pair.value));
        }
        self.entries.insert(expr.id, Entries { is_list: false, keys, values });
        cost
    }

    fn comprehension(&mut self, expr: &'a Expr, parts: &'a Comprehension) -> Range {
        let mut cost = self.cost(&parts.range).plus(self.cost(&parts.init));
        self.bind(&parts.accumulator, &parts.init);
        let variables = self.scope.len();
        self.iterate(parts);
        let each = self.cost(&parts.condition).plus(self.cost(&parts.step));
        self.scope.truncate(variables);
        cost = cost.plus(self.cost(&parts.result));
        self.scope.pop();
        let count = self.size_or_unknown(&parts.range);
        match &parts.init.kind {
            ExprKind::Literal(_) => {
                let size = self.size(&parts.init);
                self.set_size(expr, size);
            }
            ExprKind::List { .. } | ExprKind::Map(_) => {
                self.set_size(expr, Some(count));
                let entries = self.entries(&parts.step);
                self.set_entries(expr, entries);
            }
            _ => {}
        }
        cost.plus(count.times(each))
    }

    /// Declares the variables of a loop.
    fn iterate(&mut self, parts: &'a Comprehension) {
        let entries = self.entries(&parts.range);
        let place = self.place(&parts.range);
        let is_list = match entries {
            Some(entries) => entries.is_list,
            None => matches!(self.checked.type_of(parts.range.id), Type::List(_)),
        };
        let (keys, values) = (entries.map(|entries| entries.keys), entries.map(|entries| entries.values));
        let (key, value) = if is_list {
            ((Step::Index, keys), (Step::Item, values))
        } else {
            ((Step::Key, keys), (Step::Item, values))
        };
        let mut declare = |name: &str, (step, size): (Step<'a>, Option<Range>)| {
            let place = self.step(place, step);
            self.scope.push(Variable { name: name.to_owned(), place, size, entries: None });
        };
        match &parts.variable2 {
            Some(second) => {
                declare(&parts.variable, key);
                declare(second, value);
            }
            None => declare(&parts.variable, if is_list { value } else { key }),
        }
    }

    /// A name for one value: the loop runs never, and its result is computed once.
    fn binding(&mut self, expr: &'a Expr, parts: &'a Comprehension) -> Range {
        let cost = self.cost(&parts.range).plus(self.cost(&parts.init));
        self.bind(&parts.accumulator, &parts.init);
        let cost = cost.plus(self.cost(&parts.result));
        self.scope.pop();
        self.copy_sizes(expr, &parts.result);
        cost
    }

    fn bind(&mut self, name: &str, init: &'a Expr) {
        let variable = Variable {
            name: name.to_owned(),
            place: self.place(init),
            entries: self.entries(init),
            size: self.size(init),
        };
        self.scope.push(variable);
    }

    fn variable(&self, name: &str) -> Option<&Variable<'a>> {
        self.scope.iter().rev().find(|variable| variable.name == name)
    }

    fn place(&self, expr: &Expr) -> Place<'a> {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(variable) = self.variable(name)
        {
            return variable.place;
        }
        self.places.get(&expr.id).copied().unwrap_or(Place::Nowhere)
    }

    /// A step from something computed leads to the bounds of the whole: that is how Kubernetes reads a path
    /// without a variable at its start.
    fn step(&self, place: Place<'a>, step: Step<'_>) -> Place<'a> {
        let at = match place {
            Place::Nowhere => return Place::At(self.bounds),
            Place::Lost => return Place::Lost,
            Place::At(bounds) => bounds,
        };
        let next = match step {
            Step::Field(name) => at.fields.get(name),
            Step::Item => at.items.as_deref(),
            Step::Key if at.is_map => return Place::At(&bounds::KEY),
            Step::Key | Step::Index => None,
        };
        next.map_or(Place::Lost, Place::At)
    }

    fn set_size(&mut self, expr: &Expr, size: Option<Range>) {
        if let Some(size) = size {
            self.sizes.insert(expr.id, size);
        }
    }

    fn set_entries(&mut self, expr: &Expr, entries: Option<Entries>) {
        if let Some(entries) = entries {
            self.entries.insert(expr.id, entries);
        }
    }

    fn copy_sizes(&mut self, to: &Expr, from: &'a Expr) {
        let (size, entries) = (self.size(from), self.entries(from));
        self.set_size(to, size);
        self.set_entries(to, entries);
    }

    fn size_or_unknown(&mut self, expr: &'a Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    /// The size of a value, if anything is known of it.
    fn size(&mut self, expr: &'a Expr) -> Option<Range> {
        if let Some(size) = self.sizes.get(&expr.id) {
            return Some(*size);
        }
        if let Some(size) = literal_size(expr) {
            return Some(Range::fixed(size));
        }
        if let Place::At(bounds) = self.place(expr) {
            let size = Range::up_to(bounds.elements_max);
            self.sizes.insert(expr.id, size);
            return Some(size);
        }
        if is_scalar(self.checked.type_of(expr.id)) {
            return Some(Range::fixed(1));
        }
        let ExprKind::Ident(name) = &expr.kind else { return None };
        self.variable(name)?.size
    }

    fn entries(&self, expr: &Expr) -> Option<Entries> {
        if let Some(entries) = self.entries.get(&expr.id) {
            return Some(*entries);
        }
        let ExprKind::Ident(name) = &expr.kind else { return None };
        self.variable(name)?.entries
    }
}

/// Whether the loop only gives a name to a value.
fn is_binding(parts: &Comprehension) -> bool {
    matches!(&parts.range.kind, ExprKind::List { elements, .. } if elements.is_empty())
        && matches!(parts.condition.kind, ExprKind::Literal(Literal::Bool(false)))
}

/// The size of what is written in the expression itself.
fn literal_size(expr: &Expr) -> Option<u64> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List { elements, .. } => elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    u64::try_from(size).ok()
}

/// Whether all values of the type have the same size.
fn is_scalar(of: &Type) -> bool {
    match of {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

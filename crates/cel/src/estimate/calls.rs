//! What calls can cost.

use super::{Argument, Bounds, Estimator, FREE, Place, Range, Step, lists};
use crate::ast::{Expr, ExprKind, Literal};
use crate::types::Type;

/// The cost of a character that is read once.
pub(super) const TRAVERSAL: f64 = 0.1;
/// The cost of a character of a regular expression, for each unit that reading the text costs.
const REGEX: f64 = 0.25;
/// The longest regular expression of a named format.
const FORMAT_REGEX_MAX: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME_MAX: u64 = 64;
const ONE: Range = Range::fixed(1);

/// The cost of a call without its arguments, and the size of its result.
pub(super) type Estimate = (Range, Option<Range>);

/// Whether Kubernetes declares this type of its own as an object.
pub(super) fn is_object(name: &str) -> bool {
    !matches!(name, "net.IP" | "net.CIDR")
}

impl<'a> Estimator<'a> {
    /// The cost of one overload with its arguments, and the size of its result.
    pub(super) fn overload(
        &mut self,
        expr: &'a Expr,
        function: &str,
        overload: &str,
        target: Option<&Argument<'a>>,
        args: &[Argument<'a>],
    ) -> Estimate {
        let of_args = args.iter().fold(FREE, |sum, argument| sum.plus(argument.cost));
        match overload {
            "logical_or" | "logical_and" => {
                let min = args.first().map_or(0, |first| first.cost.min);
                return (Range { min, max: of_args.max }, None);
            }
            "conditional" => return self.conditional(expr, args),
            "add_string" | "add_bytes" | "add_list" => {
                let [first, second] = args else { return (ONE.plus(of_args), None) };
                if let (Some(one), Some(other)) = (self.entries(first.expr), self.entries(second.expr)) {
                    self.set_entries(expr, Some(one.union(other)));
                }
            }
            _ => {}
        }
        let known = lists::estimate(overload, target, args)
            .or_else(|| self.library(function, overload, target, args))
            .unwrap_or_else(|| standard(overload, target, args));
        (known.0.plus(of_args), known.1)
    }

    fn conditional(&mut self, expr: &'a Expr, args: &[Argument<'a>]) -> Estimate {
        let [condition, yes, no] = args else { return (ONE, None) };
        if let (Some(one), Some(other)) = (self.entries(yes.expr), self.entries(no.expr)) {
            self.set_entries(expr, Some(one.union(other)));
        }
        (condition.cost.plus(yes.cost.union(no.cost)), Some(or_unknown(yes.size).union(or_unknown(no.size))))
    }

    /// The functions that Kubernetes adds, and those whose costs it sets.
    fn library(
        &self,
        function: &str,
        overload: &str,
        target: Option<&Argument<'a>>,
        args: &[Argument<'a>],
    ) -> Option<Estimate> {
        Some(match function {
            "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => (self.each_item(target?), None),
            "url" => {
                let [argument] = args else { return None };
                let size = size(argument);
                (size.scaled(TRAVERSAL), Some(size))
            }
            "lowerAscii" | "upperAscii" | "substring" | "trim" => {
                let size = size(target?);
                (size.scaled(TRAVERSAL), Some(size))
            }
            "replace" => replace(target?, args)?,
            "split" => split(target?, args),
            "join" => self.join(target?, args),
            "find" | "findAll" => {
                let size = size(target?);
                let regex = self::size(args.first()?).scaled(REGEX);
                (size.plus(ONE).scaled(TRAVERSAL).times(regex), Some(Range::up_to(size.max)))
            }
            "ip" if overload != "cidr_ip" => (size(args.first()?).scaled(TRAVERSAL), None),
            "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
                (size(args.first()?).scaled(TRAVERSAL), None)
            }
            "ip.isCanonical" => (size(args.first()?).scaled(2.0 * TRAVERSAL), None),
            "containsIP" | "containsCIDR" => (contains_address(function, overload, args.first()?), None),
            "validate" => (size(args.first()?).scaled(TRAVERSAL).scaled(FORMAT_REGEX_MAX * REGEX), None),
            "ip"
            | "masked"
            | "prefixLength"
            | "family"
            | "isUnspecified"
            | "isLoopback"
            | "isLinkLocalMulticast"
            | "isLinkLocalUnicast"
            | "isGlobalUnicast"
            | "format.named"
            | "sign"
            | "asInteger"
            | "isInteger"
            | "asApproximateFloat"
            | "isGreaterThan"
            | "isLessThan"
            | "compareTo"
            | "add"
            | "sub"
            | "major"
            | "minor"
            | "patch"
            | "getScheme"
            | "getHostname"
            | "getHost"
            | "getPort"
            | "getEscapedPath"
            | "getQuery"
            // Of the authorizer, whose functions have names that others share.
            | "serviceAccount" | "path" | "group" | "resource" | "subresource" | "namespace" | "name"
            | "allowed" | "reason" | "error" | "errored" => (ONE, None),
            "check" => (Range::fixed(350_000), None),
            "_==_" => (equal_objects(args)?, None),
            _ => return None,
        })
    }

    /// Reads a list or a string once.
    fn each_item(&self, target: &Argument<'a>) -> Range {
        match self.item(target) {
            Some((of, items)) => {
                let cost = match of {
                    Type::String | Type::Bytes => ONE.plus(items.scaled(TRAVERSAL)),
                    _ => ONE,
                };
                size(target).times(cost)
            }
            None => size(target).scaled(TRAVERSAL),
        }
    }

    /// The type and the size of the items of a list.
    fn item(&self, list: &Argument<'a>) -> Option<(&'a Type, Range)> {
        let of = list.of.parameters()[0]?;
        let place = match list.place {
            Place::Nowhere => return Some((of, Range::UNKNOWN)),
            place => self.step(place, Step::Item),
        };
        Some((of, self::bounds(place).map_or(Range::UNKNOWN, |bounds| Range::up_to(bounds.elements_max))))
    }

    fn join(&self, target: &Argument<'a>, args: &[Argument<'a>]) -> Estimate {
        let count = size(target);
        let mut total = self.item(target).map_or(FREE, |(_, item)| count.times(item));
        if let Some(separator) = args.first() {
            let separators = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
            total = total.plus(size(separator).times(separators));
        }
        (total.scaled(TRAVERSAL), Some(total))
    }
}

fn bounds(place: Place<'_>) -> Option<&Bounds> {
    match place {
        Place::At(bounds) => Some(bounds),
        Place::Nowhere | Place::Lost => None,
    }
}

/// The size of an argument, or no bound. Whatever the schema says of it has been looked up already.
pub(super) fn size(argument: &Argument<'_>) -> Range {
    or_unknown(argument.size)
}

fn or_unknown(size: Option<Range>) -> Range {
    size.unwrap_or(Range::UNKNOWN)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
fn divided(length: u64, part: u64) -> u64 {
    (length as f64 / part as f64).ceil() as u64
}

fn replace(target: &Argument<'_>, args: &[Argument<'_>]) -> Option<Estimate> {
    let [old, new, ..] = args else { return None };
    let (text, old, new) = (size(target), size(old), size(new));
    // What is replaced how often, and how much of the text stays, at most and at least. An empty text stands
    // around each character.
    let (count_max, kept_max) = match old.min {
        0 => (text.max.saturating_add(1), text.max),
        min if new.max <= min => (0, text.max),
        min => (divided(text.max, min), 0),
    };
    let (count_min, kept_min) = match old.max {
        0 => (text.min.saturating_add(1), text.min),
        max if max <= new.min => (0, text.min),
        max => (divided(text.min, max), 0),
    };
    let count = Range { min: count_min, max: count_max };
    let kept = Range { min: kept_min, max: kept_max };
    Some((text.scaled(2.0 * TRAVERSAL), Some(count.times(new).plus(kept))))
}

fn split(target: &Argument<'_>, args: &[Argument<'_>]) -> Estimate {
    let text = size(target);
    let max = match args.get(1).map(|limit| &limit.expr.kind) {
        // A negative limit is none: it becomes the largest number.
        Some(ExprKind::Literal(Literal::Int(limit))) => limit.cast_unsigned(),
        _ => text.max,
    };
    (text.scaled(2.0 * TRAVERSAL), Some(Range::up_to(max)))
}

fn contains_address(function: &str, overload: &str, argument: &Argument<'_>) -> Range {
    // Addresses have 4 or 16 bytes.
    let address = Range { min: 4, max: 16 };
    let mut cost = address.plus(address).scaled(TRAVERSAL);
    if function == "containsCIDR" {
        cost = cost.plus(address.scaled(TRAVERSAL)).plus(ONE);
    }
    if overload.ends_with("_string") {
        cost = cost.plus(size(argument).scaled(TRAVERSAL));
    }
    cost
}

/// Whether two values of Kubernetes' own types are equal.
fn equal_objects(args: &[Argument<'_>]) -> Option<Range> {
    let [first, second] = args else { return None };
    let (Type::Opaque(one), true) = (first.of, first.of == second.of) else { return None };
    Some(match *one {
        "kubernetes.NamedFormat" => Range { min: 1, max: FORMAT_NAME_MAX }.scaled(TRAVERSAL),
        "kubernetes.URL" => {
            let max = second.size.map_or(1, |size| size.max);
            Range { min: 1, max }.scaled(TRAVERSAL)
        }
        _ => ONE,
    })
}

/// The functions of the language itself.
fn standard(overload: &str, target: Option<&Argument<'_>>, args: &[Argument<'_>]) -> Estimate {
    let first = || args.first().map_or(Range::UNKNOWN, size);
    let second = || args.get(1).map_or(Range::UNKNOWN, size);
    let before = || target.map_or(Range::UNKNOWN, size);
    match overload {
        "string_format" => (before().scaled(TRAVERSAL), None),
        // Sizes beyond what a number holds wrap around in Kubernetes, and so they do here.
        "string_to_bytes" => {
            let text = first();
            (text.scaled(TRAVERSAL), Some(Range { min: text.min, max: text.max.wrapping_mul(4) }))
        }
        "bytes_to_string" => {
            let bytes = first();
            (bytes.scaled(TRAVERSAL), Some(Range { min: bytes.min / 4, max: bytes.max }))
        }
        "strings_quote" => {
            let text = first();
            let quoted =
                Range { min: text.min.wrapping_add(2), max: text.max.wrapping_mul(2).wrapping_add(2) };
            (text.scaled(TRAVERSAL), Some(quoted))
        }
        "starts_with_string" | "ends_with_string" => (first().scaled(TRAVERSAL), None),
        "in_list" => (second().scaled(1.0), None),
        "matches_string" => (before().plus(ONE).scaled(TRAVERSAL).times(first().scaled(REGEX)), None),
        "contains_string" => (before().scaled(TRAVERSAL).times(first().scaled(TRAVERSAL)), None),
        "add_list" => (ONE, Some(first().plus(second()))),
        "add_string" | "add_bytes" => {
            let sum = first().plus(second());
            (sum.scaled(TRAVERSAL), Some(sum))
        }
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes"
        | "equals"
        | "not_equals" => {
            let max = first().max.min(second().max);
            (Range { min: max.min(1), max }.scaled(TRAVERSAL), None)
        }
        _ => (ONE, None),
    }
}

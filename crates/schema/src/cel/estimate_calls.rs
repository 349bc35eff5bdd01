//! The estimated cost of function calls, without their arguments, and the size of their results.

use super::estimate::{Estimate, LIST};
use super::size::{Bounds, Size};
use super::types::{self, Type};

/// What looking at a character once costs, and what a character of a pattern costs for each that it is tried on.
const TRAVERSAL: f64 = 0.1;
const PATTERN: f64 = 0.25;

/// The longest text of a named format, and the longest pattern that one may have.
const FORMAT: u64 = 64;
const FORMAT_PATTERN: f64 = 128.0;

/// What a function is called with.
pub(super) struct Arguments<'a> {
    pub target: Option<&'a Estimate>,
    pub args: &'a [Estimate],
    /// Those of the arguments that are constant numbers.
    pub whole_numbers: Vec<Option<i64>>,
}

/// What the call costs at most, and the size of its result if that is known.
pub(super) fn cost(name: &str, given: &Arguments<'_>, bounds: &Bounds) -> (u64, Option<Size>) {
    of_kubernetes(name, given, bounds)
        .or_else(|| of_lists(name, given))
        .unwrap_or_else(|| of_cel(name, given))
}

/// The functions of Kubernetes' libraries, which come before those of the language.
fn of_kubernetes(name: &str, given: &Arguments<'_>, bounds: &Bounds) -> Option<(u64, Option<Size>)> {
    let Arguments { target, args, .. } = given;
    let first = || args.first().map(Estimate::sized);
    Some(match name {
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            let target = (*target)?;
            let count = target.sized();
            match &target.found {
                Type::List(item) | Type::Map(item, _) => {
                    let each = match **item {
                        Type::String | Type::Bytes => {
                            1_u64.saturating_add(item_size(target, bounds).cost(TRAVERSAL))
                        }
                        _ => 1,
                    };
                    (count.most.saturating_mul(each), None)
                }
                _ => (count.cost(TRAVERSAL), None),
            }
        }
        "url" => first().map(|size| (size.cost(TRAVERSAL), Some(size)))?,
        "lowerAscii" | "upperAscii" | "substring" | "trim" => {
            let size = (*target)?.sized();
            (size.cost(TRAVERSAL), Some(size))
        }
        "replace" if args.len() >= 2 => {
            let size = (*target)?.sized();
            (size.cost(2.0 * TRAVERSAL), Some(replaced(size, args[0].sized(), args[1].sized())))
        }
        "split" => {
            let size = (*target)?.sized();
            let limit = given.whole_numbers.get(1).copied().flatten();
            let most = limit.map_or(size.most, i64::cast_unsigned);
            (size.cost(2.0 * TRAVERSAL), Some(Size::up_to(most)))
        }
        "join" => {
            let target = (*target)?;
            let count = target.sized();
            let mut size = count.times(item_size(target, bounds));
            if let Some(separator) = first() {
                let gaps = Size { least: count.least.saturating_sub(1), most: count.most.saturating_sub(1) };
                size = size.plus(separator.times(gaps));
            }
            (size.cost(TRAVERSAL), Some(size))
        }
        "find" | "findAll" => {
            let size = (*target)?.sized();
            let text = size.plus(Size::exactly(1)).cost(TRAVERSAL);
            (text.saturating_mul(first()?.cost(PATTERN)), Some(Size::up_to(size.most)))
        }
        "ip" if target.is_some() => (1, None),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            (first()?.cost(TRAVERSAL), None)
        }
        "ip.isCanonical" => (first()?.cost(2.0 * TRAVERSAL), None),
        "containsIP" | "containsCIDR" => {
            let mut cost = Size::exactly(32).cost(TRAVERSAL);
            if name == "containsCIDR" {
                cost += Size::exactly(16).cost(TRAVERSAL) + 1;
            }
            if args.first().is_some_and(|argument| argument.found == Type::String) {
                cost = cost.saturating_add(first()?.cost(TRAVERSAL));
            }
            (cost, None)
        }
        "validate" => {
            let size = Size::exactly(first()?.cost(TRAVERSAL));
            (size.cost(FORMAT_PATTERN * PATTERN), None)
        }
        "_==_" => match (args.first()?, args.get(1)?) {
            (one, other) if one.found == other.found => match one.found {
                Type::Opaque(types::FORMAT) => (Size::exactly(FORMAT).cost(TRAVERSAL), None),
                Type::Opaque(types::URL) => (other.size.map_or(1, |size| size.most.max(1)), None),
                Type::Opaque(_) => (1, None),
                _ => return None,
            },
            _ => return None,
        },
        _ => return None,
    })
}

/// The functions of lists and sets that say themselves what they cost.
fn of_lists(name: &str, given: &Arguments<'_>) -> Option<(u64, Option<Size>)> {
    let number = |at: usize, otherwise: u64| {
        given.whole_numbers.get(at).copied().flatten().map_or(otherwise, i64::cast_unsigned)
    };
    let (factor, size) = match (name, given.target) {
        ("sets.contains" | "sets.intersects" | "sets.equivalent", None) => {
            let pairs = given.args.first()?.sized().times(given.args.get(1)?.sized());
            let factor = if name == "sets.equivalent" { 2.0 } else { 1.0 };
            return Some((pairs.cost(factor).saturating_add(1), None));
        }
        ("lists.range", None) => (1.0, Size::exactly(number(0, u64::MAX))),
        ("slice", Some(target)) => {
            (1.0, Size::exactly(number(1, target.sized().most).wrapping_sub(number(0, 0))))
        }
        ("reverse", Some(target)) if matches!(target.found, Type::List(_)) => (1.0, target.sized()),
        #[expect(clippy::cast_precision_loss, reason = "a depth, and as the reference counts")]
        ("flatten", Some(target)) => {
            let depth = if given.args.is_empty() { 1 } else { number(0, u64::MAX) };
            (depth as f64, target.sized())
        }
        ("distinct", Some(target)) => (2.0, target.sized().times(target.sized())),
        ("sort", Some(target)) => {
            let texts =
                matches!(&target.found, Type::List(item) if matches!(**item, Type::String | Type::Bytes));
            (if texts { 2.0 + TRAVERSAL } else { 2.0 }, target.sized().times(target.sized()))
        }
        _ => return None,
    };
    Some((size.cost(factor).saturating_add(1 + LIST), Some(size)))
}

/// The functions of the language. Most cost one, whatever they are called with.
fn of_cel(name: &str, given: &Arguments<'_>) -> (u64, Option<Size>) {
    let Arguments { target, args, .. } = given;
    let is = |at: usize, wanted: &[Type]| {
        let found = args.get(at).map(|argument| &argument.found);
        found.is_some_and(|found| *found == Type::Dyn || wanted.contains(found))
    };
    let texts = |at: usize| is(at, &[Type::String, Type::Bytes]);
    let size = |at: usize| args.get(at).map_or(Size::UNKNOWN, Estimate::sized);
    match (name, *target) {
        ("format", Some(target)) => (target.sized().cost(TRAVERSAL), None),
        ("bytes", None) if is(0, &[Type::String]) => {
            let size = size(0);
            let most = size.most.saturating_mul(4);
            (size.cost(TRAVERSAL), Some(Size { least: size.least, most }))
        }
        ("string", None) if is(0, &[Type::Bytes]) => {
            let size = size(0);
            (size.cost(TRAVERSAL), Some(Size { least: size.least / 4, most: size.most }))
        }
        ("strings.quote", None) => {
            let size = size(0);
            let most = size.most.saturating_mul(2).saturating_add(2);
            (size.cost(TRAVERSAL), Some(Size { least: size.least.saturating_add(2), most }))
        }
        ("startsWith" | "endsWith", Some(_)) => (size(0).cost(TRAVERSAL), None),
        ("@in", None) if matches!(args.get(1).map(|list| &list.found), Some(Type::List(_) | Type::Dyn)) => {
            (size(1).most, None)
        }
        ("matches", Some(target)) => {
            let text = target.sized().plus(Size::exactly(1)).cost(TRAVERSAL);
            (text.saturating_mul(size(0).cost(PATTERN)), None)
        }
        ("contains", Some(target)) => {
            (target.sized().cost(TRAVERSAL).saturating_mul(size(0).cost(TRAVERSAL)), None)
        }
        ("_+_", None) if texts(0) && texts(1) => {
            let size = size(0).plus(size(1));
            (size.cost(TRAVERSAL), Some(size))
        }
        ("_+_", None) if matches!(args.first().map(|one| &one.found), Some(Type::List(_))) => {
            (1, Some(size(0).plus(size(1))))
        }
        ("_<_" | "_>_" | "_<=_" | "_>=_", None) if texts(0) && texts(1) => {
            let cost = Size::up_to(size(0).most.min(size(1).most)).cost(TRAVERSAL);
            let any = is(0, &[]) || is(1, &[]);
            (if any { cost.max(1) } else { cost }, None)
        }
        ("_==_" | "_!=_", None) => (Size::up_to(size(0).most.min(size(1).most)).cost(TRAVERSAL), None),
        _ => (1, None),
    }
}

/// How large the items of a list are, which is known only from the schema.
fn item_size(list: &Estimate, bounds: &Bounds) -> Size {
    if list.path.is_empty() {
        return Size::UNKNOWN;
    }
    let path: Vec<String> = list.path.iter().cloned().chain(["@items".to_owned()]).collect();
    bounds.at(&path).unwrap_or(Size::UNKNOWN)
}

/// A text in which some was replaced by other.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    let (most_times, most_kept) = if old.least == 0 {
        (text.most.saturating_add(1), text.most)
    } else if new.most <= old.least {
        (0, text.most)
    } else {
        (text.most.div_ceil(old.least), 0)
    };
    let (least_times, least_kept) = if old.most == 0 {
        (text.least.saturating_add(1), text.least)
    } else if old.most <= new.least {
        (0, text.least)
    } else {
        (text.least.div_ceil(old.most), 0)
    };
    let times = Size { least: least_times, most: most_times };
    times.times(new).plus(Size { least: least_kept, most: most_kept })
}

//! What an expression may cost at most, told from its text and the bounds of its schema alone. Kubernetes refuses rules that
//! could be too expensive by it, so that it counts as cel-go and Kubernetes' libraries do, oddities included.

use super::ast::{Call, Expr, Fold, Kind, Literal, Select, Shape};
use super::estimate_calls::{self, Arguments};
use super::size::{Bounds, Size};
use super::types::Type;
use std::collections::HashMap;

/// The types that the parts of an expression were found to have, by their addresses: they are known only while the tree stays
/// where it is.
pub(super) type Types = HashMap<usize, Type>;

/// What making a list or a map costs.
pub(super) const LIST: u64 = 10;
const MAP: u64 = 30;

/// How large the keys and the values of a list or a map are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entries {
    list: bool,
    keys: Size,
    values: Size,
}

impl Entries {
    fn or(self, other: Self) -> Self {
        Self { list: self.list, keys: self.keys.or(other.keys), values: self.values.or(other.values) }
    }
}

fn both(one: Option<Entries>, other: Option<Entries>) -> Option<Entries> {
    Some(one?.or(other?))
}

/// What is known of a part.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    /// What it costs at most.
    pub cost: u64,
    /// Where it is in the schema, as far as that is known: a variable, fields, `@items`, `@keys` and `@values`.
    pub path: Vec<String>,
    pub size: Option<Size>,
    pub entries: Option<Entries>,
    pub found: Type,
}

impl Estimate {
    /// Its size, or any.
    pub(super) fn sized(&self) -> Size {
        self.size.unwrap_or(Size::UNKNOWN)
    }
}

/// What the expression costs at most.
pub(super) fn most(expression: &Expr, types: &Types, bounds: &Bounds) -> u64 {
    Estimator { types, bounds, locals: Vec::new() }.estimate(expression).cost
}

struct Local {
    name: String,
    path: Vec<String>,
    size: Option<Size>,
    entries: Option<Entries>,
}

pub(super) struct Estimator<'a> {
    types: &'a Types,
    pub(super) bounds: &'a Bounds,
    locals: Vec<Local>,
}

impl Estimator<'_> {
    fn found(&self, expr: &Expr) -> Type {
        self.types.get(&std::ptr::from_ref(expr).addr()).cloned().unwrap_or(Type::Dyn)
    }

    /// An estimate whose size follows from its place or its type, if it is not given.
    fn told(&self, cost: u64, path: Vec<String>, size: Option<Size>, found: Type) -> Estimate {
        let size =
            size.or_else(|| self.bounds.at(&path)).or_else(|| is_scalar(&found).then(|| Size::exactly(1)));
        Estimate { cost, path, size, entries: None, found }
    }

    /// Each kind has a function of its own: this one recurses, and must not need more of the stack than the deepest does.
    fn estimate(&mut self, expr: &Expr) -> Estimate {
        match &expr.kind {
            Kind::Literal(literal) => self.literal(literal, expr),
            Kind::Ident(name) => self.identifier(name, expr),
            Kind::Select(select) => self.select(select, expr),
            Kind::Logic(_, terms) => self.logic(terms, expr),
            Kind::Choice(parts) => self.choice(parts, expr),
            Kind::Call(call) => self.call(call, expr),
            Kind::List(items) => self.list(items, expr),
            Kind::Map(entries) => self.map(entries, expr),
            // No rule can make any.
            Kind::Message(_) => self.told(40, Vec::new(), None, self.found(expr)),
            Kind::Fold(fold) => self.fold(fold, expr),
        }
    }

    fn literal(&self, literal: &Literal, expr: &Expr) -> Estimate {
        let size = match literal {
            Literal::String(text) => text.chars().count(),
            Literal::Bytes(bytes) => bytes.len(),
            _ => 1,
        };
        self.told(0, Vec::new(), Some(Size::exactly(size as u64)), self.found(expr))
    }

    fn select(&mut self, select: &Select, expr: &Expr) -> Estimate {
        let found = self.found(expr);
        if !select.optional && !self.types.contains_key(&std::ptr::from_ref(&select.operand).addr()) {
            // The name of a type.
            return self.told(1, expr.qualified().into_iter().collect(), None, found);
        }
        let operand = self.estimate(&select.operand);
        if select.optional {
            return self.told(operand.cost.saturating_add(1), Vec::new(), None, found);
        }
        if select.test {
            return self.told(operand.cost, Vec::new(), None, found);
        }
        let costs = matches!(operand.found, Type::Map(..) | Type::Object(_) | Type::Free(_));
        let mut path = operand.path;
        path.push(select.field.clone());
        self.told(operand.cost.saturating_add(u64::from(costs)), path, None, found)
    }

    fn logic(&mut self, terms: &[Expr], expr: &Expr) -> Estimate {
        let mut cost = 0_u64;
        for term in terms {
            cost = cost.saturating_add(self.estimate(term).cost);
        }
        self.told(cost, Vec::new(), None, self.found(expr))
    }

    fn choice(&mut self, parts: &[Expr; 3], expr: &Expr) -> Estimate {
        let [condition, one, other] = parts;
        let condition = self.estimate(condition).cost;
        let (one, other) = (self.estimate(one), self.estimate(other));
        let cost = condition.saturating_add(one.cost.max(other.cost));
        let size = one.sized().or(other.sized());
        let entries = both(one.entries, other.entries);
        Estimate { entries, ..self.told(cost, Vec::new(), Some(size), self.found(expr)) }
    }

    fn list(&mut self, items: &[(Expr, bool)], expr: &Expr) -> Estimate {
        let (mut cost, mut values) = (LIST, None);
        for (item, _) in items {
            let item = self.estimate(item);
            cost = cost.saturating_add(item.cost);
            values = united(values, item.sized());
        }
        let values = values.unwrap_or(Size::exactly(0));
        let entries = Some(Entries { list: true, keys: Size::exactly(1), values });
        let size = Some(Size::exactly(items.len() as u64));
        Estimate { entries, ..self.told(cost, Vec::new(), size, self.found(expr)) }
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)], expr: &Expr) -> Estimate {
        let (mut cost, mut keys, mut values) = (MAP, None, None);
        for (key, value, _) in entries {
            let key = self.estimate(key);
            cost = cost.saturating_add(key.cost);
            keys = united(keys, key.sized());
            let value = self.estimate(value);
            cost = cost.saturating_add(value.cost);
            values = united(values, value.sized());
        }
        let size = Some(Size::exactly(entries.len() as u64));
        let nothing = Size::exactly(0);
        let (keys, values) = (keys.unwrap_or(nothing), values.unwrap_or(nothing));
        let entries = Some(Entries { list: false, keys, values });
        Estimate { entries, ..self.told(cost, Vec::new(), size, self.found(expr)) }
    }

    fn identifier(&mut self, name: &str, expr: &Expr) -> Estimate {
        let found = self.found(expr);
        let Some(local) = self.locals.iter().rev().find(|local| local.name == name) else {
            return self.told(1, vec![name.to_owned()], None, found);
        };
        let (size, entries) = (local.size, local.entries);
        let told = self.told(1, local.path.clone(), None, found);
        Estimate { size: told.size.or(size), entries, ..told }
    }

    fn call(&mut self, call: &Call, expr: &Expr) -> Estimate {
        let found = self.found(expr);
        let args: Vec<Estimate> = call.args.iter().map(|argument| self.estimate(argument)).collect();
        let given = args.iter().map(|argument| argument.cost).fold(0, u64::saturating_add);
        if call.function == "dyn" && call.target.is_none() {
            let argument = args.into_iter().next();
            let (size, entries) = argument.map_or((None, None), |it| (it.size, it.entries));
            return Estimate { entries, ..self.told(given.saturating_add(1), Vec::new(), size, found) };
        }
        // What stands before the point may be a part of the function's name.
        let target = call.target.as_ref();
        let is_value = |target: &&Expr| self.types.contains_key(&std::ptr::from_ref(*target).addr());
        let name = match target.filter(|target| !is_value(target)).and_then(Expr::qualified) {
            Some(prefix) => format!("{prefix}.{}", call.function),
            None => call.function.clone(),
        };
        let target = target.filter(is_value).map(|target| self.estimate(target));
        let whole = given.saturating_add(target.as_ref().map_or(0, |target| target.cost));
        let texts = call.args.iter().map(Expr::as_int).collect();
        let arguments = Arguments { target: target.as_ref(), args: &args, whole_numbers: texts };
        let (cost, size) = estimate_calls::cost(&name, &arguments, self.bounds);
        let cost = whole.saturating_add(cost);
        let mut path = Vec::new();
        let mut size = size;
        if let ("_[_]", Some(container)) = (call.function.as_str(), args.first()) {
            let step = if matches!(container.found, Type::List(_)) { "@items" } else { "@values" };
            size = container.entries.map(|entries| entries.values);
            path = container.path.iter().cloned().chain([step.to_owned()]).collect();
        }
        let entries = match (&*call.function, &args[..]) {
            ("_+_", [one, other]) => both(one.entries, other.entries),
            _ => None,
        };
        Estimate { entries, ..self.told(cost, path, size, found) }
    }

    /// A macro over a list or a map costs what the loop does that it stands for.
    fn fold(&mut self, fold: &Fold, expr: &Expr) -> Estimate {
        let found = self.found(expr);
        let range = self.estimate(&fold.range);
        if matches!(fold.shape, Shape::Optional | Shape::OptionalFlat) {
            return self.with_value(fold, &range, found);
        }
        let count = range.sized();
        let outside = self.locals.len();
        self.iterate(fold, &range);
        let filter = fold.filter.as_ref().map(|filter| self.estimate(filter));
        let body = self.estimate(&fold.body);
        let item = self.estimate_local(&fold.first);
        self.locals.truncate(outside);
        let each = |cost: u64| match &filter {
            Some(filter) => filter.cost.saturating_add(cost),
            None => cost,
        };
        // What it begins with, what each round costs, and what the result does.
        let (first, round, last) = match fold.shape {
            Shape::All => (0, body.cost.saturating_add(3), 1),
            Shape::Exists => (0, body.cost.saturating_add(4), 1),
            Shape::ExistsOne => (0, body.cost.saturating_add(2), 2),
            Shape::Filter => (LIST, body.cost.saturating_add(LIST + 3), 1),
            Shape::Map => (MAP, each(body.cost.saturating_add(3)), 1),
            Shape::Entries => (MAP, each(body.cost.saturating_add(2)), 1),
            _ => (LIST, each(body.cost.saturating_add(LIST + 2)), 1),
        };
        let loops = count.most.saturating_mul(round);
        let mut cost = range.cost.saturating_add(first).saturating_add(last).saturating_add(loops);
        let mut size = Some(count);
        let listed = |values: Size| {
            let values = Size::up_to(values.most);
            Some(Entries { list: true, keys: Size::exactly(1), values })
        };
        let entries = match fold.shape {
            Shape::All | Shape::Exists | Shape::ExistsOne => {
                size = Some(Size::exactly(1));
                None
            }
            Shape::List => listed(body.sized()),
            Shape::Filter => listed(item),
            Shape::Sort => {
                // A name for the list, a list of keys, and as many comparisons as there are pairs.
                let pairs = count.times(count);
                let texts = matches!(body.found, Type::String | Type::Bytes);
                let sorting = pairs.cost(if texts { 2.1 } else { 2.0 }).saturating_add(1 + LIST);
                cost = cost.saturating_add(sorting).saturating_add(LIST + 2);
                size = Some(pairs);
                None
            }
            _ => None,
        };
        Estimate { entries, ..self.told(cost, Vec::new(), size, found) }
    }

    /// Binds the variables of a macro.
    fn iterate(&mut self, fold: &Fold, range: &Estimate) {
        let list = range.entries.map_or(matches!(range.found, Type::List(_)), |entries| entries.list);
        let sizes = range.entries.map(|entries| (entries.keys, entries.values));
        let (keys, values) = (sizes.map(|sizes| sizes.0), sizes.map(|sizes| sizes.1));
        let mut push = |name: &str, step: &str, size: Option<Size>| {
            let path = range.path.iter().cloned().chain([step.to_owned()]).collect();
            self.locals.push(Local { name: name.to_owned(), path, size, entries: None });
        };
        match (&fold.second, list) {
            (Some(second), list) => {
                push(&fold.first, if list { "@indices" } else { "@keys" }, keys);
                push(second, if list { "@items" } else { "@values" }, values);
            }
            (None, true) => push(&fold.first, "@items", values),
            (None, false) => push(&fold.first, "@keys", keys),
        }
    }

    /// How large what a variable stands for is.
    fn estimate_local(&mut self, name: &str) -> Size {
        let local = self.locals.iter().rev().find(|local| local.name == name);
        local.and_then(|local| self.bounds.at(&local.path).or(local.size)).unwrap_or(Size::UNKNOWN)
    }

    /// `optMap` and `optFlatMap`: is there a value, what is it, and what is made of it?
    fn with_value(&mut self, fold: &Fold, range: &Estimate, found: Type) -> Estimate {
        let asked = range.cost.saturating_add(1);
        self.locals.push(Local { name: fold.first.clone(), path: Vec::new(), size: None, entries: None });
        let body = self.estimate(&fold.body);
        self.locals.pop();
        let wraps = u64::from(fold.shape == Shape::Optional);
        let made = asked.saturating_add(LIST).saturating_add(body.cost).saturating_add(wraps);
        self.told(asked.saturating_add(made), Vec::new(), None, found)
    }
}

/// The size of any of them.
fn united(before: Option<Size>, size: Size) -> Option<Size> {
    Some(before.map_or(size, |before| before.or(size)))
}

/// Is it always of the same size?
fn is_scalar(found: &Type) -> bool {
    match found {
        Type::Bool | Type::Double | Type::Duration | Type::Int | Type::Timestamp | Type::Uint => true,
        Type::Optional(inner) => is_scalar(inner),
        _ => false,
    }
}

//! The evaluator of checked expressions. Every step counts against the cost limit; operators that are not strict are evaluated here.

use super::ast::{Call, Expr, Fold, Kind, Literal, Message, Select, Shape};
use super::composition::Lazy;
use super::equal::{compare, equal};
use super::library::{Run, regex};
use super::signature::function;
use super::types::Type;
use super::value::{Entries, Failure, Key, Made, Meter, Outcome, Text, Value};
use std::cmp::Ordering;
use std::rc::Rc;

/// The variables that an expression sees, the innermost last.
pub(super) struct Evaluator<'a> {
    scope: Vec<(&'a str, Value<'a>)>,
    pub meter: Meter,
    /// How many of the variables are there from the start.
    given: usize,
    /// Those of a policy.
    lazy: Option<Lazy<'a>>,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(scope: Vec<(&'a str, Value<'a>)>, meter: Meter) -> Self {
        Self { given: scope.len(), scope, meter, lazy: None }
    }

    /// The same, for an expression that may ask for variables of a policy.
    pub(super) fn composed(scope: Vec<(&'a str, Value<'a>)>, meter: Meter, lazy: Lazy<'a>) -> Self {
        Self { lazy: Some(lazy), ..Self::new(scope, meter) }
    }

    pub(super) fn evaluate(&mut self, expr: &'a Expr) -> Outcome<'a> {
        match &expr.kind {
            Kind::Literal(literal) => Ok(constant(literal)),
            Kind::Ident(name) => self.identifier(name),
            Kind::Select(select) => self.select(expr, select),
            Kind::Logic(and, terms) => self.logic(*and, terms),
            Kind::Choice(parts) => match self.evaluate(&parts[0])? {
                Value::Bool(true) => self.evaluate(&parts[1]),
                Value::Bool(false) => self.evaluate(&parts[2]),
                _ => Err(Failure::no_such_overload()),
            },
            Kind::Call(call) => self.call(call),
            Kind::List(items) => self.list(items),
            Kind::Map(entries) => self.map(entries),
            Kind::Message(message) => self.message(message),
            Kind::Fold(fold) => self.fold(fold),
        }
    }

    fn identifier(&mut self, name: &str) -> Outcome<'a> {
        self.meter.charge(1)?;
        if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        match Type::named(name) {
            Some(named) => Ok(Value::Type(named.runtime_name())),
            None => Err(Failure::new(format!("no such attribute(s): {name}"))),
        }
    }

    fn select(&mut self, expr: &'a Expr, select: &'a Select) -> Outcome<'a> {
        if !select.test
            && !select.optional
            && let Some(name) = expr.qualified().filter(|name| name.contains('.'))
        {
            if let Some((_, value)) = self.scope.iter().rev().find(|(known, _)| *known == name) {
                self.meter.charge(1)?;
                return Ok(value.clone());
            }
            if let Some(named) = Type::named(&name)
                && !self.names(&select.operand)
            {
                return Ok(Value::Type(named.runtime_name()));
            }
        }
        let operand = self.evaluate(&select.operand)?;
        self.meter.charge(u64::from(!select.test))?;
        let (operand, wrapped) = match operand {
            Value::Optional(None) if select.test => return Ok(Value::Bool(false)),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inner)) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match operand {
            Value::Variables => self.variable(&select.field).transpose()?,
            operand => field(&operand, &select.field)?,
        };
        match (found, select.test, wrapped || select.optional) {
            (found, true, _) => Ok(Value::Bool(found.is_some())),
            (Some(found), _, true) => Ok(found.some()),
            (None, _, true) => Ok(Value::Optional(None)),
            (Some(found), _, false) => Ok(found),
            (None, _, false) => Err(Failure::new(format!("no such key: {}", select.field))),
        }
    }

    /// A variable of a policy, which sees nothing that a macro binds.
    fn variable(&self, name: &str) -> Option<Outcome<'a>> {
        self.lazy.as_ref()?.get(name, &self.scope[..self.given])
    }

    fn message(&mut self, message: &'a Message) -> Outcome<'a> {
        self.meter.charge(40)?;
        let mut fields = Vec::with_capacity(message.fields.len());
        for field in &message.fields {
            let value = self.evaluate(&field.value)?;
            let value = if field.optional { unwrapped(value)? } else { Some(value) };
            fields.extend(value.map(|value| (field.name.as_str(), value)));
        }
        Ok(Value::Made(Rc::new(Made { name: &message.name, fields })))
    }

    /// Does the name begin with a variable?
    fn names(&self, expr: &Expr) -> bool {
        match &expr.kind {
            Kind::Ident(name) => self.scope.iter().any(|(known, _)| known == name),
            Kind::Select(select) => self.names(&select.operand),
            _ => true,
        }
    }

    /// The first term that decides wins, even over one before it that failed.
    fn logic(&mut self, and: bool, terms: &'a [Expr]) -> Outcome<'a> {
        let mut failed = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(truth)) if truth != and => return Ok(Value::Bool(truth)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failed = failed.or(Some(Failure::no_such_overload())),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(Value::Bool(and)), Err)
    }

    fn list(&mut self, items: &'a [(Expr, bool)]) -> Outcome<'a> {
        self.meter.charge(10)?;
        let mut list = Vec::with_capacity(items.len());
        for (item, optional) in items {
            let value = self.evaluate(item)?;
            list.extend(if *optional { unwrapped(value)? } else { Some(value) });
        }
        Ok(Value::list(list))
    }

    fn map(&mut self, entries: &'a [(Expr, Expr, bool)]) -> Outcome<'a> {
        self.meter.charge(30)?;
        let mut map = Entries::new();
        for (key, value, optional) in entries {
            let key = self.evaluate(key)?;
            let key = Key::of(&key)
                .ok_or_else(|| Failure::new(format!("unsupported key type: {}", key.type_name())))?;
            let value = self.evaluate(value)?;
            let Some(value) = (if *optional { unwrapped(value)? } else { Some(value) }) else { continue };
            insert(&mut map, key, value)?;
        }
        Ok(Value::Map(Rc::new(map)))
    }

    fn call(&mut self, call: &'a Call) -> Outcome<'a> {
        let (run, namespaced) = resolve(call).ok_or_else(Failure::no_such_overload)?;
        let mut values = Vec::with_capacity(call.args.len() + 1);
        if let Some(target) = call.target.as_ref().filter(|_| !namespaced) {
            values.push(self.evaluate(target)?);
            // The second is asked for only where the first has nothing.
            if let (Value::Optional(given), [other]) = (&values[0], call.args.as_slice()) {
                match (call.function.as_str(), given) {
                    ("or", Some(_)) => return Ok(values[0].clone()),
                    ("orValue", Some(value)) => return Ok((**value).clone()),
                    ("or" | "orValue", None) => return self.evaluate(other),
                    _ => {}
                }
            }
        }
        for argument in &call.args {
            values.push(self.evaluate(argument)?);
        }
        if regex::takes(&call.function) {
            let constant = call.args.get(usize::from(call.target.is_none())).and_then(Expr::as_text);
            return regex::run(&mut self.meter, &call.function, &values, constant.map(|_| &call.pattern));
        }
        run(&mut self.meter, &values)
    }

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.evaluate(&fold.range)?;
        if let Value::Optional(given) = &range {
            let Some(given) = given else { return Ok(Value::Optional(None)) };
            let value = self.with(&fold.first, (**given).clone(), None, &fold.body)?;
            return Ok(if fold.shape == Shape::Optional { value.some() } else { value });
        }
        match &range {
            Value::List(_) | Value::Items(_) => {
                let items = range.items(&mut self.meter)?;
                let pairs =
                    items.iter().enumerate().map(|(index, item)| (Value::Int(index as i64), item.clone()));
                self.fold_pairs(fold, pairs, true)
            }
            Value::Map(_) | Value::Object(_) => {
                let entries = range.entries(&mut self.meter)?;
                let pairs = entries.iter().map(|(key, value)| (key.value(), value.clone()));
                self.fold_pairs(fold, pairs, false)
            }
            _ => Err(Failure::no_such_overload()),
        }
    }

    /// The value of an expression with one or two more variables.
    fn with(
        &mut self,
        first: &'a str,
        value: Value<'a>,
        second: Option<(&'a str, Value<'a>)>,
        expr: &'a Expr,
    ) -> Outcome<'a> {
        let outside = self.scope.len();
        self.scope.push((first, value));
        self.scope.extend(second);
        let outcome = self.evaluate(expr);
        self.scope.truncate(outside);
        outcome
    }

    fn fold_pairs(
        &mut self,
        fold: &'a Fold,
        pairs: impl Iterator<Item = (Value<'a>, Value<'a>)>,
        of_list: bool,
    ) -> Outcome<'a> {
        let mut state = Folded::default();
        for (key, value) in pairs {
            self.meter.charge(3)?;
            // With one variable, a list gives its items and a map its keys.
            let (first, second) = match &fold.second {
                Some(name) => (key.clone(), Some((name.as_str(), value.clone()))),
                None if of_list => (value.clone(), None),
                None => (key.clone(), None),
            };
            let item = first.clone();
            if let Some(filter) = &fold.filter {
                match self.with(&fold.first, first.clone(), second.clone(), filter)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => continue,
                    _ => return Err(Failure::no_such_overload()),
                }
            }
            let body = self.with(&fold.first, first, second, &fold.body);
            if let Some(decided) = state.take(fold.shape, item, body, key, &mut self.meter)? {
                return Ok(decided);
            }
        }
        state.finish(fold.shape)
    }
}

/// What a fold has found so far.
#[derive(Default)]
struct Folded<'a> {
    failed: Option<Failure>,
    count: usize,
    list: Vec<Value<'a>>,
    keys: Vec<Value<'a>>,
    map: Entries<'a>,
}

impl<'a> Folded<'a> {
    /// Takes one more in; the result, if it is decided.
    fn take(
        &mut self,
        shape: Shape,
        item: Value<'a>,
        body: Outcome<'a>,
        key: Value<'a>,
        meter: &mut Meter,
    ) -> Result<Option<Value<'a>>, Failure> {
        if let Shape::All | Shape::Exists = shape {
            match body {
                Ok(Value::Bool(truth)) if truth == (shape == Shape::Exists) => {
                    return Ok(Some(Value::Bool(truth)));
                }
                Ok(Value::Bool(_)) => {}
                Ok(_) => self.failed = self.failed.take().or(Some(Failure::no_such_overload())),
                Err(failure) if failure.is_final() => return Err(failure),
                Err(failure) => self.failed = self.failed.take().or(Some(failure)),
            }
            return Ok(None);
        }
        match (shape, body?) {
            (Shape::ExistsOne, Value::Bool(truth)) => self.count += usize::from(truth),
            (Shape::Filter, Value::Bool(true)) => self.list.push(item),
            (Shape::Filter, Value::Bool(false)) => {}
            (Shape::ExistsOne | Shape::Filter, _) => return Err(Failure::no_such_overload()),
            (Shape::List, value) => {
                meter.charge(10)?;
                self.list.push(value);
            }
            (Shape::Map, value) => {
                let key = Key::of(&key).ok_or_else(Failure::no_such_overload)?;
                insert(&mut self.map, key, value)?;
            }
            (Shape::Entries, value) => {
                for (key, value) in value.entries(meter)?.iter() {
                    meter.work(1)?;
                    insert(&mut self.map, key.clone(), value.clone())?;
                }
            }
            (Shape::Sort, value) => {
                self.list.push(item);
                self.keys.push(value);
            }
            _ => return Err(Failure::no_such_overload()),
        }
        Ok(None)
    }

    fn finish(self, shape: Shape) -> Outcome<'a> {
        match (shape, self.failed) {
            (_, Some(failure)) => Err(failure),
            (Shape::All, None) => Ok(Value::Bool(true)),
            (Shape::Exists, None) => Ok(Value::Bool(false)),
            (Shape::ExistsOne, None) => Ok(Value::Bool(self.count == 1)),
            (Shape::Map | Shape::Entries, None) => Ok(Value::Map(Rc::new(self.map))),
            (Shape::Sort, None) => sorted_by(self.list, self.keys),
            _ => Ok(Value::list(self.list)),
        }
    }
}

/// The items in the order of their keys.
fn sorted_by<'a>(list: Vec<Value<'a>>, keys: Vec<Value<'a>>) -> Outcome<'a> {
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(list).collect();
    let mut failed = None;
    pairs.sort_by(|(one, _), (other, _)| match compare(one, other) {
        Ok(order) => order.unwrap_or(Ordering::Equal),
        Err(failure) => {
            failed.get_or_insert(failure);
            Ordering::Equal
        }
    });
    match failed {
        Some(failure) => Err(failure),
        None => Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect())),
    }
}

fn insert<'a>(map: &mut Entries<'a>, key: Key<'a>, value: Value<'a>) -> Result<(), Failure> {
    if map.contains_key(&key) {
        let shown = super::library::print::shown(&key.value());
        return Err(Failure::new(format!("insert failed: key {shown} already exists")));
    }
    map.insert(key, value);
    Ok(())
}

fn constant(literal: &Literal) -> Value<'_> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(truth) => Value::Bool(*truth),
        Literal::Int(number) => Value::Int(*number),
        Literal::Uint(number) => Value::Uint(*number),
        Literal::Double(number) => Value::Double(*number),
        Literal::String(text) => Value::String(Text::Borrowed(text)),
        Literal::Bytes(octets) => Value::Bytes(octets.as_slice().into()),
    }
}

fn unwrapped(value: Value<'_>) -> Result<Option<Value<'_>>, Failure> {
    match value {
        Value::Optional(inner) => Ok(inner.map(|inner| (*inner).clone())),
        other => Err(Failure::new(format!(
            "cannot initialize optional list element from non-optional value {}",
            super::library::print::shown(&other)
        ))),
    }
}

/// A field of an object, or an entry of a map.
fn field<'a>(operand: &Value<'a>, name: &str) -> Result<Option<Value<'a>>, Failure> {
    match operand {
        Value::Object(object) => object.find(name),
        Value::Map(entries) => Ok(entries.get(&Key::String(Text::Owned(name.into()))).cloned()),
        Value::Made(made) => Ok(made.get(name).cloned()),
        // Nothing has no fields, and may be asked for them.
        Value::Null => Ok(None),
        _ => Err(Failure::no_such_overload()),
    }
}

/// What the call does, and whether its target is only a part of its name.
fn resolve(call: &Call) -> Option<(Run, bool)> {
    if let Some(prefix) = call.target.as_ref().and_then(Expr::qualified)
        && let Some(found) = function(&format!("{prefix}.{}", call.function))
    {
        return Some((found.run, true));
    }
    function(&call.function).map(|found| (found.run, false))
}

/// Is the value in the list or a key of the map?
pub(super) fn contains<'a>(
    value: &Value<'a>,
    container: &Value<'a>,
    meter: &mut Meter,
) -> Result<bool, Failure> {
    match container {
        Value::List(_) | Value::Items(_) => {
            for item in container.items(meter)?.iter() {
                if equal(value, item, meter)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        Value::Map(entries) => Ok(Key::of(value).is_some_and(|key| entries.contains_key(&key))),
        Value::Object(object) => match value {
            Value::String(name) => Ok(object.find(name)?.is_some()),
            _ => Err(Failure::no_such_overload()),
        },
        _ => Err(Failure::no_such_overload()),
    }
}

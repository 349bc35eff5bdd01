//! The type checker: does an expression fit the types of its variables? Errors have the texts of cel-go.

use super::ast::{Call, Expr, Fold, Kind, Literal, Message, Select, Shape};
use super::estimate::Types;
use super::library::jsonpatch::ESCAPE_KEY;
use super::signature::{Function, function};
use super::types::{Known, ObjectType, Type, less_specific};
use super::{Complaint, Complaints, escape};
use crate::pattern::{self, Pattern};

/// How many complaints are told at most.
const MOST_COMPLAINTS: usize = 100;

/// The type of the expression, given those of its variables; `patches` is whether it may make objects and patches.
pub(super) fn check(
    expression: &Expr,
    variables: &[(&str, Type)],
    patches: bool,
) -> Result<Checked, Complaints> {
    let scope = variables.iter().map(|(name, found)| ((*name).to_owned(), found.clone())).collect();
    let mut checker = Checker {
        scope,
        known: Known::default(),
        complaints: Vec::new(),
        exempt: 0,
        patches,
        broken: None,
        types: Types::new(),
    };
    let found = checker.check(expression);
    let found = checker.known.resolve(&found, true);
    if !checker.complaints.is_empty() {
        return Err(Complaints(checker.complaints));
    }
    let types = std::mem::take(&mut checker.types).into_iter();
    let types = types.map(|(place, found)| (place, checker.known.resolve(&found, true))).collect();
    Ok(Checked { found, broken: checker.broken, types })
}

/// An expression that is in order.
pub(super) struct Checked {
    /// Its type.
    pub found: Type,
    /// Why no program can be made of it all the same.
    pub broken: Option<String>,
    /// The types of its parts.
    pub types: Types,
}

struct Checker {
    scope: Vec<(String, Type)>,
    known: Known,
    complaints: Vec<Complaint>,
    /// Within how many calls the items of a list may have different types.
    exempt: usize,
    /// Whether objects and patches may be made.
    patches: bool,
    /// Why no program can be made of what is otherwise in order.
    broken: Option<String>,
    types: Types,
}

impl Checker {
    fn complain(&mut self, at: usize, why: String) -> Type {
        if self.complaints.len() < MOST_COMPLAINTS {
            self.complaints.push(Complaint::new(at, why));
        }
        Type::Error
    }

    fn undeclared(&mut self, at: usize, name: &str) -> Type {
        self.complain(at, format!("undeclared reference to '{name}' (in container '')"))
    }

    fn mismatch(&mut self, at: usize, wanted: &Type, found: &Type) -> Type {
        self.complain(at, format!("expected type '{wanted}' but found '{found}'"))
    }

    fn check(&mut self, expr: &Expr) -> Type {
        let found = self.found(expr);
        self.types.insert(std::ptr::from_ref(expr).addr(), found.clone());
        found
    }

    fn found(&mut self, expr: &Expr) -> Type {
        match &expr.kind {
            Kind::Literal(literal) => match literal {
                Literal::Null => Type::Null,
                Literal::Bool(_) => Type::Bool,
                Literal::Int(_) => Type::Int,
                Literal::Uint(_) => Type::Uint,
                Literal::Double(_) => Type::Double,
                Literal::String(_) => Type::String,
                Literal::Bytes(_) => Type::Bytes,
            },
            Kind::Ident(name) => self.identifier(name).unwrap_or_else(|| self.undeclared(expr.at, name)),
            Kind::Select(select) => self.select(expr, select),
            Kind::Logic(_, terms) => self.logic(terms),
            Kind::Choice(parts) => {
                let given = parts.iter().map(|part| self.check(part)).collect();
                self.resolve_call(expr.at, "_?_:_", false, given)
            }
            Kind::Call(call) => self.call(expr, call),
            Kind::List(items) => {
                let mut joined = None;
                for (item, optional) in items {
                    let found = self.check(item);
                    let found = if *optional { self.unwrap(item.at, found) } else { found };
                    joined = Some(self.join(item.at, joined, found));
                }
                Type::List(joined.unwrap_or_else(|| self.known.fresh()).into())
            }
            Kind::Map(entries) => self.map(entries),
            Kind::Message(message) => self.message(expr, message),
            Kind::Fold(fold) => self.fold(expr, fold),
        }
    }

    fn identifier(&mut self, name: &str) -> Option<Type> {
        let variable =
            self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, found)| found.clone());
        variable.or_else(|| Type::named(name).map(|named| Type::Type(Some(named.into()))))
    }

    fn select(&mut self, expr: &Expr, select: &Select) -> Type {
        if !select.test
            && !select.optional
            && let Some(found) = expr.qualified().and_then(|name| self.identifier(&name))
        {
            return found;
        }
        let operand = self.check(&select.operand);
        let operand = self.known.resolve(&operand, false);
        let (target, wrapped) = match operand {
            Type::Optional(inner) => ((*inner).clone(), true),
            other => (other, false),
        };
        let found = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(object) => match field_of(object, &select.field) {
                Some(field) => field.clone(),
                None => self.complain(expr.at, format!("undefined field '{}'", select.field)),
            },
            Type::Free(_) => {
                self.known.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            Type::Dyn | Type::Error => Type::Dyn,
            other => {
                let why = format!("type '{other}' does not support field selection");
                self.complain(expr.at, why);
                Type::Dyn
            }
        };
        if select.test {
            Type::Bool
        } else if wrapped || select.optional {
            Type::Optional(found.into())
        } else {
            found
        }
    }

    fn message(&mut self, expr: &Expr, message: &Message) -> Type {
        let Some(made) = ObjectType::made(&message.name).filter(|_| self.patches) else {
            return self.undeclared(expr.at, &message.name);
        };
        for field in &message.fields {
            let found = self.check(&field.value);
            let found = if field.optional { self.unwrap(field.at, found) } else { found };
            let Some(wanted) = field_of(&made, &field.name) else {
                self.complain(field.at, format!("undefined field '{}'", field.name));
                continue;
            };
            if !self.known.assign(&found, wanted) {
                let (name, found) = (&field.name, self.known.resolve(&found, true));
                let why =
                    format!("expected type of field '{name}' is '{wanted}' but provided type is '{found}'");
                self.complain(field.at, why);
            }
        }
        Type::Object(made.into())
    }

    fn logic(&mut self, terms: &[Expr]) -> Type {
        let found: Vec<Type> = terms.iter().map(|term| self.check(term)).collect();
        let mut result = Type::Bool;
        for (term, found) in terms.iter().zip(found) {
            if !self.known.assign(&found, &Type::Bool) {
                let found = self.known.resolve(&found, true);
                result = self.mismatch(term.at, &Type::Bool, &found);
            }
        }
        result
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Type {
        let exempts = usize::from(call.function == "format");
        self.exempt += exempts;
        let given: Vec<Type> = call.args.iter().map(|argument| self.check(argument)).collect();
        self.exempt -= exempts;
        let Some(target) = &call.target else {
            self.literals(call);
            return self.resolve_call(expr.at, &call.function, false, given);
        };
        let prefix = target.qualified();
        if let Some(name) = prefix.map(|prefix| format!("{prefix}.{}", call.function))
            && function(&name).is_some()
            && (self.patches || name != ESCAPE_KEY)
        {
            return self.resolve_call(expr.at, &name, false, given);
        }
        let mut all = vec![self.check(target)];
        all.extend(given);
        self.literals(call);
        self.resolve_call(expr.at, &call.function, true, all)
    }

    fn resolve_call(&mut self, at: usize, name: &str, member: bool, given: Vec<Type>) -> Type {
        let Some(Function { overloads, .. }) = function(name) else { return self.undeclared(at, name) };
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.member == member) {
            let letters: Vec<Type> = (0..overload.free).map(|_| self.known.fresh()).collect();
            let wanted: Vec<Type> = overload.takes.iter().map(|taken| instance(taken, &letters)).collect();
            if !self.known.assign_all(&given, &wanted) {
                continue;
            }
            let gives = self.known.resolve(&instance(&overload.gives, &letters), false);
            result = Some(match result {
                None => gives,
                Some(before) if before == Type::Dyn || before == gives => before,
                Some(_) => Type::Dyn,
            });
        }
        result.unwrap_or_else(|| {
            let given: Vec<String> =
                given.iter().map(|given| self.known.resolve(given, true).to_string()).collect();
            let applied = match (member, given.split_first()) {
                (true, Some((target, rest))) => format!("{target}.({})", rest.join(", ")),
                _ => format!("({})", given.join(", ")),
            };
            self.complain(at, format!("found no matching overload for '{name}' applied to '{applied}'"))
        })
    }

    /// Constants that are read as patterns, times and durations must be such.
    fn literals(&mut self, call: &Call) {
        // These two are found out only when a program is made of the expression.
        if matches!(call.function.as_str(), "find" | "findAll")
            && let Some(Pattern::Broken(why)) =
                call.args.first().and_then(Expr::as_text).map(pattern::compile)
        {
            self.broken.get_or_insert(why);
        }
        let (index, reads): (usize, fn(&str) -> bool) = match (call.function.as_str(), call.target.is_some())
        {
            ("matches", member) => {
                (usize::from(!member), |text| matches!(pattern::compile(text), Pattern::Compiled(_)))
            }
            ("duration", false) => (0, |text| super::library::time::duration(text).is_ok()),
            ("timestamp", false) => (0, |text| super::library::time::timestamp(text).is_ok()),
            _ => return,
        };
        if let Some(argument) = call.args.get(index)
            && let Some(text) = argument.as_text()
            && !reads(text)
        {
            self.complain(argument.at, format!("invalid {} argument", call.function));
        }
    }

    fn unwrap(&mut self, at: usize, found: Type) -> Type {
        match self.known.resolve(&found, false) {
            Type::Optional(inner) => (*inner).clone(),
            Type::Dyn | Type::Error => Type::Dyn,
            other => self.mismatch(at, &Type::Optional(other.clone().into()), &other),
        }
    }

    fn join(&mut self, at: usize, before: Option<Type>, found: Type) -> Type {
        let Some(before) = before else { return found };
        let fits = self.known.assign(&before, &found);
        if self.exempt > 0 && !fits {
            return Type::Dyn;
        }
        // What may be anything is not the same as what is known.
        let mixed = (self.known.resolve(&before, false) == Type::Dyn)
            != (self.known.resolve(&found, false) == Type::Dyn);
        if fits && (self.exempt > 0 || !mixed) {
            return if less_specific(&before, &found) { before } else { found };
        }
        let (before, found) = (self.known.resolve(&before, true), self.known.resolve(&found, true));
        self.mismatch(at, &before, &found)
    }

    fn map(&mut self, entries: &[(Expr, Expr, bool)]) -> Type {
        let (mut keys, mut values) = (None, None);
        for (key, value, optional) in entries {
            let found = self.check(key);
            keys = Some(self.join(key.at, keys, found));
            let found = self.check(value);
            let found = if *optional { self.unwrap(value.at, found) } else { found };
            values = Some(self.join(value.at, values, found));
        }
        let key = keys.unwrap_or_else(|| self.known.fresh());
        let value = values.unwrap_or_else(|| self.known.fresh());
        Type::Map(key.into(), value.into())
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Type {
        let range = self.check(&fold.range);
        let range = self.known.resolve(&range, false);
        let (first, second) = match (&range, fold.shape) {
            (Type::Optional(inner), Shape::Optional | Shape::OptionalFlat) => {
                ((**inner).clone(), Type::Error)
            }
            (Type::Dyn | Type::Error, _) => (Type::Dyn, Type::Dyn),
            (other, Shape::Optional | Shape::OptionalFlat) => {
                let why = format!("found no matching overload for 'hasValue' applied to '{other}.()'");
                (self.complain(expr.at, why), Type::Error)
            }
            (Type::List(item), _) if fold.second.is_some() => (Type::Int, (**item).clone()),
            (Type::List(item), _) => ((**item).clone(), Type::Error),
            (Type::Map(key, value), _) => ((**key).clone(), (**value).clone()),
            (Type::Free(_), _) => {
                self.known.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            (other, _) => {
                let why = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                (self.complain(fold.range.at, why), Type::Error)
            }
        };
        let outside = self.scope.len();
        self.scope.push((fold.first.clone(), first.clone()));
        if let Some(name) = &fold.second {
            self.scope.push((name.clone(), second));
        }
        let filter = fold.filter.as_ref().map(|filter| (filter.at, self.check(filter)));
        let body = self.check(&fold.body);
        self.scope.truncate(outside);
        let body = self.known.resolve(&body, false);
        if let Some((_, found)) = filter {
            let list = Type::List(body.clone().into());
            self.condition(expr.at, found, &list);
        }
        self.folded(expr, fold, (&first, body, range))
    }

    fn folded(&mut self, expr: &Expr, fold: &Fold, (item, body, range): (&Type, Type, Type)) -> Type {
        match fold.shape {
            Shape::All | Shape::Exists => {
                if !self.known.assign(&body, &Type::Bool) {
                    return self.mismatch(fold.body.at, &Type::Bool, &body);
                }
                Type::Bool
            }
            Shape::ExistsOne => {
                self.condition(expr.at, body, &Type::Int);
                Type::Bool
            }
            Shape::Filter => {
                let list = Type::List(item.clone().into());
                self.condition(expr.at, body, &list);
                list
            }
            Shape::List => Type::List(body.into()),
            Shape::Map => {
                let key = match range {
                    Type::List(_) => Type::Int,
                    Type::Map(key, _) => (*key).clone(),
                    _ => Type::Dyn,
                };
                Type::Map(key.into(), body.into())
            }
            Shape::Entries => {
                let (key, value) = (self.known.fresh(), self.known.fresh());
                let wanted = Type::Map(key.into(), value.into());
                if !self.known.assign(&body, &wanted) {
                    let why = format!(
                        "found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {body})'"
                    );
                    return self.complain(expr.at, why);
                }
                self.known.resolve(&wanted, false)
            }
            Shape::Optional => Type::Optional(body.into()),
            Shape::OptionalFlat => match body {
                Type::Optional(_) | Type::Dyn | Type::Error => body,
                other => {
                    let why = format!(
                        "found no matching overload for '_?_:_' applied to '(bool, {other}, optional_type(dyn))'"
                    );
                    self.complain(expr.at, why)
                }
            },
            Shape::Sort => {
                let comparable = [
                    Type::Int,
                    Type::Uint,
                    Type::Double,
                    Type::Bool,
                    Type::Duration,
                    Type::Timestamp,
                    Type::String,
                    Type::Bytes,
                ];
                if !comparable.iter().any(|wanted| self.known.assign(&body, wanted)) {
                    let why = format!(
                        "found no matching overload for '@sortByAssociatedKeys' applied to '{range}.(list({body}))'"
                    );
                    return self.complain(expr.at, why);
                }
                range
            }
        }
    }

    /// What decides between two values must be a truth.
    fn condition(&mut self, at: usize, found: Type, between: &Type) {
        if !self.known.assign(&found, &Type::Bool) {
            let (found, between) = (self.known.resolve(&found, true), self.known.resolve(between, true));
            let why = format!(
                "found no matching overload for '_?_:_' applied to '({found}, {between}, {between})'"
            );
            self.complain(at, why);
        }
    }
}

/// A field by its name; words of the language need no escape where a field is meant.
fn field_of<'a>(object: &'a ObjectType, name: &str) -> Option<&'a Type> {
    static ANY: Type = Type::Dyn;
    object
        .fields
        .get(name)
        .or_else(|| escape::is_reserved(name).then(|| object.fields.get(&format!("__{name}__")))?)
        .or_else(|| object.open.then_some(&ANY))
}

fn instance(given: &Type, letters: &[Type]) -> Type {
    match given {
        Type::Free(letter) => letters[*letter].clone(),
        other => other.with(&mut |inner| instance(inner, letters)),
    }
}

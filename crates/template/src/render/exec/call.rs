//! Calls of functions and methods.

use super::{Failure, Held, Run, State};
use crate::parse::{Kind, Node};
use crate::render::functions::{Answer, Body, Context, Param, Signature};
use crate::value::Value;

/// What carries out a method, given its arguments.
type Method<'m> = dyn FnMut(&Context<'_>, &[Value]) -> Result<Value, String> + 'm;

impl<'a> State<'a> {
    pub(super) fn function(
        &mut self,
        dot: &Held,
        node: &'a Node,
        name: &'a str,
        command: &'a Node,
        arguments: &'a [Node],
        last: Option<Held>,
    ) -> Run<Held> {
        self.at(node);
        let Some(function) = self.engine.functions().find(name) else {
            return self
                .fail(format!("{} is not a defined function", crate::go::quote::quote(name.as_bytes())));
        };
        let arguments = arguments.get(1..).unwrap_or_default();
        let signature = &function.signature;
        self.check_count(name, signature, arguments.len(), last.is_some())?;
        if matches!(function.body, Body::AndOr) {
            return self.and_or(dot, name, arguments, last);
        }
        let mut values = self.arguments(dot, signature, arguments, last)?;
        if let Body::Call = function.body {
            let first = values.first().cloned().unwrap_or(Held::invalid());
            let callee =
                arguments.first().map_or_else(|| crate::go::print::show(&first.value), ToString::to_string);
            let error = if first.value.is_nil() {
                "call of nil".to_owned()
            } else {
                format!("non-function {callee} of type {}", first.value.type_name())
            };
            self.at(command);
            return self.fail(format!("error calling call: {error}"));
        }
        let context = Context { engine: self.engine, set: self.set };
        self.engine.step(self.out.len())?;
        let answer = match &function.body {
            Body::Plain(body) => {
                let values: Vec<Value> = values.drain(..).map(|held| held.value).collect();
                body(&context, &values).map(|value| match signature.answer {
                    Answer::Interface => Held::interface(value),
                    Answer::Plain => Held::plain(value),
                })
            }
            Body::Reflect(body) => body(&context, &values),
            Body::AndOr | Body::Call => Err(Failure::new("not called")),
        };
        answer.or_else(|failure| self.called(command, name, failure))
    }

    fn called<T>(&mut self, node: &'a Node, name: &str, failure: Failure) -> Run<T> {
        if failure.bound {
            return Err(failure);
        }
        self.at(node);
        self.fail(format!("error calling {name}: {}", failure.text))
    }

    #[allow(clippy::too_many_arguments)] // what a call is made of
    pub(super) fn call_method(
        &mut self,
        dot: &Held,
        node: &'a Node,
        name: &str,
        signature: &str,
        arguments: &'a [Node],
        last: Option<Held>,
        body: &mut Method<'_>,
    ) -> Run<Held> {
        let signature = Signature::read(signature);
        let arguments = arguments.get(1..).unwrap_or_default();
        self.check_count(name, &signature, arguments.len(), last.is_some())?;
        let values = self.arguments(dot, &signature, arguments, last)?;
        let values: Vec<Value> = values.into_iter().map(|held| held.value).collect();
        let context = Context { engine: self.engine, set: self.set };
        match body(&context, &values) {
            Ok(value) => Ok(match signature.answer {
                Answer::Interface => Held::interface(value),
                Answer::Plain => Held::plain(value),
            }),
            Err(error) => self.called(node, name, Failure::new(error)),
        }
    }

    fn check_count(&self, name: &str, signature: &Signature, given: usize, last: bool) -> Run<()> {
        let count = given + usize::from(last);
        let fixed = signature.fixed();
        if signature.variadic {
            if count < fixed {
                return self
                    .fail(format!("wrong number of args for {name}: want at least {fixed} got {given}"));
            }
        } else if count != signature.params.len() {
            return self.fail(format!(
                "wrong number of args for {name}: want {} got {count}",
                signature.params.len()
            ));
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        dot: &Held,
        signature: &Signature,
        arguments: &'a [Node],
        last: Option<Held>,
    ) -> Run<Vec<Held>> {
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (at, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, signature.param(at), argument)?);
        }
        if let Some(last) = last {
            values.push(self.checked(last, signature.param(arguments.len()))?);
        }
        Ok(values)
    }

    /// `and` and `or` do not look at what comes after the answer is known.
    fn and_or(&mut self, dot: &Held, name: &str, arguments: &'a [Node], last: Option<Held>) -> Run<Held> {
        let mut value = Held::invalid();
        for argument in arguments {
            value = self.argument(dot, Param::Reflect, argument)?;
            if matches!(argument.kind, Kind::Nil) {
                value = Held::invalid();
            }
            if value.value.truth() == (name == "or") {
                return Ok(value);
            }
        }
        match last {
            Some(last) => self.checked(last, Param::Reflect),
            None => Ok(value),
        }
    }
}

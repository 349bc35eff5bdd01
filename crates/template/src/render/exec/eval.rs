//! Pipelines, commands and operands.

use super::{Held, Run, State};
use crate::parse::{Kind, Node, Number};
use crate::value::Value;
use std::rc::Rc;

impl<'a> State<'a> {
    /// The value of a pipeline. What it declares stays on the stack of variables.
    pub(super) fn pipeline(&mut self, dot: &Held, node: &'a Node) -> Run<Held> {
        self.at(node);
        self.engine.step(self.out.len())?;
        let Kind::Pipe(pipe) = &node.kind else { return self.fail(format!("unknown node: {node}")) };
        let mut value: Option<Held> = None;
        for command in &pipe.commands {
            let answer = self.command(dot, command, value)?;
            // What an interface holds stands for itself from here on.
            value = Some(Held::plain(answer.value));
        }
        let value = value.unwrap_or(Held::invalid());
        for name in &pipe.variables {
            if pipe.assign {
                self.set_variable(name, value.clone())?;
            } else {
                self.variables.push((Rc::clone(name), value.clone()));
            }
        }
        Ok(value)
    }

    pub(super) fn set_variable(&mut self, name: &str, value: Held) -> Run<()> {
        match self.variables.iter_mut().rev().find(|(other, _)| **other == *name) {
            Some((_, held)) => *held = value,
            None => return self.fail(format!("undefined variable: {name}")),
        }
        Ok(())
    }

    fn not_a_function(&self, arguments: &[Node], last: Option<&Held>) -> Run<()> {
        if arguments.len() > 1 || last.is_some() {
            let first = arguments.first().map(ToString::to_string).unwrap_or_default();
            return self.fail(format!("can't give argument to non-function {first}"));
        }
        Ok(())
    }

    /// One command; `last` is what the pipeline hands to it.
    fn command(&mut self, dot: &Held, command: &'a Node, last: Option<Held>) -> Run<Held> {
        let Kind::Command(arguments) = &command.kind else { return self.fail("not a command") };
        let Some(first) = arguments.first() else { return self.fail("empty command") };
        match &first.kind {
            Kind::Field(names) => {
                self.at(first);
                return self.fields(dot, dot.clone(), first, names, arguments, last);
            }
            Kind::Chain(node, names) => return self.chain(dot, first, node, names, arguments, last),
            Kind::Identifier(name) => return self.function(dot, first, name, command, arguments, last),
            Kind::Pipe(_) => {
                self.not_a_function(arguments, last.as_ref())?;
                return self.pipeline(dot, first);
            }
            Kind::Variable(names) => return self.variable(dot, first, names, arguments, last),
            _ => {}
        }
        self.at(first);
        self.not_a_function(arguments, last.as_ref())?;
        match &first.kind {
            Kind::Bool(value) => Ok(Held::plain(Value::Bool(*value))),
            Kind::Dot => Ok(dot.clone()),
            Kind::Nil => self.fail("nil is not a command"),
            Kind::Number(number) => self.constant(first, number),
            Kind::Str { text, .. } => Ok(Held::plain(Value::Str(text.clone()))),
            _ => self.fail(format!(
                "can't evaluate command {}",
                crate::go::quote::quote(first.to_string().as_bytes())
            )),
        }
    }

    /// A number where no type is asked for.
    pub(super) fn constant(&mut self, node: &'a Node, number: &Number) -> Run<Held> {
        self.at(node);
        let text = &*number.text;
        let hex = text.len() > 2
            && (text.starts_with("0x") || text.starts_with("0X"))
            && !text.contains(['p', 'P']);
        if let Some((real, imaginary)) = number.complex {
            return Ok(Held::plain(Value::Complex(real, imaginary)));
        }
        if let Some(float) = number.float
            && !hex
            && !text.starts_with('\'')
            && text.contains(['.', 'e', 'E', 'p', 'P'])
        {
            return Ok(Held::plain(Value::Float(float)));
        }
        match number.int {
            Some(int) => Ok(Held::plain(Value::int(int))),
            None => self.fail(format!("{text} overflows int")),
        }
    }

    pub(super) fn variable(
        &mut self,
        dot: &Held,
        node: &'a Node,
        names: &'a [Rc<str>],
        arguments: &'a [Node],
        last: Option<Held>,
    ) -> Run<Held> {
        self.at(node);
        let (first, rest) = (&names[0], &names[1..]);
        let Some((_, value)) = self.variables.iter().rev().find(|(other, _)| other == first) else {
            return self.fail(format!("undefined variable: {first}"));
        };
        let value = value.clone();
        if rest.is_empty() {
            self.not_a_function(arguments, last.as_ref())?;
            return Ok(value);
        }
        self.fields(dot, value, node, rest, arguments, last)
    }

    pub(super) fn chain(
        &mut self,
        dot: &Held,
        node: &'a Node,
        inner: &'a Node,
        names: &'a [Rc<str>],
        arguments: &'a [Node],
        last: Option<Held>,
    ) -> Run<Held> {
        self.at(node);
        if matches!(inner.kind, Kind::Nil) {
            return self.fail(format!("indirection through explicit nil in {node}"));
        }
        let value = self.operand(dot, inner)?;
        self.fields(dot, value, node, names, arguments, last)
    }

    /// An operand of any type.
    pub(super) fn operand(&mut self, dot: &Held, node: &'a Node) -> Run<Held> {
        self.at(node);
        match &node.kind {
            Kind::Dot => Ok(dot.clone()),
            Kind::Bool(value) => Ok(Held::plain(Value::Bool(*value))),
            Kind::Field(names) => {
                self.fields(dot, dot.clone(), node, names, std::slice::from_ref(node), None)
            }
            Kind::Identifier(name) => self.function(dot, node, name, node, &[], None),
            Kind::Number(number) => self.constant(node, number),
            Kind::Str { text, .. } => Ok(Held::plain(Value::Str(text.clone()))),
            Kind::Variable(names) => self.variable(dot, node, names, &[], None),
            Kind::Pipe(_) => self.pipeline(dot, node),
            Kind::Chain(inner, names) => self.chain(dot, node, inner, names, &[], None),
            _ => self.fail(format!("can't handle assignment of {node} to empty interface argument")),
        }
    }
}

//! Executes trees: walks through their nodes, and writes what they say.

mod arguments;
mod call;
mod eval;
mod fields;
mod range;

use crate::go::print::sprint;
use crate::parse::{Kind, Node, Tree};
use crate::render::engine::{Engine, Set};
use crate::value::Value;
use std::rc::Rc;

/// A value, and whether Go would hold it as an `interface {}`, such as an element of `.Values`. Errors name that type.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub value: Value,
    pub interface: bool,
}

impl Held {
    /// A value of its own type.
    pub fn plain(value: Value) -> Self {
        Self { value, interface: false }
    }

    /// An `interface {}` that holds the value.
    pub fn interface(value: Value) -> Self {
        Self { value, interface: true }
    }

    /// Go's zero `reflect.Value`: nothing at all, not even a nil.
    pub fn invalid() -> Self {
        Self::plain(Value::Nil)
    }

    pub fn is_invalid(&self) -> bool {
        !self.interface && self.value.is_nil()
    }

    /// The type that errors name.
    pub fn type_name(&self) -> String {
        if self.interface { "interface {}".into() } else { self.value.type_name() }
    }
}

/// Why execution ended.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub text: String,
    /// A bound was reached: no function may swallow it.
    pub bound: bool,
}

impl Failure {
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), bound: false }
    }
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

pub(crate) type Run<T> = Result<T, Failure>;

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    On,
    Break,
    Continue,
}

/// The execution of one template.
pub(crate) struct State<'a> {
    engine: &'a Engine,
    set: &'a Rc<Set>,
    tree: &'a Tree,
    node: Option<&'a Node>,
    variables: Vec<(Rc<str>, Held)>,
    out: &'a mut Vec<u8>,
}

/// Executes a template of a set.
pub(crate) fn execute(engine: &Engine, set: &Rc<Set>, tree: &Tree, dot: Held, out: &mut Vec<u8>) -> Run<()> {
    let _entered = engine.enter(&tree.name)?;
    let mut state = State { engine, set, tree, node: None, variables: vec![("$".into(), dot.clone())], out };
    state.walk_list(&dot, &tree.root)?;
    Ok(())
}

impl<'a> State<'a> {
    fn at(&mut self, node: &'a Node) {
        self.node = Some(node);
    }

    fn fail<T>(&self, text: impl std::fmt::Display) -> Run<T> {
        Err(Failure::new(match self.node {
            None => format!("template: {}: {text}", self.tree.name),
            Some(node) => format!(
                "template: {}: executing {} at <{node}>: {text}",
                self.tree.location(node),
                crate::go::quote::quote(self.tree.name.as_bytes()),
            ),
        }))
    }

    fn walk_list(&mut self, dot: &Held, list: &'a [Node]) -> Run<Flow> {
        for node in list {
            match self.walk(dot, node)? {
                Flow::On => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::On)
    }

    fn walk(&mut self, dot: &Held, node: &'a Node) -> Run<Flow> {
        self.at(node);
        self.engine.step(self.out.len())?;
        match &node.kind {
            Kind::Text(text) => self.out.extend_from_slice(text),
            Kind::Action(pipe) => {
                let value = self.pipeline(dot, pipe)?;
                if matches!(&pipe.kind, Kind::Pipe(pipe) if pipe.variables.is_empty()) {
                    self.at(node);
                    self.print(&value);
                }
            }
            Kind::If(branch) | Kind::With(branch) => {
                let mark = self.variables.len();
                let value = self.pipeline(dot, &branch.pipe)?;
                let with = matches!(node.kind, Kind::With(_));
                let flow = if value.value.truth() {
                    self.walk_list(if with { &value } else { dot }, &branch.list)?
                } else if let Some(list) = &branch.otherwise {
                    self.walk_list(dot, list)?
                } else {
                    Flow::On
                };
                self.variables.truncate(mark);
                return Ok(flow);
            }
            Kind::Range(branch) => return self.walk_range(dot, node, branch),
            Kind::Template { name, pipe } => {
                let Some(tree) = self.set.find(name) else {
                    return self
                        .fail(format!("template {} not defined", crate::go::quote::quote(name.as_bytes())));
                };
                let dot = match pipe {
                    Some(pipe) => self.pipeline(dot, pipe)?,
                    None => Held::invalid(),
                };
                self.at(node);
                execute(self.engine, self.set, &tree, dot, self.out)?;
            }
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
            _ => return self.fail(format!("unknown node: {node}")),
        }
        Ok(Flow::On)
    }

    fn print(&mut self, value: &Held) {
        match &value.value {
            Value::Nil if value.interface => self.out.extend_from_slice(b"<nil>"),
            Value::Nil => self.out.extend_from_slice(b"<no value>"),
            Value::Str(text) => self.out.extend_from_slice(text),
            // A pointer is printed as what it points to, unless that has a method String.
            Value::Object(object)
                if object.kind() == crate::value::Kind::Pointer && object.text().is_none() =>
            {
                let text = sprint(&value.value);
                self.out.extend_from_slice(text.strip_prefix(b"&").unwrap_or(&text));
            }
            value => {
                let text = sprint(value);
                self.out.extend_from_slice(&text);
            }
        }
    }
}

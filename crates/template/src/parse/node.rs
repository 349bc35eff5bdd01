//! The tree of a template.

use crate::text::GoStr;
use std::rc::Rc;

/// A template that was defined: by a file, by `define` or by `block`.
#[derive(Debug)]
pub(crate) struct Tree {
    pub name: Rc<str>,
    /// The name of the file, which errors name.
    pub parse_name: Rc<str>,
    pub text: Rc<str>,
    pub root: Vec<Node>,
}

impl Tree {
    /// Nothing but space and comments.
    pub fn is_empty(&self) -> bool {
        self.root.iter().all(|node| match &node.kind {
            Kind::Text(text) => text.lossy().trim().is_empty(),
            _ => false,
        })
    }

    /// `file:line:column` of a node.
    pub fn location(&self, node: &Node) -> String {
        let before = &self.text.as_bytes()[..node.pos.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        let column = match before.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => before.len() - at - 1,
            None => before.len(),
        };
        format!("{}:{line}:{column}", self.parse_name)
    }
}

#[derive(Debug)]
pub(crate) struct Node {
    pub pos: usize,
    pub kind: Kind,
}

#[derive(Debug)]
pub(crate) enum Kind {
    Text(GoStr),
    /// `{{ pipe }}`
    Action(Box<Node>),
    If(Box<Branch>),
    Range(Box<Branch>),
    With(Box<Branch>),
    Template {
        name: Rc<str>,
        pipe: Option<Box<Node>>,
    },
    Break,
    Continue,
    /// These two end lists, and are in none.
    End,
    Else,

    Pipe(Pipe),
    Command(Vec<Node>),
    Field(Vec<Rc<str>>),
    Variable(Vec<Rc<str>>),
    /// `(pipe).field`
    Chain(Box<Node>, Vec<Rc<str>>),
    /// The name of a function.
    Identifier(Rc<str>),
    Dot,
    Nil,
    Bool(bool),
    Number(Number),
    Str {
        quoted: Rc<str>,
        text: GoStr,
    },
}

/// `if`, `range` or `with`.
#[derive(Debug)]
pub(crate) struct Branch {
    pub pipe: Node,
    pub list: Vec<Node>,
    pub otherwise: Option<Vec<Node>>,
}

#[derive(Debug)]
pub(crate) struct Pipe {
    /// `$x = ` and not `$x := `
    pub assign: bool,
    pub variables: Vec<Rc<str>>,
    pub commands: Vec<Node>,
}

/// A literal, as each of the types that it may be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Number {
    pub text: Rc<str>,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    pub complex: Option<(f64, f64)>,
}

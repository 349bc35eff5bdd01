//! The syntax tree of an expression. Its depth and size are limited, so that recursion over it is safe.

use crate::pattern::Pattern;
use std::sync::OnceLock;

/// How deep a tree may be. Everything that walks one recurses, on the stack of a worker thread.
pub(super) const MOST_DEPTH: u16 = 160;

/// How many nodes a tree may have. Macros may copy what they are called on.
pub(super) const MOST_NODES: usize = 50_000;

/// A node, and where it stands in the text, counted in characters.
#[derive(Debug, Clone)]
pub(super) struct Expr {
    pub at: usize,
    pub depth: u16,
    pub kind: Kind,
}

/// A constant.
#[derive(Debug, Clone)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Literal(Literal),
    Ident(String),
    /// `a.b`, or `has(a.b)` if it only tests, or `a.?b` if it is optional.
    Select(Box<Select>),
    /// `a && b && c` or the same with `||`: neither is strict.
    Logic(bool, Vec<Expr>),
    /// `a ? b : c`
    Choice(Box<[Expr; 3]>),
    Call(Box<Call>),
    /// Items, each with whether it is optional.
    List(Vec<(Expr, bool)>),
    /// Keys and values, each with whether it is optional.
    Map(Vec<(Expr, Expr, bool)>),
    /// `Name{field: value}`: only where a policy mutates are there types that can be made so.
    Message(Box<Message>),
    Fold(Box<Fold>),
}

#[derive(Debug, Clone)]
pub(super) struct Select {
    pub operand: Expr,
    pub field: String,
    pub test: bool,
    pub optional: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Message {
    pub name: String,
    pub fields: Vec<MessageField>,
}

/// A field of what is made, and where its value begins.
#[derive(Debug, Clone)]
pub(super) struct MessageField {
    pub at: usize,
    pub name: String,
    pub value: Expr,
    pub optional: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Call {
    pub function: String,
    pub target: Option<Expr>,
    pub args: Vec<Expr>,
    /// The regular expression among the arguments, if it is a constant: compiled at its first use.
    pub pattern: OnceLock<Pattern>,
}

/// What a macro over a list or a map makes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    All,
    Exists,
    ExistsOne,
    /// `map`, `transformList`: a list of what the body says.
    List,
    /// `filter`: those for which the body holds.
    Filter,
    /// `transformMap`: the same keys with what the body says.
    Map,
    /// `transformMapEntry`: what the body says is itself a map.
    Entries,
    /// `optMap`: the body with the optional's value, wrapped again.
    Optional,
    /// `optFlatMap`: the body with the optional's value.
    OptionalFlat,
    /// `sortBy`: ordered by what the body says.
    Sort,
}

/// A macro that binds variables.
#[derive(Debug, Clone)]
pub(super) struct Fold {
    pub shape: Shape,
    pub range: Expr,
    pub first: String,
    pub second: Option<String>,
    pub filter: Option<Expr>,
    pub body: Expr,
}

impl Kind {
    /// Of how many levels the deepest part consists.
    pub(super) fn deepest(&self) -> u16 {
        let most = |parts: &mut dyn Iterator<Item = &Expr>| parts.map(|part| part.depth).max().unwrap_or(0);
        match self {
            Self::Literal(_) | Self::Ident(_) => 0,
            Self::Message(message) => most(&mut message.fields.iter().map(|field| &field.value)),
            Self::Select(select) => select.operand.depth,
            Self::Logic(_, terms) => most(&mut terms.iter()),
            Self::Choice(parts) => most(&mut parts.iter()),
            Self::Call(call) => most(&mut call.target.iter().chain(&call.args)),
            Self::List(items) => most(&mut items.iter().map(|(item, _)| item)),
            Self::Map(entries) => most(&mut entries.iter().flat_map(|(key, value, _)| [key, value])),
            Self::Fold(fold) => most(&mut [&fold.range, &fold.body].into_iter().chain(fold.filter.as_ref())),
        }
    }
}

impl Expr {
    /// The dotted name that the node spells, such as `a.b.c`.
    pub(super) fn qualified(&self) -> Option<String> {
        match &self.kind {
            Kind::Ident(name) => Some(name.clone()),
            Kind::Select(select) if !select.test && !select.optional => {
                Some(format!("{}.{}", select.operand.qualified()?, select.field))
            }
            _ => None,
        }
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Literal(Literal::String(text)) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match &self.kind {
            Kind::Literal(Literal::Int(number)) => Some(*number),
            _ => None,
        }
    }

    /// The nodes right below.
    fn parts(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Literal(_) | Kind::Ident(_) => Vec::new(),
            Kind::Message(message) => message.fields.iter().map(|field| &field.value).collect(),
            Kind::Select(select) => vec![&select.operand],
            Kind::Logic(_, terms) => terms.iter().collect(),
            Kind::Choice(parts) => parts.iter().collect(),
            Kind::Call(call) => call.target.iter().chain(&call.args).collect(),
            Kind::List(items) => items.iter().map(|(item, _)| item).collect(),
            Kind::Map(entries) => entries.iter().flat_map(|(key, value, _)| [key, value]).collect(),
            Kind::Fold(fold) => [&fold.range, &fold.body].into_iter().chain(&fold.filter).collect(),
        }
    }

    /// Shows the node and all below it.
    pub(super) fn visit<'a>(&'a self, see: &mut impl FnMut(&'a Expr)) {
        see(self);
        for part in self.parts() {
            part.visit(see);
        }
    }

    /// Is the variable named anywhere, where no macro hides it?
    pub(super) fn names(&self, variable: &str) -> bool {
        match &self.kind {
            Kind::Ident(name) => name == variable,
            Kind::Fold(fold) => {
                let hidden = fold.first == variable || fold.second.as_deref() == Some(variable);
                fold.range.names(variable)
                    || !hidden && fold.filter.iter().chain([&fold.body]).any(|part| part.names(variable))
            }
            _ => self.parts().into_iter().any(|part| part.names(variable)),
        }
    }
}

//! From a template's text to its tree.

mod lexer;
mod node;
mod number;
mod parser;
mod show;
mod unquote;

pub(crate) use node::{Branch, Kind, Node, Number, Pipe, Tree};
pub(crate) use parser::parse;

/// Is there a function of this name?
pub(crate) type Known<'a> = &'a dyn Fn(&str) -> bool;

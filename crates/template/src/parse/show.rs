//! Nodes as errors show them: the source, normalized as Go does it.

use super::node::{Branch, Kind, Node};
use crate::go::quote::quote;
use std::fmt::{self, Display, Formatter};
use std::rc::Rc;

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Text(text) => f.write_str(&text.lossy()),
            Kind::Action(pipe) => write!(f, "{{{{{pipe}}}}}"),
            Kind::If(branch) => show(f, "if", branch),
            Kind::Range(branch) => show(f, "range", branch),
            Kind::With(branch) => show(f, "with", branch),
            Kind::Template { name, pipe } => {
                write!(f, "{{{{template {}", quote(name.as_bytes()))?;
                if let Some(pipe) = pipe {
                    write!(f, " {pipe}")?;
                }
                f.write_str("}}")
            }
            Kind::Break => f.write_str("{{break}}"),
            Kind::Continue => f.write_str("{{continue}}"),
            Kind::End => f.write_str("{{end}}"),
            Kind::Else => f.write_str("{{else}}"),
            Kind::Pipe(pipe) => {
                if !pipe.variables.is_empty() {
                    write!(f, "{} {} ", pipe.variables.join(", "), if pipe.assign { "=" } else { ":=" })?;
                }
                for (at, command) in pipe.commands.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" | ")?;
                    }
                    write!(f, "{command}")?;
                }
                Ok(())
            }
            Kind::Command(arguments) => {
                for (at, argument) in arguments.iter().enumerate() {
                    if at > 0 {
                        f.write_str(" ")?;
                    }
                    in_parentheses(f, argument)?;
                }
                Ok(())
            }
            Kind::Field(names) => dotted(f, names),
            Kind::Variable(names) => f.write_str(&names.join(".")),
            Kind::Chain(node, names) => {
                in_parentheses(f, node)?;
                dotted(f, names)
            }
            Kind::Identifier(name) => f.write_str(name),
            Kind::Dot => f.write_str("."),
            Kind::Nil => f.write_str("nil"),
            Kind::Bool(value) => write!(f, "{value}"),
            Kind::Number(number) => f.write_str(&number.text),
            Kind::Str { quoted, .. } => f.write_str(quoted),
        }
    }
}

fn dotted(f: &mut Formatter<'_>, names: &[Rc<str>]) -> fmt::Result {
    names.iter().try_for_each(|name| write!(f, ".{name}"))
}

fn in_parentheses(f: &mut Formatter<'_>, node: &Node) -> fmt::Result {
    match node.kind {
        Kind::Pipe(_) => write!(f, "({node})"),
        _ => write!(f, "{node}"),
    }
}

fn show(f: &mut Formatter<'_>, word: &str, branch: &Branch) -> fmt::Result {
    write!(f, "{{{{{word} {}}}}}", branch.pipe)?;
    branch.list.iter().try_for_each(|node| write!(f, "{node}"))?;
    if let Some(list) = &branch.otherwise {
        f.write_str("{{else}}")?;
        list.iter().try_for_each(|node| write!(f, "{node}"))?;
    }
    f.write_str("{{end}}")
}

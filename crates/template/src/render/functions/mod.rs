//! The functions that templates call: Go's own, Sprig's and Helm's.

mod builtin;
mod cast;
mod certificates;
mod compare;
mod crypto;
mod dates;
mod dicts;
mod encoding;
mod helm;
mod index;
mod lists;
mod merge;
mod numbers;
mod paths;
mod patterns;
mod strings;
mod types;
mod versions;
mod words;

use crate::render::engine::{Engine, Set};
use crate::render::exec::{Held, Run};
use crate::value::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::OnceLock;

/// What a function may use besides its arguments.
pub(crate) struct Context<'a> {
    pub engine: &'a Engine,
    pub set: &'a Rc<Set>,
}

/// The type of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Param {
    Any,
    /// `reflect.Value`: any, and the function sees how it is held.
    Reflect,
    Bool,
    Str,
    Int,
    Float,
    Map,
    List,
    Strings,
    Time,
    Certificate,
    Version,
}

impl Param {
    fn read(letter: char) -> Self {
        match letter {
            's' => Self::Str,
            'i' => Self::Int,
            'f' => Self::Float,
            'b' => Self::Bool,
            'm' => Self::Map,
            'l' => Self::List,
            'L' => Self::Strings,
            't' => Self::Time,
            'c' => Self::Certificate,
            'V' => Self::Version,
            'r' => Self::Reflect,
            _ => Self::Any,
        }
    }

    /// The type's name in Go.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Reflect => "reflect.Value",
            Self::Bool => "bool",
            Self::Str => "string",
            Self::Int => "int",
            Self::Float => "float64",
            Self::Map => "map[string]interface {}",
            Self::List => "[]interface {}",
            Self::Strings => "[]string",
            Self::Time => "time.Time",
            Self::Certificate => "sprig.certificate",
            Self::Version => "*semver.Version",
        }
    }
}

/// Is the answer declared as `interface {}`? Then errors about it name that type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Interface,
    Plain,
}

/// The parameters of a function.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// As it stands in the table.
    pub text: String,
    pub params: Vec<Param>,
    pub variadic: bool,
    pub answer: Answer,
}

impl Signature {
    /// `sa*>s`: a string, any number of anything, and it answers a string.
    pub fn read(text: &str) -> Self {
        let (params, answer) = text.split_once('>').unwrap_or((text, ""));
        Self {
            text: text.to_owned(),
            variadic: params.ends_with('*'),
            params: params.chars().filter(|letter| *letter != '*').map(Param::read).collect(),
            answer: if answer == "a" { Answer::Interface } else { Answer::Plain },
        }
    }

    pub fn fixed(&self) -> usize {
        self.params.len() - usize::from(self.variadic)
    }

    /// The type of an argument.
    pub fn param(&self, at: usize) -> Param {
        self.params.get(at).or(self.params.last()).copied().unwrap_or(Param::Any)
    }
}

pub(crate) type Plain = fn(&Context<'_>, &[Value]) -> Run<Value>;
pub(crate) type Reflect = fn(&Context<'_>, &[Held]) -> Run<Held>;

pub(crate) enum Body {
    Plain(Plain),
    Reflect(Reflect),
    AndOr,
    Call,
}

pub(crate) struct Function {
    pub signature: Signature,
    pub body: Body,
}

/// A row of a table of functions: name, signature, body.
type Row = (&'static str, &'static str, Plain);

/// A set of functions.
pub struct Functions(HashMap<&'static str, Function>);

impl Functions {
    pub(crate) fn find(&self, name: &str) -> Option<&Function> {
        self.0.get(name)
    }

    /// The names of all functions.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.0.keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// The parameters of a function and its answer, a letter for each type: `sa*>s` takes a string and any number of anything.
    #[must_use]
    pub fn signature(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|function| function.signature.text.as_str())
    }

    /// Go's own functions only.
    #[must_use]
    pub fn go() -> &'static Self {
        static GO: OnceLock<Functions> = OnceLock::new();
        GO.get_or_init(|| {
            let mut functions = Self(HashMap::new());
            functions.add_go();
            functions
        })
    }

    /// Those that charts have: Go's, Sprig's without the environment's, and Helm's.
    #[must_use]
    pub fn helm() -> &'static Self {
        static HELM: OnceLock<Functions> = OnceLock::new();
        HELM.get_or_init(|| {
            let mut functions = Self(HashMap::new());
            functions.add_go();
            functions.add_sprig();
            functions.add(helm::ROWS);
            functions
        })
    }

    fn add(&mut self, rows: &[Row]) {
        for (name, signature, body) in rows {
            self.0.insert(name, Function { signature: Signature::read(signature), body: Body::Plain(*body) });
        }
    }

    fn add_go(&mut self) {
        self.add(builtin::ROWS);
        for (name, signature, body) in index::ROWS {
            self.0
                .insert(name, Function { signature: Signature::read(signature), body: Body::Reflect(*body) });
        }
        for name in ["and", "or"] {
            self.0.insert(name, Function { signature: Signature::read("rr*>r"), body: Body::AndOr });
        }
        self.0.insert("call", Function { signature: Signature::read("rr*>r"), body: Body::Call });
    }

    fn add_sprig(&mut self) {
        for rows in [
            certificates::ROWS,
            crypto::ROWS,
            dates::ROWS,
            dicts::ROWS,
            encoding::ROWS,
            lists::ROWS,
            merge::ROWS,
            numbers::ROWS,
            paths::ROWS,
            patterns::ROWS,
            strings::ROWS,
            types::ROWS,
            versions::ROWS,
            words::ROWS,
        ] {
            self.add(rows);
        }
    }
}

// The arguments of a body have the types of its signature; these take them out.

fn text(arguments: &[Value], at: usize) -> &[u8] {
    match arguments.get(at) {
        Some(Value::Str(text)) => text,
        _ => b"",
    }
}

fn lossy(arguments: &[Value], at: usize) -> std::borrow::Cow<'_, str> {
    crate::text::lossy(text(arguments, at))
}

fn integer(arguments: &[Value], at: usize) -> i64 {
    match arguments.get(at) {
        Some(Value::Int(_, value)) => *value,
        _ => 0,
    }
}

fn map(arguments: &[Value], at: usize) -> crate::value::Map {
    match arguments.get(at) {
        Some(Value::Map(map)) => map.clone(),
        _ => crate::value::Map::new(crate::value::MapType::Any, Default::default()),
    }
}

fn any(arguments: &[Value], at: usize) -> Value {
    arguments.get(at).cloned().unwrap_or(Value::Nil)
}

//! The engine: a set of templates, the functions that they may call, and the bounds that they are held to.

use crate::parse::{Tree, parse};
use crate::render::exec::{Failure, Held, Run, execute};
use crate::render::functions::Functions;
use crate::value::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

/// What an entry is that a map has not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MissingKey {
    /// No value, which is printed as `<no value>`.
    #[default]
    Default,
    /// The zero of the map's type, as Helm has it.
    Zero,
    /// An error.
    Error,
}

/// What rendering may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Templates, branches and parentheses within each other.
    pub depth: usize,
    /// Nodes, rounds of loops and calls.
    pub steps: u64,
    /// Bytes that one template writes.
    pub output: usize,
    /// Bytes that all functions together answer with.
    pub made: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth: 20_000, steps: 50_000_000, output: 256 << 20, made: 1 << 30 }
    }
}

/// Finds objects of a cluster: by apiVersion, kind, namespace and name. Without a name it answers a list.
pub type Lookup = Box<dyn Fn(&str, &str, &str, &str) -> Result<Value, String>>;

/// How an engine renders.
#[derive(Default)]
pub struct Options {
    /// What missing entries are.
    pub missing_key: MissingKey,
    /// `required` and `fail` let pass, as `helm lint` has it.
    pub lint: bool,
    /// The bounds.
    pub limits: Limits,
    /// What `now` answers.
    pub now: jiff::Timestamp,
    /// What `lookup` asks. Without it, it finds nothing.
    pub lookup: Option<Lookup>,
}

/// A template that could not be read or executed. The text is Go's, with file, line and column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Error {
    /// What went wrong.
    pub text: String,
    /// Was a bound reached?
    pub bound: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self { text: failure.text, bound: failure.bound }
    }
}

/// Templates that know each other. `tpl` works on a set of its own above that of its caller.
#[derive(Default)]
pub(crate) struct Set {
    below: Option<Rc<Set>>,
    own: RefCell<HashMap<Rc<str>, Rc<Tree>>>,
}

impl Set {
    pub fn above(below: &Rc<Set>) -> Rc<Set> {
        Rc::new(Set { below: Some(Rc::clone(below)), own: RefCell::default() })
    }

    pub fn find(&self, name: &str) -> Option<Rc<Tree>> {
        let found = self.own.borrow().get(name).cloned();
        found.or_else(|| self.below.as_ref().and_then(|below| below.find(name)))
    }

    /// Adds what a text defines. What is empty does not replace what is there.
    pub fn add(&self, trees: Vec<Tree>) {
        for tree in trees {
            if tree.is_empty() && self.find(&tree.name).is_some() {
                continue;
            }
            self.own.borrow_mut().insert(Rc::clone(&tree.name), Rc::new(tree));
        }
    }
}

/// Renders templates.
pub struct Engine {
    functions: &'static Functions,
    options: Options,
    set: Rc<Set>,
    depth: Cell<usize>,
    steps: Cell<u64>,
    made: Cell<usize>,
    /// How often each template is being included at this moment.
    included: RefCell<HashMap<Rc<str>, usize>>,
    changed: RefCell<Vec<crate::value::Watched>>,
    patterns: RefCell<HashMap<String, Result<regex::Regex, String>>>,
}

impl Engine {
    /// An engine without templates.
    #[must_use]
    pub fn new(functions: &'static Functions, options: Options) -> Self {
        Self {
            functions,
            options,
            set: Rc::default(),
            depth: Cell::default(),
            steps: Cell::default(),
            made: Cell::default(),
            included: RefCell::default(),
            changed: RefCell::default(),
            patterns: RefCell::default(),
        }
    }

    /// Adds a template under a name, with all that it defines.
    ///
    /// # Errors
    /// If the text is no template.
    pub fn parse(&self, name: &str, text: &str) -> Result<(), Error> {
        let trees = self.trees(name, text).map_err(|text| Error { text, bound: false })?;
        self.set.add(trees);
        Ok(())
    }

    pub(crate) fn trees(&self, name: &str, text: &str) -> Result<Vec<Tree>, String> {
        parse(name, text, &|function| self.functions.find(function).is_some())
    }

    /// Executes the template of a name. Its bytes are UTF-8 unless a function answered with other bytes.
    ///
    /// # Errors
    /// If there is no such template, if it fails, or if it reaches a bound.
    pub fn execute(&self, name: &str, data: Value) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.run(&self.set, name, data, &mut out)?;
        Ok(out)
    }

    pub(crate) fn run(&self, set: &Rc<Set>, name: &str, data: Value, out: &mut Vec<u8>) -> Run<()> {
        let Some(tree) = set.find(name) else {
            let quoted = crate::go::quote::quote(name.as_bytes());
            return Err(Failure::new(format!(
                "template: no template {quoted} associated with template \"gotpl\""
            )));
        };
        execute(self, set, &tree, Held::plain(data), out)
    }

    pub(crate) fn functions(&self) -> &'static Functions {
        self.functions
    }

    pub(crate) fn missing_key(&self) -> MissingKey {
        self.options.missing_key
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// One step deeper, until the guard is dropped.
    pub(crate) fn enter(&self, name: &str) -> Run<Guard<'_>> {
        let most = self.options.limits.depth;
        if self.depth.get() >= most {
            return Err(bound(format!("template: {name}: exceeded maximum template depth ({most})")));
        }
        self.depth.set(self.depth.get() + 1);
        Ok(Guard(&self.depth))
    }

    /// Counts a step, and looks at what was written so far.
    pub(crate) fn step(&self, written: usize) -> Run<()> {
        let Limits { steps, output, .. } = self.options.limits;
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > steps {
            return Err(bound(format!("rendering takes more than {steps} steps, which is the limit")));
        }
        if written > output {
            return Err(bound(format!("a template writes more than {output} bytes, which is the limit")));
        }
        Ok(())
    }

    /// Counts bytes that a function is about to make.
    pub(crate) fn make(&self, bytes: usize) -> Run<()> {
        let most = self.options.limits.made;
        let made = self.made.get().saturating_add(bytes);
        if made > most {
            return Err(bound(format!(
                "functions of a template make more than {most} bytes, which is the limit"
            )));
        }
        self.made.set(made);
        Ok(())
    }

    /// Counts the includes of a name within each other.
    pub(crate) fn include<T>(&self, name: &str, most: usize, run: impl FnOnce() -> Run<T>) -> Run<T> {
        let key: Rc<str> = name.into();
        {
            let mut included = self.included.borrow_mut();
            let count = included.entry(Rc::clone(&key)).or_insert(0);
            if *count > most {
                return Err(Failure::new(format!(
                    "rendering template has a nested reference name: {name}: unable to execute template"
                )));
            }
            *count += 1;
        }
        let answer = run();
        if let Some(count) = self.included.borrow_mut().get_mut(&key) {
            *count -= 1;
        }
        answer
    }

    /// Remembers a map that a template changed: it may hold itself now.
    pub(crate) fn changed(&self, map: &Map) {
        self.changed.borrow_mut().push(map.watch());
    }

    /// A compiled pattern.
    pub(crate) fn pattern(&self, pattern: &str) -> Result<regex::Regex, String> {
        if let Some(compiled) = self.patterns.borrow().get(pattern) {
            return compiled.clone();
        }
        let compiled = crate::go::regexp::compile(pattern);
        let mut patterns = self.patterns.borrow_mut();
        if patterns.len() < 1000 {
            patterns.insert(pattern.to_owned(), compiled.clone());
        }
        compiled
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for map in self.changed.take() {
            map.open();
        }
    }
}

fn bound(text: String) -> Failure {
    Failure { text, bound: true }
}

/// Leaves a depth when dropped.
pub(crate) struct Guard<'a>(&'a Cell<usize>);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

//! From tokens to trees.

use super::Known;
use super::lexer::{Item, Lexer, Type};
use super::node::{Branch, Kind, Node, Pipe, Tree};
use super::{number, unquote::unquote};
use crate::go::quote::quote;
use std::rc::Rc;

/// Nested actions and parentheses beyond this are refused, so that no text exhausts the stack. Go's own limit, which is
/// for parentheses only, is 10000.
const MOST_NESTED: usize = 1000;

/// Parses a file: the trees that it defines, the file itself among them.
///
/// A define of a name that an earlier one in this text has is refused, unless one of both is empty.
pub(crate) fn parse(name: &str, text: &str, known: Known<'_>) -> Result<Vec<Tree>, String> {
    let shared =
        Shared { lexer: Lexer::new(text), tokens: Default::default(), pending: 0, trees: Vec::new(), known };
    let mut parser = Parser {
        shared,
        name: name.into(),
        text: text.into(),
        scope: Scope { variables: vec!["$".into()], ..Scope::default() },
        depth: 0,
    };
    let root = parser.file()?;
    parser.add(name.into(), root)?;
    Ok(parser.shared.trees)
}

struct Shared<'a> {
    lexer: Lexer<'a>,
    tokens: [Option<Item>; 3],
    pending: usize,
    trees: Vec<Tree>,
    known: Known<'a>,
}

#[derive(Default)]
struct Scope {
    variables: Vec<Rc<str>>,
    action_line: usize,
    ranges: usize,
}

struct Parser<'a> {
    shared: Shared<'a>,
    name: Rc<str>,
    text: Rc<str>,
    /// What belongs to one template; `define` and `block` open a new one.
    scope: Scope,
    depth: usize,
}

type Parsed<T> = Result<T, String>;

impl Parser<'_> {
    // --- Tokens, with up to three that were put back.

    fn next(&mut self) -> Item {
        if self.shared.pending > 0 {
            self.shared.pending -= 1;
        } else {
            self.shared.tokens[0] = Some(self.shared.lexer.next());
        }
        self.token(self.shared.pending)
    }

    fn token(&self, at: usize) -> Item {
        self.shared.tokens[at].clone().unwrap_or(Item {
            kind: Type::Eof,
            pos: 0,
            text: String::new(),
            line: 0,
        })
    }

    fn backup(&mut self) {
        self.shared.pending += 1;
    }

    fn backup2(&mut self, first: Item) {
        self.shared.tokens[1] = Some(first);
        self.shared.pending = 2;
    }

    fn backup3(&mut self, second: Item, first: Item) {
        self.shared.tokens[1] = Some(first);
        self.shared.tokens[2] = Some(second);
        self.shared.pending = 3;
    }

    fn peek(&mut self) -> Item {
        if self.shared.pending == 0 {
            self.shared.pending = 1;
            self.shared.tokens[0] = Some(self.shared.lexer.next());
        }
        self.token(self.shared.pending - 1)
    }

    fn next_non_space(&mut self) -> Item {
        loop {
            let token = self.next();
            if token.kind != Type::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Item {
        let token = self.next_non_space();
        self.backup();
        token
    }

    // --- Errors.

    fn error<T>(&self, text: impl std::fmt::Display) -> Parsed<T> {
        let line = self.shared.tokens[0].as_ref().map_or(0, |token| token.line);
        Err(format!("template: {}:{line}: {text}", self.name))
    }

    fn unexpected<T>(&self, token: &Item, context: &str) -> Parsed<T> {
        if token.kind != Type::Error {
            return self.error(format!("unexpected {token} in {context}"));
        }
        let started = self.scope.action_line;
        if started == 0 || started == token.line {
            return self.error(token);
        }
        let also = format!(" in action started at {}:{started}", self.name);
        let also = if token.text.ends_with(" action") { &also[" in action".len()..] } else { &also };
        self.error(format!("{token}{also}"))
    }

    fn expect(&mut self, kind: Type, context: &str) -> Parsed<Item> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    /// Refuses what is nested too deeply.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MOST_NESTED {
            return self.error("max expression depth exceeded");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    // --- Templates.

    fn add(&mut self, name: Rc<str>, root: Vec<Node>) -> Parsed<()> {
        let tree = Tree { name, parse_name: Rc::clone(&self.name), text: Rc::clone(&self.text), root };
        match self.shared.trees.iter().position(|other| other.name == tree.name) {
            None => self.shared.trees.push(tree),
            Some(at) if self.shared.trees[at].is_empty() => self.shared.trees[at] = tree,
            Some(_) if tree.is_empty() => {}
            Some(_) => {
                return self.error(format!(
                    "template: multiple definition of template {}",
                    quote(tree.name.as_bytes())
                ));
            }
        }
        Ok(())
    }

    fn file(&mut self) -> Parsed<Vec<Node>> {
        let mut root = Vec::new();
        while self.peek().kind != Type::Eof {
            if self.peek().kind == Type::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Type::Define {
                    self.definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            let node = self.text_or_action()?;
            if matches!(node.kind, Kind::End | Kind::Else) {
                return self.error(format!("unexpected {node}"));
            }
            root.push(node);
        }
        Ok(root)
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let outer = self.open();
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        self.expect(Type::RightDelim, CONTEXT)?;
        let (root, end) = self.list()?;
        if !matches!(end.kind, Kind::End) {
            return self.error(format!("unexpected {end} in {CONTEXT}"));
        }
        self.add(name, root)?;
        self.scope = outer;
        Ok(())
    }

    fn open(&mut self) -> Scope {
        std::mem::replace(&mut self.scope, Scope { variables: vec!["$".into()], ..Scope::default() })
    }

    fn list(&mut self) -> Parsed<(Vec<Node>, Node)> {
        let mut list = Vec::new();
        while self.peek_non_space().kind != Type::Eof {
            let node = self.text_or_action()?;
            if matches!(node.kind, Kind::End | Kind::Else) {
                return Ok((list, node));
            }
            list.push(node);
        }
        self.error("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Node> {
        let token = self.next_non_space();
        match token.kind {
            Type::Text => Ok(Node { pos: token.pos, kind: Kind::Text(token.text.into()) }),
            Type::LeftDelim => {
                self.scope.action_line = token.line;
                let node = self.nested(Self::action);
                self.scope.action_line = 0;
                node
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Node> {
        let token = self.next_non_space();
        let pos = token.pos;
        match token.kind {
            Type::Block => return self.block(),
            Type::Break => return self.leave("{{break}}", pos, Kind::Break),
            Type::Continue => return self.leave("{{continue}}", pos, Kind::Continue),
            Type::Else => {
                let next = self.peek_non_space();
                if !matches!(next.kind, Type::If | Type::With) {
                    self.expect(Type::RightDelim, "else")?;
                }
                return Ok(Node { pos: next.pos, kind: Kind::Else });
            }
            Type::End => {
                let token = self.expect(Type::RightDelim, "end")?;
                return Ok(Node { pos: token.pos, kind: Kind::End });
            }
            Type::If => return self.branch("if"),
            Type::Range => return self.branch("range"),
            Type::With => return self.branch("with"),
            Type::Template => return self.template(),
            _ => {}
        }
        self.backup();
        let pos = self.peek().pos;
        Ok(Node { pos, kind: Kind::Action(Box::new(self.pipeline("command", Type::RightDelim)?)) })
    }

    fn leave(&mut self, word: &str, pos: usize, kind: Kind) -> Parsed<Node> {
        let token = self.next_non_space();
        if token.kind != Type::RightDelim {
            return self.unexpected(&token, word);
        }
        if self.scope.ranges == 0 {
            return self.error(format!("{word} outside {{{{range}}}}"));
        }
        Ok(Node { pos, kind })
    }

    fn branch(&mut self, word: &'static str) -> Parsed<Node> {
        let variables = self.scope.variables.len();
        let pipe = self.pipeline(word, Type::RightDelim)?;
        let range = usize::from(word == "range");
        self.scope.ranges += range;
        let (list, next) = self.list()?;
        self.scope.ranges -= range;
        let mut otherwise = None;
        if matches!(next.kind, Kind::Else) {
            let kind = self.peek().kind;
            if word == "if" && kind == Type::If || word == "with" && kind == Type::With {
                self.next();
                otherwise = Some(vec![self.nested(|parser| parser.branch(word))?]);
            } else {
                let (list, end) = self.list()?;
                if !matches!(end.kind, Kind::End) {
                    return self.error(format!("expected end; found {end}"));
                }
                otherwise = Some(list);
            }
        }
        self.scope.variables.truncate(variables);
        let pos = pipe.pos;
        let branch = Box::new(Branch { pipe, list, otherwise });
        let kind = match word {
            "if" => Kind::If(branch),
            "range" => Kind::Range(branch),
            _ => Kind::With(branch),
        };
        Ok(Node { pos, kind })
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Type::RightDelim)?;
        let outer = self.open();
        let (root, end) = self.list()?;
        if !matches!(end.kind, Kind::End) {
            return self.error(format!("unexpected {end} in {CONTEXT}"));
        }
        self.add(Rc::clone(&name), root)?;
        self.scope = outer;
        Ok(Node { pos: token.pos, kind: Kind::Template { name, pipe: Some(Box::new(pipe)) } })
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let mut pipe = None;
        if self.next_non_space().kind != Type::RightDelim {
            self.backup();
            pipe = Some(Box::new(self.pipeline(CONTEXT, Type::RightDelim)?));
        }
        Ok(Node { pos: token.pos, kind: Kind::Template { name, pipe } })
    }

    fn template_name(&mut self, token: &Item, context: &str) -> Parsed<Rc<str>> {
        if !matches!(token.kind, Type::Str | Type::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(&token.text) {
            Ok(name) => Ok(String::from_utf8_lossy(&name).into()),
            Err(error) => self.error(error),
        }
    }

    // --- Pipelines.

    fn pipeline(&mut self, context: &str, end: Type) -> Parsed<Node> {
        let pos = self.peek_non_space().pos;
        let mut pipe = Pipe { assign: false, variables: Vec::new(), commands: Vec::new() };
        self.declarations(context, &mut pipe)?;
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Type::Bool
                | Type::CharConstant
                | Type::Complex
                | Type::Dot
                | Type::Field
                | Type::Identifier
                | Type::Number
                | Type::Nil
                | Type::RawString
                | Type::Str
                | Type::Variable
                | Type::LeftParen => {
                    self.backup();
                    pipe.commands.push(self.command()?);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        if pipe.commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for (at, command) in pipe.commands.iter().enumerate().skip(1) {
            let first = match &command.kind {
                Kind::Command(arguments) => arguments.first(),
                _ => None,
            };
            if first.is_some_and(|first| {
                matches!(
                    first.kind,
                    Kind::Bool(_) | Kind::Dot | Kind::Nil | Kind::Number(_) | Kind::Str { .. }
                )
            }) {
                return self.error(format!("non executable command in pipeline stage {}", at + 1));
            }
        }
        Ok(Node { pos, kind: Kind::Pipe(pipe) })
    }

    fn declarations(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<()> {
        loop {
            let variable = self.peek_non_space();
            if variable.kind != Type::Variable {
                return Ok(());
            }
            self.next();
            let after = self.peek();
            let next = self.peek_non_space();
            let comma = next.kind == Type::Char && next.text == ",";
            if comma || matches!(next.kind, Type::Assign | Type::Declare) {
                self.next_non_space();
                let name: Rc<str> = variable.text.as_str().into();
                pipe.variables.push(Rc::clone(&name));
                self.scope.variables.push(name);
            }
            if matches!(next.kind, Type::Assign | Type::Declare) {
                pipe.assign = next.kind == Type::Assign;
                return Ok(());
            }
            if comma {
                if context == "range" && pipe.variables.len() < 2 {
                    match self.peek_non_space().kind {
                        Type::Variable | Type::RightDelim | Type::RightParen => continue,
                        _ => return self.error("range can only initialize variables"),
                    }
                }
                return self.error(format!("too many declarations in {context}"));
            }
            if after.kind == Type::Space {
                self.backup3(variable, after);
            } else {
                self.backup2(variable);
            }
            return Ok(());
        }
    }

    fn command(&mut self) -> Parsed<Node> {
        let pos = self.peek_non_space().pos;
        let mut arguments = Vec::new();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                arguments.push(operand);
            }
            let token = self.next();
            match token.kind {
                Type::Space => continue,
                Type::RightDelim | Type::RightParen => self.backup(),
                Type::Pipe => {}
                _ => return self.unexpected(&token, "operand"),
            }
            break;
        }
        if arguments.is_empty() {
            return self.error("empty command");
        }
        Ok(Node { pos, kind: Kind::Command(arguments) })
    }

    fn operand(&mut self) -> Parsed<Option<Node>> {
        let Some(node) = self.term()? else { return Ok(None) };
        let first = self.peek();
        if first.kind != Type::Field {
            return Ok(Some(node));
        }
        let mut names = Vec::new();
        while self.peek().kind == Type::Field {
            names.push(Rc::from(&self.next().text[1..]));
        }
        let kind = match node.kind {
            Kind::Field(mut idents) => {
                idents.append(&mut names);
                Kind::Field(idents)
            }
            Kind::Variable(mut idents) => {
                idents.append(&mut names);
                Kind::Variable(idents)
            }
            Kind::Bool(_) | Kind::Str { .. } | Kind::Number(_) | Kind::Nil | Kind::Dot => {
                return self.error(format!("unexpected . after term {}", quote(node.to_string().as_bytes())));
            }
            _ => Kind::Chain(Box::new(node), names),
        };
        Ok(Some(Node { pos: first.pos, kind }))
    }

    fn term(&mut self) -> Parsed<Option<Node>> {
        let token = self.next_non_space();
        let pos = token.pos;
        let kind = match token.kind {
            Type::Identifier => {
                if !(self.shared.known)(&token.text) {
                    return self.error(format!("function {} not defined", quote(token.text.as_bytes())));
                }
                Kind::Identifier(token.text.into())
            }
            Type::Dot => Kind::Dot,
            Type::Nil => Kind::Nil,
            Type::Variable => {
                if !self.scope.variables.iter().any(|name| **name == *token.text) {
                    return self.error(format!("undefined variable {}", quote(token.text.as_bytes())));
                }
                Kind::Variable(vec![token.text.into()])
            }
            Type::Field => Kind::Field(vec![token.text[1..].into()]),
            Type::Bool => Kind::Bool(token.text == "true"),
            Type::CharConstant | Type::Complex | Type::Number => {
                let number = match token.kind {
                    Type::CharConstant => number::character(&token.text),
                    Type::Complex => number::complex(&token.text),
                    _ => number::number(&token.text),
                };
                match number {
                    Ok(number) => Kind::Number(number),
                    Err(error) => return self.error(error),
                }
            }
            Type::LeftParen => {
                let pipe =
                    self.nested(|parser| parser.pipeline("parenthesized pipeline", Type::RightParen))?;
                return Ok(Some(pipe));
            }
            Type::Str | Type::RawString => match unquote(&token.text) {
                Ok(text) => Kind::Str { quoted: token.text.into(), text: text.into() },
                Err(error) => return self.error(error),
            },
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(Node { pos, kind }))
    }
}

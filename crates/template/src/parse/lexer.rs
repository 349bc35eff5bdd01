//! From text to tokens, with the trimming of white space.

use crate::go::quote::{quote, unicode};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    Space,
    Str,
    Text,
    Variable,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Type {
    fn keyword(self) -> bool {
        matches!(
            self,
            Self::Block
                | Self::Break
                | Self::Continue
                | Self::Dot
                | Self::Define
                | Self::Else
                | Self::End
                | Self::If
                | Self::Nil
                | Self::Range
                | Self::Template
                | Self::With
        )
    }
}

#[derive(Clone, Debug)]
pub(super) struct Item {
    pub kind: Type,
    pub pos: usize,
    pub text: String,
    pub line: usize,
}

impl std::fmt::Display for Item {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.kind {
            Type::Eof => f.write_str("EOF"),
            Type::Error => f.write_str(&self.text),
            kind if kind.keyword() => write!(f, "<{}>", self.text),
            _ if self.text.len() > 10 => {
                let short: String = self.text.chars().take(10).collect();
                write!(f, "{}...", quote(short.as_bytes()))
            }
            _ => f.write_str(&quote(self.text.as_bytes())),
        }
    }
}

pub(super) struct Lexer<'a> {
    input: &'a str,
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    parens: i64,
    inside: bool,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

impl<'a> Lexer<'a> {
    pub fn new(input: &'a str) -> Self {
        Self { input, pos: 0, start: 0, line: 1, start_line: 1, parens: 0, inside: false }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.pos..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.pos += next.len_utf8();
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn emit(&mut self, kind: Type) -> Item {
        let item = Item {
            kind,
            pos: self.start,
            text: self.input[self.start..self.pos].into(),
            line: self.start_line,
        };
        self.start = self.pos;
        self.start_line = self.line;
        item
    }

    /// Skips what lies before this point, which was not read character by character.
    fn ignore(&mut self) {
        self.line += newlines(&self.input[self.start..self.pos]);
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn error(&mut self, text: impl Into<String>) -> Item {
        let item = Item { kind: Type::Error, pos: self.start, text: text.into(), line: self.start_line };
        self.input = "";
        self.pos = 0;
        self.start = 0;
        item
    }

    fn accept(&mut self, valid: &str) -> bool {
        if self.peek().is_some_and(|next| valid.contains(next)) {
            self.advance();
            return true;
        }
        false
    }

    fn accept_run(&mut self, valid: &str) {
        while self.accept(valid) {}
    }

    pub fn next(&mut self) -> Item {
        loop {
            let item = if self.inside { Some(self.action()) } else { self.text() };
            if let Some(item) = item {
                return item;
            }
        }
    }

    /// Text up to the next action; none if there was only a comment.
    fn text(&mut self) -> Option<Item> {
        let Some(found) = self.rest().find("{{") else {
            self.pos = self.input.len();
            if self.pos > self.start {
                self.line += newlines(&self.input[self.start..self.pos]);
                return Some(self.emit(Type::Text));
            }
            return Some(self.emit(Type::Eof));
        };
        if found > 0 {
            let end = self.pos + found;
            let mut trimmed = end;
            if left_marker(&self.input[end + 2..]) {
                trimmed = self.start + self.input[self.start..end].trim_end_matches(SPACES).len();
            }
            self.pos = trimmed;
            self.line += newlines(&self.input[self.start..self.pos]);
            let item = self.emit(Type::Text);
            self.pos = end;
            self.ignore();
            if !item.text.is_empty() {
                return Some(item);
            }
        }
        self.left_delim()
    }

    fn left_delim(&mut self) -> Option<Item> {
        self.pos += 2;
        let marker = if left_marker(self.rest()) { 2 } else { 0 };
        if self.input[self.pos + marker..].starts_with("/*") {
            self.pos += marker;
            self.ignore();
            return self.comment();
        }
        let item = self.emit(Type::LeftDelim);
        self.inside = true;
        self.pos += marker;
        self.ignore();
        self.parens = 0;
        Some(item)
    }

    fn comment(&mut self) -> Option<Item> {
        self.pos += 2;
        let Some(end) = self.rest().find("*/") else { return Some(self.error("unclosed comment")) };
        self.pos += end + 2;
        let (delim, trim) = self.at_right_delim();
        if !delim {
            return Some(self.error("comment ends before closing delimiter"));
        }
        // What was emitted as the comment is dropped; its lines count.
        self.ignore();
        self.pos += if trim { 4 } else { 2 };
        if trim {
            self.skip_spaces();
        }
        self.ignore();
        None
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.pos += rest.len() - rest.trim_start_matches(SPACES).len();
    }

    fn at_right_delim(&self) -> (bool, bool) {
        let rest = self.rest();
        if right_marker(rest) && rest[2..].starts_with("}}") {
            return (true, true);
        }
        (rest.starts_with("}}"), false)
    }

    fn right_delim(&mut self) -> Item {
        let (_, trim) = self.at_right_delim();
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let item = self.emit(Type::RightDelim);
        if trim {
            self.skip_spaces();
            self.ignore();
        }
        self.inside = false;
        item
    }

    fn action(&mut self) -> Item {
        if self.at_right_delim().0 {
            return if self.parens == 0 { self.right_delim() } else { self.error("unclosed left paren") };
        }
        let Some(next) = self.peek() else { return self.error("unclosed action") };
        if SPACES.contains(&next) {
            return self.space();
        }
        let number = next == '+' || next == '-' || next.is_ascii_digit();
        if number || next == '.' && self.rest()[1..].starts_with(|next: char| next.is_ascii_digit()) {
            return self.number();
        }
        if next == '.' && self.rest().len() == 1 {
            // At the very end, Go tries a number.
            return self.number();
        }
        if alphanumeric(next) {
            return self.identifier();
        }
        self.advance();
        match next {
            '=' => self.emit(Type::Assign),
            ':' if self.accept("=") => self.emit(Type::Declare),
            ':' => {
                self.advance();
                self.error("expected :=")
            }
            '|' => self.emit(Type::Pipe),
            '"' => self.quoted('"', Type::Str, "unterminated quoted string"),
            '`' => loop {
                match self.advance() {
                    None => return self.error("unterminated raw quoted string"),
                    Some('`') => return self.emit(Type::RawString),
                    Some(_) => {}
                }
            },
            '$' => self.field_or_variable(Type::Variable),
            '\'' => self.quoted('\'', Type::CharConstant, "unterminated character constant"),
            '.' => self.field_or_variable(Type::Field),
            '(' => {
                self.parens += 1;
                self.emit(Type::LeftParen)
            }
            ')' => {
                self.parens -= 1;
                if self.parens < 0 {
                    self.error("unexpected right paren")
                } else {
                    self.emit(Type::RightParen)
                }
            }
            next if next.is_ascii_graphic() => self.emit(Type::Char),
            next => self.error(format!("unrecognized character in action: {}", unicode(next))),
        }
    }

    fn space(&mut self) -> Item {
        let mut count = 0;
        while self.peek().is_some_and(|next| SPACES.contains(&next)) {
            self.advance();
            count += 1;
        }
        // The last space may belong to a closing delimiter that trims.
        let last = &self.input[self.pos - 1..];
        if right_marker(last) && last[2..].starts_with("}}") {
            self.pos -= 1;
            self.line -= usize::from(last.starts_with('\n'));
            if count == 1 {
                return self.right_delim();
            }
        }
        self.emit(Type::Space)
    }

    fn identifier(&mut self) -> Item {
        while self.peek().is_some_and(alphanumeric) {
            self.advance();
        }
        if !self.at_terminator() {
            return self.bad_character();
        }
        let kind = match &self.input[self.start..self.pos] {
            "block" => Type::Block,
            "break" => Type::Break,
            "continue" => Type::Continue,
            "define" => Type::Define,
            "else" => Type::Else,
            "end" => Type::End,
            "if" => Type::If,
            "range" => Type::Range,
            "nil" => Type::Nil,
            "template" => Type::Template,
            "with" => Type::With,
            "true" | "false" => Type::Bool,
            _ => Type::Identifier,
        };
        self.emit(kind)
    }

    fn bad_character(&mut self) -> Item {
        let text = match self.peek() {
            Some(next) => format!("bad character {}", unicode(next)),
            None => "bad character U+FFFFFFFFFFFFFFFF".to_owned(),
        };
        self.error(text)
    }

    fn field_or_variable(&mut self, kind: Type) -> Item {
        if self.at_terminator() {
            return self.emit(if kind == Type::Variable { Type::Variable } else { Type::Dot });
        }
        while self.peek().is_some_and(alphanumeric) {
            self.advance();
        }
        if !self.at_terminator() {
            return self.bad_character();
        }
        self.emit(kind)
    }

    fn at_terminator(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\r' | '\n' | '.' | ',' | '|' | ':' | ')' | '(') => true,
            Some(_) => self.rest().starts_with("}}"),
        }
    }

    fn quoted(&mut self, quote: char, kind: Type, unterminated: &str) -> Item {
        loop {
            match self.advance() {
                Some('\\') => {
                    if matches!(self.advance(), None | Some('\n')) {
                        return self.error(unterminated);
                    }
                }
                None | Some('\n') => return self.error(unterminated),
                Some(next) if next == quote => return self.emit(kind),
                Some(_) => {}
            }
        }
    }

    fn number(&mut self) -> Item {
        if !self.scan_number() {
            return self.bad_number();
        }
        if matches!(self.peek(), Some('+' | '-')) {
            if !self.scan_number() || !self.input[..self.pos].ends_with('i') {
                return self.bad_number();
            }
            return self.emit(Type::Complex);
        }
        self.emit(Type::Number)
    }

    fn bad_number(&mut self) -> Item {
        let text = format!("bad number syntax: {}", quote(&self.input.as_bytes()[self.start..self.pos]));
        self.error(text)
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if digits.len() == 11 && self.accept("eE") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        if digits.len() == 23 && self.accept("pP") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(alphanumeric) {
            self.advance();
            return false;
        }
        true
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

fn left_marker(text: &str) -> bool {
    text.strip_prefix('-').is_some_and(|rest| rest.starts_with(SPACES))
}

fn right_marker(text: &str) -> bool {
    text.strip_prefix(SPACES).is_some_and(|rest| rest.starts_with('-'))
}

fn alphanumeric(next: char) -> bool {
    next == '_' || crate::go::chars::is_letter(next) || crate::go::chars::is_digit(next)
}

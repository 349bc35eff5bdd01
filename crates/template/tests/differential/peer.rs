//! Helm's own engine, as a process that answers line by line.

use base64::Engine;
use serde_json::{Value as Json, json};
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What a template rendered to.
#[derive(PartialEq, Eq)]
pub enum Answer {
    Text(Vec<u8>),
    Error(String),
    /// The peer's process ended.
    Ended,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{:?}", String::from_utf8_lossy(text)),
            Self::Error(error) => write!(f, "error: {error}"),
            Self::Ended => f.write_str("the process ended"),
        }
    }
}

pub struct Peer {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts the peer, if it is built and wanted.
    pub fn start() -> Option<Self> {
        if std::env::var_os("WINDLASS_SKIP_REFERENCE").is_some() {
            println!("skipped: WINDLASS_SKIP_REFERENCE is set");
            return None;
        }
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
        let program = target.join("peers/templates");
        if !program.exists() {
            println!("skipped: the comparison with Helm's engine (make peers builds it; needs Go)");
            return None;
        }
        let mut child = Command::new(program)
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the peer starts");
        let requests = child.stdin.take().expect("it is piped");
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Self { child, requests, answers })
    }

    /// The answer, or none if the peer came to its end: a map that holds itself exhausts Go's stack, which ends the process.
    fn ask(&mut self, request: &Json) -> Option<Json> {
        writeln!(self.requests, "{request}").expect("the peer reads");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the peer answers");
        if line.is_empty() {
            let fresh = Self::start().expect("the peer starts again");
            drop(std::mem::replace(self, fresh));
            return None;
        }
        Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}")))
    }

    pub fn render(&mut self, template: &str, values: &Json) -> Answer {
        let Some(answer) = self.ask(&json!({"template": template, "values": values})) else {
            return Answer::Ended;
        };
        match answer["error"].as_str() {
            Some(error) => Answer::Error(error.to_owned()),
            None => {
                let encoded = answer["files"]["case/templates/t"].as_str().unwrap_or_default();
                Answer::Text(base64::engine::general_purpose::STANDARD.decode(encoded).expect("it is base64"))
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Helm shortens errors of parsing, and those of `fail` and `required`.
pub fn cleaned(error: &str) -> String {
    let parts: Vec<&str> = error.split(": ").collect();
    if parts.len() > 1 && !error.contains(": executing ") {
        return format!("parse error at ({}): {}", parts[1], parts[parts.len() - 1]);
    }
    let Some((_, rest)) = error.split_once("HELM_ERR_START") else { return error.to_owned() };
    let text = rest.rsplit_once("HELM_ERR_END").map_or(rest, |(text, _)| text);
    format!("execution error at ({}): {text}", parts.get(1).unwrap_or(&""))
}

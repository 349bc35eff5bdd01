//! How the demo is shown: stages, lines, and what each stage proved; with colours on a terminal that wants them.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};

/// The terminal, and what was shown on it.
pub(super) struct Screen {
    colours: bool,
    stage: usize,
    shown: String,
}

const BOLD: &str = "1";
const FAINT: &str = "2";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl Screen {
    pub(super) fn new() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let colours = !refused && std::io::stdout().is_terminal();
        Self { colours, stage: 0, shown: String::new() }
    }

    /// A new stage.
    pub(super) fn stage(&mut self, title: &str) {
        self.stage += 1;
        let line = format!("{}. {title}", self.stage);
        self.put("", None);
        self.put(&line, Some(BOLD));
    }

    /// What somebody would type to do the same.
    pub(super) fn command(&mut self, command: &str) {
        self.put(&format!("   $ {command}"), Some(FAINT));
    }

    /// Lines that say what is seen.
    pub(super) fn say(&mut self, text: &str) {
        for line in text.lines() {
            self.put(format!("   {line}").trim_end(), None);
        }
    }

    /// Lines that are not to be missed.
    pub(super) fn warn(&mut self, text: &str) {
        for line in text.lines() {
            self.put(format!("   ! {line}").trim_end(), Some(YELLOW));
        }
    }

    /// What the stage has shown to be so.
    pub(super) fn proved(&mut self, text: &str) {
        self.put(&format!("   => {text}"), Some(GREEN));
    }

    fn put(&mut self, line: &str, colour: Option<&str>) {
        // Writing to a text cannot fail; a terminal that is gone is no reason to stop cleaning up.
        let _ = writeln!(self.shown, "{line}");
        let mut out = std::io::stdout();
        let _ = match colour.filter(|_| self.colours) {
            Some(colour) => writeln!(out, "\x1b[{colour}m{line}\x1b[0m"),
            None => writeln!(out, "{line}"),
        };
        let _ = out.flush();
    }

    /// A page that says what was shown.
    pub(super) fn as_markdown(&self) -> String {
        format!(
            "# The demo\n\n`make demo`, or `windlass demo` without a checkout, shows the following; `make demo KEEP=1` leaves it up with commands\n\
             to try. This page is what one run showed, figures and all, written by `make demo-transcript`.\n\n```text\n{}\n```\n",
            self.shown.trim()
        )
    }
}

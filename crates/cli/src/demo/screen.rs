//! How the demo is shown: stages, lines, and what each stage proved; with colours on a terminal that wants them.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// The terminal, and what was shown on it.
pub(super) struct Screen {
    colours: bool,
    terminal: bool,
    /// The length of the line that is written anew in its place, while there is one.
    live: usize,
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
        let terminal = std::io::stdout().is_terminal();
        Self { colours: !refused && terminal, terminal, live: 0, stage: 0, shown: String::new() }
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

    /// How things are at the moment: in its place on a terminal until anything else is shown, elsewhere a line.
    pub(super) fn progress(&mut self, text: &str) {
        if !self.terminal {
            return self.say(text);
        }
        let line = format!("   {text}");
        let length = line.chars().count();
        // What is left of a longer one is covered.
        let mut out = std::io::stdout();
        let _ = write!(out, "\r{line:0$}", self.live.max(length));
        let _ = out.flush();
        self.live = length;
    }

    /// How often progress is worth showing.
    pub(super) fn progress_interval(&self) -> Duration {
        if self.terminal { Duration::from_millis(100) } else { Duration::from_secs(1) }
    }

    /// Removes what was shown as progress.
    pub(super) fn end_progress(&mut self) {
        if self.live > 0 {
            let mut out = std::io::stdout();
            let _ = write!(out, "\r{:1$}\r", "", self.live);
            let _ = out.flush();
            self.live = 0;
        }
    }

    fn put(&mut self, line: &str, colour: Option<&str>) {
        self.end_progress();
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

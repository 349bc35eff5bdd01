//! Shared by `init`, `create` and `edit`: ask for missing options, write all files or none, and report them.

use anyhow::{Context, bail};
use std::cell::RefCell;
use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use windlass_sdk::diff::diff;
use windlass_sdk::files::{self, File};
use windlass_sdk::format::format;
use windlass_sdk::scaffold::outcome::{FileOutcome, Outcome, resolve};
use windlass_sdk::scaffold::{Change, License, Read, ScaffoldError, WriteMode};

/// The exit code for invalid names: the same as for invalid options.
const INVALID: u8 = 2;

/// The license of a project's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Licence {
    Apache2,
    Mit,
    None,
}

impl From<Licence> for License {
    fn from(licence: Licence) -> Self {
        match licence {
            Licence::Apache2 => Self::Apache2,
            Licence::Mit => Self::Mit,
            Licence::None => Self::None,
        }
    }
}

/// The folder of a project.
pub(crate) struct ProjectFolder {
    folder: PathBuf,
    force: bool,
}

impl ProjectFolder {
    pub(crate) fn new(folder: &Path, force: bool) -> Self {
        Self { folder: folder.to_owned(), force }
    }

    /// Decides on the existing files, and writes the result.
    pub(crate) fn change(
        &self,
        decide: impl FnOnce(Read<'_>) -> Result<Change, ScaffoldError>,
    ) -> anyhow::Result<ExitCode> {
        // What cannot be read is not absent: the first such file ends the command.
        let unread = RefCell::new(None);
        let read = |path: &str| {
            let path = self.folder.join(path);
            match std::fs::read(&path).map(String::from_utf8) {
                Ok(Ok(text)) => Some(text),
                Ok(Err(_)) => {
                    let why = anyhow::anyhow!("{}: it is not in UTF-8", path.display());
                    unread.borrow_mut().get_or_insert(why);
                    None
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
                Err(error) => {
                    let why = anyhow::Error::new(error).context(path.display().to_string());
                    unread.borrow_mut().get_or_insert(why);
                    None
                }
            }
        };
        let decided = decide(&read);
        if let Some(why) = unread.take() {
            return Err(why);
        }
        let mut change = match decided {
            Ok(change) => change,
            Err(refused @ ScaffoldError::InvalidName { .. }) => {
                eprintln!("error: {refused}");
                return Ok(ExitCode::from(INVALID));
            }
            Err(refused) => return Err(refused.into()),
        };
        // A line that is put into a person's file is all that changes there.
        let ours =
            change.files.iter_mut().filter(|planned| !matches!(planned.mode, WriteMode::InsertLine(_)));
        format(&self.folder, &mut ours.map(|planned| &mut planned.file).collect::<Vec<_>>());
        let advice = change.advice.clone();
        let placed = resolve(change, &read, self.force);
        if let Some(why) = unread.take() {
            return Err(why);
        }
        let placed =
            placed.context("nothing was written (--force overwrites them, and shows what is lost)")?;
        self.warn_if_dirty(&placed);
        let files: Vec<File> =
            placed.iter().filter(|one| one.is_written()).map(|one| one.file.clone()).collect();
        files::write(&self.folder, &files).context("nothing was written")?;
        tell(&placed, &advice)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Changes that are not committed would be mixed with ours.
    fn warn_if_dirty(&self, placed: &[FileOutcome]) {
        if placed
            .iter()
            .all(|one| matches!(one.outcome, Outcome::Created | Outcome::Unchanged | Outcome::Kept))
        {
            return;
        }
        let mut git = Command::new("git");
        let asked =
            git.args(["status", "--porcelain", "--untracked-files=no", "--", "."]).current_dir(&self.folder);
        let asked = asked.stdin(Stdio::null()).stderr(Stdio::null()).output();
        if asked.is_ok_and(|answer| answer.status.success() && !answer.stdout.is_empty()) {
            eprintln!(
                "warning: this folder has changes that are not committed; git will show them together with these"
            );
        }
    }
}

fn tell(placed: &[FileOutcome], advice: &[String]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for FileOutcome { file, outcome } in placed {
        let path = file.path.display();
        match outcome {
            Outcome::Created => writeln!(out, "wrote     {path}")?,
            Outcome::Updated => writeln!(out, "updated   {path}")?,
            Outcome::Inserted(line) => writeln!(out, "inserted  {line} into {path}")?,
            Outcome::Kept => writeln!(out, "kept      {path}, which was edited since it was generated")?,
            Outcome::Overwritten(before) => {
                writeln!(out, "overwrote {path}")?;
                write!(out, "{}", diff(before, &file.text))?;
            }
            Outcome::Unchanged => {}
        }
    }
    if placed.iter().all(|one| !one.is_written()) {
        writeln!(out, "everything exists already: nothing was written")?;
    }
    for line in advice {
        writeln!(out, "note: {line}")?;
    }
    Ok(())
}

/// The value of an option, asked for on a terminal if it is missing.
///
/// # Errors
/// When it is missing, and nobody is there to ask.
pub(crate) fn given(
    option: Option<&String>,
    flag: &str,
    question: &str,
    usual: Option<&str>,
    check: impl Fn(&str) -> Result<(), ScaffoldError>,
) -> anyhow::Result<String> {
    if let Some(given) = option {
        return Ok(given.clone());
    }
    let stdin = std::io::stdin();
    match (stdin.is_terminal(), usual) {
        (true, _) => ask(&mut stdin.lock(), &mut std::io::stderr(), question, usual, check),
        (false, Some(usual)) => Ok(usual.to_owned()),
        (false, None) => {
            Err(InvalidOptions(format!("{question}? Give {flag}; on a terminal it is asked for")).into())
        }
    }
}

/// What was given, or left out, makes no sense: the exit code is that of a command line that cannot be read.
#[derive(Debug)]
pub(crate) struct InvalidOptions(pub(crate) String);

impl std::fmt::Display for InvalidOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidOptions {}

/// The number of times a question is asked.
const TRIES: usize = 5;

fn ask(
    input: &mut impl BufRead,
    output: &mut impl Write,
    question: &str,
    usual: Option<&str>,
    check: impl Fn(&str) -> Result<(), ScaffoldError>,
) -> anyhow::Result<String> {
    for _ in 0..TRIES {
        match usual {
            Some(usual) => write!(output, "{question} [{usual}]? ")?,
            None => write!(output, "{question}? ")?,
        }
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("no answer was given; nothing was written");
        }
        let answer = match (line.trim(), usual) {
            ("", Some(usual)) => usual,
            (answer, _) => answer,
        };
        match check(answer) {
            Ok(()) => return Ok(answer.to_owned()),
            Err(refused) => writeln!(output, "{refused}")?,
        }
    }
    bail!("no answer was valid; nothing was written")
}

/// Whether a person can be asked.
pub(crate) fn is_asked() -> bool {
    std::io::stdin().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_sdk::scaffold::check_kind;

    fn asked(answers: &str, usual: Option<&str>) -> (anyhow::Result<String>, String) {
        let mut output = Vec::new();
        let answer = ask(&mut answers.as_bytes(), &mut output, "Which kind", usual, check_kind);
        (answer, String::from_utf8(output).unwrap())
    }

    #[test]
    fn a_question_is_asked_until_its_answer_can_be() {
        let (answer, shown) = asked("memcached\n Memcached \n", None);
        assert_eq!(answer.unwrap(), "Memcached");
        assert_eq!(shown.matches("Which kind? ").count(), 2, "{shown}");
        assert!(shown.contains("CamelCase"), "{shown}");
        assert_eq!(asked("\n", Some("Usual")).0.unwrap(), "Usual");
    }

    #[test]
    fn who_gives_no_answer_is_not_asked_for_ever() {
        assert!(asked("", None).0.is_err());
        let (answer, shown) = asked(&"x\n".repeat(99), None);
        assert!(answer.is_err());
        assert_eq!(shown.matches("Which kind? ").count(), TRIES);
    }
}

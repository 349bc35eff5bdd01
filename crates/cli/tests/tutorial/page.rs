//! The page, read as what it asks its reader to do. A block that this does not understand is an error: nothing on the page goes untried.

use anyhow::{Context, bail, ensure};

/// Something that the reader does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Types a command.
    Run(Command),
    /// Presses Ctrl-C in a terminal.
    Interrupt { terminal: usize },
    /// Writes a file.
    File { path: String, text: String },
    /// Changes files, as a patch says.
    Change { patch: String },
}

/// Commands that are typed into one terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Command {
    /// Where it is on the page.
    pub(crate) line: usize,
    pub(crate) terminal: usize,
    /// Whether it brings up or takes down the cluster: it is left out where one is there.
    pub(crate) cluster: bool,
    /// Whether it is to be refused.
    pub(crate) fails: bool,
    pub(crate) text: String,
    /// What it prints, as the page shows it.
    pub(crate) shown: Vec<String>,
}

/// All steps of a page, in order.
pub(crate) fn steps(page: &str) -> anyhow::Result<Vec<Step>> {
    let mut steps = Vec::new();
    let mut lines = page.lines().enumerate();
    // What is said above a block names the file that the block is about.
    let mut said = String::new();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            said += line;
            said += "\n";
            continue;
        };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let place = || format!("the block at line {}", number + 1);
        let (language, words) = info.split_once(' ').unwrap_or((info, ""));
        let words: Vec<&str> = words.split_whitespace().collect();
        match language {
            "sh" => steps.push(command(number + 1, &words, &body).with_context(place)?),
            "text" => match steps.last_mut() {
                Some(Step::Run(command)) if command.shown.is_empty() => {
                    command.shown = body.iter().map(|line| (*line).to_owned()).collect();
                }
                _ => bail!("{} is about no command", place()),
            },
            "rust" | "yaml" => {
                let [path] = words.as_slice() else { bail!("{} names no file", place()) };
                let path = path.strip_prefix("file=").with_context(place)?;
                ensure!(said.contains(&format!("`{path}`")), "nothing above {} says {path}", place());
                steps.push(Step::File { path: path.to_owned(), text: body.join("\n") + "\n" });
            }
            "diff" => {
                let path = body.first().and_then(|line| line.strip_prefix("--- a/"));
                let path = path.with_context(|| format!("{} names no file", place()))?;
                ensure!(said.contains(&format!("`{path}`")), "nothing above {} says {path}", place());
                steps.push(Step::Change { patch: body.join("\n") + "\n" });
            }
            other => bail!("{} is in {other:?}, which nobody can do", place()),
        }
        said.clear();
    }
    Ok(steps)
}

fn command(line: usize, words: &[&str], body: &[&str]) -> anyhow::Result<Step> {
    let mut command = Command { line, terminal: 1, text: body.join("\n"), ..Command::default() };
    for word in words {
        match word.split_once('=') {
            Some(("terminal", number)) => command.terminal = number.parse()?,
            None if *word == "cluster" => command.cluster = true,
            None if *word == "fails" => command.fails = true,
            _ => bail!("{word:?} is not understood"),
        }
    }
    Ok(match body {
        ["^C"] => Step::Interrupt { terminal: command.terminal },
        _ => Step::Run(command),
    })
}

/// The first line of the page that is not among what was printed, in this order. `...` is anything; a line of it, any lines.
pub(crate) fn missing<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines();
    shown.iter().map(String::as_str).find(|line| *line != "..." && !printed.any(|one| is_like(line, one)))
}

/// Whether a line is as the page has it; how wide its columns are does not matter.
fn is_like(shown: &str, printed: &str) -> bool {
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (shown, printed) = (flat(shown), flat(printed));
    let parts: Vec<&str> = shown.split("...").collect();
    let [first, between @ .., last] = parts.as_slice() else { return shown == printed };
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    for part in between {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn blocks_are_steps() {
    let page = "Say:\n```sh terminal=2 cluster\na\n```\n```text\nb ...\n```\nInto `x.rs`:\n```rust file=x.rs\nfn x() {}\n```\n\
                In `y`:\n```diff\n--- a/y\n+++ b/y\n```\n```sh terminal=2\n^C\n```\n";
    let typed = Command {
        line: 2,
        terminal: 2,
        cluster: true,
        text: "a".to_owned(),
        shown: vec!["b ...".to_owned()],
        ..Command::default()
    };
    let wanted = [
        Step::Run(typed),
        Step::File { path: "x.rs".to_owned(), text: "fn x() {}\n".to_owned() },
        Step::Change { patch: "--- a/y\n+++ b/y\n".to_owned() },
        Step::Interrupt { terminal: 2 },
    ];
    assert_eq!(steps(page).unwrap(), wanted);
    for wrong in
        ["```go\n```\n", "```text\na\n```\n", "```rust\n```\n", "```rust file=x\n```\n", "```sh if\n```\n"]
    {
        assert!(steps(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_is_printed_is_compared_but_for_what_differs() {
    let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    let printed = "noise\nready in 9 ms at x\nNAME   SIZE\na-1    3\n";
    assert_eq!(missing(&shown(&["ready in ... ms at ...", "...", "a-... 3"]), printed), None);
    assert_eq!(missing(&shown(&["a-1 3", "NAME SIZE"]), printed), Some("NAME SIZE"), "in another order");
    assert_eq!(missing(&shown(&["NAME"]), printed), Some("NAME"), "a part is not a line");
    assert_eq!(missing(&shown(&["a-...", "a-..."]), printed), Some("a-..."), "twice is two lines");
}

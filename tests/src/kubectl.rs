//! Lists of kubectl commands (`tests/kubectl/*.txt`), run against one API, and what they print without what differs from run
//! to run.

use anyhow::{Context, ensure};
use regex::Regex;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// kubectl as it is pointed at one API.
pub struct Kubectl {
    program: PathBuf,
    place: Vec<String>,
    namespace: String,
    home: tempfile::TempDir,
    chance: Vec<(Regex, &'static str)>,
}

/// Where the lists and the files that they name are.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kubectl")
}

/// All commands, in the order in which they are run. `NAMESPACE` stands for the namespace of the run.
///
/// # Errors
/// When the lists cannot be read.
pub fn commands() -> anyhow::Result<Vec<String>> {
    commands_in("")
}

/// Those in a folder beside the others.
///
/// # Errors
/// When the lists cannot be read.
pub fn commands_in(part: &str) -> anyhow::Result<Vec<String>> {
    let mut lists: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder().join(part))? {
        lists.push(entry?.path());
    }
    lists.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    lists.sort();
    let mut commands = Vec::new();
    for list in lists {
        let text = std::fs::read_to_string(&list).with_context(|| format!("reading {}", list.display()))?;
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        commands.extend(lines.map(str::to_owned));
    }
    Ok(commands)
}

/// What a shell would make of a command: words, some of them in single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted, mut begun) = (Vec::new(), String::new(), false, false);
    for character in line.chars() {
        match character {
            '\'' => (quoted, begun) = (!quoted, true),
            ' ' if !quoted => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            character => {
                word.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// What chance, time and place have to do with, and what stands for it.
const CHANCE: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( \+0000)?( UTC|Z)?", "TIME"),
    (r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+A-Z]\w+", "TIME"),
    // Not the end of a name that happens to look like one.
    (r"(?m)(^|[^-\w])(\d+[smhd])+\b", "${1}AGE"),
    (r"<invalid>", "AGE"),
    (r"(?m)^[WIE]\d{4} [\d:.]+ +\d+ ", ""),
    (r"/tmp/\S*?(LIVE|MERGED)-\d+", "FOLDER"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r":3[0-2]\d{3}/TCP", ":PORT/TCP"),
    (r"NodePort: +(<\w+>|\S+) +\d+/TCP", "NodePort: $1 PORT/TCP"),
    (r"https?://(127\.0\.0\.1|localhost):\d+", "SERVER"),
    (r"\b(kubernetes|windlass)-admin\b", "ADMIN"),
    (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN"),
    (r"kube-api-access-\w+", "kube-api-access-RANDOM"),
    (r#"(?m)^( *"?resourceVersion"?:|  Resource Version:).*$"#, "VERSION"),
    (r"(?m)( +|\t)", " "),
    (r"(?m)^ ", ""),
];

impl Kubectl {
    /// `program` with the arguments in `place`, which say where the API is.
    ///
    /// # Errors
    /// When there is no room for its files.
    pub fn new(program: PathBuf, place: Vec<String>, namespace: String) -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        // An editor that changes one line.
        let editor = "#!/bin/sh\nexec sed -i -e 's/size: 7/size: 9/' -e 's/^  a: .*/  a: edited/' \"$1\"\n";
        std::fs::write(home.path().join("editor"), editor)?;
        let chance = CHANCE.iter().map(|(pattern, stands)| Ok((Regex::new(pattern)?, *stands)));
        let chance = chance.collect::<Result<_, regex::Error>>()?;
        Ok(Self { program, place, namespace, home, chance })
    }

    /// What a command prints, and how it ends.
    ///
    /// # Errors
    /// When kubectl does not start.
    pub fn run(&self, line: &str) -> anyhow::Result<String> {
        let arguments = words(&line.replace("NAMESPACE", &self.namespace));
        ensure!(!arguments.is_empty(), "an empty command");
        let output = Command::new(&self.program)
            .args(&self.place)
            .arg(format!("--cache-dir={}", self.home.path().display()))
            .arg(format!("--namespace={}", self.namespace))
            .args(arguments)
            .current_dir(folder())
            .env("KUBE_EDITOR", format!("sh {}", self.home.path().join("editor").display()))
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .output()
            .context("kubectl does not start")?;
        let text = [output.stdout, output.stderr].concat();
        let mut text = String::from_utf8_lossy(&text).replace(&self.namespace, "NAMESPACE");
        for (pattern, stands) in &self.chance {
            text = pattern.replace_all(&text, *stands).into_owned();
        }
        text.push_str(&format!("({})", output.status));
        Ok(text)
    }
}

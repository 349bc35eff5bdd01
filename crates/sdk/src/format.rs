//! Rust code as rustfmt writes it, by the settings of the folder that it goes to.

use crate::files::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Formats the files that are Rust. Without rustfmt, or where it cannot read one, a file stays as it is: it means the same.
pub fn format(folder: &Path, files: &mut [&mut File]) {
    // All at once: each takes its time to start.
    let started: Vec<Option<Child>> = files.iter().map(|file| start(folder, file)).collect();
    for (file, child) in files.iter_mut().zip(started) {
        if let Some(text) = child.and_then(|child| formatted(child, &file.text)) {
            file.text = text;
        }
    }
}

fn start(folder: &Path, file: &File) -> Option<Child> {
    if file.path.extension()? != "rs" {
        return None;
    }
    let mut command = Command::new("rustfmt");
    command.args(["--edition", "2024", "--quiet"]);
    if folder.is_dir() {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()
}

/// It reads all before it writes anything, so nothing waits for each other.
fn formatted(mut child: Child, text: &str) -> Option<String> {
    let mut out = String::new();
    let written = child.stdin.take().and_then(|mut stdin| stdin.write_all(text.as_bytes()).ok());
    let read = child.stdout.take().and_then(|mut stdout| stdout.read_to_string(&mut out).ok());
    let done = child.wait().ok()?;
    (written.is_some() && read.is_some() && done.success() && !out.is_empty()).then_some(out)
}

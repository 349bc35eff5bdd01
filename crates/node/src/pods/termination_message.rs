//! A container's termination message: what it wrote to its file, or else, if its policy says so, the end of its log.

use k8s_openapi::api::core::v1::Container;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// The maximum length of a message.
const MAX_MESSAGE: u64 = 4096;
/// The maximum length of a message from the log.
const MAX_LOG: usize = 2048;
/// The maximum number of its lines.
const MAX_LINES: usize = 80;
/// How much of the log is read: its lines have a timestamp and a stream besides.
const MAX_READ: u64 = 16 * 1024;

/// The termination message of a container that exited with this code.
pub(crate) fn termination_message(container: &Container, code: i32, message: &Path, log: &Path) -> String {
    let mut written = Vec::new();
    if let Ok(file) = File::open(message) {
        let _ = file.take(MAX_MESSAGE).read_to_end(&mut written);
    }
    let falls_back = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if written.is_empty() && falls_back && code != 0 {
        return end_of_log(log).unwrap_or_default();
    }
    String::from_utf8_lossy(&written).into_owned()
}

fn end_of_log(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ)))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // `TIME STREAM F text`; the first line may be cut.
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .skip(usize::from(length > MAX_READ))
        .filter_map(|line| {
            let mut parts = line.trim_end_matches('\n').splitn(4, ' ');
            let (_, _, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            Some(if tag.starts_with('P') { text.to_owned() } else { format!("{text}\n") })
        })
        .collect();
    let whole = lines[lines.len().saturating_sub(MAX_LINES)..].concat();
    let mut from = whole.len().saturating_sub(MAX_LOG);
    while !whole.is_char_boundary(from) {
        from += 1;
    }
    Ok(whole[from..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::fs;

    #[test]
    fn the_log_is_used_without_a_message_and_only_after_a_failure() {
        let folder = tempfile::tempdir().unwrap();
        let (message, log) = (folder.path().join("m"), folder.path().join("l"));
        fs::write(&log, "2026-11-15T10:00:00Z stdout F one\n2026-11-15T10:00:01Z stderr P tw\n2026-11-15T10:00:01Z stderr F o\n").unwrap();
        let plain: Container = serde_json::from_value(json!({"name": "c"})).unwrap();
        let falls: Container =
            serde_json::from_value(json!({"name": "c", "terminationMessagePolicy": "FallbackToLogsOnError"}))
                .unwrap();
        assert_eq!(termination_message(&plain, 1, &message, &log), "");
        assert_eq!(termination_message(&falls, 1, &message, &log), "one\ntwo\n");
        assert_eq!(termination_message(&falls, 0, &message, &log), "");
        fs::write(&message, "x".repeat(5000)).unwrap();
        assert_eq!(termination_message(&falls, 1, &message, &log).len(), 4096);
    }

    #[test]
    fn only_the_end_of_a_long_log_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("l");
        let lines: String = (0..5000).map(|n| format!("2026-11-15T10:00:00Z stdout F line {n}\n")).collect();
        fs::write(&log, lines).unwrap();
        let end = end_of_log(&log).unwrap();
        assert!(end.ends_with("line 4999\n") && end.lines().count() <= MAX_LINES && end.len() <= MAX_LOG);
    }
}

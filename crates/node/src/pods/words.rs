//! A container's last words: what it wrote to its termination message, or else the end of its log, where it asks for that.

use k8s_openapi::api::core::v1::Container;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// So much of a message is reported.
const MESSAGE: u64 = 4096;
/// So much of a log stands in for it.
const LOG: usize = 2048;
/// And so many lines of it.
const LINES: usize = 80;
/// So much of a log is read for that: its lines carry times and names besides.
const READ: u64 = 16 * 1024;

/// What a container that ended with this code has to say.
pub(crate) fn last_words(container: &Container, code: i32, message: &Path, log: &Path) -> String {
    let mut said = Vec::new();
    if let Ok(file) = File::open(message) {
        let _ = file.take(MESSAGE).read_to_end(&mut said);
    }
    let falls_back = container.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if said.is_empty() && falls_back && code != 0 {
        return end_of_log(log).unwrap_or_default();
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn end_of_log(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(READ)))?;
    let mut bytes = Vec::new();
    file.take(READ).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // `TIME STREAM F text`; the first line may be cut.
    let lines: Vec<String> = text
        .split_inclusive('\n')
        .skip(usize::from(length > READ))
        .filter_map(|line| {
            let mut parts = line.trim_end_matches('\n').splitn(4, ' ');
            let (_, _, tag, text) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
            Some(if tag.starts_with('P') { text.to_owned() } else { format!("{text}\n") })
        })
        .collect();
    let whole = lines[lines.len().saturating_sub(LINES)..].concat();
    let mut from = whole.len().saturating_sub(LOG);
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
    fn a_message_comes_before_the_log_and_a_log_only_where_it_failed() {
        let folder = tempfile::tempdir().unwrap();
        let (message, log) = (folder.path().join("m"), folder.path().join("l"));
        fs::write(&log, "2026-11-15T10:00:00Z stdout F one\n2026-11-15T10:00:01Z stderr P tw\n2026-11-15T10:00:01Z stderr F o\n").unwrap();
        let plain: Container = serde_json::from_value(json!({"name": "c"})).unwrap();
        let falls: Container =
            serde_json::from_value(json!({"name": "c", "terminationMessagePolicy": "FallbackToLogsOnError"}))
                .unwrap();
        assert_eq!(last_words(&plain, 1, &message, &log), "");
        assert_eq!(last_words(&falls, 1, &message, &log), "one\ntwo\n");
        assert_eq!(last_words(&falls, 0, &message, &log), "");
        fs::write(&message, "x".repeat(5000)).unwrap();
        assert_eq!(last_words(&falls, 1, &message, &log).len(), 4096);
    }

    #[test]
    fn only_the_end_of_a_long_log_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("l");
        let lines: String = (0..5000).map(|n| format!("2026-11-15T10:00:00Z stdout F line {n}\n")).collect();
        fs::write(&log, lines).unwrap();
        let end = end_of_log(&log).unwrap();
        assert!(end.ends_with("line 4999\n") && end.lines().count() <= LINES && end.len() <= LOG);
    }
}

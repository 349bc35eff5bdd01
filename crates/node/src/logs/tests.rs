use super::*;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use tempfile::TempDir;

/// Each line as a runtime writes it, a second apart.
fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("2026-11-15T10:00:{number:02}.5Z stdout F line {number}\n")).collect()
}

fn log(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let path = folder.path().join("0.log");
    (folder, path)
}

async fn all(path: &Path, options: LogOptions) -> String {
    let mut stream = read(path.to_owned(), options, CancellationToken::new(), Clock::real());
    let mut text = Vec::new();
    while let Some(chunk) = stream.next().await {
        text.extend_from_slice(&chunk.unwrap());
    }
    String::from_utf8(text).unwrap()
}

fn tail(lines: u64) -> LogOptions {
    LogOptions { tail: Some(lines), ..LogOptions::default() }
}

#[tokio::test]
async fn a_log_is_its_files_from_the_oldest_on() {
    let (_folder, path) = log(&[
        ("0.log.20261115-100004", &lines(2..4)),
        ("0.log.20261115-100002", &lines(0..2)),
        ("0.log.20261115-100001.gz", "compressed"),
        ("1.log", &lines(8..9)),
        ("0.log", &lines(4..5)),
    ]);
    let whole = "line 0\nline 1\nline 2\nline 3\nline 4\n";
    assert_eq!(all(&path, LogOptions::default()).await, whole);
    for wanted in 0..7 {
        let expected: String = whole.split_inclusive('\n').skip(5usize.saturating_sub(wanted)).collect();
        assert_eq!(all(&path, tail(wanted as u64)).await, expected, "the last {wanted}");
    }
}

#[tokio::test]
async fn parts_are_one_line_and_nonsense_is_left_out() {
    let text = "2026-11-15T10:00:00.1Z stdout F first\n\
                nonsense\n\
                2026-11-15T10:00:01.1Z stderr P se\n\
                2026-11-15T10:00:01.2Z stderr P co\n\
                2026-11-15T10:00:01.3Z stderr F nd\n\
                2026-11-15T10:00:02.1Z stdout F \n\
                2026-11-15T10:00:03.1Z stdout F cut o";
    let (_folder, path) = log(&[("0.log", text)]);
    assert_eq!(all(&path, LogOptions::default()).await, "first\nsecond\n\n");
    let timestamps = LogOptions { timestamps: true, ..tail(3) };
    assert_eq!(all(&path, timestamps).await, "2026-11-15T10:00:01.1Z second\n2026-11-15T10:00:02.1Z \n");
}

#[tokio::test]
async fn since_and_a_limit_of_bytes_cut_at_both_ends() {
    let (_folder, path) = log(&[("0.log", &lines(0..9))]);
    let since = Some("2026-11-15T10:00:06.5Z".parse().unwrap());
    let options = LogOptions { since, ..LogOptions::default() };
    assert_eq!(all(&path, options.clone()).await, "line 6\nline 7\nline 8\n");
    assert_eq!(all(&path, LogOptions { tail: Some(2), ..options.clone() }).await, "line 7\nline 8\n");
    assert_eq!(all(&path, LogOptions { limit_bytes: Some(9), ..options }).await, "line 6\nli");
}

#[tokio::test]
async fn a_log_that_is_not_there_is_empty() {
    let (folder, _) = log(&[]);
    assert_eq!(all(&folder.path().join("none/0.log"), LogOptions::default()).await, "");
}

#[tokio::test]
async fn the_tail_of_a_long_log_is_found_from_its_end() {
    let many: String =
        (0..20_000).map(|number| format!("2026-11-15T10:00:00.5Z stdout F {number}\n")).collect();
    let (_folder, path) = log(&[("0.log", &many)]);
    assert_eq!(all(&path, tail(2)).await, "19998\n19999\n");
    assert_eq!(all(&path, tail(19_999)).await.lines().count(), 19_999);
    let long = format!("2026-11-15T10:00:00.5Z stdout F {}\n", "x".repeat(300_000));
    let (_folder, path) = log(&[("0.log", &format!("{}{long}", lines(0..1)))]);
    assert_eq!(all(&path, tail(1)).await.len(), 300_001);
}

#[tokio::test]
async fn following_goes_on_across_rotations_until_the_container_ends() {
    let (folder, path) = log(&[("0.log", &lines(0..2))]);
    let ended = CancellationToken::new();
    let options = LogOptions { follow: true, ..tail(1) };
    let mut stream = read(path.clone(), options, ended.clone(), Clock::real());
    let mut seen = String::new();
    let mut until = async |wanted: &str, stream: &mut LogStream| {
        while seen != wanted {
            let chunk = stream.next().await.expect("the container has not ended").unwrap();
            seen.push_str(std::str::from_utf8(&chunk).unwrap());
            assert!(wanted.starts_with(&seen), "{seen:?} is not the beginning of {wanted:?}");
        }
    };
    until("line 1\n", &mut stream).await;
    // In two writes, the second of which comes after the rotation; then another rotation at once.
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"2026-11-15T10:00:02.5Z stdout F li").unwrap();
    fs::rename(&path, folder.path().join("0.log.20261115-100002")).unwrap();
    file.write_all(b"ne 2\n").unwrap();
    fs::write(&path, lines(3..4)).unwrap();
    fs::rename(&path, folder.path().join("0.log.20261115-100003")).unwrap();
    fs::write(&path, lines(4..5)).unwrap();
    until("line 1\nline 2\nline 3\nline 4\n", &mut stream).await;
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(lines(5..6).as_bytes()).unwrap();
    ended.cancel();
    until("line 1\nline 2\nline 3\nline 4\nline 5\n", &mut stream).await;
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_follower_waits_for_a_log_that_is_to_come_and_leaves_when_it_likes() {
    let (_folder, path) = log(&[]);
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let mut stream = read(path.clone(), options, CancellationToken::new(), Clock::real());
    fs::write(&path, lines(7..8)).unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), "line 7\n");
    drop(stream);
}

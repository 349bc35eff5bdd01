//! A container's log, in the format of the CRI: `2026-11-15T10:00:00.123456789Z stdout F text`, rotated by size.

use jiff::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A line that is longer comes in pieces, each marked as partial.
const LONGEST_LINE: usize = 16 << 10;
/// A file that is larger is put aside.
const LARGEST_FILE: u64 = 10 << 20;
/// How many files there are at most, with the one that is written.
const MOST_FILES: usize = 5;

/// One stream's way from bytes to lines.
pub struct Lines {
    stream: &'static str,
    pending: Vec<u8>,
}

impl Lines {
    pub fn new(stream: &'static str) -> Self {
        Self { stream, pending: Vec::new() }
    }

    /// Appends the entries of all lines that are whole now.
    pub fn take(&mut self, mut bytes: &[u8], at: Timestamp, entries: &mut Vec<u8>) {
        let stamp = format!("{at:.9} {} ", self.stream);
        while !bytes.is_empty() {
            let room = LONGEST_LINE - self.pending.len();
            let line_end = bytes.iter().take(room + 1).position(|byte| *byte == b'\n');
            let (text, rest, tag) = match line_end {
                Some(end) => (&bytes[..end], &bytes[end + 1..], "F "),
                None if bytes.len() > room => (&bytes[..room], &bytes[room..], "P "),
                None => {
                    self.pending.extend_from_slice(bytes);
                    return;
                }
            };
            for part in [stamp.as_bytes(), tag.as_bytes(), &self.pending, text, b"\n"] {
                entries.extend_from_slice(part);
            }
            self.pending.clear();
            bytes = rest;
        }
    }

    /// Appends what never became a line.
    pub fn finish(&mut self, at: Timestamp, entries: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            entries.extend_from_slice(format!("{at:.9} {} P ", self.stream).as_bytes());
            entries.append(&mut self.pending);
            entries.push(b'\n');
        }
    }
}

/// The file.
pub struct Log {
    path: PathBuf,
    file: File,
    size: u64,
    torn: bool,
    largest: u64,
}

impl Log {
    /// Opens or makes it, with its folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, size, torn: false, largest: LARGEST_FILE })
    }

    /// Writes whole entries. What does not fit on the disk is lost: a container is not stopped for its log.
    pub fn write(&mut self, entries: &[u8], at: Timestamp) {
        if self.size >= self.largest {
            self.rotate(at);
        }
        if self.torn && self.file.write_all(b"\n").is_ok() {
            self.torn = false;
        }
        let mut left = entries;
        while !left.is_empty() {
            match self.file.write(left) {
                Ok(0) => break,
                Ok(count) => left = &left[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        // Half an entry must not run into the next one.
        self.torn |= !left.is_empty() && left.len() < entries.len();
        self.size += (entries.len() - left.len()) as u64;
    }

    /// Puts the file aside under a name with the time, and removes the oldest. Where that fails, the file grows on.
    fn rotate(&mut self, at: Timestamp) {
        let time = at.strftime("%Y%m%d-%H%M%S");
        let mut aside = self.log(&time.to_string());
        if aside.exists() {
            aside = self.log(&format!("{time}-{:09}", at.subsec_nanosecond()));
        }
        if std::fs::rename(&self.path, &aside).is_err() {
            return;
        }
        if let Ok(file) = append(&self.path) {
            self.file = file;
            self.size = 0;
        }
        let mut old = self.put_aside();
        old.sort();
        let excess = (old.len() + 1).saturating_sub(MOST_FILES);
        for path in old.drain(..excess) {
            let _ = std::fs::remove_file(path);
        }
    }

    fn log(&self, time: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".");
        name.push(time);
        name.into()
    }

    fn put_aside(&self) -> Vec<PathBuf> {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Vec::new();
        };
        let start = format!("{}.", name.to_string_lossy());
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
            .map(|entry| entry.path())
            .collect()
    }
}

fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Timestamp {
        "2026-11-15T10:00:00.1234Z".parse().unwrap()
    }

    fn entries(chunks: &[&[u8]]) -> Vec<(String, usize)> {
        let (mut lines, mut out) = (Lines::new("stdout"), Vec::new());
        for chunk in chunks {
            lines.take(chunk, at(), &mut out);
        }
        lines.finish(at(), &mut out);
        let text = String::from_utf8(out).unwrap();
        text.lines()
            .map(|line| {
                let rest = line.strip_prefix("2026-11-15T10:00:00.123400000Z stdout ").unwrap();
                (rest[..2].to_owned() + &rest[2..].chars().take(5).collect::<String>(), rest.len() - 2)
            })
            .collect()
    }

    fn entry(text: &str, length: usize) -> (String, usize) {
        (text.to_owned(), length)
    }

    #[test]
    fn lines_are_joined_across_reads_and_the_last_without_an_end_is_partial() {
        assert_eq!(
            entries(&[b"ab", b"c\n\nde", b"f"]),
            [entry("F abc", 3), entry("F ", 0), entry("P def", 3)]
        );
    }

    #[test]
    fn a_line_of_just_the_limit_is_whole_and_one_more_byte_makes_it_two() {
        let line = [b"x".repeat(LONGEST_LINE), b"\n".to_vec()].concat();
        assert_eq!(entries(&[&line]), [entry("F xxxxx", LONGEST_LINE)]);
        let line = [b"x".repeat(LONGEST_LINE + 1), b"\n".to_vec()].concat();
        let two = [entry("P xxxxx", LONGEST_LINE), entry("F x", 1)];
        assert_eq!(entries(&[&line]), two);
        assert_eq!(entries(&line.chunks(1000).collect::<Vec<_>>()), two);
    }

    #[test]
    fn five_files_are_kept_and_the_newest_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pod/app/0.log");
        let mut log = Log::open(&path).unwrap();
        log.largest = 10;
        for number in 0..40 {
            let later = at() + jiff::SignedDuration::from_millis(number * 300);
            log.write(format!("entry {number:02}\n").as_bytes(), later);
        }
        let aside = log.put_aside();
        assert_eq!(aside.len(), MOST_FILES - 1, "{aside:?}");
        assert!(std::fs::read_to_string(&path).unwrap().contains("entry 39"));
        let mut sorted = aside;
        sorted.sort();
        let last = std::fs::read_to_string(sorted.last().unwrap()).unwrap();
        assert!(last.contains("entry 37"), "{last}");
    }
}

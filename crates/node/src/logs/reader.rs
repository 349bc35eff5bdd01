//! Reads the files of a log one after the other, and makes of their lines what is shown.

use super::LogOptions;
use super::files::{self, Id, Opened};
use super::line::Line;
use super::tail::Tail;
use bytes::Bytes;
use jiff::Timestamp;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::PathBuf;

/// About how much is sent at once.
const CHUNK: usize = 32 * 1024;

/// The longest line of a file: what is longer was not written by a runtime, and is left out.
const LONGEST: usize = 1024 * 1024;

/// A log that is being read.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    since: Option<Timestamp>,
    timestamps: bool,
    /// How many bytes may still be shown.
    left: Option<u64>,
    /// Which are still to be read, from the oldest on.
    files: VecDeque<Opened>,
    current: Option<(BufReader<File>, Id)>,
    /// The line that was not ended when it was read.
    begun: Vec<u8>,
    /// Does what comes next begin a line?
    fresh: bool,
}

impl Reader {
    pub(super) fn open(path: PathBuf, options: &LogOptions) -> io::Result<Self> {
        let mut files: VecDeque<Opened> = files::all(&path)?.into();
        if let Some(wanted) = options.tail {
            let mut tail = Tail::new(wanted);
            for index in (0..files.len()).rev() {
                let file = &mut files[index].file;
                if let Some(start) = tail.begin(file)? {
                    file.seek(SeekFrom::Start(start))?;
                    files.drain(..index);
                    break;
                }
                file.seek(SeekFrom::Start(0))?;
            }
        }
        Ok(Self {
            path,
            since: options.since,
            timestamps: options.timestamps,
            left: options.limit_bytes,
            files,
            current: None,
            begun: Vec::new(),
            fresh: true,
        })
    }

    /// Has as much been shown as may be?
    pub(super) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// The next lines; empty when there are none now.
    pub(super) fn chunk(&mut self) -> io::Result<Bytes> {
        let mut shown = Vec::new();
        while shown.len() < CHUNK && !self.is_full() {
            if self.read_line()? {
                let line = std::mem::take(&mut self.begun);
                self.show(line.strip_suffix(b"\n").unwrap_or(&line), &mut shown);
            } else if !self.next_file()? {
                break;
            }
        }
        Ok(Bytes::from(shown))
    }

    /// Reads on in the current file, until `begun` has a line. False at its end.
    fn read_line(&mut self) -> io::Result<bool> {
        let Some((file, _)) = &mut self.current else { return Ok(false) };
        loop {
            let buffer = file.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = buffer.iter().position(|&byte| byte == b'\n');
            let taken = end.map_or(buffer.len(), |end| end + 1);
            if self.begun.len() < LONGEST {
                self.begun.extend_from_slice(&buffer[..taken]);
            }
            file.consume(taken);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    /// Goes to the file after the one that was read, if there is one.
    fn next_file(&mut self) -> io::Result<bool> {
        if self.files.is_empty() {
            let id = self.current.as_ref().map(|(_, id)| *id);
            if files::id(&self.path) == id {
                return Ok(false);
            }
            // It was rotated, maybe more than once. Who writes it does not write to the old file any more.
            let mut all: VecDeque<Opened> = files::all(&self.path)?.into();
            if let Some(known) = all.iter().position(|opened| Some(opened.id) == id) {
                all.drain(..=known);
            }
            self.files = all;
            // Once more in the old one: for what came between the last look and the rotation.
            return Ok(!self.files.is_empty());
        }
        let Some(next) = self.files.pop_front() else { return Ok(false) };
        self.begun.clear();
        self.current = Some((BufReader::with_capacity(CHUNK, next.file), next.id));
        Ok(true)
    }

    fn show(&mut self, line: &[u8], shown: &mut Vec<u8>) {
        let Some(line) = Line::parse(line) else { return };
        if self.since.is_some_and(|since| !line.is_since(since)) {
            return;
        }
        let begin = shown.len();
        if self.timestamps && self.fresh {
            shown.extend_from_slice(line.time.as_bytes());
            shown.push(b' ');
        }
        shown.extend_from_slice(line.text);
        if line.whole {
            shown.push(b'\n');
        }
        self.fresh = line.whole;
        if let Some(left) = &mut self.left {
            let length = shown.len() - begin;
            let kept = usize::try_from(*left).unwrap_or(usize::MAX).min(length);
            shown.truncate(begin + kept);
            *left -= kept as u64;
        }
    }
}

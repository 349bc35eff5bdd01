//! Where the last lines of a log begin.

use super::line::Line;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

/// How much is read at once.
const BLOCK: u64 = 32 * 1024;

/// Looks for the last lines, backwards, file by file. Parts count with the line that they belong to.
#[derive(Debug)]
pub(super) struct Tail {
    wanted: u64,
    found: u64,
    begun: bool,
}

impl Tail {
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, found: 0, begun: false }
    }

    /// Where in this file the lines that are wanted begin; none if earlier.
    pub(super) fn begin(&mut self, file: &mut File) -> io::Result<Option<u64>> {
        let mut start = file.seek(SeekFrom::End(0))?;
        // What lies at `start` and was not looked at yet. It ends with a line.
        let mut window: Vec<u8> = Vec::new();
        let mut block = BLOCK;
        loop {
            while let Some(newline) = last_newline(&window) {
                if self.is_before(&window[newline + 1..]) {
                    return Ok(Some(start + window.len() as u64));
                }
                window.truncate(newline + 1);
                block = BLOCK;
            }
            if start == 0 {
                let before = !window.is_empty() && self.is_before(&window);
                return Ok(before.then_some(window.len() as u64));
            }
            let size = block.min(start);
            // Ever more at once for one long line, or it would be copied too often.
            block = block.saturating_mul(2);
            start -= size;
            file.seek(SeekFrom::Start(start))?;
            let mut read = Vec::new();
            file.take(size).read_to_end(&mut read)?;
            read.append(&mut window);
            window = read;
        }
    }

    /// Is this line, met on the way back, before those that are wanted?
    fn is_before(&mut self, line: &[u8]) -> bool {
        let whole = Line::parse(line.strip_suffix(b"\n").unwrap_or(line)).is_none_or(|line| line.whole);
        if whole || !self.begun {
            if self.found == self.wanted {
                return true;
            }
            self.found += 1;
            self.begun = true;
        }
        false
    }
}

/// The last newline before the one that ends the window.
fn last_newline(window: &[u8]) -> Option<usize> {
    let (_, before) = window.split_last()?;
    before.iter().rposition(|&byte| byte == b'\n')
}

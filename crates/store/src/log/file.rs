//! What every file of the log starts with, and what they are called.

use super::bytes::Reader;
use super::checksum::checksum;

/// How long the start of a file is.
pub(super) const START: usize = 32;

const FORMAT: u32 = 1;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// A part of the log; its revision is the first that may be in it.
    Segment,
    /// All objects; its revision is the one from which on the log is needed.
    Snapshot,
}

/// The start of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) role: Role,
    /// Segments are numbered in the order in which they were made; a snapshot has the number of the segment after it.
    pub(super) number: u64,
    pub(super) revision: u64,
}

/// Why a file's start cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadStart {
    /// It is whole, but of a form that this version does not know.
    Format(u32),
    /// It is something else.
    Damaged,
}

impl Role {
    fn mark(self) -> &'static [u8; 8] {
        match self {
            Self::Segment => b"WINDLLOG",
            Self::Snapshot => b"WINDSNAP",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Segment => ".log",
            Self::Snapshot => ".snapshot",
        }
    }

    /// The name of a file.
    pub(super) fn name(self, number: u64) -> String {
        format!("{number:020}{}", self.suffix())
    }

    /// The number in a name, if it is one of ours.
    pub(super) fn number(self, name: &str) -> Option<u64> {
        let digits = name.strip_suffix(self.suffix())?;
        let number = digits.parse().ok()?;
        // One more can always be counted.
        (number < u64::MAX && self.name(number) == name).then_some(number)
    }
}

/// What a snapshot is called until it is whole.
pub(super) const UNFINISHED: &str = "snapshot.new";

impl Start {
    pub(super) fn to_bytes(self) -> [u8; START] {
        let mut bytes = [0; START];
        bytes[..8].copy_from_slice(self.role.mark());
        bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.number.to_le_bytes());
        bytes[20..28].copy_from_slice(&self.revision.to_le_bytes());
        let sum = checksum(0, &bytes[..28]);
        bytes[28..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8], role: Role, number: u64) -> Result<Self, BadStart> {
        let read = || {
            let bytes = bytes.get(..START)?;
            let mut reader = Reader(bytes);
            let mark = reader.take(8)?;
            let format = reader.u32()?;
            let start = Self { role, number: reader.u64()?, revision: reader.u64()? };
            let whole = reader.u32()? == checksum(0, &bytes[..28]) && mark == role.mark();
            whole.then_some((format, start))
        };
        match read() {
            Some((FORMAT, start)) if start.number == number => Ok(start),
            Some((format, _)) if format != FORMAT => Err(BadStart::Format(format)),
            _ => Err(BadStart::Damaged),
        }
    }
}

//! JSON as the API reads and writes it: duplicate keys are seen, integers stay apart from floats, errors and floats
//! read as Go's.

mod read;
mod write;

pub use read::{Document, MAX_DEPTH, ReadError, read, read_own};
pub use write::{append, append_number, append_text, to_string, write};

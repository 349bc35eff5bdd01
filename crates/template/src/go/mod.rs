//! How Go prints, reads and counts: the parts of its library that templates show.

pub(crate) mod chars;
pub(crate) mod float;
pub(crate) mod format;
mod padding;
pub(crate) mod print;
pub(crate) mod quote;
pub(crate) mod regexp;
pub(crate) mod strconv;
pub(crate) mod time;
pub(crate) mod url;

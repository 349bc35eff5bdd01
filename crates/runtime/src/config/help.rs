//! What `--help` prints.

use super::options::{OPTIONS, Takes};
use std::fmt::Write;

/// How to use an operator that is called so.
pub fn help(program: &str) -> String {
    let mut text = format!(
        "An operator, built on Windlass.\n\n\
         Usage: {program} [run] [OPTIONS]\n       \
         {program} describe                 its kinds, watches, writes and permissions, as JSON\n       \
         {program} capture KIND NAME        what a decision about an object would see now, as JSON; secrets are in it\n       \
         {program} plan KIND NAME           what it would do about an object now; secrets are not in it\n       \
         {program} plan < CAPTURE           what it would do, given that\n       \
         {program} why KIND NAME            what an object waits for, since when, and when it is looked at again\n\n\
         Options (each also as a variable, and by its name as a line in the file):\n"
    );
    for known in OPTIONS {
        let value = match known.takes {
            Takes::Switch => String::new(),
            Takes::One(value) | Takes::Many(value) => format!(" {value}"),
        };
        let default = match known.default {
            "" | "false" => String::new(),
            default => format!(" [default: {default}]"),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "  --{}{value}\n      {}{default}\n      {}",
            known.name,
            known.help,
            known.variable()
        );
    }
    text
}

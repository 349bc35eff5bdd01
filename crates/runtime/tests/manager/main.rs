//! The manager as a whole, on the embedded API in process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod caching;
mod lines;
mod namespaces;
mod pages;
mod support;
mod tasks;
mod webhooks;

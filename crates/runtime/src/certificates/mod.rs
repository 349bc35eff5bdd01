//! Certificates in Secrets, with a certificate authority of one's own: made when the Secret is created, and renewed in time.
//!
//! A plan says what is wanted ([`CertificateAuthority`], [`Certificate`]); annotations on the Secrets say what there is and when
//! it is due, so that deciding needs no contents (`due.rs`). Only making one reads and writes them (`issue.rs`).

mod due;
mod issue;
mod recipe;

pub(crate) use due::{RENEW_AT, is_due, renew_at};
pub(crate) use issue::{Contents, IssueError, key_pair};
pub(crate) use recipe::Issue;
pub use recipe::{Certificate, CertificateAuthority};

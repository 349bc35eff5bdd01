//! The store's laws.

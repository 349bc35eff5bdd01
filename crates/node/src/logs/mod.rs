//! Container logs as files: read from their end, since a time, and along with whoever writes them.

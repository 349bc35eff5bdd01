//! An error as one line of text.

/// An error with its causes in one line, for conditions, events and logs.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        match error.downcast_ref::<kube::Error>() {
            // kube prints the whole Status twice; its message says it all.
            Some(kube::Error::Api(status)) => text.push_str(&status.message),
            _ => text.push_str(&error.to_string()),
        }
        // What kube's errors print includes their causes.
        cause = error.source().filter(|_| !error.is::<kube::Error>());
    }
    text
}

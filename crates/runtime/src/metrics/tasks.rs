//! What is counted of one task.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state of a task, for those who look from outside.
#[derive(Debug)]
pub(crate) struct TaskState {
    name: String,
    running: AtomicBool,
    failures: AtomicU64,
    panics: AtomicU64,
}

/// A task that runs, until dropped.
#[derive(Debug)]
pub(crate) struct RunningTask(Arc<TaskState>);

impl TaskState {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            running: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            panics: AtomicU64::new(0),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn begin(self: &Arc<Self>) -> RunningTask {
        self.running.store(true, Ordering::Relaxed);
        RunningTask(self.clone())
    }

    pub(crate) fn failed(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    pub(crate) fn show(&self) -> Value {
        json!({
            "name": self.name,
            "running": self.is_running(),
            "failures": self.failures(),
            "panics": self.panics(),
        })
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Relaxed);
    }
}

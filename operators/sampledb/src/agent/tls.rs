//! TLS of the server: its certificate is brought from the mounted Secret to the volume, where its key has the mode that PostgreSQL
//! demands, and the server reads it again when it was renewed.

use super::config;
use super::run::{Agent, SHORT, Seen, StepError, text};
use crate::durable_files::write_durably;
use crate::programs::{self, ProgramError};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;

/// What a server says that was built without TLS.
const NOT_SUPPORTED: &str = "not supported by this build";

/// What is known of TLS.
#[derive(Debug, Default)]
pub(super) struct Tls {
    /// Whether the server was built with it, once that is known.
    supported: Option<bool>,
    /// Whether the certificate is on the volume.
    there: bool,
    /// Whether it is another than the server knows.
    pub(super) renewed: bool,
}

impl Tls {
    /// Whether servers here use it, once that is known.
    pub(super) fn is_used(&self) -> Option<bool> {
        self.supported.map(|supported| supported && self.there)
    }
}

impl Agent {
    /// Finds out whether the server has TLS, and brings its certificate.
    pub(super) async fn look_at_tls(&mut self) -> Result<(), StepError> {
        if self.tls.supported.is_none() {
            // Any directory does: there may be no data yet.
            let arguments =
                ["-D", text(&self.settings.sockets)?, "--config-file=/dev/null", "-C", "ssl", "-c", "ssl=on"];
            self.tls.supported = match programs::run(&self.clock, "postgres", &arguments, None, SHORT).await {
                Ok(_) => Some(true),
                Err(ProgramError::Failed { said, .. }) if said.contains(NOT_SUPPORTED) => Some(false),
                Err(error) => return Err(error.into()),
            };
        }
        self.tls.renewed |= self.bring_certificate()?;
        Ok(())
    }

    /// Answers whether it is another than before.
    fn bring_certificate(&mut self) -> io::Result<bool> {
        let mut brought = Vec::new();
        for (from, to) in config::TLS_FILES {
            match fs::read(self.settings.tls.join(from)) {
                Ok(content) => brought.push((to, content)),
                // A pod of an earlier version has none.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        let directory = self.volume.tls();
        brought.retain(|(name, content)| fs::read(directory.join(name)).ok().as_ref() != Some(content));
        if !brought.is_empty() {
            fs::DirBuilder::new().mode(0o700).recursive(true).create(&directory)?;
        }
        for (name, content) in &brought {
            write_durably(&directory.join(name), content, 0o600)?;
        }
        self.tls.there = true;
        Ok(!brought.is_empty())
    }

    /// How the server uses TLS, if it does.
    pub(super) fn server_tls(&self, seen: &Seen) -> Option<config::Tls> {
        self.tls.is_used().filter(|used| *used)?;
        let spec = seen.instance.as_ref().map(|instance| &instance.spec);
        Some(config::Tls {
            directory: self.volume.tls(),
            replicas: spec.is_some_and(|spec| spec.tls),
            clients: spec.is_some_and(|spec| spec.require_tls),
        })
    }

    /// How a primary is reached, by this name.
    pub(super) fn conninfo(&self, primary: &str, application: &str, seen: &Seen) -> String {
        let tls = self.server_tls(seen);
        config::conninfo(&self.settings.host(primary), application, &self.volume.passfile(), tls.as_ref())
    }
}

//! A server that only this pod can connect to, for as long as an upgrade needs it.

use super::super::config;
use crate::durable_files::write_durably;
use crate::programs::{self, Printed, ProgramError};
use std::io;
use std::path::Path;
use std::time::Duration;
use windlass::clock::Clock;

/// How long a server may take to stop.
const STOP: Duration = Duration::from_secs(600);
/// How long a statement may take.
const STATEMENT: Duration = Duration::from_secs(600);

/// Has data be served to the user of this pod alone; an agent writes the rest when it starts its server.
pub(super) fn configure(data: &Path, sockets: &Path) -> io::Result<()> {
    let configuration = format!(
        "listen_addresses = ''\n\
         unix_socket_directories = '{}'\n\
         jit = off\n\
         wal_level = replica\n\
         wal_log_hints = on\n",
        sockets.display()
    );
    let user = config::user();
    for (name, content) in [
        ("postgresql.conf", configuration.as_str()),
        ("postgresql.auto.conf", ""),
        ("pg_hba.conf", "local all postgres peer map=agent\n"),
        ("pg_ident.conf", &config::ident(&user)),
    ] {
        write_durably(&data.join(name), content.as_bytes(), 0o600)?;
    }
    Ok(())
}

/// A server.
pub(super) struct PrivateServer<'a> {
    clock: &'a Clock,
    sockets: String,
    control: String,
    data: String,
}

impl<'a> PrivateServer<'a> {
    /// Starts the server of a directory of programs, or of `PATH`.
    pub(super) async fn start(
        clock: &'a Clock,
        sockets: &Path,
        programs: &Path,
        data: &Path,
        limit: Duration,
    ) -> Result<Self, ProgramError> {
        let control = programs.join("pg_ctl").display().to_string();
        let server =
            Self { clock, sockets: sockets.display().to_string(), control, data: data.display().to_string() };
        let (log, seconds) = (sockets.join("server.log").display().to_string(), limit.as_secs().to_string());
        let start = ["start", "--pgdata", &server.data, "--wait", "--timeout", &seconds, "--log", &log];
        programs::run(clock, &server.control, &start, None, limit).await?;
        Ok(server)
    }

    /// Runs a program of PostgreSQL on it.
    pub(super) async fn run(
        &self,
        program: &str,
        arguments: &[&str],
        limit: Duration,
    ) -> Result<Printed, ProgramError> {
        let mut all = vec!["--host", self.sockets.as_str(), "--username", "postgres", "--no-password"];
        all.extend(arguments);
        programs::run(self.clock, program, &all, None, limit).await
    }

    /// Answers the rows of a statement, of one column.
    pub(super) async fn sql(&self, database: &str, statement: &str) -> Result<Vec<String>, ProgramError> {
        let database = connection(database);
        // Names may have line ends in them.
        let arguments = [
            "--no-psqlrc",
            "--dbname",
            &database,
            "-v",
            "ON_ERROR_STOP=1",
            "-At",
            "--record-separator-zero",
            "-c",
            statement,
        ];
        let output = self.run("psql", &arguments, STATEMENT).await?.output;
        Ok(output
            .split('\0')
            .map(|row| row.trim_end_matches('\n'))
            .filter(|row| !row.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Stops it.
    pub(super) async fn stop(self) -> Result<(), ProgramError> {
        let stop = ["stop", "--pgdata", &self.data, "--wait", "--mode", "fast", "--timeout", "600"];
        programs::run(self.clock, &self.control, &stop, None, STOP).await.map(drop)
    }
}

/// How psql is told the name of a database, whatever it is.
fn connection(database: &str) -> String {
    format!("dbname='{}'", database.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_database_is_one_word() {
        assert_eq!(connection("a=b"), "dbname='a=b'");
        assert_eq!(connection("it's \\"), "dbname='it\\'s \\\\'");
    }
}

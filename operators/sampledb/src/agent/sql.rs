//! What an agent asks its server, over the socket, as its superuser.

use super::config::CLOSED;
use super::data::is_clone_id;
use crate::lsn::Lsn;
use crate::settings::{REPLICATOR, Settings};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio_postgres::{Client, NoTls};
use windlass::clock::{Clock, Moment};

/// How long a connection, or a question, may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The server did not answer.
#[derive(Debug, thiserror::Error)]
pub enum SqlError {
    /// It says why.
    #[error("{}", text(.0))]
    Server(#[from] tokio_postgres::Error),
    /// In time.
    #[error("the server does not answer within {} s", LIMIT.as_secs())]
    Silent,
    /// It answered something else.
    #[error("the server answered {0:?}, which was not expected")]
    Unexpected(String),
}

/// With what the server says, which is in the source of the error.
fn text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.to_string(),
        None => error.to_string(),
    }
}

/// How a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Whether it is a standby.
    pub in_recovery: bool,
    /// Whether it has a process that receives data, or is told to start one.
    pub receives: bool,
    /// Whether that process is connected to a primary.
    pub streams: bool,
    /// Whether a standby has applied everything that it has.
    pub replayed: bool,
    /// Where its data ends: of a standby, what it has applied.
    pub flushed: Lsn,
    /// Its version.
    pub version: String,
}

/// A replica that is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connected {
    /// Its copy of the data.
    pub clone: String,
    /// Whether it gets data as it is written.
    pub streams: bool,
    /// Whether the server counts its acknowledgements.
    pub counts: bool,
    /// Up to where it has written what it got.
    pub flushed: Lsn,
}

impl SqlError {
    /// Whether the server itself says so, for instance that it starts, or that it has no connection left.
    pub fn is_an_answer(&self) -> bool {
        matches!(self, Self::Server(error) if error.as_db_error().is_some())
    }
}

/// A connection.
pub struct Sql {
    client: Client,
    clock: Clock,
    made: Moment,
}

impl std::fmt::Debug for Sql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sql").finish_non_exhaustive()
    }
}

impl Sql {
    /// Connects to a database.
    ///
    /// # Errors
    /// [`SqlError`], for instance while the server starts.
    pub async fn connect(clock: &Clock, settings: &Settings, database: &str) -> Result<Self, SqlError> {
        let mut config = tokio_postgres::Config::new();
        config.host_path(&settings.sockets).user("postgres").dbname(database);
        config.application_name("sampledb-agent");
        // What the agent writes is on a replica when the replica gets it: it must not wait for one to be there.
        config.options("-c statement_timeout=5000 -c lock_timeout=2000 -c synchronous_commit=local");
        let connected = clock.timeout(LIMIT, config.connect(NoTls)).await.map_err(|_| SqlError::Silent)?;
        let (client, connection) = connected?;
        // It ends when the client is dropped.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { client, clock: clock.clone(), made: clock.moment() })
    }

    /// How old the connection is.
    pub fn age(&self) -> Duration {
        self.clock.moment().since(self.made)
    }

    /// Whether it can still be asked.
    pub fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    async fn within<T>(
        &self,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, SqlError> {
        Ok(self.clock.timeout(LIMIT, work).await.map_err(|_| SqlError::Silent)??)
    }

    /// How the server is.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn state(&self) -> Result<State, SqlError> {
        let row = self.within(self.client.query_one(STATE, &[])).await?;
        let in_recovery: bool = row.try_get(0)?;
        let lsn = |index: usize| -> Result<Option<Lsn>, SqlError> {
            let text: Option<String> = row.try_get(index)?;
            text.map(|text| text.parse().map_err(|_| SqlError::Unexpected(text))).transpose()
        };
        let (written, replayed) = (lsn(1)?, lsn(2)?);
        let waits: Option<String> = row.try_get(5)?;
        // The process that applies what was received has nothing left, and asks again after a while.
        let idle = waits.as_deref() == Some("RecoveryRetrieveRetryInterval");
        Ok(State {
            in_recovery,
            receives: row.try_get(3)?,
            streams: row.try_get(4)?,
            replayed: idle,
            flushed: written.or(replayed).unwrap_or_default(),
            version: row.try_get(6)?,
        })
    }

    /// The replicas that are connected to a primary; programs that copy its data are none.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn replicas(&self) -> Result<Vec<Connected>, SqlError> {
        let rows = self.within(self.client.query(REPLICAS, &[])).await?;
        let read = |row: &tokio_postgres::Row| -> Result<Connected, SqlError> {
            let flushed: Option<String> = row.try_get(3)?;
            let flushed = flushed.map(|text| text.parse().map_err(|_| SqlError::Unexpected(text)));
            Ok(Connected {
                clone: row.try_get(0)?,
                streams: row.try_get(1)?,
                counts: row.try_get(2)?,
                flushed: flushed.transpose()?.unwrap_or_default(),
            })
        };
        let all = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        Ok(all.into_iter().filter(|one| is_clone_id(&one.clone)).collect())
    }

    /// A setting's value.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn setting(&self, name: &str) -> Result<String, SqlError> {
        let row = self.within(self.client.query_one("SELECT current_setting($1)", &[&name])).await?;
        Ok(row.try_get(0)?)
    }

    /// Whether this connection was made after the server began to keep clients out.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn is_after_closing(&self) -> Result<bool, SqlError> {
        let row = self.within(self.client.query_one("SELECT current_setting($1, true)", &[&CLOSED])).await?;
        Ok(row.try_get::<_, Option<String>>(0)?.as_deref() == Some("on"))
    }

    /// Ends the connections of clients, and answers how many there were.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn end_clients(&self) -> Result<i64, SqlError> {
        let row = self.within(self.client.query_one(END_CLIENTS, &[&REPLICATOR])).await?;
        Ok(row.try_get(0)?)
    }

    /// The parameters that a restart changes.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn pending_restart(&self) -> Result<Vec<String>, SqlError> {
        let asked = "SELECT name FROM pg_settings WHERE pending_restart ORDER BY name";
        let rows = self.within(self.client.query(asked, &[])).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    /// The rows of a query whose columns are texts; what is null is empty.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn texts(&self, query: &str, columns: usize) -> Result<Vec<Vec<String>>, SqlError> {
        let rows = self.within(self.client.query(query, &[])).await?;
        let read = |row: &tokio_postgres::Row| {
            let texts = (0..columns).map(|index| row.try_get::<_, Option<String>>(index));
            texts.map(|text| Ok(text?.unwrap_or_default())).collect()
        };
        rows.iter().map(read).collect()
    }

    /// Ends recovery: the server is a primary from now on.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn promote(&self) -> Result<(), SqlError> {
        self.within(self.client.batch_execute("SELECT pg_promote(false)")).await
    }

    /// Has the server write a checkpoint, however long it takes.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn checkpoint(&self) -> Result<(), SqlError> {
        self.within(self.client.batch_execute("SET statement_timeout = 0")).await?;
        Ok(self.client.batch_execute("CHECKPOINT").await?)
    }

    /// Makes the roles and the database, as far as they are not there, and sets the passwords.
    ///
    /// # Errors
    /// [`SqlError`]
    pub async fn provision(
        &self,
        settings: &Settings,
        owner_password: &str,
        replication_password: &str,
    ) -> Result<(), SqlError> {
        let names = self.within(self.client.query("SELECT rolname FROM pg_roles", &[])).await?;
        let names: BTreeSet<String> = names.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
        let mut statements = Vec::new();
        for (name, password, more) in
            [(REPLICATOR, replication_password, "REPLICATION"), (settings.owner.as_str(), owner_password, "")]
        {
            let verb = if names.contains(name) { "ALTER" } else { "CREATE" };
            let (name, password) = (identifier(name), literal(password));
            statements.push(format!("{verb} ROLE {name} LOGIN {more} PASSWORD {password}"));
        }
        for function in REWIND_FUNCTIONS {
            let replicator = identifier(REPLICATOR);
            statements.push(format!("GRANT EXECUTE ON FUNCTION pg_catalog.{function} TO {replicator}"));
        }
        for statement in statements {
            self.within(self.client.batch_execute(&statement)).await?;
        }
        let asked = "SELECT 1 FROM pg_database WHERE datname = $1";
        let there = self.within(self.client.query_opt(asked, &[&settings.create])).await?;
        if there.is_none() {
            let (name, owner) = (identifier(&settings.create), identifier(&settings.owner));
            let create = format!("CREATE DATABASE {name} OWNER {owner}");
            self.within(self.client.batch_execute(&create)).await?;
        }
        Ok(())
    }
}

const STATE: &str = "
SELECT pg_is_in_recovery(),
       CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn()::text END,
       pg_last_wal_replay_lsn()::text,
       EXISTS (SELECT FROM pg_stat_wal_receiver WHERE pid IS NOT NULL) OR current_setting('primary_conninfo') <> '',
       EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming'),
       (SELECT wait_event FROM pg_stat_activity WHERE backend_type = 'startup'),
       current_setting('server_version')";

const REPLICAS: &str = "
SELECT coalesce(application_name, ''), coalesce(state, '') = 'streaming', coalesce(sync_state, '') IN ('sync', 'quorum'),
       flush_lsn::text
  FROM pg_stat_replication";

/// One whose user is not known yet is no exception.
const END_CLIENTS: &str = "
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
 WHERE backend_type = 'client backend' AND coalesce(usename::text, '') NOT IN ('postgres', $1)";

/// What pg_rewind calls.
const REWIND_FUNCTIONS: [&str; 4] = [
    "pg_ls_dir(text, boolean, boolean)",
    "pg_stat_file(text, boolean)",
    "pg_read_binary_file(text)",
    "pg_read_binary_file(text, bigint, bigint, boolean)",
];

/// A name in SQL.
pub fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text in SQL.
pub fn literal(text: &str) -> String {
    // With backslashes it means the same whatever `standard_conforming_strings` is.
    format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(identifier("a\"b"), "\"a\"\"b\"");
        assert_eq!(literal("it's \\"), "E'it''s \\\\'");
    }
}

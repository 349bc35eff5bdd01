//! What Prometheus is told of an instance: read from the server when it asks, under the names of postgres_exporter where that has one.

use super::data::Volume;
use super::sql::{Sql, SqlError};
use crate::settings::Settings;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use windlass::clock::Clock;
use windlass::metrics::{Page, Type};
use windlass::serve_metrics;

/// Where metrics are served: postgres_exporter's port.
pub const PORT: u16 = 9187;

/// One family: its name, what it is, and the query that answers its labels, if any, and its value.
struct Family {
    name: &'static str,
    of: Type,
    help: &'static str,
    labels: &'static [&'static str],
    sql: &'static str,
}

const fn gauge(
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
    sql: &'static str,
) -> Family {
    Family { name, of: Type::Gauge, help, labels, sql }
}

const fn counter(name: &'static str, help: &'static str, sql: &'static str) -> Family {
    Family { name, of: Type::Counter, help, labels: &["datname"], sql }
}

/// Values are texts of numbers: one way to read them all.
const FAMILIES: &[Family] = &[
    gauge(
        "pg_replication_is_replica",
        "Indicates if the server is a replica.",
        &[],
        "SELECT pg_is_in_recovery()::int::text",
    ),
    gauge(
        "pg_replication_lag_seconds",
        "Replication lag behind primary in seconds.",
        &[],
        "SELECT CASE WHEN NOT pg_is_in_recovery() OR pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
                ELSE greatest(0, extract(epoch FROM now() - pg_last_xact_replay_timestamp())) END::text",
    ),
    gauge(
        "pg_stat_replication_pg_wal_lsn_diff",
        "How many bytes of the write-ahead log a replica has yet to apply.",
        &["application_name", "state", "sync_state"],
        "SELECT application_name, state, sync_state, pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn)::text
           FROM pg_stat_replication WHERE NOT pg_is_in_recovery() AND replay_lsn IS NOT NULL",
    ),
    gauge(
        "pg_settings_max_connections",
        "Sets the maximum number of concurrent connections.",
        &[],
        "SELECT current_setting('max_connections')",
    ),
    gauge(
        "pg_stat_activity_count",
        "Number of connections in this state.",
        &["datname", "state"],
        "SELECT datname, coalesce(state, ''), count(*)::text FROM pg_stat_activity WHERE datname IS NOT NULL GROUP BY 1, 2",
    ),
    gauge(
        "pg_locks_count",
        "Number of locks.",
        &["datname", "mode"],
        "SELECT datname, mode, count(*)::text FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
          GROUP BY 1, 2",
    ),
    gauge(
        "pg_database_size_bytes",
        "Disk space used by the database.",
        &["datname"],
        "SELECT datname, pg_database_size(oid)::text FROM pg_database WHERE datallowconn",
    ),
    gauge(
        "pg_wal_size_bytes",
        "Total size of the write-ahead log.",
        &[],
        "SELECT coalesce(sum(size), 0)::text FROM pg_ls_waldir()",
    ),
    gauge(
        "sampledb_commit_wait_seconds",
        "For how long a commit has waited for a replica, of those that do.",
        &[],
        "SELECT coalesce(max(extract(epoch FROM clock_timestamp() - query_start)), 0)::text
           FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
    ),
    counter(
        "pg_stat_database_xact_commit",
        "Number of transactions in this database that have been committed.",
        "SELECT datname, xact_commit::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_xact_rollback",
        "Number of transactions in this database that have been rolled back.",
        "SELECT datname, xact_rollback::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_blks_read",
        "Number of disk blocks read in this database.",
        "SELECT datname, blks_read::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_blks_hit",
        "Number of times disk blocks were found already in the buffer cache.",
        "SELECT datname, blks_hit::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_tup_inserted",
        "Number of rows inserted by queries in this database.",
        "SELECT datname, tup_inserted::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_tup_updated",
        "Number of rows updated by queries in this database.",
        "SELECT datname, tup_updated::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_tup_deleted",
        "Number of rows deleted by queries in this database.",
        "SELECT datname, tup_deleted::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_deadlocks",
        "Number of deadlocks detected in this database.",
        "SELECT datname, deadlocks::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
    counter(
        "pg_stat_database_temp_bytes",
        "Total amount of data written to temporary files by queries in this database.",
        "SELECT datname, temp_bytes::text FROM pg_stat_database WHERE datname IS NOT NULL",
    ),
];

/// Of the volume, which is told also while no server answers.
const VOLUME: [(&str, &str); 2] = [
    ("sampledb_volume_capacity_bytes", "How large the volume is."),
    ("sampledb_volume_available_bytes", "How much room is left on it."),
];

/// The names of all families.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.name).chain(VOLUME.map(|(name, _)| name)).chain(["pg_up"])
}

/// Serves them on every address of the pod, until it ends.
///
/// # Errors
/// When nobody can listen there.
pub(super) async fn serve(settings: &Settings, clock: &Clock) -> std::io::Result<()> {
    let listener = match TcpListener::bind((Ipv6Addr::UNSPECIFIED, PORT)).await {
        // There is no IPv6 here.
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?,
        Ok(listener) => listener,
    };
    // One at a time: whoever asks again and again must not take all connections of the server.
    let (settings, own, turn) = (settings.clone(), clock.clone(), Arc::new(Mutex::new(())));
    let collect = move || {
        let (settings, own, turn) = (settings.clone(), own.clone(), turn.clone());
        async move {
            let _turn = turn.lock().await;
            page(&own, &settings).await
        }
    };
    tokio::spawn(serve_metrics(listener, clock.clone(), collect));
    Ok(())
}

async fn page(clock: &Clock, settings: &Settings) -> Page {
    let mut page = Page::default();
    let read = read(clock, settings, &mut page).await;
    if let Err(error) = &read {
        tracing::debug!("metrics: {error}");
    }
    let up = if read.is_ok() { 1.0 } else { 0.0 };
    page.family("pg_up", Type::Gauge, "Whether the server answers.").sample(&[], up);
    volume(&Volume::at(&settings.volume), &mut page);
    page
}

fn volume(volume: &Volume, page: &mut Page) {
    for ((name, help), bytes) in VOLUME.into_iter().zip([volume.capacity(), volume.room()]) {
        if let Ok(bytes) = bytes {
            page.family(name, Type::Gauge, help).sample(&[], bytes as f64);
        }
    }
}

async fn read(clock: &Clock, settings: &Settings, page: &mut Page) -> Result<(), SqlError> {
    let sql = Sql::connect(clock, settings, "postgres").await?;
    for family in FAMILIES {
        let rows = match sql.texts(family.sql, family.labels.len() + 1).await {
            Ok(rows) => rows,
            // One that takes too long, or is refused, says nothing about the others.
            Err(error) if sql.is_open() => {
                tracing::debug!("{}: {error}", family.name);
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut written = page.family(family.name, family.of, family.help);
        for row in rows {
            let Some((value, labels)) = row.split_last() else { continue };
            let labels: Vec<(&str, &str)> =
                family.labels.iter().copied().zip(labels.iter().map(String::as_str)).collect();
            let value = value.parse().map_err(|_| SqlError::Unexpected(value.clone()))?;
            written.sample(&labels, value);
        }
    }
    Ok(())
}

//! What is known of single parameters of PostgreSQL.

/// Parameters that a standby may not have lower than its primary had, each with the name by which `pg_controldata` prints what
/// that was.
pub(crate) const NOT_LOWER_ON_STANDBYS: [(&str, &str); 5] = [
    ("max_connections", "max_connections setting"),
    ("max_worker_processes", "max_worker_processes setting"),
    ("max_wal_senders", "max_wal_senders setting"),
    ("max_prepared_transactions", "max_prepared_xacts setting"),
    ("max_locks_per_transaction", "max_locks_per_xact setting"),
];

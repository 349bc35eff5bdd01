//! Text has to sort as it did when its indexes were built: where the next version sorts it otherwise, they are built anew.

use super::servers::PrivateServer;
use crate::programs::ProgramError;

/// Databases and collations whose order is another than when their indexes were built, each as `ALTER` names it.
const CHANGED: &str = "\
    SELECT 'DATABASE ' || quote_ident(datname) FROM pg_database \
     WHERE datname = current_database() AND datcollversion <> pg_database_collation_actual_version(oid) \
    UNION ALL \
    SELECT 'COLLATION ' || quote_ident(nspname) || '.' || quote_ident(collname) \
      FROM pg_collation JOIN pg_namespace ON pg_namespace.oid = collnamespace \
     WHERE collencoding IN (-1, (SELECT encoding FROM pg_database WHERE datname = current_database())) \
       AND collversion <> pg_collation_actual_version(pg_collation.oid)";

/// What is sorted otherwise in one database.
pub(super) struct Changed {
    /// The database.
    database: String,
    /// As `ALTER` names it.
    what: String,
}

impl Changed {
    /// For people.
    pub(super) fn told(&self) -> String {
        let (kind, name) = self.what.split_once(' ').unwrap_or_default();
        format!("{} {name} in {}", kind.to_lowercase(), self.database)
    }
}

/// Everything that is sorted otherwise by a server than when indexes were built.
pub(super) async fn changed(server: &PrivateServer<'_>) -> Result<Vec<Changed>, ProgramError> {
    let mut all = Vec::new();
    for database in server.sql("template1", "SELECT datname FROM pg_database WHERE datallowconn").await? {
        let changed = server.sql(&database, CHANGED).await?;
        all.extend(changed.into_iter().map(|what| Changed { database: database.clone(), what }));
    }
    Ok(all)
}

/// Records that indexes were built by the order of now.
pub(super) async fn accept(server: &PrivateServer<'_>, changed: &[Changed]) -> Result<(), ProgramError> {
    for one in changed {
        let version = if one.what.starts_with("DATABASE") { "COLLATION VERSION" } else { "VERSION" };
        server.sql(&one.database, &format!("ALTER {} REFRESH {version}", one.what)).await?;
    }
    Ok(())
}

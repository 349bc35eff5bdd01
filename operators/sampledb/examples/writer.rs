//! Writes rows to every instance of a database directly, and prints what became of each: the load of the failover tests.
//!
//! `writer HOST...` connects as libpq's environment variables say, and writes until it is killed. A line is printed before
//! the next row is begun:
//!
//! - `ack ID TIMELINE HOST`: the server said that it is committed, on that timeline
//! - `maybe ID HOST`: it was sent, and nothing is known
//!
//! Rows that were refused are not printed.

use std::io::Write;
use std::time::Duration;
use tokio_postgres::NoTls;
use windlass::clock::Clock;

/// How long a connection, or a row, may take.
const LIMIT: Duration = Duration::from_secs(3);
/// Between attempts at a server that takes no writes.
const PAUSE: Duration = Duration::from_millis(50);
/// Between rows: enough of a load, and little enough to be checked.
const BETWEEN: Duration = Duration::from_millis(5);

const INSERT: &str =
    "INSERT INTO acknowledged VALUES ($1) RETURNING left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let hosts: Vec<String> = std::env::args().skip(1).collect();
    let writers = hosts.iter().enumerate().map(|(number, host)| write(number, host));
    futures::future::join_all(writers).await;
}

async fn write(number: usize, host: &str) {
    let clock = Clock::real();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let mut config = tokio_postgres::Config::new();
    config
        .host(host)
        .user(variable("PGUSER"))
        .password(variable("PGPASSWORD"))
        .dbname(variable("PGDATABASE"));
    let mut id = i64::try_from(number).unwrap_or(0) << 40;
    loop {
        clock.sleep(PAUSE).await;
        let Ok(Ok((client, connection))) = clock.timeout(LIMIT, config.connect(NoTls)).await else {
            continue;
        };
        let connection = tokio::spawn(connection);
        loop {
            id += 1;
            match clock.timeout(LIMIT, client.query_one(INSERT, &[&id])).await {
                Ok(Ok(row)) => say(&format!("ack {id} {} {host}", row.get::<_, String>(0))),
                // A server that answers an error, for instance that it is read-only, committed nothing.
                Ok(Err(error)) if error.as_db_error().is_some_and(|said| said.code().code() < "57") => break,
                _ => {
                    say(&format!("maybe {id} {host}"));
                    break;
                }
            }
            clock.sleep(BETWEEN).await;
        }
        connection.abort();
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

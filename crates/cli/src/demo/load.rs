//! Clients of a database that write all the time, and remember outside of it what it acknowledged.

use super::environment::Cluster;
use anyhow::Context;
use k8s_openapi::api::core::v1::{Secret, Service};
use sampledb_operator::settings::PORT;
use std::cell::{Cell, RefCell};
use std::net::SocketAddrV4;
use std::rc::Rc;
use std::time::Duration;
use tokio_postgres::{Client, Config, NoTls};
use windlass_clock::{Clock, Moment};
use windlass_node::net::Network;

/// The number of clients that write at the same time.
pub(super) const CLIENTS: usize = 4;
/// How long a connection, or a row, may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between attempts to connect.
const PAUSE: Duration = Duration::from_millis(20);
/// Between rows of a client: enough of a load, and the machine has something left for the rest.
const BETWEEN: Duration = Duration::from_millis(4);
/// A time without a row that is worth telling.
const STILL: Duration = Duration::from_millis(300);

/// How clients reach a database: by its Service for writes, with the credentials of its owner.
pub(super) struct Database {
    network: Network,
    pub(super) service: String,
    pub(super) address: SocketAddrV4,
    config: Config,
}

impl Database {
    pub(super) async fn of(cluster: &Cluster, name: &str) -> anyhow::Result<Self> {
        let network = cluster.network.clone().context("its node only simulates")?;
        let secret = cluster.api::<Secret>().get(&format!("{name}-credentials")).await?;
        let data = secret.data.unwrap_or_default();
        let field = |key: &str| {
            let value = data.get(key).with_context(|| format!("the credentials have no {key}"))?;
            String::from_utf8(value.0.clone()).with_context(|| format!("{key} is not text"))
        };
        let mut config = Config::new();
        config.user(field("username")?).password(field("password")?).dbname(field("database")?);
        let service = field("host")?;
        let spec = cluster.api::<Service>().get(&service).await?.spec.unwrap_or_default();
        let address = spec.cluster_ip.context("the Service has no address")?.parse()?;
        Ok(Self { network, service, address: SocketAddrV4::new(address, PORT), config })
    }

    /// A connection from inside of the pods' network, as a pod would make it.
    pub(super) async fn connect(&self) -> anyhow::Result<Client> {
        let connect = async {
            let stream = self.network.connect(self.address).await?;
            anyhow::Ok(self.config.connect_raw(stream, NoTls).await?)
        };
        let (client, connection) =
            Clock::real().timeout(PATIENCE, connect).await.context("it does not answer")??;
        // It ends with its client.
        tokio::spawn(connection);
        Ok(client)
    }
}

/// A server, from its start to its end: an instance that is back has another.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) address: String,
    started: String,
}

/// A row that a server said is committed.
struct Acknowledged {
    id: i64,
    server: Rc<Server>,
    at: Moment,
}

/// The clients, and what they remember.
pub(super) struct Load<'a> {
    database: &'a Database,
    last: Cell<i64>,
    stopped: Cell<bool>,
    acknowledged: RefCell<Vec<Acknowledged>>,
    unanswered: RefCell<Vec<i64>>,
}

impl<'a> Load<'a> {
    pub(super) fn of(database: &'a Database) -> Self {
        Self {
            database,
            last: Cell::default(),
            stopped: Cell::default(),
            acknowledged: RefCell::default(),
            unanswered: RefCell::default(),
        }
    }

    /// Writes until it is stopped.
    pub(super) async fn run(&self) {
        futures::future::join_all((0..CLIENTS).map(|_| self.client())).await;
    }

    /// Every client finishes the row that it writes.
    pub(super) fn stop(&self) {
        self.stopped.set(true);
    }

    /// The number of rows that were acknowledged.
    pub(super) fn count(&self) -> usize {
        self.acknowledged.borrow().len()
    }

    /// The number as a line, which says so where it has not grown for a while.
    pub(super) fn counter(&self) -> String {
        let acknowledged = self.acknowledged.borrow();
        let still = acknowledged.last().map(|one| Clock::real().moment() - one.at).unwrap_or_default();
        match still >= STILL {
            true => {
                format!("{} rows are acknowledged; none for {:.1} s", acknowledged.len(), still.as_secs_f64())
            }
            false => format!("{} rows are acknowledged", acknowledged.len()),
        }
    }

    /// The server that acknowledged the last row.
    pub(super) fn last_server(&self) -> Option<Rc<Server>> {
        self.acknowledged.borrow().last().map(|one| one.server.clone())
    }

    /// When a server acknowledged its last row.
    pub(super) fn last_by(&self, server: &Server) -> Option<Moment> {
        self.acknowledged.borrow().iter().rfind(|one| *one.server == *server).map(|one| one.at)
    }

    /// Which other server acknowledged a row first, and when.
    pub(super) fn first_by_other(&self, server: &Server) -> Option<(Rc<Server>, Moment)> {
        let acknowledged = self.acknowledged.borrow();
        acknowledged.iter().find(|one| *one.server != *server).map(|one| (one.server.clone(), one.at))
    }

    /// What was acknowledged, and what was sent and never answered.
    pub(super) fn into_rows(self) -> (Vec<i64>, Vec<i64>) {
        let acknowledged = self.acknowledged.into_inner();
        (acknowledged.into_iter().map(|one| one.id).collect(), self.unanswered.into_inner())
    }

    async fn client(&self) {
        let clock = Clock::real();
        while !self.stopped.get() {
            // While there is no primary nobody answers: a client tries again.
            let connected = async {
                let client = self.database.connect().await?;
                let who = "SELECT host(inet_server_addr()), pg_postmaster_start_time()::text";
                let row = client.query_one(who, &[]).await?;
                anyhow::Ok((client, Server { address: row.try_get(0)?, started: row.try_get(1)? }))
            };
            if let Ok((client, server)) = connected.await {
                self.write(&clock, &client, Rc::new(server)).await;
            }
            clock.sleep(PAUSE).await;
        }
    }

    /// Writes rows as long as the connection lasts.
    async fn write(&self, clock: &Clock, client: &Client, server: Rc<Server>) {
        while !self.stopped.get() {
            let id = self.last.get() + 1;
            self.last.set(id);
            let insert = async { client.execute("INSERT INTO orders (id) VALUES ($1)", &[&id]).await };
            match clock.timeout(PATIENCE, insert).await {
                Ok(Ok(_)) => {
                    let server = server.clone();
                    let at = clock.moment();
                    self.acknowledged.borrow_mut().push(Acknowledged { id, server, at });
                }
                // An error of a server that goes on, such as that it is read-only: the row is not there.
                Ok(Err(error)) if error.as_db_error().is_some_and(|said| said.code().code() < "57") => return,
                // Whether it was committed, nobody knows.
                _ => {
                    self.unanswered.borrow_mut().push(id);
                    return;
                }
            }
            clock.sleep(BETWEEN).await;
        }
    }
}

//! The server's configuration files, as text.

use crate::leadership::Synchronous;
use crate::programs;
use crate::settings::{PORT, REPLICATOR, Settings};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a configuration follows from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted<'a> {
    /// What the user asks for.
    pub parameters: &'a BTreeMap<String, String>,
    /// How the primary to follow is reached, if any.
    pub follow: Option<String>,
    /// Which copies acknowledge commits, should this server be a primary.
    pub synchronous: &'a Synchronous,
    /// What some parameters must be at least.
    pub floors: BTreeMap<String, u64>,
    /// How it uses TLS, if it does.
    pub tls: Option<&'a Tls>,
    /// Whether clients are kept out.
    pub closed: bool,
    /// How much of the write-ahead log a backup that is slow may keep, in MB.
    pub slots_keep: u64,
}

/// How a server uses TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Where its certificate is.
    pub directory: PathBuf,
    /// Whether replicas connect by TLS alone, and only to who proves to be the one they want.
    pub replicas: bool,
    /// Whether clients connect by TLS alone.
    pub clients: bool,
}

/// The certificate, its key, and which ones to trust: as the Secret has them, and the server.
pub const TLS_FILES: [(&str, &str); 3] =
    [("tls.crt", "server.crt"), ("tls.key", "server.key"), ("ca.crt", "ca.crt")];

/// A setting that means nothing to the server: a new connection that has it came after clients were kept out.
pub const CLOSED: &str = "sampledb.closed";

/// `postgresql.conf`.
pub fn server(settings: &Settings, wanted: &Wanted<'_>) -> String {
    let mut lines = BTreeMap::from([
        ("cluster_name", settings.instance.clone()),
        ("hot_standby", "on".to_owned()),
        ("listen_addresses", "*".to_owned()),
        ("log_destination", "stderr".to_owned()),
        ("logging_collector", "off".to_owned()),
        ("password_encryption", "scram-sha-256".to_owned()),
        ("port", PORT.to_string()),
        ("synchronous_standby_names", names(wanted.synchronous)),
        ("unix_socket_directories", settings.sockets.display().to_string()),
        // What pg_rewind needs, beside checksums.
        ("wal_log_hints", "on".to_owned()),
        ("wal_level", "replica".to_owned()),
    ]);
    // What a user may set otherwise.
    for (name, value) in [
        // PostgreSQL's own defaults, always written out: a standby may need more (see the floors), and where a line went away
        // with its promotion, the server would ask for a restart although nothing changes.
        ("max_connections", "100"),
        ("max_worker_processes", "8"),
        ("max_prepared_transactions", "0"),
        ("max_locks_per_transaction", "64"),
        ("max_wal_senders", "20"),
        ("max_replication_slots", "20"),
        // So that a replica that was away for a while need not be cloned again.
        ("wal_keep_size", "512MB"),
        ("wal_receiver_timeout", "5s"),
        ("wal_receiver_status_interval", "1s"),
        ("wal_retrieve_retry_interval", "500ms"),
        ("wal_sender_timeout", "10s"),
        // A client whose host is gone does not hold its locks for hours.
        ("tcp_keepalives_idle", "30"),
        ("tcp_keepalives_interval", "10"),
        ("tcp_keepalives_count", "3"),
    ] {
        if !wanted.parameters.contains_key(name) {
            lines.insert(name, value.to_owned());
        }
    }
    if !wanted.parameters.contains_key("max_slot_wal_keep_size") {
        // A backup that hangs fills no volume: it fails.
        lines.insert("max_slot_wal_keep_size", format!("{}MB", wanted.slots_keep));
    }
    for (name, floor) in &wanted.floors {
        let given = lines.get(name.as_str()).or_else(|| wanted.parameters.get(name));
        if given.and_then(|value| value.parse::<u64>().ok()).is_none_or(|value| value < *floor) {
            lines.insert(name, floor.to_string());
        }
    }
    lines.insert("primary_conninfo", wanted.follow.clone().unwrap_or_default());
    if let Some(tls) = wanted.tls {
        let file = |name: &str| tls.directory.join(name).display().to_string();
        lines.insert("ssl", "on".to_owned());
        lines.insert("ssl_cert_file", file("server.crt"));
        lines.insert("ssl_key_file", file("server.key"));
    }
    lines.insert("recovery_target_timeline", "latest".to_owned());
    if wanted.closed {
        lines.insert(CLOSED, "on".to_owned());
    }
    let mut text = String::from("# Written by the agent; changes are overwritten.\n");
    let given = wanted.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    // The operator's own come last: the last one of a name counts.
    for (name, value) in given.chain(lines.iter().map(|(name, value)| (*name, value.as_str()))) {
        let _ = writeln!(text, "{name} = {}", quoted(value));
    }
    text
}

/// `synchronous_standby_names`. Where none of the clones may acknowledge, nothing is acknowledged.
pub fn names(synchronous: &Synchronous) -> String {
    if synchronous.quorum == 0 {
        return String::new();
    }
    let clones: Vec<&str> = synchronous.clones.iter().map(String::as_str).collect();
    let clones = if clones.is_empty() { "nobody".to_owned() } else { clones.join(", ") };
    format!("ANY {} ({clones})", synchronous.quorum)
}

/// How a replica, and the programs that copy data, reach a primary.
pub fn conninfo(host: &str, application: &str, passfile: &Path, tls: Option<&Tls>) -> String {
    let ssl = match tls.filter(|tls| tls.replicas) {
        Some(tls) => format!("sslmode=verify-full sslrootcert={}", tls.directory.join("ca.crt").display()),
        None => "sslmode=prefer".to_owned(),
    };
    format!(
        "host={host} port={PORT} user={REPLICATOR} dbname=postgres application_name={application} passfile={} \
         {ssl} connect_timeout=5 keepalives_idle=5 keepalives_interval=2 keepalives_count=3",
        passfile.display()
    )
}

/// `pg_hba.conf`: the agent is the superuser by the socket, and nobody is over the network. Where clients are kept out, replicas and
/// backups are not.
pub fn hba(tls: Option<&Tls>, closed: bool) -> String {
    let host = |by_tls: bool| if by_tls { "hostssl" } else { "host   " };
    let (replicas, clients) =
        (host(tls.is_some_and(|tls| tls.replicas)), host(tls.is_some_and(|tls| tls.clients)));
    let (clients, method) = if closed { ("host   ", "reject") } else { (clients, "scram-sha-256") };
    format!(
        "# Written by the agent; changes are overwritten.\n\
         local   all          postgres                     peer map=agent\n\
         local   all          all                          {method}\n\
         host    all          postgres      all            reject\n\
         {replicas} replication  {REPLICATOR}    all            scram-sha-256\n\
         {replicas} postgres     {REPLICATOR}    all            scram-sha-256\n\
         host    all          {REPLICATOR}    all            reject\n\
         {clients} all          all           all            {method}\n"
    )
}

/// The name of the user that the agent runs as.
pub fn user() -> String {
    let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
    user.map_or_else(|| "postgres".to_owned(), |user| user.name)
}

/// `pg_ident.conf`: the user that the agent runs as is the superuser.
pub fn ident(user: &str) -> String {
    format!("# Written by the agent; changes are overwritten.\nagent {} postgres\n", quoted_word(user))
}

/// The password file of libpq.
pub fn passfile(password: &str) -> String {
    programs::passfile_line(REPLICATOR, password)
}

fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

fn quoted_word(word: &str) -> String {
    format!("\"{}\"", word.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings {
            database: "db".into(),
            namespace: "shop".into(),
            instance: "db-1".into(),
            pod_uid: "u".into(),
            service: "db-instances".into(),
            create: "app".into(),
            owner: "app".into(),
            volume: "/v".into(),
            sockets: "/s".into(),
            credentials: "/c".into(),
            tls: "/t".into(),
        }
    }

    #[test]
    fn the_operators_parameters_come_last_and_values_are_quoted() {
        let parameters = BTreeMap::from([
            ("work_mem".to_owned(), "8MB".to_owned()),
            ("wal_keep_size".to_owned(), "1GB".to_owned()),
            ("search_path".to_owned(), "'a' \\".to_owned()),
        ]);
        let synchronous = Synchronous { quorum: 1, clones: ["b".to_owned(), "a".to_owned()].into() };
        let follow = conninfo(&settings().host("db-0"), "c1", Path::new("/v/passfile"), None);
        let wanted = Wanted {
            parameters: &parameters,
            follow: Some(follow),
            synchronous: &synchronous,
            floors: BTreeMap::new(),
            tls: None,
            closed: false,
            slots_keep: 256,
        };
        let text = server(&settings(), &wanted);
        assert!(text.contains("wal_keep_size = '1GB'\n") && !text.contains("512MB"), "{text}");
        assert!(text.contains("search_path = '''a'' \\\\'\n"), "{text}");
        assert!(text.contains("synchronous_standby_names = 'ANY 1 (a, b)'\n"), "{text}");
        assert!(text.contains("host=db-0.db-instances.shop.svc port=5432 user=replicator"), "{text}");
        assert!(text.contains("max_slot_wal_keep_size = '256MB'\n"), "{text}");
        assert!(text.find("work_mem") < text.find("wal_level"), "{text}");
    }

    /// The configuration of a server that follows nobody, with these floors.
    fn with_floors(parameters: &BTreeMap<String, String>, floors: &[(&str, u64)]) -> String {
        let wanted = Wanted {
            parameters,
            follow: None,
            synchronous: &Synchronous::default(),
            tls: None,
            closed: false,
            slots_keep: 256,
            floors: floors.iter().map(|(name, floor)| ((*name).to_owned(), *floor)).collect(),
        };
        server(&settings(), &wanted)
    }

    #[test]
    fn a_standby_has_no_less_than_its_primary_had() {
        let parameters = BTreeMap::from([("max_connections".to_owned(), "50".to_owned())]);
        let text = |floor: u64| with_floors(&parameters, &[("max_connections", floor)]);
        assert!(text(100).contains("\nmax_connections = '100'\n"), "{}", text(100));
        assert!(!text(40).contains("max_connections = '40'"));
    }

    /// PostgreSQL takes a line that is gone for a change, and asks for a restart.
    #[test]
    fn a_promotion_takes_no_line_away() {
        let names = |floors: &[(&str, u64)]| -> Vec<String> {
            let text = with_floors(&BTreeMap::new(), floors);
            text.lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())).collect()
        };
        let floors: Vec<(&str, u64)> =
            crate::parameters::NOT_LOWER_ON_STANDBYS.iter().map(|(name, _)| (*name, 1000)).collect();
        assert_eq!(names(&floors), names(&[]));
    }

    #[test]
    fn tls_is_demanded_of_whom_it_is_to_be_demanded() {
        let tls = |replicas, clients| Tls { directory: "/v/tls".into(), replicas, clients };
        let lines = |tls: Option<&Tls>| -> Vec<String> {
            let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
            hba(tls, false).lines().filter(|line| line.starts_with("host")).map(words).collect()
        };
        let (replication, clients) = ("replication replicator", "all all");
        assert!(lines(None).contains(&format!("host {replication}")));
        let both = lines(Some(&tls(true, true)));
        assert!(both.contains(&format!("hostssl {replication}")), "{both:?}");
        assert!(both.contains(&format!("hostssl {clients}")), "{both:?}");
        let one = lines(Some(&tls(true, false)));
        assert!(one.contains(&format!("host {clients}")), "{one:?}");
        let info = conninfo("h", "c", Path::new("/p"), Some(&tls(true, false)));
        assert!(info.contains("sslmode=verify-full sslrootcert=/v/tls/ca.crt"), "{info}");
        assert!(conninfo("h", "c", Path::new("/p"), Some(&tls(false, false))).contains("sslmode=prefer"));
    }

    #[test]
    fn where_clients_are_kept_out_replicas_and_the_agent_are_not() {
        let closed = hba(None, true);
        let rule = |words: &str| {
            let of = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ").starts_with(words);
            closed
                .lines()
                .find(of)
                .and_then(|line| line.split_whitespace().nth(words.split(' ').count()).map(str::to_owned))
        };
        assert_eq!(rule("local all postgres").as_deref(), Some("peer"));
        assert_eq!(rule("local all all").as_deref(), Some("reject"));
        assert_eq!(rule("host replication replicator all").as_deref(), Some("scram-sha-256"));
        assert_eq!(rule("host all all all").as_deref(), Some("reject"));
    }

    #[test]
    fn without_clones_nobody_acknowledges() {
        assert_eq!(names(&Synchronous { quorum: 1, clones: Default::default() }), "ANY 1 (nobody)");
        assert_eq!(names(&Synchronous::default()), "");
    }

    #[test]
    fn a_password_file_escapes_what_separates() {
        assert_eq!(passfile("a:b\\c"), "*:*:*:replicator:a\\:b\\\\c\n");
    }
}

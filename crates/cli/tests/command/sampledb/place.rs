//! A cluster with the SampleDB operator, on real PostgreSQL servers: pods are processes, and what they hold is in volumes.

use crate::process::{Cluster, windlass};
use crate::process_pods::{World, cannot_run};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use kube::api::{Api, ListParams, LogParams, Patch, PatchParams, PostParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sampledb_operator::api::v1alpha1::{
    Role, SampleDB, SampleDBArchive, SampleDBBackup, SampleDBInstance, SampleDBRestore,
};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use windlass::Manager;
use windlass_clock::Clock;
use windlass_harness::Reference;

/// The image that brings the agent.
const AGENT: &str = "sampledb-operator:test";

/// The variable that names an archive of that image, as `make image-sampledb` makes it; without it, the agent that was built for
/// tests.
const IMAGE: &str = "WINDLASS_SAMPLEDB_IMAGE";

/// A cluster with the operator.
pub(super) struct Place {
    pub(super) world: World,
    kubernetes: Option<Kubernetes>,
    operator: Option<Operator>,
    _folder: tempfile::TempDir,
}

/// Where pods are.
enum Kubernetes {
    Embedded(Cluster),
    /// An embedded control plane, and a node that joined it as a process of its own.
    Apart {
        cluster: Cluster,
        node: Node,
    },
    /// The reference, and our node that joined it.
    Reference {
        reference: Box<Reference>,
        node: Node,
    },
}

/// An operator, until this is dropped.
pub(super) struct Operator(tokio::task::JoinHandle<windlass::Result<()>>);

impl Operator {
    fn start(world: &World) -> Self {
        let manager = Manager::new(world.client.clone(), Clock::real());
        let manager = sampledb_operator::operator(manager, AGENT);
        Self(tokio::spawn(manager.run_until(std::future::pending())))
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A node that joined, until this is dropped.
struct Node(Child);

impl Node {
    fn joining(kubeconfig: &Path, config: &Path) -> Self {
        let mut command = windlass(&["node", "process", "--kubeconfig"]);
        command.arg(kubeconfig).env("XDG_CONFIG_HOME", config);
        let mut node = Self(command.stdout(Stdio::piped()).spawn().unwrap());
        let mut joined = String::new();
        BufReader::new(node.0.stdout.take().unwrap()).read_line(&mut joined).unwrap();
        assert!(joined.starts_with("joined: "), "{joined:?}");
        node
    }

    /// Ends it with its pods.
    fn end(&mut self) -> bool {
        let id = Pid::from_raw(self.0.id().try_into().unwrap());
        kill(id, Signal::SIGTERM).is_ok() && self.0.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.end();
        }
    }
}

impl Kubernetes {
    fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Embedded(cluster) | Self::Apart { cluster, .. } => cluster.kubeconfig(),
            Self::Reference { reference, .. } => reference.kubeconfig(),
        }
    }

    /// Ends it with its pods, which would outlive it if it was killed.
    fn end(self) -> bool {
        match self {
            Self::Embedded(cluster) => cluster.end(Signal::SIGTERM).success(),
            Self::Apart { cluster, mut node } => {
                let ended = node.end();
                cluster.end(Signal::SIGTERM).success() && ended
            }
            Self::Reference { mut node, .. } => node.end(),
        }
    }
}

/// The directory with the agent's program alone, which the recipe of its image shows.
fn agent_image(folder: &Path) -> PathBuf {
    let programs = folder.join("programs");
    fs::create_dir_all(&programs).unwrap();
    let agent = Path::new(env!("CARGO_BIN_EXE_windlass")).with_file_name("sampledb-agent");
    fs::copy(&agent, programs.join("sampledb-agent"))
        .unwrap_or_else(|error| panic!("{} (cargo build --workspace): {error}", agent.display()));
    let writer = agent.with_file_name("examples").join("writer");
    fs::copy(&writer, programs.join("writer"))
        .unwrap_or_else(|error| panic!("{} (cargo test --workspace): {error}", writer.display()));
    programs
}

/// A folder with the recipes of the operator's images, at the place for configuration.
fn folder_with_recipes(postgres: Option<&Path>, locales: Option<&Path>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let programs = agent_image(folder.path());
    let config = folder.path().join("config");
    fs::create_dir_all(config.join("windlass")).unwrap();
    let operator = match std::env::var_os(IMAGE) {
        Some(archive) => json!({ "root": fs::canonicalize(archive).unwrap() }),
        None => json!({ "programs": [&programs] }),
    };
    let mut recipe = json!({"images": {
        "sampledb-operator": operator,
        "sampledb-writer": {"programs": [&programs]},
    }});
    if let Some(versions) = postgres {
        recipe["images"]["postgres"] = json!({
            "needs": ["postgres", "initdb"],
            "programs": [versions.join("*/bin")],
            "version": ["postgres", "--version"],
            "shows": [versions],
            "environment": {"LANG": "C.UTF-8"},
            "users": {"postgres": {"number": 999, "home": "/var/lib/postgresql"}},
        });
        if let Some(locales) = locales {
            recipe["images"]["postgres"]["shows"] = json!([versions, locales]);
            recipe["images"]["postgres"]["environment"]["LOCPATH"] = json!(locales);
        }
    }
    fs::write(config.join("windlass/recipes.yaml"), recipe.to_string()).unwrap();
    (folder, config)
}

impl Place {
    pub(super) async fn start() -> Self {
        Self::start_with(None, None).await
    }

    /// With servers of the versions in a folder, each in a folder of its own, and with locales of a folder.
    pub(super) async fn start_with(postgres: Option<&Path>, locales: Option<&Path>) -> Self {
        let (folder, config) = folder_with_recipes(postgres, locales);
        let mut command = windlass(&["cluster", "up", "--nodes", "process=1"]);
        command.env("XDG_RUNTIME_DIR", folder.path()).env("XDG_CONFIG_HOME", &config);
        let cluster = Cluster::of(command);
        let world = World::of(&cluster).await;
        Self::with(world, Kubernetes::Embedded(cluster), folder).await
    }

    /// With a node that goes on when the control plane does not.
    pub(super) async fn with_node_apart() -> Self {
        let (folder, config) = folder_with_recipes(None, None);
        let mut command = windlass(&["cluster", "up", "--nodes", "simulated=0"]);
        command.env("XDG_RUNTIME_DIR", folder.path());
        let cluster = Cluster::of(command);
        let world = World::of(&cluster).await;
        let node = Node::joining(&cluster.kubeconfig(), &config);
        Self::with(world, Kubernetes::Apart { cluster, node }, folder).await
    }

    /// Stops the control plane, or lets it go on: nobody answers meanwhile.
    pub(super) fn freeze_control_plane(&self, frozen: bool) {
        let Some(Kubernetes::Apart { cluster, .. }) = &self.kubernetes else {
            panic!("there is no node apart")
        };
        cluster.signal(if frozen { Signal::SIGSTOP } else { Signal::SIGCONT });
    }

    /// The operator is killed.
    pub(super) fn stop_operator(&mut self) {
        self.operator.take();
    }

    /// It is there again.
    pub(super) fn start_operator(&mut self) {
        self.operator = Some(Operator::start(&self.world));
    }

    /// A second operator, beside the first.
    pub(super) fn start_another_operator(&self) -> Operator {
        Operator::start(&self.world)
    }

    /// On the reference with our node, if it is built and wanted.
    pub(super) async fn on_the_reference() -> Option<Self> {
        crate::envtest::reference()?;
        let reference = Reference::builder().controllers().start().await.unwrap();
        let world = World { client: reference.client().await.unwrap(), clock: Clock::real() };
        let (folder, config) = folder_with_recipes(None, None);
        let node = Node::joining(&reference.kubeconfig(), &config);
        let class: StorageClass = serde_json::from_value(json!({
            "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "windlass.dev/local", "volumeBindingMode": "WaitForFirstConsumer", "allowVolumeExpansion": true,
        }))
        .unwrap();
        Api::all(world.client.clone()).create(&PostParams::default(), &class).await.unwrap();
        let kubernetes = Kubernetes::Reference { reference: Box::new(reference), node };
        Some(Self::with(world, kubernetes, folder).await)
    }

    /// With the operator.
    async fn with(world: World, kubernetes: Kubernetes, folder: tempfile::TempDir) -> Self {
        world.install::<SampleDB>().await;
        world.install::<SampleDBInstance>().await;
        world.install::<SampleDBArchive>().await;
        world.install::<SampleDBBackup>().await;
        world.install::<SampleDBRestore>().await;
        let operator = Operator::start(&world);
        Self { world, kubernetes: Some(kubernetes), operator: Some(operator), _folder: folder }
    }

    pub(super) async fn create(&self, name: &str, spec: Value) {
        let mut whole = json!({"version": "15", "storage": {"size": "1Gi"}, "leaseDurationSeconds": 5});
        for (field, value) in spec.as_object().unwrap() {
            whole[field] = value.clone();
        }
        let database: SampleDB = serde_json::from_value(json!({
            "apiVersion": "db.windlass.dev/v1alpha1", "kind": "SampleDB", "metadata": {"name": name}, "spec": whole,
        }))
        .unwrap();
        self.world.api().create(&PostParams::default(), &database).await.unwrap();
    }

    /// Waits until one of its conditions is so, for this reason.
    pub(super) async fn has_condition(&self, name: &str, condition: &str, status: &str, reason: &str) {
        let has = || async {
            let database = self.world.api::<SampleDB>().get(name).await.unwrap();
            let conditions = database.status.unwrap_or_default().conditions;
            conditions.iter().any(|one| {
                one.type_ == condition
                    && one.status == status
                    && one.reason == reason
                    && one.observed_generation == database.metadata.generation
            })
        };
        self.until(name, &format!("{condition} is {status}: {reason}"), has).await;
    }

    /// Waits until every instance of it is ready.
    pub(super) async fn is_ready(&self, name: &str) {
        self.until(name, "is ready", || self.is_ready_now(name)).await;
    }

    /// Whether every instance of it is ready.
    pub(super) async fn is_ready_now(&self, name: &str) -> bool {
        let database = self.world.api::<SampleDB>().get(name).await.unwrap();
        let status = database.status.unwrap_or_default();
        let conditions = status.conditions.iter();
        conditions.into_iter().any(|one| {
            one.type_ == "Ready"
                && one.status == "True"
                && one.observed_generation == database.metadata.generation
        })
    }

    /// Looks until it holds; where it never does, the failure tells how everything is.
    pub(super) async fn until<F: Future<Output = bool>>(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn() -> F,
    ) {
        self.until_within(Duration::from_secs(120), name, what, holds).await;
    }

    /// As [`Place::until`], for what takes longer.
    pub(super) async fn until_within<F: Future<Output = bool>>(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        holds: impl Fn() -> F,
    ) {
        let looks = async {
            while !holds().await {
                self.world.clock.sleep(Duration::from_millis(50)).await;
            }
        };
        if self.world.clock.timeout(limit, looks).await.is_err() {
            panic!("{name}, {what}: {}", self.told(name).await);
        }
    }

    /// How everything is, for a failure.
    pub(super) async fn told(&self, name: &str) -> String {
        let database = self.world.api::<SampleDB>().get_opt(name).await.unwrap();
        let mut lines = vec![json!(database.map(|database| database.status)).to_string()];
        for backup in self.world.api::<SampleDBBackup>().list(&ListParams::default()).await.unwrap() {
            lines.push(format!("{}: {}", backup.name_any(), json!(backup.status)));
        }
        let lease = self.world.api::<Lease>().get_opt(name).await.unwrap();
        lines.push(json!(lease.map(|lease| (lease.metadata.annotations, lease.spec))).to_string());
        for account in self.world.api::<ServiceAccount>().list(&ListParams::default()).await.unwrap() {
            lines.push(json!(account.metadata).to_string());
        }
        for instance in self.world.api::<SampleDBInstance>().list(&ListParams::default()).await.unwrap() {
            lines.push(format!("{}: {}", instance.name_any(), json!(instance.status)));
        }
        for pod in self.world.api::<Pod>().list(&ListParams::default()).await.unwrap() {
            lines.push(format!("{}: {}", pod.name_any(), json!(pod.status)));
            let last = LogParams { tail_lines: Some(20_000), ..Default::default() };
            let said = self.world.api::<Pod>().logs(&pod.name_any(), &last).await;
            let said = said.unwrap_or_else(|error| error.to_string());
            // What hostile writers cause says nothing.
            let noise =
                ["read-only", "INSERT INTO", "reset by peer", "starting up", "ack ", "waiting for WAL"];
            let telling = said.lines().filter(|line| !noise.iter().any(|word| line.contains(word)));
            lines.extend(telling.map(str::to_owned));
        }
        lines.join("\n")
    }

    /// What `psql` prints, asked in a pod. As a client does, it tries again while it finds no server: a node learns of a
    /// Service's endpoints a moment after they were written.
    pub(super) async fn psql(&self, name: &str, sql: &str) -> String {
        let mut said = String::new();
        for _ in 0..20 {
            said = self.psql_once(name, sql).await;
            if !said.contains("Connection refused") {
                break;
            }
        }
        said
    }

    async fn psql_once(&self, name: &str, sql: &str) -> String {
        self.psql_with(name, sql, &json!([]), None).await
    }

    /// As [`Place::psql`], once, with these variables, and with what a Secret says whom to trust at `/trusted/ca.crt`.
    pub(super) async fn psql_with(
        &self,
        name: &str,
        sql: &str,
        variables: &Value,
        trusted: Option<&str>,
    ) -> String {
        let from = |variable: &str, key: &str| json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": format!("{name}-credentials"), "key": key}}});
        let mut env = vec![
            from("PGHOST", "host"),
            from("PGUSER", "username"),
            from("PGDATABASE", "database"),
            from("PGPASSWORD", "password"),
        ];
        env.extend(variables.as_array().into_iter().flatten().cloned());
        let (mut mounts, mut volumes) = (vec![], vec![]);
        if let Some(secret) = trusted {
            mounts.push(json!({"name": "trusted", "mountPath": "/trusted"}));
            let items = json!([{"key": "ca.crt", "path": "ca.crt"}]);
            volumes.push(json!({"name": "trusted", "secret": {"secretName": secret, "items": items}}));
        }
        let container = json!({
            "name": "psql", "image": "postgres",
            "command": ["psql", "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql],
            "env": env, "volumeMounts": mounts,
        });
        self.world.prints(json!({"containers": [container], "volumes": volumes})).await
    }

    /// What `windlass sampledb` prints.
    pub(super) async fn sampledb(&self, arguments: &[&str]) -> String {
        let output = self.sampledb_output(arguments).await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// How `windlass sampledb` ends.
    pub(super) async fn sampledb_output(&self, arguments: &[&str]) -> std::process::Output {
        let programs = Path::new(env!("CARGO_BIN_EXE_windlass")).parent().unwrap().to_owned();
        let mut command = windlass(&["sampledb"]);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::iter::once(programs).chain(std::env::split_paths(&path));
        command.args(arguments).env("PATH", std::env::join_paths(path).unwrap());
        command.env("KUBECONFIG", self.kubernetes.as_ref().unwrap().kubeconfig());
        tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
    }

    /// How a command of kubectl ends; none if it is not installed.
    pub(super) async fn kubectl(&self, arguments: &[&str]) -> Option<std::process::Output> {
        let mut command = Command::new("kubectl");
        command.args(arguments).env("KUBECONFIG", self.kubernetes.as_ref().unwrap().kubeconfig());
        tokio::task::spawn_blocking(move || command.output()).await.unwrap().ok()
    }

    /// The page of metrics of an instance's agent, by the API server.
    pub(super) async fn metrics(&self, instance: &str) -> String {
        let path = format!("/api/v1/namespaces/default/pods/{instance}:9187/proxy/metrics");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        self.world.client.request_text(request).await.unwrap()
    }

    pub(super) async fn change(&self, name: &str, spec: Value) {
        self.patch(name, json!({ "spec": spec })).await;
    }

    /// Changes anything of it.
    pub(super) async fn patch(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.world.api::<SampleDB>().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until the primary has a setting.
    pub(super) async fn until_setting(&self, name: &str, setting: &str, value: &str) {
        let mut said = String::new();
        for _ in 0..60 {
            said = self.psql(name, &format!("SHOW {setting}")).await;
            if said == value {
                return;
            }
        }
        panic!("{setting} is {said}, not {value}: {}", self.told(name).await);
    }

    /// Waits until an instance's agent says this of its server.
    pub(super) async fn until_role(&self, name: &str, instance: &str, role: Role) {
        let has = || async {
            let there = self.world.api::<SampleDBInstance>().get_opt(instance).await.unwrap();
            there.and_then(|one| one.status).is_some_and(|status| status.role == role)
        };
        self.until(name, &format!("{instance} is {role:?}"), has).await;
    }

    pub(super) async fn pod_uids(&self) -> Vec<Option<String>> {
        let labelled = ListParams::default().labels("app.kubernetes.io/name=sampledb");
        let pods = self.world.api::<Pod>().list(&labelled).await.unwrap();
        pods.into_iter().map(|pod| pod.metadata.uid).collect()
    }

    /// Whether an instance's container runs again after it ended.
    pub(super) async fn has_restarted(&self, instance: &str) -> bool {
        let pod = self.world.api::<Pod>().get(instance).await.unwrap();
        let containers = pod.status.and_then(|status| status.container_statuses).unwrap_or_default();
        containers.iter().any(|one| one.restart_count > 0 && one.ready)
    }

    /// The instance that the Lease names.
    pub(super) async fn lease_holder(&self, name: &str) -> Option<String> {
        self.world.api::<Lease>().get(name).await.unwrap().spec?.holder_identity
    }

    pub(super) async fn primary(&self, name: &str) -> Option<String> {
        let database = self.world.api::<SampleDB>().get(name).await.unwrap();
        database.status.and_then(|status| status.primary)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.operator.take();
        let ended = self.kubernetes.take().is_some_and(Kubernetes::end);
        assert!(std::thread::panicking() || ended);
    }
}

/// The first process of an instance's container, as the machine numbers it.
pub(super) fn first_process(instance: &str) -> Option<Pid> {
    process_of(instance, |arguments| arguments.ends_with(b"sampledb-agent\0run\0"))
}

/// The first process of the pod that upgrades an instance's data.
pub(super) fn upgrade_process(instance: &str) -> Option<Pid> {
    process_of(instance, |arguments| arguments.ends_with(b"sampledb-agent\0upgrade\0"))
}

/// The agent of an instance, below its watchdog.
pub(super) fn agent_process(instance: &str) -> Option<Pid> {
    process_of(instance, |arguments| arguments.ends_with(b"sampledb-agent\0work\0"))
}

/// The process of an archive.
pub(super) fn archive_process(archive: &str) -> Option<Pid> {
    let its_own = format!("SAMPLEDB_ARCHIVE={archive}");
    let found = |arguments: &[u8], variable: &[u8]| {
        arguments.ends_with(b"sampledb-agent\0archive\0") && variable == its_own.as_bytes()
    };
    processes(found).first().copied()
}

/// The first process of an instance's server.
pub(super) fn postmaster(instance: &str) -> Option<Pid> {
    process_of(instance, |arguments| arguments.starts_with(b"postgres\0-D\0"))
}

fn process_of(instance: &str, wanted: impl Fn(&[u8]) -> bool) -> Option<Pid> {
    let its_own = format!("SAMPLEDB_INSTANCE={instance}");
    let found = |arguments: &[u8], variable: &[u8]| wanted(arguments) && variable == its_own.as_bytes();
    processes(found).first().copied()
}

/// The processes that a process started.
pub(super) fn children(parent: Pid) -> Vec<Pid> {
    let listed = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|id| id.parse().ok()).map(Pid::from_raw).collect()
}

/// The agents and watchdogs of a database.
pub(super) fn agents(database: &str) -> Vec<u32> {
    let wanted = format!("SAMPLEDB_INSTANCE={database}-");
    let agent = |arguments: &[u8], variable: &[u8]| {
        let program = arguments.split(|byte| *byte == 0).next().unwrap_or_default();
        program.ends_with(b"sampledb-agent") && variable.starts_with(wanted.as_bytes())
    };
    processes(agent).into_iter().filter_map(|process| process.as_raw().try_into().ok()).collect()
}

/// The processes of which this holds for the arguments and one of the variables.
fn processes(wanted: impl Fn(&[u8], &[u8]) -> bool) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let arguments = read("cmdline");
        let environment = read("environ");
        let mut variables = environment.split(|byte| *byte == 0);
        if variables.any(|variable| wanted(&arguments, variable)) {
            found.push(Pid::from_raw(id));
        }
    }
    found
}

/// Why there is no server here to run.
pub(super) fn cannot_run_postgres() -> Option<String> {
    cannot_run("/usr/lib/postgresql/15/bin/postgres")
}

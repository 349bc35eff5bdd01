//! An operator's binary: `describe`, `capture`, `plan` and `why`, its flags, and how it stops.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::Duration;
use windlass::{Manager, Observed};
use windlass_harness::{Environment, Process, Suite, Target};
use windlass_tests::sample::vault::{decide, password_name};
use windlass_tests::sample::{self, Tenant, TenantSpec, Vault, VaultSpec};
use windlass_tests::targets;
use windlass_tests::waiting::until;

/// Set in the process that is the operator; `deaf` makes one that does not end when it is asked to.
const OPERATOR: &str = "WINDLASS_TEST_OPERATOR";

fn main() -> ExitCode {
    if let Ok(sort) = std::env::var(OPERATOR) {
        return operator(&sort);
    }
    Suite::on([targets::embedded_over_tcp(), Environment::reference()])
        .limit(Duration::from_secs(120))
        .test("a binary says what it watches, writes and needs", describes)
        .test("what was observed is captured, planned on, and replayed in a test", captures_and_plans)
        .test("why an object waits is told", tells_why)
        .test("flags, variables and a file are read, and mistakes named", is_told)
        .test("asked twice, it ends at once", ends_at_once)
        .run()
}

#[tokio::main]
async fn operator(sort: &str) -> ExitCode {
    let run = async {
        let manager = Manager::from_env()?;
        let manager = match sort {
            "deaf" => manager.task("deaf", |_| std::future::pending()),
            _ => manager,
        };
        sample::operator(manager).run().await
    };
    match run.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(7)
        }
    }
}

/// A namespace with the sample's kinds, and a binary that knows the way to it.
struct Scene {
    target: Target,
    namespace: String,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Scene {
    async fn of(target: Target) -> anyhow::Result<Self> {
        let namespace = target.namespace().await?;
        let kinds: Api<CustomResourceDefinition> = Api::all(target.client());
        for kind in sample::crds() {
            kinds.patch(&kind.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(&kind)).await?;
        }
        let tenants: Api<Tenant> = Api::namespaced(target.client(), &namespace);
        let vaults: Api<Vault> = Api::namespaced(target.client(), &namespace);
        until("the kinds are served", async || {
            let all = &ListParams::default();
            Ok(tenants.list(all).await.is_ok() && vaults.list(all).await.is_ok())
        })
        .await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = targets::kubeconfig(&target, folder.path())?;
        Ok(Self { target, namespace, folder, kubeconfig })
    }

    /// Asks the binary, and waits for its answer.
    async fn ask(&self, arguments: &[&str], input: &str) -> anyhow::Result<Output> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).env(OPERATOR, "plain").env("WINDLASS_KUBECONFIG", &self.kubeconfig);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let input = input.to_owned();
        tokio::task::spawn_blocking(move || {
            let mut child = command.spawn()?;
            let mut stdin = child.stdin.take().context("a pipe")?;
            // One that does not read it has its reasons.
            let _ = stdin.write_all(input.as_bytes());
            drop(stdin);
            Ok(child.wait_with_output()?)
        })
        .await?
    }

    /// What it answers, if it does.
    async fn answer(&self, arguments: &[&str], input: &str) -> anyhow::Result<String> {
        let output = self.ask(arguments, input).await?;
        ensure!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs it until dropped.
    fn start(&self, sort: &str, arguments: &[String]) -> anyhow::Result<Process> {
        let mut words = vec![
            format!("{OPERATOR}={sort}"),
            format!("WINDLASS_KUBECONFIG={}", self.kubeconfig.display()),
            "WINDLASS_HEALTH_PROBE_BIND_ADDRESS=0".to_owned(),
            std::env::current_exe()?.display().to_string(),
        ];
        words.extend(["--namespace".to_owned(), self.namespace.clone()]);
        words.extend_from_slice(arguments);
        Ok(Process::spawn("operator", Path::new("/usr/bin/env"), &words, &self.log())?)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("operator.log")
    }

    fn vaults(&self) -> Api<Vault> {
        Api::namespaced(self.target.client(), &self.namespace)
    }

    async fn make_vault(&self) -> anyhow::Result<String> {
        let vault = Vault::new("v", VaultSpec { shards: 2, region: None });
        self.vaults().create(&PostParams::default(), &vault).await?;
        Ok(format!("{}/v", self.namespace))
    }
}

async fn describes(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let described: Value = serde_json::from_str(&scene.answer(&["describe"], "").await?)?;
    let names: Vec<_> =
        described["controllers"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    ensure!(names == ["vault", "tenant"], "{described:#}");
    ensure!(described["controllers"][1]["watches"][0]["kind"] == "Vault", "{described:#}");
    let verbs = |group: &str, resource: &str| {
        let mut rules = described["rules"].as_array().into_iter().flatten();
        let rule = rules.find(|rule| rule["apiGroups"][0] == group && rule["resources"][0] == resource);
        rule.map(|rule| rule["verbs"].clone()).unwrap_or_default()
    };
    ensure!(verbs("", "secrets") == json!(["create", "delete", "get", "list", "patch", "watch"]));
    ensure!(verbs("sample.windlass.dev", "vaults") == json!(["get", "list", "patch", "watch"]));
    ensure!(verbs("sample.windlass.dev", "vaults/status") == json!(["patch"]));
    ensure!(verbs("", "events") == json!(["create", "patch"]) && verbs("", "pods").is_null());
    Ok(())
}

async fn captures_and_plans(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let name = scene.make_vault().await?;
    let capture = scene.answer(&["capture", "vaults", &name], "").await?;
    let (vault, observed) = Observed::from_capture::<Vault>(&capture).map_err(anyhow::Error::msg)?;
    ensure!(decide(&vault, &observed)?.waits().len() == 1, "a replayed decision waits for the password");
    let plan = scene.answer(&["plan"], &capture).await?;
    ensure!(plan.contains(&format!("Vault {name} by vault: waiting, 1 step")), "{plan}");
    ensure!(
        plan.contains("create once Secret v-password (OpensTheVault") && plan.contains("is created"),
        "{plan}"
    );
    let operator = scene.start("plain", &["--metrics-bind-address=0".to_owned()])?;
    until("the vault is open", async || {
        Ok(scene.vaults().get("v").await?.status.is_some_and(|status| status.open))
    })
    .await
    .with_context(|| operator.last_words())?;
    drop(operator);
    let region = json!({"spec": {"region": "south"}});
    scene.vaults().patch("v", &PatchParams::default(), &Patch::Merge(region)).await?;
    let capture = scene.answer(&["capture", "Vault", "v", "-n", &scene.namespace], "").await?;
    let plan = scene.answer(&["plan"], &capture).await?;
    ensure!(plan.contains("Secret v-password: stays as it is"), "{plan}");
    ensure!(plan.contains("    ~ data.region: \"anywhere\" -> \"south\""), "{plan}");
    // The password is in no plan, and in a capture only if it is asked for.
    let secrets: Api<Secret> = Api::namespaced(scene.target.client(), &scene.namespace);
    let data = secrets.get(&password_name(&vault)).await?.data.context("a password")?;
    let password = serde_json::to_value(&data["password"])?;
    let password = password.as_str().context("bytes are written as a text")?;
    ensure!(!capture.contains(password) && !plan.contains(password), "secrets are told of");
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("capture.json");
    let path = file.to_str().context("a path in UTF-8")?;
    scene
        .answer(&["capture", "Vault", "v", "-n", &scene.namespace, "--with-secrets", "--file", path], "")
        .await?;
    ensure!(std::fs::read_to_string(&file)?.contains(password), "what was asked for is there");
    let mode = std::fs::metadata(&file)?.permissions().mode() & 0o777;
    ensure!(mode == 0o600, "others can read it: {mode:o}");
    let (vault, observed) = Observed::from_capture::<Vault>(&capture).map_err(anyhow::Error::msg)?;
    ensure!(decide(&vault, &observed)?.is_complete(), "a redacted capture replays");
    let plans: Value = serde_json::from_str(&scene.answer(&["plan", "-o", "json"], &capture).await?)?;
    let plan = &plans[0];
    ensure!(
        plan["complete"] == true && plan["plan"]["steps"].as_array().is_some_and(|steps| steps.len() == 3)
    );
    let missing = scene.ask(&["capture", "Vault", "none", "-n", &scene.namespace], "").await?;
    ensure!(String::from_utf8_lossy(&missing.stderr).contains("there is no Vault"), "{missing:?}");
    let nonsense = scene.ask(&["plan"], "{}").await?;
    ensure!(String::from_utf8_lossy(&nonsense.stderr).contains("`object` is missing"), "{nonsense:?}");
    Ok(())
}

async fn tells_why(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let tenants: Api<Tenant> = Api::namespaced(scene.target.client(), &scene.namespace);
    let tenant = Tenant::new("t", TenantSpec { vault: "v".into(), quota: 1 });
    tenants.create(&PostParams::default(), &tenant).await?;
    // Free now; whoever takes it meanwhile makes the operator end, and the test says so.
    let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let at = format!("--metrics-bind-address={address}");
    let operator = scene.start("plain", std::slice::from_ref(&at))?;
    let why = ["why", "tenant", "t", "-n", &scene.namespace, &at];
    let mut said = String::new();
    for _ in 0..200 {
        said = scene.answer(&why, "").await?;
        // The operator knows first, and its status follows.
        if said.contains("tenant: waiting since ") && said.contains("Progressing is True") {
            break;
        }
        windlass_clock::Clock::real().sleep(Duration::from_millis(50)).await;
    }
    ensure!(said.contains("tenant: waiting since "), "{said}: {}", operator.last_words());
    ensure!(said.contains("Progressing is True since ") && said.contains("WaitsForTheVault"), "{said}");
    ensure!(said.contains("looks again when something changes"), "{said}");
    drop(operator);
    let said = scene.answer(&why, "").await?;
    ensure!(said.contains("Progressing is True") && said.contains("no operator is reached"), "{said}");
    let other = scene.ask(&["why", "Pod", "p"], "").await?;
    ensure!(String::from_utf8_lossy(&other.stderr).contains("it is for Vault, Tenant"), "{other:?}");
    Ok(())
}

async fn is_told(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let help = scene.answer(&["--help"], "").await?;
    ensure!(help.contains("--leader-elect") && help.contains("WINDLASS_LOG_FORMAT"), "{help}");
    let config = scene.folder.path().join("config.yaml");
    std::fs::write(&config, "log-format: json\nlog-levle: debug\n")?;
    let config = config.display().to_string();
    for (arguments, expected) in [
        (vec!["--nonsense"], "unexpected argument '--nonsense'".to_owned()),
        (vec!["--config", &config], format!("{config}, line 2: unknown option \"log-levle\"")),
        (vec!["--concurrency", "vlaut=2"], "there is no controller \"vlaut\"".to_owned()),
    ] {
        let said = scene.ask(&arguments, "").await?;
        ensure!(said.status.code() == Some(7), "{said:?}");
        ensure!(String::from_utf8_lossy(&said.stderr).contains(&expected), "{said:?}");
    }
    std::fs::write(&config, "log-format: json\nmetrics-bind-address: '0'\nleader-elect: true\n")?;
    let name = scene.make_vault().await?;
    let lease = format!("--leader-election-namespace={}", scene.namespace);
    let _operator = scene.start("plain", &["--config".to_owned(), config, lease])?;
    until("the vault's reconcile is logged as JSON", async || {
        let log = std::fs::read_to_string(scene.log()).unwrap_or_default();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut of_the_vault = lines.filter(|line| line["object"] == name.as_str());
        Ok(of_the_vault.any(|line| line["controller"] == "vault" && line["reconcile_id"].is_string()))
    })
    .await
}

async fn ends_at_once(target: Target) -> anyhow::Result<()> {
    let scene = Scene::of(target).await?;
    let operator = scene.start("deaf", &["--metrics-bind-address=0".to_owned()])?;
    let name = scene.make_vault().await?;
    until("it works", async || Ok(std::fs::read_to_string(scene.log())?.contains(&name))).await?;
    let id = Pid::from_raw(i32::try_from(operator.id())?);
    kill(id, Signal::SIGTERM)?;
    windlass_clock::Clock::real().sleep(Duration::from_millis(300)).await;
    ensure!(operator.exited().is_none(), "it did not wait for its task: {}", operator.last_words());
    kill(id, Signal::SIGINT)?;
    until("it ends", async || Ok(operator.exited().is_some())).await?;
    ensure!(std::fs::read_to_string(scene.log())?.contains("second signal"));
    Ok(())
}

//! Lives of pods, with real programs.

use super::fixture::{Fixture, Test, is_ready, status};
use anyhow::Context;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use serde_json::json;

pub(crate) const ALL: &[(&str, Test)] = &[
    ("a_pod_ends_by_its_exit_code_and_its_log_is_kept", |fixture| exit_code(fixture).boxed_local()),
    ("jobs_end_by_exit_codes", |fixture| jobs(fixture).boxed_local()),
    ("one_that_crashes_backs_off_and_remembers", |fixture| crashes(fixture).boxed_local()),
    ("containers_initialize_in_order_and_sidecars_end_last", |fixture| initializes(fixture).boxed_local()),
    ("a_deletion_runs_the_hook_asks_and_then_kills", |fixture| deletion(fixture).boxed_local()),
    ("probes_are_made", |fixture| probes(fixture).boxed_local()),
    ("what_cannot_start_says_why", |fixture| refusals(fixture).boxed_local()),
    ("a_killed_network_process_is_replaced", |fixture| network_killed(fixture).boxed_local()),
    ("a_node_that_restarts_finds_its_pods_again", |fixture| adopted(fixture).boxed_local()),
];

async fn exit_code(fixture: &Fixture) -> anyhow::Result<()> {
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo hello from $(hostname); exit 3"]},
    ]});
    let pod = fixture.run("ends", spec).await?;
    let ended = fixture.until_phase("ends", "Failed").await?;
    let terminated = status(&ended, "main").state.and_then(|state| state.terminated).unwrap_or_default();
    assert_eq!((terminated.exit_code, terminated.reason.as_deref()), (3, Some("Error")));
    assert_eq!(fixture.log(&pod, "main", 0)?, "hello from ends\n");
    for told in ["Pulled", "Created", "Started"] {
        fixture.until_told("ends", told).await?;
    }
    fixture.delete("ends").await?;
    fixture.until_gone("ends").await
}

async fn jobs(fixture: &Fixture) -> anyhow::Result<()> {
    let job = |name: &str, script: &str| {
        json!({"metadata": {"name": name}, "spec": {"backoffLimit": 0, "completions": 2, "parallelism": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "busybox", "command": ["sh", "-c", script]},
        ]}}}})
    };
    fixture.make::<Job>(job("good", "exit 0")).await?;
    fixture.make::<Job>(job("bad", "exit 1")).await?;
    let jobs: Api<Job> = Api::default_namespaced(fixture.client.clone());
    let holds = |job: &Job, of: &str| {
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == of && condition.status == "True")
    };
    fixture
        .eventually("both jobs end", async || {
            let (good, bad) = (jobs.get("good").await?, jobs.get("bad").await?);
            Ok(holds(&good, "Complete") && holds(&bad, "Failed"))
        })
        .await
}

async fn crashes(fixture: &Fixture) -> anyhow::Result<()> {
    let script = "echo run; echo because > /dev/termination-log; exit 7";
    let spec = json!({"containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script]}]});
    let pod = fixture.run("crashes", spec).await?;
    let backs_off = |pod: &k8s_openapi::api::core::v1::Pod| {
        let status = status(pod, "main");
        let waits = status.state.and_then(|state| state.waiting?.reason);
        status.restart_count == 1 && waits.as_deref() == Some("CrashLoopBackOff")
    };
    let seen = fixture.until("crashes", "backing off", backs_off).await?;
    let last = status(&seen, "main").last_state.and_then(|last| last.terminated).unwrap_or_default();
    assert_eq!((last.exit_code, last.message.as_deref()), (7, Some("because\n")));
    assert_eq!(
        (fixture.log(&pod, "main", 0)?, fixture.log(&pod, "main", 1)?),
        ("run\n".into(), "run\n".into())
    );
    fixture.until_told("crashes", "Back-off restarting failed container main").await?;
    fixture.delete("crashes").await?;
    fixture.until_gone("crashes").await
}

async fn initializes(fixture: &Fixture) -> anyhow::Result<()> {
    let mount = json!([{"name": "shared", "mountPath": "/shared"}]);
    let container = |name: &str, script: &str| json!({"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mount});
    let mut side = container(
        "side",
        "trap 'echo asked; exit 0' TERM; echo side >> /shared/order; while :; do sleep 0.05; done",
    );
    side["restartPolicy"] = json!("Always");
    let spec = json!({"restartPolicy": "Never", "volumes": [{"name": "shared", "emptyDir": {}}],
        "initContainers": [container("one", "echo one >> /shared/order"), side, container("two", "sleep 0.2; echo two >> /shared/order")],
        "containers": [container("main", "echo main >> /shared/order; cat /shared/order")]});
    let pod = fixture.run("order", spec).await?;
    fixture.until_phase("order", "Succeeded").await?;
    assert_eq!(fixture.log(&pod, "main", 0)?, "one\nside\ntwo\nmain\n");
    assert_eq!(fixture.log(&pod, "side", 0)?, "asked\n");
    Ok(())
}

async fn deletion(fixture: &Fixture) -> anyhow::Result<()> {
    let stubborn = "trap '' TERM; touch /out/ready; while :; do sleep 0.05; done";
    let folder = fixture.root().join("out");
    std::fs::create_dir_all(&folder)?;
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    let spec = json!({"terminationGracePeriodSeconds": 2,
    "volumes": [{"name": "out", "hostPath": {"path": folder, "type": "Directory"}}],
    "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", stubborn],
        "volumeMounts": [{"name": "out", "mountPath": "/out"}],
        "lifecycle": {
            "postStart": {"exec": {"command": ["sh", "-c", "echo begun > /out/begun"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /out/stopping"]}},
        }}]});
    fixture.run("stubborn", spec).await?;
    fixture.until_ready("stubborn").await?;
    fixture
        .eventually("it began", async || Ok(folder.join("begun").exists() && folder.join("ready").exists()))
        .await?;
    fixture.delete("stubborn").await?;
    fixture.until_told("stubborn", "Killing: Stopping container main").await?;
    fixture.until_gone("stubborn").await?;
    assert_eq!(std::fs::read_to_string(folder.join("stopping"))?, "stopping\n");
    Ok(())
}

async fn probes(fixture: &Fixture) -> anyhow::Result<()> {
    let serve =
        "mkdir -p /www; echo ok > /www/health; touch /tmp/ready; exec busybox httpd -f -p 8080 -h /www";
    let probe = |what: serde_json::Value| {
        let mut probe = json!({"periodSeconds": 1, "failureThreshold": 2});
        probe.as_object_mut().expect("it is one").extend(what.as_object().expect("it is one").clone());
        probe
    };
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", serve], "ports": [{"name": "http", "containerPort": 8080}],
            "startupProbe": probe(json!({"tcpSocket": {"port": 8080}, "failureThreshold": 30})),
            "livenessProbe": probe(json!({"httpGet": {"port": "http", "path": "/health"}})),
            "readinessProbe": probe(json!({"exec": {"command": ["test", "-e", "/tmp/ready"]}})),
        },
    ]});
    fixture.run("probed", spec).await?;
    fixture.until_ready("probed").await?;
    fixture.exec("probed", "main", "rm /tmp/ready").await?;
    fixture.until("probed", "unready", |pod| !super::fixture::is_ready(pod)).await?;
    fixture.until_told("probed", "Unhealthy: Readiness probe failed").await?;
    fixture.exec("probed", "main", "touch /tmp/ready").await?;
    fixture.until_ready("probed").await?;
    fixture.exec("probed", "main", "rm /www/health").await?;
    fixture.until("probed", "restarted", |pod| status(pod, "main").restart_count == 1).await?;
    fixture.until_told("probed", "Container main failed liveness probe, will be restarted").await?;
    fixture.until_told("probed", "HTTP probe failed with statuscode: 404").await?;
    fixture.until_ready("probed").await?;
    Ok(())
}

async fn refusals(fixture: &Fixture) -> anyhow::Result<()> {
    let waits = |reason: &'static str| {
        move |pod: &k8s_openapi::api::core::v1::Pod| {
            status(pod, "main").state.and_then(|state| state.waiting?.reason).as_deref() == Some(reason)
        }
    };
    let one = |image: &str, command: serde_json::Value| json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "command": command}]});
    fixture.run("unknown", one("example.com/nothing-of-the-sort:1", json!(["x"]))).await?;
    let unknown = fixture.until("unknown", "without an image", waits("ErrImagePull")).await?;
    let why = status(&unknown, "main").state.and_then(|state| state.waiting?.message).unwrap_or_default();
    let recipes = fixture.recipes().display().to_string();
    assert!(
        why.contains(&format!("add a recipe for \"example.com/nothing-of-the-sort\" to {recipes}")),
        "{why}"
    );
    fixture.until_told("unknown", "Failed to pull image \"example.com/nothing-of-the-sort:1\"").await?;
    fixture.run("absent", one("busybox", json!(["no-such-program"]))).await?;
    let failed = fixture.until_phase("absent", "Failed").await?;
    let ended = status(&failed, "main").state.and_then(|state| state.terminated).unwrap_or_default();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (127, Some("StartError")), "{ended:?}");
    let mut rootless = one("busybox", json!(["true"]));
    rootless["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 0});
    fixture.run("root", rootless).await?;
    let refused = fixture.until("root", "refused", waits("CreateContainerConfigError")).await?;
    let why = status(&refused, "main").state.and_then(|state| state.waiting?.message).unwrap_or_default();
    assert!(why.contains("container's runAsUser breaks non-root policy"), "{why}");
    // What is missing is waited for.
    let mut lacking = one("busybox", json!(["sh", "-c", "echo $WORD; cat /in/key"]));
    lacking["containers"][0]["env"] =
        json!([{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "later", "key": "key"}}}]);
    lacking["containers"][0]["volumeMounts"] = json!([{"name": "in", "mountPath": "/in"}]);
    lacking["volumes"] = json!([{"name": "in", "secret": {"secretName": "later"}}]);
    let pod = fixture.run("lacks", lacking).await?;
    fixture
        .until_told("lacks", "MountVolume.SetUp failed for volume \"in\" : secret \"later\" not found")
        .await?;
    let secret = json!({"metadata": {"name": "later"}, "stringData": {"key": "told\n"}});
    fixture.make::<k8s_openapi::api::core::v1::Secret>(secret).await?;
    fixture.until_phase("lacks", "Succeeded").await?;
    assert_eq!(fixture.log(&pod, "main", 0)?, "told\ntold\n");
    Ok(())
}

async fn adopted(fixture: &Fixture) -> anyhow::Result<()> {
    let sleeps = json!({"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "touch /tmp/ready; exec sleep 1000"],
            "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1}},
    ]});
    fixture.run("stays", sleeps.clone()).await?;
    fixture.run("goes", sleeps.clone()).await?;
    let stays = fixture.until_ready("stays").await?;
    let goes = fixture.until_ready("goes").await?;
    let shim = |pod: &k8s_openapi::api::core::v1::Pod| {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        std::fs::read_to_string(fixture.root().join("pods").join(uid).join("shim.json"))
    };
    let before = shim(&stays)?;
    fixture.stop_node();
    let force = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    fixture.pods().delete("goes", &force).await?;
    fixture.join().await?;
    let uid = goes.metadata.uid.clone().unwrap_or_default();
    fixture
        .eventually("the other is cleared", async || Ok(!fixture.root().join("pods").join(&uid).exists()))
        .await?;
    // What it finds out now, the new node found out.
    fixture.exec("stays", "main", "rm /tmp/ready").await?;
    fixture.until("stays", "unready", |pod| !super::fixture::is_ready(pod)).await?;
    fixture.exec("stays", "main", "touch /tmp/ready").await?;
    let after = fixture.until_ready("stays").await?;
    assert_eq!(
        (shim(&stays)?, status(&after, "main").restart_count),
        (before.clone(), 0),
        "it was not touched"
    );
    assert_eq!(
        stays.status.and_then(|status| status.pod_ip),
        after.status.as_ref().and_then(|status| status.pod_ip.clone())
    );
    // Its shim is killed: all in it dies, and is started again.
    let record: serde_json::Value = serde_json::from_str(&before)?;
    let pid = record["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)?;
    let again = fixture.until("stays", "restarted", |pod| status(pod, "main").restart_count == 1).await?;
    let last = status(&again, "main").last_state.and_then(|last| last.terminated).unwrap_or_default();
    assert_eq!(last.exit_code, 137);
    fixture.until_told("stays", "SandboxChanged").await?;
    fixture.until_ready("stays").await?;
    fixture.delete("stays").await?;
    fixture.until_gone("stays").await
}

/// The node says that it is not ready, its pods are given a network again, and names lead to them.
async fn network_killed(fixture: &Fixture) -> anyhow::Result<()> {
    let serve = "mkdir /www; echo here > /www/index.html; exec busybox httpd -f -p 8080 -h /www";
    let labels = json!({"app": "web"});
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8080}]}});
    fixture.make::<Service>(service).await?;
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", serve]});
    fixture
        .make::<Pod>(
            json!({"metadata": {"name": "web", "labels": labels}, "spec": {"containers": [container]}}),
        )
        .await?;
    let asks = "while :; do wget -q -O - http://web/ || echo nothing; sleep 0.2; done";
    let container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", asks]});
    let asking = fixture.run("asks", json!({"containers": [container]})).await?;
    fixture.until_ready("web").await?;
    fixture
        .eventually("the Service answers", async || {
            Ok(fixture.log(&asking, "main", 0).is_ok_and(|log| log.contains("here")))
        })
        .await?;
    let nodes: Api<Node> = Api::all(fixture.client.clone());
    let version = nodes.get("process-1").await?.metadata.resource_version.unwrap_or_default();
    let mut changes = nodes.watch(&WatchParams::default(), &version).await?.boxed();
    let network = fixture.network_pid().context("the node has a network")?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(network), nix::sys::signal::Signal::SIGKILL)?;
    let mut reasons = Vec::new();
    while !reasons.ends_with(&["KubeletNotReady".to_owned(), "KubeletReady".to_owned()]) {
        let change =
            windlass_clock::Clock::real().timeout(std::time::Duration::from_secs(60), changes.next()).await;
        let change =
            change.with_context(|| format!("the node said {reasons:?}"))?.context("the watch ended")??;
        let WatchEvent::Modified(node) = change else { continue };
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
        reasons.extend(ready.and_then(|ready| ready.reason).filter(|reason| reasons.last() != Some(reason)));
    }
    anyhow::ensure!(fixture.network_pid() != Some(network));
    let again = |pod: &Pod| status(pod, "main").restart_count > 0 && is_ready(pod);
    fixture.until("web", "ready again", again).await?;
    fixture.until("asks", "running again", again).await?;
    fixture
        .eventually("the Service answers again", async || {
            Ok(fixture.log(&asking, "main", 1).is_ok_and(|log| log.contains("here")))
        })
        .await
}

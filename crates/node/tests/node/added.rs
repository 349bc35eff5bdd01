//! Containers that are added to a pod that runs, as `kubectl debug` adds them.

use super::fixture::{Fixture, Test, is_ready, phase, status};
use anyhow::Context;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, ContainerStateTerminated, ContainerStatus, Pod};
use kube::ResourceExt;
use kube::api::{LogParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass_node::shim::Shim;

pub(crate) const ALL: &[(&str, Test)] = &[
    ("a_container_is_added_to_look_into_a_pod", |fixture| added(fixture).boxed_local()),
    ("one_that_was_added_is_started_once_and_ends_with_its_pod", |fixture| once(fixture).boxed_local()),
];

async fn add(fixture: &Fixture, pod: &str, container: Value) -> anyhow::Result<()> {
    let patch = Patch::Strategic(json!({"spec": {"ephemeralContainers": [container]}}));
    fixture.pods().patch_ephemeral_containers(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn one(name: &str, script: &str) -> Value {
    json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]})
}

fn sleeps() -> Value {
    json!({"terminationGracePeriodSeconds": 1, "volumes": [{"name": "shared", "emptyDir": {}}], "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo seen > /shared/x; exec sleep 1000"],
            "volumeMounts": [{"name": "shared", "mountPath": "/shared"}]},
    ]})
}

fn of(pod: &Pod, name: &str) -> ContainerStatus {
    let all = pod.status.iter().flat_map(|status| status.ephemeral_container_statuses.iter().flatten());
    all.into_iter().find(|status| status.name == name).cloned().unwrap_or_default()
}

fn runs(name: &'static str) -> impl Fn(&Pod) -> bool {
    move |pod| of(pod, name).state.is_some_and(|state| state.running.is_some())
}

fn ended(pod: &Pod, name: &str) -> Option<ContainerStateTerminated> {
    of(pod, name).state?.terminated
}

async fn added(fixture: &Fixture) -> anyhow::Result<()> {
    fixture.run("seen", sleeps()).await?;
    fixture.until_ready("seen").await?;
    fixture.make::<ConfigMap>(json!({"metadata": {"name": "words"}, "data": {"A": "1"}})).await?;
    let mut look = one("look", "echo $A; cat /in/x; ls /proc | grep -c '^[0-9]'; exit 4");
    look["envFrom"] = json!([{"configMapRef": {"name": "words"}}]);
    look["volumeMounts"] = json!([{"name": "shared", "mountPath": "/in"}]);
    add(fixture, "seen", look).await?;
    let seen = fixture.until("seen", "looked into", |pod| ended(pod, "look").is_some()).await?;
    let (state, status_of) = (ended(&seen, "look").unwrap_or_default(), of(&seen, "look"));
    assert_eq!((state.exit_code, state.reason.as_deref()), (4, Some("Error")));
    assert_eq!((status_of.restart_count, status_of.ready, status_of.started), (0, false, None));
    assert!(
        status_of.container_id.is_some() && !status_of.image_id.is_empty() && status_of.image == "busybox"
    );
    assert!(is_ready(&seen) && phase(&seen) == "Running" && status(&seen, "main").restart_count == 0);
    let log = fixture
        .pods()
        .logs("seen", &LogParams { container: Some("look".into()), ..Default::default() })
        .await?;
    // Its own shell, and what it runs: nothing of the others.
    assert!(
        log.starts_with("1\nseen\n") && log.lines().nth(2).is_some_and(|n| n.parse::<u8>().unwrap_or(9) < 5),
        "{log}"
    );

    // One that is to look into another sees its processes, and joins its files where root looks.
    let mut beside = one("beside", "cat; while :; do sleep 0.05; done");
    beside["targetContainerName"] = json!("main");
    beside["stdin"] = json!(true);
    add(fixture, "seen", beside).await?;
    fixture.until("seen", "looked into again", runs("beside")).await?;
    fixture.exec("seen", "beside", "tr '\\0' ' ' < /proc/1/cmdline | grep -q 'sleep 1000'").await?;
    if nix::unistd::geteuid().is_root() {
        fixture.exec("seen", "beside", "grep -q seen /proc/1/root/shared/x").await?;
    }
    // It is there for who attaches, as others are.
    let shim = Shim::find(&fixture.root().join("pods").join(seen.uid().context("it has a UID")?)).await;
    let shim = shim.context("it has a shim")?;
    let mut attached = shim.attach("beside").await?;
    attached.stdin.as_mut().context("it reads")?.write_all(b"hello").await?;
    let mut said = [0; 5];
    attached.stdout.as_mut().context("it writes")?.read_exact(&mut said).await?;
    assert_eq!(&said, b"hello");
    // Its target ends, and it with it; what is started again is not this.
    shim.signal("main", 9).await?;
    let anew = |pod: &Pod| status(pod, "main").restart_count == 1 && is_ready(pod);
    let after = fixture.until("seen", "started again", anew).await?;
    assert_eq!(ended(&after, "beside").unwrap_or_default().exit_code, 137);
    assert!(of(&after, "look") == status_of && phase(&after) == "Running");
    fixture.delete("seen").await?;
    fixture.until_gone("seen").await
}

async fn once(fixture: &Fixture) -> anyhow::Result<()> {
    let pod = fixture.run("kept", sleeps()).await?;
    fixture.until_ready("kept").await?;
    add(fixture, "kept", one("ends", "echo once")).await?;
    // As a whole, this time.
    let mut whole = fixture.pods().get_ephemeral_containers("kept").await?;
    let stays = serde_json::from_value(one("stays", "trap '' TERM; while :; do sleep 0.05; done"))?;
    whole.spec.as_mut().context("it has one")?.ephemeral_containers.get_or_insert_default().push(stays);
    fixture.pods().replace_ephemeral_containers("kept", &PostParams::default(), &whole).await?;
    fixture.until("kept", "looked into", |pod| ended(pod, "ends").is_some() && runs("stays")(pod)).await?;
    // A node that comes back finds both, and starts what is new.
    fixture.stop_node();
    fixture.join().await?;
    add(fixture, "kept", one("third", "exec sleep 1000")).await?;
    let after = fixture.until("kept", "looked into by a third", runs("third")).await?;
    assert!(ended(&after, "ends").is_some_and(|ended| ended.exit_code == 0) && runs("stays")(&after));
    let uid = pod.uid().context("it has a UID")?;
    let shim = Shim::find(&fixture.root().join("pods").join(&uid)).await.context("it has a shim")?;
    let attempts = shim.states().await?;
    assert!(attempts.iter().all(|state| state.attempt == 0), "{attempts:?}");
    // With the shim all dies, and only what belongs to the pod is started again.
    let pid = shim.pid().context("it lives")?;
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)?;
    let again = fixture.until("kept", "restarted", |pod| status(pod, "main").restart_count == 1).await?;
    assert_eq!(ended(&again, "stays").unwrap_or_default().exit_code, 137);
    assert_eq!(fixture.log(&pod, "ends", 0)?, "once\n");
    assert!(fixture.log(&pod, "ends", 1).is_err());
    // A pod whose own containers are over ends, whoever looks into it.
    let mut short = sleeps();
    short["restartPolicy"] = json!("Never");
    short["containers"][0]["command"] = json!(["sh", "-c", "until test -e /shared/end; do sleep 0.05; done"]);
    fixture.run("short", short).await?;
    fixture.until_ready("short").await?;
    add(fixture, "short", one("stays", "trap '' TERM; while :; do sleep 0.05; done")).await?;
    fixture.until("short", "looked into", runs("stays")).await?;
    fixture.exec("short", "main", "touch /shared/end").await?;
    let over = fixture.until_phase("short", "Succeeded").await?;
    assert_eq!(ended(&over, "stays").unwrap_or_default().exit_code, 137);
    fixture.delete("kept").await?;
    fixture.until_gone("kept").await
}

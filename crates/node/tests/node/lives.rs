//! Lives of pods, with real programs.

use super::ground::{Ground, Test, status};
use futures::FutureExt;
use k8s_openapi::api::batch::v1::Job;
use kube::Api;
use serde_json::json;

pub(crate) const ALL: &[(&str, Test)] = &[
    ("a_pod_ends_by_its_exit_code_and_its_log_is_kept", |ground| exit_code(ground).boxed_local()),
    ("jobs_end_by_exit_codes", |ground| jobs(ground).boxed_local()),
    ("one_that_crashes_backs_off_and_remembers", |ground| crashes(ground).boxed_local()),
    ("containers_initialize_in_order_and_sidecars_end_last", |ground| initializes(ground).boxed_local()),
    ("a_deletion_runs_the_hook_asks_and_then_kills", |ground| deletion(ground).boxed_local()),
    ("probes_are_made", |ground| probes(ground).boxed_local()),
    ("what_cannot_start_says_why", |ground| refusals(ground).boxed_local()),
    ("a_node_that_restarts_finds_its_pods_again", |ground| adopted(ground).boxed_local()),
];

async fn exit_code(ground: &Ground) -> anyhow::Result<()> {
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo hello from $(hostname); exit 3"]},
    ]});
    let pod = ground.run("ends", spec).await?;
    let ended = ground.until_phase("ends", "Failed").await?;
    let terminated = status(&ended, "main").state.and_then(|state| state.terminated).unwrap_or_default();
    assert_eq!((terminated.exit_code, terminated.reason.as_deref()), (3, Some("Error")));
    assert_eq!(ground.log(&pod, "main", 0)?, "hello from ends\n");
    for told in ["Pulled", "Created", "Started"] {
        ground.until_told("ends", told).await?;
    }
    ground.delete("ends").await?;
    ground.until_gone("ends").await
}

async fn jobs(ground: &Ground) -> anyhow::Result<()> {
    let job = |name: &str, script: &str| {
        json!({"metadata": {"name": name}, "spec": {"backoffLimit": 0, "completions": 2, "parallelism": 2,
        "template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "busybox", "command": ["sh", "-c", script]},
        ]}}}})
    };
    ground.make::<Job>(job("good", "exit 0")).await?;
    ground.make::<Job>(job("bad", "exit 1")).await?;
    let jobs: Api<Job> = Api::default_namespaced(ground.client.clone());
    let holds = |job: &Job, of: &str| {
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == of && condition.status == "True")
    };
    ground
        .eventually("both jobs end", async || {
            let (good, bad) = (jobs.get("good").await?, jobs.get("bad").await?);
            Ok(holds(&good, "Complete") && holds(&bad, "Failed"))
        })
        .await
}

async fn crashes(ground: &Ground) -> anyhow::Result<()> {
    let script = "echo run; echo because > /dev/termination-log; exit 7";
    let spec = json!({"containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script]}]});
    let pod = ground.run("crashes", spec).await?;
    let backs_off = |pod: &k8s_openapi::api::core::v1::Pod| {
        let status = status(pod, "main");
        let waits = status.state.and_then(|state| state.waiting?.reason);
        status.restart_count == 1 && waits.as_deref() == Some("CrashLoopBackOff")
    };
    let seen = ground.until("crashes", "backing off", backs_off).await?;
    let last = status(&seen, "main").last_state.and_then(|last| last.terminated).unwrap_or_default();
    assert_eq!((last.exit_code, last.message.as_deref()), (7, Some("because\n")));
    assert_eq!(
        (ground.log(&pod, "main", 0)?, ground.log(&pod, "main", 1)?),
        ("run\n".into(), "run\n".into())
    );
    ground.until_told("crashes", "Back-off restarting failed container main").await?;
    ground.delete("crashes").await?;
    ground.until_gone("crashes").await
}

async fn initializes(ground: &Ground) -> anyhow::Result<()> {
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
    let pod = ground.run("order", spec).await?;
    ground.until_phase("order", "Succeeded").await?;
    assert_eq!(ground.log(&pod, "main", 0)?, "one\nside\ntwo\nmain\n");
    assert_eq!(ground.log(&pod, "side", 0)?, "asked\n");
    Ok(())
}

async fn deletion(ground: &Ground) -> anyhow::Result<()> {
    let stubborn = "trap '' TERM; touch /out/ready; while :; do sleep 0.05; done";
    let folder = ground.root().join("out");
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
    ground.run("stubborn", spec).await?;
    ground.until_ready("stubborn").await?;
    ground
        .eventually("it began", async || Ok(folder.join("begun").exists() && folder.join("ready").exists()))
        .await?;
    ground.delete("stubborn").await?;
    ground.until_told("stubborn", "Killing: Stopping container main").await?;
    ground.until_gone("stubborn").await?;
    assert_eq!(std::fs::read_to_string(folder.join("stopping"))?, "stopping\n");
    Ok(())
}

async fn probes(ground: &Ground) -> anyhow::Result<()> {
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
    ground.run("probed", spec).await?;
    ground.until_ready("probed").await?;
    ground.exec("probed", "main", "rm /tmp/ready").await?;
    ground.until("probed", "unready", |pod| !super::ground::is_ready(pod)).await?;
    ground.until_told("probed", "Unhealthy: Readiness probe failed").await?;
    ground.exec("probed", "main", "touch /tmp/ready").await?;
    ground.until_ready("probed").await?;
    ground.exec("probed", "main", "rm /www/health").await?;
    ground.until("probed", "restarted", |pod| status(pod, "main").restart_count == 1).await?;
    ground.until_told("probed", "Container main failed liveness probe, will be restarted").await?;
    ground.until_told("probed", "HTTP probe failed with statuscode: 404").await?;
    ground.until_ready("probed").await?;
    Ok(())
}

async fn refusals(ground: &Ground) -> anyhow::Result<()> {
    let waits = |reason: &'static str| {
        move |pod: &k8s_openapi::api::core::v1::Pod| {
            status(pod, "main").state.and_then(|state| state.waiting?.reason).as_deref() == Some(reason)
        }
    };
    let one = |image: &str, command: serde_json::Value| json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": image, "command": command}]});
    ground.run("unknown", one("example.com/nothing-of-the-sort:1", json!(["x"]))).await?;
    let unknown = ground.until("unknown", "without an image", waits("ErrImagePull")).await?;
    let why = status(&unknown, "main").state.and_then(|state| state.waiting?.message).unwrap_or_default();
    let recipes = ground.recipes().display().to_string();
    assert!(
        why.contains(&format!("add a recipe for \"example.com/nothing-of-the-sort\" to {recipes}")),
        "{why}"
    );
    ground.until_told("unknown", "Failed to pull image \"example.com/nothing-of-the-sort:1\"").await?;
    ground.run("absent", one("busybox", json!(["no-such-program"]))).await?;
    let failed = ground.until_phase("absent", "Failed").await?;
    let ended = status(&failed, "main").state.and_then(|state| state.terminated).unwrap_or_default();
    assert_eq!((ended.exit_code, ended.reason.as_deref()), (127, Some("StartError")), "{ended:?}");
    let mut rootless = one("busybox", json!(["true"]));
    rootless["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 0});
    ground.run("root", rootless).await?;
    let refused = ground.until("root", "refused", waits("CreateContainerConfigError")).await?;
    let why = status(&refused, "main").state.and_then(|state| state.waiting?.message).unwrap_or_default();
    assert!(why.contains("container's runAsUser breaks non-root policy"), "{why}");
    // What is missing is waited for.
    let mut lacking = one("busybox", json!(["sh", "-c", "echo $WORD; cat /in/key"]));
    lacking["containers"][0]["env"] =
        json!([{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "later", "key": "key"}}}]);
    lacking["containers"][0]["volumeMounts"] = json!([{"name": "in", "mountPath": "/in"}]);
    lacking["volumes"] = json!([{"name": "in", "secret": {"secretName": "later"}}]);
    let pod = ground.run("lacks", lacking).await?;
    ground
        .until_told("lacks", "MountVolume.SetUp failed for volume \"in\" : secret \"later\" not found")
        .await?;
    let secret = json!({"metadata": {"name": "later"}, "stringData": {"key": "told\n"}});
    ground.make::<k8s_openapi::api::core::v1::Secret>(secret).await?;
    ground.until_phase("lacks", "Succeeded").await?;
    assert_eq!(ground.log(&pod, "main", 0)?, "told\ntold\n");
    Ok(())
}

async fn adopted(ground: &Ground) -> anyhow::Result<()> {
    let sleeps = json!({"terminationGracePeriodSeconds": 1, "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", "touch /tmp/ready; exec sleep 1000"],
            "readinessProbe": {"exec": {"command": ["test", "-e", "/tmp/ready"]}, "periodSeconds": 1, "failureThreshold": 1}},
    ]});
    ground.run("stays", sleeps.clone()).await?;
    ground.run("goes", sleeps.clone()).await?;
    let stays = ground.until_ready("stays").await?;
    let goes = ground.until_ready("goes").await?;
    let shim = |pod: &k8s_openapi::api::core::v1::Pod| {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        std::fs::read_to_string(ground.root().join("pods").join(uid).join("shim.json"))
    };
    let before = shim(&stays)?;
    ground.stop_node();
    let force = kube::api::DeleteParams { grace_period_seconds: Some(0), ..Default::default() };
    ground.pods().delete("goes", &force).await?;
    ground.join().await?;
    let uid = goes.metadata.uid.clone().unwrap_or_default();
    ground
        .eventually("the other is cleared", async || Ok(!ground.root().join("pods").join(&uid).exists()))
        .await?;
    // What it finds out now, the new node found out.
    ground.exec("stays", "main", "rm /tmp/ready").await?;
    ground.until("stays", "unready", |pod| !super::ground::is_ready(pod)).await?;
    ground.exec("stays", "main", "touch /tmp/ready").await?;
    let after = ground.until_ready("stays").await?;
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
    let again = ground.until("stays", "restarted", |pod| status(pod, "main").restart_count == 1).await?;
    let last = status(&again, "main").last_state.and_then(|last| last.terminated).unwrap_or_default();
    assert_eq!(last.exit_code, 137);
    ground.until_told("stays", "SandboxChanged").await?;
    ground.until_ready("stays").await?;
    ground.delete("stays").await?;
    ground.until_gone("stays").await
}

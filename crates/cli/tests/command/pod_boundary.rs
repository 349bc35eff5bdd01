//! What a pod cannot get from the machine, and cannot do to its cluster.

use crate::process::{Cluster, windlass};
use crate::process_pods::{World, cannot_run};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, PostParams};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use serde_json::json;
use std::path::Path;
use std::process::Command;

/// A cluster that was started with a file open under each of the descriptors 3 to 300.
fn with_open_files(runtime: &Path, data: &Path) -> Cluster {
    let opens = "for n in $(seq 3 300); do eval \"exec $n</etc/hostname\"; done; exec \"$@\"";
    let mut command = Command::new("bash");
    let program = windlass(&[]).get_program().to_owned();
    command.args(["-c", opens, "bash"]).arg(program);
    command.args(["cluster", "up", "--nodes", "process=1", "--data-dir"]).arg(data);
    command.env("XDG_RUNTIME_DIR", runtime).env_remove("KUBECONFIG").env_remove("WINDLASS_LOG");
    Cluster::of(command)
}

/// Directories in one another, each made in the last: no path leads that deep.
fn nested(top: &Path, depth: usize) {
    let open = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, top, open, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&folder, "d", Mode::RWXU).unwrap();
        folder = openat(&folder, "d", open, Mode::empty()).unwrap();
    }
}

/// The directory of an emptyDir.
fn empty_dir(data: &Path, uid: &str, name: &str) -> std::path::PathBuf {
    let path = format!("*{uid}/volumes/{name}");
    let found = Command::new("find").arg(data).args(["-maxdepth", "8", "-path", &path]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().next().expect("the pod has its volume").into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_sees_no_open_file_of_the_machine_and_cannot_stop_its_cluster() {
    if let Some(why) = cannot_run("busybox") {
        return println!("{why}");
    }
    let runtime = tempfile::tempdir().unwrap();
    let data = runtime.path().join("data");
    let cluster = with_open_files(runtime.path(), &data);
    let world = World::of(&cluster).await;
    let lists = json!({"name": "lists", "image": "busybox", "command": ["sh", "-c", "echo /proc/self/fd/* /proc/1/fd/*"]});
    let seen = world.prints(json!({"containers": [lists]})).await;
    let numbers = seen.split_whitespace().filter_map(|path| path.rsplit('/').next()?.parse::<u32>().ok());
    // The shell may have a descriptor of its own for reading the directory.
    assert!(numbers.clone().all(|number| number <= 3 || number == 10) && numbers.count() >= 6, "{seen}");

    let pods = world.api::<Pod>();
    let sleeper: Pod = serde_json::from_value(json!({"metadata": {"name": "deep"}, "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "sleeps", "image": "busybox", "command": ["sleep", "1000"],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    }}))
    .unwrap();
    let uid = pods.create(&PostParams::default(), &sleeper).await.unwrap().uid().unwrap();
    world
        .until("the pod runs", || async {
            let status = pods.get("deep").await.unwrap().status;
            status.and_then(|status| status.phase).as_deref() == Some("Running")
        })
        .await;
    let volume = empty_dir(&data, &uid, "scratch");
    nested(&volume, 15_000);
    pods.delete("deep", &DeleteParams::default()).await.unwrap();
    world.until("the pod is gone", || async { pods.get_opt("deep").await.unwrap().is_none() }).await;
    world.until("its directories are gone", || async { !volume.exists() }).await;
    assert_eq!(cluster.end(nix::sys::signal::Signal::SIGTERM).code(), Some(0));
}

/// The pods of a cluster that was killed run on: they are ended by whoever takes the cluster down or empties it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_killed_cluster_are_ended() {
    if let Some(why) = cannot_run("busybox") {
        return println!("{why}");
    }
    for command in ["down", "reset"] {
        let runtime = tempfile::tempdir().unwrap();
        let data = runtime.path().join("data");
        let folder = data.to_str().unwrap();
        let mut begins = windlass(&["cluster", "up", "--nodes", "process=1", "--data-dir", folder]);
        begins.env("XDG_RUNTIME_DIR", runtime.path()).env_remove("KUBECONFIG").env_remove("WINDLASS_LOG");
        let cluster = Cluster::of(begins);
        let world = World::of(&cluster).await;
        let spec =
            json!({"containers": [{"name": "sleeps", "image": "busybox", "command": ["sleep", "4711"]}]});
        let pod = serde_json::from_value(json!({"metadata": {"name": "left"}, "spec": spec})).unwrap();
        world.api::<Pod>().create(&PostParams::default(), &pod).await.unwrap();
        world
            .until("the pod runs", || async {
                let status = world.api::<Pod>().get("left").await.unwrap().status;
                status.and_then(|status| status.phase).as_deref() == Some("Running")
            })
            .await;
        cluster.end(nix::sys::signal::Signal::SIGKILL);
        let run = |arguments: &[&str]| {
            let mut command = windlass(arguments);
            command
                .args(["--data-dir", folder])
                .env("XDG_RUNTIME_DIR", runtime.path())
                .env_remove("KUBECONFIG");
            let output = command.output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(said).unwrap())
        };
        let node = data.join("process-1");
        assert!(windlass_node::has_processes(&node).await, "the pod runs on");
        if command == "down" {
            let (_, said) = run(&["cluster", "advance", "1s"]);
            assert!(said.contains("was killed, and its pods still run"), "{said}");
        }
        let (succeeded, said) = run(&["cluster", command]);
        assert!(succeeded, "{said}");
        assert!(!windlass_node::has_processes(&node).await, "after {command}: {said}");
    }
}

//! What is the pod's own: its settings of the kernel, and processes that its containers share.

use super::fixture::{Fixture, Test, status};
use futures::FutureExt;
use serde_json::{Value, json};

pub(crate) const ALL: &[(&str, Test)] = &[
    ("sysctls_are_the_pods_own", |fixture| sysctls(fixture).boxed_local()),
    ("sysctls_that_are_not_safe_are_refused", |fixture| forbidden(fixture).boxed_local()),
    ("what_others_have_is_not_given_twice", |fixture| admission(fixture).boxed_local()),
    ("containers_see_each_others_processes_where_asked", |fixture| processes(fixture).boxed_local()),
];

fn with(sysctls: Value, script: &str) -> Value {
    json!({"restartPolicy": "Never", "securityContext": {"sysctls": sysctls}, "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", script]},
    ]})
}

async fn sysctls(fixture: &Fixture) -> anyhow::Result<()> {
    let own = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    let asked = json!([
        {"name": "net.ipv4.ip_local_port_range", "value": "40000 41000"},
        {"name": "net/ipv4/tcp_syncookies", "value": "0"},
        {"name": "net.ipv4.ip_unprivileged_port_start", "value": "80"},
    ]);
    let script = "cd /proc/sys/net/ipv4; cat ip_local_port_range tcp_syncookies ip_unprivileged_port_start; \
        echo 1 2>/dev/null > tcp_syncookies || echo read-only";
    let pod = fixture.run("tuned", with(asked, script)).await?;
    fixture.until_phase("tuned", "Succeeded").await?;
    assert_eq!(fixture.log(&pod, "main", 0)?, "40000\t41000\n0\n80\nread-only\n");
    assert_eq!(
        std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?,
        own,
        "the machine's is its own"
    );
    // What the kernel does not take keeps the pod from starting, and it is said which.
    let range = json!([{"name": "net.ipv4.ip_local_port_range", "value": "9 1"}]);
    fixture.run("wrong", with(range, "true")).await?;
    let why = "cannot set the sysctl net.ipv4.ip_local_port_range to \"9 1\": Invalid argument";
    fixture.until_told("wrong", why).await?;
    // That of shared memory is for root to set.
    let shared = json!([{"name": "kernel.shm_rmid_forced", "value": "1"}]);
    let pod = fixture.run("memory", with(shared, "cat /proc/sys/kernel/shm_rmid_forced")).await?;
    if nix::unistd::geteuid().is_root() {
        fixture.until_phase("memory", "Succeeded").await?;
        assert_eq!(fixture.log(&pod, "main", 0)?, "1\n");
    } else {
        fixture.until_told("memory", "cannot set the sysctl kernel.shm_rmid_forced to \"1\"").await?;
    }
    Ok(())
}

async fn forbidden(fixture: &Fixture) -> anyhow::Result<()> {
    let unsafe_one = json!([{"name": "kernel/msgmax", "value": "65536"}]);
    fixture.run("unsafe", with(unsafe_one, "true")).await?;
    let refused = fixture.until_phase("unsafe", "Failed").await?;
    let status = refused.status.unwrap_or_default();
    let why = "forbidden sysctl: \"kernel.msgmax\" not allowlisted";
    assert_eq!(status.reason.as_deref(), Some("SysctlForbidden"));
    assert_eq!(status.message, Some(format!("Pod was rejected: {why}")));
    assert!(status.container_statuses.is_none(), "{status:?}");
    fixture.until_told("unsafe", &format!("SysctlForbidden: {why}")).await
}

async fn admission(fixture: &Fixture) -> anyhow::Result<()> {
    let one = |more: Value| {
        let mut container = json!({"name": "main", "image": "busybox", "command": ["sleep", "1000"]});
        container.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
        json!({"nodeName": "process-1", "terminationGracePeriodSeconds": 0, "containers": [container]})
    };
    let port = || one(json!({"ports": [{"containerPort": 21017, "hostPort": 21017}]}));
    fixture.run("first", port()).await?;
    fixture.until_ready("first").await?;
    fixture.run("second", port()).await?;
    fixture.run("large", one(json!({"resources": {"requests": {"cpu": "5000"}}}))).await?;
    let mut elsewhere = one(json!({}));
    elsewhere["nodeSelector"] = json!({"disk": "fast"});
    fixture.run("elsewhere", elsewhere).await?;
    for (name, reason, why) in [
        ("second", "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports"),
        ("large", "OutOfcpu", "Node didn't have enough resource: cpu, requested: 5000000, used: 0"),
        ("elsewhere", "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match"),
    ] {
        let status = fixture.until_phase(name, "Failed").await?.status.unwrap_or_default();
        assert_eq!(status.reason.as_deref(), Some(reason));
        let message = status.message.unwrap_or_default();
        assert!(message.starts_with(&format!("Pod was rejected: {why}")), "{message}");
        fixture.until_told(name, &format!("{reason}: {why}")).await?;
    }
    fixture.delete("first").await?;
    fixture.until_gone("first").await?;
    fixture.run("third", port()).await?;
    fixture.until_ready("third").await.map(drop)
}

async fn processes(fixture: &Fixture) -> anyhow::Result<()> {
    let one =
        |name: &str, script: &str| json!({"name": name, "image": "busybox", "command": ["sh", "-c", script]});
    // What a container leaves running ends with it, though its namespace goes on.
    let leaves = "sleep 4321 & sleep 1234";
    let spec = json!({"terminationGracePeriodSeconds": 1, "shareProcessNamespace": true,
        "containers": [one("sees", "exec sleep 1000"), one("seen", leaves)]});
    fixture.run("shared", spec).await?;
    fixture.until_ready("shared").await?;
    let all = "for p in /proc/[0-9]*; do echo ${p#/proc/} $(tr '\\0' ' ' < $p/cmdline); done 2>/dev/null";
    let counts = |seconds: u16| format!("test $({all} | grep -c ' sleep {seconds}$') = 1");
    let sees = async |seconds: u16| fixture.exec("shared", "sees", &counts(seconds)).await.is_ok();
    fixture.eventually("all are seen", async || Ok(sees(1234).await && sees(4321).await)).await?;
    fixture.exec("shared", "seen", &counts(1000)).await?;
    // The first process is nobody's, and there is nothing in it.
    fixture.exec("shared", "sees", "test $$ != 1 && test -z \"$(ls /proc/1/root/ 2>/dev/null)\"").await?;
    fixture
        .exec("shared", "sees", &format!("kill -9 $({all} | grep ' sleep 1234$' | cut -d' ' -f1)"))
        .await?;
    fixture.until("shared", "restarted", |pod| status(pod, "seen").restart_count == 1).await?;
    fixture.eventually("the first left nothing", async || Ok(sees(1234).await && sees(4321).await)).await?;
    assert_eq!(status(&fixture.pods().get("shared").await?, "sees").restart_count, 0);
    fixture.delete("shared").await?;
    fixture.until_gone("shared").await
}

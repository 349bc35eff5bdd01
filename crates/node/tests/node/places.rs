//! What pods are told, given, and can reach.

use super::fixture::{Fixture, Test};
use futures::FutureExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Secret, Service};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

pub(crate) const ALL: &[(&str, Test)] = &[
    ("a_container_is_told_who_and_where_it_is", |fixture| told(fixture).boxed_local()),
    ("volumes_are_there_and_follow_their_objects", |fixture| volumes(fixture).boxed_local()),
    ("a_claim_keeps_what_was_written", |fixture| claims(fixture).boxed_local()),
    ("memcached_is_reached_by_its_services_name", |fixture| memcached(fixture).boxed_local()),
];

async fn told(fixture: &Fixture) -> anyhow::Result<()> {
    fixture.make::<ConfigMap>(json!({"metadata": {"name": "words"}, "data": {"A": "1"}})).await?;
    let field = |path: &str| json!({"fieldRef": {"fieldPath": path}});
    let script = "echo $A $B $NODE $CPU; echo $(id -u):$(id -g):$(id -G); hostname; grep -c me /etc/hosts; \
        head -1 /etc/resolv.conf; ls -ld /data | cut -c1-10; env | grep -c KUBERNETES_SERVICE_HOST; \
        whoami 2>/dev/null || echo unnamed; test $POD_IP = $(hostname -i | cut -d' ' -f1) && echo same; pwd";
    let pod = fixture
        .run("told", json!({"restartPolicy": "Never", "hostname": "me", "subdomain": "us",
            "securityContext": {"runAsUser": 1234, "runAsGroup": 1235, "fsGroup": 1236},
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script], "workingDir": "/data",
                "resources": {"limits": {"cpu": "1500m"}},
                "envFrom": [{"configMapRef": {"name": "words"}}],
                "env": [{"name": "B", "value": "$(A)2"}, {"name": "NODE", "valueFrom": field("spec.nodeName")},
                    {"name": "POD_IP", "valueFrom": field("status.podIP")},
                    {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]}))
        .await?;
    fixture.until_phase("told", "Succeeded").await?;
    let log = fixture.log(&pod, "main", 0)?;
    // Further groups are root's to give.
    let (groups, mode) = if is_root() { ("1235 1236", "drwxrwsrwx") } else { ("1235", "drwxrwxrwx") };
    let expected = format!(
        "1 12 process-1 1500\n1234:1235:{groups}\nme\n1\n\
        search default.svc.cluster.local svc.cluster.local cluster.local\n{mode}\n1\nunnamed\nsame\n/data\n"
    );
    assert!(log.starts_with(&expected[..expected.len().min(20)]), "{log}");
    let expected: Vec<&str> = expected.lines().collect();
    for (line, expected) in log.lines().zip(&expected) {
        assert!(line.starts_with(expected), "{line:?} is not {expected:?} in\n{log}");
    }
    assert_eq!(log.lines().count(), expected.len(), "{log}");
    Ok(())
}

async fn volumes(fixture: &Fixture) -> anyhow::Result<()> {
    fixture
        .make::<ConfigMap>(json!({"metadata": {"name": "page"}, "data": {"index": "one", "part": "p"}}))
        .await?;
    fixture.make::<Secret>(json!({"metadata": {"name": "key"}, "stringData": {"k": "secret"}})).await?;
    let script = "cat /page/index /key/k /labels/app; echo; stat -L -c %a /key/k; cat /one/part; echo; \
        test -s /var/run/secrets/kubernetes.io/serviceaccount/token && echo token; \
        cat /var/run/secrets/kubernetes.io/serviceaccount/ca.crt; echo; \
        dd if=/dev/zero of=/memory/x bs=1M count=2 2>/dev/null || echo full; \
        until test \"$(cat /labels/word)\" = three; do sleep 0.05; done; cat /labels/word; echo; \
        while test $(cat /page/index) = one; do sleep 0.05; done; cat /page/index; echo; touch /page/x 2>/dev/null || echo read-only";
    let pod = fixture
        .run("volumes", json!({"restartPolicy": "Never",
            "volumes": [
                {"name": "page", "configMap": {"name": "page"}},
                {"name": "key", "secret": {"secretName": "key", "defaultMode": 0o440}},
                {"name": "labels", "downwardAPI": {"items": [
                    {"path": "app", "fieldRef": {"fieldPath": "metadata.name"}},
                    {"path": "word", "fieldRef": {"fieldPath": "metadata.annotations['word']"}},
                ]}},
                {"name": "memory", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            ],
            "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": [
                {"name": "page", "mountPath": "/page"}, {"name": "key", "mountPath": "/key"},
                {"name": "labels", "mountPath": "/labels"}, {"name": "memory", "mountPath": "/memory"},
                {"name": "page", "mountPath": "/one/part", "subPath": "part"},
            ]}]}))
        .await?;
    fixture
        .eventually("it was read once", async || {
            Ok(fixture.log(&pod, "main", 0).is_ok_and(|log| log.contains("full")))
        })
        .await?;
    let word = |word: &str| Patch::Merge(json!({"metadata": {"annotations": {"word": word}}}));
    fixture.pods().patch("volumes", &PatchParams::default(), &word("three")).await?;
    let maps: Api<ConfigMap> = Api::default_namespaced(fixture.client.clone());
    let patch = Patch::Merge(json!({"data": {"index": "two"}}));
    maps.patch("page", &PatchParams::default(), &patch).await?;
    fixture.until_phase("volumes", "Succeeded").await?;
    let expected = "onesecretvolumes\n440\np\ntoken\na certificate\nfull\nthree\ntwo\nread-only\n";
    assert_eq!(fixture.log(&pod, "main", 0)?, expected);
    Ok(())
}

async fn claims(fixture: &Fixture) -> anyhow::Result<()> {
    let claim = json!({"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}}}});
    fixture.make::<PersistentVolumeClaim>(claim).await?;
    let pod = |script: &str| {
        json!({"restartPolicy": "Never",
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "containers": [{"name": "main", "image": "busybox", "command": ["sh", "-c", script],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]})
    };
    fixture.run("writes", pod("echo kept > /data/file")).await?;
    fixture.until_phase("writes", "Succeeded").await?;
    fixture.delete("writes").await?;
    fixture.until_gone("writes").await?;
    let script = "cat /data/file; mkdir /data/closed; touch /data/closed/file; chmod 500 /data/closed";
    let reads = fixture.run("reads", pod(script)).await?;
    fixture.until_phase("reads", "Succeeded").await?;
    assert_eq!(fixture.log(&reads, "main", 0)?, "kept\n");
    // More is asked for, and there is more.
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(fixture.client.clone());
    let more = json!({"spec": {"resources": {"requests": {"storage": "2Mi"}}}});
    claims.patch("data", &PatchParams::default(), &Patch::Merge(more)).await?;
    let grown = async || {
        let status = claims.get("data").await?.status.unwrap_or_default();
        Ok(status.capacity.is_some_and(|capacity| capacity["storage"].0 == "2Mi"))
    };
    fixture.eventually("the claim has grown", grown).await?;
    let volumes: Api<PersistentVolume> = Api::all(fixture.client.clone());
    let volume = volumes.list(&ListParams::default()).await?.items.pop().and_then(|volume| volume.spec);
    let volume = volume.unwrap_or_default();
    assert_eq!(volume.capacity.map(|capacity| capacity["storage"].0.clone()).as_deref(), Some("2Mi"));
    let path = std::path::PathBuf::from(volume.host_path.unwrap_or_default().path);
    assert!(path.starts_with(fixture.root()) && path.join("file").exists(), "{}", path.display());
    // With the claim goes the volume, and with it the folder.
    fixture.delete("reads").await?;
    fixture.until_gone("reads").await?;
    claims.delete("data", &Default::default()).await?;
    let gone = async || Ok(volumes.list(&ListParams::default()).await?.items.is_empty());
    fixture.eventually("the volume is gone", gone).await?;
    assert!(!path.exists(), "{} is left", path.display());
    Ok(())
}

async fn memcached(fixture: &Fixture) -> anyhow::Result<()> {
    let labels = json!({"app": "cache"});
    let deployment = json!({"metadata": {"name": "cache"}, "spec": {"replicas": 3, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "memcached", "image": "memcached:1.6",
            "readinessProbe": {"tcpSocket": {"port": 11211}, "periodSeconds": 1}}]}}}});
    fixture.make::<Deployment>(deployment).await?;
    let service =
        json!({"metadata": {"name": "cache"}, "spec": {"selector": labels, "ports": [{"port": 11211}]}});
    fixture.make::<Service>(service).await?;
    let ready = async || {
        let pods = fixture.pods().list(&ListParams::default().labels("app=cache")).await?;
        Ok(pods.items.iter().filter(|pod| super::fixture::is_ready(pod)).count() == 3)
    };
    fixture.eventually("three are ready", ready).await?;
    let script = "for n in $(seq 100); do \
        printf 'set word 0 0 5\\r\\nhello\\r\\nget word\\r\\nquit\\r\\n' | busybox nc -w 5 cache 11211 | tr -d '\\r' > /tmp/said; \
        grep -q END /tmp/said && break; sleep 0.1; done; cat /tmp/said";
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["sh", "-c", script]},
    ]});
    let client = fixture.run("client", spec).await?;
    fixture.until_phase("client", "Succeeded").await?;
    assert_eq!(fixture.log(&client, "main", 0)?, "STORED\nVALUE word 0 5\nhello\nEND\n");
    // One is killed, and back.
    let pods = fixture.pods().list(&ListParams::default().labels("app=cache")).await?.items;
    let one = pods.first().and_then(|pod| pod.metadata.name.clone()).unwrap_or_default();
    fixture.delete(&one).await?;
    fixture.until_gone(&one).await?;
    fixture.eventually("three are ready again", ready).await
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

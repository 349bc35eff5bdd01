//! Servers that people run, by the names of their images, and recipes of one's own.

use super::fixture::{Fixture, Test, phase};
use futures::FutureExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use serde_json::{Value, json};

pub(crate) const ALL: &[(&str, Test)] = &[
    ("nginx_serves_the_page_of_a_config_map", |fixture| nginx(fixture).boxed_local()),
    ("a_probe_asks_by_https_whoever_answers", |fixture| https(fixture).boxed_local()),
    ("postgres_answers_over_its_service", |fixture| postgres(fixture).boxed_local()),
    ("a_recipe_of_ones_own_runs_as_it_says", |fixture| recipe(fixture).boxed_local()),
];

/// A pod with a Service of its name.
async fn serve(fixture: &Fixture, name: &str, ports: Value, spec: Value) -> anyhow::Result<()> {
    let labels = json!({"app": name});
    let service = json!({"metadata": {"name": name}, "spec": {"selector": labels, "ports": [ports]}});
    fixture.make::<Service>(service).await?;
    fixture.make::<Pod>(json!({"metadata": {"name": name, "labels": labels}, "spec": spec})).await?;
    Ok(())
}

/// Asks from another pod until there is an answer, as Services take a moment to be known.
async fn asked(fixture: &Fixture, image: &str, question: &str) -> anyhow::Result<String> {
    let script = format!(
        "for n in $(seq 100); do {question} 2>/tmp/why && exit 0; sleep 0.1; done; cat /tmp/why; exit 1"
    );
    let spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": image, "command": ["sh", "-c", script], "env": [{"name": "PGPASSWORD", "value": "s3cret"}]},
    ]});
    let pod = fixture.run("asks", spec).await?;
    fixture.until("asks", "at its end", |pod| ["Succeeded", "Failed"].contains(&phase(pod))).await?;
    fixture.log(&pod, "main", 0)
}

async fn nginx(fixture: &Fixture) -> anyhow::Result<()> {
    if fixture.lacks("nginx") {
        return Ok(());
    }
    let page = "<h1>from a ConfigMap</h1>\n";
    fixture.make::<ConfigMap>(json!({"metadata": {"name": "page"}, "data": {"index.html": page}})).await?;
    let spec = json!({
        "volumes": [{"name": "page", "configMap": {"name": "page"}}],
        "containers": [{"name": "main", "image": "nginx:1.27",
            "readinessProbe": {"httpGet": {"port": 80}, "periodSeconds": 1},
            "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}]}]});
    serve(fixture, "web", json!({"port": 8080, "targetPort": 80}), spec).await?;
    fixture.until_ready("web").await?;
    assert_eq!(asked(fixture, "busybox", "wget -q -O - http://web:8080/").await?, page);
    let web = fixture.pods().get("web").await?;
    fixture
        .eventually("the request is in its log", async || {
            Ok(fixture.log(&web, "main", 0)?.contains("\"GET / HTTP/1.1\" 200"))
        })
        .await?;
    fixture.delete("web").await?;
    fixture.until_gone("web").await
}

async fn https(fixture: &Fixture) -> anyhow::Result<()> {
    if fixture.lacks("nginx") {
        return Ok(());
    }
    let made = rcgen::generate_simple_self_signed(["somebody".to_owned()])?;
    let conf = "server { listen 8443 ssl; ssl_certificate /tls/tls.crt; ssl_certificate_key /tls/tls.key; \
        location /well { return 200 yes; } location /ill { return 500 no; } }";
    let data = json!({"tls.crt": made.cert.pem(), "tls.key": made.signing_key.serialize_pem()});
    fixture.make::<Secret>(json!({"metadata": {"name": "tls"}, "stringData": data})).await?;
    fixture.make::<ConfigMap>(json!({"metadata": {"name": "conf"}, "data": {"default.conf": conf}})).await?;
    for (name, path) in [("well", "/well"), ("ill", "/ill")] {
        let spec = json!({
            "volumes": [{"name": "conf", "configMap": {"name": "conf"}}, {"name": "tls", "secret": {"secretName": "tls"}}],
            "containers": [{"name": "main", "image": "nginx",
                "readinessProbe": {"httpGet": {"scheme": "HTTPS", "port": 8443, "path": path}, "periodSeconds": 1},
                "volumeMounts": [{"name": "conf", "mountPath": "/etc/nginx/conf.d"}, {"name": "tls", "mountPath": "/tls"}]}]});
        fixture.run(name, spec).await?;
    }
    fixture.until_ready("well").await?;
    fixture.until_told("ill", "Readiness probe failed: HTTP probe failed with statuscode: 500").await?;
    assert!(!super::fixture::is_ready(&fixture.pods().get("ill").await?));
    Ok(())
}

async fn postgres(fixture: &Fixture) -> anyhow::Result<()> {
    if fixture.lacks("postgres") {
        return Ok(());
    }
    let spec = json!({
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "postgres", "args": ["-c", "fsync=off"],
            "env": [{"name": "POSTGRES_PASSWORD", "value": "s3cret"}, {"name": "POSTGRES_USER", "value": "captain"},
                {"name": "POSTGRES_DB", "value": "harbour"}, {"name": "POSTGRES_INITDB_ARGS", "value": "--no-sync"}],
            "readinessProbe": {"exec": {"command": ["pg_isready", "-h", "127.0.0.1"]}, "periodSeconds": 1},
            "volumeMounts": [{"name": "data", "mountPath": "/var/lib/postgresql/data"}]}]});
    serve(fixture, "db", json!({"port": 5432}), spec).await?;
    fixture.until_ready("db").await?;
    let question = "psql -h db -U captain -d harbour -Atc 'SELECT 6 * 7'";
    assert_eq!(asked(fixture, "postgres", question).await?, "42\n");
    let old = json!({"containers": [{"name": "main", "image": "postgres:9.1"}]});
    fixture.run("old", old).await?;
    fixture.until_told("old", "image postgres:9.1 is not there: its version is not installed").await?;
    fixture.exec("db", "main", "test \"$(stat -c %U \"$PGDATA/PG_VERSION\")\" != root").await?;
    fixture.delete("db").await?;
    fixture.until_gone("db").await
}

async fn recipe(fixture: &Fixture) -> anyhow::Result<()> {
    let text = r#"
images:
  me/app:
    needs: [sh]
    entrypoint: [start.sh]
    command: [one, two]
    environment: {COLOUR: teal}
    users: {app: {number: 1001, home: /data}}
    user: app
    folder: /data
    folders: [{path: /data, owner: app, mode: "750"}]
    stopSignal: SIGUSR1
    files:
      - path: start.sh
        text: |
          #!/bin/sh
          trap 'echo asked > /out/asked; exit 0' USR1
          echo "$@" $COLOUR $(id -un) $HOME $(pwd) > /data/said
          cp /data/said /out/said
          while :; do sleep 0.05; done
"#;
    std::fs::write(fixture.recipes(), text)?;
    let out = fixture.root().join("out");
    std::fs::create_dir_all(&out)?;
    std::fs::set_permissions(&out, std::os::unix::fs::PermissionsExt::from_mode(0o777))?;
    let spec = json!({
        "volumes": [{"name": "out", "hostPath": {"path": out}}],
        "containers": [{"name": "main", "image": "docker.io/me/app:3",
            "volumeMounts": [{"name": "out", "mountPath": "/out"}]}]});
    fixture.run("own", spec).await?;
    let said = || std::fs::read_to_string(out.join("said")).unwrap_or_default();
    fixture.eventually("it speaks", async || Ok(said().ends_with('\n'))).await?;
    assert_eq!(said(), "one two teal app /data /data\n");
    // A node that came back asks it to end as the recipe says, too.
    fixture.stop_node();
    fixture.join().await?;
    fixture.delete("own").await?;
    fixture.until_gone("own").await?;
    assert_eq!(std::fs::read_to_string(out.join("asked"))?, "asked\n");
    Ok(())
}

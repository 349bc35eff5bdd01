//! Images that run: by recipe, from an archive, from a folder.

use crate::Test;
use crate::fixture::{Fixture, ended, holds, is_root};
use anyhow::{Context, ensure};
use futures::FutureExt;
use std::path::Path;
use std::process::Command;
use windlass_node::images::{Catalogue, Image, ImageError, ImageRoot};
use windlass_node::shim::{Bind, Container, Exec, Identity, ImageFile, Root, Shim};

pub fn tests() -> Vec<Test> {
    vec![
        ("an unknown image says how to add it", |g| unknown(g).boxed()),
        ("busybox runs with its applets and nothing else", |g| busybox(g).boxed()),
        ("memcached answers", |g| memcached(g).boxed()),
        ("nginx serves a page", |g| nginx(g).boxed()),
        ("redis keeps a value", |g| redis(g).boxed()),
        ("postgres makes its database, runs scripts, and keeps it", |g| postgres(g).boxed()),
        ("an archive of an image runs, with its layers, whiteouts and configuration", |g| archive(g).boxed()),
    ]
}

fn catalogue(fixture: &Fixture) -> Catalogue {
    Catalogue::new(fixture.path("images"), fixture.path("recipes.yaml"), fixture.path("store"))
}

/// A container of an image, as a node would start it.
fn container(fixture: &Fixture, name: &str, image: &Image, command: &[&str]) -> anyhow::Result<Container> {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let mut container = fixture.container(name, &[]);
    let words = if command.is_empty() { image.command.clone() } else { command };
    container.command = image.entrypoint.iter().cloned().chain(words).collect();
    container.environment.extend(image.environment.clone());
    container.folder = image.folder.clone();
    (container.binds, container.files) = (image.binds.clone(), image.files.clone());
    let writable = fixture.path(&format!("roots/{name}"));
    image.create_directories(&writable)?;
    for (text, to) in [(&image.users, "passwd"), (&image.groups, "group")] {
        if let Some(text) = text {
            let from = fixture.path(&format!("{name}.{to}"));
            std::fs::write(&from, text)?;
            container.files.push(ImageFile { from, to: Path::new("/etc").join(to) });
        }
    }
    container.root = match &image.root {
        ImageRoot::Shown(paths) => Root::Shown { writable, paths: paths.clone() },
        ImageRoot::FileSystem(image) => Root::FileSystem { image: image.clone(), writable },
    };
    // Where the node is not root, its user stands for the image's, or else for one of its users who is not root.
    let other = if is_root() { 0 } else { 999 };
    let user = image.user.as_ref().and_then(|user| user.user).unwrap_or(other);
    container.identity = Identity { user, group: user, groups: Vec::new() };
    Ok(container)
}

/// Whether the program of a recipe is on this machine; those without it cannot tell anything.
fn resolve(fixture: &Fixture, image: &str) -> anyhow::Result<Option<Image>> {
    match catalogue(fixture).resolve(image) {
        Err(ImageError::Program { program, .. }) => {
            eprintln!("skipped: {program} is not installed");
            Ok(None)
        }
        resolved => Ok(Some(resolved?)),
    }
}

async fn said(shim: &Shim, name: &str, line: &str) -> anyhow::Result<(i32, String)> {
    let exec = Exec { command: ["sh", "-c", line].map(String::from).to_vec(), ..Exec::default() };
    let mut running = shim.exec(name, exec).await?;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(running.stdout.as_mut().context("an output")?, &mut text).await?;
    Ok((running.control.wait().await?, text))
}

/// Asks until the answer holds what it should, as a readiness probe does.
async fn until_said(
    fixture: &Fixture,
    shim: &Shim,
    name: &str,
    line: &str,
    wanted: &str,
) -> anyhow::Result<()> {
    let mut last = (0, String::new());
    for _ in 0..200 {
        last = said(shim, name, line).await?;
        if last.1.contains(wanted) {
            return Ok(());
        }
        fixture.clock.sleep(std::time::Duration::from_millis(50)).await;
    }
    anyhow::bail!("{line} said {last:?}; the log is {:?}", fixture.logged(name))
}

async fn unknown(fixture: Fixture) -> anyhow::Result<()> {
    let unknown = catalogue(&fixture).resolve("ghcr.io/me/app:1").expect_err("it is unknown").to_string();
    ensure!(unknown.contains("ghcr.io/me/app") && unknown.contains("recipes.yaml"), "{unknown}");
    ensure!(matches!(catalogue(&fixture).resolve("Not A Name"), Err(ImageError::Name(_))));
    std::fs::write(
        fixture.path("recipes.yaml"),
        "images:\n  ghcr.io/me/app: {command: [echo, mine], needs: [sh]}\n",
    )?;
    let image = catalogue(&fixture).resolve("ghcr.io/me/app:1")?;
    let shim = fixture.launch().await?;
    ensure!(fixture.said(&shim, &container(&fixture, "app", &image, &[])?).await? == ["mine"]);
    std::fs::write(
        fixture.path("recipes.yaml"),
        "images:\n  me: {needs: [no-such-program], install: build it}\n",
    )?;
    let missing = catalogue(&fixture).resolve("me").expect_err("it is missing").to_string();
    ensure!(missing.contains("no-such-program") && missing.contains("build it"), "{missing}");
    Ok(())
}

async fn busybox(fixture: Fixture) -> anyhow::Result<()> {
    let Some(image) = resolve(&fixture, "docker.io/library/busybox:1.36")? else { return Ok(()) };
    let shim = fixture.launch().await?;
    let line = "ls -d /bin/sh /usr/lib 2>/dev/null; echo $(echo a b | wc -w)";
    let said = fixture.said(&shim, &container(&fixture, "app", &image, &["sh", "-c", line])?).await?;
    ensure!(
        said.first().is_some_and(|first| first == "/bin/sh") && said.last().is_some_and(|last| last == "2"),
        "{said:?}"
    );
    Ok(())
}

async fn memcached(fixture: Fixture) -> anyhow::Result<()> {
    let Some(image) = resolve(&fixture, "memcached:1.6")? else { return Ok(()) };
    let shim = fixture.launch().await?;
    // On the host's network here: a socket by path keeps tests apart.
    shim.start(&container(&fixture, "app", &image, &["memcached", "-s", "/tmp/socket"])?).await?;
    let socket = fixture.path("roots/app/tmp/socket");
    let ask = || {
        use std::io::{Read, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&socket)?;
        stream.write_all(b"set k 0 0 5\r\nvalue\r\nget k\r\nquit\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    for _ in 0..400 {
        if ask().is_ok_and(|answer| answer == "STORED\r\nVALUE k 0 5\r\nvalue\r\nEND\r\n") {
            ensure!(said(&shim, "app", "id -u").await?.1 == "11211\n");
            return Ok(());
        }
        fixture.clock.sleep(std::time::Duration::from_millis(25)).await;
    }
    anyhow::bail!("it never answered: {:?} {:?}", ask(), fixture.logged("app"))
}

async fn nginx(fixture: Fixture) -> anyhow::Result<()> {
    let Some(image) = resolve(&fixture, "nginx:alpine")? else { return Ok(()) };
    let shim = fixture.launch().await?;
    std::fs::create_dir_all(fixture.path("pages"))?;
    std::fs::write(fixture.path("pages/index.html"), "<h1>from a volume</h1>")?;
    std::fs::write(
        fixture.path("site.conf"),
        "server { listen unix:/tmp/socket; root /usr/share/nginx/html; }\n",
    )?;
    let mut container = container(&fixture, "app", &image, &[])?;
    container.binds.push(Bind {
        from: fixture.path("pages"),
        to: "/usr/share/nginx/html".into(),
        read_only: true,
        ..Bind::default()
    });
    container.binds.push(Bind {
        from: fixture.path("site.conf"),
        to: "/etc/nginx/conf.d/default.conf".into(),
        read_only: true,
        ..Bind::default()
    });
    shim.start(&container).await?;
    let socket = fixture.path("roots/app/tmp/socket");
    let ask = || {
        use std::io::{Read, Write};
        let mut stream = std::os::unix::net::UnixStream::connect(&socket)?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        std::io::Result::Ok(answer)
    };
    for _ in 0..400 {
        if ask().is_ok_and(|answer| answer.contains("200 OK") && answer.ends_with("<h1>from a volume</h1>")) {
            holds(&fixture.log("app", 0), "GET / HTTP/1.0").await?;
            shim.signal("app", image.stop_signal).await?;
            ensure!(ended(&shim, "app").await?.code() == Some(0));
            return Ok(());
        }
        fixture.clock.sleep(std::time::Duration::from_millis(25)).await;
    }
    anyhow::bail!("it never answered: {:?} {:?}", ask(), fixture.logged("app"))
}

async fn redis(fixture: Fixture) -> anyhow::Result<()> {
    let Some(image) = resolve(&fixture, "redis:7")? else { return Ok(()) };
    let shim = fixture.launch().await?;
    let container = container(&fixture, "app", &image, &["--port", "0", "--unixsocket", "/tmp/socket"])?;
    shim.start(&container).await?;
    until_said(&fixture, &shim, "app", "redis-cli -s /tmp/socket set k v 2>&1", "OK").await?;
    until_said(
        &fixture,
        &shim,
        "app",
        "redis-cli -s /tmp/socket save; ls -n /data/dump.rdb",
        if is_root() { " 999 " } else { "dump.rdb" },
    )
    .await
}

async fn postgres(fixture: Fixture) -> anyhow::Result<()> {
    let Some(image) = resolve(&fixture, "postgres")? else { return Ok(()) };
    let shim = fixture.launch().await?;
    std::fs::create_dir_all(fixture.path("data"))?;
    std::fs::create_dir_all(fixture.path("scripts"))?;
    std::fs::write(fixture.path("scripts/1.sql"), "CREATE TABLE ships (name text);")?;
    std::fs::write(
        fixture.path("scripts/2.sh"),
        "psql -U \"$POSTGRES_USER\" -d \"$POSTGRES_DB\" -c \"INSERT INTO ships VALUES ('gull')\"\n",
    )?;
    let mut bare = container(&fixture, "bare", &image, &[])?;
    bare.binds.push(Bind {
        from: fixture.path("data"),
        to: "/var/lib/postgresql/data".into(),
        read_only: false,
        ..Bind::default()
    });
    shim.start(&bare).await?;
    ensure!(ended(&shim, "bare").await?.code() == Some(1));
    ensure!(
        fixture.logged("bare")?.iter().any(|line| line.contains("POSTGRES_PASSWORD")),
        "{:?}",
        fixture.logged("bare")
    );
    let settings = ["postgres", "-c", "listen_addresses=", "-c", "fsync=off"];
    let mut container = container(&fixture, "app", &image, &settings)?;
    container.binds.push(Bind {
        from: fixture.path("data"),
        to: "/var/lib/postgresql/data".into(),
        read_only: false,
        ..Bind::default()
    });
    container.binds.push(Bind {
        from: fixture.path("scripts"),
        to: "/docker-entrypoint-initdb.d".into(),
        read_only: true,
        ..Bind::default()
    });
    for (name, value) in [
        ("POSTGRES_PASSWORD", "s3cret"),
        ("POSTGRES_USER", "captain"),
        ("POSTGRES_DB", "harbour"),
        ("POSTGRES_INITDB_ARGS", "--no-sync"),
    ] {
        container.environment.push((name.into(), value.into()));
    }
    let query = "psql -h /var/run/postgresql -U captain -d harbour -Atc 'SELECT name FROM ships' 2>&1";
    // At first another server runs the scripts and answers too; a signal then meets the shell, which as the first process of
    // its namespace ignores it.
    let ready = ["PostgreSQL init process complete", "database system is ready to accept connections"];
    for (attempt, ready) in (0..).zip(ready) {
        (container.attempt, container.log) = (attempt, fixture.log("app", attempt));
        shim.start(&container).await?;
        holds(&fixture.log("app", attempt), ready).await?;
        until_said(&fixture, &shim, "app", query, "gull").await?;
        shim.signal("app", image.stop_signal).await?;
        while shim.states().await?.iter().any(|state| state.phase.code().is_none()) {
            fixture.clock.sleep(std::time::Duration::from_millis(10)).await;
        }
    }
    let last = shim.states().await?.into_iter().rfind(|state| state.name == "app").context("it ran")?;
    ensure!(last.phase.code() == Some(0), "{last:?} {:?}", std::fs::read_to_string(fixture.log("app", 1)));
    Ok(())
}

/// Runs a line of shell on the host.
fn host(folder: &Path, line: &str) -> anyhow::Result<()> {
    let output = Command::new("sh").args(["-ec", line]).current_dir(folder).output()?;
    ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn archive(fixture: Fixture) -> anyhow::Result<()> {
    let folder = fixture.path("making");
    std::fs::create_dir_all(&folder)?;
    host(
        &folder,
        r#"mkdir -p one/bin one/lib one/gone one/kept/deep two/kept blobs/sha256
           for p in sh ls cat echo id; do cp /bin/$p one/bin/; for l in $(ldd /bin/$p | grep -o '/[^ ]*'); do mkdir -p one$(dirname $l); cp $l one$l; done; done
           echo below > one/gone/file; echo below > one/kept/deep/file; echo below > one/taken; ln -s /etc one/out
           touch two/.wh.taken two/.wh.gone two/kept/.wh..wh..opq; echo above > two/kept/new
           tar -C one -cf one.tar . ; tar -C two -czf two.tar.gz .
           put() { d=$(sha256sum $1 | cut -d' ' -f1); cp $1 blobs/sha256/$d; echo sha256:$d; }
           a=$(put one.tar); b=$(put two.tar.gz)
           echo '{"config":{"Entrypoint":["/bin/sh","-c"],"Cmd":["echo $COLOUR $(id -u); cat /kept/new; ls /kept; ls / "],"Env":["PATH=/bin","COLOUR=teal"],"User":"4321:77","WorkingDir":"/kept","StopSignal":"SIGINT"}}' > config
           c=$(put config); echo "{\"config\":{\"digest\":\"$c\"},\"layers\":[{\"digest\":\"$a\"},{\"digest\":\"$b\"}]}" > manifest
           m=$(put manifest); echo "{\"manifests\":[{\"digest\":\"$m\"}]}" > index.json; echo '{}' > oci-layout
           mkdir -p ../images/ghcr.io/me; tar -czf ../images/ghcr.io/me/app:1.tar.gz oci-layout index.json blobs"#,
    )?;
    let image = catalogue(&fixture).resolve("ghcr.io/me/app:1")?;
    ensure!(image.stop_signal == 2 && image.folder.as_deref() == Some(Path::new("/kept")), "{image:?}");
    let shim = fixture.launch().await?;
    let said = fixture.said(&shim, &container(&fixture, "app", &image, &[])?).await?;
    ensure!(said[..3] == ["teal 4321", "above", "new"], "{said:?}");
    ensure!(!said.iter().any(|name| name == "taken" || name == "gone"), "{said:?}");
    // A damaged one is refused, and says so.
    host(
        &fixture.path("images"),
        "mkdir x; cd x; tar -xzf ../ghcr.io/me/app:1.tar.gz; for b in blobs/sha256/*; do echo >> $b; done; tar -cf ../broken.tar *",
    )?;
    let broken = catalogue(&fixture).resolve("broken").expect_err("it is broken").to_string();
    ensure!(broken.contains("damaged"), "{broken}");
    Ok(())
}

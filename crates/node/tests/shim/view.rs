//! What a container sees, and what it does not.

use crate::Test;
use crate::fixture::{Fixture, ended, holds, is_root};
use anyhow::{Context, ensure};
use futures::FutureExt;
use windlass_node::shim::{Bind, Exec, Identity, ImageFile, Root};

pub fn tests() -> Vec<Test> {
    vec![
        ("a container sees itself and what it is shown, nothing else", |g| sees(g).boxed()),
        ("a container runs as whom it is told", |g| as_whom(g).boxed()),
        ("volumes are shared, and read-only ones cannot be written", |g| volumes(g).boxed()),
        ("a volume below what the host has not is made in the container alone", |g| below(g).boxed()),
        ("a part of a volume is found when it is mounted, and links do not lead out of it", |g| {
            part(g).boxed()
        }),
        ("devices and programs of another user do not work on a volume", |g| quiet(g).boxed()),
        ("a file of an image can be renamed", |g| renamed(g).boxed()),
        ("a working directory is no way to the machine's files", |g| directory(g).boxed()),
        ("the node's own program can neither be run nor written", |g| own_program(g).boxed()),
        ("each container has a session keyring of its own", |g| keyring(g).boxed()),
        ("a read-only root takes no writes, its volumes do", |g| read_only(g).boxed()),
    ]
}

async fn sees(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let line = "echo $$ $(hostname) $HOSTNAME; ls / | tr '\\n' ' '; echo; ls /dev | tr '\\n' ' '; echo; \
                ls -d /proc/[0-9]* | wc -l; touch /usr/x 2>/dev/null || echo sealed; touch /made && echo made; \
                cat /proc/kcore 2>/dev/null | head -c 1 | wc -c; grep -c shim- /proc/self/mountinfo; pwd; echo $HOME";
    let said = fixture.said(&shim, &fixture.shell("app", line)).await?;
    let expected = [
        "1 lighthouse lighthouse",
        "bin dev etc lib lib64 proc root run sys tmp usr var ",
        "fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom zero ",
    ];
    ensure!(said[..3] == expected, "{said:?}");
    let processes: u32 = said[3].trim().parse()?;
    ensure!(processes <= 3, "{said:?}");
    ensure!(said[4..7] == ["sealed", "made", "0"], "{said:?}");
    let own_mounts: u32 = said[7].parse()?;
    ensure!(own_mounts <= 2, "{said:?}");
    ensure!(said[8..] == ["/", "/root"], "{said:?}");
    Ok(())
}

async fn as_whom(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let line = "id -u; id -g; id -G; id -un; grep CapEff /proc/self/status; umask; touch /tmp/mine; stat -c %u /tmp/mine";
    let mut container = fixture.shell("app", line);
    container.identity = Identity { user: 999, group: 998, groups: vec![998, 777] };
    let said = fixture.said(&shim, &container).await?;
    // A user namespace made without root has but one group.
    let groups = if is_root() { "998 777" } else { "998" };
    let nothing = "CapEff:\t0000000000000000";
    ensure!(said == ["999", "998", groups, "user999", nothing, "0022", "999"], "{said:?}");
    let mut root = fixture.shell("root", "id -u; grep CapEff /proc/self/status");
    root.privileges.drop = vec!["ALL".into()];
    root.privileges.add = vec!["KILL".into()];
    let said = fixture.said(&shim, &root).await?;
    ensure!(said == ["0", "CapEff:\t0000000000000020"], "{said:?}");
    Ok(())
}

async fn volumes(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let volume = fixture.path("volume");
    std::fs::create_dir_all(&volume)?;
    std::fs::write(fixture.path("hosts"), "127.0.0.1 localhost\n")?;
    let mut writer = fixture.shell(
        "writer",
        "echo kept > /data/deep/file; cat /etc/hosts; (echo over > /etc/hosts) 2>/dev/null || echo sealed",
    );
    writer.binds = vec![
        Bind { from: volume.clone(), to: "/data/deep".into(), read_only: false, ..Bind::default() },
        Bind { from: fixture.path("hosts"), to: "/etc/hosts".into(), read_only: true, ..Bind::default() },
    ];
    let said = fixture.said(&shim, &writer).await?;
    ensure!(said[0] == "127.0.0.1 localhost" && said.last().is_some_and(|last| last == "sealed"), "{said:?}");
    let mut reader = fixture.shell("reader", "cat /data/file; touch /data/file 2>/dev/null || echo sealed");
    reader.binds = vec![Bind { from: volume, to: "/data".into(), read_only: true, ..Bind::default() }];
    let said = fixture.said(&shim, &reader).await?;
    ensure!(said == ["kept", "sealed"], "{said:?}");
    Ok(())
}

async fn read_only(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    std::fs::create_dir_all(fixture.path("volume"))?;
    let line = "touch /x 2>/dev/null || echo sealed; touch /tmp/x 2>/dev/null || echo sealed; touch /data/x && echo kept; \
                echo > /dev/null && echo null; touch /dev/shm/x && echo shared";
    let mut container = fixture.shell("app", line);
    container.read_only_root = true;
    container.binds =
        vec![Bind { from: fixture.path("volume"), to: "/data".into(), read_only: false, ..Bind::default() }];
    let said = fixture.said(&shim, &container).await?;
    ensure!(said == ["sealed", "sealed", "kept", "null", "shared"], "{said:?}");
    Ok(())
}

async fn below(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    std::fs::create_dir_all(fixture.path("volume"))?;
    std::fs::write(fixture.path("volume/page"), "of the volume\n")?;
    let mut container =
        fixture.shell("app", "cat /usr/share/no/such/page; cat /usr/lib/no-such-file; ls /usr/share | wc -l");
    container.binds = vec![
        Bind {
            from: fixture.path("volume"),
            to: "/usr/share/no/such".into(),
            read_only: true,
            ..Bind::default()
        },
        Bind {
            from: fixture.path("volume/page"),
            to: "/usr/lib/no-such-file".into(),
            read_only: false,
            ..Bind::default()
        },
    ];
    let said = fixture.said(&shim, &container).await?;
    let there = std::fs::read_dir("/usr/share")?.count() + 1;
    ensure!(said == ["of the volume", "of the volume", &there.to_string()], "{said:?}");
    ensure!(
        !std::path::Path::new("/usr/share/no").exists()
            && !std::path::Path::new("/usr/lib/no-such-file").exists()
    );
    Ok(())
}

async fn part(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let (volume, secret) = (fixture.path("volume"), fixture.path("secret"));
    for folder in [volume.join("in"), secret.clone()] {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(secret.join("key"), "of the machine")?;
    std::os::unix::fs::symlink(&secret, volume.join("out"))?;
    std::os::unix::fs::symlink("../secret", volume.join("up"))?;
    std::os::unix::fs::symlink("in", volume.join("near"))?;
    for (name, part, shown) in [
        ("near", "near", true),
        ("new", "in/new/deep", true),
        ("out", "out", false),
        ("below", "up/new", false),
        ("magic", "../secret", false),
    ] {
        let mut container = fixture.shell(name, "echo kept > /data/file; ls /data");
        container.binds = vec![Bind {
            from: volume.clone(),
            part: Some(part.into()),
            to: "/data".into(),
            read_only: false,
            ..Bind::default()
        }];
        let started = shim.start(&container).await;
        ensure!(started.is_ok() == shown, "{name}: {started:?}");
        if shown {
            ended(&shim, name).await?;
        }
    }
    ensure!(volume.join("in/file").exists() && volume.join("in/new/deep/file").exists());
    ensure!(std::fs::read_dir(&secret)?.count() == 1, "something was made outside");
    Ok(())
}

async fn quiet(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let volume = fixture.path("volume");
    std::fs::create_dir_all(&volume)?;
    let mut container =
        fixture.shell("app", "grep ' /data ' /proc/self/mounts; grep ' /host ' /proc/self/mounts");
    let bind = |to: &str, devices| Bind { from: volume.clone(), to: to.into(), devices, ..Bind::default() };
    container.binds = vec![bind("/data", false), bind("/host", true)];
    let said = fixture.said(&shim, &container).await?;
    ensure!(
        said[0].contains("nosuid") && said[0].contains("nodev") && !said[0].contains("noexec"),
        "{said:?}"
    );
    let of_machine = std::fs::read_to_string("/proc/self/mounts")?;
    ensure!(said[1].contains("nodev") <= of_machine.contains("nodev"), "{said:?}");
    Ok(())
}

async fn renamed(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    std::fs::write(fixture.path("page"), "of the image\n")?;
    let line = "mv /usr/share/no/such/page /tmp/page && cat /tmp/page; mv /start /began && rm /began && echo gone; \
        stat -c %a /tmp/page";
    let mut container = fixture.shell("app", line);
    let file = |to: &str| ImageFile { from: fixture.path("page"), to: to.into() };
    container.files = vec![file("/start"), file("/usr/share/no/such/page")];
    let said = fixture.said(&shim, &container).await?;
    ensure!(said == ["of the image", "gone", "644"], "{said:?}");
    ensure!(std::fs::read_to_string(fixture.path("page"))? == "of the image\n");
    Ok(())
}

async fn directory(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    for (number, folder) in
        ["/proc/self/fd/3", "/proc/self/fd/7/", "/proc/1/root", "/proc/self/cwd"].iter().enumerate()
    {
        let mut container = fixture.shell(&format!("magic{number}"), "pwd");
        container.folder = Some(folder.into());
        ensure!(shim.start(&container).await.is_err(), "{folder}");
    }
    let mut container = fixture.shell("app", "rmdir /work; ln -s /tmp/made /work; sleep 1000");
    container.folder = Some("/work".into());
    shim.start(&container).await?;
    let exec = || Exec { command: vec!["pwd".into()], ..Exec::default() };
    for _ in 0..200 {
        if shim.exec("app", exec()).await.is_err() {
            ensure!(
                !fixture.path("roots/app/tmp/made").exists(),
                "a program that was run later made a directory"
            );
            return Ok(());
        }
    }
    anyhow::bail!("the link was followed")
}

/// By its command, by a script that it interprets, and by what runs beside a program that is run later.
async fn own_program(fixture: Fixture) -> anyhow::Result<()> {
    let shim = fixture.launch().await?;
    let before = std::fs::metadata(std::env::current_exe()?)?;
    let started = shim.start(&fixture.container("direct", &["/proc/self/exe", "--list"])).await;
    ensure!(started.is_err(), "the program ran");
    let mut script = fixture.container("script", &["/script", "--list"]);
    std::fs::write(fixture.path("text"), "#!/proc/self/exe --list\n")?;
    std::fs::set_permissions(fixture.path("text"), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    script.files = vec![ImageFile { from: fixture.path("text"), to: "/script".into() }];
    ensure!(shim.start(&script).await.is_err(), "the program ran as an interpreter");
    // It opens every program that it sees for writing.
    let line = "echo begun; while :; do for p in /proc/[0-9]*/exe; do (: >> $p) 2>/dev/null && readlink $p; done; done";
    shim.start(&fixture.shell("writer", line)).await?;
    holds(&fixture.log("writer", 0), "begun").await?;
    for _ in 0..20 {
        let exec = Exec { command: vec!["true".into()], ..Exec::default() };
        ensure!(shim.exec("writer", exec).await?.control.wait().await? == 0);
    }
    let name = std::env::current_exe()?.file_name().context("a name")?.to_string_lossy().into_owned();
    let written = fixture.logged("writer")?;
    ensure!(!written.iter().any(|line| line.contains(&name) || line.contains("program")), "{written:?}");
    let after = std::fs::metadata(std::env::current_exe()?)?;
    ensure!(before.modified()? == after.modified()? && before.len() == after.len());
    Ok(())
}

async fn keyring(fixture: Fixture) -> anyhow::Result<()> {
    keyutils::Keyring::join_anonymous_session()?;
    let mut session = keyutils::Keyring::attach(keyutils::SpecialKeyring::Session)?;
    session.add_key::<keyutils::keytypes::User, _, _>("of-the-machine", "secret".as_bytes())?;
    ensure!(keys() == "1 keys");
    let shim = fixture.launch().await?;
    let program = std::env::current_exe()?;
    let mut container = fixture.container("app", &[&program.to_string_lossy(), KEYS]);
    if let Root::Shown { paths, .. } = &mut container.root {
        paths.push(program);
    }
    ensure!(fixture.said(&shim, &container).await? == ["0 keys"]);
    Ok(())
}

/// Has the test's program tell the keys that it may use.
pub const KEYS: &str = "tell-keys";

/// How many keys there are in the session keyring of this process.
pub fn keys() -> String {
    let session = keyutils::Keyring::attach(keyutils::SpecialKeyring::Session);
    let read = session.and_then(|session| session.read());
    read.map_or_else(|error| error.to_string(), |(keys, _)| format!("{} keys", keys.len()))
}

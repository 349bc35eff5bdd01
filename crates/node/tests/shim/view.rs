//! What a container sees, and what it does not.

use crate::Test;
use crate::fixture::{Fixture, is_root};
use anyhow::ensure;
use futures::FutureExt;
use windlass_node::shim::{Bind, Identity};

pub fn tests() -> Vec<Test> {
    vec![
        ("a container sees itself and what it is shown, nothing else", |g| sees(g).boxed()),
        ("a container runs as whom it is told", |g| as_whom(g).boxed()),
        ("volumes are shared, and read-only ones cannot be written", |g| volumes(g).boxed()),
        ("a volume below what the host has not is made in the container alone", |g| below(g).boxed()),
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
        Bind { from: volume.clone(), to: "/data/deep".into(), read_only: false },
        Bind { from: fixture.path("hosts"), to: "/etc/hosts".into(), read_only: true },
    ];
    let said = fixture.said(&shim, &writer).await?;
    ensure!(said[0] == "127.0.0.1 localhost" && said.last().is_some_and(|last| last == "sealed"), "{said:?}");
    let mut reader = fixture.shell("reader", "cat /data/file; touch /data/file 2>/dev/null || echo sealed");
    reader.binds = vec![Bind { from: volume, to: "/data".into(), read_only: true }];
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
    container.binds = vec![Bind { from: fixture.path("volume"), to: "/data".into(), read_only: false }];
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
        Bind { from: fixture.path("volume"), to: "/usr/share/no/such".into(), read_only: true },
        Bind { from: fixture.path("volume/page"), to: "/usr/lib/no-such-file".into(), read_only: false },
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

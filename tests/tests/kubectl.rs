//! The real kubectl on the embedded API and on the reference: the same commands, the same output.

use anyhow::{Context, ensure};
use std::process::ExitCode;
use std::time::Duration;
use windlass_harness::{Environment, Suite, Target, reference};
use windlass_tests::kubectl::{Kubectl, commands};
use windlass_tests::targets::{Embedded, embedded_over_tcp};

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(600))
        .test("kubectl prints the same on the embedded API and on the reference", prints_the_same)
        .run()
}

async fn pointed_at(target: &Target) -> anyhow::Result<Kubectl> {
    let place = match target.extra::<Embedded>().and_then(Embedded::url) {
        Some(url) => vec!["--kubeconfig=/dev/null".to_owned(), format!("--server={url}")],
        None => {
            let kubeconfig = target.kubeconfig().context("the reference has a kubeconfig")?;
            vec![format!("--kubeconfig={}", kubeconfig.display())]
        }
    };
    let kubectl = Kubectl::new(reference::programs()?.join("kubectl"), place, target.namespace().await?)?;
    // A controller would make it.
    kubectl.run("create serviceaccount default")?;
    Ok(kubectl)
}

async fn prints_the_same(target: Target) -> anyhow::Result<()> {
    let ours = embedded_over_tcp().open().await?;
    let (embedded, real) = (pointed_at(&ours).await?, pointed_at(&target).await?);
    let compared = tokio::task::spawn_blocking(move || {
        let mut differences = Vec::new();
        let commands = commands()?;
        let count = commands.len();
        for line in commands {
            let (ours, theirs) = std::thread::scope(|scope| {
                let ours = scope.spawn(|| embedded.run(&line));
                (ours.join(), real.run(&line))
            });
            let ours = ours.map_err(|_| anyhow::anyhow!("kubectl {line} panicked"))??;
            let theirs = theirs?;
            if ours != theirs {
                differences.push(format!("kubectl {line}\n--- embedded\n{ours}\n--- reference\n{theirs}"));
            }
        }
        anyhow::Ok((count, differences))
    });
    let (count, differences) = compared.await??;
    println!("{count} commands, {} alike", count - differences.len());
    ensure!(differences.is_empty(), "{}", differences.join("\n\n"));
    Ok(())
}

//! The crash campaign: operators of five shapes survive a crash before and after each of their writes, every lost request and
//! response, and all other faults, and end in the state of an undisturbed run.

use anyhow::ensure;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use std::process::ExitCode;
use std::time::Duration;
use windlass::Manager;
use windlass_harness::{Environment, Suite, Target};
use windlass_testing::TestCluster;
use windlass_testing::campaign::{Campaign, Fault};
use windlass_testing::faulty_client::ClientFault;
use windlass_tests::operators::{elected, plain, reports};
use windlass_tests::sample;
use windlass_tests::targets::{Embedded, cluster, embedded_in_process};

fn main() -> ExitCode {
    Suite::on([embedded_in_process(), Environment::reference()])
        .limit(Duration::from_secs(900))
        .test("a crash after each write converges to the same end", |target| {
            every_write(target, ClientFault::KillAfter)
        })
        .test("a crash before each write converges to the same end", |target| {
            every_write(target, ClientFault::KillBefore)
        })
        .test("a lost request converges to the same end", |target| {
            every_write(target, ClientFault::LoseRequest)
        })
        .test("a lost response converges to the same end", |target| {
            every_write(target, ClientFault::LoseResponse)
        })
        .test("a conflict converges to the same end", |target| every_write(target, ClientFault::Conflict))
        .test("every fault for an operator with children and a status", |target| {
            every_fault(target, [plain::Site::crd()], plain::operator, plain::life)
        })
        .test("every fault for an operator with a claim and an action", |target| {
            every_fault(target, [elected::Band::crd()], elected::operator, elected::life)
        })
        .test("every fault for an operator with references", |target| {
            every_fault(target, [reports::Report::crd()], reports::operator, reports::life)
        })
        .run()
}

/// On the reference, every fault that a client can bring about.
async fn every_fault<const N: usize, O, L, F>(
    target: Target,
    kinds: [CustomResourceDefinition; N],
    operator: O,
    life: L,
) -> anyhow::Result<()>
where
    O: Fn(Manager) -> Manager + Send + Sync + 'static,
    L: Fn(TestCluster) -> F + Send + Sync + 'static,
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let (environment, embedded) = (target.environment(), target.extra::<Embedded>().is_some());
    let report = Campaign::new(operator, life)
        .kinds(kinds)
        .faults(Fault::ALL.into_iter().filter(|fault| embedded || fault.is_by_client()))
        .on(move || {
            let target = target.clone();
            async move { cluster(&target).await }
        })
        .run()
        .await?;
    println!("{environment}: {report}");
    Ok(())
}

async fn every_write(target: Target, how: ClientFault) -> anyhow::Result<()> {
    let environment = target.environment();
    let report = Campaign::new(sample::operator, sample::life)
        .kinds(sample::crds())
        .faults([Fault::Client(how)])
        .on(move || {
            let target = target.clone();
            async move { cluster(&target).await }
        })
        .most_extra_changes(MOST_EXTRA_CHANGES)
        .run()
        .await?;
    ensure!(report.writes > 10, "the sample writes more than that");
    println!("{environment}: {how:?}: {report}");
    Ok(())
}

/// A write that was lost is tried again, and so is what the other workers had on its way when the process died.
const MOST_EXTRA_CHANGES: usize = 3;

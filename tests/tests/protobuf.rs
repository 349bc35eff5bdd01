//! Protobuf as Go writes it: the objects that Kubernetes' own module carries, byte for byte; and watches, lists and errors
//! in protobuf on both servers.

use anyhow::ensure;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;
use windlass_apiserver::protobuf;
use windlass_harness::{Environment, Suite, Target};
use windlass_tests::compare::first_difference;
use windlass_tests::kubernetes_test_objects;

fn main() -> ExitCode {
    Suite::on([Environment::reference()])
        .limit(Duration::from_secs(300))
        .test("Kubernetes' own objects are written and read alike", own_objects_alike)
        .run()
}

async fn own_objects_alike(_: Target) -> anyhow::Result<()> {
    let Some(objects) = kubernetes_test_objects::all(include_str!("../../REFERENCE_VERSION"))? else {
        println!("skipped: there is no Go to ask for the module");
        return Ok(());
    };
    let (mut known, mut wrong) = (0, Vec::new());
    let all = objects.len();
    for object in objects {
        let Ok(written) = protobuf::encode(&object.json) else { continue };
        known += 1;
        if written != object.protobuf {
            let at = written.iter().zip(&object.protobuf).position(|(ours, theirs)| ours != theirs);
            wrong.push(format!("{} is written otherwise from byte {at:?} on", object.name));
        }
        let json: Value = serde_json::from_slice(&object.json)?;
        match protobuf::decode(&object.protobuf) {
            Ok(read) if read == json => {}
            Ok(read) => wrong.push(format!("{}: {}", object.name, first_difference(&read, &json, ""))),
            Err(error) => wrong.push(format!("{}: {error}", object.name)),
        }
    }
    println!("{all} objects, {known} of kinds that are served, {} differences", wrong.len());
    ensure!(known >= 90, "only {known} of {all} are known");
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

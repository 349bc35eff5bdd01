//! What is logged in a reconcile says whose reconcile it is.

use crate::support::{Running, cluster, has_secret, make, mirror, until};
use parking_lot::Mutex;
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt;
use windlass::Manager;
use windlass::clock::Clock;
use windlass::config::LogFormat;
use windlass::logs;

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn every_line_of_a_reconcile_has_controller_object_and_reconcile_id() {
    let paper = Paper::default();
    let writing = paper.clone();
    let lines = logs::layer(LogFormat::Json, move || writing.clone());
    // For the whole process, as in an operator: the lines of other tests are told apart by their controllers.
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines)).unwrap();
    let (_api, client) = cluster();
    make(&client, "lined").await;
    make(&client, "panics").await;
    let running =
        Running::start(Manager::new(client.clone(), Clock::real()).controller(mirror().named("lines")));
    until("the secret is made", async || has_secret(&client, "lined").await).await;
    let text = || String::from_utf8(paper.0.lock().clone()).unwrap();
    until("the panic is logged", async || {
        text().lines().any(|line| line.contains("asked to") && line.contains("lines"))
    })
    .await;
    running.stop().await.unwrap();
    let lines: Vec<Value> = text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |object: &str, message: &str| {
        let found = lines.iter().find(|line| {
            line["object"] == object
                && line["controller"] == "lines"
                && line["msg"].as_str().is_some_and(|said| said.contains(message))
        });
        found.unwrap_or_else(|| panic!("nothing about {object} and {message:?} in {lines:#?}"))
    };
    let (made, failed) = (of("default/lined", "d: mirrors"), of("default/panics", "trying again"));
    for line in [made, failed] {
        assert_eq!(&line["kind"], "ConfigMap");
        assert_eq!(line["reconcile_id"].as_str().unwrap().len(), 16);
    }
    assert_ne!(made["reconcile_id"], failed["reconcile_id"]);
    assert_eq!((made["level"].as_str(), made["reason"].as_str()), (Some("info"), Some("Mirrors")));
}

//! The bench's operator as it is written with windlass. Like its twins, it records no events about what goes well.

use k8s_openapi::api::core::v1::ConfigMap;
use windlass::{Controller, Events, Manager, Observed, Plan, Reasoned, Refusal};
use windlass_clock::Clock;
use windlass_peers::{Greeting, WORKERS, config, note_delay, print_delays};

#[derive(Debug)]
enum Why {
    Says,
}

impl Reasoned for Why {}

fn decide(greeting: &Greeting, _observed: &Observed) -> Result<Plan, Refusal> {
    note_delay(greeting);
    Ok(Plan::new().apply(greeting.child(), Why::Says).status(greeting.said()))
}

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    Manager::connecting(config("bench-windlass").await?, Clock::real())
        .controller(
            Controller::deciding(decide)
                .owns::<ConfigMap>()
                .concurrency(WORKERS.into())
                .events(Events::Warnings),
        )
        .run()
        .await?;
    print_delays();
    Ok(())
}

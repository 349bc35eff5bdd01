//! The crash test: the sample is disturbed at every one of its writes, and must end as if it had not been.

mod story;
mod tap;

pub use story::{Story, without_accidents};
pub use tap::{Fault, Tap};

use crate::sample;
use anyhow::{Context, Result, ensure};
use kube::Client;
use serde_json::Value;
use windlass::Manager;
use windlass_clock::Clock;

/// What one telling came to.
#[derive(Debug)]
pub struct Told {
    /// The world after each part.
    pub worlds: Vec<Value>,
    /// The writes, over all lives of the operator.
    pub writes: Vec<String>,
}

/// Tells the story once, in `namespace`, with a fault at one write; after a kill the operator starts anew.
///
/// # Errors
/// When the story does not come to its end.
pub async fn tell(client: &Client, namespace: &str, tap: Tap) -> Result<Told> {
    let clock = Clock::real();
    let story = Story::begin(client.clone(), namespace, clock.clone()).await?;
    let second = Tap::default();
    let operate = async {
        let operator = |tap: &Tap| {
            sample::operator(Manager::new(tap.on(client.clone()), clock.clone()).namespace(namespace))
        };
        tokio::select! {
            ended = operator(&tap).run() => ended?,
            () = tap.killed() => {}
        }
        operator(&second).run().await
    };
    let worlds = tokio::select! {
        ended = operate => { ended?; anyhow::bail!("the operator ended by itself") }
        worlds = story.tell() => worlds?,
    };
    let writes = [tap.writes(), second.writes()].concat();
    Ok(Told { worlds, writes })
}

/// After the story has been told: starts the operator once more, and counts what it writes though nothing is to be done.
///
/// # Errors
/// When it cannot run.
pub async fn writes_at_rest(client: &Client, namespace: &str) -> Result<Vec<String>> {
    let (clock, tap) = (Clock::real(), Tap::default());
    let operator = sample::operator(Manager::new(tap.on(client.clone()), clock.clone()).namespace(namespace));
    operator.run_until(clock.sleep(std::time::Duration::from_millis(500))).await?;
    Ok(tap.writes())
}

/// Disturbs every write with `fault`, one telling per write, and compares each end with the undisturbed one. Returns
/// the number of writes of each telling.
///
/// # Errors
/// At the first difference.
pub async fn disturb_every_write(client: &Client, prefix: &str, fault: Fault) -> Result<Vec<usize>> {
    let calm = tell(client, &format!("{prefix}-calm"), Tap::default()).await.context("undisturbed")?;
    let mut counts = vec![calm.writes.len()];
    for number in 1..=calm.writes.len() {
        let namespace = format!("{prefix}-{number}");
        let told = tell(client, &namespace, Tap::with_fault(number, fault)).await;
        let told =
            told.with_context(|| format!("{fault:?} at write {number}: {}", calm.writes[number - 1]))?;
        for (part, (calm, told)) in calm.worlds.iter().zip(&told.worlds).enumerate() {
            ensure!(
                calm == told,
                "{fault:?} at write {number}, part {part}: ends as\n{told:#}\nand undisturbed as\n{calm:#}"
            );
        }
        let idle = writes_at_rest(client, &namespace).await?;
        ensure!(idle.is_empty(), "{fault:?} at write {number}: at rest it wrote {idle:?}");
        counts.push(told.writes.len());
    }
    Ok(counts)
}

//! Waits until the operator has done what a command asked for, and tells what is awaited meanwhile.

use super::{Failure, Place, said};
use crate::api::v1alpha1::SampleDB;
use clap::Args;
use std::time::Duration;
use windlass::clock::Clock;

/// How often it looks.
const AGAIN: Duration = Duration::from_millis(300);

#[derive(Debug, Default, Args)]
pub(super) struct Waiting {
    /// Ask for it, and do not wait until it is done
    #[arg(long)]
    no_wait: bool,
    /// How long to wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
}

impl Waiting {
    /// Waits until a condition of a SampleDB is true for its spec of now. What it says, and what is awaited, is printed.
    pub(super) async fn until(&self, place: &Place, name: &str, condition: &str) -> Result<(), Failure> {
        let databases = place.api::<SampleDB>();
        self.until_done(name, async || {
            let database = databases.get(name).await.map_err(|error| said(&error))?;
            let conditions = database.status.unwrap_or_default().conditions;
            let of_now =
                conditions.iter().filter(|one| one.observed_generation == database.metadata.generation);
            let of_now: Vec<_> = of_now.collect();
            let named = |type_: &str| of_now.iter().find(|one| one.type_ == type_);
            let is_done = named(condition).is_some_and(|one| one.status == "True");
            let told = named(condition).or_else(|| named("Ready")).map(|one| one.message.clone());
            let told = told.filter(|told| !told.is_empty());
            Ok((
                is_done,
                told.unwrap_or_else(|| if is_done { condition.to_lowercase() } else { String::new() }),
            ))
        })
        .await
    }

    /// Waits until it is done. `look` answers whether it is, and what to tell.
    pub(super) async fn until_done(
        &self,
        name: &str,
        look: impl AsyncFn() -> Result<(bool, String), Failure>,
    ) -> Result<(), Failure> {
        if self.no_wait {
            return Ok(());
        }
        let clock = Clock::real();
        let mut told = String::new();
        let done = async {
            loop {
                let (is_done, now) = look().await?;
                if !now.is_empty() && now != told {
                    println!("{name}: {now}");
                    told.clone_from(&now);
                }
                if is_done {
                    return Ok(());
                }
                clock.sleep(AGAIN).await;
            }
        };
        match clock.timeout(Duration::from_secs(self.timeout), done).await {
            Ok(done) => done,
            Err(_) => Err(format!("{name}: not done after {} s; it goes on", self.timeout)),
        }
    }
}

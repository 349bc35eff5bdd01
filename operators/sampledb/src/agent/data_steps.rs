//! Steps that make data: a new database, a copy of the primary's, or one that is rewound to it.

use super::data::Number;
use super::run::{Agent, SHORT, Seen, StepError, text};
use crate::durable_files::write_durably;
use crate::leadership::Leadership;
use crate::programs::{self, ProgramError};
use k8s_openapi::api::coordination::v1::Lease;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long copying data may take.
const COPY: Duration = Duration::from_secs(24 * 3600);

/// What pg_rewind tells when it compares nothing. It goes by the primary's last checkpoint, which is one of the timeline before
/// until the first checkpoint after a promotion: data that has to be rewound would be left as it is, and then acknowledge commits
/// that it has not.
const SAME_TIMELINE: &str = "source and target cluster are on the same timeline";
/// How often it is asked again, and after which time. Two timelines may also have one number by chance.
const SAME_TIMELINE_ATTEMPTS: u32 = 200;
const SAME_TIMELINE_PAUSE: Duration = Duration::from_millis(300);

impl Agent {
    pub(super) async fn initialize(&mut self) -> Result<(), StepError> {
        self.health.is_busy();
        let place = self.volume.begin()?;
        let place = text(&place)?;
        let arguments = [
            "--pgdata",
            place,
            "--username=postgres",
            "--auth=scram-sha-256",
            "--auth-local=peer",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--data-checksums",
        ];
        programs::run(&self.clock, "initdb", &arguments, None, SHORT).await?;
        self.volume.finish()?;
        Ok(())
    }

    pub(super) async fn copy(&mut self, from: &str, seen: &Seen) -> Result<String, StepError> {
        self.stop().await;
        self.write_passfile()?;
        self.volume.discard()?;
        self.clone = self.volume.renew_clone_id()?;
        self.report(&format!("it copies the data of {from}")).await?;
        self.health.is_busy();
        let place = self.volume.begin()?;
        let passfile = self.volume.passfile();
        // By another name than the copy's own: what a program receives that may still fail acknowledges nothing.
        let conninfo = self.conninfo(from, "pg_basebackup", seen);
        let arguments = [
            "--pgdata",
            text(&place)?,
            "--dbname",
            &conninfo,
            "--checkpoint=fast",
            "--wal-method=stream",
            "--no-password",
        ];
        let epoch = seen.epoch_of_lease();
        let mut lease = self.lease.clone();
        let copied = programs::run(&self.clock, "pg_basebackup", &arguments, Some(&passfile), COPY);
        tokio::select! {
            copied = copied => copied?,
            () = until_another_epoch(&mut lease, epoch) => {
                return Err(StepError::Other("there is another primary: the copy begins anew".to_owned()));
            }
        };
        write_durably(&place.join("standby.signal"), b"", 0o600)?;
        self.volume.keep(Number::Epoch, epoch.max(seen.epoch))?;
        self.volume.keep(Number::Followed, epoch)?;
        self.volume.finish()?;
        self.streamed = Some(self.clock.moment());
        self.crashes = 0;
        Ok(format!("it has the data of {from}"))
    }

    pub(super) async fn rewind(&mut self, from: &str, seen: &Seen) -> Result<String, StepError> {
        self.stop().await;
        self.write_passfile()?;
        let epoch = seen.epoch_of_lease();
        // Some of the data is taken away: it is another copy from now on.
        self.clone = self.volume.renew_clone_id()?;
        self.report(&format!("it gives up what {from} has not")).await?;
        self.health.is_busy();
        let (data, passfile) = (self.volume.data(), self.volume.passfile());
        let conninfo = self.conninfo(from, &self.clone, seen);
        let arguments = ["--target-pgdata", text(&data)?, "--source-server", &conninfo];
        let mut lease = self.lease.clone();
        let rewound = async {
            for _ in 0..SAME_TIMELINE_ATTEMPTS {
                let rewound =
                    programs::run(&self.clock, "pg_rewind", &arguments, Some(&passfile), COPY).await?;
                if !rewound.told.contains(SAME_TIMELINE) {
                    return Ok(true);
                }
                self.clock.sleep(SAME_TIMELINE_PAUSE).await;
            }
            Ok(false)
        };
        let rewound = tokio::select! {
            rewound = rewound => rewound,
            () = until_another_epoch(&mut lease, epoch) => {
                return Err(StepError::Other("there is another primary than the one to rewind to".to_owned()));
            }
        };
        if let Err(ProgramError::Failed { said, .. }) = &rewound {
            // A primary that cannot be reached yet is asked again; anything else will not get better.
            if said.contains("could not connect") || said.contains("connection to server") {
                return Err(StepError::Other(format!("pg_rewind: {said}")));
            }
            tracing::warn!("pg_rewind failed, and the data is copied anew: {said}");
            return self.copy(from, seen).await;
        }
        if !rewound? {
            tracing::warn!("the primary has no other timeline than the data, which is copied anew");
            return self.copy(from, seen).await;
        }
        self.volume.make_standby()?;
        self.volume.keep(Number::Followed, epoch)?;
        self.streamed = Some(self.clock.moment());
        self.rewound = true;
        Ok(format!("it follows {from}"))
    }
}

async fn until_another_epoch(lease: &mut watch::Receiver<Option<Arc<Lease>>>, epoch: i32) {
    loop {
        let now = lease.borrow_and_update().as_ref().and_then(|lease| Leadership::of(lease).ok());
        if now.is_some_and(|now| now.epoch != epoch) || lease.changed().await.is_err() {
            return;
        }
    }
}

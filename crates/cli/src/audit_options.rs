//! The options of the audit log, for every command that starts an API server.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_apiserver::{AuditConfig, AuditLog};

/// A day, in which the age of old files is counted.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How large a file may become by default, in megabytes, as for the stock server.
pub(crate) const MAX_SIZE: u64 = 100;

/// What the flags of kube-apiserver say.
#[derive(Debug, clap::Args)]
pub(crate) struct AuditOptions {
    /// Audit requests as this policy says: a file with a Policy of audit.k8s.io/v1
    #[arg(long, value_name = "FILE")]
    pub(crate) audit_policy_file: Option<PathBuf>,

    /// The file of the audit log, or `-` for standard output
    #[arg(long, value_name = "FILE", requires = "audit_policy_file", default_value = "-")]
    pub(crate) audit_log_path: PathBuf,

    /// The size in megabytes from which on the audit log begins a new file
    #[arg(long, value_name = "MB", default_value_t = MAX_SIZE)]
    pub(crate) audit_log_maxsize: u64,

    /// The number of old files of the audit log that are kept [default: all]
    #[arg(long, value_name = "COUNT", default_value_t = 0, hide_default_value = true)]
    pub(crate) audit_log_maxbackup: usize,

    /// The number of days that old files of the audit log are kept [default: for ever]
    #[arg(long, value_name = "DAYS", default_value_t = 0, hide_default_value = true)]
    pub(crate) audit_log_maxage: u32,
}

impl AuditOptions {
    /// None if nothing is audited.
    pub(crate) fn config(&self) -> anyhow::Result<Option<AuditConfig>> {
        let Some(file) = &self.audit_policy_file else { return Ok(None) };
        let shown = file.display();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
        let policy = text.parse().with_context(|| format!("{shown} is no audit policy"))?;
        let path = Some(&self.audit_log_path).filter(|path| path.as_path() != Path::new("-")).cloned();
        let log = AuditLog {
            path,
            max_size: self.audit_log_maxsize.saturating_mul(1 << 20),
            max_backups: self.audit_log_maxbackup,
            max_age: (self.audit_log_maxage > 0).then(|| DAY * self.audit_log_maxage),
        };
        log.prepare().with_context(|| format!("cannot write {}", self.audit_log_path.display()))?;
        Ok(Some(AuditConfig { policy, log }))
    }
}

//! The audit log: JSON lines in a file that is rotated, or on standard output.

use parking_lot::Mutex;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use windlass_clock::{Clock, Timestamp};

/// Where the audit log is, and how much of it is kept.
#[derive(Debug, Clone)]
pub struct AuditLog {
    /// The file; standard output without one.
    pub path: Option<PathBuf>,
    /// The size in bytes from which on the file gets another name, and a new one begins; 0 for none.
    pub max_size: u64,
    /// The number of old files that are kept; 0 for all.
    pub max_backups: usize,
    /// How long old files are kept; nothing for ever.
    pub max_age: Option<Duration>,
}

impl AuditLog {
    /// Makes the file if it is missing, readable by this user only: better now than at the first request.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare(&self) -> io::Result<()> {
        self.path.as_deref().map_or(Ok(()), |path| Open::at(path).map(drop))
    }
}

/// How the time is in the name of an old file.
const TIME: &str = "%Y-%m-%dT%H-%M-%S%.3f";

pub(super) struct Writer {
    log: AuditLog,
    open: Mutex<Option<Open>>,
}

struct Open {
    file: File,
    size: u64,
}

impl Writer {
    pub(super) fn new(log: AuditLog) -> Self {
        Self { log, open: Mutex::default() }
    }

    /// Writes an event. A disk that is full does not stop the API; it is said in the server's own log.
    pub(super) fn write(&self, event: &Value) {
        let mut line = event.to_string();
        line.push('\n');
        let written = match &self.log.path {
            None => io::stdout().lock().write_all(line.as_bytes()),
            Some(path) => self.append(path, line.as_bytes()),
        };
        if let Err(error) = written {
            tracing::error!(%error, "the audit log cannot be written");
        }
    }

    fn append(&self, path: &Path, line: &[u8]) -> io::Result<()> {
        let mut open = self.open.lock();
        let length = line.len() as u64;
        if self.log.max_size > 0 && open.as_ref().is_some_and(|open| open.size + length > self.log.max_size) {
            *open = None;
            // Files are of the world outside, whatever time the API itself lives by.
            let now = Clock::real().now();
            fs::rename(path, backup(path, now))?;
            self.remove_old(path, now)?;
        }
        if open.is_none() {
            *open = Some(Open::at(path)?);
        }
        let Some(open) = open.as_mut() else { return Ok(()) };
        open.size += length;
        open.file.write_all(line)
    }

    /// Removes old files that are too many, or too old.
    fn remove_old(&self, path: &Path, now: Timestamp) -> io::Result<()> {
        let mut old = backups(path)?;
        // The newest first.
        old.sort_by(|one, other| other.cmp(one));
        for (place, (time, file)) in old.iter().enumerate() {
            let too_many = self.log.max_backups > 0 && place >= self.log.max_backups;
            let too_old =
                self.log.max_age.is_some_and(|limit| now.duration_since(*time).unsigned_abs() > limit);
            if too_many || too_old {
                fs::remove_file(file)?;
            }
        }
        Ok(())
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        // What people ask for is for few to see.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size })
    }
}

/// `audit.log` becomes `audit-TIME.log`; of two in one millisecond the later one has a later time.
fn backup(path: &Path, mut time: Timestamp) -> PathBuf {
    let (stem, extension) = parts(path);
    loop {
        let backup = path.with_file_name(format!("{stem}-{}{extension}", time.strftime(TIME)));
        if !backup.exists() {
            return backup;
        }
        time += Duration::from_millis(1);
    }
}

fn parts(path: &Path) -> (String, String) {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    (stem, extension.unwrap_or_default())
}

/// The old files beside the log, each with its time.
fn backups(path: &Path) -> io::Result<Vec<(Timestamp, PathBuf)>> {
    let (stem, extension) = parts(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut found = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?.path();
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        let time = name.strip_prefix(&format!("{stem}-")).and_then(|rest| rest.strip_suffix(&extension));
        let time = time.and_then(|time| jiff::civil::DateTime::strptime(TIME, time).ok());
        let time = time.and_then(|time| jiff::tz::TimeZone::UTC.to_timestamp(time).ok());
        found.extend(time.map(|time| (time, file.clone())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_full_file_is_put_aside_and_old_ones_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let log = AuditLog { path: Some(path.clone()), max_size: 40, max_backups: 2, max_age: None };
        let writer = Writer::new(log);
        for number in 0..20 {
            writer.write(&json!({"number": number, "text": "xxxxx"}));
        }
        assert_eq!(backups(&path).unwrap().len(), 2);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("{\"number\":19,\"text\":\"xxxxx\"}\n"), "{text}");
        assert!(text.len() <= 40);
    }

    #[test]
    fn a_log_goes_on_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit");
        let log = AuditLog { path: Some(path.clone()), max_size: 0, max_backups: 0, max_age: None };
        log.prepare().unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600, "nobody else may read it");
        for number in 0..2 {
            Writer::new(log.clone()).write(&json!(number));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "0\n1\n");
    }
}

//! Configuration files of `apiserver.config.k8s.io`: YAML or JSON, of a kind, with nothing that is not known.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::time::Duration;
use windlass_schema::FieldError;
use windlass_schema::field::aggregate;
use windlass_schema::formats::go_duration;

const GROUP: &str = "apiserver.config.k8s.io";

/// Why a configuration file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidConfigFile {
    /// It cannot be read.
    #[error("{0}")]
    Syntax(String),
    /// It is of another kind.
    #[error("it is of kind {kind:?} and version {version:?}, not {wanted} of {GROUP}/v1")]
    Kind {
        /// The kind that it should be of.
        wanted: &'static str,
        /// Its own.
        kind: String,
        /// Its version.
        version: String,
    },
    /// What it says cannot be.
    #[error("{0}")]
    Invalid(String),
}

impl InvalidConfigFile {
    /// All that is wrong, if anything is.
    pub(crate) fn unless_empty(wrong: &[FieldError]) -> Result<(), Self> {
        match wrong {
            [] => Ok(()),
            wrong => Err(Self::Invalid(aggregate(wrong))),
        }
    }
}

/// What a file of this kind says.
pub(crate) fn read<T: DeserializeOwned>(text: &str, wanted: &'static str) -> Result<T, InvalidConfigFile> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Kind {
        api_version: String,
        kind: String,
    }
    let syntax = |error: serde_saphyr::Error| {
        InvalidConfigFile::Syntax(error.to_string().lines().next().unwrap_or_default().to_owned())
    };
    let Kind { api_version, kind } = serde_saphyr::from_str(text).map_err(syntax)?;
    let versions = ["v1", "v1beta1", "v1alpha1"];
    let known = api_version
        .split_once('/')
        .is_some_and(|(group, version)| group == GROUP && versions.contains(&version));
    if kind != wanted || !known {
        return Err(InvalidConfigFile::Kind { wanted, kind, version: api_version });
    }
    serde_saphyr::from_str(text).map_err(syntax)
}

/// A duration as Go writes it, such as `1m30s`. It may be negative.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GoDuration(i64);

impl GoDuration {
    pub(crate) fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn positive(self) -> Option<Duration> {
        u64::try_from(self.0).ok().filter(|nanoseconds| *nanoseconds > 0).map(Duration::from_nanos)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        go_duration(&text)
            .map(Self)
            .ok_or_else(|| serde::de::Error::custom(format!("time: invalid duration {text:?}")))
    }
}

impl fmt::Display for GoDuration {
    /// As Go writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let all = self.0.unsigned_abs();
        if let Some((unit, of)) = [("ns", 1), ("µs", 1000), ("ms", 1_000_000)]
            .into_iter()
            .rfind(|(_, of)| (1..1_000_000_000).contains(&all) && all >= *of)
        {
            return write!(f, "{sign}{}{unit}", all as f64 / of as f64);
        }
        let (seconds, nanoseconds) = (all / 1_000_000_000, all % 1_000_000_000);
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
        f.write_str(sign)?;
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if seconds >= 60 {
            write!(f, "{minutes}m")?;
        }
        let fraction = format!("{nanoseconds:09}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{}s", seconds % 60),
            fraction => write!(f, "{}.{fraction}s", seconds % 60),
        }
    }
}

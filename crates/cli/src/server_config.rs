//! Configuration files of the API server: which authorizers are asked, and which token issuers are trusted.

use anyhow::Context as _;
use std::fs;
use std::path::Path;
use windlass_apiserver::{
    Authentication, AuthenticationConfiguration, AuthorizationConfiguration, AuthorizationMode,
};

/// What `--authorization-config` says.
pub(crate) fn authorization(file: &Path) -> anyhow::Result<Vec<AuthorizationMode>> {
    let configuration: AuthorizationConfiguration =
        read(file)?.parse().with_context(|| format!("cannot use {}", file.display()))?;
    Ok(configuration.modes)
}

/// Adds what `--authentication-config` says, and tells whether it says who is anonymous.
pub(crate) fn authentication(file: &Path, authentication: &mut Authentication) -> anyhow::Result<bool> {
    let issuers = authentication.service_accounts.names();
    let configuration = AuthenticationConfiguration::parse(&read(file)?, &issuers)
        .with_context(|| format!("cannot use {}", file.display()))?;
    authentication.jwt = configuration.jwt;
    let Some(anonymous) = configuration.anonymous else { return Ok(false) };
    authentication.anonymous = anonymous.enabled;
    authentication.anonymous_paths =
        anonymous.conditions.into_iter().map(|condition| condition.path).collect();
    Ok(true)
}

fn read(file: &Path) -> anyhow::Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

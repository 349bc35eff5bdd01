//! What is to be done about the certificates of webhooks: pure.
//!
//! They are in two Secrets: one with a certificate authority, one with the certificate that it signed. What is missing, or no longer valid,
//! any replica makes: without it nobody can be asked, and perhaps nobody can lead. What is only due is for the leader.

use crate::certificates::{Certificate, CertificateAuthority, Contents, Issue, IssueError, is_due, renew_at};
use k8s_openapi::api::core::v1::Secret;
use std::time::Duration;
use windlass_clock::Timestamp;

/// How long a certificate authority is valid.
const AUTHORITY_VALID_FOR: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long a certificate is valid.
const CERTIFICATE_VALID_FOR: Duration = Duration::from_secs(90 * 24 * 3600);

/// The certificates that there should be.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    authority: Issue,
    certificate: Issue,
    pub(super) authority_secret: String,
    pub(super) certificate_secret: String,
    authority_valid_for: Duration,
    certificate_valid_for: Duration,
}

/// Which Secret is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Authority,
    Certificate,
}

/// What is trusted and what is shown, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Certificates {
    /// Of all authorities to trust; nothing where others say so.
    pub(super) trusted: String,
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Wanted {
    /// For a server of these names, in Secrets of this name and of this name with `-ca`.
    pub(super) fn new(secret: &str, names: Vec<String>) -> Self {
        Self::valid_for(secret, names, AUTHORITY_VALID_FOR, CERTIFICATE_VALID_FOR)
    }

    fn valid_for(secret: &str, names: Vec<String>, authority: Duration, certificate: Duration) -> Self {
        let authority_secret = format!("{secret}-ca");
        let server = Certificate::server(names, authority_secret.clone()).valid_for(certificate);
        Self {
            authority: Issue::Authority(CertificateAuthority::new().valid_for(authority)),
            certificate: Issue::Certificate(server),
            authority_secret,
            certificate_secret: secret.to_owned(),
            authority_valid_for: authority,
            certificate_valid_for: certificate,
        }
    }

    /// What is to be made next, given what there is.
    pub(super) fn next(
        &self,
        authority: Option<&Secret>,
        certificate: Option<&Secret>,
        leads: bool,
        now: Timestamp,
    ) -> Option<Part> {
        let missing = |secret: Option<&Secret>, valid_for: Duration| {
            let Some(secret) = secret else { return true };
            let usable = ["tls.crt", "tls.key", "ca.crt"].iter().all(|name| entry(secret, name).is_some());
            // It was to be renewed when two thirds of its time had passed.
            let ended = renew_at(&secret.metadata).is_none_or(|at| at + valid_for / 3 <= now);
            !usable || ended
        };
        let due = |issue: &Issue, secret: Option<&Secret>, signer: Option<&Secret>| {
            let meta = |secret: &Secret| secret.metadata.clone();
            leads
                && secret
                    .is_some_and(|secret| is_due(issue, &secret.metadata, signer.map(meta).as_ref(), now))
        };
        if missing(authority, self.authority_valid_for) || due(&self.authority, authority, None) {
            return Some(Part::Authority);
        }
        let wanted = missing(certificate, self.certificate_valid_for)
            || due(&self.certificate, certificate, authority);
        wanted.then_some(Part::Certificate)
    }

    /// Makes a part.
    ///
    /// # Errors
    /// When the authority cannot sign.
    pub(super) fn make(
        &self,
        part: Part,
        authority: Option<&Secret>,
        now: Timestamp,
    ) -> Result<Contents, IssueError> {
        match part {
            Part::Authority => {
                // One that is broken tells nothing about its successor.
                let whole = authority.filter(|secret| entry(secret, "tls.crt").is_some());
                self.authority.make(&self.authority_secret, whole, None, now)
            }
            Part::Certificate => self.certificate.make(&self.certificate_secret, None, authority, now),
        }
    }

    /// The name of the Secret of a part.
    pub(super) fn secret(&self, part: Part) -> &str {
        match part {
            Part::Authority => &self.authority_secret,
            Part::Certificate => &self.certificate_secret,
        }
    }
}

impl Certificates {
    /// What two Secrets hold.
    pub(super) fn of(authority: &Secret, certificate: &Secret) -> Option<Self> {
        Some(Self {
            trusted: entry(authority, "ca.crt")?,
            certificate: entry(certificate, "tls.crt")?,
            key: entry(certificate, "tls.key")?,
        })
    }
}

fn entry(secret: &Secret, name: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(name)?.0;
    String::from_utf8(bytes.clone()).ok().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::webhook::secrets::in_memory;
    use std::collections::BTreeSet;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn wanted() -> Wanted {
        Wanted::new("shop-webhooks", vec!["shop-webhooks.shop.svc".to_owned()])
    }

    fn at(days: u32) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + DAY * days
    }

    /// Makes what is to be made at a time, and says what.
    fn step(secrets: &mut [Option<Secret>; 2], leads: bool, now: Timestamp) -> Vec<Part> {
        let mut made = Vec::new();
        while let Some(part) = wanted().next(secrets[0].as_ref(), secrets[1].as_ref(), leads, now) {
            assert!(made.len() < 4, "it does not end: {made:?}");
            let contents = wanted().make(part, secrets[0].as_ref(), now).unwrap();
            let place = &mut secrets[usize::from(part == Part::Certificate)];
            *place = Some(in_memory(place.take(), contents));
            made.push(part);
        }
        made
    }

    #[test]
    fn what_is_missing_any_replica_makes_and_what_is_due_the_leader() {
        let mut secrets = [None, None];
        assert_eq!(step(&mut secrets, false, at(0)), [Part::Authority, Part::Certificate]);
        assert_eq!(step(&mut secrets, true, at(0)), []);
        assert_eq!(step(&mut secrets.clone(), false, at(61)), [], "it is due, but valid");
        assert_eq!(step(&mut secrets.clone(), true, at(61)), [Part::Certificate]);
        assert_eq!(step(&mut secrets, false, at(91)), [Part::Certificate], "it is not valid any more");
        secrets[1].as_mut().unwrap().data.as_mut().unwrap().remove("tls.key");
        assert_eq!(step(&mut secrets, false, at(91)), [Part::Certificate], "it is broken");
        secrets[0].as_mut().unwrap().data = None;
        // A certificate of another authority is worth nothing.
        assert_eq!(step(&mut secrets, true, at(91)), [Part::Authority, Part::Certificate]);
    }

    #[test]
    fn for_three_years_every_certificate_shown_was_trusted_before() {
        let mut secrets = [None, None];
        let (mut trusted, mut authorities, mut both) = (String::new(), BTreeSet::new(), 0);
        for day in 0..1100 {
            step(&mut secrets, true, at(day));
            let [Some(authority), Some(certificate)] = &secrets else { panic!() };
            let signer = entry(authority, "tls.crt").unwrap();
            // Who last heard a day ago trusts who signs today.
            assert!(day == 0 || trusted.contains(&signer), "day {day}");
            trusted = Certificates::of(authority, certificate).unwrap().trusted;
            both += usize::from(trusted.matches("BEGIN CERTIFICATE").count() == 2);
            authorities.insert(signer);
        }
        assert!(authorities.len() >= 4 && both > 30, "{} authorities, {both} days of two", authorities.len());
    }
}

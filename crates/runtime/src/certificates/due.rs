//! When something is to be done about a certificate: told by annotations, without the contents of any Secret.

use super::recipe::{Certificate, Issue};
use crate::fingerprint::fingerprint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use std::time::Duration;
use windlass_clock::Timestamp;

/// On a Secret with a certificate: when it is next to be looked at.
pub(crate) const RENEW_AT: &str = "windlass.dev/renew-at";
/// On a Secret with a certificate: what it was issued for, and by which authority; on one with an authority, which one it is.
pub(crate) const ISSUED_FOR: &str = "windlass.dev/issued-for";

/// How long before its end a certificate is renewed: a third of its time.
pub(super) fn margin(valid_for: Duration) -> Duration {
    valid_for / 3
}

/// How long a successor is trusted before it signs: for whoever reads what to trust from a mounted Secret, or once in a while.
pub(super) fn overlap(valid_for: Duration) -> Duration {
    valid_for / 30
}

/// The time on a Secret at which its certificate is next to be looked at.
pub(crate) fn renew_at(meta: &ObjectMeta) -> Option<Timestamp> {
    annotation(meta, RENEW_AT)?.parse().ok()
}

fn annotation<'a>(meta: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    meta.annotations.as_ref()?.get(name).map(String::as_str)
}

/// Whether something is to be done about a Secret, given the Secret of its authority if that is another.
pub(crate) fn is_due(
    issue: &Issue,
    live: &ObjectMeta,
    authority: Option<&ObjectMeta>,
    now: Timestamp,
) -> bool {
    if renew_at(live).is_none_or(|at| at <= now) {
        return true;
    }
    match issue {
        Issue::Authority(_) => false,
        Issue::Certificate(certificate) => {
            // Without an authority nothing can be signed: it is made before, or its absence is another's to tell.
            let authority = authority.and_then(|meta| annotation(meta, ISSUED_FOR));
            authority.is_some_and(|authority| {
                annotation(live, ISSUED_FOR) != Some(&issued_for(certificate, authority))
            })
        }
    }
}

/// What says that a certificate is what is asked for, by the authority as it is.
pub(super) fn issued_for(certificate: &Certificate, authority: &str) -> String {
    // Texts and numbers can always be written.
    fingerprint(&(certificate, authority)).unwrap_or_default()
}

/// What is to be done about an authority that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Make a successor, to be trusted from now on.
    Announce,
    /// The successor signs from now on.
    Succeed,
    /// There is no time left: a new one signs at once.
    Replace,
}

/// The stage of an authority that was to be looked at at a time, and has a successor or not.
pub(super) fn stage(valid_for: Duration, due: Option<Timestamp>, has_next: bool, now: Timestamp) -> Stage {
    let Some(due) = due else { return Stage::Replace };
    match has_next {
        true => Stage::Succeed,
        false if due + margin(valid_for) <= now + overlap(valid_for) => Stage::Replace,
        false => Stage::Announce,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificates::CertificateAuthority;

    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn secret(renew_at: i64, issued_for: &str) -> ObjectMeta {
        let annotations =
            [(RENEW_AT.to_owned(), at(renew_at).to_string()), (ISSUED_FOR.to_owned(), issued_for.to_owned())];
        ObjectMeta { annotations: Some(annotations.into()), ..Default::default() }
    }

    #[test]
    fn a_certificate_is_due_in_time_and_when_what_it_was_issued_for_changes() {
        let certificate = Certificate::server(["a"], "ca");
        let issue = Issue::Certificate(certificate.clone());
        let authority = secret(1_000_000, "one");
        let live = secret(1000, &issued_for(&certificate, "one"));
        assert!(!is_due(&issue, &live, Some(&authority), at(999)));
        assert!(is_due(&issue, &live, Some(&authority), at(1000)), "its time has come");
        assert!(is_due(&issue, &live, Some(&secret(1_000_000, "other")), at(1)), "another authority");
        let wider = Issue::Certificate(Certificate::server(["a", "b"], "ca"));
        assert!(is_due(&wider, &live, Some(&authority), at(1)), "another name");
        assert!(!is_due(&issue, &live, None, at(1)), "there is nobody to sign");
        assert!(is_due(&issue, &ObjectMeta::default(), Some(&authority), at(1)), "nothing says when");
    }

    #[test]
    fn an_authority_is_due_by_time_alone() {
        let issue = Issue::Authority(CertificateAuthority::new());
        assert!(
            !is_due(&issue, &secret(10, "x"), None, at(9)) && is_due(&issue, &secret(10, "x"), None, at(10))
        );
    }

    #[test]
    fn a_successor_is_trusted_before_it_signs_if_there_is_time() {
        let due = at(0);
        let day = |days: i64| at(days * 24 * 3600);
        assert_eq!(stage(YEAR, Some(due), false, day(1)), Stage::Announce);
        assert_eq!(stage(YEAR, Some(due), true, day(13)), Stage::Succeed);
        assert_eq!(
            stage(YEAR, Some(due), false, day(121)),
            Stage::Replace,
            "it ends before others have heard"
        );
        assert_eq!(stage(YEAR, None, false, day(1)), Stage::Replace);
    }
}

//! Why a request to another server failed, in the words of Go's: they are part of what the API answers.

use super::Unanswered;
use http::Uri;
use rustls::CertificateError;
use std::error::Error;
use std::io;

impl Unanswered {
    /// Who was asked how, and why there is no answer.
    pub(crate) fn in_go(&self) -> String {
        let url = self.url.parse().unwrap_or_default();
        let known = self.failure.as_ref().and_then(|error| told(error, &url));
        let verb = match self.method.as_str() {
            "POST" => "Post",
            _ => "Get",
        };
        format!("{verb} \"{}\": {}", self.url, known.as_ref().unwrap_or(&self.why))
    }
}

/// The same of a request that streams.
pub(crate) fn words(error: &hyper_util::client::legacy::Error, url: &Uri) -> String {
    told(error, url).unwrap_or_else(|| super::chain(error))
}

/// What is known of an error, or of what is behind it.
fn told(error: &(dyn Error + 'static), url: &Uri) -> Option<String> {
    if let Some(tls) = error.downcast_ref::<rustls::Error>() {
        return Some(of_tls(tls, url));
    }
    if let Some(io) = error.downcast_ref::<io::Error>() {
        // What an I/O error wraps is not what it names as its source.
        let wrapped = io.get_ref().and_then(|inner| told(inner, url));
        return wrapped.or_else(|| of_io(io, url));
    }
    let cause = error.source().and_then(|cause| told(cause, url));
    let cut = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message);
    cause.or_else(|| cut.then(|| "EOF".to_owned()))
}

fn of_io(error: &io::Error, url: &Uri) -> Option<String> {
    Some(match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            let (host, port) = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(443));
            format!("dial tcp {host}:{port}: connect: connection refused")
        }
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe => "EOF".to_owned(),
        io::ErrorKind::Other => error.get_ref()?.to_string(),
        _ => return None,
    })
}

fn of_tls(error: &rustls::Error, url: &Uri) -> String {
    let rustls::Error::InvalidCertificate(why) = error else {
        return match error {
            rustls::Error::InvalidMessage(_) => {
                "tls: first record does not look like a TLS handshake".to_owned()
            }
            other => format!("tls: {other}"),
        };
    };
    let why = match why {
        CertificateError::UnknownIssuer => "certificate signed by unknown authority".to_owned(),
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for {}", url.host().unwrap_or_default())
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

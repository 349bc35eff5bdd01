//! The keys of signed tokens: one signs, several verify. RSA and the curves P-256 and P-384, from any usual form of PEM.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{PemObject, SectionKind};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer};
use rustls::sign::SigningKey;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use x509_parser::asn1_rs::{FromDer as _, Integer, Sequence};
use x509_parser::parse_x509_certificate;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// How a token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    Rs256,
    Es256,
    Es384,
}

impl Algorithm {
    /// Its name in a token's header.
    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
        }
    }

    fn scheme(self) -> SignatureScheme {
        match self {
            Self::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            Self::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            Self::Es384 => SignatureScheme::ECDSA_NISTP384_SHA384,
        }
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Es256 => &ECDSA_P256_SHA256_FIXED,
            Self::Es384 => &ECDSA_P384_SHA384_FIXED,
        }
    }

    /// The bytes of each of the two numbers of a curve's signature; none for RSA, whose signature is one.
    fn coordinate(self) -> Option<usize> {
        match self {
            Self::Rs256 => None,
            Self::Es256 => Some(32),
            Self::Es384 => Some(48),
        }
    }
}

/// A key that tokens are verified with.
#[derive(Debug, Clone)]
pub(super) struct VerifyingKey {
    algorithm: Algorithm,
    /// An RSA key's number and exponent in DER, or a point of a curve.
    key: Vec<u8>,
    /// The key's name: a digest of its public part, as the reference names keys.
    pub(super) name: String,
    /// As OpenID's documents show it, but for its name and use.
    numbers: Numbers,
}

#[derive(Debug, Clone)]
enum Numbers {
    Rsa { modulus: String, exponent: String },
    Curve { x: String, y: String },
}

impl VerifyingKey {
    /// From a key as certificates hold it; none if it is of another kind.
    fn from_spki(der: &[u8]) -> Option<Self> {
        let (_, info) = SubjectPublicKeyInfo::from_der(der).ok()?;
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let key = info.subject_public_key.data.to_vec();
        let (algorithm, numbers) = match info.parsed().ok()? {
            PublicKey::RSA(rsa) => {
                // Positive numbers whose first bit is set begin with a zero in DER.
                let plain = |number: &[u8]| encode(number.strip_prefix(&[0]).unwrap_or(number));
                (
                    Algorithm::Rs256,
                    Numbers::Rsa { modulus: plain(rsa.modulus), exponent: plain(rsa.exponent) },
                )
            }
            PublicKey::EC(_) => {
                // An uncompressed point: a mark, then both coordinates.
                let (algorithm, size) = match key.len() {
                    65 => (Algorithm::Es256, 32),
                    97 => (Algorithm::Es384, 48),
                    _ => return None,
                };
                let (x, y) = key.get(1..)?.split_at_checked(size)?;
                (algorithm, Numbers::Curve { x: encode(x), y: encode(y) })
            }
            _ => return None,
        };
        Some(Self { algorithm, key, name: encode(digest(&SHA256, der).as_ref()), numbers })
    }

    /// All keys of a file: public keys, the public parts of private ones, and those of certificates.
    pub(super) fn all_from_pem(pem: &str) -> Vec<Self> {
        let sections = <(SectionKind, Vec<u8>) as PemObject>::pem_slice_iter(pem.as_bytes());
        let key = |(kind, der): (SectionKind, Vec<u8>)| match kind {
            SectionKind::Certificate => {
                let (_, certificate) = parse_x509_certificate(&der).ok()?;
                Self::from_spki(certificate.public_key().raw)
            }
            SectionKind::PublicKey => Self::from_spki(&der),
            _ => private_key(kind, der).and_then(|key| Some(SigningKeyPair::new(&key).ok()?.verifying)),
        };
        sections.filter_map(Result::ok).filter_map(key).collect()
    }

    /// Whether this key signed `message`; `algorithm` is what the token says.
    pub(super) fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        algorithm == self.algorithm.name()
            && UnparsedPublicKey::new(self.algorithm.verification(), &self.key)
                .verify(message, signature)
                .is_ok()
    }

    /// The key as OpenID's documents show it.
    pub(super) fn to_jwk(&self) -> Value {
        let (name, algorithm) = (&self.name, self.algorithm.name());
        match &self.numbers {
            Numbers::Rsa { modulus, exponent } => json!({
                "use": "sig", "kty": "RSA", "kid": name, "alg": algorithm, "n": modulus, "e": exponent,
            }),
            Numbers::Curve { x, y } => {
                let curve = if self.algorithm == Algorithm::Es256 { "P-256" } else { "P-384" };
                json!({"use": "sig", "kty": "EC", "kid": name, "crv": curve, "alg": algorithm, "x": x, "y": y})
            }
        }
    }

    pub(super) fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }
}

/// A key that signs tokens, with the one that verifies them.
pub(super) struct SigningKeyPair {
    key: Arc<dyn SigningKey>,
    pub(super) verifying: VerifyingKey,
}

impl SigningKeyPair {
    pub(super) fn from_pem(pem: &str) -> io::Result<Self> {
        let sections = <(SectionKind, Vec<u8>) as PemObject>::pem_slice_iter(pem.as_bytes());
        let mut keys = sections.filter_map(Result::ok).filter_map(|(kind, der)| private_key(kind, der));
        let key = keys.next().ok_or_else(|| unusable("there is no private key in it"))?;
        Self::new(&key)
    }

    fn new(key: &PrivateKeyDer<'static>) -> io::Result<Self> {
        let key = any_supported_type(key).map_err(|error| unusable(&error.to_string()))?;
        let public = key.public_key().and_then(|key| VerifyingKey::from_spki(&key));
        let verifying =
            public.ok_or_else(|| unusable("the key is neither RSA nor of the curves P-256 and P-384"))?;
        Ok(Self { key, verifying })
    }

    /// None if the machine gives no random numbers.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        let algorithm = self.verifying.algorithm;
        let signature = self.key.choose_scheme(&[algorithm.scheme()])?.sign(message).ok()?;
        match algorithm.coordinate() {
            None => Some(signature),
            Some(size) => fixed(&signature, size),
        }
    }
}

fn private_key(kind: SectionKind, der: Vec<u8>) -> Option<PrivateKeyDer<'static>> {
    Some(match kind {
        SectionKind::RsaPrivateKey => PrivatePkcs1KeyDer::from(der).into(),
        SectionKind::PrivateKey => PrivatePkcs8KeyDer::from(der).into(),
        SectionKind::EcPrivateKey => PrivateSec1KeyDer::from(der).into(),
        _ => return None,
    })
}

/// A curve's signature as tokens have it: two numbers of a fixed size. TLS has them in DER.
fn fixed(der: &[u8], size: usize) -> Option<Vec<u8>> {
    let (_, sequence) = Sequence::from_der(der).ok()?;
    let (rest, first) = Integer::from_der(&sequence.content).ok()?;
    let (_, second) = Integer::from_der(rest).ok()?;
    let mut signature = Vec::with_capacity(2 * size);
    for number in [first, second] {
        let digits = number.as_ref();
        let digits = &digits[digits.iter().take_while(|digit| **digit == 0).count()..];
        signature.resize(signature.len() + size.checked_sub(digits.len())?, 0);
        signature.extend_from_slice(digits);
    }
    Some(signature)
}

fn unusable(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

//! Sprig's keys, certificates and password hashes. RSA keys of 2048 bits, as Sprig makes them.

use super::{Context, Row, any, integer, lossy, text};
use crate::render::exec::Run;
use crate::value::{Member, Object, Value};
use base64::Engine;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rsa::RsaPrivateKey;
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey, LineEnding};
use rsa::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use std::any::Any;
use std::rc::Rc;

pub(super) const ROWS: &[Row] = &[
    ("genPrivateKey", "s>s", |context, given| match &*lossy(given, 0) {
        "" | "rsa" => Ok(pkcs1(&rsa_key(context, 4096)?)?.into()),
        "ecdsa" => Ok(generated(&rcgen::PKCS_ECDSA_P256_SHA256)?.into()),
        "ed25519" => Ok(generated(&rcgen::PKCS_ED25519)?.into()),
        "dsa" => Err("DSA keys are not made: nothing accepts them any more".into()),
        other => Ok(format!("Unknown type {other}").into()),
    }),
    ("genCA", "si>c", |context, given| {
        authority(context, &lossy(given, 0), integer(given, 1), &Key::fresh(context)?)
    }),
    ("genCAWithKey", "sis>c", |context, given| {
        authority(
            context,
            &lossy(given, 0),
            integer(given, 1),
            &Key::read(&lossy(given, 2), "parsing private key")?,
        )
    }),
    ("genSelfSignedCert", "slli>c", |context, given| signed(context, given, &Key::fresh(context)?, None)),
    ("genSelfSignedCertWithKey", "sllis>c", |context, given| {
        signed(context, given, &Key::read(&lossy(given, 4), "parsing private key")?, None)
    }),
    ("genSignedCert", "sllic>c", |context, given| {
        signed(context, given, &Key::fresh(context)?, given.get(4))
    }),
    ("genSignedCertWithKey", "sllics>c", |context, given| {
        signed(context, given, &Key::read(&lossy(given, 5), "parsing private key")?, given.get(4))
    }),
    ("buildCustomCert", "ss>c", |_, given| {
        let decode = |at: usize, what: &str| {
            let decoded = base64::engine::general_purpose::STANDARD.decode(text(given, at));
            let text = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
            text.ok_or_else(|| format!("unable to decode base64 {what}"))
        };
        let (cert, key) = (decode(0, "certificate")?, decode(1, "private key")?);
        if !cert.contains("-----BEGIN ") {
            return Err("unable to decode certificate".into());
        }
        Key::read(&key, "error parsing private key")?;
        Ok(Certificate { cert, key }.value())
    }),
    ("bcrypt", "s>s", |_, given| match hashed(text(given, 0)) {
        Ok(hash) => Ok(hash.into()),
        Err(error) => Ok(format!("failed to encrypt string with bcrypt: {error}").into()),
    }),
    ("htpasswd", "ss>s", |_, given| {
        let user = lossy(given, 0);
        if user.contains(':') {
            return Ok(format!("invalid username: {user}").into());
        }
        match hashed(text(given, 1)) {
            Ok(hash) => Ok(format!("{user}:{hash}").into()),
            Err(error) => Ok(format!("failed to create htpasswd: {error}").into()),
        }
    }),
];

fn hashed(password: &[u8]) -> Result<String, String> {
    if password.len() > 72 {
        return Err("bcrypt: password length exceeds 72 bytes".into());
    }
    let mut salt = [0; 16];
    super::crypto::fill(&mut salt).map_err(|failure| failure.text)?;
    let parts = bcrypt::hash_with_salt(password, 10, salt).map_err(|error| error.to_string())?;
    Ok(parts.format_for_version(bcrypt::Version::TwoA))
}

/// A private key: as its owner gave it, and as certificates are signed with it.
struct Key {
    pem: String,
    pair: KeyPair,
}

fn failed(what: &str, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}

fn rsa_key(context: &Context<'_>, bits: usize) -> Run<RsaPrivateKey> {
    // Looking for primes takes as long as very many steps.
    for _ in 0..100_000 {
        context.engine.step(0)?;
    }
    Ok(RsaPrivateKey::new(&mut rsa::rand_core::OsRng, bits)
        .map_err(|error| failed("error generating rsa key", error))?)
}

fn pkcs1(key: &RsaPrivateKey) -> Run<String> {
    let pem = key.to_pkcs1_pem(LineEnding::LF).map_err(|error| failed("error pem-encoding key", error))?;
    Ok(pem.to_string())
}

fn generated(algorithm: &'static rcgen::SignatureAlgorithm) -> Run<String> {
    let pair =
        KeyPair::generate_for(algorithm).map_err(|error| failed("failed to generate private key", error))?;
    Ok(pair.serialize_pem().replace("\r\n", "\n"))
}

impl Key {
    fn fresh(context: &Context<'_>) -> Run<Self> {
        Self::of_rsa(&rsa_key(context, 2048)?)
    }

    fn of_rsa(key: &RsaPrivateKey) -> Run<Self> {
        let der = key.to_pkcs8_der().map_err(|error| failed("error encoding key", error))?;
        let pair = KeyPair::try_from(der.as_bytes()).map_err(|error| failed("error reading key", error))?;
        Ok(Self { pem: pkcs1(key)?, pair })
    }

    fn read(pem: &str, what: &str) -> Run<Self> {
        if !pem.contains("-----BEGIN ") {
            return Err(format!("{what}: no PEM data in input").into());
        }
        let rsa = RsaPrivateKey::from_pkcs1_pem(pem).or_else(|_| RsaPrivateKey::from_pkcs8_pem(pem));
        if let Ok(key) = rsa {
            return Self::of_rsa(&key);
        }
        let pair = KeyPair::from_pem(pem).map_err(|error| failed(what, error))?;
        Ok(Self { pem: pem.to_owned(), pair })
    }
}

/// What all certificates have.
fn params(context: &Context<'_>, name: &str, days: i64) -> Run<CertificateParams> {
    let now = context.engine.options().now.to_zoned(jiff::tz::TimeZone::UTC);
    let days = days.clamp(-36_500, 365_000);
    let end = now.checked_add(jiff::Span::new().days(days)).map_err(|error| failed("validity", error))?;
    let date = |time: &jiff::Zoned| {
        date_time_ymd(i32::from(time.year()), time.month().unsigned_abs(), time.day().unsigned_abs())
    };
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date(&now);
    params.not_after = date(&end);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

fn authority(context: &Context<'_>, name: &str, days: i64, key: &Key) -> Run<Value> {
    let mut params = params(context, name, days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    let cert = params.self_signed(&key.pair).map_err(|error| failed("error creating certificate", error))?;
    Ok(Certificate { cert: cert.pem().replace("\r\n", "\n"), key: key.pem.clone() }.value())
}

fn signed(context: &Context<'_>, given: &[Value], key: &Key, authority: Option<&Value>) -> Run<Value> {
    let mut params = params(context, &lossy(given, 0), integer(given, 3))?;
    let strings = |at: usize| match any(given, at) {
        Value::List(list) => list.items().to_vec(),
        _ => Vec::new(),
    };
    for address in strings(1) {
        let Value::Str(text) = &address else {
            return Err(
                format!("error parsing ip: {} is not a string", crate::go::print::show(&address)).into()
            );
        };
        let parsed = text.lossy().parse().map_err(|_| format!("error parsing ip: {}", text.lossy()))?;
        params.subject_alt_names.push(SanType::IpAddress(parsed));
    }
    for name in strings(2) {
        let Value::Str(text) = &name else {
            return Err(format!(
                "error processing alternate dns name: {} is not a string",
                crate::go::print::show(&name)
            )
            .into());
        };
        let name =
            text.lossy().into_owned().try_into().map_err(|error| failed("alternate dns name", error))?;
        params.subject_alt_names.push(SanType::DnsName(name));
    }
    let created = match authority {
        None => params.self_signed(&key.pair),
        Some(authority) => {
            let Value::Object(object) = authority else { return Err("unable to decode certificate".into()) };
            let Some(authority) = object.any().downcast_ref::<Certificate>() else {
                return Err("unable to decode certificate".into());
            };
            let signer = Key::read(&authority.key, "error parsing private key")?;
            let issuer = Issuer::from_ca_cert_pem(&authority.cert, signer.pair)
                .map_err(|error| failed("error parsing certificate: decodedSignerCert.Bytes", error))?;
            params.signed_by(&key.pair, &issuer)
        }
    };
    let cert = created.map_err(|error| failed("error creating certificate", error))?;
    Ok(Certificate { cert: cert.pem().replace("\r\n", "\n"), key: key.pem.clone() }.value())
}

/// A certificate with its key, in PEM.
#[derive(Debug)]
struct Certificate {
    cert: String,
    key: String,
}

impl Certificate {
    fn value(self) -> Value {
        Value::Object(Rc::new(self))
    }
}

impl Object for Certificate {
    fn type_name(&self) -> String {
        "sprig.certificate".into()
    }

    fn member(&self, name: &str) -> Member {
        match name {
            "Cert" => Member::Field(self.cert.as_str().into()),
            "Key" => Member::Field(self.key.as_str().into()),
            _ => Member::Missing,
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", self.cert.as_str().into()), ("Key", self.key.as_str().into())]
    }

    fn plain(&self) -> Value {
        Value::map(self.fields())
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other
            .any()
            .downcast_ref::<Self>()
            .is_some_and(|other| self.cert == other.cert && self.key == other.key)
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

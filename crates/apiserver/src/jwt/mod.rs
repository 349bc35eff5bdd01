//! JSON Web Tokens: signed by this server, or by issuers whose keys are known.

mod key_set;
mod keys;

pub(crate) use key_set::KeySet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use keys::{SigningKeyPair, VerifyingKey};
use serde_json::{Value, json};
use std::io;

/// Longer than any token that we sign.
const LONGEST: usize = 16 * 1024;

/// A key that signs, and all that verify.
pub(crate) struct Signer {
    signing: SigningKeyPair,
    verifying: Vec<VerifyingKey>,
}

impl Signer {
    /// From the PEM of the key that signs, and of those that verify; without these, the first one's public part does.
    pub(crate) fn from_pem(signing: &str, verifying: &[String]) -> io::Result<Self> {
        let signing = SigningKeyPair::from_pem(signing).map_err(|error| {
            io::Error::new(error.kind(), format!("the key that signs service accounts' tokens: {error}"))
        })?;
        if verifying.is_empty() {
            return Ok(Self { verifying: vec![signing.verifying.clone()], signing });
        }
        let mut keys = Vec::new();
        for pem in verifying {
            let found = VerifyingKey::all_from_pem(pem);
            if found.is_empty() {
                let why = "a key that verifies service accounts' tokens: \
                           data does not contain any valid RSA or ECDSA public keys";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            keys.extend(found);
        }
        Ok(Self { signing, verifying: keys })
    }

    /// A token that says `claims`; none if the machine gives no random numbers.
    pub(crate) fn sign(&self, claims: &Value) -> Option<String> {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let key = &self.signing.verifying;
        let header = json!({"alg": key.algorithm(), "kid": key.name});
        let signed = format!("{}.{}", part(&header), part(claims));
        let signature = self.signing.sign(signed.as_bytes())?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token of a known issuer says, if one of the keys signed it; otherwise why not, which is nothing for what is no
    /// such token.
    pub(crate) fn open(&self, token: &str, knows: impl Fn(&str) -> bool) -> Result<Value, &'static str> {
        let Parts { signed, header, claims, signature } = Parts::of(token).ok_or("")?;
        if !claims["iss"].as_str().is_some_and(knows) {
            return Err("");
        }
        // A key that is named is the only one that counts.
        let name = header.get("kid").and_then(Value::as_str).unwrap_or_default();
        let mut keys = self.verifying.iter().filter(|key| name.is_empty() || key.name == name).peekable();
        if keys.peek().is_none() {
            return Err("invalid signature, no keys found");
        }
        let algorithm = header.get("alg").and_then(Value::as_str).unwrap_or_default();
        if !keys.any(|key| key.verifies(algorithm, signed.as_bytes(), &signature)) {
            return Err("invalid signature");
        }
        if has_types(&claims) { Ok(claims) } else { Err("invalid claims") }
    }

    /// The public keys as OpenID's documents show them.
    pub(crate) fn public_keys(&self) -> Vec<Value> {
        self.verifying.iter().map(VerifyingKey::to_jwk).collect()
    }

    /// The algorithms that tokens may be signed with.
    pub(crate) fn algorithms(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.verifying.iter().map(VerifyingKey::algorithm).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A token, taken apart. Nothing of it is verified.
pub(crate) struct Parts<'a> {
    pub(crate) signed: &'a str,
    pub(crate) header: Value,
    pub(crate) claims: Value,
    pub(crate) signature: Vec<u8>,
}

impl<'a> Parts<'a> {
    /// None if it is no token.
    pub(crate) fn of(token: &'a str) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let part = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let object = |text: &str| serde_json::from_slice::<Value>(&part(text)?).ok().filter(Value::is_object);
        Some(Self { signed, header: object(header)?, claims: object(claims)?, signature: part(signature)? })
    }

    /// The text of a field of its header.
    pub(crate) fn header(&self, field: &str) -> &str {
        self.header.get(field).and_then(Value::as_str).unwrap_or_default()
    }
}

/// Whether the claims that every token has are of their types, if they are there.
fn has_types(claims: &Value) -> bool {
    let claim = |name: &str| claims.get(name).filter(|value| !value.is_null());
    let is = |name: &str, right: fn(&Value) -> bool| claim(name).is_none_or(right);
    ["exp", "nbf", "iat"].iter().all(|name| is(name, Value::is_number))
        && ["iss", "sub", "jti"].iter().all(|name| is(name, Value::is_string))
        && is("aud", |audience| match audience {
            Value::Array(audiences) => audiences.iter().all(Value::is_string),
            other => other.is_string(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use proptest::prelude::*;

    const ISSUER: &str = "issuer";

    fn open(signer: &Signer, token: &str) -> Result<Value, &'static str> {
        signer.open(token, |issuer| issuer == ISSUER)
    }

    fn signer() -> Signer {
        Signer::from_pem(Credentials::generate().unwrap().accounts_key(), &[]).unwrap()
    }

    #[test]
    fn a_token_opens_with_its_own_key_only() {
        let (own, other) = (signer(), signer());
        let claims = json!({"iss": ISSUER, "sub": "someone", "exp": 5});
        let token = own.sign(&claims).unwrap();
        assert_eq!(open(&own, &token), Ok(claims));
        assert_eq!(open(&other, &token), Err("invalid signature, no keys found"));
        assert_eq!(own.open(&token, |issuer| issuer == "another"), Err(""));
    }

    #[test]
    fn a_token_opens_with_the_key_of_a_certificate_or_of_any_curve() {
        use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap();
            let pem = key.serialize_pem();
            for public in [certificate.pem(), key.public_key_pem(), pem.clone()] {
                let own = Signer::from_pem(&pem, &[public]).unwrap();
                let claims = json!({"iss": ISSUER});
                assert_eq!(open(&own, &own.sign(&claims).unwrap()), Ok(claims));
            }
        }
        let error = Signer::from_pem(signer_pem().as_str(), &["nothing".to_owned()]).err().unwrap();
        assert!(error.to_string().contains("does not contain any valid"), "{error}");
    }

    #[test]
    fn a_token_that_was_changed_does_not_open() {
        let own = signer();
        let token = own.sign(&json!({"iss": ISSUER, "sub": "someone"})).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let other = URL_SAFE_NO_PAD.encode(json!({"iss": ISSUER, "sub": "another"}).to_string());
        let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        let confused = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256"}).to_string());
        for forged in [
            format!("{}.{other}.{}", parts[0], parts[2]),
            format!("{unsigned}.{}.", parts[1]),
            format!("{unsigned}.{}.{}", parts[1], parts[2]),
            format!("{confused}.{}.{}", parts[1], parts[2]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}."),
        ] {
            assert!(open(&own, &forged).is_err(), "{forged}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_no_token(text in "[a-zA-Z0-9._-]{0,80}") {
            let own = Signer::from_pem(signer_pem().as_str(), &[]).unwrap();
            prop_assert_eq!(open(&own, &text), Err(""));
        }
    }

    fn signer_pem() -> String {
        PEM.with(|pem| pem.clone())
    }

    thread_local! {
        static PEM: String = Credentials::generate().unwrap().accounts_key().to_owned();
    }
}

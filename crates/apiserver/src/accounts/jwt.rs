//! Signed tokens: JSON Web Tokens with ES256, and the public key that others check them with.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use std::io;

/// What comes before the point of a P-256 key in its X.509 form.
const KEY_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Longer than any token that we sign.
const LONGEST: usize = 16 * 1024;

/// A key, with what it takes to use it.
pub(super) struct Signer {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// The key's name: a digest of its public part, as the reference names keys.
    name: String,
}

impl Signer {
    pub(super) fn from_pem(pem: &str) -> io::Result<Self> {
        let unusable = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let key =
            PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| unusable(error.to_string()))?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, key.secret_der(), &random)
            .map_err(|error| unusable(error.to_string()))?;
        let public = [&KEY_PREFIX, pair.public_key().as_ref()].concat();
        let name = URL_SAFE_NO_PAD.encode(digest(&SHA256, &public));
        Ok(Self { pair, random, name })
    }

    /// A token that says `claims`; none if the machine gives no random numbers.
    pub(super) fn sign(&self, claims: &Value) -> Option<String> {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "ES256", "kid": self.name})), part(claims));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).ok()?;
        Some(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// What a token says, if this key signed it.
    pub(super) fn open(&self, token: &str) -> Option<Value> {
        if token.len() > LONGEST {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let part = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        let header: Value = serde_json::from_slice(&part(header)?).ok()?;
        if header["alg"] != "ES256" {
            return None;
        }
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &part(signature)?)
            .ok()?;
        serde_json::from_slice(&part(claims)?).ok()
    }

    /// The public key as OpenID's documents show it.
    pub(super) fn public_key(&self) -> Value {
        // An uncompressed point: a mark, then both coordinates.
        let point = self.pair.public_key().as_ref();
        let coordinate = |from: usize| URL_SAFE_NO_PAD.encode(point.get(from..from + 32).unwrap_or_default());
        json!({
            "use": "sig", "kty": "EC", "kid": self.name, "crv": "P-256", "alg": "ES256",
            "x": coordinate(1), "y": coordinate(33),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Credentials;
    use proptest::prelude::*;

    fn signer() -> Signer {
        Signer::from_pem(Credentials::generate().unwrap().accounts_key()).unwrap()
    }

    #[test]
    fn a_token_opens_with_its_own_key_only() {
        let (own, other) = (signer(), signer());
        let claims = json!({"sub": "someone", "exp": 5});
        let token = own.sign(&claims).unwrap();
        assert_eq!(own.open(&token), Some(claims));
        assert_eq!(other.open(&token), None);
    }

    #[test]
    fn a_token_that_was_changed_does_not_open() {
        let own = signer();
        let token = own.sign(&json!({"sub": "someone"})).unwrap();
        let parts: Vec<&str> = token.split('.').collect();
        let other = URL_SAFE_NO_PAD.encode(json!({"sub": "another"}).to_string());
        let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
        for forged in [
            format!("{}.{other}.{}", parts[0], parts[2]),
            format!("{unsigned}.{}.", parts[1]),
            format!("{unsigned}.{}.{}", parts[1], parts[2]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}."),
        ] {
            assert_eq!(own.open(&forged), None, "{forged}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_no_token(text in "[a-zA-Z0-9._-]{0,80}") {
            let own = Signer::from_pem(PEM.with(|pem| pem.clone()).as_str()).unwrap();
            prop_assert_eq!(own.open(&text), None);
        }
    }

    thread_local! {
        static PEM: String = Credentials::generate().unwrap().accounts_key().to_owned();
    }
}

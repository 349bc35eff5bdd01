//! The keys of an issuer, as its documents show them: a JSON Web Key Set.

use super::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;

/// The keys that an issuer signs with. Keys of kinds that nobody signs tokens with are left out.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    name: String,
    public: Public,
}

#[derive(Debug)]
enum Public {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct JsonWebKey {
    kty: String,
    kid: String,
    #[serde(rename = "use")]
    purpose: String,
    crv: String,
    n: String,
    e: String,
    x: String,
    y: String,
}

impl KeySet {
    pub(crate) fn read(document: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Document {
            keys: Vec<JsonWebKey>,
        }
        let document: Document = serde_json::from_slice(document)?;
        let signs = |key: &JsonWebKey| key.purpose.is_empty() || key.purpose == "sig";
        let keys = document.keys.into_iter().filter(signs).filter_map(|key| {
            let public = key.public()?;
            Some(Key { name: key.kid, public })
        });
        Ok(Self(keys.collect()))
    }

    /// Whether one of the keys signed a token. A key that it names is the only one that counts.
    pub(crate) fn verifies(&self, token: &Parts<'_>) -> bool {
        let (name, algorithm) = (token.header("kid"), token.header("alg"));
        let mut keys = self.0.iter().filter(|key| name.is_empty() || key.name == name);
        keys.any(|key| key.public.verifies(algorithm, token.signed.as_bytes(), &token.signature))
    }
}

impl JsonWebKey {
    fn public(&self) -> Option<Public> {
        let number = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty());
        let point = |size: usize| {
            let (x, y) = (number(&self.x)?, number(&self.y)?);
            (x.len() == size && y.len() == size).then(|| [&[4][..], &x, &y].concat())
        };
        match (self.kty.as_str(), self.crv.as_str()) {
            ("RSA", _) => Some(Public::Rsa { modulus: number(&self.n)?, exponent: number(&self.e)? }),
            ("EC", "P-256") => Some(Public::P256(point(32)?)),
            ("EC", "P-384") => Some(Public::P384(point(48)?)),
            _ => None,
        }
    }
}

impl Public {
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (self, algorithm) {
            (Self::Rsa { modulus, exponent }, algorithm) => match rsa(algorithm) {
                Some(parameters) => RsaPublicKeyComponents { n: modulus, e: exponent }
                    .verify(parameters, message, signature)
                    .is_ok(),
                None => false,
            },
            (Self::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            (Self::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Signer;
    use super::*;
    use crate::credentials::Credentials;
    use rcgen::{KeyPair, PKCS_ECDSA_P384_SHA384};
    use serde_json::json;

    #[test]
    fn a_token_is_verified_with_the_key_that_it_names() {
        let curve = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem();
        for pem in [Credentials::generate().unwrap().accounts_key().to_owned(), curve] {
            let own = Signer::from_pem(&pem, &[]).unwrap();
            let token = own.sign(&json!({"sub": "jane"})).unwrap();
            let parts = Parts::of(&token).unwrap();
            let mut keys = own.public_keys();
            let set = |keys: &[serde_json::Value]| {
                KeySet::read(json!({"keys": keys}).to_string().as_bytes()).unwrap()
            };
            assert!(set(&keys).verifies(&parts));
            assert!(!set(&[]).verifies(&parts));
            keys[0]["kid"] = json!("another");
            assert!(!set(&keys).verifies(&parts));
            keys[0]["use"] = json!("enc");
            assert!(set(&keys).0.is_empty());
        }
    }

    #[test]
    fn keys_that_cannot_be_read_are_left_out() {
        let keys = json!({"keys": [{"kty": "oct", "k": "c2VjcmV0"}, {"kty": "RSA", "n": "%"}, {"kty": "EC", "crv": "P-256"}]});
        assert!(KeySet::read(keys.to_string().as_bytes()).unwrap().0.is_empty());
        assert!(KeySet::read(b"[]").is_err());
    }
}

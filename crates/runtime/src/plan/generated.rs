//! Values that are made up when an object is created, and are in no plan, log or event: a plan holds the recipe.

use crate::certificates::{Certificate, CertificateAuthority, Issue, IssueError, key_pair};
use serde::Serialize;
use serde_json::Value;

/// Which values to generate, and where to put them.
///
/// ```
/// use windlass::Generate;
/// let recipe = Generate::new().text("/stringData/password", 32);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Generate {
    texts: Vec<Text>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    key_pairs: Vec<KeyPair>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<Issue>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Text {
    pointer: String,
    length: usize,
}

/// Where the halves of a key pair go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct KeyPair {
    private: String,
    public: String,
}

/// Letters and digits: safe in URLs, shells and configuration files. 62 of them: nearly 6 bits each.
const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Longer texts are cut to this: a recipe is no way to fill a disk.
const LONGEST: usize = 4096;

/// A value could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The system gave no randomness.
    #[error("the system gave no randomness: {0}")]
    Randomness(getrandom::Error),
    /// The place does not exist: something other than an object is in its way.
    #[error("there is no place for a generated value at {0}")]
    Place(String),
    /// A key or a certificate could not be made.
    #[error("a certificate could not be made: {0}")]
    Certificate(String),
}

impl From<IssueError> for GenerateError {
    fn from(error: IssueError) -> Self {
        Self::Certificate(error.to_string())
    }
}

impl Generate {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A random text of letters and digits, at a JSON pointer such as `/stringData/password`. Missing objects on the way
    /// are made.
    #[must_use]
    pub fn text(mut self, pointer: impl Into<String>, length: usize) -> Self {
        self.texts.push(Text { pointer: pointer.into(), length: length.min(LONGEST) });
        self
    }

    /// A key pair for signatures (ECDSA with P-256), as PEM: the private key in PKCS #8 at one JSON pointer, the public key at another.
    #[must_use]
    pub fn key_pair(mut self, private: impl Into<String>, public: impl Into<String>) -> Self {
        self.key_pairs.push(KeyPair { private: private.into(), public: public.into() });
        self
    }

    /// A certificate authority, for a Secret of type `kubernetes.io/tls`. Unlike other values it is renewed; see
    /// [`CertificateAuthority`].
    #[must_use]
    pub fn certificate_authority(mut self, authority: CertificateAuthority) -> Self {
        self.issue = Some(Issue::Authority(authority));
        self
    }

    /// A certificate and its key, for a Secret of type `kubernetes.io/tls`. Unlike other values it is renewed; see [`Certificate`].
    #[must_use]
    pub fn certificate(mut self, certificate: Certificate) -> Self {
        self.issue = Some(Issue::Certificate(certificate));
        self
    }

    /// The certificate that the object is to hold.
    pub(crate) fn issue(&self) -> Option<&Issue> {
        self.issue.as_ref()
    }

    /// Where values will be.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        let pairs = self.key_pairs.iter().flat_map(|pair| [pair.private.as_str(), pair.public.as_str()]);
        let issued = self
            .issue
            .iter()
            .flat_map(|_| ["/stringData/tls.crt", "/stringData/tls.key", "/stringData/ca.crt"]);
        self.texts.iter().map(|text| text.pointer.as_str()).chain(pairs).chain(issued)
    }

    /// Makes the values up and puts them in; all but a certificate, which may need another object.
    pub(crate) fn fill(&self, object: &mut Value) -> Result<(), GenerateError> {
        for text in &self.texts {
            put(object, &text.pointer, random_text(text.length)?)?;
        }
        for pair in &self.key_pairs {
            let (private, public) = key_pair()?;
            put(object, &pair.private, private)?;
            put(object, &pair.public, public)?;
        }
        Ok(())
    }
}

fn put(object: &mut Value, pointer: &str, text: String) -> Result<(), GenerateError> {
    let place = place(object, pointer).ok_or_else(|| GenerateError::Place(pointer.to_owned()))?;
    *place = Value::String(text);
    Ok(())
}

fn place<'a>(object: &'a mut Value, pointer: &str) -> Option<&'a mut Value> {
    let mut node = object;
    for part in pointer.strip_prefix('/')?.split('/') {
        let name = part.replace("~1", "/").replace("~0", "~");
        if node.is_null() {
            *node = Value::Object(serde_json::Map::new());
        }
        node = node.as_object_mut()?.entry(name).or_insert(Value::Null);
    }
    Some(node)
}

fn random_text(length: usize) -> Result<String, GenerateError> {
    let mut text = String::with_capacity(length);
    let mut bytes = [0u8; 64];
    while text.len() < length {
        getrandom::fill(&mut bytes).map_err(GenerateError::Randomness)?;
        // Bytes from the uneven rest of 256 / 62 are thrown away: every character is equally likely.
        let fair = bytes.iter().filter(|byte| usize::from(**byte) < 256 / ALPHABET.len() * ALPHABET.len());
        let characters = fair.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        text.extend(characters.take(length - text.len()));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_generated_text_is_new_every_time_and_where_it_was_asked_for() {
        let recipe = Generate::new().text("/stringData/password", 40);
        let fill = || {
            let mut object = json!({"kind": "Secret"});
            recipe.fill(&mut object).unwrap();
            object["stringData"]["password"].as_str().unwrap().to_owned()
        };
        let (one, other) = (fill(), fill());
        assert_eq!(one.len(), 40);
        assert_ne!(one, other);
    }

    #[test]
    fn a_key_pair_is_two_halves_of_one_key() {
        let mut object = json!({"kind": "Secret"});
        Generate::new().key_pair("/stringData/key.pem", "/stringData/key.pub").fill(&mut object).unwrap();
        let read = |name: &str| object["stringData"][name].as_str().unwrap().to_owned();
        let key = rcgen::KeyPair::from_pem(&read("key.pem")).unwrap();
        assert_eq!(key.public_key_pem(), read("key.pub"));
    }

    #[test]
    fn a_place_that_cannot_be_is_an_error() {
        let mut object = json!({"data": "text"});
        assert!(Generate::new().text("/data/x", 1).fill(&mut object).is_err());
        assert!(Generate::new().text("no-slash", 1).fill(&mut object).is_err());
    }
}

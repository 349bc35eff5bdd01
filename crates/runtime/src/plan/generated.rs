//! Values that are made up once, when an object is created, and are in no plan, log or event: a plan holds the recipe.

use serde::Serialize;
use serde_json::Value;

/// Which values to generate, and where to put them.
///
/// ```
/// use windlass::Generate;
/// let recipe = Generate::new().text("/stringData/password", 32);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Generate {
    texts: Vec<Text>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Text {
    pointer: String,
    length: usize,
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

    /// Where values will be.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| text.pointer.as_str())
    }

    /// Makes the values up and puts them in.
    pub(crate) fn fill(&self, object: &mut Value) -> Result<(), GenerateError> {
        for text in &self.texts {
            let value = random_text(text.length)?;
            let place =
                place(object, &text.pointer).ok_or_else(|| GenerateError::Place(text.pointer.clone()))?;
            *place = Value::String(value);
        }
        Ok(())
    }
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
    fn a_place_that_cannot_be_is_an_error() {
        let mut object = json!({"data": "text"});
        assert!(Generate::new().text("/data/x", 1).fill(&mut object).is_err());
        assert!(Generate::new().text("no-slash", 1).fill(&mut object).is_err());
    }
}

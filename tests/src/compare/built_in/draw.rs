//! Draws a random part of a template.
//!
//! | in a template | means |
//! |---|---|
//! | `"name!"` | a field that is always there |
//! | `"name~"` | a field that is rarely there |
//! | `{"?": [...]}` | one of these; a list as it is |
//! | `{"=": ...}` | exactly this |
//! | `{"&": "piece"}` | a shared piece |
//! | `"+": "piece"` | the fields of a shared piece |
//! | `"?+": [...]` | the fields of one of these |
//! | `"!": true` in a list's item | always in the list |

use super::piece;
use crate::compare::Random;
use serde_json::{Map, Value};

/// How often a field is drawn, in a hundred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// Always.
    Always,
    /// Now and then.
    Often,
    /// Hardly ever.
    Rarely,
}

impl Presence {
    /// Whether it is there this time.
    pub fn happens(self, random: &mut Random) -> bool {
        match self {
            Self::Always => true,
            Self::Often => random.chance(40),
            Self::Rarely => random.chance(8),
        }
    }
}

/// What a template says, with choices and pieces resolved.
pub enum Resolved {
    /// An object's fields.
    Fields(Vec<(&'static str, Presence, &'static Value)>),
    /// A list's items.
    Items(Vec<(bool, &'static Value)>),
    /// A value as it is.
    Exactly(&'static Value),
}

/// Makes the choices of the outermost level.
pub fn resolve(template: &'static Value, random: &mut Random) -> Resolved {
    match template {
        Value::Object(fields) => {
            if let Some(choices) = fields.get("?").and_then(Value::as_array) {
                let choice = random.pick(choices);
                return if choice.is_array() { Resolved::Exactly(choice) } else { resolve(choice, random) };
            }
            if let Some(name) = fields.get("&").and_then(Value::as_str) {
                return resolve(piece(name), random);
            }
            if let Some(exactly) = fields.get("=") {
                return Resolved::Exactly(exactly);
            }
            let mut resolved = Vec::new();
            for (name, value) in fields {
                match name.as_str() {
                    "!" => {}
                    "+" => {
                        if let Resolved::Fields(more) = resolve(piece(value.as_str().unwrap_or("")), random) {
                            resolved.extend(more);
                        }
                    }
                    "?+" => {
                        let choices = value.as_array().map(Vec::as_slice).unwrap_or_default();
                        if let Resolved::Fields(more) = resolve(random.pick(choices), random) {
                            resolved.extend(more);
                        }
                    }
                    name => {
                        let (name, presence) = match (name.strip_suffix('!'), name.strip_suffix('~')) {
                            (Some(name), _) => (name, Presence::Always),
                            (_, Some(name)) => (name, Presence::Rarely),
                            _ => (name, Presence::Often),
                        };
                        resolved.push((name, presence, value));
                    }
                }
            }
            Resolved::Fields(resolved)
        }
        Value::Array(items) => {
            Resolved::Items(items.iter().map(|item| (item.get("!").is_some(), item)).collect())
        }
        scalar => Resolved::Exactly(scalar),
    }
}

/// A value of the template.
pub fn draw(template: &'static Value, random: &mut Random) -> Value {
    match resolve(template, random) {
        Resolved::Exactly(value) => value.clone(),
        Resolved::Fields(fields) => {
            let mut drawn = Map::new();
            for (name, presence, value) in fields {
                if presence.happens(random) {
                    drawn.insert(name.to_owned(), draw(value, random));
                }
            }
            Value::Object(drawn)
        }
        Resolved::Items(items) => {
            let mut drawn = Vec::new();
            for (always, item) in items {
                if always || random.chance(45) {
                    drawn.push(draw(item, random));
                }
            }
            reconcile(&mut drawn, random);
            Value::Array(drawn)
        }
    }
}

/// Now and then, another order.
pub fn reconcile(items: &mut [Value], random: &mut Random) {
    if items.len() > 1 && random.chance(25) {
        let by = random.below(items.len());
        items.rotate_left(by);
    }
}

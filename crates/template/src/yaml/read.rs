//! Reads YAML into plain JSON, within bounds.

use super::scalar::{key, resolve, tagged};
use granit_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Value as Json};
use std::collections::HashMap;

const DEEPEST: usize = 200;
/// Aliases may stand for no more values than this in all.
const MOST: usize = 4_000_000;

/// A text that is no YAML, or not such as Helm takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The first document of a text; null if there is none. Numbers with a fraction or exponent are floats, others are integers.
///
/// # Errors
/// If the text is no YAML, is nested too deeply or is too large once its aliases are resolved.
pub fn read(text: &str) -> Result<Json, Error> {
    Ok(documents(text, 1)?.pop().unwrap_or(Json::Null))
}

/// All documents of a text.
///
/// # Errors
/// As [`read`].
pub fn read_all(text: &str) -> Result<Vec<Json>, Error> {
    documents(text, usize::MAX)
}

fn documents(text: &str, most: usize) -> Result<Vec<Json>, Error> {
    let mut reader =
        Reader { events: Parser::new_from_str(text), anchors: HashMap::new(), values: 0, line: 0 };
    let mut documents = Vec::new();
    loop {
        match reader.next()? {
            Event::StreamEnd => return Ok(documents),
            Event::DocumentStart(..) => {
                reader.anchors.clear();
                let event = reader.next()?;
                documents.push(reader.value(event, 0)?);
                if documents.len() >= most {
                    return Ok(documents);
                }
            }
            _ => {}
        }
    }
}

struct Reader<'a> {
    events: Parser<'a, granit_parser::StrInput<'a>>,
    anchors: HashMap<usize, (Json, usize)>,
    values: usize,
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Event<'a>, Error> {
        loop {
            return match self.events.next() {
                Some(Ok((Event::Comment(..), _))) => continue,
                Some(Ok((event, span))) => {
                    self.line = span.start.line();
                    Ok(event)
                }
                Some(Err(error)) => {
                    Err(Error(format!("yaml: line {}: {}", error.marker().line(), error.info())))
                }
                None => Ok(Event::StreamEnd),
            };
        }
    }

    fn fail<T>(&self, why: &str) -> Result<T, Error> {
        Err(Error(format!("yaml: line {}: {why}", self.line)))
    }

    fn value(&mut self, event: Event<'a>, depth: usize) -> Result<Json, Error> {
        if depth > DEEPEST {
            return self.fail("exceeded max depth");
        }
        let before = self.values;
        self.count(1)?;
        let anchor = event.anchor_id();
        let value = match event {
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id).cloned() else {
                    return self.fail("an alias stands inside of what it refers to");
                };
                self.count(size)?;
                return Ok(value);
            }
            Event::Scalar(text, style, _, tag) => {
                let plain = style == ScalarStyle::Plain;
                let value = match tag.as_deref().and_then(core) {
                    Some(tag) => tagged(&tag, &text, plain),
                    None if plain && tag.is_none() => resolve(&text),
                    None => Ok(Json::String(text.into_owned())),
                };
                match value {
                    Ok(value) => value,
                    Err(why) => return self.fail(&why),
                }
            }
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => break Json::Array(items),
                        event => items.push(self.value(event, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => self.mapping(depth)?,
            Event::StreamEnd | Event::DocumentEnd => return Ok(Json::Null),
            _ => return self.fail("did not find expected node content"),
        };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, (value.clone(), self.values - before));
        }
        Ok(value)
    }

    fn count(&mut self, values: usize) -> Result<(), Error> {
        self.values = self.values.saturating_add(values);
        if self.values > MOST { self.fail("document contains excessive aliasing") } else { Ok(()) }
    }

    fn mapping(&mut self, depth: usize) -> Result<Json, Error> {
        let mut fields = Map::new();
        let mut merged: Vec<Json> = Vec::new();
        loop {
            let event = self.next()?;
            if matches!(event, Event::MappingEnd) {
                break;
            }
            let merge = matches!(&event, Event::Scalar(text, ScalarStyle::Plain, _, None) if &**text == "<<");
            let name = self.value(event, depth + 1)?;
            let next = self.next()?;
            let value = self.value(next, depth + 1)?;
            if merge {
                match value {
                    // Of several maps the first one counts.
                    Json::Array(all) => merged.extend(all),
                    value => merged.push(value),
                }
                continue;
            }
            match key(&name) {
                Ok(name) => fields.insert(name, value),
                Err(why) => return self.fail(&why),
            };
        }
        for value in merged {
            let Json::Object(value) = value else {
                return self.fail("map merge requires map or sequence of maps as the value");
            };
            for (name, value) in value {
                fields.entry(name).or_insert(value);
            }
        }
        Ok(Json::Object(fields))
    }
}

/// The name of a tag of YAML's own.
fn core(tag: &Tag) -> Option<String> {
    let full = format!("{}{}", tag.handle(), tag.suffix());
    full.strip_prefix("tag:yaml.org,2002:").or(full.strip_prefix("!!")).map(str::to_owned)
}

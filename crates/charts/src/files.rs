//! `.Files`: the files of a chart that are no templates.

use crate::{File, glob};
use base64::Engine;
use std::any::Any;
use std::collections::BTreeMap;
use std::rc::Rc;
use windlass_template::value::{Kind, Member, Object, Value};

/// A map from names to bytes, with methods.
#[derive(Debug)]
pub(crate) struct Files(BTreeMap<String, Rc<[u8]>>);

impl Files {
    pub fn new(files: &[File]) -> Self {
        Self(files.iter().map(|file| (file.name.clone(), file.data.as_slice().into())).collect())
    }

    pub fn value(self) -> Value {
        Value::Object(Rc::new(self))
    }

    fn as_yaml(&self, encode: impl Fn(&[u8]) -> String) -> Result<Value, String> {
        // Of two files of the same name the last one counts, as good as any in Go.
        let all = self.0.iter().map(|(name, data)| {
            (name.rsplit('/').next().unwrap_or(name).to_owned(), serde_json::Value::String(encode(data)))
        });
        let json = serde_json::Value::Object(all.collect());
        let text = windlass_template::yaml::to_text(&json);
        Ok(text.strip_suffix('\n').unwrap_or(&text).into())
    }
}

impl Object for Files {
    fn type_name(&self) -> String {
        "engine.files".into()
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn member(&self, name: &str) -> Member {
        match name {
            "Get" => Member::Method("s>s"),
            "GetBytes" | "Glob" | "Lines" => Member::Method("s>x"),
            "AsConfig" | "AsSecrets" => Member::Method(">s"),
            name => match self.0.get(name) {
                Some(data) => Member::Field(Value::Bytes(Rc::clone(data))),
                None => Member::Missing,
            },
        }
    }

    fn call(&self, name: &str, given: &[Value]) -> Result<Value, String> {
        let path = match given.first() {
            Some(Value::Str(path)) => path.lossy().into_owned(),
            _ => String::new(),
        };
        let data = self.0.get(&path);
        match name {
            "Get" => Ok(Value::str(data.map_or(&b""[..], |data| data))),
            "GetBytes" => Ok(Value::Bytes(data.cloned().unwrap_or_else(|| Rc::from([])))),
            "Lines" => {
                let data = data.map_or(&b""[..], |data| data);
                if data.is_empty() {
                    return Ok(Value::strings(Vec::<&str>::new()));
                }
                let data = data.strip_suffix(b"\n").unwrap_or(data);
                Ok(Value::strings(data.split(|byte| *byte == b'\n')))
            }
            "Glob" => {
                let pattern = glob::compile(&path);
                let found = self
                    .0
                    .iter()
                    .filter(|(name, _)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(name)));
                Ok(Self(found.map(|(name, data)| (name.clone(), Rc::clone(data))).collect()).value())
            }
            "AsConfig" => self.as_yaml(|data| String::from_utf8_lossy(data).into_owned()),
            _ => self.as_yaml(|data| base64::engine::general_purpose::STANDARD.encode(data)),
        }
    }

    fn len(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn entries(&self) -> Vec<(windlass_template::GoStr, Value)> {
        self.0.iter().map(|(name, data)| (name.as_str().into(), Value::Bytes(Rc::clone(data)))).collect()
    }

    fn plain(&self) -> Value {
        Value::map(self.0.iter().map(|(name, data)| (name.as_str(), Value::Bytes(Rc::clone(data)))))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.any().downcast_ref::<Self>().is_some_and(|other| self.0 == other.0)
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

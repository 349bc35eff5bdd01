//! The types of built-in kinds as strategic merge patches walk them.

use super::{Structs, Type};
use windlass_schema::strategic::{Position, Strategy, Way};

/// A type, among the structs that it may name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) structs: &'a Structs,
    pub(crate) kind: &'a Type,
}

impl<'a> Place<'a> {
    fn look_up(&self, name: &str) -> Result<(&'a Type, Strategy<'a>), String> {
        let kind = match self.kind {
            Type::Pointer(inner) => inner,
            other => other,
        };
        let definition = match kind {
            Type::Struct(definition) => definition.as_str(),
            other if other.go_kind() == "struct" => "",
            other => {
                let kind = other.go_kind();
                return Err(format!(
                    "merging an object in json but data type is not struct, instead is: {kind}"
                ));
            }
        };
        let fields = self.structs.get(definition).map(|known| &known.fields);
        // As Go does for JSON, names are compared with their case first, and then without.
        let field = fields.and_then(|fields| {
            let alike = || fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            fields.get(name).or_else(|| alike().map(|(_, field)| field))
        });
        match field {
            Some(field) => {
                let strategy = Strategy { way: Way::parse(&field.patch), merge_key: &field.merge_key };
                Ok((&field.kind, strategy))
            }
            None => {
                let full = kind.go_name();
                let short = full.rsplit('.').next().unwrap_or_default();
                Err(format!("unable to find api field in struct {short} for the json field {name:?}"))
            }
        }
    }
}

impl Position for Place<'_> {
    fn field(&self, name: &str) -> Result<(Self, Strategy<'_>), String> {
        let (kind, strategy) = self.look_up(name)?;
        Ok((Self { kind, ..*self }, strategy))
    }

    fn items(&self, name: &str) -> Result<(Self, Strategy<'_>), String> {
        let (kind, strategy) = self.look_up(name)?;
        let items = match kind {
            Type::List(inner) if matches!(**inner, Type::List(_) | Type::Bytes) => {
                return Err("unexpected slice of slice".to_owned());
            }
            Type::List(inner) => inner,
            Type::Pointer(inner) => match &**inner {
                Type::List(items) => items,
                other => other,
            },
            _ => return Err(format!("expected slice or array type, but got: {}", self.kind())),
        };
        Ok((Self { kind: items, ..*self }, strategy))
    }

    fn kind(&self) -> &str {
        self.kind.go_kind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::FACTS;

    #[test]
    fn facts_say_how_lists_merge() {
        let pod = Type::Struct("io.k8s.api.core.v1.Pod".to_owned());
        let pod = Place { structs: &FACTS.structs, kind: &pod };
        let (spec, _) = pod.field("spec").expect("a pod has a spec");
        let (container, strategy) = spec.items("containers").expect("it has containers");
        assert_eq!((strategy.way, strategy.merge_key), (Way::Merge, "name"));
        assert_eq!(container.items("command").expect("a command").1.way, Way::Unsaid);
        let (volume, _) = spec.items("volumes").expect("it has volumes");
        assert!(volume.field("secret").is_ok(), "what is inlined is found");
        assert_eq!(
            spec.field("foo").err().as_deref(),
            Some("unable to find api field in struct PodSpec for the json field \"foo\"")
        );
        assert_eq!(
            spec.field("nodeSelector").expect("a selector").0.field("a").err().as_deref(),
            Some("merging an object in json but data type is not struct, instead is: map")
        );
    }
}

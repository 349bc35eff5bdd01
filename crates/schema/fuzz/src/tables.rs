//! Types for the targets that need one: a message with a field of every kind, and a place where every list merges.

use windlass_schema::proto::{Field, Kind, Messages, Shape};
use windlass_schema::strategic::{Position, Strategy, Way};

/// Everything merges by `name`, at any depth.
pub struct Everywhere;

impl Position for Everywhere {
    fn field(&self, _: &str) -> Result<(Self, Strategy<'_>), String> {
        Ok((Self, Strategy::default()))
    }

    fn items(&self, name: &str) -> Result<(Self, Strategy<'_>), String> {
        let merge_key = if name.len() > 1 { "name" } else { "" };
        Ok((Self, Strategy { way: Way::Merge, merge_key }))
    }

    fn kind(&self) -> &str {
        "struct"
    }
}

/// The type of a field.
pub enum Type {
    Is(Kind<'static, Type>),
    List(Box<Type>),
    Map(Box<Type>),
}

impl Shape for Type {
    fn kind(&self) -> Kind<'_, Self> {
        match self {
            Self::Is(kind) => *kind,
            Self::List(item) => Kind::List(item),
            Self::Map(value) => Kind::Map(value),
        }
    }

    fn is_optional(&self) -> bool {
        matches!(self, Self::Is(Kind::Message(_)))
    }
}

/// A message which has itself as a field, and one whose fields it has as its own.
pub struct Table {
    all: Vec<Field<Type>>,
    part: Vec<Field<Type>>,
}

impl Messages for Table {
    type Shape = Type;

    fn fields(&self, message: &str) -> Option<&[Field<Type>]> {
        match message {
            "All" => Some(&self.all),
            "Part" => Some(&self.part),
            _ => None,
        }
    }

    fn schema(&self) -> &str {
        "All"
    }
}

/// The table.
pub fn table() -> Table {
    let kinds = || {
        [
            Kind::Text,
            Kind::Bool,
            Kind::Int { bits: 32, signed: true },
            Kind::Float,
            Kind::Bytes,
            Kind::Time,
            Kind::MicroTime,
            Kind::Quantity,
            Kind::IntOrString,
            Kind::Json,
            Kind::SchemaOrArray,
            Kind::SchemaOrBool,
            Kind::SchemaOrStrings,
            Kind::Message("All"),
        ]
    };
    let shapes = kinds()
        .map(Type::Is)
        .into_iter()
        .chain(kinds().map(|kind| Type::List(Box::new(Type::Is(kind)))))
        .chain(kinds().map(|kind| Type::Map(Box::new(Type::Is(kind)))))
        .chain([Type::Map(Box::new(Type::List(Box::new(Type::Is(Kind::Text)))))]);
    let field = |name: &str, number, shape| Field {
        number,
        name: format!("{name}{number}"),
        inline: false,
        wrapped: false,
        shape,
    };
    let mut all: Vec<_> = (1..).zip(shapes).map(|(number, shape)| field("f", number, shape)).collect();
    let inline = field("i", 100, Type::Is(Kind::Message("Part")));
    all.push(Field { inline: true, ..inline });
    // What is inlined cannot have itself inside.
    let part = [Kind::Text, Kind::Message("All")].map(Type::Is);
    let part = (1..).zip(part).map(|(number, shape)| field("p", number, shape)).collect();
    Table { all, part }
}

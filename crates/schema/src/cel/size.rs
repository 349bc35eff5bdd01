//! How large what a schema describes can be, and how large what an expression makes of it: bounds, as Kubernetes' estimate of
//! costs has them.

use super::escape::escape;
use crate::schema::{self, Additional, Schema};
use std::collections::BTreeMap;

/// The largest request.
const MOST_BYTES: u64 = 3 * 1024 * 1024;

/// The minimum and maximum number of items or characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    pub least: u64,
    pub most: u64,
}

impl Size {
    pub(super) const UNKNOWN: Self = Self { least: 0, most: u64::MAX };

    pub(super) fn exactly(size: u64) -> Self {
        Self { least: size, most: size }
    }

    pub(super) fn up_to(most: u64) -> Self {
        Self { least: 0, most }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { least: self.least.saturating_add(other.least), most: self.most.saturating_add(other.most) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { least: self.least.saturating_mul(other.least), most: self.most.saturating_mul(other.most) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// What it costs at most, when each of it costs so much.
    pub(super) fn cost(self, each: f64) -> u64 {
        scaled(self.most, each)
    }
}

/// The next whole number; the largest there is, if there is none.
#[expect(clippy::cast_precision_loss, reason = "as the reference counts")]
pub(super) fn scaled(number: u64, factor: f64) -> u64 {
    let product = (number as f64 * factor).ceil();
    // A float that is too large becomes the largest number.
    product as u64
}

/// What a schema says about sizes.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    most: u64,
    /// The least number of bytes that it takes in a request.
    pub(super) least_bytes: u64,
    /// What the items of a list or the values of a map are.
    inner: Option<Box<Bounds>>,
    has_keys: bool,
    fields: BTreeMap<String, Bounds>,
}

impl Bounds {
    /// Those of a schema as rules see it; none where they see nothing of it.
    pub(super) fn of(schema: &Schema) -> Option<Self> {
        let text = |most: u64, least_bytes: u64| Self { most, least_bytes, ..Self::default() };
        let length = schema.max_length;
        // A character may take four bytes.
        let characters = length.map(|length| length.saturating_mul(4));
        if schema.int_or_string {
            return Some(text(characters.unwrap_or(MOST_BYTES - 2), 1));
        }
        Some(match schema.kind? {
            schema::Type::Array => {
                let items = Self::of(schema.items.as_ref()?)?;
                let most = schema.max_items.unwrap_or((MOST_BYTES - 2) / (items.least_bytes + 1));
                Self { most, least_bytes: 2, inner: Some(items.into()), ..Self::default() }
            }
            schema::Type::Object => {
                if let Some(Additional::Schema(values)) = &schema.additional {
                    let values = Self::of(values)?;
                    let most = (MOST_BYTES - 2) / (values.least_bytes + 6);
                    let most = schema.max_properties.unwrap_or(most);
                    let inner = Some(values.into());
                    return Some(Self { most, least_bytes: 2, inner, has_keys: true, ..Self::default() });
                }
                return Some(Self::of_object(schema));
            }
            schema::Type::String => match schema.format.as_deref() {
                Some("byte") => text(length.unwrap_or(MOST_BYTES - 2), 2),
                Some("duration") => text(32, 3),
                Some("date") => text(12, 12),
                Some("date-time") => text(32, 21),
                _ => text(characters.or_else(|| longest(schema)).unwrap_or(MOST_BYTES - 2), 2),
            },
            schema::Type::Boolean => text(0, 4),
            schema::Type::Number | schema::Type::Integer => text(0, 1),
        })
    }

    fn of_object(schema: &Schema) -> Self {
        let mut object = Self { least_bytes: 2, ..Self::default() };
        for (name, property) in &schema.properties {
            let Some(bounds) = Self::of(property) else { continue };
            if schema.required.contains(name) && property.default.is_none() {
                object.least_bytes += name.len() as u64 + bounds.least_bytes + 4;
            }
            if let Some(escaped) = escape(name) {
                object.fields.insert(escaped.into_owned(), bounds);
            }
        }
        object
    }

    /// How large what a path leads to can be. Its first step is the variable, which is not looked at.
    pub(super) fn at(&self, path: &[String]) -> Option<Size> {
        let mut here = self;
        for step in path.get(1..)? {
            here = match step.as_str() {
                "@items" | "@values" => here.inner.as_ref()?,
                // Nothing is known of keys, and so they are of no size.
                "@keys" => return here.has_keys.then_some(Size::up_to(0)),
                field => here.fields.get(field)?,
            };
        }
        Some(Size::up_to(here.most))
    }

    /// How often it can be there in a request, if nothing around it says how often.
    pub(super) fn most_often(&self) -> u64 {
        MOST_BYTES / (self.least_bytes + 1)
    }
}

/// The longest of the texts that are allowed, if only some are.
fn longest(schema: &Schema) -> Option<u64> {
    let texts = schema.enumeration.as_ref()?;
    texts.iter().map(|text| text.as_str().map_or(0, str::len) as u64).max()
}

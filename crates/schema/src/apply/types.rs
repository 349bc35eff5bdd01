//! The type of a value for server-side apply: a lazy view of a schema.

use crate::schema::{Additional, ListType, MapType, Schema, Type};
use serde_json::Value;
use std::sync::{Arc, LazyLock};

/// What a value may be at one place of an object.
#[derive(Debug, Clone)]
pub(crate) enum TypeView {
    /// Any value; maps merge by field, lists are replaced as a whole.
    Deduced,
    /// Any value, replaced as a whole.
    Untyped,
    /// Any scalar.
    Scalar,
    /// Nothing is declared here.
    Nothing,
    /// What a schema says.
    Declared {
        schema: Arc<Schema>,
        /// Inside `x-kubernetes-preserve-unknown-fields`, which reaches down to everything written in place.
        preserve: bool,
        /// `x-kubernetes-map-type` beside a reference, which overrides that of the definition.
        map_type: Option<MapType>,
        /// A whole object: it has an apiVersion, a kind and metadata whatever its schema says.
        object: bool,
        /// Reached by a reference, not written in place.
        named: bool,
    },
}

/// Kinds of scalars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    String,
    Boolean,
    Any,
}

/// How a list merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    Keyed,
}

/// How a map merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MapKind {
    Atomic,
    Granular,
}

/// The forms that a value may take at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Shapes {
    pub(crate) scalar: Option<Scalar>,
    pub(crate) list: Option<ListKind>,
    pub(crate) map: Option<MapKind>,
}

/// The one form in which a value is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar(Scalar),
    List(ListKind),
    Map(MapKind),
    Invalid,
}

/// A field's type.
pub(crate) enum Member {
    /// Named in the schema.
    Declared(TypeView),
    /// Allowed as one of any others.
    Additional(TypeView),
    /// Not allowed.
    Undeclared,
}

impl Member {
    pub(crate) fn view(self) -> TypeView {
        match self {
            Member::Declared(view) | Member::Additional(view) => view,
            Member::Undeclared => TypeView::Nothing,
        }
    }
}

impl Shapes {
    /// Narrows to the form of a value, if it is among them. Null takes any.
    pub(crate) fn of(self, value: Option<&Value>) -> Shapes {
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if self.scalar.is_some() => {
                Shapes { scalar: self.scalar, ..Shapes::default() }
            }
            Some(Value::Array(_)) if self.list.is_some() => Shapes { list: self.list, ..Shapes::default() },
            Some(Value::Object(_)) if self.map.is_some() => Shapes { map: self.map, ..Shapes::default() },
            _ => self,
        }
    }

    /// The form to handle where several are left.
    pub(crate) fn first(self) -> Shape {
        match self {
            Shapes { map: Some(map), .. } => Shape::Map(map),
            Shapes { scalar: Some(scalar), .. } => Shape::Scalar(scalar),
            Shapes { list: Some(list), .. } => Shape::List(list),
            _ => Shape::Invalid,
        }
    }
}

impl TypeView {
    /// The view of a whole object of a kind; deduced without a schema.
    pub(crate) fn of_kind(schema: Option<Arc<Schema>>) -> TypeView {
        let Some(schema) = schema.map(|schema| schema.resolved()) else { return TypeView::Deduced };
        let preserve = schema.preserve_unknown;
        TypeView::Declared { schema, preserve, map_type: None, object: true, named: true }
    }

    fn of_child(schema: &Arc<Schema>, preserve: bool) -> TypeView {
        let reference = schema.reference.as_ref().or_else(|| match schema.all_of.as_slice() {
            [only] if schema.kind.is_none() => only.reference.as_ref(),
            _ => None,
        });
        let Some(reference) = reference else {
            return TypeView::Declared {
                preserve: preserve || schema.preserve_unknown,
                map_type: None,
                object: schema.embedded_resource,
                named: false,
                schema: schema.clone(),
            };
        };
        // Definitions whose Go types marshal themselves: their schemas say less than the truth.
        match reference.name.as_str() {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => return TypeView::Scalar,
            "io.k8s.apimachinery.pkg.runtime.RawExtension" => return TypeView::Untyped,
            _ => {}
        }
        let target = schema.resolved();
        if target.reference.is_some() || Arc::ptr_eq(&target, schema) {
            return TypeView::Deduced;
        }
        TypeView::Declared {
            preserve: target.preserve_unknown,
            map_type: schema.map_type,
            object: target.embedded_resource,
            named: true,
            schema: target,
        }
    }

    fn of_definition(schema: &Arc<Schema>) -> TypeView {
        TypeView::Declared {
            schema: schema.clone(),
            preserve: false,
            map_type: None,
            object: false,
            named: true,
        }
    }

    /// The forms that a value may take here.
    pub(crate) fn shapes(&self) -> Shapes {
        let (schema, map_type) = match self {
            TypeView::Nothing => return Shapes::default(),
            TypeView::Scalar => return Shapes { scalar: Some(Scalar::Any), ..Shapes::default() },
            TypeView::Deduced | TypeView::Untyped => {
                let map = if matches!(self, TypeView::Deduced) { MapKind::Granular } else { MapKind::Atomic };
                return Shapes { scalar: Some(Scalar::Any), list: Some(ListKind::Atomic), map: Some(map) };
            }
            TypeView::Declared { schema, map_type, .. } => (schema, map_type.or(schema.map_type)),
        };
        let list = match schema.list_type {
            Some(ListType::Set) => ListKind::Set,
            Some(ListType::Map) if schema.list_map_keys.is_empty() => ListKind::Set,
            Some(ListType::Map) => ListKind::Keyed,
            Some(ListType::Atomic) | None => ListKind::Atomic,
        };
        let map = match map_type {
            Some(MapType::Atomic) => MapKind::Atomic,
            Some(MapType::Granular) | None => MapKind::Granular,
        };
        let scalar = |scalar| Shapes { scalar: Some(scalar), ..Shapes::default() };
        match schema.kind {
            None => Shapes { scalar: Some(Scalar::Any), list: Some(list), map: Some(map) },
            Some(Type::Object) => Shapes { map: Some(map), ..Shapes::default() },
            Some(Type::Array) => Shapes { list: Some(list), ..Shapes::default() },
            Some(Type::Integer | Type::Number) => scalar(Scalar::Numeric),
            Some(Type::Boolean) => scalar(Scalar::Boolean),
            Some(Type::String) => match schema.format.as_deref() {
                None | Some("" | "byte") => scalar(Scalar::String),
                Some(_) => scalar(Scalar::Any),
            },
        }
    }

    /// The type of a field of a map.
    pub(crate) fn field(&self, name: &str) -> Member {
        let (schema, preserve) = match self {
            TypeView::Deduced => return Member::Additional(TypeView::Deduced),
            TypeView::Untyped => return Member::Additional(TypeView::Untyped),
            TypeView::Nothing | TypeView::Scalar => return Member::Undeclared,
            TypeView::Declared { schema, preserve, object, .. } => {
                if *object {
                    match name {
                        "metadata" => return Member::Declared(TypeView::of_definition(&OBJECT_META)),
                        "apiVersion" | "kind" => return Member::Declared(TypeView::of_definition(&STRING)),
                        _ => {}
                    }
                }
                (schema, *preserve)
            }
        };
        if let Some(field) = schema.properties.get(name) {
            return Member::Declared(TypeView::of_child(field, preserve));
        }
        match self.element_of_map() {
            TypeView::Nothing => Member::Undeclared,
            view => Member::Additional(view),
        }
    }

    /// The type of the fields of a map that are not declared.
    fn element_of_map(&self) -> TypeView {
        match self {
            TypeView::Deduced => TypeView::Deduced,
            TypeView::Untyped => TypeView::Untyped,
            TypeView::Nothing | TypeView::Scalar => TypeView::Nothing,
            TypeView::Declared { schema, preserve, object, .. } => match &schema.additional {
                Some(Additional::Schema(element)) => TypeView::of_child(element, *preserve),
                Some(Additional::Allowed(true)) => TypeView::Deduced,
                Some(Additional::Allowed(false)) => TypeView::Nothing,
                None if *preserve || (schema.properties.is_empty() && !object) => TypeView::Deduced,
                None => TypeView::Nothing,
            },
        }
    }

    /// Whether a map declares nothing and takes anything: what is owned in it is not held against the schema.
    pub(crate) fn is_free_map(&self) -> bool {
        let declares = match self {
            TypeView::Declared { schema, object, .. } => *object || !schema.properties.is_empty(),
            _ => false,
        };
        !declares
            && match self.element_of_map() {
                TypeView::Deduced => true,
                TypeView::Declared { named: true, .. } => false,
                element @ TypeView::Declared { .. } => element.shapes().scalar == Some(Scalar::Any),
                TypeView::Untyped | TypeView::Scalar | TypeView::Nothing => false,
            }
    }

    /// The type of a list's items.
    pub(crate) fn item(&self) -> TypeView {
        match self {
            TypeView::Declared { schema, preserve, .. } => match &schema.items {
                Some(items) => TypeView::of_child(items, *preserve),
                None => TypeView::Untyped,
            },
            TypeView::Deduced | TypeView::Untyped => TypeView::Untyped,
            TypeView::Nothing | TypeView::Scalar => TypeView::Nothing,
        }
    }

    /// The key fields of an associative list.
    pub(crate) fn keys(&self) -> &[String] {
        match self {
            TypeView::Declared { schema, .. } => &schema.list_map_keys,
            _ => &[],
        }
    }

    /// The default of a declared field.
    pub(crate) fn default_of(&self, name: &str) -> Option<&Value> {
        match self {
            TypeView::Declared { schema, .. } => schema.properties.get(name)?.default.as_ref(),
            _ => None,
        }
    }

    /// The fields that a map declares with a default.
    pub(crate) fn defaults(&self) -> impl Iterator<Item = (&String, &Value)> {
        let properties = match self {
            TypeView::Declared { schema, .. } => Some(&schema.properties),
            _ => None,
        };
        properties.into_iter().flatten().filter_map(|(name, field)| Some((name, field.default.as_ref()?)))
    }
}

static STRING: LazyLock<Arc<Schema>> = LazyLock::new(|| text(None));

fn text(format: Option<&str>) -> Arc<Schema> {
    Arc::new(Schema { kind: Some(Type::String), format: format.map(Into::into), ..Schema::default() })
}

fn structure(fields: impl IntoIterator<Item = (&'static str, Arc<Schema>)>) -> Schema {
    let properties = fields.into_iter().map(|(name, field)| (name.to_owned(), field)).collect();
    Schema { kind: Some(Type::Object), properties, ..Schema::default() }
}

/// The metadata of every object. A kind's own schema need not carry it, and a CRD's does not.
static OBJECT_META: LazyLock<Arc<Schema>> = LazyLock::new(|| {
    let of_kind = |kind| Arc::new(Schema { kind: Some(kind), ..Schema::default() });
    let string = || STRING.clone();
    // An owner without one of these is taken to have an empty one, its key included.
    let required =
        || Arc::new(Schema { kind: Some(Type::String), default: Some(Value::from("")), ..Schema::default() });
    let time = || text(Some("date-time"));
    let strings = || {
        let additional = Some(Additional::Schema(string()));
        Arc::new(Schema { kind: Some(Type::Object), additional, ..Schema::default() })
    };
    let list = |list_type, items, keys: &[&str]| {
        Arc::new(Schema {
            kind: Some(Type::Array),
            list_type: Some(list_type),
            items: Some(items),
            list_map_keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            ..Schema::default()
        })
    };
    let owner = structure([
        ("apiVersion", required()),
        ("blockOwnerDeletion", of_kind(Type::Boolean)),
        ("controller", of_kind(Type::Boolean)),
        ("kind", required()),
        ("name", required()),
        ("uid", required()),
    ]);
    let entry = structure([
        ("apiVersion", string()),
        ("fieldsType", string()),
        ("fieldsV1", of_kind(Type::Object)),
        ("manager", string()),
        ("operation", string()),
        ("subresource", string()),
        ("time", time()),
    ]);
    Arc::new(structure([
        ("annotations", strings()),
        ("creationTimestamp", time()),
        ("deletionGracePeriodSeconds", of_kind(Type::Integer)),
        ("deletionTimestamp", time()),
        ("finalizers", list(ListType::Set, string(), &[])),
        ("generateName", string()),
        ("generation", of_kind(Type::Integer)),
        ("labels", strings()),
        ("managedFields", list(ListType::Atomic, Arc::new(entry), &[])),
        ("name", string()),
        ("namespace", string()),
        (
            "ownerReferences",
            list(ListType::Map, Arc::new(Schema { map_type: Some(MapType::Atomic), ..owner }), &["uid"]),
        ),
        ("resourceVersion", string()),
        ("selfLink", string()),
        ("uid", string()),
    ]))
});

//! What the fields of an object's metadata are, for `kubectl explain`.

use serde_json::Value;

const FIELDS: [(&str, &str); 15] = [
    (
        "annotations",
        "Annotations are notes of tools and libraries on the object, by key. They cannot be selected by.",
    ),
    (
        "creationTimestamp",
        "CreationTimestamp is a timestamp of the API server: when the object was created. Clients cannot set it.",
    ),
    (
        "deletionGracePeriodSeconds",
        "How many seconds the object has to end gracefully, once its deletion was asked for. It can only become shorter.",
    ),
    (
        "deletionTimestamp",
        "DeletionTimestamp is a timestamp after which the object is gone, or waits for its finalizers alone. The API server sets it when a graceful \
         deletion is asked for, and nobody takes it back.",
    ),
    ("finalizers", "Whoever has to do something before the object is gone; each takes its own entry away."),
    ("generateName", "A prefix, of which the API server makes a unique name if there is none."),
    ("generation", "Rises with every change of what is wanted. The API server sets it."),
    ("labels", "Labels sort objects into groups, by key: selectors go by them."),
    ("managedFields", "Who set which fields, and in which version of the API. The API server keeps it."),
    ("name", "The name, unique among the objects of its resource in a namespace. It never changes."),
    (
        "namespace",
        "The namespace, within which names are unique. Not every resource has one. It never changes.",
    ),
    (
        "ownerReferences",
        "The objects that this one depends on. When all of them are gone, the garbage collector deletes it. At most one is its controller.",
    ),
    (
        "resourceVersion",
        "The version of the object, by which clients tell whether it changed. It is to be passed back as it is, and compared with nothing else.",
    ),
    ("selfLink", "Not set any more."),
    ("uid", "Unique among all objects that ever were. The API server sets it, and it never changes."),
];

/// The definition, with what its fields are.
pub(super) fn described(mut definition: Value) -> Value {
    for (name, description) in FIELDS {
        if let Some(field) =
            definition.pointer_mut(&format!("/properties/{name}")).and_then(Value::as_object_mut)
        {
            field.insert("description".to_owned(), description.into());
        }
    }
    definition
}

//! Tables, as `kubectl get` asks for them: which columns a kind has, and an object's row.

mod built_in;
mod cells;
mod custom;
mod human;
mod jsonpath;
mod network;
mod others;
mod pods;
mod storage;
mod workloads;

pub(crate) use custom::{CustomColumn, columns as custom_columns};

use crate::read::{Shape, joined, metadata_of};
use bytes::Bytes;
use cells::Column;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_clock::Clock;
use windlass_schema::json;

/// How much of an object its row carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

/// One kind's tables, for one kind of request.
pub(crate) struct Table {
    /// `meta.k8s.io/v1`
    api_version: &'static str,
    include: Include,
    columns: Columns,
    is_pods: bool,
    clock: Clock,
}

enum Columns {
    BuiltIn(&'static [Column]),
    Custom(Arc<[CustomColumn]>),
}

impl Table {
    /// Of a built-in kind.
    pub(crate) fn built_in(
        (group, plural): (&str, &str),
        api_version: &'static str,
        include: Include,
        clock: &Clock,
    ) -> Self {
        let columns = Columns::BuiltIn(built_in::columns(group, plural));
        let is_pods = group.is_empty() && plural == "pods";
        Self { api_version, include, columns, is_pods, clock: clock.clone() }
    }

    /// Of a custom resource.
    pub(crate) fn custom(
        columns: Arc<[CustomColumn]>,
        api_version: &'static str,
        include: Include,
        clock: &Clock,
    ) -> Self {
        let columns = Columns::Custom(columns);
        Self { api_version, include, columns, is_pods: false, clock: clock.clone() }
    }

    fn definitions(&self) -> Value {
        let own = |column: &Column| {
            json!({
                "name": column.name, "type": column.kind, "format": column.format, "description": "",
                "priority": column.priority,
            })
        };
        match &self.columns {
            Columns::BuiltIn(columns) => columns.iter().map(own).collect(),
            Columns::Custom(columns) => std::iter::once(own(&cells::NAME))
                .chain(columns.iter().map(|column| column.definition.clone()))
                .collect(),
        }
    }

    fn row(&self, object: Value) -> Value {
        let now = self.clock.now();
        let cells: Vec<Value> = match &self.columns {
            Columns::BuiltIn(columns) => columns.iter().map(|column| column.cell.of(&object, now)).collect(),
            Columns::Custom(columns) => std::iter::once(cells::NAME.cell.of(&object, now))
                .chain(columns.iter().map(|column| column.cell(&object, now)))
                .collect(),
        };
        let conditions = if self.is_pods { pods::row_conditions(&object) } else { None };
        let object = match self.include {
            Include::Nothing => Value::Null,
            Include::Metadata => metadata_of(object, self.api_version),
            Include::Object => object,
        };
        let mut row = json!({"cells": cells, "object": object});
        if let Some(conditions) = conditions {
            row["conditions"] = conditions;
        }
        row
    }

    fn table(&self, metadata: &str, rows: &[u8], headed: bool) -> Bytes {
        let definitions = if headed { self.definitions() } else { Value::Null };
        let head = format!(
            r#"{{"kind":"Table","apiVersion":"{}","metadata":{metadata},"columnDefinitions":{definitions},"rows":["#,
            self.api_version
        );
        [head.as_bytes(), rows, b"]}"].concat().into()
    }
}

impl Shape for Table {
    // Ages go on: a row is made anew each time.
    fn lasting(&self) -> Option<&str> {
        None
    }

    fn item(&self, object: Value) -> Bytes {
        json::write(&self.row(object)).into()
    }

    fn object(&self, object: Value, headed: bool) -> Bytes {
        let metadata = match object.pointer("/metadata/resourceVersion") {
            Some(version) => json!({"resourceVersion": version}),
            None => json!({}),
        };
        self.table(&metadata.to_string(), &self.item(object), headed)
    }

    fn list(&self, metadata: &str, items: &[Bytes]) -> Bytes {
        self.table(metadata, &joined(items), true)
    }
}

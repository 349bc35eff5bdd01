//! What the operator tells Prometheus of its databases, beside what the library tells of its controllers. Each agent tells of its server.

use crate::api::v1alpha1::{Role, SampleDB, SampleDBInstance};
use kube::ResourceExt;
use std::sync::Arc;
use windlass::metrics::{Page, Type};

/// Of every database.
pub(crate) fn databases(databases: &[Arc<SampleDB>], page: &mut Page) {
    type Value = fn(&SampleDB) -> f64;
    let families: [(&str, &str, Value); 3] = [
        ("sampledb_spec_instances", "Instances that a database should have.", |one| {
            one.spec.instances.into()
        }),
        ("sampledb_status_ready", "Whether a database is as it should be.", |one| {
            let conditions = one.status.iter().flat_map(|status| &status.conditions);
            let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
            f64::from(u8::from(ready))
        }),
        ("sampledb_status_has_primary", "Whether a database takes writes.", |one| {
            let primary = one.status.as_ref().and_then(|status| status.primary.as_ref());
            f64::from(u8::from(primary.is_some()))
        }),
    ];
    for (name, help, value) in families {
        let mut family = page.family(name, Type::Gauge, help);
        for database in databases {
            let (namespace, name) = (database.namespace().unwrap_or_default(), database.name_any());
            family.sample(&[("namespace", &namespace), ("database", &name)], value(database));
        }
    }
}

/// Of every instance.
pub(crate) fn instances(instances: &[Arc<SampleDBInstance>], page: &mut Page) {
    let mut ready = page.family(
        "sampledb_instance_ready",
        Type::Gauge,
        "Whether an instance takes connections, and what it is.",
    );
    for instance in instances {
        let (namespace, name) = (instance.namespace().unwrap_or_default(), instance.name_any());
        let status = instance.status.clone().unwrap_or_default();
        let role = match status.role {
            Role::Primary => "primary",
            Role::Replica => "replica",
            Role::Stopped => "stopped",
        };
        let labels = [
            ("namespace", namespace.as_str()),
            ("database", instance.spec.database.as_str()),
            ("instance", name.as_str()),
            ("role", role),
        ];
        ready.sample(&labels, f64::from(u8::from(status.ready)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::v1alpha1::{SampleDBInstanceSpec, SampleDBSpec};

    #[test]
    fn a_database_without_a_primary_is_told() {
        let mut database = SampleDB::new("db", SampleDBSpec { instances: 3, ..Default::default() });
        database.metadata.namespace = Some("shop".to_owned());
        let mut page = Page::default();
        databases(&[Arc::new(database)], &mut page);
        let labels = r#"{namespace="shop",database="db"}"#;
        for line in [
            format!("sampledb_spec_instances{labels} 3\n"),
            format!("sampledb_status_ready{labels} 0\n"),
            format!("sampledb_status_has_primary{labels} 0\n"),
        ] {
            assert!(page.as_str().contains(&line), "{}", page.as_str());
        }
        let spec = SampleDBInstanceSpec { database: "db".to_owned(), ..Default::default() };
        let mut page = Page::default();
        instances(&[Arc::new(SampleDBInstance::new("db-0", spec))], &mut page);
        let line = r#"sampledb_instance_ready{namespace="",database="db",instance="db-0",role="stopped"} 0"#;
        assert!(page.as_str().contains(line), "{}", page.as_str());
    }
}

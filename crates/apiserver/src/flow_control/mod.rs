//! API priority and fairness, the part that protects: each request belongs to the first FlowSchema that matches it, and
//! each priority level has a share of all that may run at a time, so that one noisy client cannot starve the others.
//!
//! There are no queue sets and no borrowing of seats: within a level, requests wait in the order of their arrival.

mod flow_schema;
mod metrics;
mod priority_level;

use crate::authorization::Attributes;
use crate::following::{Following, Index};
use flow_schema::FlowSchema;
use http::{HeaderMap, HeaderName};
use priority_level::PriorityLevel;
pub(crate) use priority_level::{Rejected, Seat};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_store::{Entry, Store};

const FLOW_SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// How many requests may run at a time, of all levels together: as many as a stock server's two flags allow.
const SERVER_CONCURRENCY: u64 = 400 + 200;

/// The flow schemas and priority levels of a store.
pub(crate) struct FlowControl(Following<Levels>);

impl FlowControl {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(Following::new(store))
    }

    /// Where a request belongs; none if no schema matches it.
    pub(crate) fn classify(&self, asked: &Attributes<'_>) -> Option<Flow> {
        let levels = self.0.current();
        let (schema, level) = levels.in_order.iter().find(|(schema, _)| schema.matches(asked))?;
        Some(Flow { schema: schema.clone(), level: level.clone() })
    }

    /// What is counted, in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> String {
        metrics::text(&self.0.current())
    }
}

/// Where a request belongs.
pub(crate) struct Flow {
    schema: Arc<FlowSchema>,
    level: Arc<PriorityLevel>,
}

impl Flow {
    /// Waits for its turn.
    pub(crate) async fn seat(&self) -> Result<Seat, Rejected> {
        let seat = self.level.seat().await;
        self.schema.counts.note(seat.as_ref().err());
        seat
    }

    /// Tells the client where its request belongs.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        headers.insert(FLOW_SCHEMA_UID, self.schema.uid.clone());
        headers.insert(PRIORITY_LEVEL_UID, self.level.uid.clone());
    }
}

/// The index: the schemas whose levels there are, in the order in which they are tried.
#[derive(Default)]
struct Levels {
    schemas: BTreeMap<String, Arc<FlowSchema>>,
    levels: BTreeMap<String, Arc<PriorityLevel>>,
    in_order: Vec<(Arc<FlowSchema>, Arc<PriorityLevel>)>,
}

const SCHEMAS: &str = "flowcontrol.apiserver.k8s.io/flowschemas";
const LEVELS: &str = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations";

impl Index for Levels {
    const RESOURCES: &'static [&'static str] = &[SCHEMAS, LEVELS];

    fn take(&mut self, entry: &Entry, gone: bool) {
        let key = entry.key();
        let name = &*key.name;
        let json = (!gone).then(|| entry.json());
        if *key.resource == *SCHEMAS {
            let counts = self.schemas.remove(name).map(|schema| schema.counts.clone()).unwrap_or_default();
            let schema = json.and_then(|json| FlowSchema::read(name, entry.uid(), &json, counts));
            self.schemas.extend(schema.map(|schema| (name.to_owned(), Arc::new(schema))));
        } else {
            self.levels.remove(name);
            let level = json.and_then(|json| PriorityLevel::read(name, entry.uid(), &json));
            self.levels.extend(level.map(|level| (name.to_owned(), Arc::new(level))));
            self.share_seats();
        }
        self.order();
    }
}

impl Levels {
    /// Gives each level its share of all seats.
    fn share_seats(&mut self) {
        let all: u64 = self.levels.values().map(|level| level.shares()).sum();
        for level in self.levels.values_mut() {
            let seats = (SERVER_CONCURRENCY * level.shares()).div_ceil(all.max(1));
            *level = Arc::new(level.with_seats(seats));
        }
    }

    fn order(&mut self) {
        let with_level =
            |schema: &Arc<FlowSchema>| Some((schema.clone(), self.levels.get(&schema.level)?.clone()));
        let mut in_order: Vec<_> = self.schemas.values().filter_map(with_level).collect();
        // The names break ties, and are in order already.
        in_order.sort_by_key(|(schema, _)| schema.precedence);
        self.in_order = in_order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Api, Config};
    use crate::authorization::{On, ResourceAttributes};
    use crate::request::Identity;

    /// The names of the schema and the level of a request.
    fn classified(identity: &Identity, verb: &str, on: On<'_>) -> (String, String) {
        let api = Api::new(Config::default());
        let flow = api.0.flow_control.classify(&Attributes { identity, verb, on }).unwrap();
        (flow.schema.name.clone(), flow.level.name.clone())
    }

    #[test]
    fn requests_belong_where_the_first_schemas_say() {
        let pods =
            On::Resource(ResourceAttributes { resource: "pods", namespace: "n", ..Default::default() });
        let lease = On::Resource(ResourceAttributes {
            group: "coordination.k8s.io",
            resource: "leases",
            namespace: "kube-system",
            ..Default::default()
        });
        let account = Identity::service_account("shop", "robot");
        let system = Identity::service_account("kube-system", "robot");
        let manager = Identity::user("system:kube-controller-manager");
        for (identity, verb, on, schema, level) in [
            (&Identity::admin(), "get", pods, "exempt", "exempt"),
            (&Identity::user("jane"), "get", pods, "global-default", "global-default"),
            (&Identity::anonymous(), "get", pods, "global-default", "global-default"),
            (&Identity::anonymous(), "get", On::Path("/healthz"), "probes", "exempt"),
            (&account, "list", pods, "service-accounts", "workload-low"),
            (&system, "list", pods, "kube-system-service-accounts", "workload-high"),
            (&manager, "list", pods, "kube-controller-manager", "workload-high"),
            (&manager, "update", lease, "system-leader-election", "leader-election"),
        ] {
            assert_eq!(classified(identity, verb, on), (schema.to_owned(), level.to_owned()), "{identity:?}");
        }
    }

    #[test]
    fn levels_share_what_the_server_can_do() {
        let api = Api::new(Config::default());
        let levels = api.0.flow_control.0.current();
        let seats = |name: &str| levels.levels[name].seats();
        assert_eq!(seats("exempt"), None);
        let shares: u64 = levels.levels.values().map(|level| level.shares()).sum();
        assert_eq!(seats("workload-low"), Some((600 * 100_u64).div_ceil(shares)));
        assert_eq!(seats("catch-all"), Some((600 * 5_u64).div_ceil(shares)));
    }
}

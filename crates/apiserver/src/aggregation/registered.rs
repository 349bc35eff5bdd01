//! The stored APIServices: which group and version each is about, how it is preferred, and where it leads.

use super::{Extension, STORAGE};
use crate::dial::Dialer;
use crate::facts::BOOTSTRAP;
use crate::following::Index;
use crate::object::{list, text};
use crate::registry::rank;
use crate::request::path::unescape;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};
use windlass_store::Entry;

/// The port of a Service that an APIService does not name.
const PORT: u16 = 443;

/// All APIServices.
#[derive(Default)]
pub(crate) struct ApiServices {
    all: BTreeMap<String, Arc<Registered>>,
    /// Those that lead to a Service, by group and version.
    remote: BTreeMap<(String, String), Arc<Registered>>,
}

/// One APIService.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) group_priority: i64,
    pub(crate) version_priority: i64,
    /// Where it leads; none if this server serves it.
    pub(crate) remote: Option<Remote>,
}

/// Where an APIService leads.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) namespace: String,
    pub(crate) service: String,
    pub(crate) port: u16,
    /// Who signs its certificate, as PEM; empty for those that this machine trusts.
    ca_bundle: String,
    insecure: bool,
    /// Whether requests are led there.
    pub(crate) available: bool,
    extension: Arc<OnceLock<Result<Extension, String>>>,
}

impl Index for ApiServices {
    const RESOURCES: &'static [&'static str] = &[STORAGE];

    fn take(&mut self, entry: &Entry, gone: bool) {
        let name = entry.key().name.to_string();
        let before = self.all.remove(&name);
        if let Some(before) = &before {
            self.remote.remove(&before.key());
        }
        if gone {
            return;
        }
        let mut registered = Registered::read(&name, &entry.value());
        if let (Some(remote), Some(before)) =
            (&mut registered.remote, before.as_ref().and_then(|before| before.remote.as_ref()))
            && remote.is_reached_as(before)
        {
            remote.extension = before.extension.clone();
        }
        let registered = Arc::new(registered);
        if registered.remote.is_some() {
            self.remote.insert(registered.key(), registered.clone());
        }
        self.all.insert(name, registered);
    }
}

impl ApiServices {
    pub(crate) fn has_remote(&self) -> bool {
        !self.remote.is_empty()
    }

    /// Those that lead to a Service.
    pub(crate) fn remotes(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.remote.values()
    }

    /// One by its name, if it leads to a Service.
    pub(crate) fn remote(&self, name: &str) -> Option<&Arc<Registered>> {
        self.all.get(name).filter(|known| known.remote.is_some())
    }

    /// Which one a request's path is led by.
    pub(super) fn leads(&self, path: &str) -> Option<&Arc<Registered>> {
        let path = unescape(path, false)?;
        if path == "/api" || path.starts_with("/api/") {
            return self.remote.get(&(String::new(), "v1".to_owned()));
        }
        let mut segments = path.strip_prefix("/apis/")?.splitn(3, '/');
        self.remote.get(&(segments.next()?.to_owned(), segments.next()?.to_owned()))
    }

    /// Groups with their versions, the preferred ones first: a group by its highest priority, a version by its own.
    pub(crate) fn groups(&self) -> Vec<(&str, Vec<&str>)> {
        let mut all: Vec<&Arc<Registered>> = self.all.values().collect();
        all.sort_by(|one, other| {
            let key = |known: &Registered| Reverse(known.group_priority);
            key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
        });
        let mut groups: Vec<(&str, Vec<&Arc<Registered>>)> = Vec::new();
        for known in all {
            match groups.iter_mut().find(|(group, _)| *group == known.group) {
                Some((_, versions)) => versions.push(known),
                None => groups.push((&known.group, vec![known])),
            }
        }
        let mut in_order = Vec::with_capacity(groups.len());
        for (group, mut versions) in groups {
            versions.sort_by_key(|known| Reverse((known.version_priority, rank(&known.version))));
            in_order.push((group, versions.into_iter().map(|known| known.version.as_str()).collect()));
        }
        in_order
    }
}

impl Registered {
    fn read(name: &str, object: &Value) -> Self {
        let spec = &object["spec"];
        let number = |field: &str| spec[field].as_i64().unwrap_or_default();
        let remote = spec.get("service").filter(|service| service.is_object()).map(|service| {
            let bundle = STANDARD.decode(text(spec, &["caBundle"])).unwrap_or_default();
            let available = list(object, &["status", "conditions"]).iter().any(|condition| {
                text(condition, &["type"]) == "Available" && text(condition, &["status"]) == "True"
            });
            Remote {
                namespace: text(service, &["namespace"]).to_owned(),
                service: text(service, &["name"]).to_owned(),
                port: service["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(PORT),
                ca_bundle: String::from_utf8_lossy(&bundle).into_owned(),
                insecure: spec["insecureSkipTLSVerify"].as_bool().unwrap_or_default(),
                available,
                extension: Arc::default(),
            }
        });
        Self {
            name: name.to_owned(),
            group: text(spec, &["group"]).to_owned(),
            version: text(spec, &["version"]).to_owned(),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            remote,
        }
    }

    fn key(&self) -> (String, String) {
        (self.group.clone(), self.version.clone())
    }

    /// Where its own paths begin.
    pub(crate) fn path(&self) -> String {
        match self.group.as_str() {
            "" => format!("/api/{}", self.version),
            group => format!("/apis/{group}/{}", self.version),
        }
    }
}

impl Remote {
    /// Whether nothing changed of how it is reached.
    pub(crate) fn is_reached_as(&self, other: &Self) -> bool {
        let way = |remote: &Self| {
            (
                remote.namespace.clone(),
                remote.service.clone(),
                remote.port,
                remote.ca_bundle.clone(),
                remote.insecure,
            )
        };
        way(self) == way(other)
    }

    pub(super) fn extension(
        &self,
        dialer: Arc<Dialer>,
        client: Option<&(String, String)>,
    ) -> Result<&Extension, String> {
        let host = format!("{}.{}.svc", self.service, self.namespace);
        let bundle = (!self.insecure).then_some(self.ca_bundle.as_str());
        let made = self.extension.get_or_init(|| Extension::new(dialer, &host, bundle, client));
        made.as_ref().map_err(Clone::clone)
    }
}

/// The priorities of the built-in groups and versions, whatever became of their APIServices.
static BUILT_IN: LazyLock<BTreeMap<String, (i64, i64)>> = LazyLock::new(|| {
    let of_services = BOOTSTRAP.lines().filter(|line| line.split('\t').next() == Some(STORAGE));
    let read = |line: &str| {
        let object: Value = serde_json::from_str(line.rsplit('\t').next()?).ok()?;
        let name = text(&object, &["metadata", "name"]);
        let known = Registered::read(name, &object);
        Some((known.name, (known.group_priority, known.version_priority)))
    };
    of_services.filter_map(read).collect()
});

/// The priorities of a built-in group and version in aggregated discovery.
pub(crate) fn built_in_priority(group: &str, version: &str) -> Option<(i64, i64)> {
    BUILT_IN.get(&format!("{version}.{group}")).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use serde_json::json;
    use windlass_store::{Body, Key};

    fn services(all: &[(&str, &str, i64, i64, bool)]) -> ApiServices {
        let mut services = ApiServices::default();
        for (group, version, group_priority, version_priority, remote) in all {
            let mut spec = json!({"group": group, "version": version, "groupPriorityMinimum": group_priority,
                "versionPriority": version_priority});
            if *remote {
                spec["service"] = json!({"namespace": "n", "name": "s"});
            }
            let name = format!("{version}.{group}");
            let registered = Arc::new(Registered::read(&name, &json!({"spec": spec})));
            if *remote {
                services.remote.insert(registered.key(), registered.clone());
            }
            services.all.insert(name, registered);
        }
        services
    }

    #[test]
    fn groups_and_versions_come_by_their_priorities() {
        let services = services(&[
            ("b.example", "v1", 100, 10, false),
            ("a.example", "v1beta1", 100, 10, false),
            ("a.example", "v1", 50, 10, false),
            ("a.example", "v2alpha1", 10, 20, false),
            ("c.example", "v1", 200, 1, true),
        ]);
        let groups = services.groups();
        assert_eq!(
            groups,
            [
                ("c.example", vec!["v1"]),
                // By the name of the APIService: v1.b.example comes before v1beta1.a.example.
                ("b.example", vec!["v1"]),
                ("a.example", vec!["v2alpha1", "v1", "v1beta1"]),
            ]
        );
    }

    #[test]
    fn a_path_is_led_by_its_group_and_version_alone() {
        let services = services(&[("a.example", "v1", 1, 1, true), ("b.example", "v1", 1, 1, false)]);
        let led = |path: &str| services.leads(path).map(|known| known.name.as_str());
        for path in
            ["/apis/a.example/v1", "/apis/a.example/v1/", "/apis/a.example/v1/x", "/apis/a%2Eexample/v1/x"]
        {
            assert_eq!(led(path), Some("v1.a.example"), "{path}");
        }
        for path in [
            "/apis",
            "/apis/a.example",
            "/apis/a.example/v10",
            "/apis/b.example/v1",
            "/api/v1",
            "/x",
            "/apis/%zz",
        ] {
            assert_eq!(led(path), None, "{path}");
        }
    }

    #[test]
    fn connections_are_kept_while_the_way_stays_the_same() {
        let mut services = ApiServices::default();
        let entry = |object: &Value| {
            let store = windlass_store::Store::new(Default::default(), windlass_clock::Clock::real());
            let change = windlass_store::Change::Create {
                key: Key::new(STORAGE, "", "v1.a.example"),
                body: Body::encode(object, Vec::new()),
            };
            store.commit(change).now_or_never().unwrap().unwrap()
        };
        let mut object = json!({"metadata": {"name": "v1.a.example", "uid": "u"}, "spec": {"group": "a.example",
            "version": "v1", "service": {"namespace": "n", "name": "s", "port": 443}}});
        let mut taken = |object: &Value| {
            services.take(&entry(object), false);
            services.remote("v1.a.example").unwrap().clone()
        };
        let first = taken(&object);
        object["status"] = json!({"conditions": [{"type": "Available", "status": "True"}]});
        let second = taken(&object);
        let (first, second) = (first.remote.as_ref().unwrap(), second.remote.as_ref().unwrap());
        assert!(!first.available && second.available);
        assert!(Arc::ptr_eq(&first.extension, &second.extension));
        object["spec"]["service"]["port"] = json!(444);
        let third = taken(&object);
        assert!(!Arc::ptr_eq(&first.extension, &third.remote.as_ref().unwrap().extension));
    }

    #[test]
    fn built_in_groups_have_priorities() {
        assert_eq!(built_in_priority("", "v1"), Some((18000, 1)));
        assert_eq!(built_in_priority("nowhere.example", "v1"), None);
    }
}

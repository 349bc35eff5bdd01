//! Whether an APIService is available, as far as its Service and the endpoints of that tell: pure.

use super::Remote;
use crate::object::{list, text};
use serde_json::{Value, json};
use windlass_schema::quote;

/// The condition Available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) status: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    /// What this server serves is always available.
    pub(crate) fn local() -> Self {
        let message = "Local APIServices are always available".to_owned();
        Self { status: "True", reason: "Local", message }
    }

    /// Nothing is wrong.
    pub(crate) fn passed() -> Self {
        Self { status: "True", reason: "Passed", message: "all checks passed".to_owned() }
    }

    /// The server did not answer as it must.
    pub(crate) fn failed(why: String) -> Self {
        Self { status: "False", reason: "FailedDiscoveryCheck", message: why }
    }

    /// Sets it in an APIService; the time of the transition changes with the status alone. Says whether anything changed.
    pub(crate) fn set(&self, object: &mut Value, now: &str) -> bool {
        let before = list(object, &["status", "conditions"]).to_vec();
        let mut conditions = before.clone();
        let known = conditions.iter_mut().find(|known| text(known, &["type"]) == "Available");
        match known {
            Some(known) => {
                if text(known, &["status"]) != self.status {
                    known["status"] = json!(self.status);
                    known["lastTransitionTime"] = json!(now);
                }
                known["reason"] = json!(self.reason);
                known["message"] = json!(self.message);
            }
            None => conditions.push(json!({
                "type": "Available", "status": self.status, "lastTransitionTime": now,
                "reason": self.reason, "message": self.message,
            })),
        }
        if conditions == before {
            return false;
        }
        object["status"]["conditions"] = json!(conditions);
        true
    }
}

/// What is wrong with where an APIService leads, if that can be seen without asking the server.
pub(crate) fn expected(remote: &Remote, service: Option<&Value>, slices: &[Value]) -> Option<Condition> {
    let of = format!("service/{} in {}", remote.service, quote(&remote.namespace));
    let lacks = |reason, message| Some(Condition { status: "False", reason, message });
    let Some(service) = service else {
        return lacks("ServiceNotFound", format!("{of} is not present"));
    };
    // Others are not said to have endpoints here.
    if !matches!(text(service, &["spec", "type"]), "ClusterIP" | "") {
        return None;
    }
    let port = list(service, &["spec", "ports"]).iter().find(|port| port["port"] == remote.port);
    let Some(port) = port.map(|port| text(port, &["name"])) else {
        return lacks("ServicePortError", format!("{of} is not listening on port {}", remote.port));
    };
    if slices.is_empty() {
        return lacks("EndpointsNotFound", format!("cannot find endpointslices for {of}"));
    }
    let leads = slices.iter().any(|slice| {
        let ready = |endpoint: &Value| endpoint.pointer("/conditions/ready") != Some(&json!(false));
        let known = |known: &Value| text(known, &["name"]) == port && known["port"].is_u64();
        list(slice, &["endpoints"]).iter().any(ready) && list(slice, &["ports"]).iter().any(known)
    });
    if !leads {
        let why = format!("endpointslices for {of} have no addresses with port name {}", quote(port));
        return lacks("MissingEndpoints", why);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut object = json!({"status": {"conditions": [{"type": "Other"}]}});
        assert!(Condition::passed().set(&mut object, "1"));
        assert!(!Condition::passed().set(&mut object, "2"));
        let failed = |why: &str| Condition::failed(why.to_owned());
        assert!(failed("a").set(&mut object, "3"));
        assert!(failed("b").set(&mut object, "4"));
        assert_eq!(
            object["status"]["conditions"],
            json!([{"type": "Other"}, {"type": "Available", "status": "False", "lastTransitionTime": "3",
                "reason": "FailedDiscoveryCheck", "message": "b"}])
        );
    }
}

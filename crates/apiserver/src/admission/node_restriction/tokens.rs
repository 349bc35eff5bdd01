//! Tokens of ServiceAccounts: a kubelet asks for those that its pods mount.

use super::{Action, NodeWrite};
use crate::authorization::{Attributes, On, ResourceAttributes};
use crate::object::{at, list, text};
use crate::status::Status;
use serde_json::Value;

impl NodeWrite<'_> {
    pub(super) async fn token(&self) -> Result<(), Status> {
        let Action::Create(request) = self.action else { return Ok(()) };
        let bound = |field: &str| text(request, &["spec", "boundObjectRef", field]);
        if bound("apiVersion") != "v1" || bound("kind") != "Pod" || bound("name").is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let uid = bound("uid");
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.other("pods", "pod", &self.operation.namespace, bound("name"))?;
        if text(&pod, &["metadata", "uid"]) != uid {
            return self.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been \
                 deleted and then recreated"
            ));
        }
        if text(&pod, &["spec", "nodeName"]) != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        self.audience(request, &pod).await
    }

    /// The audience is one that the pod asks for, or that this kubelet may ask for by a rule.
    async fn audience(&self, request: &Value, pod: &Value) -> Result<(), Status> {
        let audience = match list(request, &["spec", "audiences"]) {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        match self.pod_asks(pod, audience) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(why) => return self.refuse(format!("error validating audience {audience:?}: {why}")),
        }
        let operation = self.operation;
        let asked = Attributes {
            identity: operation.identity,
            verb: "request-serviceaccounts-token-audience",
            on: On::Resource(ResourceAttributes {
                version: "v1",
                resource: audience,
                namespace: &operation.namespace,
                name: &operation.name,
                ..ResourceAttributes::default()
            }),
        };
        match operation.api.authorizer.allows(&asked).await {
            true => Ok(()),
            false => self.refuse(format!(
                "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
                operation.identity.user
            )),
        }
    }

    /// Whether a volume of the pod gives it a token for this audience, by itself or by its driver.
    fn pod_asks(&self, pod: &Value, audience: &str) -> Result<bool, String> {
        let mut wrong = Vec::new();
        for volume in list(pod, &["spec", "volumes"]) {
            let tokens = list(volume, &["projected", "sources"]);
            let mut tokens = tokens.iter().filter_map(|source| source.get("serviceAccountToken"));
            if tokens.any(|token| !token.is_null() && text(token, &["audience"]) == audience) {
                return Ok(true);
            }
            match self.driver_asks(pod, volume, audience) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(missing) => wrong.push(missing.message),
            }
        }
        match wrong.as_slice() {
            [] => Ok(false),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn driver_asks(&self, pod: &Value, volume: &Value, audience: &str) -> Result<bool, Status> {
        let claim = match text(volume, &["persistentVolumeClaim", "claimName"]) {
            "" if at(volume, &["ephemeral", "volumeClaimTemplate"]).is_some() => {
                format!("{}-{}", text(pod, &["metadata", "name"]), text(volume, &["name"]))
            }
            name => name.to_owned(),
        };
        let driver = match claim.as_str() {
            "" => text(volume, &["csi", "driver"]).to_owned(),
            claim => {
                let namespace = &self.operation.namespace;
                let claim =
                    self.other("persistentvolumeclaims", "persistentvolumeclaim", namespace, claim)?;
                let name = text(&claim, &["spec", "volumeName"]);
                let volume = self.other("persistentvolumes", "persistentvolume", "", name)?;
                text(&volume, &["spec", "csi", "driver"]).to_owned()
            }
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = self.other("storage.k8s.io/csidrivers", "csidriver.storage.k8s.io", "", &driver)?;
        let mut requests = list(&driver, &["spec", "tokenRequests"]).iter();
        Ok(requests.any(|request| text(request, &["audience"]) == audience))
    }
}

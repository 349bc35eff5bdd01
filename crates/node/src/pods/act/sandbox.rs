//! Creates a pod's sandbox: its network, its files in `/etc`, and the shim that holds its namespaces.

use super::super::etc_files;
use super::super::node_context::DOMAIN;
use super::super::pod_state::Sandbox;
use super::super::pod_worker::PodWorker;
use super::super::sysctls;
use super::{INITIAL_BACKOFF, MAX_BACKOFF};
use crate::net::Network;
use crate::shim::{Attachment, Memory, Sandbox as SandboxSpec, Shim};
use k8s_openapi::api::core::v1::Pod;
use std::fs;

impl PodWorker {
    pub(super) async fn create_sandbox(&mut self, pod: &Pod) {
        match self.launch_shim(pod).await {
            Ok(shim) => {
                self.tries.remove("sandbox");
                for record in self.state.containers.values_mut() {
                    record.first_attempt = record.next_attempt();
                }
                self.watch(&shim);
                self.shim = Some(shim);
                self.state.sandbox = Sandbox::Alive;
            }
            Err(why) => {
                self.record_event(
                    pod,
                    true,
                    "FailedCreatePodSandBox",
                    format!("Failed to create pod sandbox: {why}"),
                );
                let retry_at = self.retry_at("sandbox", INITIAL_BACKOFF, MAX_BACKOFF);
                self.state.sandbox = Sandbox::Failed { message: why, retry_at };
            }
        }
    }

    async fn launch_shim(&mut self, pod: &Pod) -> Result<Shim, String> {
        let context = self.context.clone();
        let text = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&self.folder).map_err(text)?;
        let attachment = match &context.network {
            Some(network) if !context.uses_host_network(pod) => {
                let address = network.allocate(&self.uid).await.map_err(|error| error.to_string())?;
                self.state.pod_ip = Some(address.to_string());
                Some(Attachment { socket: network.socket().to_owned(), address })
            }
            _ => {
                self.state.pod_ip = Some(context.host_ip.clone());
                None
            }
        };
        let (host, domain) = etc_files::hostname(pod, DOMAIN);
        let aliases = pod.spec.as_ref().and_then(|spec| spec.host_aliases.clone()).unwrap_or_default();
        let hosts_text = match &attachment {
            Some(attachment) => {
                etc_files::hosts(Some(&attachment.address.to_string()), &host, domain.as_deref(), &aliases)
            }
            None => {
                etc_files::host_network_hosts(&fs::read_to_string("/etc/hosts").unwrap_or_default(), &aliases)
            }
        };
        let machine =
            etc_files::ResolvConf::parse(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
        let dns = context.network.as_ref().map(|network| network.settings().dns.to_string());
        let resolver =
            etc_files::resolv_conf(pod, &machine, dns.as_deref().filter(|_| attachment.is_some()), DOMAIN);
        let hostname = match &attachment {
            Some(_) => etc_files::uts_hostname(pod, &host, domain.as_deref()),
            None => context.node.clone(),
        };
        for (name, content) in
            [("hosts", hosts_text), ("resolv.conf", resolver.text()), ("hostname", format!("{hostname}\n"))]
        {
            let path = self.folder.join(name);
            fs::write(&path, content).map_err(text)?;
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(text)?;
        }
        let instance = context.network.as_ref().filter(|_| attachment.is_some()).map(Network::instance);
        super::super::sandbox_network::write(&self.folder, instance.as_deref()).map_err(text)?;
        let sandbox = SandboxSpec {
            uid: self.uid.clone(),
            folder: self.folder.clone(),
            hostname,
            user_namespace_of: context.network.as_ref().and_then(|network| network.user_namespace_of()),
            network: attachment,
            memory: self
                .memory
                .iter()
                .map(|(path, limit)| Memory { path: path.clone(), limit: *limit })
                .collect(),
            sysctls: sysctls::of(pod),
        };
        Shim::launch(&context.program, &sandbox).await.map_err(|error| error.to_string())
    }
}

//! A pod's namespaces: what is in them, and who holds them.

use super::super::hosts;
use super::super::known::Sandbox;
use super::super::site::DOMAIN;
use super::super::sysctls;
use super::super::worker::Worker;
use super::{FIRST, LONGEST};
use crate::shim::{Attachment, Memory, Sandbox as Wanted, Shim};
use k8s_openapi::api::core::v1::Pod;
use std::fs;

impl Worker {
    pub(super) async fn launch(&mut self, pod: &Pod) {
        match self.make_sandbox(pod).await {
            Ok(shim) => {
                self.tries.remove("sandbox");
                for run in self.known.runs.values_mut() {
                    run.floor = run.next_attempt();
                }
                self.watch(&shim);
                self.shim = Some(shim);
                self.known.sandbox = Sandbox::Alive;
            }
            Err(why) => {
                self.tell_pod(
                    pod,
                    true,
                    "FailedCreatePodSandBox",
                    format!("Failed to create pod sandbox: {why}"),
                );
                let again = self.again("sandbox", FIRST, LONGEST);
                self.known.sandbox = Sandbox::Failed { message: why, again };
            }
        }
    }

    async fn make_sandbox(&mut self, pod: &Pod) -> Result<Shim, String> {
        let site = self.site.clone();
        let text = |error: std::io::Error| error.to_string();
        fs::create_dir_all(&self.folder).map_err(text)?;
        let attachment = match &site.network {
            Some(network) if !site.on_host_network(pod) => {
                let address = network.lend(&self.uid).await.map_err(|error| error.to_string())?;
                self.known.pod_ip = Some(address.to_string());
                Some(Attachment { socket: network.socket().to_owned(), address })
            }
            _ => {
                self.known.pod_ip = Some(site.host_ip.clone());
                None
            }
        };
        let (host, domain) = hosts::hostname(pod, DOMAIN);
        let aliases = pod.spec.as_ref().and_then(|spec| spec.host_aliases.clone()).unwrap_or_default();
        let hosts_text = match &attachment {
            Some(attachment) => {
                hosts::hosts(Some(&attachment.address.to_string()), &host, domain.as_deref(), &aliases)
            }
            None => hosts::hosts_of_machine(&fs::read_to_string("/etc/hosts").unwrap_or_default(), &aliases),
        };
        let machine = hosts::Resolver::read(&fs::read_to_string("/etc/resolv.conf").unwrap_or_default());
        let dns = site.network.as_ref().map(|network| network.settings().dns.to_string());
        let resolver =
            hosts::resolver(pod, &machine, dns.as_deref().filter(|_| attachment.is_some()), DOMAIN);
        let hostname = match &attachment {
            Some(_) => hosts::kernel_name(pod, &host, domain.as_deref()),
            None => site.node.clone(),
        };
        for (name, content) in
            [("hosts", hosts_text), ("resolv.conf", resolver.text()), ("hostname", format!("{hostname}\n"))]
        {
            let path = self.folder.join(name);
            fs::write(&path, content).map_err(text)?;
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).map_err(text)?;
        }
        let sandbox = Wanted {
            uid: self.uid.clone(),
            folder: self.folder.clone(),
            hostname,
            user_namespace_of: site.network.as_ref().and_then(|network| network.user_namespace_of()),
            network: attachment,
            memory: self
                .memory
                .iter()
                .map(|(path, limit)| Memory { path: path.clone(), limit: *limit })
                .collect(),
            sysctls: sysctls::asked(pod),
        };
        Shim::launch(&site.program, &sandbox).await.map_err(|error| error.to_string())
    }
}

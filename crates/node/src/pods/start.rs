//! A container as its shim is to start it: command, environment, root, volumes, identity. All but the small files beside it is
//! pure.

use super::environment::{Sources, environment};
use super::expand::expand;
use super::identity::{identity, passwd};
use super::objects::Objects;
use super::site::Site;
use crate::images::{Image, ImageRoot};
use crate::shim::{Bind, Container as Spec, Privileges, Processes, Root};
use crate::volumes::mounts::{Ready, binds};
use k8s_openapi::api::core::v1::{Container, Pod, SecurityContext};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use windlass::quantity::value;

/// Where programs are looked for, unless the image or the container says otherwise.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a container is started with.
pub(crate) struct Starting<'a> {
    pub(crate) site: &'a Site,
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) attempt: u32,
    pub(crate) image: &'a Image,
    pub(crate) objects: &'a Objects,
    pub(crate) volumes: &'a BTreeMap<String, Ready>,
    pub(crate) pod_ip: Option<String>,
    /// What the pod calls itself.
    pub(crate) hostname: String,
}

/// Why a container cannot be started: the reason that its status has, and a message.
pub(crate) type Refused = (&'static str, String);

impl Starting<'_> {
    /// The container, with the small files that it needs.
    pub(crate) fn spec(&self) -> Result<Spec, Refused> {
        let config = |why: String| ("CreateContainerConfigError", why);
        let create = |why: String| ("CreateContainerError", why);
        let (site, pod, container) = (self.site, self.pod, self.container);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
        let all = site.services.list();
        let services = super::environment::services(all.iter().map(|service| &**service), namespace, links);
        let place = site.place(self.pod_ip.clone());
        let sources = Sources {
            objects: self.objects,
            services: &services,
            place: &place,
            image: &self.image.environment,
        };
        let mut environment = environment(pod, container, &sources).map_err(config)?;
        let whom = identity(pod, container, self.image.user.as_ref(), site.runner).map_err(config)?;
        environment.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
        environment.entry("HOSTNAME".to_owned()).or_insert_with(|| self.hostname.clone());
        if container.tty == Some(true) {
            environment.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
        }
        let command = self.command(&environment);
        if command.is_empty() {
            return Err(create("no command specified".to_owned()));
        }
        let own = site
            .folder(pod.metadata.uid.as_deref().unwrap_or_default())
            .join("containers")
            .join(&container.name);
        let writable = own.join(self.attempt.to_string());
        let text = |error: std::io::Error| create(error.to_string());
        fs::create_dir_all(&writable).map_err(text)?;
        self.image.furnish(&writable).map_err(text)?;
        if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
            return Err(config(
                "this node has no block devices to give: volumeDevices is not followed".to_owned(),
            ));
        }
        let volumes = binds(container, self.volumes, &environment).map_err(config)?;
        // What the image has where a volume is lies beneath it, unseen.
        let seen = |bind: &&Bind| !volumes.iter().any(|volume| bind.to.starts_with(&volume.to));
        let mut shown: Vec<Bind> = self.image.binds.iter().filter(seen).cloned().collect();
        shown.extend(volumes);
        self.small_files(&own, &whom, &mut shown).map_err(text)?;
        let log = site.logs_of(pod).join(&container.name).join(format!("{}.log", self.attempt));
        if let Some(folder) = log.parent() {
            fs::create_dir_all(folder).map_err(text)?;
        }
        let folder = container.working_dir.clone().filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let secure = container.security_context.as_ref();
        let limit =
            container.resources.as_ref().and_then(|all| all.limits.as_ref()?.get("memory")).and_then(value);
        Ok(Spec {
            name: container.name.clone(),
            attempt: self.attempt,
            command,
            environment: environment.into_iter().collect(),
            folder: folder.or_else(|| self.image.folder.clone()),
            root: match &self.image.root {
                ImageRoot::Shown(paths) => Root::Shown { writable, paths: paths.clone() },
                ImageRoot::FileSystem(image) => Root::FileSystem { image: image.clone(), writable },
            },
            binds: shown,
            identity: whom,
            read_only_root: secure.and_then(|secure| secure.read_only_root_filesystem) == Some(true),
            terminal: container.tty == Some(true),
            stdin: container.stdin == Some(true),
            stdin_once: container.stdin_once == Some(true),
            privileges: privileges(secure),
            processes: self.processes(),
            log,
            memory_limit: limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
            termination_message: Some(self.last_words(&own).map_err(text)?),
        })
    }

    /// Whose processes it sees: its target's where it was added to look into that one.
    fn processes(&self) -> Processes {
        let added = super::ephemeral::named(self.pod, &self.container.name);
        let target = added.and_then(|added| added.target_container_name.clone());
        if let Some(target) = target.filter(|target| !target.is_empty()) {
            return Processes::Of(target);
        }
        match self.pod.spec.as_ref().and_then(|spec| spec.share_process_namespace) {
            Some(true) => Processes::OfPod,
            _ => Processes::Own,
        }
    }

    fn command(&self, environment: &BTreeMap<String, String>) -> Vec<String> {
        let known = |name: &str| environment.get(name).map(String::as_str);
        let expanded = |words: &[String]| words.iter().map(|word| expand(word, known)).collect::<Vec<_>>();
        let own =
            |words: &Option<Vec<String>>| words.as_deref().filter(|words| !words.is_empty()).map(expanded);
        let (command, arguments) = (own(&self.container.command), own(&self.container.args));
        match (command, arguments) {
            (Some(command), arguments) => {
                command.into_iter().chain(arguments.into_iter().flatten()).collect()
            }
            (None, arguments) => {
                let rest = arguments.unwrap_or_else(|| self.image.command.clone());
                self.image.entrypoint.iter().cloned().chain(rest).collect()
            }
        }
    }

    /// `/etc/hosts` and its like, where the container has no volume there.
    fn small_files(
        &self,
        own: &Path,
        whom: &crate::shim::Identity,
        shown: &mut Vec<Bind>,
    ) -> std::io::Result<()> {
        let pod = self.site.folder(self.pod.metadata.uid.as_deref().unwrap_or_default());
        let mut files = vec![
            (pod.join("hosts"), "/etc/hosts"),
            (pod.join("resolv.conf"), "/etc/resolv.conf"),
            (pod.join("hostname"), "/etc/hostname"),
        ];
        if let (Some(users), Some(groups)) = (&self.image.users, &self.image.groups) {
            let name = self.image.user.as_ref().and_then(|user| user.name.as_deref());
            let (users, groups) = passwd(whom, name, (users, groups));
            for (name, text, to) in [("passwd", users, "/etc/passwd"), ("group", groups, "/etc/group")] {
                let path = own.join(name);
                fs::write(&path, text)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
                files.push((path, to));
            }
        }
        for (from, to) in files {
            // What the pod mounts over them, or over the folder they are in, is what it wants there.
            let taken = shown.iter().any(|bind| Path::new(to) == bind.to);
            if !taken {
                shown.push(Bind { from, to: to.into(), read_only: false });
            }
        }
        shown.sort_by_key(|bind| bind.to.components().count());
        Ok(())
    }

    /// A file for its last words, which whoever it runs as can write.
    fn last_words(&self, own: &Path) -> std::io::Result<Bind> {
        let from = own.join(format!("{}.message", self.attempt));
        fs::write(&from, "")?;
        fs::set_permissions(&from, fs::Permissions::from_mode(0o666))?;
        let to = self
            .container
            .termination_message_path
            .clone()
            .unwrap_or_else(|| "/dev/termination-log".to_owned());
        Ok(Bind { from, to: to.into(), read_only: false })
    }
}

fn privileges(secure: Option<&SecurityContext>) -> Privileges {
    let Some(secure) = secure else { return Privileges::default() };
    let capabilities = secure.capabilities.clone().unwrap_or_default();
    let mut add = capabilities.add.unwrap_or_default();
    if secure.privileged == Some(true) {
        add.push("ALL".to_owned());
    }
    Privileges {
        no_new: secure.allow_privilege_escalation == Some(false),
        add,
        drop: capabilities.drop.unwrap_or_default(),
    }
}

//! Builds the container spec that a shim starts: command, environment, root, mounts, user. Pure, except for the small files that
//! are mounted into it.

use super::environment::{Sources, environment};
use super::node_context::NodeContext;
use super::security_context::{identity, passwd};
use crate::images::{Image, ImageRoot};
use crate::references::expand::expand;
use crate::references::objects::Objects;
use crate::shim::{Bind, Container as Spec, ImageFile, Privileges, Processes, Root};
use crate::volumes::mounts::{MountSource, binds};
use k8s_openapi::api::core::v1::{Container, Pod, SecurityContext};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use windlass::quantity::value;

/// The default `PATH`.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a container spec is built from.
pub(crate) struct ContainerSpecBuilder<'a> {
    pub(crate) context: &'a NodeContext,
    pub(crate) pod: &'a Pod,
    pub(crate) container: &'a Container,
    pub(crate) attempt: u32,
    pub(crate) image: &'a Image,
    pub(crate) objects: &'a Objects,
    pub(crate) volumes: &'a BTreeMap<String, MountSource>,
    pub(crate) pod_ip: Option<String>,
    /// The pod's hostname.
    pub(crate) hostname: String,
}

/// Why a container cannot be started: the reason and the message in its status.
pub(crate) type BuildError = (&'static str, String);

impl ContainerSpecBuilder<'_> {
    /// Builds the spec, and writes the small files that the container needs.
    pub(crate) fn build(&self) -> Result<Spec, BuildError> {
        let config = |why: String| ("CreateContainerConfigError", why);
        let create = |why: String| ("CreateContainerError", why);
        let (context, pod, container) = (self.context, self.pod, self.container);
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let links = pod.spec.as_ref().and_then(|spec| spec.enable_service_links).unwrap_or(true);
        let all = context.services.list();
        let services = super::environment::services(all.iter().map(|service| &**service), namespace, links);
        let node = context.node_fields(self.pod_ip.clone());
        let sources = Sources {
            objects: self.objects,
            services: &services,
            node: &node,
            image: &self.image.environment,
        };
        let mut environment = environment(pod, container, &sources).map_err(config)?;
        let user = identity(pod, container, self.image.user.as_ref(), context.runner).map_err(config)?;
        environment.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
        environment.entry("HOSTNAME".to_owned()).or_insert_with(|| self.hostname.clone());
        if container.tty == Some(true) {
            environment.entry("TERM".to_owned()).or_insert_with(|| "xterm".to_owned());
        }
        let command = self.command(&environment);
        if command.is_empty() {
            return Err(create("no command specified".to_owned()));
        }
        let own = context
            .pod_dir(pod.metadata.uid.as_deref().unwrap_or_default())
            .join("containers")
            .join(&container.name);
        let writable = own.join(self.attempt.to_string());
        let text = |error: std::io::Error| create(error.to_string());
        fs::create_dir_all(&writable).map_err(text)?;
        self.image.create_directories(&writable).map_err(text)?;
        if container.volume_devices.as_ref().is_some_and(|devices| !devices.is_empty()) {
            return Err(config("volumeDevices is not supported: this node has no block devices".to_owned()));
        }
        let volumes = binds(container, self.volumes, &environment).map_err(config)?;
        // What the image has at the path of a volume is hidden by it.
        let visible = |bind: &&Bind| !volumes.iter().any(|volume| bind.to.starts_with(&volume.to));
        let mut shown: Vec<Bind> = self.image.binds.iter().filter(visible).cloned().collect();
        shown.extend(volumes);
        let mut files = self.image.files.clone();
        self.small_files(&own, &user, &mut shown, &mut files).map_err(text)?;
        let log = context.pod_logs_dir(pod).join(&container.name).join(format!("{}.log", self.attempt));
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
            files,
            binds: shown,
            identity: user,
            read_only_root: secure.and_then(|secure| secure.read_only_root_filesystem) == Some(true),
            terminal: container.tty == Some(true),
            stdin: container.stdin == Some(true),
            stdin_once: container.stdin_once == Some(true),
            privileges: privileges(secure),
            processes: self.processes(),
            log,
            memory_limit: limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
            termination_message: Some(self.termination_message(&own).map_err(text)?),
        })
    }

    /// Whose processes it sees: for an ephemeral container with a target, the target's.
    fn processes(&self) -> Processes {
        let ephemeral = crate::references::ephemeral_containers::named(self.pod, &self.container.name);
        let target = ephemeral.and_then(|ephemeral| ephemeral.target_container_name.clone());
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

    /// `/etc/hosts` and its like, where the container has no volume there, and the image's users.
    fn small_files(
        &self,
        own: &Path,
        whom: &crate::shim::Identity,
        shown: &mut Vec<Bind>,
        of_image: &mut Vec<ImageFile>,
    ) -> std::io::Result<()> {
        let pod = self.context.pod_dir(self.pod.metadata.uid.as_deref().unwrap_or_default());
        let files = [
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
                of_image.push(ImageFile { from: path, to: to.into() });
            }
        }
        for (from, to) in files {
            // A mount of the pod at the same path takes precedence.
            let taken = shown.iter().any(|bind| Path::new(to) == bind.to);
            if !taken {
                shown.push(Bind { from, to: to.into(), read_only: false, ..Bind::default() });
            }
        }
        shown.sort_by_key(|bind| bind.to.components().count());
        Ok(())
    }

    /// The file of its termination message, writable by any user.
    fn termination_message(&self, own: &Path) -> std::io::Result<Bind> {
        let from = own.join(format!("{}.message", self.attempt));
        fs::write(&from, "")?;
        fs::set_permissions(&from, fs::Permissions::from_mode(0o666))?;
        let to = self
            .container
            .termination_message_path
            .clone()
            .unwrap_or_else(|| "/dev/termination-log".to_owned());
        Ok(Bind { from, to: to.into(), read_only: false, ..Bind::default() })
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

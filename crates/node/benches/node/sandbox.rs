//! A pod's sandbox and one container in it, as the node asks for them, without the API: what is beside runc's start. Unlike
//! runc's it has an interface in the node's network, a log, and somebody who looks after it.

use super::TIMES;
use anyhow::Context;
use std::path::Path;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_node::Program;
use windlass_node::images::{Catalogue, ImageRoot};
use windlass_node::net::Network;
use windlass_node::shim::{Attachment, Container, Identity, Privileges, Processes, Root, Sandbox, Shim};

/// How long each start took.
pub(crate) async fn starts(root: &Path) -> anyhow::Result<Vec<Duration>> {
    let network = Network::find(&root.join("network")).await.context("the node has a network")?;
    let image =
        Catalogue::new(root.join("none"), root.join("none"), root.join("images")).resolve("busybox")?;
    let (program, clock) = (Program::current()?, Clock::real());
    let (user, group) = (nix::unistd::geteuid().as_raw(), nix::unistd::getegid().as_raw());
    let mut all = Vec::new();
    for number in 0..TIMES {
        let folder = root.join("alone").join(number.to_string());
        let uid = format!("alone-{number}");
        let writable = folder.join("root");
        std::fs::create_dir_all(&writable)?;
        image.create_directories(&writable)?;
        let container = Container {
            name: "main".to_owned(),
            attempt: 0,
            command: ["sleep", "1000"].map(str::to_owned).to_vec(),
            environment: image.environment.clone().into_iter().collect(),
            folder: None,
            root: match &image.root {
                ImageRoot::Shown(paths) => Root::Shown { writable, paths: paths.clone() },
                ImageRoot::FileSystem(image) => Root::FileSystem { image: image.clone(), writable },
            },
            files: image.files.clone(),
            binds: image.binds.clone(),
            identity: Identity { user, group, groups: Vec::new() },
            read_only_root: false,
            terminal: false,
            stdin: false,
            stdin_once: false,
            privileges: Privileges::default(),
            log: folder.join("0.log"),
            memory_limit: None,
            termination_message: None,
            processes: Processes::Own,
        };
        let began = clock.moment();
        let address = network.allocate(&uid).await?;
        let sandbox = Sandbox {
            uid: uid.clone(),
            folder: folder.clone(),
            hostname: "alone".to_owned(),
            user_namespace_of: network.user_namespace_of(),
            network: Some(Attachment { socket: network.socket().to_owned(), address }),
            memory: Vec::new(),
            sysctls: Vec::new(),
        };
        let shim = Shim::launch(&program, &sandbox).await?;
        let started = shim.start(&container).await;
        all.push(clock.moment() - began);
        shim.end().await?;
        network.release(&uid).await?;
        started?;
    }
    Ok(all)
}

//! Images that are programs of this machine: `memcached:1.6` is the `memcached` that is installed here.

use super::identity::ImageUser;
use super::image::{Image, Images, Root};
use std::path::{Path, PathBuf};

/// What a container sees of the machine: programs, what they load, and what they are told of the world.
const SHOWN: [&str; 9] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/usr",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/ssl",
];
/// Where programs are looked for.
const PLACES: [&str; 6] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
/// Programs that their images run as somebody other than root.
const USERS: [(&str, u32); 1] = [("memcached", 65534)];

/// Images by the names of the machine's programs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Programs;

impl Images for Programs {
    fn find(&self, image: &str) -> Result<Image, String> {
        let name = base(image);
        let program = PLACES.iter().map(|place| Path::new(place).join(name)).find(|path| path.is_file());
        if name.is_empty() || program.is_none() {
            return Err(format!(
                "no program {name:?} is installed on this machine, which image {image:?} would be; install it, or run the pod elsewhere"
            ));
        }
        let user = USERS.iter().find(|(of, _)| *of == name).map(|(_, user)| *user);
        let arguments = if name == "busybox" { "sh" } else { name };
        Ok(Image {
            id: format!("program://{name}"),
            entrypoint: Vec::new(),
            arguments: vec![arguments.to_owned()],
            environment: Vec::new(),
            folder: None,
            user: ImageUser { user, group: user, name: None },
            home: None,
            root: Root::Shown(SHOWN.iter().map(PathBuf::from).filter(|path| path.exists()).collect()),
        })
    }
}

/// The last part of an image's name, without its tag and digest.
fn base(image: &str) -> &str {
    let name = image.split('@').next().unwrap_or(image).rsplit('/').next().unwrap_or(image);
    name.split(':').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_the_program_of_its_name() {
        assert_eq!(base("registry.example.com:5000/library/sh:1.2@sha256:abc"), "sh");
        let found = Programs.find("docker.io/library/sh:1").unwrap();
        assert_eq!((found.id.as_str(), found.arguments), ("program://sh", vec!["sh".to_owned()]));
        let refused = Programs.find("example.com/no-such-program:1").unwrap_err();
        assert!(refused.contains("\"no-such-program\" is installed"), "{refused}");
        assert!(Programs.find("").is_err());
    }
}

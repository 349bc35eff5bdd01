//! Names of images: `docker.io/library/postgres:17@sha256:...` and all the shorter ways to say it.

/// A name of an image, with what is left out filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    registry: String,
    path: String,
    tag: String,
}

impl Name {
    /// Reads a name; none where it is no name.
    pub fn parse(image: &str) -> Option<Self> {
        let without_digest = match image.split_once('@') {
            Some((name, digest)) if digest.contains(':') => name,
            Some(_) => return None,
            None => image,
        };
        let folder_end = without_digest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match without_digest[folder_end..].rfind(':') {
            Some(colon) => (&without_digest[..folder_end + colon], &without_digest[folder_end + colon + 1..]),
            None => (without_digest, "latest"),
        };
        let (registry, path) = match name.split_once('/') {
            Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
                (first, rest.to_owned())
            }
            Some(_) => ("docker.io", name.to_owned()),
            None => ("docker.io", format!("library/{name}")),
        };
        let registry = if registry == "index.docker.io" { "docker.io" } else { registry };
        let path =
            if registry == "docker.io" && !path.contains('/') { format!("library/{path}") } else { path };
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
        let part = |part: &str| {
            part.bytes().all(plain) && part.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        };
        let tagged = !tag.is_empty()
            && tag.len() <= 128
            && !tag.starts_with(['.', '-'])
            && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        // It becomes part of a path: no part of it may be a way up.
        let host = registry.split('.').all(|label| {
            let (first, rest) = (label.bytes().next(), label.bytes());
            first.is_some_and(|first| first.is_ascii_alphanumeric())
                && rest.into_iter().all(|byte| byte.is_ascii_alphanumeric() || b"-:".contains(&byte))
        });
        (tagged && host && path.split('/').all(part)).then(|| Self {
            registry: registry.to_owned(),
            path,
            tag: tag.to_owned(),
        })
    }

    /// As people write it: without the usual registry, and without the tag.
    pub fn familiar(&self) -> String {
        match (self.registry.as_str(), self.path.strip_prefix("library/")) {
            ("docker.io", Some(short)) => short.to_owned(),
            ("docker.io", None) => self.path.clone(),
            (registry, _) => format!("{registry}/{}", self.path),
        }
    }

    /// Its tag; `latest` where none was said.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_to_say_the_same_image_are_one_name() {
        let digest = "sha256:".to_owned() + &"a".repeat(64);
        let with_digest = format!("postgres:17@{digest}");
        for image in [
            "postgres:17",
            "docker.io/postgres:17",
            "docker.io/library/postgres:17",
            "index.docker.io/library/postgres:17",
            &with_digest,
        ] {
            let name = Name::parse(image).unwrap();
            assert_eq!((name.familiar().as_str(), name.tag()), ("postgres", "17"), "{image}");
        }
        let familiar = |image| Name::parse(image).map(|name| format!("{} {}", name.familiar(), name.tag()));
        assert_eq!(familiar("bitnami/redis").unwrap(), "bitnami/redis latest");
        assert_eq!(familiar("ghcr.io/me/app:v1.2").unwrap(), "ghcr.io/me/app v1.2");
        assert_eq!(familiar("localhost:5000/app").unwrap(), "localhost:5000/app latest");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for image in [
            "",
            ":",
            "Upper",
            "a b",
            "a:",
            "a@b",
            "../etc",
            "a/../b",
            "ghcr.io/../x",
            "a:../../b",
            "/etc",
            "a//b",
        ] {
            assert_eq!(Name::parse(image), None, "{image}");
        }
    }
}

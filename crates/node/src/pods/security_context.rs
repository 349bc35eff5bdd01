//! The user and groups of a container, from its security context, its pod's, and its image. Pure.

use crate::images::ImageUser;
use crate::shim::Identity;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::fmt::Write;

/// The user of the kubelet itself. If it is unprivileged, the users of containers are mapped to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Runner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Runner {
    fn is_root(self) -> bool {
        self.user == 0
    }
}

/// The user and groups of a container. An error says why it must not run, in a kubelet's words.
pub(crate) fn identity(
    pod: &Pod,
    container: &Container,
    image: Option<&ImageUser>,
    runner: Runner,
) -> Result<Identity, String> {
    let (image_user, image_group) = (image.and_then(|image| image.user), image.and_then(|image| image.group));
    let image_name = image.and_then(|image| image.name.as_deref());
    let of_pod = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let own = container.security_context.as_ref();
    let asked_user = own.and_then(|own| own.run_as_user).or_else(|| of_pod.and_then(|of| of.run_as_user));
    let asked_group = own.and_then(|own| own.run_as_group).or_else(|| of_pod.and_then(|of| of.run_as_group));
    let non_root =
        own.and_then(|own| own.run_as_non_root).or_else(|| of_pod.and_then(|of| of.run_as_non_root));
    let meta = &pod.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let whom = format!(
        "(pod: \"{}_{}({})\", container: {})",
        text(&meta.name),
        text(&meta.namespace),
        text(&meta.uid),
        container.name
    );
    if non_root == Some(true) {
        match (asked_user, image_user, image_name) {
            (Some(0), ..) => return Err(format!("container's runAsUser breaks non-root policy {whom}")),
            (Some(_), ..) => {}
            (None, Some(0), _) => {
                return Err(format!("container has runAsNonRoot and image will run as root {whom}"));
            }
            (None, None, Some(name)) => {
                return Err(format!(
                    "container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root {whom}"
                ));
            }
            (None, None, None) if runner.is_root() => {
                return Err(format!("container has runAsNonRoot and image will run as root {whom}"));
            }
            _ => {}
        }
    }
    let number = |value: i64| u32::try_from(value).map_err(|_| format!("{value} is no user or group {whom}"));
    let asked_user = asked_user.map(number).transpose()?;
    let asked_group = asked_group.map(number).transpose()?;
    let user = asked_user.or(image_user).unwrap_or(runner.user);
    let of_user = if asked_user.is_none() { image_group } else { None };
    if !runner.is_root() {
        // There is one user in the node's namespace, and no further group. In the container it has the numbers asked for.
        let usual = if asked_user.or(image_user).is_none() { runner.group } else { 0 };
        return Ok(Identity { user, group: asked_group.or(of_user).unwrap_or(usual), groups: Vec::new() });
    }
    let group = asked_group.or(of_user).unwrap_or(0);
    let further = of_pod.and_then(|of| of.supplemental_groups.clone()).unwrap_or_default();
    let mut groups: Vec<u32> = Vec::new();
    for value in further.into_iter().chain(of_pod.and_then(|of| of.fs_group)) {
        let value = number(value)?;
        if !groups.contains(&value) {
            groups.push(value);
        }
    }
    Ok(Identity { user, group, groups })
}

/// Users that programs expect to exist.
const USUAL: [(&str, u32, &str); 2] = [("root", 0, "/root"), ("nobody", 65534, "/nonexistent")];

/// `/etc/passwd` and `/etc/group` for a container that runs as this user, over what the machine or the image says.
pub(crate) fn passwd(identity: &Identity, name: Option<&str>, base: (&str, &str)) -> (String, String) {
    let (mut users, mut groups) = (String::new(), String::new());
    let lines = |text: &str, out: &mut String| {
        for line in text.lines().filter(|line| line.split(':').count() >= 3).take(4096) {
            out.push_str(line);
            out.push('\n');
        }
    };
    lines(base.0, &mut users);
    lines(base.1, &mut groups);
    let has = |text: &str, number: u32| {
        text.lines().any(|line| line.split(':').nth(2).is_some_and(|id| id.parse() == Ok(number)))
    };
    for (name, number, home) in USUAL {
        if !has(&users, number) {
            let _ = writeln!(users, "{name}:x:{number}:{number}:{name}:{home}:/bin/sh");
        }
        if !has(&groups, number) {
            let _ = writeln!(groups, "{name}:x:{number}:");
        }
    }
    if !has(&users, identity.user) {
        let name = name.map_or_else(|| format!("user{}", identity.user), str::to_owned);
        let _ = writeln!(users, "{name}:x:{}:{}::/:/bin/sh", identity.user, identity.group);
    }
    for group in identity.groups.iter().chain([&identity.group]) {
        if !has(&groups, *group) {
            let _ = writeln!(groups, "group{group}:x:{group}:");
        }
    }
    (users, groups)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn nobody() -> ImageUser {
        ImageUser { user: None, group: None, name: None }
    }

    const ROOT: Runner = Runner { user: 0, group: 0 };

    fn who(of_pod: Value, own: Value, image: ImageUser, runner: Runner) -> Result<Identity, String> {
        let container: Container =
            serde_json::from_value(json!({"name": "c", "securityContext": own})).unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [container], "securityContext": of_pod},
        }))
        .unwrap();
        identity(&pod, &container, Some(&image), runner)
    }

    #[test]
    fn the_container_speaks_before_its_pod_and_that_before_the_image() {
        let image = || ImageUser { user: Some(11), group: Some(12), name: None };
        let is = |user, group, groups: &[u32]| Ok(Identity { user, group, groups: groups.to_vec() });
        assert_eq!(who(json!({}), json!({}), image(), ROOT), is(11, 12, &[]));
        assert_eq!(who(json!({"runAsUser": 5}), json!({}), image(), ROOT), is(5, 0, &[]));
        let of_pod = json!({"runAsUser": 5, "runAsGroup": 6, "fsGroup": 7, "supplementalGroups": [8, 7]});
        assert_eq!(who(of_pod, json!({"runAsUser": 9}), image(), ROOT), is(9, 6, &[8, 7]));
    }

    #[test]
    fn root_is_refused_where_it_must_not_be() {
        let strict = || json!({"runAsNonRoot": true});
        let none = nobody;
        let whom = "(pod: \"p_n(u)\", container: c)";
        let refused = who(strict(), json!({"runAsUser": 0}), none(), ROOT).unwrap_err();
        assert_eq!(refused, format!("container's runAsUser breaks non-root policy {whom}"));
        let refused = who(strict(), json!({}), ImageUser { user: Some(0), ..none() }, ROOT).unwrap_err();
        assert_eq!(refused, format!("container has runAsNonRoot and image will run as root {whom}"));
        let named = ImageUser { name: Some("web".into()), ..none() };
        assert!(who(strict(), json!({}), named, ROOT).unwrap_err().contains("non-numeric user (web)"));
        assert!(who(strict(), json!({"runAsUser": 7}), none(), ROOT).is_ok());
        assert!(who(strict(), json!({}), none(), Runner { user: 1000, group: 1000 }).is_ok());
    }

    #[test]
    fn the_user_of_an_unprivileged_node_has_the_numbers_asked_for() {
        let runner = Runner { user: 1000, group: 100 };
        let is = |user, group| Ok(Identity { user, group, groups: Vec::new() });
        assert_eq!(who(json!({"fsGroup": 7}), json!({}), nobody(), runner), is(1000, 100));
        let image = || ImageUser { user: Some(11), group: Some(12), name: None };
        assert_eq!(who(json!({}), json!({}), image(), runner), is(11, 12));
        assert_eq!(who(json!({"runAsUser": 5}), json!({}), image(), runner), is(5, 0));
        assert_eq!(who(json!({"runAsUser": 5, "runAsGroup": 6}), json!({}), nobody(), runner), is(5, 6));
    }

    #[test]
    fn a_user_has_a_name() {
        let identity = Identity { user: 70, group: 71, groups: vec![72] };
        let (users, groups) =
            passwd(&identity, Some("postgres"), ("root:x:0:0:root:/root:/bin/bash\n", "junk"));
        assert!(users.contains("postgres:x:70:71::/:/bin/sh\n") && users.contains("nobody:x:65534"));
        assert_eq!(users.matches(":x:0:").count(), 1);
        assert!(
            groups.contains("group71:x:71:") && groups.contains("group72:x:72:") && !groups.contains("junk")
        );
    }
}

//! Which resource, object and subresource a URL means.

/// A URL's path, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A resource or an object.
    Resource(Target),
    /// Everything else, such as `/version` and `/apis`: its segments.
    Other(Vec<String>),
    /// Not readable.
    Malformed,
}

/// What a resource request is about, by name only: whether there is such a thing is the registry's business.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// Was it asked for below `/watch/`, the old path of watches?
    pub(crate) watch: bool,
}

/// Takes `path` apart as Kubernetes does: escapes are undone before it is split.
pub(crate) fn route(path: &str) -> Route {
    let Some(path) = unescape(path, false) else { return Route::Malformed };
    let mut segments: Vec<&str> = path.split('/').collect();
    while segments.first() == Some(&"") {
        segments.remove(0);
    }
    while segments.last() == Some(&"") {
        segments.pop();
    }
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        other => return Route::Other(other.iter().map(|&segment| segment.to_owned()).collect()),
    };
    let (watch, rest) = match rest {
        ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
        rest => (false, rest),
    };
    let target = |namespace: Option<&str>, rest: &[&str]| {
        let mut target = Target {
            group: group.to_owned(),
            version: version.to_owned(),
            namespace: namespace.map(str::to_owned),
            watch,
            ..Target::default()
        };
        match rest {
            [plural] => target.plural = (*plural).to_owned(),
            [plural, name] => {
                target.plural = (*plural).to_owned();
                target.name = Some((*name).to_owned());
            }
            [plural, name, subresource @ ..] => {
                target.plural = (*plural).to_owned();
                target.name = Some((*name).to_owned());
                target.subresource = Some(subresource.join("/"));
            }
            [] => {}
        }
        Route::Resource(target)
    };
    match rest {
        // Namespaces themselves, and their own subresources.
        ["namespaces"] | ["namespaces", _] => target(None, rest),
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => target(None, rest),
        ["namespaces", "", rest @ ..] => target(None, rest),
        ["namespaces", namespace, rest @ ..] => target(Some(namespace), rest),
        _ => target(None, rest),
    }
}

/// Undoes URL escapes; in a query, `+` is a space. None if the escapes are broken or the result is not UTF-8.
pub(crate) fn unescape(text: &str, query: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let high = char::from(rest.next()?).to_digit(16)?;
                let low = char::from(rest.next()?).to_digit(16)?;
                bytes.push(u8::try_from(high * 16 + low).ok()?);
            }
            b'+' if query => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        match route(path) {
            Route::Resource(target) => target,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_namespace_is_an_object_and_a_place() {
        assert_eq!(target("/api/v1/namespaces/a").plural, "namespaces");
        assert_eq!(target("/api/v1/namespaces/a/status").subresource.as_deref(), Some("status"));
        let inside = target("/api/v1/namespaces/a/configmaps/b/");
        assert_eq!(inside.namespace.as_deref(), Some("a"));
        assert_eq!((inside.plural.as_str(), inside.name.as_deref()), ("configmaps", Some("b")));
    }

    #[test]
    fn broken_escapes_are_malformed() {
        for path in ["/api/v1/%zz", "/api/v1/%", "/api/v1/%ff", "/%a"] {
            assert_eq!(route(path), Route::Malformed, "{path}");
        }
        assert_eq!(route("/"), Route::Other(vec![]));
    }
}

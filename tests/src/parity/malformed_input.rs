//! Malformed, enormous or malicious input: both servers reject it with the same errors.

use super::{Behaviour, Script};
use crate::compare::Request;
use crate::compare::exchange::media::{APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};
use serde_json::json;

const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CBOR: &str = "application/cbor";

/// Bodies of a creation.
const BODIES: &[(&str, &str, &[u8])] = &[
    ("JSON that is no UTF-8", JSON, b"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\xff\xfe\"}}"),
    ("JSON with a zero byte", JSON, b"{\"metadata\":{\"name\":\"a\0b\"}}"),
    ("JSON with half a surrogate", JSON, b"{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"\\ud800\"}}"),
    ("JSON that ends early", JSON, b"{\"metadata\":{\"name\":\"a\""),
    ("JSON with a number out of range", JSON, b"{\"metadata\":{\"name\":\"a\",\"generation\":1e400}}"),
    ("JSON with a comment", JSON, b"{/* a */}"),
    ("JSON with a comma too many", JSON, b"{\"metadata\":{\"name\":\"a\",}}"),
    ("YAML with a tab", YAML, b"metadata:\n\tname: a\n"),
    ("YAML of two documents", YAML, b"metadata: {name: a}\n---\nmetadata: {name: b}\n"),
    ("YAML that is text", YAML, b"just text"),
    ("YAML that is nothing", YAML, b""),
    ("protobuf that is nothing", PROTOBUF, b""),
    ("protobuf without its magic number", PROTOBUF, b"abcdefgh"),
    ("protobuf that ends after its magic number", PROTOBUF, b"k8s\0"),
    ("protobuf that ends early", PROTOBUF, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a"),
    ("protobuf with a length beyond its end", PROTOBUF, b"k8s\0\x0a\xff\xff\xff\xff\x0f"),
    ("protobuf with a wrong field", PROTOBUF, b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x01"),
    ("CBOR", CBOR, b"\xd9\xd9\xf7\xa0"),
];

/// Patches of the config map `a`.
const PATCHES: &[(&str, &str, &[u8])] = &[
    ("a merge patch that is no UTF-8", MERGE_PATCH, b"{\"data\":{\"k\":\"\xff\"}}"),
    (
        "a JSON patch that is no UTF-8",
        JSON_PATCH,
        b"[{\"op\":\"add\",\"path\":\"/data/\xff\",\"value\":\"1\"}]",
    ),
    ("a strategic patch that ends early", STRATEGIC_PATCH, b"{\"data\":"),
    ("a strategic patch that is a list", STRATEGIC_PATCH, b"[]"),
    ("a strategic patch that is a number", STRATEGIC_PATCH, b"1"),
    ("a strategic patch that is nothing", STRATEGIC_PATCH, b""),
    ("a strategic patch that is null", STRATEGIC_PATCH, b"null"),
    ("a JSON patch that is a string", JSON_PATCH, b"\"x\""),
    ("a JSON patch that ends early", JSON_PATCH, b"[{\"op\":"),
    ("a JSON patch with a path that is a number", JSON_PATCH, b"[{\"op\":\"add\",\"path\":1,\"value\":1}]"),
    (
        "a JSON patch with an index out of range",
        JSON_PATCH,
        b"[{\"op\":\"add\",\"path\":\"/metadata/finalizers/9\",\"value\":\"a/b\"}]",
    ),
    (
        "a JSON patch with a negative index",
        JSON_PATCH,
        b"[{\"op\":\"remove\",\"path\":\"/metadata/finalizers/-1\"}]",
    ),
    ("applied YAML that is text", APPLY_PATCH, b"text"),
    ("applied YAML that is nothing", APPLY_PATCH, b""),
    ("applied YAML that is a list", APPLY_PATCH, b"[]"),
    ("a patch in CBOR", CBOR, b"\xa0"),
];

/// Queries of a list, and paths; `*` stands for the script's namespace.
const QUERIES: &[(&str, &str, &str)] = &[
    ("labelSelector", "labels in an open bracket", "a in (b"),
    ("labelSelector", "a label without a key", "=a"),
    ("labelSelector", "a label's key that is none", "a b=c"),
    (
        "labelSelector",
        "a label's value that is too long",
        "a=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ),
    ("labelSelector", "a comparison with no number", "a>b"),
    ("fieldSelector", "a field that there is not", "spec.nothing=a"),
    ("fieldSelector", "a field without a value", "metadata.name"),
    ("fieldSelector", "a field with an escape that is none", "metadata.name=a\\q"),
    ("resourceVersion", "a version that is none", "x"),
    ("resourceVersion", "a negative version", "-5"),
    ("resourceVersionMatch", "a match without a version", "Exact"),
    ("resourceVersionMatch", "a match that there is not", "Nearly"),
    ("limit", "a limit that is none", "many"),
    ("limit", "a limit beyond all numbers", "99999999999999999999"),
    ("continue", "a token that is text", "hello"),
    ("continue", "a token of another version", "eyJ2IjoidjkiLCJydiI6MSwic3RhcnQiOiJhIn0"),
    ("watch", "a watch that is neither true nor false", "perhaps"),
    ("timeoutSeconds", "a time that is none", "soon"),
];

const PATHS: &[(&str, &str)] = &[
    ("a name with an escaped slash", "/api/v1/namespaces/*/configmaps/a%2Fb"),
    ("a name that leads upwards", "/api/v1/namespaces/*/configmaps/%2e%2e"),
    ("a name with a zero byte", "/api/v1/namespaces/*/configmaps/a%00b"),
    ("a name in upper case", "/api/v1/namespaces/*/configmaps/ABC"),
    ("a name of a thousand letters", "/api/v1/namespaces/*/configmaps/{long}"),
    ("a namespace with a slash", "/api/v1/namespaces/a%2Fb/configmaps"),
    ("slashes everywhere", "//api//v1//namespaces//*//configmaps"),
    ("a path that goes up", "/api/v1/namespaces/*/../../nodes"),
    ("a point in the path", "/api/v1/./namespaces"),
    ("a group of a thousand letters", "/apis/{long}/v1/things"),
];

/// Texts that are no YAML.
const NO_YAML: &[(&str, &str)] = &[
    ("an open list", "a: [\n"),
    ("an open list with an item", "a: [b\n"),
    ("an open object", "a: {b: c\n"),
    ("an open quote", "a: \"b\nc: d\n"),
    ("an open single quote", "a: 'b\nc: d\n"),
    ("a colon too many", "a: b: c\n"),
    ("a colon too many in the second line", "x: y\na: b: c\n"),
    ("a list that ends as an object", "a: [b}\n"),
    ("an object that ends as a list", "a: {b: c]\n"),
    ("a closing bracket", "a: ]\n"),
    ("an indentation that is none", "a:\n  b: c\n d: e\n"),
    ("an indentation of a list that is none", "a:\n  - b\n c: d\n"),
    ("a key after a list", "- a\nb: c\n"),
    ("an item after a key", "a: b\n- c\n"),
    ("a tab that indents", "a:\n\tb: c\n"),
    ("an escape that there is not", "a: \"\\q\"\n"),
    ("an at sign", "a: @b\n"),
    ("a backquote", "a: `b`\n"),
    ("a percent sign", "a: b\n%c\n"),
    ("a tag that there is not", "a: !!nothing b\n"),
    ("a control character", "a: \u{1}\n"),
    ("an anchor without a name", "a: & b\n"),
    ("a word without a colon", "a: b\nc\n"),
    ("a word without a colon before another", "a\nb: c\n"),
];

pub(super) fn behaviours() -> Vec<Behaviour> {
    let mut all = Vec::new();
    for (name, media_type, body) in BODIES {
        all.push(Behaviour::new(format!("bad input: {name}"), move |mut script: Script| async move {
            let maps = script.maps();
            script.send(Request::new("POST", maps).raw(media_type, *body)).await?;
            Ok(script)
        }));
    }
    for (name, media_type, body) in PATCHES {
        all.push(Behaviour::new(format!("bad input: {name}"), move |mut script: Script| async move {
            script.map("a", json!({"k": "v"})).await?;
            let item = format!("{}/a", script.maps());
            let request = Request::new("PATCH", item).raw(media_type, *body);
            let manager = if *media_type == APPLY_PATCH { "m" } else { "" };
            script
                .send(if manager.is_empty() { request } else { request.with("fieldManager", manager) })
                .await?;
            Ok(script)
        }));
    }
    for (parameter, name, value) in QUERIES {
        all.push(Behaviour::new(format!("bad input: {name}"), move |mut script: Script| async move {
            let maps = script.maps();
            script.send(Request::new("GET", maps).with(parameter, *value)).await?;
            Ok(script)
        }));
    }
    for (name, path) in PATHS {
        all.push(Behaviour::new(format!("bad input: {name}"), move |mut script: Script| async move {
            let path = path.replace('*', script.namespace()).replace("{long}", &"a".repeat(1000));
            script.send(Request::new("GET", path)).await?;
            Ok(script)
        }));
    }
    for (name, body) in NO_YAML {
        all.push(Behaviour::new(format!("no YAML: {name}"), move |mut script: Script| async move {
            let maps = script.maps();
            script.send(Request::new("POST", maps).raw(YAML, *body)).await?;
            Ok(script)
        }));
    }
    all.extend(bombs());
    all
}

/// Small input that would become large, and large input.
fn bombs() -> Vec<Behaviour> {
    type Bomb = (&'static str, &'static str, &'static str, fn() -> String);
    const BOMBS: &[Bomb] = &[
        ("arrays within arrays", "POST", JSON, || "[".repeat(20_000)),
        ("objects within objects", "POST", JSON, || {
            format!(
                "{{\"metadata\":{{\"name\":\"a\"}},\"x\":{}1{}}}",
                "{\"a\":".repeat(20_000),
                "}".repeat(20_000)
            )
        }),
        ("a merge patch of objects within objects", "PATCH", MERGE_PATCH, || {
            format!("{}1{}", "{\"a\":".repeat(20_000), "}".repeat(20_000))
        }),
        ("a JSON patch of more operations than are allowed", "PATCH", JSON_PATCH, || {
            let step = r#"{"op":"test","path":"/kind","value":"ConfigMap"}"#;
            format!("[{}]", vec![step; 10_001].join(","))
        }),
        ("a body of more than three megabytes", "POST", JSON, || " ".repeat(3 * 1024 * 1024 + 1)),
        ("a patch of more than three megabytes", "PATCH", MERGE_PATCH, || " ".repeat(3 * 1024 * 1024 + 1)),
        ("YAML whose aliases multiply", "POST", YAML, || aliases("metadata: {name: b}\n")),
        ("applied YAML whose aliases multiply", "PATCH", APPLY_PATCH, || aliases("metadata: {name: a}\n")),
        ("YAML with some aliases", "POST", YAML, || {
            "apiVersion: v1\nkind: ConfigMap\nmetadata: &m {name: b}\ndata: &d {k: &v w, l: *v}\nbinaryData: {}\n".to_owned()
        }),
        ("YAML with an alias of itself", "POST", YAML, || "metadata: {name: b}\nx: &x [*x]\n".to_owned()),
        ("YAML with an alias of nothing", "POST", YAML, || "metadata: {name: b}\nx: *x\n".to_owned()),
        ("YAML with a merge", "POST", YAML, || {
            "metadata: {name: b}\nbinaryData: &d {k: aQ==}\nx: {<<: *d, z: aQ==}\n".to_owned()
        }),
    ];
    let behaviour = |(name, method, media_type, body): &Bomb| {
        let (method, media_type, body) = (*method, *media_type, *body);
        Behaviour::new(format!("bad input: {name}"), move |mut script: Script| async move {
            script.map("a", json!({"k": "v"})).await?;
            let path = if method == "POST" { script.maps() } else { format!("{}/a", script.maps()) };
            let request = Request::new(method, path).raw(media_type, body());
            let applied = media_type == APPLY_PATCH;
            script.send(if applied { request.with("fieldManager", "m") } else { request }).await?;
            // Nobody else minds.
            let maps = script.maps();
            script.send(Request::new("GET", maps)).await?;
            Ok(script)
        })
    };
    BOMBS.iter().map(behaviour).collect()
}

/// Nine lists, each of nine times the one before: a billion words, if all were written out.
fn aliases(head: &str) -> String {
    let mut text = format!("apiVersion: v1\nkind: ConfigMap\n{head}a0: &a0 [w, w, w, w, w, w, w, w, w]\n");
    for level in 1..9 {
        let same = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{same}]\n"));
    }
    text
}

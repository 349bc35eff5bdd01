//! The guides show code that is compiled and run: every piece of it is found, word for word, in a file beside this one, or in the
//! operator that the guide is about.

mod cookbook;
mod deciding_purely;
mod first_operator;
mod webhooks;

fn is_shown_from(guide: &str, code: &str) {
    let flat = |text: &str| {
        text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
    };
    let code = flat(code);
    let pieces: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(pieces.len() >= 5, "a guide shows code");
    for piece in pieces {
        assert!(code.contains(&flat(piece)), "this is not in the code that is tested:\n{piece}");
    }
}

#[test]
fn the_first_operator_is_the_one_that_is_tested() {
    is_shown_from(include_str!("../../../../docs/first-operator.md"), include_str!("first_operator.rs"));
}

#[test]
fn what_is_decided_purely_is_what_is_tested() {
    is_shown_from(include_str!("../../../../docs/deciding-purely.md"), include_str!("deciding_purely.rs"));
}

#[test]
fn webhooks_are_those_that_are_tested() {
    is_shown_from(include_str!("../../../../docs/webhooks.md"), include_str!("webhooks.rs"));
}

#[test]
fn the_cookbook_shows_what_is_tested() {
    let code = [
        include_str!("cookbook.rs"),
        include_str!("../../../../operators/redis-cache/src/api/v1alpha1.rs"),
        include_str!("../../../../operators/redis-cache/src/children.rs"),
        include_str!("../../../../operators/redis-cache/src/controller.rs"),
        include_str!("../../../../operators/redis-cache/src/lib.rs"),
        include_str!("../../../../operators/redis-cache/tests/redis_cache.rs"),
    ];
    is_shown_from(include_str!("../../../../docs/cookbook.md"), &code.concat());
}

/// `[name of a test](where it is)`, in tables.
#[test]
fn every_test_that_the_feature_table_names_is_there() {
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let table = std::fs::read_to_string(docs.join("controller-runtime.md")).unwrap();
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with('|')) {
        let shown = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        for link in shown.split("](").zip(shown.split("](").skip(1)) {
            let name = link.0.rsplit('[').next().unwrap_or_default();
            let path = link.1.split(')').next().unwrap_or_default();
            let code = std::fs::read_to_string(docs.join(path)).unwrap_or_default();
            let is_document = path.ends_with(".md") && !code.is_empty();
            assert!(is_document || code.contains(name), "{name} is not in {path}");
            named += 1;
        }
    }
    assert!(named > 50, "{named} tests are named");
}

//! Random templates, rendered by us and by Helm's own engine: text and errors are equal.
//!
//! The peer is `bench/peers/templates`, which `make peers` builds. WINDLASS_STEPS is the number of cases, WINDLASS_SEED runs one seed.

mod generate;
mod peer;

use generate::Generator;
use peer::{Answer, Peer};
use serde_json::{Value as Json, json};
use windlass_template::functions::Functions;
use windlass_template::value::{MapType, Value};
use windlass_template::{Engine, MissingKey, Options, from_json, on_large_stack};

/// The values that every case sees.
fn values() -> Json {
    json!({
        "s": "hello World", "e": "", "n": 3.0, "f": 1.5, "big": 1_000_000.0, "neg": -7.0, "t": true, "z": false,
        "nil": null, "l": ["b", "a", "c", "a"], "ln": [3.0, 1.0, 2.0], "le": [], "lm": ["x", 1.0, null, true],
        "d": {"a": "x", "b": {"c": 2.0, "d": ["q"]}, "k": "v"}, "de": {}, "u": "héllo wörld ☃", "num": "42",
        "yaml": "a: 1\nb: [x, y]\nc:\n  d: true\n", "json": "{\"a\": [1, 2.5, \"x\"]}", "ver": "1.2.3-rc.1+b",
        "multi": "line one\nline two\n\nline four\n", "url": "https://u:p@example.com:8080/a/b?q=1#f",
    })
}

fn ours(template: &str) -> Answer {
    let rendered = on_large_stack(|| {
        let engine =
            Engine::new(Functions::helm(), Options { missing_key: MissingKey::Zero, ..Options::default() });
        let values = match from_json(&values()) {
            Value::Map(map) => Value::Map(map.typed(MapType::Values)),
            other => other,
        };
        let data = Value::map([
            ("Values", values),
            ("Chart", Value::map([("Name", "case".into()), ("Version", "1.2.3".into())])),
        ]);
        let result = engine
            .parse("case/templates/t", template)
            .and_then(|()| engine.execute("case/templates/t", data));
        result.map_err(|error| error.text)
    });
    match rendered {
        Ok(Ok(bytes)) => Answer::Text(replace(&bytes)),
        Ok(Err(error)) => Answer::Error(error),
        Err(error) => panic!("{template}: {error}"),
    }
}

/// Helm removes what Go prints for no value.
fn replace(bytes: &[u8]) -> Vec<u8> {
    let pattern = b"<no value>";
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(pattern) {
            at += pattern.len();
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

/// What is wrong with a YAML or TOML text is said in each parser's own words.
fn masked(text: &[u8]) -> &[u8] {
    let marks: [&[u8]; 2] = [b"YAML to JSON: yaml: ", b"toml: "];
    let found =
        marks.iter().filter_map(|mark| text.windows(mark.len()).position(|window| window == *mark)).min();
    &text[..found.unwrap_or(text.len())]
}

#[test]
fn random_templates_are_rendered_as_by_helm() {
    let Some(mut peer) = Peer::start() else { return };
    let steps = variable("WINDLASS_STEPS").unwrap_or(3000);
    let only = variable("WINDLASS_SEED");
    let verbose = std::env::var_os("WINDLASS_SHOW").is_some();
    let (mut errors, mut same_errors, mut ended, mut wrong) = (0, 0, 0, Vec::new());
    for seed in 0..steps {
        let seed = only.unwrap_or(seed);
        let template = Generator::new(seed).template();
        let theirs = peer.render(&template, &values());
        let our = ours(&template);
        match (&our, &theirs) {
            (Answer::Text(a), Answer::Text(b)) if masked(a) == masked(b) => {}
            (Answer::Error(a), Answer::Error(b)) => {
                errors += 1;
                if peer::cleaned(a) == *b {
                    same_errors += 1;
                } else if verbose {
                    println!("seed {seed}: {template}\n  ours:   {a}\n  theirs: {b}");
                }
            }
            // Ours has an answer, whichever.
            (_, Answer::Ended) => ended += 1,
            _ => wrong.push(format!("seed {seed}: {template}\n  ours:   {our}\n  theirs: {theirs}")),
        }
        if only.is_some() {
            println!("{template}\n  ours:   {our}\n  theirs: {theirs}");
            break;
        }
    }
    println!(
        "{steps} cases: {} differ; of {errors} errors {same_errors} have the same text; the peer ended in {ended}",
        wrong.len()
    );
    assert!(
        wrong.is_empty(),
        "{} of {steps} cases differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(60)].join("\n")
    );
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

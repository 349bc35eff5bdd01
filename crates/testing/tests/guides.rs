//! The guides show code that is compiled and run: every piece of it is found, word for word, in the test beside it.

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
    is_shown_from(include_str!("../../../docs/first-operator.md"), include_str!("first_operator.rs"));
}

#[test]
fn what_is_decided_purely_is_what_is_tested() {
    is_shown_from(include_str!("../../../docs/deciding-purely.md"), include_str!("deciding_purely.rs"));
}

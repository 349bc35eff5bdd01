//! `make demo`: what there is to see so far.

fn main() {
    println!(
        "There is no operator to show yet. What there is: see \"What there is\" in README.md, and `make help`."
    );
}

//! Random quantities: of every notation, of any length, and some that are none.

use super::Random;
use windlass::Quantity;
use windlass::quantity::Format;

const SUFFIXES: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A text that may be a quantity.
pub fn any(random: &mut Random) -> String {
    let sign = *random.pick(&["", "", "", "", "", "", "-", "-", "+"]);
    let zeros = "0".repeat(if random.chance(10) { random.below(4) } else { 0 });
    let whole = digits(random, 24);
    let fraction = match random.below(3) {
        0 => format!(".{}", digits(random, 14)),
        _ => String::new(),
    };
    let suffix = match random.below(4) {
        // Larger exponents make the reference calculate for hours, and so no other letter `e` gets into a number.
        0 => {
            let (letter, sign) = (random.pick(&["e", "E"]), random.pick(&["", "-", "+"]));
            format!("{letter}{sign}{}", random.below(30))
        }
        _ => (*random.pick(&SUFFIXES)).to_owned(),
    };
    let mut text = format!("{sign}{zeros}{whole}{fraction}{suffix}");
    if random.chance(3) {
        let at = random.below(text.len() + 1);
        text.insert(at, *random.pick(&['i', 'K', '-', '.', 'x', ' ', '1', '_']));
    }
    text
}

/// Mostly few digits, often with zeros at the end, where the canonical form differs.
fn digits(random: &mut Random, most: usize) -> String {
    let length = if random.chance(80) { random.below(6) } else { random.below(most) };
    let zeros = if random.chance(40) { random.below(length + 1) } else { 0 };
    let digits = (0..length).map(|place| match place + zeros >= length {
        true => '0',
        false => *random.pick(&['0', '1', '2', '4', '5', '8', '9']),
    });
    digits.collect()
}

/// Whether the reference writes a quantity without its exponent, so that its value is lost: `1000E` becomes `1` there, and here `1e21`, as on
/// Kubernetes' main branch.
pub fn is_lost(quantity: &Quantity) -> bool {
    quantity.format() == Format::DecimalSI && quantity.to_string().contains('e')
}

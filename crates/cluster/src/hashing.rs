//! Short names for templates: equal templates have equal ones.

use serde::Serialize;

/// Without vowels, so that no words come about, and without what looks like something else.
const SAFE: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A hash of what is written, in characters that a name may have. `collisions` makes it another one, if the first is taken.
pub(crate) fn of(written: &impl Serialize, collisions: Option<i32>) -> String {
    let mut bytes = serde_json::to_vec(written).unwrap_or_default();
    bytes.extend(collisions.into_iter().flat_map(i32::to_le_bytes));
    let number = fnv_1a(&bytes).to_string();
    number.bytes().map(|digit| char::from(SAFE[usize::from(digit) % SAFE.len()])).collect()
}

/// Fowler, Noll and Vo's hash of 32 bits.
fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_things_have_equal_names_and_collisions_others() {
        assert_eq!(fnv_1a(b"a"), 0xe40c_292c, "as published");
        let name = of(&["nginx"], None);
        assert_eq!(name, of(&["nginx"], None));
        assert_ne!(name, of(&["nginx"], Some(1)));
        assert_ne!(name, of(&["httpd"], None));
        assert!(name.len() <= 10 && name.bytes().all(|byte| SAFE.contains(&byte)), "{name}");
    }
}

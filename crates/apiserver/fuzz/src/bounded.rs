//! The targets without libFuzzer: changes to good requests, for a number of seconds or rounds, from a seed.
//!
//! `bounded ROUNDS [SEED]`; the input that is being tried is in `artifacts/bounded` if it fails.

use std::fs;

/// xorshift: enough to choose bytes.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// What is worth putting in somewhere.
const WORDS: &[&[u8]] = &[
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"\"\"",
    b"[]",
    b"{}",
    b"{\"a\":1}",
    b"\xff",
    b"%2f",
    b"%00",
    b"//",
    b"..",
    b"\n",
    b"\0",
    b"\0\n",
    b"\"$patch\":\"delete\",",
    b"\"$retainKeys\":[],",
    b"&watch=1",
    b"?",
    b"&limit=-1",
    b"status",
    b"/scale",
    b"&resourceVersion=999999",
    b"\"metadata\":",
    b"\"managedFields\":[{}]",
    b"application/cbor",
    b"\"generateName\":\"g\",",
    b"\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",",
    b"\xe2\x80\xa8",
    b"&dryRun=All",
];

fn main() {
    let number = |place| std::env::args().nth(place).and_then(|text| text.parse::<u64>().ok());
    let (rounds, seed) = (number(1).unwrap_or(2_000), number(2).unwrap_or(1));
    let seeds = windlass_apiserver_fuzz::seeds();
    for seed in &seeds {
        windlass_apiserver_fuzz::requests(seed);
    }
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/artifacts");
    fs::create_dir_all(kept).expect("a place for what fails");
    for _ in 0..rounds {
        let mut bytes = seeds[random.below(seeds.len())].clone();
        for _ in 0..=random.below(8) {
            change(&mut bytes, &seeds, &mut random);
        }
        fs::write(format!("{kept}/bounded"), &bytes).expect("it can be written");
        windlass_apiserver_fuzz::requests(&bytes);
    }
    println!("{rounds} rounds, no target failed");
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(b'0');
    }
    let at = random.below(bytes.len());
    let end = at + random.below((bytes.len() - at).min(40) + 1);
    match random.below(7) {
        0 => bytes[at] = random.below(256) as u8,
        1 => bytes[at] = b"{}[]\",:\\0159-.etfn/?&= \n"[random.below(24)],
        2 => drop(bytes.drain(at..end)),
        3 => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..at, word.iter().copied());
        }
        4 => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..end, word.iter().copied());
        }
        5 => {
            let piece = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, piece);
        }
        _ => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            let piece = other[from..(from + random.below(120)).min(other.len())].to_vec();
            bytes.splice(at..end, piece);
        }
    }
}

//! Objects of one kind resemble each other: a text held as its difference from a few others of its kind.
//!
//! In comes a text, out come pieces: copied from the dictionary (the first texts that did not resemble it yet), copied from
//! the text itself, or said anew. A dictionary only grows, so that what was compressed by it before is decompressed by it later.
//!
//! A typed object with its maps takes some twenty times the memory of such a difference, which is why large stores are held
//! so.

/// What positions within a dictionary and within a text are written with.
type Place = u16;

/// A dictionary grows no longer than this: enough for the shapes that a kind comes in.
const LONGEST_PATTERN: usize = 32 << 10;
/// Longer texts are not compressed, nor learnt from beyond a quarter of it: what they hold is rarely what they have in common.
pub(super) const LONGEST_TEXT: usize = 32 << 10;
const LONGEST_LESSON: usize = LONGEST_TEXT / 4;
/// What is not compressed to less than one part in this many is not like the dictionary.
const ALIKE: usize = 4;
/// A shorter piece is said anew: to say where it is takes as long.
const SHORTEST_COPY: usize = 6;
const TABLE: usize = 1 << 12;

const ANEW: usize = 0;
const FROM_PATTERN: usize = 1;
const FROM_TEXT: usize = 2;

/// What texts are compressed by. Before the first text it takes no room: most stores stay too small to be compressed.
#[derive(Default)]
pub(super) struct Dictionary {
    text: Vec<u8>,
    /// By hash, where in the dictionary such a piece begins, plus one. Empty until there is a piece.
    places: Vec<Place>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary of {} bytes", self.text.len())
    }
}

impl Dictionary {
    /// Folds a text, and learns from one that is like nothing before. `None` for one that is too long.
    pub(super) fn compress(&mut self, text: &[u8]) -> Option<Box<[u8]>> {
        if text.len() > LONGEST_TEXT {
            return None;
        }
        let compressed = self.difference(text);
        if compressed.len() * ALIKE > text.len() && self.learn(text) {
            return Some(self.difference(text).into());
        }
        Some(compressed.into())
    }

    /// The text that was compressed; `None` for what this dictionary never compressed.
    pub(super) fn decompress(&self, compressed: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::with_capacity(compressed.len() * ALIKE);
        let mut rest = compressed;
        while !rest.is_empty() {
            let said = take_number(&mut rest)?;
            let (how, length) = (said & 3, said >> 2);
            if length > LONGEST_TEXT - text.len().min(LONGEST_TEXT) {
                return None;
            }
            if how == ANEW {
                text.extend_from_slice(rest.get(..length)?);
                rest = &rest[length..];
                continue;
            }
            let (place, after) = rest.split_first_chunk::<{ size_of::<Place>() }>()?;
            rest = after;
            let start = usize::from(Place::from_le_bytes(*place));
            match how {
                FROM_PATTERN => text.extend_from_slice(self.text.get(start..start + length)?),
                FROM_TEXT if start < text.len() => {
                    // It may reach into what it writes itself: then it repeats.
                    let (mut from, end) = (start, text.len() + length);
                    while text.len() < end {
                        let piece = (end - text.len()).min(text.len() - from);
                        text.extend_from_within(from..from + piece);
                        from += piece;
                    }
                }
                _ => return None,
            }
        }
        Some(text)
    }

    fn learn(&mut self, text: &[u8]) -> bool {
        let room = LONGEST_PATTERN - self.text.len();
        let lesson = &text[..text.len().min(LONGEST_LESSON)];
        if lesson.len() > room {
            return false;
        }
        self.places.resize(TABLE * 4, 0);
        let start = self.text.len();
        self.text.extend_from_slice(lesson);
        self.text.shrink_to_fit();
        for at in start..self.text.len() {
            if let Some(hash) = hash(&self.text[at..]) {
                let slot = slot(hash, TABLE * 4);
                self.places[slot] = at as Place + 1;
            }
        }
        true
    }

    fn difference(&self, text: &[u8]) -> Vec<u8> {
        // As `places`, of the text that is being compressed.
        let mut own_places = [0 as Place; TABLE];
        let mut out = Vec::with_capacity(text.len() / 2);
        let (mut at, mut said) = (0, 0);
        while let Some(hash) = text.get(at..).and_then(hash) {
            let place = |place: Place| usize::from(place).checked_sub(1);
            let in_pattern = self.places.get(slot(hash, TABLE * 4)).copied().and_then(place);
            let in_text = place(std::mem::replace(&mut own_places[slot(hash, TABLE)], at as Place + 1));
            let rest = &text[at..];
            let from_pattern =
                in_pattern.map(|start| (common(&self.text[start..], rest), FROM_PATTERN, start));
            let from_text = in_text.map(|start| (common(&text[start..], rest), FROM_TEXT, start));
            match from_pattern.into_iter().chain(from_text).max_by_key(|(length, ..)| *length) {
                Some((length, how, start)) if length >= SHORTEST_COPY => {
                    say_anew(&mut out, &text[said..at]);
                    put_number(&mut out, length << 2 | how);
                    out.extend_from_slice(&(start as Place).to_le_bytes());
                    at += length;
                    said = at;
                }
                _ => at += 1,
            }
        }
        say_anew(&mut out, &text[said..]);
        out
    }
}

fn say_anew(out: &mut Vec<u8>, piece: &[u8]) {
    if !piece.is_empty() {
        put_number(out, piece.len() << 2 | ANEW);
        out.extend_from_slice(piece);
    }
}

/// Seven bits at a time, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let mut number = 0usize;
    for shift in [0, 7, 14, 21] {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Of the first bytes of a text, as many as the shortest copy has.
fn hash(text: &[u8]) -> Option<u32> {
    let bytes = u64::from_le_bytes(*text.first_chunk()?) << 16;
    Some((bytes.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32)
}

/// Tables have a power of two of slots.
fn slot(hash: u32, slots: usize) -> usize {
    (hash >> (32 - slots.trailing_zeros())) as usize
}

fn common(one: &[u8], other: &[u8]) -> usize {
    let mut length = 0;
    for (a, b) in one.chunks_exact(8).zip(other.chunks_exact(8)) {
        if a != b {
            break;
        }
        length += 8;
    }
    length + one[length..].iter().zip(&other[length..]).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting(number: usize) -> String {
        format!(
            r#"{{"apiVersion":"example.com/v1","kind":"Greeting","metadata":{{"name":"greeting-{number}","uid":"{:032x}"}},"spec":{{"text":"hello"}}}}"#,
            number.wrapping_mul(0x1234_5678_9abc_def1)
        )
    }

    #[test]
    fn what_resembles_others_takes_a_fraction_and_comes_back_as_it_was() {
        let mut dictionary = Dictionary::default();
        for number in 0..1000 {
            let text = greeting(number);
            let compressed = dictionary.compress(text.as_bytes()).unwrap();
            assert!(compressed.len() * 3 < text.len(), "{number}: {} of {}", compressed.len(), text.len());
            assert_eq!(dictionary.decompress(&compressed).unwrap(), text.as_bytes());
        }
        assert!(dictionary.text.len() < 1000, "one of them was enough: {}", dictionary.text.len());
    }

    #[test]
    fn what_was_compressed_first_is_decompressed_after_the_dictionary_grew_and_the_dictionary_is_bounded() {
        let mut dictionary = Dictionary::default();
        let unlike = |seed: u64| -> Vec<u8> {
            let mut state = seed;
            std::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .take(1500)
            .collect()
        };
        let compressed: Vec<_> = (0..100).map(|seed| dictionary.compress(&unlike(seed)).unwrap()).collect();
        for (seed, compressed) in compressed.iter().enumerate() {
            assert_eq!(dictionary.decompress(compressed).unwrap(), unlike(seed as u64));
        }
        assert!(dictionary.text.len() <= LONGEST_PATTERN);
        assert!(dictionary.compress(&vec![b'x'; LONGEST_TEXT]).unwrap().len() < 32);
        assert_eq!(dictionary.compress(&vec![b'x'; LONGEST_TEXT + 1]), None);
    }

    proptest! {
        #[test]
        fn whatever_is_compressed_comes_back(
            texts in prop::collection::vec(prop::collection::vec(prop::sample::select(b"abc".to_vec()), 0..300), 1..8),
        ) {
            let mut dictionary = Dictionary::default();
            let compressed: Vec<_> = texts.iter().map(|text| dictionary.compress(text).unwrap()).collect();
            for (text, compressed) in texts.iter().zip(compressed) {
                prop_assert_eq!(&dictionary.decompress(&compressed).unwrap(), text);
            }
        }

        #[test]
        fn nonsense_is_no_panic(compressed in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut dictionary = Dictionary::default();
            dictionary.compress(greeting(1).as_bytes());
            let _ = dictionary.decompress(&compressed);
        }
    }
}

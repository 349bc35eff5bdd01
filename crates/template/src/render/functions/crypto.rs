//! Sprig's checksums and random values.

use super::{Row, integer, text};
use crate::render::exec::Run;
use crate::value::Value;
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use ring::rand::{SecureRandom, SystemRandom};

pub(super) const ROWS: &[Row] = &[
    ("sha1sum", "s>s", |_, given| Ok(sum(&SHA1_FOR_LEGACY_USE_ONLY, text(given, 0)))),
    ("sha256sum", "s>s", |_, given| Ok(sum(&SHA256, text(given, 0)))),
    ("sha512sum", "s>s", |_, given| Ok(sum(&SHA512, text(given, 0)))),
    ("adler32sum", "s>s", |_, given| {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in text(given, 0) {
            a = (a + u32::from(*byte)) % 65521;
            b = (b + a) % 65521;
        }
        Ok((b << 16 | a).to_string().into())
    }),
    ("randAlphaNum", "i>s", |context, given| {
        random_text(context, integer(given, 0), |c| c.is_ascii_alphanumeric())
    }),
    ("randAlpha", "i>s", |context, given| {
        random_text(context, integer(given, 0), |c| c.is_ascii_alphabetic())
    }),
    ("randNumeric", "i>s", |context, given| random_text(context, integer(given, 0), |c| c.is_ascii_digit())),
    ("randAscii", "i>s", |context, given| {
        random_text(context, integer(given, 0), |c| c.is_ascii_graphic() || c == ' ')
    }),
    ("randBytes", "i>s", |context, given| {
        use base64::Engine;
        let count =
            usize::try_from(integer(given, 0)).map_err(|_| "runtime error: makeslice: len out of range")?;
        context.engine.make(count)?;
        let mut bytes = vec![0; count];
        fill(&mut bytes)?;
        Ok(base64::engine::general_purpose::STANDARD.encode(bytes).into())
    }),
    ("uuidv4", ">s", |_, _| {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = hex(&bytes);
        Ok(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into())
    }),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sum(algorithm: &'static Algorithm, bytes: &[u8]) -> Value {
    hex(digest(algorithm, bytes).as_ref()).into()
}

/// Random bytes of the system.
pub(super) fn fill(bytes: &mut [u8]) -> Run<()> {
    SystemRandom::new().fill(bytes).map_err(|_| "the system has no random numbers".into())
}

/// A random number below another, each as likely as the others.
pub(super) fn random_below(end: u64) -> Run<u64> {
    let most = u64::MAX - u64::MAX % end.max(1);
    loop {
        let mut bytes = [0; 8];
        fill(&mut bytes)?;
        let number = u64::from_le_bytes(bytes);
        if number < most {
            return Ok(number % end.max(1));
        }
    }
}

fn random_text(context: &super::Context<'_>, count: i64, allowed: fn(char) -> bool) -> Run<Value> {
    let count = usize::try_from(count).unwrap_or(0);
    context.engine.make(count)?;
    let mut out = String::with_capacity(count);
    let mut bytes = vec![0; 256];
    while out.len() < count {
        fill(&mut bytes)?;
        let left = count - out.len();
        out.extend(
            bytes.iter().map(|byte| char::from(*byte)).filter(|c| c.is_ascii() && allowed(*c)).take(left),
        );
    }
    Ok(out.into())
}

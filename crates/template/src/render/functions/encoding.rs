//! Sprig's encodings: base64, base32, JSON and URLs.

use super::{Row, any, lossy, map, text};
use crate::go::url::Url;
use crate::json;
use crate::value::Value;
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Go ignores the bits that are left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

pub(super) const ROWS: &[Row] = &[
    ("b64enc", "s>s", |_, given| Ok(BASE64.encode(text(given, 0)).into())),
    ("b64dec", "s>s", |_, given| {
        // Line breaks are skipped; where it breaks off is counted with them.
        let encoded: Vec<u8> =
            text(given, 0).iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
        Ok(match BASE64.decode(&encoded) {
            Ok(bytes) => Value::str(bytes),
            Err(_) => format!("illegal base64 data at input byte {}", wrong_base64(text(given, 0))).into(),
        })
    }),
    ("b32enc", "s>s", |_, given| Ok(base32(text(given, 0)).into())),
    ("b32dec", "s>s", |_, given| {
        Ok(match unbase32(text(given, 0)) {
            Ok(bytes) => Value::str(bytes),
            Err(at) => format!("illegal base32 data at input byte {at}").into(),
        })
    }),
    ("fromJson", "s>a", |_, given| Ok(json::read(&lossy(given, 0)).unwrap_or(Value::Nil))),
    ("mustFromJson", "s>a", |_, given| Ok(json::read(&lossy(given, 0))?)),
    ("toJson", "a>s", |_, given| Ok(json::write(&any(given, 0), true).unwrap_or_default().into())),
    ("mustToJson", "a>s", |_, given| Ok(json::write(&any(given, 0), true)?.into())),
    ("toPrettyJson", "a>s", |_, given| Ok(json::pretty(&any(given, 0)).unwrap_or_default().into())),
    ("mustToPrettyJson", "a>s", |_, given| Ok(json::pretty(&any(given, 0))?.into())),
    ("toRawJson", "a>s", |_, given| Ok(json::write(&any(given, 0), false)?.into())),
    ("mustToRawJson", "a>s", |_, given| Ok(json::write(&any(given, 0), false)?.into())),
    ("urlParse", "s>m", |_, given| {
        let url = Url::parse(&lossy(given, 0)).map_err(|error| format!("unable to parse url: {error}"))?;
        Ok(Value::map([
            ("scheme", url.scheme.as_str().into()),
            ("host", url.host.as_str().into()),
            ("hostname", url.hostname().into()),
            ("path", url.path.as_str().into()),
            ("query", url.query.as_str().into()),
            ("opaque", url.opaque.as_str().into()),
            ("fragment", url.fragment.as_str().into()),
            ("userinfo", url.user.clone().unwrap_or_default().into()),
        ]))
    }),
    ("urlJoin", "m>s", |_, given| {
        let map = map(given, 0);
        let part = |name: &str| match map.get(name.as_bytes()) {
            None => Ok(String::new()),
            Some(Value::Str(text)) => Ok(text.lossy().into_owned()),
            Some(other) => Err(format!(
                "unable to parse {name} key, must be of type string, but {} found",
                other.kind().name()
            )),
        };
        let url = Url {
            scheme: part("scheme")?,
            host: part("host")?,
            path: part("path")?,
            query: part("query")?,
            opaque: part("opaque")?,
            fragment: part("fragment")?,
            user: None,
        };
        let user = part("userinfo")?;
        let user = if user.is_empty() {
            None
        } else {
            Url::parse(&format!("proto://{user}@host"))
                .map_err(|error| format!("unable to parse userinfo in dict: {error}"))?
                .user
        };
        Ok(Url { user, ..url }.show().into())
    }),
];

/// Where Go says that base64 goes wrong.
fn wrong_base64(encoded: &[u8]) -> usize {
    let digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    let mut in_group = 0;
    let mut at = 0;
    while at < encoded.len() {
        let byte = encoded[at];
        at += 1;
        if matches!(byte, b'\r' | b'\n') {
            continue;
        }
        if digit(byte) {
            in_group = (in_group + 1) % 4;
            continue;
        }
        if byte != b'=' || in_group < 2 {
            return at - 1;
        }
        if in_group == 2 {
            while encoded.get(at).is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
                at += 1;
            }
            match encoded.get(at) {
                None => return encoded.len(),
                Some(b'=') => at += 1,
                Some(_) => return at - 1,
            }
        }
        while encoded.get(at).is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
            at += 1;
        }
        return at;
    }
    at - in_group
}

fn base32(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.chunks(5) {
        let mut group = [0; 5];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = group.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        let digits = (chunk.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = usize::try_from(bits >> (35 - 5 * at) & 31).unwrap_or(0);
            out.push(if at < digits { char::from(BASE32[digit]) } else { '=' });
        }
    }
    out
}

/// The bytes, or where it goes wrong.
fn unbase32(encoded: &[u8]) -> Result<Vec<u8>, usize> {
    let encoded: Vec<u8> = encoded.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::new();
    let mut at = 0;
    let mut ended = false;
    while at < encoded.len() && !ended {
        let mut bits = 0_u64;
        let mut digits = 0;
        while digits < 8 {
            let Some(byte) = encoded.get(at) else { return Err(encoded.len() - digits) };
            if *byte == b'=' && digits >= 2 {
                let padding = 8 - digits;
                if encoded.len() - at < padding {
                    return Err(encoded.len());
                }
                for place in 0..padding {
                    if encoded[at + place] != b'=' {
                        return Err(at + place);
                    }
                }
                at += padding;
                ended = true;
                if matches!(digits, 1 | 3 | 6) {
                    return Err(at - 1 - padding + 1);
                }
                break;
            }
            let Some(digit) = BASE32.iter().position(|digit| digit == byte) else { return Err(at) };
            bits = bits << 5 | u64::try_from(digit).unwrap_or(0);
            digits += 1;
            at += 1;
        }
        let whole = digits * 5 / 8;
        let bits = bits << (40 - 5 * digits);
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + whole]);
    }
    if at < encoded.len() { Err(at) } else { Ok(out) }
}

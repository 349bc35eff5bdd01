//! Questions and answers as bytes. Whatever comes in, nothing here panics, and nothing grows beyond what was sent.

use std::net::Ipv4Addr;

/// Kinds of record.
pub(super) mod kind {
    pub(in super::super) const A: u16 = 1;
    pub(in super::super) const NS: u16 = 2;
    pub(in super::super) const CNAME: u16 = 5;
    pub(in super::super) const SOA: u16 = 6;
    pub(in super::super) const PTR: u16 = 12;
    pub(in super::super) const TXT: u16 = 16;
    pub(in super::super) const SRV: u16 = 33;
    pub(in super::super) const OPT: u16 = 41;
    pub(in super::super) const ANY: u16 = 255;
}

/// The internet's.
pub(super) const CLASS: u16 = 1;
/// The most that fits into a datagram where the client does not say more.
const PLAIN: usize = 512;
/// The most we send in a datagram: within a link's 1500 it is never split.
const LARGEST: usize = 1432;
const HEADER: usize = 12;
/// Where the question begins: what names that are the question's point to.
const QUESTION: [u8; 2] = [0xc0, 0x0c];

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// By which its answer is known.
    pub(super) id: u16,
    /// Whether the client would like us to ask others; said back to it.
    pub(super) recursion: bool,
    /// The labels of the name, in lower case.
    pub(super) labels: Vec<String>,
    /// Which kind of record is asked for.
    pub(super) kind: u16,
    /// Of which class.
    pub(super) class: u16,
    /// What the client takes in a datagram, if it says so.
    datagram: Option<u16>,
    /// The question as it was sent: it goes back letter by letter, as resolvers that vary the case expect.
    question: Vec<u8>,
}

/// How an answer went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code {
    /// The name exists; records of the kind asked for may be none.
    Known = 0,
    /// The question is not understood.
    Format = 1,
    /// There is no such name.
    Unknown = 3,
    /// We do not do that.
    NotDone = 4,
    /// It is not ours to say, and we ask nobody else.
    Refused = 5,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    A(Ipv4Addr),
    Cname(String),
    Ptr(String),
    Txt(String),
    Ns(String),
    Srv { port: u16, weight: u16, target: String },
    Soa { zone: String },
}

/// A record, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// None where it is the name that was asked for.
    pub(super) name: Option<String>,
    pub(super) data: Data,
}

/// All of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) records: Vec<Record>,
    /// Whose word it is, where there is nothing to say: for how long that may be remembered.
    pub(super) authority: Vec<Record>,
    /// What will be asked next.
    pub(super) additional: Vec<Record>,
}

/// Reads a question. Where it is none, what to answer: nothing, where even that would be to somebody who did not ask.
pub(super) fn parse(bytes: &[u8]) -> Result<Query, Option<Vec<u8>>> {
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let (Some(id), Some(flags), Some(questions)) = (word(0), word(2), word(4)) else { return Err(None) };
    if bytes.len() < HEADER || flags & 0x8000 != 0 {
        return Err(None);
    }
    let refused = |code: Code| Some(bare(id, flags & 0x0100 != 0, code));
    if flags & 0x7800 != 0 {
        return Err(refused(Code::NotDone));
    }
    if questions != 1 {
        return Err(refused(Code::Format));
    }
    let read = || {
        let (labels, end) = labels(bytes, HEADER)?;
        let (kind, class) = (word(end)?, word(end + 2)?);
        let records = word(6)?.checked_add(word(8)?)?.checked_add(word(10)?)?;
        let datagram = client_takes(bytes, end + 4, records);
        let question = bytes.get(HEADER..end + 4)?.to_vec();
        Some(Query { id, recursion: flags & 0x0100 != 0, labels, kind, class, datagram, question })
    };
    read().ok_or_else(|| refused(Code::Format))
}

impl Query {
    /// The answer to it as bytes, at most so many as the client takes: in a datagram what does not fit is left out, and said to be.
    pub(super) fn answer(&self, answer: &Answer, ttl: u32, datagram: bool) -> Vec<u8> {
        let limit = match (datagram, self.datagram) {
            (true, Some(taken)) => usize::from(taken).clamp(PLAIN, LARGEST),
            (true, None) => PLAIN,
            (false, _) => usize::from(u16::MAX),
        };
        let mut bytes = bare(self.id, self.recursion, answer.code);
        bytes[5] = 1;
        bytes.extend(&self.question);
        let options = self.datagram.map(|_| [0, 0, 41, 5, 152, 0, 0, 0, 0, 0, 0]);
        let limit = limit - options.map_or(0, |options| options.len());
        let mut cut = false;
        for (section, records) in [(6, &answer.records), (8, &answer.authority), (10, &answer.additional)] {
            let mut count: u16 = 0;
            for record in records {
                let before = bytes.len();
                record.write(&mut bytes, ttl);
                if bytes.len() > limit {
                    bytes.truncate(before);
                    // What would only be asked next may be left out silently.
                    cut |= section == 6;
                    break;
                }
                count += 1;
            }
            bytes[section..section + 2].copy_from_slice(&count.to_be_bytes());
        }
        if let Some(options) = options {
            bytes.extend(options);
            bytes[11] += 1;
        }
        if cut {
            bytes[2] |= 0x02;
        }
        bytes
    }
}

impl Record {
    fn write(&self, bytes: &mut Vec<u8>, ttl: u32) {
        match &self.name {
            None => bytes.extend(QUESTION),
            Some(name) => write_name(bytes, name),
        }
        let kind = match &self.data {
            Data::A(_) => kind::A,
            Data::Cname(_) => kind::CNAME,
            Data::Ptr(_) => kind::PTR,
            Data::Txt(_) => kind::TXT,
            Data::Ns(_) => kind::NS,
            Data::Srv { .. } => kind::SRV,
            Data::Soa { .. } => kind::SOA,
        };
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS.to_be_bytes());
        bytes.extend(ttl.to_be_bytes());
        let at = bytes.len();
        bytes.extend([0, 0]);
        match &self.data {
            Data::A(address) => bytes.extend(address.octets()),
            Data::Cname(name) | Data::Ptr(name) | Data::Ns(name) => write_name(bytes, name),
            Data::Txt(text) => {
                let text = &text.as_bytes()[..text.len().min(255)];
                bytes.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
                bytes.extend(text);
            }
            Data::Srv { port, weight, target } => {
                bytes.extend([0, 0]);
                bytes.extend(weight.to_be_bytes());
                bytes.extend(port.to_be_bytes());
                write_name(bytes, target);
            }
            Data::Soa { zone } => {
                write_name(bytes, &format!("ns.dns.{zone}"));
                write_name(bytes, &format!("hostmaster.{zone}"));
                for value in [1, 7200, 1800, 86400, ttl] {
                    bytes.extend(u32::to_be_bytes(value));
                }
            }
        }
        let length = u16::try_from(bytes.len() - at - 2).unwrap_or(u16::MAX);
        bytes[at..at + 2].copy_from_slice(&length.to_be_bytes());
    }
}

/// A header with nothing behind it. What we say of our zone is authoritative.
fn bare(id: u16, recursion: bool, code: Code) -> Vec<u8> {
    let authoritative = if matches!(code, Code::Known | Code::Unknown) { 0x04 } else { 0 };
    let [high, low] = id.to_be_bytes();
    vec![high, low, 0x80 | authoritative | u8::from(recursion), code as u8, 0, 0, 0, 0, 0, 0, 0, 0]
}

/// Labels too long to be sent (a Service's external name may hold what it likes) end the name.
fn write_name(bytes: &mut Vec<u8>, name: &str) {
    let begin = bytes.len();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let Ok(length @ 1..=63) = u8::try_from(label.len()) else { break };
        if bytes.len() - begin + label.len() > 253 {
            break;
        }
        bytes.push(length);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
}

/// The labels of a name that is written out, and where it ends.
fn labels(bytes: &[u8], mut at: usize) -> Option<(Vec<String>, usize)> {
    let (begin, mut labels) = (at, Vec::new());
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => break,
            1..=63 => {
                let label = bytes.get(at..at + length)?;
                labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
                at += length;
            }
            _ => return None,
        }
        if at - begin > 254 {
            return None;
        }
    }
    Some((labels, at))
}

/// How large a datagram the client takes, from the record of options that may be among those behind the question.
fn client_takes(bytes: &[u8], mut at: usize, records: u16) -> Option<u16> {
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    for _ in 0..records.min(16) {
        at = past_name(bytes, at)?;
        if word(at)? == kind::OPT {
            return word(at + 2);
        }
        at += 10 + usize::from(word(at + 8)?);
    }
    None
}

fn past_name(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match usize::from(*bytes.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            192.. => return Some(at + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;

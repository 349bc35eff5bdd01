//! One request to the kernel's routing socket, as bytes: a header, a fixed body, then attributes, each padded to four bytes.

use nix::libc;

/// Makes a thing, and fails if it is there.
pub(super) const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;

const HEADER: usize = 16;

/// A request under construction.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

/// Where a nested attribute begins, to be closed.
#[derive(Debug)]
#[must_use]
pub(super) struct Nest(usize);

impl Message {
    /// A request of this kind, of which the kernel says how it went.
    pub(super) fn new(kind: u16, flags: i32) -> Self {
        let flags = u16::try_from(flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK)
            .expect("flags of the header have 16 bits");
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// The body of what is said about a link: which, and which of its flags become what.
    pub(super) fn link(&mut self, index: u32, flags: i32) {
        let flags = u32::try_from(flags).expect("flags of a link are positive");
        self.0.extend([u8::try_from(libc::AF_UNSPEC).expect("zero"), 0, 0, 0]);
        self.0.extend(index.to_ne_bytes());
        self.0.extend(flags.to_ne_bytes());
        self.0.extend(flags.to_ne_bytes());
    }

    /// The body of what is said about an address of a link.
    pub(super) fn address(&mut self, prefix: u8, index: u32) {
        self.0.extend([INET, prefix, 0, libc::RT_SCOPE_UNIVERSE]);
        self.0.extend(index.to_ne_bytes());
    }

    /// The body of what is said about a route.
    pub(super) fn route(&mut self, prefix: u8, table: u8, scope: u8, kind: u8) {
        self.0.extend([INET, prefix, 0, 0, table, libc::RTPROT_STATIC, scope, kind, 0, 0, 0, 0]);
    }

    /// One attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let nest = self.nest(kind);
        self.0.extend(value);
        self.close(nest);
    }

    /// A text with the zero at its end that the kernel expects.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        let nest = self.nest(kind);
        self.0.extend(value.as_bytes());
        self.0.push(0);
        self.close(nest);
    }

    /// Begins an attribute that holds others.
    pub(super) fn nest(&mut self, kind: u16) -> Nest {
        let at = self.0.len();
        self.0.extend([0, 0]);
        self.0.extend(kind.to_ne_bytes());
        Nest(at)
    }

    /// Ends it: its length is known now.
    pub(super) fn close(&mut self, Nest(at): Nest) {
        let length = u16::try_from(self.0.len() - at).expect("attributes are a few bytes");
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    /// The whole, under a number by which its answer is known.
    pub(super) fn bytes(mut self, number: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("requests are a few hundred bytes");
        self.0[0..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&number.to_ne_bytes());
        self.0
    }
}

const INET: u8 = 2;

/// What the kernel answered to request `number`: none where these bytes are about something else.
pub(super) fn outcome(bytes: &[u8], number: u32) -> Option<Result<(), i32>> {
    let field = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    if field(8)? != number || i32::from(kind) != libc::NLMSG_ERROR {
        return None;
    }
    match field(HEADER)?.cast_signed() {
        0 => Some(Ok(())),
        error => Some(Err(error.wrapping_neg())),
    }
}

/// The flags of the link that request `number` was about: none where these bytes are about something else.
pub(super) fn flags_of_link(bytes: &[u8], number: u32) -> Option<u32> {
    let field = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    if field(8)? == number && kind == libc::RTM_NEWLINK { field(HEADER + 8) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_nests_know_their_length() {
        let mut message = Message::new(libc::RTM_NEWLINK, CREATE);
        message.link(0, libc::IFF_UP);
        let nest = message.nest(libc::IFLA_LINKINFO);
        message.text(libc::IFLA_INFO_KIND, "veth");
        message.close(nest);
        let bytes = message.bytes(7);
        assert_eq!(bytes.len(), 16 + 16 + 4 + 12, "the text takes nine, padded to twelve");
        assert_eq!(bytes[0..4], 48u32.to_ne_bytes());
        assert_eq!(bytes[32..34], 16u16.to_ne_bytes(), "the nest holds the padded text");
        assert_eq!(bytes[36..38], 9u16.to_ne_bytes(), "a length never counts padding");
    }

    #[test]
    fn only_the_answer_to_the_request_is_taken() {
        let mut answer = vec![0; 20];
        answer[4..6].copy_from_slice(&2u16.to_ne_bytes());
        answer[8..12].copy_from_slice(&7u32.to_ne_bytes());
        answer[16..20].copy_from_slice(&(-17i32).to_ne_bytes());
        assert_eq!(outcome(&answer, 7), Some(Err(17)));
        assert_eq!(outcome(&answer, 8), None);
        assert_eq!(outcome(&answer[..18], 7), None);
        assert_eq!(outcome(&[], 7), None);
    }
}

//! The protobuf wire format: tags and values.

use super::ProtoError;

/// A value as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
    /// Known to be there, and skipped.
    Group,
    /// Not readable. That a field cannot be of this wire type is told before that.
    Broken(u8, Flaw),
}

/// Why a value cannot be read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Flaw {
    Ended,
    Overflow,
    Negative,
    Illegal(u8),
}

impl From<Flaw> for ProtoError {
    fn from(flaw: Flaw) -> Self {
        Self(match flaw {
            Flaw::Ended => "unexpected EOF".to_owned(),
            Flaw::Overflow => "proto: integer overflow".to_owned(),
            Flaw::Negative => "proto: negative length found during unmarshaling".to_owned(),
            Flaw::Illegal(kind) => format!("proto: illegal wireType {kind}"),
        })
    }
}

/// The wire types of fields.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;

/// What is wrong with a field that should be of the wire type `wanted`.
pub(super) fn wrong(wire: Wire<'_>, wanted: u8, field: &str) -> ProtoError {
    match wire {
        Wire::Broken(kind, flaw) if kind == wanted => flaw.into(),
        wire => ProtoError(format!("proto: wrong wireType = {} for field {field}", wire.number())),
    }
}

impl Wire<'_> {
    fn number(&self) -> u8 {
        match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Group => 3,
            Self::Fixed32(_) => 5,
            Self::Broken(kind, _) => *kind,
        }
    }
}

/// Reads the fields of a message one after the other.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// For errors.
    message: &'a str,
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message }
    }

    /// The next field's number and value; `None` at the end. A field that is not `known` must at least be readable.
    pub(super) fn next(
        &mut self,
        known: impl Fn(u32) -> bool,
    ) -> Result<Option<(u32, Wire<'a>)>, ProtoError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (number, kind) = self.tag()?;
        if kind == 4 {
            return Err(self.wrong("wiretype end group for non-group"));
        }
        let Some(number) = u32::try_from(number).ok().filter(|number| *number > 0) else {
            return Err(self.wrong(&format!("illegal tag {number} (wire type {kind})")));
        };
        match self.value(kind) {
            Ok(wire) => Ok(Some((number, wire))),
            Err(flaw) if known(number) => Ok(Some((number, Wire::Broken(kind, flaw)))),
            Err(flaw) => Err(flaw.into()),
        }
    }

    /// The next value of a list that is packed into one field.
    pub(super) fn packed(&mut self, kind: u8) -> Result<Option<Wire<'a>>, ProtoError> {
        if self.rest.is_empty() { Ok(None) } else { Ok(Some(self.value(kind)?)) }
    }

    fn wrong(&self, why: &str) -> ProtoError {
        let message = self.message.rsplit('.').next().unwrap_or_default();
        ProtoError(format!("proto: {message}: {why}"))
    }

    fn tag(&mut self) -> Result<(i32, u8), Flaw> {
        let tag = self.varint()?;
        // Numbers are of 32 bits there, and what is above them is lost.
        Ok(((tag >> 3) as i32, (tag & 7) as u8))
    }

    fn value(&mut self, kind: u8) -> Result<Wire<'a>, Flaw> {
        Ok(match kind {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => Wire::Bytes(self.bytes()?),
            3 => {
                self.skip_group()?;
                Wire::Group
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            other => return Err(Flaw::Illegal(other)),
        })
    }

    /// Without recursion: groups in groups are only counted.
    fn skip_group(&mut self) -> Result<(), Flaw> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.tag()?.1 {
                3 => depth += 1,
                4 => depth -= 1,
                kind => drop(self.value(kind)?),
            }
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Flaw> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(Flaw::Ended)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Flaw::Overflow)
    }

    fn bytes(&mut self) -> Result<&'a [u8], Flaw> {
        let length = self.varint()?;
        if length > i64::MAX as u64 {
            return Err(Flaw::Negative);
        }
        let length = usize::try_from(length).map_err(|_| Flaw::Ended)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Flaw::Ended)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (bytes, rest) = self.rest.split_first_chunk::<N>().ok_or(Flaw::Ended)?;
        self.rest = rest;
        Ok(*bytes)
    }
}

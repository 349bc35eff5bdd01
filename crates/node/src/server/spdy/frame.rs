//! Frames, as they are read and written.

use super::headers::{Deflater, Headers, Inflater};
use bytes::Bytes;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const VERSION: u16 = 0x8003;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

const FIN: u8 = 1;

/// The largest frame that is read: clients send pieces of 32 KiB.
const LARGEST: usize = 1024 * 1024;

/// What a client sends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Open {
        id: u32,
        ended: bool,
        headers: Headers,
    },
    Data {
        id: u32,
        ended: bool,
        data: Bytes,
    },
    Reset {
        id: u32,
    },
    Ping {
        id: u32,
    },
    GoAway,
    /// Nothing that matters here: settings, windows, further headers.
    Other,
}

/// What a client is sent.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server) enum Sent {
    /// Its stream is taken.
    Reply {
        id: u32,
    },
    Data {
        id: u32,
        ended: bool,
        data: Bytes,
    },
    /// Its stream is refused.
    Refuse {
        id: u32,
    },
    /// Its ping came.
    Pong {
        id: u32,
    },
    /// Nothing comes any more.
    GoAway,
}

/// The next frame; none when the other side is done.
pub(super) async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    inflater: &mut Inflater,
) -> io::Result<Option<Received>> {
    let mut head = [0; 8];
    match reader.read_exact(&mut head).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    };
    let [a, b, c, d, flags, e, f, g] = head;
    let length = usize::from(e) << 16 | usize::from(f) << 8 | usize::from(g);
    if length > LARGEST {
        return Err(invalid("a frame is too large"));
    }
    let mut payload = vec![0; length];
    reader.read_exact(&mut payload).await?;
    let ended = flags & FIN != 0;
    if a & 0x80 == 0 {
        let id = u32::from_be_bytes([a, b, c, d]);
        return Ok(Some(Received::Data { id, ended, data: Bytes::from(payload) }));
    }
    if u16::from_be_bytes([a, b]) != VERSION {
        return Err(invalid("this is not SPDY/3"));
    }
    let id = payload.first_chunk::<4>().map(|id| u32::from_be_bytes(*id));
    let id = || id.ok_or_else(|| invalid("a frame is too short"));
    Ok(Some(match u16::from_be_bytes([c, d]) {
        SYN_STREAM => {
            let id = id()? & 0x7fff_ffff;
            // The stream that it belongs to and its priority are of no interest.
            let block = payload.get(10..).ok_or_else(|| invalid("a frame is too short"))?;
            let block = inflater.inflate(block)?;
            let headers =
                Headers::parse(&block).ok_or_else(|| invalid("the headers of a stream are broken"))?;
            Received::Open { id, ended, headers }
        }
        RST_STREAM => Received::Reset { id: id()? & 0x7fff_ffff },
        PING => Received::Ping { id: id()? },
        GOAWAY => Received::GoAway,
        _ => Received::Other,
    }))
}

/// A frame as bytes; those of data are left to be sent after it.
pub(super) fn head(frame: &Sent, deflater: &mut Deflater) -> io::Result<Vec<u8>> {
    Ok(match frame {
        Sent::Reply { id } => {
            let mut payload = id.to_be_bytes().to_vec();
            payload.append(&mut deflater.deflate(&Headers::default().encode())?);
            control(SYN_REPLY, &payload)
        }
        Sent::Data { id, ended, data } => {
            let length = u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes();
            let flags = if *ended { FIN } else { 0 };
            [&id.to_be_bytes()[..], &[flags], &length[1..]].concat()
        }
        // 3: refused before anything was done about it.
        Sent::Refuse { id } => control(RST_STREAM, &[id.to_be_bytes(), 3u32.to_be_bytes()].concat()),
        Sent::Pong { id } => control(PING, &id.to_be_bytes()),
        Sent::GoAway => control(GOAWAY, &[0; 8]),
    })
}

fn control(kind: u16, payload: &[u8]) -> Vec<u8> {
    // Small: the only payload of any size is an empty block of headers.
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    [&VERSION.to_be_bytes()[..], &kind.to_be_bytes(), &[0], &length[1..], payload].concat()
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(bytes: &[u8]) -> io::Result<Option<Received>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(read(&mut &bytes[..], &mut Inflater::new()))
    }

    #[test]
    fn frames_are_read_as_they_are_written() {
        let mut deflater = Deflater::new().unwrap();
        let data = Sent::Data { id: 5, ended: true, data: Bytes::from_static(b"hello") };
        let mut bytes = head(&data, &mut deflater).unwrap();
        bytes.extend_from_slice(b"hello");
        let expected = Received::Data { id: 5, ended: true, data: Bytes::from_static(b"hello") };
        assert_eq!(first(&bytes).unwrap(), Some(expected));
        let ping = head(&Sent::Pong { id: 7 }, &mut deflater).unwrap();
        assert_eq!(first(&ping).unwrap(), Some(Received::Ping { id: 7 }));
        assert_eq!(first(&[]).unwrap(), None);
    }

    #[test]
    fn what_is_too_large_or_of_another_version_is_refused() {
        assert!(first(&[0, 0, 0, 1, 0, 0xff, 0xff, 0xff]).is_err());
        assert!(first(&[0x80, 2, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1]).is_err());
        assert!(first(&[0x80, 3, 0, 1, 0, 0, 0, 2, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = first(&bytes);
            let _ = first(&[&[0x80, 3, 0, 1, 0, 0, 0, 60][..], &bytes].concat());
        }
    }
}

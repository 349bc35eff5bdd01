//! SPDY/3.1, as far as Kubernetes' clients speak it: streams that the client opens, data, resets and pings. There is no flow
//! control by windows, since theirs has none: a stream that is not read holds up its connection.

mod frame;
mod headers;
mod session;

pub(super) use session::{Session, Stream, open};

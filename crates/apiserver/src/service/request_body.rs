//! The body of a request, read whole and within bounds.

use crate::status::Status;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::pin;

/// The largest body of a request.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

pub(super) async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = pin!(body);
    if body.size_hint().lower() > LARGEST_BODY as u64 {
        return Err(Status::too_large(LARGEST_BODY));
    }
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|error| Status::bad_request(format!("the body ended early: {}", error.into())))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.as_ref().map_or(0, Bytes::len) + all.len() + data.len() > LARGEST_BODY {
            return Err(Status::too_large(LARGEST_BODY));
        }
        match (&first, all.is_empty()) {
            // Bodies of one piece are not copied.
            (None, true) => first = Some(data),
            (Some(head), true) => {
                all.extend_from_slice(head);
                all.extend_from_slice(&data);
                first = None;
            }
            _ => all.extend_from_slice(&data),
        }
    }
    Ok(first.unwrap_or_else(|| all.freeze()))
}

//! HTTP as it is sent: bodies, responses with their headers, ETags, and bodies as WebSocket messages.

mod answer;
mod body;
pub(crate) mod etag;
pub(crate) mod response;
pub(crate) mod websocket;

pub(crate) use answer::Answer;
pub use body::ApiBody;

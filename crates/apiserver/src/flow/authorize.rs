//! Whether the one who asks may. Everyone may, as long as there are no roles.

use super::authenticate::Identity;
use crate::path::Target;
use crate::status::Status;

/// Refuses what `identity` may not do.
pub(crate) fn check(_identity: &Identity, _verb: &str, _target: &Target) -> Result<(), Status> {
    Ok(())
}

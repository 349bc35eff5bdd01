//! The labels by which the objects that a controller made are found again.

/// On every child: the controller that made it. Together with the owner's UID it says whose it is.
pub(crate) const CONTROLLER_LABEL: &str = "windlass.dev/controller";
/// On children that cannot have an owner reference, being in another namespace or in none: the owner's UID.
pub(crate) const OWNER_UID_LABEL: &str = "windlass.dev/owner-uid";

//! Capabilities: how they outlive the run of another program, and which a container keeps.

use super::spec::Privileges;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
};
use std::io::Result;

/// What container runtimes leave to a container's root, but for `MKNOD`: nothing here stands between a device file and the
/// device.
fn usual() -> CapabilitySet {
    CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FSETID
        | CapabilitySet::FOWNER
        | CapabilitySet::NET_RAW
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::SETFCAP
        | CapabilitySet::SETPCAP
        | CapabilitySet::NET_BIND_SERVICE
        | CapabilitySet::SYS_CHROOT
        | CapabilitySet::KILL
        | CapabilitySet::AUDIT_WRITE
}

/// Lets all that this process may do be done by the programs it runs, though its user is not root in its namespace.
pub fn keep_over_exec() -> Result<()> {
    let sets = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: sets.permitted, ..sets })?;
    for one in sets.permitted.iter() {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// Takes from this process, for good, what the container's programs may not have.
pub fn bound(privileges: &Privileges) -> Result<()> {
    let kept = kept(privileges);
    for bit in 0..64 {
        let one = CapabilitySet::from_bits_retain(1 << bit);
        // The first number that the kernel does not know ends the list.
        match capability_is_in_bounding_set(one) {
            Ok(true) if !kept.contains(one) => remove_capability_from_bounding_set(one)?,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    Ok(())
}

/// Lets nothing through that was meant for this process alone.
pub fn forget_inheritable() -> Result<()> {
    rustix::thread::clear_ambient_capability_set()?;
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { inheritable: CapabilitySet::empty(), ..sets })?)
}

/// What is kept: the usual without what is dropped, with what is added, as a container runtime reads the two lists.
fn kept(privileges: &Privileges) -> CapabilitySet {
    let mut kept = usual();
    if has_all(&privileges.add) {
        kept = CapabilitySet::from_bits_retain(!0);
    }
    if has_all(&privileges.drop) {
        kept = CapabilitySet::empty();
    }
    for name in &privileges.add {
        kept |= named(name);
    }
    for name in &privileges.drop {
        kept -= named(name);
    }
    kept
}

fn has_all(names: &[String]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case("ALL"))
}

fn named(name: &str) -> CapabilitySet {
    let upper = name.to_ascii_uppercase();
    let name = upper.strip_prefix("CAP_").unwrap_or(&upper);
    CapabilitySet::from_name(name).unwrap_or(CapabilitySet::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn privileges(add: &[&str], drop: &[&str]) -> Privileges {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Privileges { no_new: false, add: own(add), drop: own(drop) }
    }

    #[test]
    fn all_is_dropped_before_some_is_added() {
        assert_eq!(kept(&privileges(&["NET_BIND_SERVICE"], &["ALL"])), CapabilitySet::NET_BIND_SERVICE);
        assert_eq!(kept(&privileges(&["CAP_sys_ptrace"], &[])), usual() | CapabilitySet::SYS_PTRACE);
        assert_eq!(kept(&privileges(&["NO_SUCH"], &["KILL"])), usual() - CapabilitySet::KILL);
        assert!(kept(&privileges(&["ALL"], &[])).contains(CapabilitySet::SYS_ADMIN));
        assert!(!usual().contains(CapabilitySet::MKNOD));
    }
}

//! What it means: pure.

use super::checks::{Check, Checks};
use super::machine::Machine;
use super::{Finding, Level};

/// Fewer files than this, and a busy Service runs out of them.
const FILES: u64 = 4096;
/// What to do where this program itself runs in a container.
const IN_A_CONTAINER: &str = "in a container, run it with --privileged or with these namespaces allowed";
/// What root without the rights of root needs.
const RIGHTS: &str = "this is root without CAP_SYS_ADMIN, as in most containers: run the container with --privileged (or --cap-add SYS_ADMIN \
     and a seccomp profile that allows unshare and mount)";

/// Says what was found.
pub(super) fn diagnose(machine: &Machine, checks: &Checks) -> Vec<Finding> {
    let mut findings = vec![namespaces(machine, &checks.network)];
    let each = [
        (
            "bridge and links",
            &checks.links,
            Level::Problem,
            "load the modules `bridge` and `veth`, or use a kernel that has them",
        ),
        ("mounts of their own", &checks.mounts, Level::Problem, IN_A_CONTAINER),
        ("tmpfs", &checks.tmpfs, Level::Problem, IN_A_CONTAINER),
        ("read-only binds", &checks.bind, Level::Problem, IN_A_CONTAINER),
        (
            "processes of their own",
            &checks.processes,
            Level::Problem,
            "in a container, let it see an unmasked /proc (--security-opt systempaths=unconfined)",
        ),
        (
            "overlay",
            &checks.overlay,
            Level::Warning,
            "images that are root file systems are copied for each container until the kernel is 5.11 or later \
             and has the module `overlay`",
        ),
    ];
    findings.extend(
        each.into_iter().filter_map(|(about, check, level, remedy)| tried(about, check, level, remedy)),
    );
    findings.extend(files(machine));
    findings.extend(programs(machine));
    findings
}

fn namespaces(machine: &Machine, network: &Check<bool>) -> Finding {
    let about = "namespaces".to_owned();
    match network {
        Check::Passed(false) => {
            finding(about, Level::Ok, "allowed; with CAP_SYS_ADMIN, no user namespace is needed".into(), None)
        }
        Check::Passed(true) => {
            let found = "allowed to this user; containers of any user run as this one".into();
            finding(about, Level::Ok, found, None)
        }
        Check::Failed(why) => finding(about, Level::Problem, why.clone(), Some(how_to_allow(machine))),
        Check::Skipped => finding(about, Level::Problem, "not tried".into(), None),
    }
}

/// Which of the settings that forbid user namespaces it is.
fn how_to_allow(machine: &Machine) -> String {
    let setting = if machine.user_namespaces == Some(0) {
        "sysctl -w user.max_user_namespaces=15000"
    } else if machine.unprivileged_clone == Some(0) && !machine.administers {
        "sysctl -w kernel.unprivileged_userns_clone=1"
    } else if machine.apparmor_restricts.is_some_and(|value| value > 0) && !machine.administers {
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 (or give windlass an AppArmor profile with `userns,`)"
    } else if machine.root && !machine.administers {
        return format!("{RIGHTS}, or allow user namespaces to it");
    } else {
        return format!(
            "{IN_A_CONTAINER}; otherwise run it as root, or ask who set up the machine why it is refused"
        );
    };
    let otherwise = if machine.root && !machine.administers { RIGHTS } else { "run windlass as root" };
    format!("as root: {setting}; to keep it, put it into /etc/sysctl.d; or {otherwise}")
}

fn tried(about: &str, check: &Check<()>, level: Level, remedy: &str) -> Option<Finding> {
    match check {
        Check::Passed(()) => Some(finding(about.into(), Level::Ok, "allowed".into(), None)),
        Check::Failed(why) => {
            Some(finding(about.into(), level, format!("refused: {why}"), Some(remedy.into())))
        }
        // What it needs failed, and is told.
        Check::Skipped => None,
    }
}

fn files(machine: &Machine) -> Option<Finding> {
    let limit = machine.files?;
    let (level, remedy) = if limit < FILES {
        (
            Level::Warning,
            Some(format!("raise it to {FILES} or more: ulimit -Hn, or LimitNOFILE= of a service")),
        )
    } else {
        (Level::Ok, None)
    };
    Some(finding("open files".into(), level, format!("at most {limit} for each process"), remedy))
}

fn programs(machine: &Machine) -> impl Iterator<Item = Finding> {
    machine.programs.iter().map(|(wanted, found)| {
        let about = format!("image {}", wanted.image);
        match found {
            Some(path) => finding(about, Level::Ok, path.display().to_string(), None),
            None => {
                let remedy = format!(
                    "install it (Debian: apt-get install {}), or name another in a recipe",
                    wanted.package
                );
                finding(
                    about,
                    Level::Warning,
                    "its program is not installed: pods with it will wait".into(),
                    Some(remedy),
                )
            }
        }
    })
}

fn finding(about: String, level: Level, found: String, remedy: Option<String>) -> Finding {
    Finding { about, level, found, remedy }
}

#[cfg(test)]
mod tests {
    use super::super::can;
    use super::super::machine::WANTED;
    use super::*;

    fn all_went() -> Checks {
        let went = Check::Passed(());
        Checks {
            network: Check::Passed(true),
            links: went.clone(),
            mounts: went.clone(),
            tmpfs: went.clone(),
            bind: went.clone(),
            overlay: went.clone(),
            processes: went,
        }
    }

    #[test]
    fn a_machine_that_can_is_told_so() {
        let findings = diagnose(&Machine::default(), &all_went());
        assert!(can(&findings));
        assert!(findings.iter().all(|finding| finding.level == Level::Ok && finding.remedy.is_none()));
    }

    #[test]
    fn the_setting_that_forbids_is_named() {
        let refused = Checks { network: Check::Failed("EPERM".into()), ..Checks::default() };
        let named = |machine: Machine| {
            let findings = diagnose(&machine, &refused);
            assert!(!can(&findings));
            assert_eq!(findings.len(), 1, "what needs it is not told again");
            findings[0].remedy.clone().unwrap()
        };
        let usual = Machine { user_namespaces: Some(9), ..Machine::default() };
        assert!(named(Machine { user_namespaces: Some(0), ..usual.clone() }).contains("max_user_namespaces"));
        assert!(
            named(Machine { unprivileged_clone: Some(0), ..usual.clone() })
                .contains("unprivileged_userns_clone")
        );
        assert!(named(Machine { apparmor_restricts: Some(1), ..usual.clone() }).contains("apparmor"));
        assert!(named(usual.clone()).contains("in a container"));
        let bounded = Machine { root: true, administers: false, ..usual.clone() };
        assert!(named(bounded.clone()).contains("CAP_SYS_ADMIN"), "the user is not what counts");
        let both = named(Machine { user_namespaces: Some(0), ..bounded });
        assert!(both.contains("max_user_namespaces") && both.contains("CAP_SYS_ADMIN"), "{both}");
        let rightful = Machine { root: true, administers: true, unprivileged_clone: Some(0), ..usual };
        assert!(!named(rightful).contains("unprivileged_userns_clone"), "it does not concern root");
    }

    #[test]
    fn what_is_merely_worse_is_a_warning() {
        let checks = Checks { overlay: Check::Failed("EINVAL".into()), ..all_went() };
        let machine = Machine { files: Some(1024), programs: vec![(&WANTED[0], None)], ..Machine::default() };
        let findings = diagnose(&machine, &checks);
        assert!(can(&findings));
        let warned: Vec<_> = findings.iter().filter(|finding| finding.level == Level::Warning).collect();
        assert_eq!(warned.len(), 3);
        assert!(warned.iter().all(|finding| finding.remedy.is_some()));
    }
}

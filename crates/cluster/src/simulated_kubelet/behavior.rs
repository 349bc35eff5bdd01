//! How a simulated pod behaves: delays, exits and failures, from its annotations and the stages of its kubelet.

use super::stages::Stage;
use k8s_openapi::api::core::v1::{Container, Pod};
use std::time::Duration;
use windlass_component_helpers::restart_policy::is_sidecar;

/// The prefix of the annotations.
pub(super) const PREFIX: &str = "simulate.windlass.dev/";

/// How long a container of a Job's pod runs, and one with an exit code but no `exit-after`.
const DEFAULT_RUN: Duration = Duration::from_secs(1);

/// A delay; `None` is never.
pub(super) type After = Option<Duration>;

/// How a container behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerBehavior {
    /// From its start until it is ready.
    pub(super) ready_after: After,
    /// From its start until it exits.
    pub(super) exit_after: After,
    pub(super) exit_code: i32,
    /// Whether its image cannot be pulled.
    pub(super) fail_image: bool,
}

/// How a pod behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PodBehavior {
    /// From when the kubelet sees the pod until its containers start.
    pub(super) start_after: After,
    /// From the termination signal until a container exits.
    pub(super) stop_after: After,
    /// By init container.
    pub(super) init: Vec<ContainerBehavior>,
    /// By main container.
    pub(super) main: Vec<ContainerBehavior>,
}

/// An annotation or a stage with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InvalidValue(pub(super) String);

impl PodBehavior {
    /// The behavior of a pod. Annotations take precedence over stages, of which the first that matches applies; and values for one
    /// container over those for all. Invalid values are ignored.
    pub(super) fn of(pod: &Pod, stages: &[Stage]) -> (Self, Vec<InvalidValue>) {
        let spec = pod.spec.as_ref();
        let mut source = Source::of(pod, stages);
        let by_job = pod.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "Job");
        let start_after = source.time("start-after", None).unwrap_or(Some(Duration::ZERO));
        let stop_after = source.time("stop-after", None).unwrap_or(Some(Duration::ZERO));
        let init = spec.and_then(|spec| spec.init_containers.as_deref()).unwrap_or_default();
        let init = init.iter().map(|container| source.init_container(container)).collect();
        let main = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let main = main.iter().map(|container| source.container(container, by_job)).collect();
        (Self { start_after, stop_after, init, main }, source.invalid)
    }
}

/// Where a behavior is read from.
struct Source<'a> {
    pod: &'a Pod,
    stage: Option<&'a Stage>,
    invalid: Vec<InvalidValue>,
}

impl<'a> Source<'a> {
    fn of(pod: &'a Pod, stages: &'a [Stage]) -> Self {
        Self { pod, stage: stages.iter().find(|stage| stage.matches(pod)), invalid: Vec::new() }
    }

    /// Init containers exit at once with code 0, and sidecars never do.
    fn init_container(&mut self, container: &Container) -> ContainerBehavior {
        let sidecar = is_sidecar(container);
        let only = Some((container.name.as_str(), true));
        let exit_code = self.number("exit-code", only).unwrap_or(0);
        let usual = if sidecar { None } else { Some(Duration::ZERO) };
        ContainerBehavior {
            ready_after: self.time("ready-after", only).unwrap_or(Some(Duration::ZERO)),
            exit_after: self.time("exit-after", only).unwrap_or(usual),
            exit_code,
            fail_image: self.flag("fail-image", only),
        }
    }

    fn container(&mut self, container: &Container, by_job: bool) -> ContainerBehavior {
        let name = Some((container.name.as_str(), false));
        let exit_code = self.number("exit-code", name);
        let usual = (by_job || exit_code.is_some()).then_some(DEFAULT_RUN);
        ContainerBehavior {
            ready_after: self.time("ready-after", name).unwrap_or(Some(Duration::ZERO)),
            exit_after: self.time("exit-after", name).unwrap_or(usual),
            exit_code: exit_code.unwrap_or(0),
            fail_image: self.flag("fail-image", name),
        }
    }

    fn time(&mut self, what: &str, container: Option<(&str, bool)>) -> Option<After> {
        self.read(what, container, |text| match text {
            "never" => Some(None),
            text => duration(text).map(Some),
        })
    }

    fn number(&mut self, what: &str, container: Option<(&str, bool)>) -> Option<i32> {
        self.read(what, container, |text| text.parse().ok())
    }

    fn flag(&mut self, what: &str, container: Option<(&str, bool)>) -> bool {
        self.read(what, container, |text| text.parse().ok()).unwrap_or(false)
    }

    /// The value for a container, or else, if that is allowed, the one for all containers.
    fn read<T>(
        &mut self,
        what: &str,
        container: Option<(&str, bool)>,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let names = match container {
            None => vec![what.to_owned()],
            Some((container, true)) => vec![format!("{what}.{container}")],
            Some((container, false)) => vec![format!("{what}.{container}"), what.to_owned()],
        };
        let annotations = self.pod.metadata.annotations.as_ref();
        let written = names
            .iter()
            .find_map(|name| annotations?.get(&format!("{PREFIX}{name}")).map(|text| (name, text)))
            .or_else(|| names.iter().find_map(|name| Some((name, self.stage?.values.get(name)?))));
        let (name, text) = written?;
        let value = read(text);
        if value.is_none() {
            self.invalid.push(InvalidValue(format!("{PREFIX}{name}: invalid value {text:?}")));
        }
        value
    }
}

/// `2s`, `500ms`, `1m30s`, `1h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        let after = &rest[digits..];
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let unit = match &after[..end] {
            "ms" => Duration::from_millis(1),
            "s" => Duration::from_secs(1),
            "m" => Duration::from_secs(60),
            "h" => Duration::from_secs(3600),
            _ => return None,
        };
        total = total.checked_add(unit.checked_mul(u32::try_from(count).ok()?)?)?;
        rest = &after[end..];
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::PodSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

    fn pod(annotations: &[(&str, &str)]) -> Pod {
        let container = |name: &str| Container { name: name.into(), ..Container::default() };
        let spec = PodSpec { containers: vec![container("web"), container("log")], ..PodSpec::default() };
        let annotations =
            annotations.iter().map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()));
        let mut pod = Pod { spec: Some(spec), ..Pod::default() };
        pod.metadata.annotations = Some(annotations.collect());
        pod
    }

    #[test]
    fn durations_are_written_as_in_go() {
        assert_eq!(duration("500ms"), Some(Duration::from_millis(500)));
        assert_eq!(duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Some(Duration::ZERO));
        for bad in ["", "5", "s", "-1s", "1d", "1.5s", "99999999999999999999s", "1s "] {
            assert_eq!(
                duration(bad),
                if bad == "1s " { Some(Duration::from_secs(1)) } else { None },
                "{bad:?}"
            );
        }
    }

    #[test]
    fn a_value_for_one_container_takes_precedence() {
        let (behavior, invalid) = PodBehavior::of(
            &pod(&[
                ("exit-code", "3"),
                ("exit-code.log", "4"),
                ("ready-after", "never"),
                ("start-after", "soon"),
            ]),
            &[],
        );
        assert_eq!((behavior.main[0].exit_code, behavior.main[1].exit_code), (3, 4));
        assert_eq!(behavior.main[0].exit_after, Some(DEFAULT_RUN), "an exit code alone makes it exit");
        assert_eq!(behavior.main[0].ready_after, None);
        assert_eq!(behavior.start_after, Some(Duration::ZERO), "an invalid value is ignored");
        assert_eq!(invalid.len(), 1);
    }

    #[test]
    fn pods_of_jobs_exit_and_others_do_not() {
        let mut job = pod(&[]);
        assert_eq!(PodBehavior::of(&job, &[]).0.main[0].exit_after, None);
        let owner = OwnerReference { kind: "Job".into(), ..OwnerReference::default() };
        job.metadata.owner_references = Some(vec![owner]);
        let (behavior, _) = PodBehavior::of(&job, &[]);
        assert_eq!((behavior.main[0].exit_after, behavior.main[0].exit_code), (Some(DEFAULT_RUN), 0));
    }
}

//! What is said in several places, and what is said wrongly.

use super::options::{OPTIONS, Takes};
use super::{Asked, Command, LogFormat, Misread, Settings, Sources, help, read};
use std::time::Duration;

fn sources(arguments: &[&str], variables: &[(&str, &str)]) -> Sources {
    Sources {
        arguments: arguments.iter().map(ToString::to_string).collect(),
        variables: variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
    }
}

fn with_file(arguments: &[&str], variables: &[(&str, &str)], file: &str) -> Result<Asked, Misread> {
    read(&sources(arguments, variables), |_| Ok(file.to_owned()))
}

fn settings(arguments: &[&str]) -> Result<Settings, String> {
    with_file(arguments, &[], "").map(|asked| asked.settings).map_err(|misread| misread.to_string())
}

#[test]
fn a_flag_counts_before_a_variable_and_that_before_the_file() {
    let file = "log-level: trace\nlog-format: json\ncluster-id: file\n";
    let variables =
        [("WINDLASS_LOG_LEVEL", "debug"), ("WINDLASS_LOG_FORMAT", "human"), ("WINDLASS_CONFIG", "f")];
    let asked = with_file(&["--log-level", "warn"], &variables, file).unwrap().settings;
    assert_eq!(asked.log_level, "warn");
    assert_eq!(asked.log_format, LogFormat::Human);
    assert_eq!(asked.cluster_id, "file");
    assert_eq!(asked.graceful_shutdown_timeout, Duration::from_secs(30));
}

#[test]
fn every_option_is_known_in_every_place_and_in_the_help() {
    let text = help("shop");
    for known in OPTIONS {
        let value = match (known.name, known.default) {
            ("concurrency", _) => "vault=3",
            (_, "") => "x",
            (_, default) => default,
        };
        for (arguments, variables, file) in [
            (vec![format!("--{}={value}", known.name)], vec![], String::new()),
            (vec![], vec![(known.variable(), value.to_owned())], String::new()),
            (vec!["--config=f".to_owned()], vec![], format!("{}: {value}", known.name)),
        ] {
            if known.name == "config" && !file.is_empty() {
                continue;
            }
            let sources = Sources { arguments, variables: variables.into_iter().collect() };
            read(&sources, |_| Ok(file)).unwrap_or_else(|error| panic!("{}: {error}", known.name));
        }
        assert!(text.contains(&format!("--{}", known.name)) && text.contains(&known.variable()));
        assert_eq!(known.takes == Takes::Switch, known.default == "false", "{}", known.name);
    }
}

#[test]
fn what_is_said_several_times_adds_up_where_it_may() {
    let asked = settings(&["--namespace", "a", "-n=b", "--concurrency=x=2", "--concurrency=y=3,z=4"]);
    assert_eq!(asked.unwrap_err(), "-n=b: no such option; --help lists them");
    let asked =
        settings(&["--namespace", "a", "-n", "b,c", "--concurrency=x=2", "--concurrency=y=3,z=4"]).unwrap();
    assert_eq!(asked.namespaces, ["a", "b", "c"]);
    assert_eq!(asked.concurrency.into_values().collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(settings(&["--log-level=debug", "--log-level=warn"]).unwrap().log_level, "warn");
    let file = "namespace: [a, b]\nconcurrency:\n  vault: 3\nleader-elect: true\n";
    let asked = with_file(&["--config=f"], &[], file).unwrap().settings;
    assert_eq!((asked.namespaces.len(), asked.concurrency["vault"], asked.leader_elect), (2, 3, true));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let wrong = |arguments: &[&str]| settings(arguments).unwrap_err();
    assert_eq!(wrong(&["--nonsense"]), "--nonsense: no such option; --help lists them");
    assert_eq!(wrong(&["--namespace"]), "--namespace: NAME is missing");
    assert_eq!(wrong(&["--log-format", "xml"]), "--log-format: \"xml\" is neither json nor human");
    assert!(wrong(&["--log-level", "loud=very"]).starts_with("--log-level: "));
    assert!(wrong(&["--graceful-shutdown-timeout", "soon"]).contains("30s, 2m or 1h30m"));
    assert!(wrong(&["--metrics-bind-address", "here"]).contains("is no address"));
    assert_eq!(wrong(&["--concurrency", "x=0"]), "--concurrency: \"x=0\" is no CONTROLLER=N");
    assert!(wrong(&["--leader-election-renew-deadline", "20s"]).contains("must be longer"));
    assert!(wrong(&["dance"]).contains("no such command"));
    assert!(wrong(&["why", "Vault"]).contains("a KIND and a NAME"));
    let error = with_file(&[], &[("WINDLASS_LEADER_ELECT", "maybe")], "").unwrap_err();
    assert_eq!(error.place, "WINDLASS_LEADER_ELECT");
}

#[test]
fn what_is_wrong_in_the_file_is_named_with_its_line() {
    let wrong = |file: &str| with_file(&["--config", "shop.yaml"], &[], file).unwrap_err().to_string();
    let unknown = wrong("log-level: info\n\nlog-levle: info\n");
    assert!(
        unknown.starts_with("shop.yaml, line 3: no option is called \"log-levle\"; there are "),
        "{unknown}"
    );
    assert!(wrong("a\n").starts_with("shop.yaml: "));
    assert!(wrong("log-level: [\n").starts_with("shop.yaml: "));
    assert_eq!(wrong("\nlog-format: xml\n"), "shop.yaml, line 2: \"xml\" is neither json nor human");
    assert_eq!(wrong("namespace: [[a]]\n"), "shop.yaml, line 1: namespace takes no such value");
    assert!(wrong("log-level: info\nlog-level: warn\n").starts_with("shop.yaml: "), "said twice");
    let missing = read(&sources(&["--config", "none.yaml"], &[]), |path| std::fs::read_to_string(path));
    assert!(missing.unwrap_err().to_string().starts_with("none.yaml: "));
}

#[test]
fn a_binary_is_asked_for_one_thing() {
    let command = |arguments: &[&str]| with_file(arguments, &[], "").unwrap().command;
    assert_eq!(command(&[]), Command::Run);
    assert_eq!(command(&["--leader-elect"]), Command::Run);
    assert_eq!(command(&["why", "-n", "shop", "Vault", "v"]), Command::Why(("Vault".into(), "v".into())));
    assert_eq!(command(&["plan"]), Command::Plan(None));
    assert_eq!(command(&["plan", "Vault", "v"]), Command::Plan(Some(("Vault".into(), "v".into()))));
    assert_eq!(command(&["describe", "--help"]), Command::Help);
}

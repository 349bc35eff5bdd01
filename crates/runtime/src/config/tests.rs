//! What is given in several places, and what is given wrongly.

use super::layers::{flag, variable};
use super::options::Options;
use super::{Args, Command, CommandLine, InvalidOption, LogFormat, ObjectName, Settings, parse};
use crate::webhook::WebhookServer;
use clap::Parser;
use std::time::Duration;

fn args(words: &[&str]) -> Result<Args, InvalidOption> {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    match parse("shop", &words)? {
        CommandLine::Args(args) => Ok(*args),
        CommandLine::Help(text) => panic!("{text}"),
    }
}

fn help(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(ToString::to_string).collect();
    match parse("shop", &words) {
        Ok(CommandLine::Help(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn with_file(words: &[&str], variables: &[(&str, &str)], file: &str) -> Result<Settings, InvalidOption> {
    let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    args(words)?.settings(&variables, |_| Ok(file.to_owned()))
}

fn settings(words: &[&str]) -> Result<Settings, String> {
    with_file(words, &[], "").map_err(|invalid| invalid.to_string())
}

#[test]
fn a_flag_counts_before_a_variable_and_that_before_the_file() {
    let file = "log-level: trace\nlog-format: json\ncluster-id: file\n";
    let variables = [
        ("WINDLASS_LOG_LEVEL", "debug"),
        ("WINDLASS_LOG_FORMAT", "human"),
        ("WINDLASS_CONFIG", "f"),
        ("WINDLASS_CLUSTER_ID", ""),
    ];
    let settings = with_file(&["--log-level", "warn"], &variables, file).unwrap();
    assert_eq!(settings.log_level, "warn");
    assert_eq!(settings.log_format, LogFormat::Human);
    assert_eq!(settings.cluster_id, "file", "an empty variable is none");
    assert_eq!(settings.graceful_shutdown_timeout, Duration::from_secs(30));
}

#[test]
fn every_option_is_known_in_every_place_and_in_the_help() {
    let text = help(&["--help"]);
    assert!(Options::names().count() > 15);
    for id in Options::names() {
        let name = flag(&id);
        let value = match name.as_str() {
            "concurrency" => "vault=3",
            "leader-elect" | "rejoin-election" => "true",
            "log-format" | "output" => "json",
            "log-level" => "info",
            name if name.ends_with("address") => "0",
            "leader-election-lease-duration" => "15s",
            "leader-election-renew-deadline" => "10s",
            "leader-election-retry-period" => "2s",
            name if name.ends_with("timeout") => "1s",
            "webhook-url" => "https://shop.example.com",
            _ => "x",
        };
        let given = [
            (vec![format!("--{name}={value}")], vec![], String::new()),
            (vec![], vec![(variable(&id), value.to_owned())], String::new()),
            (vec!["--config=f".to_owned()], vec![], format!("{name}: {value}")),
        ];
        let places = if name == "config" { 2 } else { 3 };
        for (words, variables, file) in given.into_iter().take(places) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let variables: Vec<(&str, &str)> =
                variables.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let settings =
                with_file(&words, &variables, &file).unwrap_or_else(|error| panic!("{name}: {error}"));
            let as_by_default = ["config", "log-level", "leader-election-lease-duration"];
            let renewed = ["leader-election-renew-deadline", "leader-election-retry-period"];
            let differs = !as_by_default.contains(&name.as_str()) && !renewed.contains(&name.as_str());
            assert_eq!(settings != Settings::default(), differs, "{name} counts");
        }
        assert!(text.contains(&format!("--{name}")) && text.contains(&variable(&id)), "{name}: {text}");
    }
}

#[test]
fn what_is_given_several_times_adds_up_where_it_may() {
    let settings = |words: &[&str]| settings(words).unwrap();
    let given = settings(&["--namespace", "a", "-n", "b, c,", "--concurrency=x=2", "--concurrency=y=3,z=4"]);
    assert_eq!(given.namespaces, ["a", "b", "c"]);
    assert_eq!(given.concurrency.into_values().collect::<Vec<_>>(), [2, 3, 4]);
    assert_eq!(settings(&["--log-level=debug", "--log-level=warn"]).log_level, "warn");
    assert!(settings(&["--leader-elect"]).leader_elect);
    assert!(!settings(&["--leader-elect", "--leader-elect=false"]).leader_elect);
    let file = "namespace: [a, b]\nconcurrency:\n  vault: 3\nleader-elect: true\n";
    let given = with_file(&["--config=f"], &[], file).unwrap();
    assert_eq!((given.namespaces.len(), given.concurrency["vault"], given.leader_elect), (2, 3, true));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let wrong = |words: &[&str]| settings(words).unwrap_err();
    assert_eq!(
        wrong(&["--nonsense"]),
        "command line: unexpected argument '--nonsense' found; --help lists what there is"
    );
    assert!(wrong(&["--namespace"]).contains("a value is required for '--namespace <NAMESPACE>'"));
    assert_eq!(
        wrong(&["--log-format", "xml"]),
        "command line: invalid value 'xml' for '--log-format <FORMAT>': write json or human"
    );
    assert!(wrong(&["--log-level", "loud=very"]).contains("'--log-level <LEVEL>'"));
    assert!(wrong(&["--graceful-shutdown-timeout", "soon"]).contains("30s, 2m or 1h30m"));
    assert!(wrong(&["--metrics-bind-address", "here"]).contains("is not an address"));
    assert!(wrong(&["--concurrency", "x=0"]).contains("\"x=0\" is not CONTROLLER=N"));
    assert!(wrong(&["--leader-election-renew-deadline", "20s"]).contains("must be longer"));
    assert!(wrong(&["dance"]).contains("'dance'"));
    let nameless = wrong(&["why", "Vault"]);
    assert!(nameless.contains("required") && nameless.contains("<NAME>"), "{nameless}");
    let nameless = wrong(&["plan", "Vault"]);
    assert!(nameless.contains("required") && nameless.contains("<NAME>"), "{nameless}");
    let error = with_file(&[], &[("WINDLASS_LEADER_ELECT", "maybe")], "").unwrap_err();
    assert_eq!(error.place, "WINDLASS_LEADER_ELECT");
    assert!(error.message.contains("true, false"), "{error}");
}

#[test]
fn what_is_wrong_in_the_file_is_named_with_its_line() {
    let wrong = |file: &str| with_file(&["--config", "shop.yaml"], &[], file).unwrap_err().to_string();
    let unknown = wrong("log-level: info\n\nlog-levle: info\n");
    assert!(
        unknown.starts_with("shop.yaml, line 3: unknown option \"log-levle\"; the options are "),
        "{unknown}"
    );
    assert!(wrong("a\n").starts_with("shop.yaml: "));
    assert!(wrong("log-level: [\n").starts_with("shop.yaml: "));
    assert!(wrong("\nlog-format: xml\n").starts_with("shop.yaml, line 2: invalid value 'xml'"));
    assert_eq!(
        wrong("namespace: [[a]]\n"),
        "shop.yaml, line 1: namespace takes a value, or a list of values"
    );
    assert!(wrong("log-level: info\nlog-level: warn\n").starts_with("shop.yaml: "), "given twice");
    assert!(wrong("config: other.yaml\n").contains("unknown option \"config\""));
    let missing = args(&["--config", "none.yaml"])
        .unwrap()
        .settings(&Default::default(), |path| std::fs::read_to_string(path));
    assert!(missing.unwrap_err().to_string().starts_with("none.yaml: "));
}

#[test]
fn a_binary_is_asked_for_one_thing() {
    let command = |words: &[&str]| args(words).unwrap().command;
    let vault = || ObjectName { kind: "Vault".into(), name: "v".into() };
    assert_eq!(command(&[]), None);
    assert_eq!(command(&["run", "--leader-elect"]), Some(Command::Run));
    assert_eq!(command(&["why", "-n", "shop", "Vault", "v"]), Some(Command::Why(vault())));
    assert_eq!(
        command(&["capture", "Vault", "v"]),
        Some(Command::Capture { object: vault(), controller: None, with_secrets: false, file: None })
    );
    assert_eq!(command(&["plan"]), Some(Command::Plan { kind: None, name: None, controller: None }));
    let planned = Command::Plan { kind: Some("Vault".into()), name: Some("v".into()), controller: None };
    assert_eq!(command(&["plan", "Vault", "v"]), Some(planned));
    assert!(help(&["describe", "--help"]).contains("RBAC"));
    assert!(help(&["help"]).contains("capture"));
}

#[test]
fn options_stand_before_and_after_the_command() {
    for words in [["-n", "shop", "why", "Vault", "v"], ["why", "Vault", "v", "-n", "shop"]] {
        assert_eq!(settings(&words).unwrap().namespaces, ["shop"], "{words:?}");
    }
    assert!(settings(&["plan", "Vault", "v", "-o", "json"]).unwrap().json);
}

#[test]
fn an_authors_own_flags_join_in() {
    #[derive(Parser)]
    struct Own {
        #[arg(long)]
        registry: String,
        #[command(flatten)]
        windlass: Args,
    }
    let own = Own::try_parse_from(["shop", "why", "Vault", "v", "--log-level=debug"]);
    assert!(own.is_err(), "its own flag is required");
    let own = Own::try_parse_from(["shop", "--registry", "r", "--log-level=debug", "describe"]).unwrap();
    assert_eq!((own.registry.as_str(), own.windlass.command.as_ref()), ("r", Some(&Command::Describe)));
    let settings = own.windlass.settings(&Default::default(), |_| Ok(String::new())).unwrap();
    assert_eq!(settings.log_level, "debug");
}

#[test]
fn webhooks_are_reached_in_one_way() {
    assert_eq!(settings(&[]).unwrap().webhooks, None);
    let by_service = settings(&["--webhook-service=shop", "--webhook-bind-address=:7443"]).unwrap().webhooks;
    let expected = WebhookServer::behind_service("shop").bind("0.0.0.0:7443".parse().unwrap());
    assert_eq!(by_service, Some(expected));
    let off = settings(&["--webhook-service=shop", "--webhook-bind-address=0"]).unwrap().webhooks;
    assert_eq!(off, None);
    let both = settings(&["--webhook-service=shop", "--webhook-url=https://a"]).unwrap_err();
    assert!(both.contains("give one of webhook-service, webhook-url and webhook-cert-dir"), "{both}");
    let wrong = settings(&["--webhook-url=http://a"]).unwrap_err();
    assert!(wrong.contains("write https://HOST"), "{wrong}");
}

//! What a person wrote stays, whatever is made after it.

use super::folder::Folder;
use windlass_sdk::scaffold::outcome::Outcome;
use windlass_sdk::scaffold::{License, NewKind, Project, WebhookSort};

fn folder() -> anyhow::Result<(tempfile::TempDir, Folder)> {
    let below = tempfile::tempdir()?;
    let folder = Folder::init(below.path(), "shop-operator", License::Apache2, false)?;
    Ok((below, folder))
}

#[test]
fn a_new_project_has_what_people_look_for() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    folder.api("cache", "v1alpha1", "Memcached", &["Deployment", "Service"])?;
    let wanted = [
        ".dockerignore",
        ".github/workflows/ci.yaml",
        ".gitignore",
        "Cargo.toml",
        "Dockerfile",
        "LICENSE",
        "Makefile",
        "PROJECT",
        "README.md",
        "src/api/mod.rs",
        "src/api/v1alpha1/memcached.rs",
        "src/api/v1alpha1/mod.rs",
        "src/controller/memcached.rs",
        "src/controller/memcached_access.rs",
        "src/controller/mod.rs",
        "src/generated.rs",
        "src/lib.rs",
        "src/main.rs",
        "tests/memcached.rs",
    ];
    assert_eq!(folder.all()?, wanted);
    for path in wanted.iter().filter(|path| path.ends_with(".rs")) {
        assert!(folder.text(path)?.starts_with("// SPDX-License-Identifier: Apache-2.0\n\n//! "), "{path}");
    }
    Ok(())
}

#[test]
fn what_a_person_changed_survives_the_next_kind() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    folder.api("shop", "v1", "Basket", &["Deployment"])?;
    let edit = |path: &str, change: &dyn Fn(&str) -> String| -> anyhow::Result<String> {
        let text = change(&folder.text(path)?);
        std::fs::write(folder.path.join(path), &text)?;
        Ok(text)
    };
    let more = |text: &str| format!("{text}\n// A remark of mine.\nfn mine() {{}}\n");
    let mine = [
        "src/api/v1/basket.rs",
        "src/controller/basket.rs",
        "tests/basket.rs",
        "src/lib.rs",
        "src/main.rs",
        "Cargo.toml",
        "Makefile",
    ];
    let kept: Vec<String> = mine.iter().map(|path| edit(path, &more)).collect::<anyhow::Result<_>>()?;
    let modules = edit("src/controller/mod.rs", &|text| {
        text.replace(
            "pub mod basket;",
            "/* why */ pub mod basket; // it carries\n\n/// Prices.\npub mod prices {\n    // in cents\n}",
        )
    })?;
    folder.api("shop", "v1", "Order", &["ConfigMap"])?;
    folder.api("shop", "v2", "Basket", &[])?;
    folder.controller("Basket", "expiry")?;
    for (path, kept) in mine.iter().zip(kept) {
        assert_eq!(folder.text(path)?, kept, "{path}");
    }
    let after = folder.text("src/controller/mod.rs")?;
    assert_eq!(after.replace("pub mod order;\n", "").replace("pub mod basket_expiry;\n", ""), modules);
    assert!(after.contains("// it carries\npub mod basket_expiry;\npub mod order;\n"), "{after}");
    assert!(
        folder.text("src/api/v2/basket.rs")?.contains("// A remark of mine."),
        "a version begins as a copy"
    );
    Ok(())
}

#[test]
fn a_command_can_be_given_again() -> anyhow::Result<()> {
    let (below, folder) = folder()?;
    let made = folder.api("shop", "v1", "Basket", &["Deployment"])?;
    assert!(made.iter().any(|one| one.is_written()));
    let again = folder.api("shop", "v1", "Basket", &["Deployment"])?;
    assert!(again.iter().all(|one| one.outcome == Outcome::Unchanged), "{again:?}");
    std::fs::write(folder.path.join("src/controller/basket.rs"), "// all mine\n")?;
    std::fs::remove_file(folder.path.join("tests/basket.rs"))?;
    let again = folder.api("shop", "v1", "Basket", &[])?;
    let fates: Vec<_> = again
        .iter()
        .filter(|one| one.outcome != Outcome::Unchanged)
        .map(|one| (&one.file.path, &one.outcome))
        .collect();
    assert_eq!(fates.len(), 2, "{fates:?}");
    assert_eq!(folder.text("src/controller/basket.rs")?, "// all mine\n");
    assert!(folder.text("tests/basket.rs")?.contains("Basket"), "what is missing is made again");
    Folder::init(below.path(), "shop-operator", License::Apache2, false)?;
    assert!(folder.text("src/generated.rs")?.contains("basket"), "a project is not emptied by a second init");
    let other = Folder::init(below.path(), "shop-operator", License::Mit, false);
    assert!(format!("{:#}", other.err().expect("it differs")).contains("windlass edit"));
    Ok(())
}

#[test]
fn nothing_is_written_over_what_is_there() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    std::fs::create_dir_all(folder.path.join("src/controller"))?;
    std::fs::write(folder.path.join("src/controller/basket.rs"), "// mine\n")?;
    let before = folder.all()?;
    let refused = folder.api("shop", "v1", "Basket", &[]).unwrap_err().to_string();
    assert!(refused.contains("src/controller/basket.rs"), "{refused}");
    assert_eq!(folder.all()?, before);
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused_with_a_way_out() -> anyhow::Result<()> {
    let (below, folder) = folder()?;
    folder.api("shop", "v1", "Policy", &["Deployment", "Service"])?;
    let before = (folder.all()?, folder.text("PROJECT")?);
    let kind = |kind: &str, plural: &str, namespaced: Option<bool>| NewKind {
        group: "shop".into(),
        version: "v1".into(),
        kind: kind.into(),
        plural: Some(plural.into()),
        namespaced,
        owns: vec![],
    };
    for (refused, part) in [
        (folder.api("stock", "v1", "Item", &[]), "windlass edit --multigroup true"),
        (folder.api_of(kind("Rule", "policies", None)), "another with --plural"),
        (folder.api_of(kind("Policy", "rules", None)), "another plural"),
        (folder.api_of(kind("Policy", "policies", Some(false))), "scope"),
        (folder.api("shop", "v1", "Policy", &["Job"]), ".owns"),
        (folder.api("shop", "v1", "PolicyAccess", &[]), "policy_access"),
        (folder.api("shop", "v1", "Order", &["Spaceship"]), "NetworkPolicy"),
        (folder.api("shop", "v1", "Order", &["Order"]), "does not own itself"),
        (folder.api("shop", "v1", "Order", &["Node"]), ".owns::<k8s_openapi::api::core::v1::Node>()"),
        (folder.controller("Policy", "access"), "policy_access"),
        (folder.controller("Order", "backup"), "there are: Policy"),
        (Folder { path: below.path().into() }.api("shop", "v1", "Order", &[]), "windlass init"),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.contains(part), "{said}");
    }
    assert_eq!((folder.all()?, folder.text("PROJECT")?), before);
    assert_eq!(Project::read(&before.1)?.kinds.len(), 1);
    Ok(())
}

#[test]
fn any_kind_can_be_owned_and_a_kind_of_the_project_too() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    folder.api("shop", "v1", "Order", &["ConfigMap"])?;
    folder.api("shop", "v1", "Basket", &["Order", "NetworkPolicy", "Namespace"])?;
    let controller = folder.text("src/controller/basket.rs")?;
    for part in [
        "use crate::api::v1::order::Order;",
        "use k8s_openapi::api::networking::v1::NetworkPolicy;",
        ".owns::<Order>()",
        ".owns::<NetworkPolicy>()",
        "fn order(basket: &Basket) -> Value {",
        "\"metadata\": global(basket)",
    ] {
        assert!(controller.contains(part), "no {part} in\n{controller}");
    }
    let tests = folder.text("tests/basket.rs")?;
    assert!(tests.contains("use shop_operator::api::v1::order::Order;"), "{tests}");
    assert!(tests.contains("(\"default-sample\")"), "what is in no namespace says whose it is: {tests}");
    assert_eq!(
        Project::read(&folder.text("PROJECT")?)?.kinds[1].owns,
        ["Order", "NetworkPolicy", "Namespace"]
    );
    Ok(())
}

#[test]
fn a_file_that_is_no_rust_is_left_to_its_author() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    std::fs::write(folder.path.join("src/api/mod.rs"), "mod half {\n")?;
    let asked =
        NewKind { group: "shop".into(), version: "v1".into(), kind: "Basket".into(), ..NewKind::default() };
    let read = |path: &str| folder.text(path).ok();
    let change = windlass_sdk::scaffold::create_api(&asked, &read)?;
    assert!(
        change.advice.iter().any(|line| line.contains("`pub mod v1;` to src/api/mod.rs")),
        "{:?}",
        change.advice
    );
    folder.api("shop", "v1", "Basket", &[])?;
    assert_eq!(folder.text("src/api/mod.rs")?, "mod half {\n");
    Ok(())
}

#[test]
fn webhooks_come_one_by_one_and_a_new_version_with_its_conversion() -> anyhow::Result<()> {
    let (_below, folder) = folder()?;
    folder.api("shop", "v1alpha1", "Basket", &["Deployment"])?;
    let one_version = folder.webhook("Basket", &[WebhookSort::Conversion]).unwrap_err().to_string();
    assert!(one_version.contains("Basket has one version, and so nothing to convert"), "{one_version}");
    assert!(folder.webhook("Basket", &[]).unwrap_err().to_string().contains("--defaulting"));
    assert!(
        folder
            .webhook("Crate", &[WebhookSort::Validation])
            .unwrap_err()
            .to_string()
            .contains("no kind Crate")
    );
    folder.webhook("Basket", &[WebhookSort::Validation])?;
    let generated = || folder.text("src/generated.rs");
    let validates = ".webhook(Webhook::validating(webhook::basket_validation::validate))";
    assert!(generated()?.contains(validates), "{}", generated()?);
    assert!(folder.text("src/lib.rs")?.contains("\npub mod webhook;\n"));
    std::fs::write(folder.path.join("src/webhook/basket_validation.rs"), "// all mine\n")?;
    folder.api("shop", "v1", "Basket", &[])?;
    folder.webhook("Basket", &[WebhookSort::Defaulting, WebhookSort::Conversion])?;
    assert_eq!(folder.text("src/webhook/basket_validation.rs")?, "// all mine\n");
    assert!(generated()?.contains(validates) && generated()?.contains("webhook::basket_defaulting::default"));
    assert!(generated()?.contains(".versions(basket_versions())"), "{}", generated()?);
    folder.api("shop", "v2", "Basket", &[])?;
    for version in ["v1", "v2"] {
        let conversion = folder.text(&format!("src/webhook/basket_conversion_{version}.rs"))?;
        assert!(conversion.contains(&format!("use crate::api::{version}::basket as spoke;")), "{conversion}");
        assert!(
            folder.text("src/webhook/mod.rs")?.contains(&format!("pub mod basket_conversion_{version};"))
        );
        assert!(generated()?.contains(&format!(".spoke::<api::{version}::basket::Basket>()")));
    }
    let again = folder.webhook("Basket", &[WebhookSort::Defaulting])?;
    assert!(again.iter().all(|one| one.outcome == Outcome::Unchanged), "{again:?}");
    for file in folder
        .all()?
        .iter()
        .filter(|path| path.starts_with("src/webhook") || path.starts_with("src/generated"))
    {
        assert!(!folder.text(file)?.contains('%'), "{file} has a name that was not filled in");
    }
    Ok(())
}

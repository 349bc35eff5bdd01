//! The tests of a project: from pure decisions to a whole cluster.

use super::code_names::{Imports, Naming, header};
use super::controllers::gauge;
use super::owned::{Need, Owned, TESTS};
use super::valid_names;

fn sample_fields(naming: &Naming<'_>) -> &'static str {
    match naming.kind.namespaced || naming.kind.owns.is_empty() {
        true => "{\"spec\": {}}",
        false => "{\"spec\": {\"namespace\": \"default\"}}",
    }
}

/// The tests of a kind and its first controllers.
pub(super) fn of_kind(naming: &Naming<'_>) -> String {
    let owned = naming.owned();
    let access = naming.has_access();
    let (ty, krate) = (&naming.ty, naming.krate());
    let mut imports = Imports::default();
    let own: String = owned.iter().map(|one| one.import(&mut imports, TESTS)).collect();
    let controller = naming.below_controller(&naming.module);
    let mut text = format!(
        "{}//! What a `{kind}` comes to, from pure decisions to a whole cluster.\n\n{}{own}{}use {krate}::controller::{controller}::{{decide, measure}};\nuse {krate}::{{definitions, operator}};\nuse serde_json::json;\nuse std::sync::Arc;\nuse windlass::Observed;\nuse windlass::metrics::Page;\nuse windlass_testing::{{TestCluster, campaign, object}};\n\n",
        header(naming.project.license),
        naming.import(&krate, false),
        imports.text(),
        kind = naming.kind.kind,
    );
    text +=
        &format!("fn sample() -> {ty} {{\n    object(\"sample\", json!({}))\n}}\n\n", sample_fields(naming));
    text += &pure(naming);
    text += &format!(
        "#[test]
fn all_of_them_are_counted() {{
    let mut page = Page::default();
    measure(&[Arc::new(sample())], &mut page);
    let counted = \"{}{{ready=\\\"false\\\"}} 1\";
    assert!(page.as_str().contains(counted), \"{{}}\", page.as_str());
}}

",
        gauge(naming)
    );
    let is = |one: &Owned, how: &str| {
        let name = one.name_of_sample(naming.kind);
        format!("    cluster.eventually::<{}>(\"{name}\").{how}().await?;\n", one.ty)
    };
    let exist: String = owned.iter().map(|one| is(one, "exists")).collect();
    let deleted: String = owned.iter().map(|one| is(one, "is_deleted")).collect();
    let settles = owned.iter().all(|one| one.settles);
    let ready = match settles {
        true => {
            format!("    cluster.eventually::<{ty}>(\"sample\").has_condition(\"Ready\", true).await?;\n")
        }
        false => String::new(),
    };
    let reachable = match access {
        true => {
            format!("    cluster.eventually::<{ty}>(\"sample\").has_condition(\"Reachable\", true).await?;\n")
        }
        false => String::new(),
    };
    let scaled = match naming.needs().contains(&Need::Replicas) {
        true => format!(
            "    cluster.patch::<{ty}>(\"sample\", json!({{\"spec\": {{\"replicas\": 2}}}})).await?;
    cluster.eventually::<{ty}>(\"sample\").has(json!({{\"status\": {{\"ready\": 2}}}})).await?;\n"
        ),
        false => String::new(),
    };
    text += &format!(
        "#[tokio::test]
async fn it_becomes_ready_and_leaves_nothing_behind() -> anyhow::Result<()> {{
    let cluster = TestCluster::start();
    cluster.install(definitions()).await?;
    let operator = cluster.run(operator);
    cluster.create(sample()).await?;
{exist}{ready}{reachable}{scaled}    cluster.delete::<{ty}>(\"sample\").await?;
    cluster.eventually::<{ty}>(\"sample\").is_deleted().await?;
{deleted}    operator.stop().await
}}

"
    );
    text += &refused(naming);
    text += &format!(
        "/// One crash, lost response or stale read at each write: it must end as if nothing had happened.
#[tokio::test]
async fn it_survives_every_fault_at_every_write() -> anyhow::Result<()> {{
    async fn life(cluster: TestCluster) -> anyhow::Result<()> {{
        cluster.create(sample()).await?;
        cluster.eventually::<{ty}>(\"sample\").is(\"reported in its status\", |one| one.status.is_some()).await?;
        Ok(())
    }}
    println!(\"{{}}\", campaign::every_fault(definitions(), operator, life).await?);
    Ok(())
}}
"
    );
    text
}

fn pure(naming: &Naming<'_>) -> String {
    let access = naming.has_access();
    let owned: Vec<_> = naming.owned().into_iter().filter(|one| !(access && one.kind == "Service")).collect();
    let asserts: String = owned
        .iter()
        .map(|one| {
            let name = one.name_of_sample(naming.kind);
            // A namespace of a sample that is nowhere is the empty one.
            let name = name.strip_prefix("default").unwrap_or(name);
            format!("    assert!(plan.applied::<{}>(\"{name}\").is_some(), \"{{plan}}\");\n", one.ty)
        })
        .collect();
    match owned.is_empty() {
        true => "#[test]
fn nothing_follows_from_it_yet() {
    let plan = decide(&sample(), &Observed::empty()).unwrap();
    assert!(plan.is_complete() && plan.steps().is_empty(), \"{plan}\");
}

"
        .to_owned(),
        false => format!(
            "#[test]
fn what_it_needs_follows_from_it() {{
    let plan = decide(&sample(), &Observed::empty()).unwrap();
{asserts}}}

"
        ),
    }
}

/// That the schema refuses what makes no sense.
fn refused(naming: &Naming<'_>) -> String {
    if !naming.needs().contains(&Need::Replicas) {
        return String::new();
    }
    "#[tokio::test]
async fn a_number_that_makes_no_sense_is_refused_by_the_api() -> anyhow::Result<()> {
    let cluster = TestCluster::api_only();
    cluster.install(definitions()).await?;
    let mut nonsense = sample();
    nonsense.spec.replicas = -1;
    let refused = cluster.create(nonsense).await.unwrap_err();
    assert!(format!(\"{refused:#}\").contains(\"spec.replicas\"), \"{refused:#}\");
    Ok(())
}

"
    .to_owned()
}

/// The test of a further controller.
pub(super) fn of_concern(naming: &Naming<'_>, name: &str) -> String {
    let (ty, krate, condition) = (&naming.ty, naming.krate(), valid_names::camel(name));
    format!(
        "{}//! What the {name} of a `{kind}` comes to.

{import}use {krate}::{{definitions, operator}};
use serde_json::json;
use windlass_testing::{{TestCluster, object}};

#[tokio::test]
async fn it_reports_its_condition() -> anyhow::Result<()> {{
    let cluster = TestCluster::start();
    cluster.install(definitions()).await?;
    let operator = cluster.run(operator);
    let sample: {ty} = object(\"sample\", json!({fields}));
    cluster.create(sample).await?;
    cluster.eventually::<{ty}>(\"sample\").has_condition(\"{condition}\", true).await?;
    cluster.eventually::<{ty}>(\"sample\").has_condition(\"Ready\", true).await?;
    operator.stop().await
}}
",
        header(naming.project.license),
        kind = naming.kind.kind,
        import = naming.import(&krate, false),
        fields = sample_fields(naming),
    )
}

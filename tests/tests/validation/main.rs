//! Every sort of validation that a kind can declare means the same here and on the reference, and what kubebuilder's marker for it
//! means. `docs/validation.md` says how each is written, and is compared with this file and with the types.

use anyhow::{Context, bail, ensure};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use windlass_clock::Clock;
use windlass_harness::{Suite, Target};
use windlass_tests::{catalogue, targets};

mod markers;

use markers::{CASES, MARKERS, OTHERS};

fn main() -> ExitCode {
    Suite::on([targets::embedded_in_process(), windlass_harness::Environment::reference()])
        .limit(Duration::from_secs(120))
        .test("valid values are accepted and invalid ones rejected", verdicts)
        .test("values are defaulted, preserved and pruned", values)
        .test("transition rules compare with the old value", transitions)
        .test("lists, maps and structs are merged as declared", merges)
        .test("printer columns, scale and selectable fields are as declared", kinds)
        .test("versions are stored, served and deprecated as declared", versions)
        .test("docs/validation.md has a row for each marker", page)
        .run()
}

struct Fixture {
    client: Client,
    namespace: String,
    next: std::sync::atomic::AtomicUsize,
}

fn resource(version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("catalogue.windlass.dev", version, "Catalogue"),
        "catalogues",
    )
}

impl Fixture {
    async fn new(target: Target) -> anyhow::Result<Self> {
        let (client, namespace) = (target.client(), target.namespace().await?);
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = catalogue::definition();
        let mut strictly = PatchParams::apply("test").force();
        strictly.field_validation = Some(kube::api::ValidationDirective::Strict);
        definitions.patch(&definition.name_any(), &strictly, &Patch::Apply(&definition)).await?;
        let fixture = Self { client, namespace, next: Default::default() };
        let clock = Clock::real();
        let served = async {
            while fixture.objects().list(&ListParams::default()).await.is_err() {
                clock.sleep(Duration::from_millis(50)).await;
            }
        };
        clock.timeout(Duration::from_secs(30), served).await.context("the kind is not served")?;
        Ok(fixture)
    }

    fn objects(&self) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource("v1"))
    }

    /// An object with these fields beside what is required.
    fn object(&self, fields: &Value) -> DynamicObject {
        let number = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut spec = json!({ "required": "yes" });
        let more = fields.as_object().into_iter().flatten();
        spec.as_object_mut().into_iter().for_each(|spec| {
            spec.extend(more.clone().map(|(name, value)| (name.clone(), value.clone())));
        });
        DynamicObject::new(&format!("object-{number}"), &resource("v1")).data(json!({ "spec": spec }))
    }

    async fn make(&self, fields: &Value) -> Result<DynamicObject, kube::Error> {
        self.objects().create(&PostParams::default(), &self.object(fields)).await
    }

    async fn change(&self, name: &str, fields: Value) -> Result<DynamicObject, kube::Error> {
        let patch = json!({ "spec": fields });
        self.objects().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Applies fields of an object as one of its owners, and answers its spec.
    async fn apply(&self, name: &str, owner: &str, fields: Value) -> anyhow::Result<Value> {
        let object = json!({
            "apiVersion": "catalogue.windlass.dev/v1", "kind": "Catalogue",
            "metadata": { "name": name }, "spec": fields,
        });
        let how = PatchParams::apply(owner).force();
        Ok(self.objects().patch(name, &how, &Patch::Apply(object)).await?.data["spec"].clone())
    }
}

/// What was said against it, with all its causes.
fn refusal(outcome: Result<DynamicObject, kube::Error>) -> anyhow::Result<String> {
    match outcome {
        Ok(object) => bail!("it was taken: {}", object.data),
        Err(kube::Error::Api(status)) => {
            ensure!(status.reason == "Invalid", "{}: {}", status.reason, status.message);
            Ok(status.message.clone())
        }
        Err(error) => Err(error.into()),
    }
}

async fn verdicts(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    let mut wrong = Vec::new();
    for case in CASES {
        let (good, bad): (Value, Value) = (serde_json::from_str(case.good)?, serde_json::from_str(case.bad)?);
        if let Err(error) = fixture.make(&good).await {
            wrong.push(format!("{}: {good} is refused: {error}", case.marker));
        }
        match refusal(fixture.make(&bad).await) {
            Ok(said) if said.contains(case.says) => {}
            Ok(said) => wrong.push(format!("{}: {bad}: no {:?} in {said:?}", case.marker, case.says)),
            Err(error) => wrong.push(format!("{}: {bad}: {error:#}", case.marker)),
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

async fn values(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    let made = fixture
        .make(&json!({
            "unknown": 1, "nullable": null, "optional": null, "example": "e", "title": "t",
            "preserveUnknownFields": { "any": [1, "a", null] },
            "schemaless": [{ "a": 1 }, 2],
            "embeddedResource": { "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a" }, "spec": { "x": 1 } },
        }))
        .await?;
    let spec = &made.data["spec"];
    ensure!(spec["default"] == 7, "defaulted: {spec}");
    ensure!(spec.get("unknown").is_none(), "pruned: {spec}");
    ensure!(spec["preserveUnknownFields"] == json!({ "any": [1, "a", null] }), "kept: {spec}");
    ensure!(spec["schemaless"] == json!([{ "a": 1 }, 2]), "kept: {spec}");
    ensure!(spec["embeddedResource"]["spec"]["x"] == 1, "kept: {spec}");
    ensure!(spec.get("nullable").is_some_and(Value::is_null), "a null that may be is kept: {spec}");
    // Where null cannot be, a default takes its place.
    let made = fixture.make(&json!({ "default": null })).await?;
    ensure!(made.data["spec"]["default"] == 7, "{}", made.data);
    let definitions: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let stored = serde_json::to_value(definitions.get("catalogues.catalogue.windlass.dev").await?)?;
    let versions = stored["spec"]["versions"].as_array().context("versions")?;
    let v1 = versions.iter().find(|one| one["name"] == "v1").context("v1")?;
    let fields = &v1["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    ensure!(fields["example"]["example"] == "like this", "{}", fields["example"]);
    ensure!(fields["title"]["title"] == "A title", "{}", fields["title"]);
    ensure!(stored["metadata"]["annotations"]["windlass.dev/about"] == "everything");
    ensure!(stored["metadata"]["labels"]["windlass.dev/is"] == "catalogue");
    Ok(())
}

async fn transitions(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    let made = fixture.make(&json!({ "immutable": "a", "optionalOldSelf": 0 })).await?;
    let name = made.name_any();
    let said = refusal(fixture.change(&name, json!({ "immutable": "b" })).await)?;
    ensure!(said.contains("it cannot be changed"), "{said}");
    // A rule with an optional old self is also asked when there is none.
    fixture.change(&name, json!({ "optionalOldSelf": 5 })).await?;
    let said = refusal(fixture.make(&json!({ "optionalOldSelf": 5 })).await)?;
    ensure!(said.contains("it begins at zero"), "{said}");
    Ok(())
}

async fn merges(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    let first = json!({
        "required": "yes", "listType": ["a"], "uniqueItems": ["a"], "listMapKey": [{ "name": "a", "value": 1 }],
        "mapType": { "a": "1" }, "structType": { "left": 1 }, "maxProperties": { "a": "1" },
    });
    fixture.apply("merged", "first", first).await?;
    let second = json!({
        "required": "yes", "listType": ["b"], "uniqueItems": ["b"], "listMapKey": [{ "name": "b", "value": 2 }],
        "mapType": { "b": "2" }, "structType": { "right": 2 }, "maxProperties": { "b": "2" },
    });
    let both = fixture.apply("merged", "second", second).await?;
    ensure!(both["listType"] == json!(["b"]), "an atomic list is one's alone: {both}");
    ensure!(both["uniqueItems"] == json!(["a", "b"]), "sets are united: {both}");
    ensure!(both["listMapKey"].as_array().is_some_and(|list| list.len() == 2), "by their keys: {both}");
    ensure!(both["mapType"] == json!({ "b": "2" }), "an atomic map is one's alone: {both}");
    ensure!(both["structType"] == json!({ "right": 2 }), "an atomic struct is one's alone: {both}");
    ensure!(both["maxProperties"] == json!({ "a": "1", "b": "2" }), "other maps are merged: {both}");
    Ok(())
}

async fn kinds(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    let listed = fixture.client.list_api_group_resources("catalogue.windlass.dev/v1").await?;
    let kind = listed.resources.iter().find(|one| one.name == "catalogues").context("the kind")?;
    ensure!(kind.namespaced && kind.short_names == Some(vec!["cat".into()]), "{kind:?}");
    ensure!(kind.categories == Some(vec!["all".into()]), "{kind:?}");
    for subresource in ["catalogues/status", "catalogues/scale"] {
        ensure!(listed.resources.iter().any(|one| one.name == subresource), "{subresource}");
    }
    let mut named = fixture.object(&json!({ "replicas": 3, "selectable": "this" }));
    named.metadata.name = Some("chosen".to_owned());
    let mut made = fixture.objects().create(&PostParams::default(), &named).await?;
    fixture.make(&json!({ "selectable": "that" })).await?;
    // The status is written at its own place only.
    made.data["status"] = json!({ "replicas": 9 });
    let replaced = fixture.objects().replace("chosen", &PostParams::default(), &made).await?;
    ensure!(replaced.data.get("status").is_none(), "{}", replaced.data);
    let status = json!({ "status": { "replicas": 2 } });
    fixture.objects().patch_status("chosen", &PatchParams::default(), &Patch::Merge(status)).await?;
    let scale = fixture.objects().get_scale("chosen").await?;
    let (wanted, is) =
        (scale.spec.and_then(|spec| spec.replicas), scale.status.map(|status| status.replicas));
    ensure!(wanted == Some(3) && is == Some(2), "{wanted:?} {is:?}");
    let these = fixture.objects().list(&ListParams::default().fields("spec.selectable=this")).await?;
    ensure!(these.items.len() == 1 && these.items[0].name_any() == "chosen", "{}", these.items.len());
    let path = format!("/apis/catalogue.windlass.dev/v1/namespaces/{}/catalogues/chosen", fixture.namespace);
    let request = http::Request::get(path)
        .header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = fixture.client.request(request).await?;
    let column = table["columnDefinitions"].as_array().and_then(|all| {
        all.iter().position(|column| column["name"] == "Replicas" && column["type"] == "integer")
    });
    let column = column.with_context(|| format!("{}", table["columnDefinitions"]))?;
    ensure!(table["rows"][0]["cells"][column] == 3, "{}", table["rows"]);
    Ok(())
}

async fn versions(target: Target) -> anyhow::Result<()> {
    let fixture = Fixture::new(target).await?;
    fixture.make(&json!({})).await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(fixture.client.clone());
    let definition = definitions.get("catalogues.catalogue.windlass.dev").await?;
    let stored = definition.status.and_then(|status| status.stored_versions).unwrap_or_default();
    ensure!(stored == ["v1"], "{stored:?}");
    let asked = async |version: &str| {
        let path =
            format!("/apis/catalogue.windlass.dev/{version}/namespaces/{}/catalogues", fixture.namespace);
        let request = http::Request::get(path).body(kube::client::Body::empty())?;
        anyhow::Ok(fixture.client.send(request).await?)
    };
    let deprecated = asked("v1beta1").await?;
    let warning =
        deprecated.headers().get("warning").map(|text| text.to_str().unwrap_or_default().to_owned());
    ensure!(deprecated.status() == 200 && warning.as_deref() == Some("299 - \"use v1\""), "{warning:?}");
    ensure!(asked("v1").await?.headers().get("warning").is_none());
    ensure!(asked("v1alpha1").await?.status() == 404, "a version that is not served is not there");
    Ok(())
}

/// The page's rows are the markers that there are, each with code that is in the types and a test that there is.
async fn page(_: Target) -> anyhow::Result<()> {
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let types = squeezed(include_str!("../../src/catalogue.rs"));
    let page = include_str!("../../../docs/validation.md");
    let mut rows = Vec::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [marker, code, test] = cells.as_slice() else { bail!("three cells: {line}") };
        let marker = marker.trim_matches('`');
        for quoted in code.split('`').skip(1).step_by(2) {
            ensure!(types.contains(&squeezed(quoted)), "{marker}: {quoted} is not in the types");
        }
        let tested = CASES.iter().any(|case| case.marker == marker) && *test == markers::VERDICTS
            || OTHERS.contains(&(marker, *test));
        ensure!(tested, "{marker} is not tested by {test:?}");
        rows.push(marker);
    }
    ensure!(rows == MARKERS, "the page has other rows than there are markers: {rows:?}");
    let told = include_str!("main.rs");
    for (marker, test) in OTHERS {
        ensure!(told.contains(&format!("\"{test}\"")), "{marker}: no test is named {test:?}");
    }
    Ok(())
}

//! Least-privilege RBAC, on the embedded API and on the reference: with its generated role no request of the operator is forbidden, and
//! without any single verb of it one is.

use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, CustomResourceExt, ResourceExt};
use memcached_operator::api::v1beta1::{Memcached, MemcachedSpec};
use memcached_operator::operator;
use serde_json::{Value, json};
use std::process::{Command, ExitCode};
use std::time::Duration;
use tokio::task::JoinSet;
use windlass::Manager;
use windlass::inspect::Inspector;
use windlass_apiserver::Identity;
use windlass_clock::Clock;
use windlass_harness::suite::KUBECONFIG_VARIABLE;
use windlass_harness::{Environment, Reference, Suite, Target};
use windlass_sdk::description::OperatorDescription;
use windlass_testing::faulty_client::{ClientFault, FaultyClient};

const PATIENCE: Duration = Duration::from_secs(60);

const EMBEDDED: &str = "embedded";

fn main() -> ExitCode {
    // Every permission is for some cluster: that plug-in asks whoever names a blocking owner whether it may, and where lists are not
    // streamed they are asked for.
    let reference = Reference::builder()
        .server_flag("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
        .server_flag("--feature-gates=WatchList=false");
    let embedded = Environment::new(EMBEDDED, || async {
        let api = windlass_apiserver::Api::new(windlass_apiserver::Config::default());
        Ok(Target::new(EMBEDDED, Client::new(api.service(Identity::admin()), "default")).with(api))
    });
    Suite::on([embedded, Environment::reference_of(reference)])
        .limit(Duration::from_secs(300))
        .test("under its generated role the operator is refused nothing", is_refused_nothing)
        .test("without any one verb of its role the operator is refused", needs_each_verb)
        .run()
}

/// The rules that `windlass generate` writes into the operator's role.
fn rules() -> anyhow::Result<Vec<PolicyRule>> {
    let output = Command::new(env!("CARGO_BIN_EXE_memcached-operator")).arg("describe").output()?;
    let operator = OperatorDescription::read(std::str::from_utf8(&output.stdout)?)?;
    Ok(serde_json::from_value(Value::from(operator.rules))?)
}

/// An operator at work in a namespace of its own, as a user with a role of its own.
struct Scene {
    client: Client,
    namespace: String,
    inspector: Inspector,
    _operator: JoinSet<()>,
}

impl Scene {
    async fn new(target: &Target, rules: Vec<PolicyRule>, sabotage: &FaultyClient) -> anyhow::Result<Self> {
        let (client, namespace) = (target.client(), target.namespace().await?);
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let definition = Memcached::crd();
        let ours = PatchParams::apply("test").force();
        definitions.patch(&definition.name_any(), &ours, &Patch::Apply(&definition)).await?;
        let all: Api<Memcached> = Api::all(client.clone());
        until("the kind is served", || async { Ok(all.list(&ListParams::default()).await.is_ok()) }).await?;
        give(&client, &namespace, rules).await?;
        let user = client_as(target, &namespace).await?;
        let manager = Manager::new(sabotage.on(user), Clock::real());
        let manager = operator(manager.namespace(&namespace));
        let inspector = manager.inspector();
        let mut running = JoinSet::new();
        running.spawn(async { drop(manager.run_until(std::future::pending()).await) });
        Ok(Self { client, namespace, inspector, _operator: running })
    }

    /// The number of forbidden requests.
    fn refused(&self) -> f64 {
        let page = self.inspector.metrics();
        let refused = page
            .lines()
            .filter(|line| line.starts_with("rest_client_requests_total") && line.contains("code=\"403\""));
        refused.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    fn here<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Its end: the object goes, and the operator does not hold it.
    async fn end(&self) -> anyhow::Result<()> {
        let memcacheds: Api<Memcached> = self.here();
        memcacheds.delete("sample", &DeleteParams::default()).await?;
        until("it is gone", || async { Ok(memcacheds.get_opt("sample").await?.is_none()) }).await
    }

    /// A whole life. The reference has no controllers here, so this plays their part.
    async fn live(&self) -> anyhow::Result<()> {
        let sample = Memcached::new(
            "sample",
            MemcachedSpec { size: 1, image: "memcached:1.6".into(), ..Default::default() },
        );
        let memcacheds: Api<Memcached> = self.here();
        memcacheds.create(&PostParams::default(), &sample).await?;
        let deployments: Api<Deployment> = self.here();
        let services: Api<Service> = self.here();
        until("its children are there", || async {
            Ok(deployments.get_opt("sample").await?.is_some() && services.get_opt("sample").await?.is_some())
        })
        .await?;
        let pod: Pod = serde_json::from_value(json!({
            "metadata": { "name": "sample-0", "labels": {
                "app.kubernetes.io/name": "memcached", "app.kubernetes.io/instance": "sample" } },
            "spec": { "containers": [{ "name": "memcached", "image": "memcached" }] },
        }))?;
        let account = ServiceAccount { metadata: named("default"), ..Default::default() };
        self.here::<ServiceAccount>().create(&PostParams::default(), &account).await?;
        self.here::<Pod>().create(&PostParams::default(), &pod).await?;
        for size in [1, 2, 3] {
            let wanted = json!({ "spec": { "size": size } });
            memcacheds.patch("sample", &PatchParams::default(), &Patch::Merge(wanted)).await?;
            let ready = json!({ "status": { "replicas": size, "readyReplicas": size } });
            deployments.patch_status("sample", &PatchParams::default(), &Patch::Merge(ready)).await?;
            until("its status follows", || async {
                let (memcached, deployment) =
                    (memcacheds.get("sample").await?, deployments.get("sample").await?);
                let status = memcached.status.unwrap_or_default();
                let replicas = deployment.spec.and_then(|spec| spec.replicas);
                Ok(status.ready == size && status.nodes == ["sample-0"] && replicas == Some(size))
            })
            .await?;
        }
        // What happened is told more than once, and so counted: that is written too.
        until("its events are counted", || async {
            let events: Api<k8s_openapi::api::core::v1::Event> = self.here();
            let events = events.list(&ListParams::default()).await?.items;
            Ok(events.iter().any(|event| event.count > Some(1) || event.series.is_some()))
        })
        .await
    }
}

/// A client of this user, who has the rights that roles give and no others.
async fn client_as(target: &Target, user: &str) -> anyhow::Result<Client> {
    if let Some(api) = target.extra::<windlass_apiserver::Api>() {
        return Ok(Client::new(api.service(Identity::user(user)), "default"));
    }
    let file = Kubeconfig::read_from(target.kubeconfig().context("the reference has a kubeconfig")?)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Client::try_from(config)?)
}

/// Gives a user these permissions, and waits until the API knows.
async fn give(client: &Client, user: &str, rules: Vec<PolicyRule>) -> anyhow::Result<()> {
    let role = ClusterRole { metadata: named(user), rules: Some(rules), ..Default::default() };
    Api::all(client.clone()).create(&PostParams::default(), &role).await?;
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": user },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user }],
    }))?;
    Api::all(client.clone()).create(&PostParams::default(), &binding).await?;
    let asked = role.rules.iter().flatten().next().context("a role with rules")?;
    let first = |all: &Option<Vec<String>>| all.iter().flatten().next().cloned();
    let attributes = ResourceAttributes {
        group: first(&asked.api_groups),
        resource: first(&asked.resources),
        verb: asked.verbs.first().cloned(),
        ..Default::default()
    };
    let spec = SubjectAccessReviewSpec {
        user: Some(user.to_owned()),
        resource_attributes: Some(attributes),
        ..Default::default()
    };
    let review = SubjectAccessReview { spec, ..Default::default() };
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    until("the role counts", || async {
        let answer = reviews.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    })
    .await
}

fn named(name: &str) -> kube::core::ObjectMeta {
    kube::core::ObjectMeta { name: Some(name.to_owned()), ..Default::default() }
}

async fn until<F>(what: &str, mut holds: impl FnMut() -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<bool>>,
{
    let clock = Clock::real();
    let waiting = async {
        while !holds().await? {
            clock.sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    clock.timeout(PATIENCE, waiting).await.with_context(|| format!("{what}: not so after {PATIENCE:?}"))?
}

async fn is_refused_nothing(target: Target) -> anyhow::Result<()> {
    // Also when it must look what became of writes whose answers were lost.
    let scene = Scene::new(&target, rules()?, &FaultyClient::first(4, ClientFault::LoseResponse)).await?;
    scene.live().await?;
    scene.end().await?;
    ensure!(scene.refused() == 0.0, "{}", scene.inspector.metrics());
    Ok(())
}

async fn needs_each_verb(target: Target) -> anyhow::Result<()> {
    let mut cases = JoinSet::new();
    let whole = rules()?;
    for (number, rule) in whole.iter().enumerate() {
        let resource = rule.resources.iter().flatten().next().cloned().unwrap_or_default();
        for verb in &rule.verbs {
            let depends = verb == "list" || resource.ends_with("/finalizers");
            // The embedded API streams lists, and does not ask about owners.
            if depends
                && (target.environment() == EMBEDDED || std::env::var_os(KUBECONFIG_VARIABLE).is_some())
            {
                println!("left out: {verb} {resource}, which not every cluster asks for");
                continue;
            }
            let mut rules = whole.clone();
            rules[number].verbs.retain(|one| one != verb);
            // A rule without verbs is none.
            rules.retain(|rule| !rule.verbs.is_empty());
            let (target, case) = (target.clone(), format!("{verb} {resource}"));
            cases.spawn(async move {
                let scene =
                    Scene::new(&target, rules, &FaultyClient::first(4, ClientFault::LoseResponse)).await?;
                // How far it comes differs; that it is refused does not.
                let what = format!("without {case} it is refused");
                let refused = until(&what, || async { Ok(scene.refused() > 0.0) });
                tokio::select! {
                    refused = refused => refused,
                    Err(error) = scene.live() => Err(error.context(case.clone())),
                }
            });
        }
    }
    let count = cases.len();
    let mut needless = Vec::new();
    while let Some(case) = cases.join_next().await {
        needless.extend(case?.err().map(|error| format!("{error:#}")));
    }
    ensure!(needless.is_empty(), "{}", needless.join("\n"));
    ensure!(count > 12, "{count} verbs");
    println!("{count} verbs, and each is needed");
    Ok(())
}

"""What people write with the official Python client, and what it prints: the same on every Kubernetes.

The test runs it on the embedded API and on the reference, and compares.
Arguments: a kubeconfig and a namespace that is there.
"""

import json
import sys

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException

NAMESPACE = sys.argv[2]


def told(what, action):
    """Prints what became of a request."""
    try:
        result = action()
        print(f"{what}: done")
        return result
    except ApiException as error:
        body = json.loads(error.body)
        print(f"{what}: {error.status} {body['reason']}: {body['message']}")
        return None


def core(api_client):
    """Creation, reading, writing, the kinds of patches, and deletion."""
    api = client.CoreV1Api(api_client)
    body = client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="py", labels={"app": "py"}), data={"a": "é"}, binary_data={"b": "AP8="}
    )
    made = api.create_namespaced_config_map(NAMESPACE, body)
    print(made.metadata.name, made.metadata.labels, made.data, made.binary_data, made.api_version, made.kind)
    print(made.metadata.managed_fields[0].manager, made.metadata.managed_fields[0].operation)
    told("create again", lambda: api.create_namespaced_config_map(NAMESPACE, body))
    told("get what is missing", lambda: api.read_namespaced_config_map("missing", NAMESPACE))
    old = made.metadata.resource_version
    made.data["c"] = "1"
    made = api.replace_namespaced_config_map("py", NAMESPACE, made)
    made.metadata.resource_version = old
    told("replace what is stale", lambda: api.replace_namespaced_config_map("py", NAMESPACE, made))
    patched = api.patch_namespaced_config_map("py", NAMESPACE, {"data": {"s": "1", "c": None}})
    print("strategic", patched.data)
    patched = api.patch_namespaced_config_map("py", NAMESPACE, [{"op": "add", "path": "/data/j", "value": "1"}])
    print("json", patched.data)
    patched = api.patch_namespaced_config_map(
        "py", NAMESPACE, {"data": {"m": "1"}}, _content_type="application/merge-patch+json"
    )
    print("merge", patched.data)
    intent = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "py"}, "data": {"y": "1", "a": "2"}}
    apply = {"field_manager": "python", "_content_type": "application/apply-patch+yaml"}
    told("apply", lambda: api.patch_namespaced_config_map("py", NAMESPACE, intent, **apply))
    patched = api.patch_namespaced_config_map("py", NAMESPACE, intent, force=True, **apply)
    print("apply", patched.data, sorted(entry.manager for entry in patched.metadata.managed_fields))
    dry = api.create_namespaced_config_map(
        NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="dry-")), dry_run="All"
    )
    print("dry", len(dry.metadata.name))
    odd = {"metadata": {"name": "x"}, "colour": "red"}
    told(
        "a field that there is not",
        lambda: api.create_namespaced_config_map(NAMESPACE, odd, field_validation="Strict"),
    )
    gone = api.delete_namespaced_config_map("py", NAMESPACE)
    print(gone.status, gone.kind, gone.details.kind)
    for number in range(5):
        named = client.V1ObjectMeta(name=f"page-{number}", labels={"page": "yes"})
        api.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=named))
    names, token = [], None
    while True:
        page = api.list_namespaced_config_map(NAMESPACE, limit=2, label_selector="page", _continue=token)
        names.append([item.metadata.name for item in page.items])
        token = page.metadata._continue
        if not token:
            break
    print(names)
    api.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page")
    print(len(api.list_namespaced_config_map(NAMESPACE, label_selector="page").items))


def workloads(api_client):
    """Kinds with many fields, and their subresources."""
    utils.create_from_dict(api_client, {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "py"},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "py"}},
            "template": {
                "metadata": {"labels": {"app": "py"}},
                "spec": {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1500m"}}}]},
            },
        },
    }, namespace=NAMESPACE)
    apps = client.AppsV1Api(api_client)
    got = apps.read_namespaced_deployment("py", NAMESPACE)
    print(got.spec.strategy.type, got.spec.strategy.rolling_update.max_surge, got.spec.template.spec.restart_policy)
    print(got.spec.template.spec.containers[0].image_pull_policy, got.spec.template.spec.containers[0].resources.requests)
    scale = apps.patch_namespaced_deployment_scale("py", NAMESPACE, {"spec": {"replicas": 4}})
    print(scale.spec.replicas, scale.kind)
    got.status = client.V1DeploymentStatus(replicas=4, observed_generation=1)
    got.metadata.resource_version = None
    print(apps.replace_namespaced_deployment_status("py", NAMESPACE, got).status.replicas)
    told("a pod with nothing", lambda: client.CoreV1Api(api_client).create_namespaced_pod(
        NAMESPACE, {"metadata": {"name": "none"}, "spec": {"containers": []}}))
    review = client.AuthorizationV1Api(api_client).create_self_subject_access_review(
        client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(
            resource_attributes=client.V1ResourceAttributes(verb="create", resource="pods", namespace=NAMESPACE))))
    print("allowed", review.status.allowed)
    print(apps.delete_namespaced_deployment("py", NAMESPACE, propagation_policy="Background").status)


def watched(api_client):
    """A watch, begun where a list ended."""
    api = client.CoreV1Api(api_client)
    begin = api.list_namespaced_config_map(NAMESPACE, label_selector="watched").metadata.resource_version
    label = {"watched": "yes"}
    api.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="w", labels=label)))
    api.patch_namespaced_config_map("w", NAMESPACE, {"data": {"a": "1"}})
    api.delete_namespaced_config_map("w", NAMESPACE)
    watcher = watch.Watch()
    seen = 0
    for event in watcher.stream(
        api.list_namespaced_config_map, NAMESPACE, label_selector="watched", resource_version=begin, timeout_seconds=20
    ):
        print(event["type"], event["object"].metadata.name, event["object"].data)
        seen += 1
        if seen == 3:
            watcher.stop()


def custom(api_client):
    """A definition, and what it defines, by both clients that know nothing of it."""
    definitions = client.ApiextensionsV1Api(api_client)
    told("define", lambda: definitions.create_custom_resource_definition({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "tools.clients.example.com"},
        "spec": {
            "group": "clients.example.com", "scope": "Namespaced",
            "names": {"plural": "tools", "singular": "tool", "kind": "Tool"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1, "maximum": 10}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                }}},
            }],
        },
    }))
    watcher = watch.Watch()
    for event in watcher.stream(
        definitions.list_custom_resource_definition, field_selector="metadata.name=tools.clients.example.com",
        timeout_seconds=20,
    ):
        conditions = event["object"].status.conditions or [] if event["object"].status else []
        if any(condition.type == "Established" and condition.status == "True" for condition in conditions):
            print("established")
            watcher.stop()
    api = client.CustomObjectsApi(api_client)
    place = ("clients.example.com", "v1", NAMESPACE, "tools")
    tool = {"apiVersion": "clients.example.com/v1", "kind": "Tool", "metadata": {"name": "t"}, "spec": {}}
    made = api.create_namespaced_custom_object(*place, tool)
    print(made["spec"], made["metadata"]["generation"])
    bad = dict(tool, metadata={"name": "bad"}, spec={"size": 11})
    told("a bad one", lambda: api.create_namespaced_custom_object(*place, bad))
    print(api.patch_namespaced_custom_object(*place, "t", {"spec": {"size": 3}})["spec"])
    print(api.patch_namespaced_custom_object_status(*place, "t", {"status": {"phase": "Ready"}})["status"])
    print(len(api.list_namespaced_custom_object(*place)["items"]))
    resources = dynamic.DynamicClient(api_client).resources
    tools = resources.get(api_version="clients.example.com/v1", kind="Tool")
    print(tools.get(name="t", namespace=NAMESPACE).spec.size, tools.namespaced, tools.name)
    applied = tools.server_side_apply(
        body=dict(tool, metadata={"name": "u"}, spec={"size": 2}), namespace=NAMESPACE, field_manager="dynamic"
    )
    print(applied.spec.size, applied.metadata.managedFields[0].operation)
    print([item.metadata.name for item in tools.get(namespace=NAMESPACE).items])
    maps = resources.get(api_version="v1", kind="ConfigMap")
    made = maps.create(body={"kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}}, namespace=NAMESPACE)
    print(made.data.to_dict(), maps.delete(name="d", namespace=NAMESPACE).status)
    print(api.delete_namespaced_custom_object(*place, "t")["status"])
    print(definitions.delete_custom_resource_definition("tools.clients.example.com").kind)


def discovery(api_client):
    """What the server says of itself."""
    version = client.VersionApi(api_client).get_code()
    print(version.git_version, version.major, version.minor)
    print(sorted(group.name for group in client.ApisApi(api_client).get_api_versions().groups
                 if "example.com" not in group.name))
    print(sorted(resource.name for resource in client.CoreV1Api(api_client).get_api_resources().resources))


def main():
    api_client = config.new_client_from_config(sys.argv[1])
    for part in (core, workloads, watched, custom, discovery):
        print(f"== {part.__name__}")
        part(api_client)


main()

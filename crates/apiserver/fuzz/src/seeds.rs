//! Good requests to begin from: every verb, content type and form of path, and objects of several kinds.

/// Inputs of the target.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> =
        TEXT.iter().map(|seed| seed.replace("\n~\n", "\0\n").into_bytes()).collect();
    // A ConfigMap in protobuf: the magic number, its type, its name and one key.
    let mut protobuf =
        b"POST /api/v1/namespaces/default/configmaps\nContent-Type: application/vnd.kubernetes.protobuf\n\n"
            .to_vec();
    protobuf.extend(
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0d\x0a\x03\x0a\x01a\x12\x06\x0a\x01k\x12\x01v",
    );
    seeds.push(protobuf);
    seeds
}

const TEXT: &[&str] = &[
    "POST /api/v1/namespaces/default/configmaps?fieldManager=a&fieldValidation=Strict
Content-Type: application/json

{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\",\"labels\":{\"l\":\"1\"},\"finalizers\":[\"e.io/a\"]},\"data\":{\"k\":\"v\"},\"binaryData\":{\"b\":\"AAE=\"}}
~
PATCH /api/v1/namespaces/default/configmaps/a
Content-Type: application/strategic-merge-patch+json

{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"e.io/a\"],\"labels\":{\"$patch\":\"replace\",\"x\":\"y\"}},\"data\":null}
~
PATCH /api/v1/namespaces/default/configmaps/a
Content-Type: application/json-patch+json

[{\"op\":\"add\",\"path\":\"/data/x\",\"value\":\"1\"},{\"op\":\"move\",\"from\":\"/data/x\",\"path\":\"/data/y\"},{\"op\":\"test\",\"path\":\"/data/y\",\"value\":\"1\"}]
~
PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=m&force=true
Content-Type: application/apply-patch+yaml

apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: &x w, z: *x, 'on': \"y\"}
~
GET /api/v1/configmaps?labelSelector=l+in+(1,2),!x&fieldSelector=metadata.name%3Da&limit=1&resourceVersion=0
Accept: application/json;as=Table;v=v1;g=meta.k8s.io
~
DELETE /api/v1/namespaces/default/configmaps/a
Content-Type: application/json

{\"preconditions\":{\"resourceVersion\":\"1\"},\"propagationPolicy\":\"Foreground\",\"gracePeriodSeconds\":0}
",
    "POST /apis/apps/v1/namespaces/default/deployments
Content-Type: application/yaml

apiVersion: apps/v1
kind: Deployment
metadata:
  name: d
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      containers:
      - name: c
        image: i
        ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]
        resources: {limits: {cpu: 1500m, memory: 1Gi}}
~
PATCH /apis/apps/v1/namespaces/default/deployments/d
Content-Type: application/strategic-merge-patch+json

{\"spec\":{\"template\":{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"e\"},{\"name\":\"c\"}],\"containers\":[{\"name\":\"e\",\"image\":\"j\"},{\"name\":\"c\",\"ports\":[{\"containerPort\":80,\"$patch\":\"delete\"}]}]}}}}
~
PATCH /apis/apps/v1/namespaces/default/deployments/d/scale
Content-Type: application/merge-patch+json

{\"spec\":{\"replicas\":3}}
~
PUT /apis/apps/v1/namespaces/default/deployments/d/status?dryRun=All
Content-Type: application/json

{\"metadata\":{\"name\":\"d\"},\"status\":{\"replicas\":1,\"conditions\":[{\"type\":\"A\",\"status\":\"True\"}]}}
~
GET /apis/apps/v1/namespaces/default/deployments/d
Accept: application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json
",
    "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions
Content-Type: application/json

{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":\"things.g.io\"},\"spec\":{\"group\":\"g.io\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"things\",\"kind\":\"Thing\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true,\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"k\"],\"properties\":{\"k\":{\"type\":\"string\",\"pattern\":\"^x\"},\"n\":{\"type\":\"integer\",\"default\":5}}},\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"k\"]}}}}}}}]}}
~
PATCH /apis/g.io/v1/namespaces/default/things/t?fieldManager=m
Content-Type: application/apply-patch+yaml

{\"apiVersion\":\"g.io/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"},\"spec\":{\"a\":[{\"k\":\"x\"}],\"b\":{\"c\":[1,null]}}}
~
PATCH /apis/g.io/v1/namespaces/default/things/t
Content-Type: application/merge-patch+json

{\"spec\":{\"a\":[{\"k\":\"xy\",\"n\":7}],\"b\":null}}
~
GET /apis/g.io/v1/things?watch=1&resourceVersion=0&allowWatchBookmarks=true&timeoutSeconds=1
~
GET /openapi/v3/apis/g.io/v1
",
    "GET /apis
Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList
~
GET /api/v1/namespaces/default/pods?limit=500&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0&resourceVersionMatch=Exact
~
HEAD /api/v1/nodes
~
OPTIONS /api/v1/nodes
~
GET /version
~
GET /openapi/v2
Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf
~
POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews
Content-Type: application/json

{\"spec\":{\"resourceAttributes\":{\"verb\":\"get\",\"resource\":\"pods\"}}}
",
    "POST /api/v1/namespaces/default/services
Content-Type: application/json

{\"metadata\":{\"name\":\"s\"},\"spec\":{\"type\":\"NodePort\",\"ports\":[{\"port\":80,\"targetPort\":\"http\",\"nodePort\":30080}]}}
~
PUT /api/v1/namespaces/default/services/s
Content-Type: application/json

{\"metadata\":{\"name\":\"s\"},\"spec\":{\"type\":\"ExternalName\",\"externalName\":\"a.b\"}}
~
POST /apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers
Content-Type: application/json

{\"metadata\":{\"name\":\"h\",\"annotations\":{\"autoscaling.alpha.kubernetes.io/metrics\":\"[{\\\"type\\\":\\\"Pods\\\",\\\"pods\\\":{\\\"metricName\\\":\\\"m\\\",\\\"targetAverageValue\\\":\\\"1\\\"}}]\",\"autoscaling.alpha.kubernetes.io/behavior\":\"{\\\"ScaleUp\\\":{\\\"Policies\\\":[{\\\"Type\\\":\\\"Pods\\\"}]}}\"}},\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{\"kind\":\"D\",\"name\":\"d\"}}}
~
GET /apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h
~
DELETE /api/v1/namespaces/default/services?labelSelector=a%3Db&dryRun=All
~
POST /api/v1/namespaces/default/serviceaccounts/default/token
Content-Type: application/json

{\"spec\":{\"audiences\":[\"a\"],\"expirationSeconds\":600}}
",
];

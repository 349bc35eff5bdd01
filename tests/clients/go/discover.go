package main

import (
	"context"
	"fmt"
	"sort"
	"strings"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
)

// Discovery, and what is made of it.
func discovered(_ context.Context, config *rest.Config, _ string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	fmt.Println(version.GitVersion, version.Major, version.Minor)
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	var all []string
	for _, list := range lists {
		// Other programs may define things meanwhile.
		if strings.Contains(list.GroupVersion, "example.com") {
			continue
		}
		for _, resource := range list.APIResources {
			all = append(all, fmt.Sprint(list.GroupVersion, " ", resource.Name, " ", resource.Kind, " ", resource.Namespaced, " ", resource.Verbs))
		}
	}
	sort.Strings(all)
	for _, line := range all {
		fmt.Println(line)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	for _, kind := range []schema.GroupKind{{Group: "apps", Kind: "Deployment"}, {Kind: "Pod"}, {Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "none", Kind: "Nothing"}} {
		mapping, err := mapper.RESTMapping(kind)
		told("mapping", err)
		if err == nil {
			fmt.Println(mapping.Resource, mapping.Scope.Name())
		}
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	_, known := paths["apis/apps/v1"]
	fmt.Println("apps/v1 has a document:", known)
	older, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	for _, definition := range older.Definitions.AdditionalProperties {
		if definition.Name != "io.k8s.api.apps.v1.Deployment" && definition.Name != "io.k8s.api.core.v1.ServicePort" {
			continue
		}
		fmt.Println(definition.Name, definition.Value.Type.Value, definition.Value.Required)
		for _, property := range definition.Value.Properties.AdditionalProperties {
			fmt.Println(property.Name, property.Value.XRef, property.Value.Type.GetValue(), property.Value.Format)
		}
		for _, extension := range definition.Value.VendorExtension {
			fmt.Println(extension.Name, strings.TrimSpace(extension.Value.Yaml))
		}
	}
	return nil
}

// The scale of whatever has one.
func scaled(ctx context.Context, config *rest.Config, namespace string) error {
	typed, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	labels := map[string]string{"app": "scaled"}
	_, err = typed.AppsV1().StatefulSets(namespace).Create(ctx, &apps.StatefulSet{
		ObjectMeta: meta.ObjectMeta{Name: "scaled"},
		Spec: apps.StatefulSetSpec{Selector: &meta.LabelSelector{MatchLabels: labels}, ServiceName: "s", Template: core.PodTemplateSpec{
			ObjectMeta: meta.ObjectMeta{Labels: labels}, Spec: core.PodSpec{Containers: []core.Container{{Name: "c", Image: "i"}}},
		}},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	client := discovery.NewDiscoveryClientForConfigOrDie(config)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(client))
	if err != nil {
		return err
	}
	resource := schema.GroupResource{Group: "apps", Resource: "statefulsets"}
	got, err := scales.Scales(namespace).Get(ctx, resource, "scaled", meta.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println(got.Spec.Replicas, got.Status.Selector)
	got.Spec.Replicas = 4
	got, err = scales.Scales(namespace).Update(ctx, resource, got, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(got.Spec.Replicas)
	got, err = scales.Scales(namespace).Patch(ctx, resource.WithVersion("v1"), "scaled", types.MergePatchType, []byte(`{"spec":{"replicas":6}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	fmt.Println(got.Spec.Replicas)
	_, err = scales.Scales(namespace).Update(ctx, resource, &autoscaling.Scale{ObjectMeta: meta.ObjectMeta{Name: "scaled", Namespace: namespace}, Spec: autoscaling.ScaleSpec{Replicas: -1}}, meta.UpdateOptions{})
	told("a negative scale", err)
	return nil
}

// Metadata alone, in protobuf.
func metadataOnly(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	sets := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "statefulsets"}).Namespace(namespace)
	one, err := sets.Get(ctx, "scaled", meta.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println(one.Name, one.Kind, one.Generation)
	list, err := sets.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	fmt.Println(len(list.Items), list.Items[0].Name)
	patched, err := sets.Patch(ctx, "scaled", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	fmt.Println(patched.Labels)
	told("delete", sets.Delete(ctx, "scaled", meta.DeleteOptions{}))
	return nil
}

package main

import (
	"context"
	"fmt"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"time"
)

// Apply configurations: owners, conflicts, and what is extracted again.
func applied(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	one := coreapply.ConfigMap("applied", namespace).WithData(map[string]string{"a": "1", "b": "1"}).WithLabels(map[string]string{"by": "one"})
	made, err := maps.Apply(ctx, one, meta.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	fmt.Println(made.Data, made.ManagedFields[0].Manager, made.ManagedFields[0].Operation)
	two := coreapply.ConfigMap("applied", namespace).WithData(map[string]string{"a": "2"})
	_, err = maps.Apply(ctx, two, meta.ApplyOptions{FieldManager: "two"})
	told("take what is owned", err)
	made, err = maps.Apply(ctx, two, meta.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	fmt.Println(made.Data, len(made.ManagedFields))
	extracted, err := coreapply.ExtractConfigMap(made, "one")
	if err != nil {
		return err
	}
	fmt.Println(extracted.Data, extracted.Labels)
	made, err = maps.Apply(ctx, coreapply.ConfigMap("applied", namespace), meta.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	fmt.Println(made.Data, made.Labels)
	labels := map[string]string{"app": "applied"}
	deployment := appsapply.Deployment("applied", namespace).WithSpec(appsapply.DeploymentSpec().
		WithReplicas(1).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
		WithTemplate(coreapply.PodTemplateSpec().WithLabels(labels).WithSpec(coreapply.PodSpec().WithContainers(
			coreapply.Container().WithName("a").WithImage("a:1"), coreapply.Container().WithName("b").WithImage("b:1")))))
	got, err := client.AppsV1().Deployments(namespace).Apply(ctx, deployment, meta.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	deployment.Spec.Template.Spec.Containers = deployment.Spec.Template.Spec.Containers[:1]
	got, err = client.AppsV1().Deployments(namespace).Apply(ctx, deployment, meta.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	fmt.Println(len(got.Spec.Template.Spec.Containers), got.Generation)
	return nil
}

var gadgets = schema.GroupVersionResource{Group: "clients.example.com", Version: "v1", Resource: "gadgets"}

// What is known only at run time: a definition, and what it defines.
func dynamics(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "gadgets.clients.example.com"},
		"spec": map[string]any{
			"group": "clients.example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "gadgets", "singular": "gadget", "kind": "Gadget"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{
					"spec":   map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer", "default": int64(1), "maximum": int64(10)}}},
					"status": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			}},
		},
	}}
	if _, err := definitions.Create(ctx, definition, meta.CreateOptions{}); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		got, err := definitions.Get(ctx, "gadgets.clients.example.com", meta.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(got.Object, "status", "conditions")
		for _, condition := range conditions {
			if c := condition.(map[string]any); c["type"] == "Established" && c["status"] == "True" {
				return true, nil
			}
		}
		return false, nil
	})
	told("established", err)
	resources := client.Resource(gadgets).Namespace(namespace)
	gadget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "clients.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"}, "spec": map[string]any{},
	}}
	made, err := resources.Create(ctx, gadget, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(made.Object["spec"], made.GetGeneration())
	bad := gadget.DeepCopy()
	bad.SetName("bad")
	bad.Object["spec"] = map[string]any{"size": int64(11), "unknown": true}
	_, err = resources.Create(ctx, bad, meta.CreateOptions{FieldValidation: "Strict"})
	told("a bad one", err)
	made.Object["status"] = map[string]any{"phase": "Ready"}
	made, err = resources.UpdateStatus(ctx, made, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(made.Object["status"], made.GetGeneration())
	patched, err := resources.Patch(ctx, "g", types.MergePatchType, []byte(`{"spec":{"size":3}}`), meta.PatchOptions{})
	if err != nil {
		return err
	}
	fmt.Println(patched.Object["spec"], patched.GetGeneration())
	_, err = resources.Patch(ctx, "g", types.StrategicMergePatchType, []byte(`{}`), meta.PatchOptions{})
	told("a strategic patch", err)
	applied, err := resources.Apply(ctx, "h", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "clients.example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "h"}, "spec": map[string]any{"size": int64(2)},
	}}, meta.ApplyOptions{FieldManager: "dynamic"})
	if err != nil {
		return err
	}
	fmt.Println(applied.Object["spec"], applied.GetManagedFields()[0].Manager)
	list, err := resources.List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	fmt.Println(len(list.Items), list.GetKind())
	told("delete", resources.Delete(ctx, "g", meta.DeleteOptions{}))
	told("delete the definition", definitions.Delete(ctx, "gadgets.clients.example.com", meta.DeleteOptions{}))
	return nil
}

package main

import (
	"context"
	"fmt"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

// Creation, reading, writing and deletion in protobuf, and the errors on the way.
func typed(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	made, err := maps.Create(ctx, &core.ConfigMap{
		ObjectMeta: meta.ObjectMeta{Name: "typed", Labels: map[string]string{"app": "typed"}},
		Data:       map[string]string{"a": "é"}, BinaryData: map[string][]byte{"b": {0, 255}},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(made.Name, made.Labels, made.Data, made.BinaryData, len(made.ManagedFields), made.UID != "", made.ResourceVersion != "")
	fmt.Println(made.ManagedFields[0].Manager, made.ManagedFields[0].Operation, string(made.ManagedFields[0].FieldsV1.Raw) != "")
	_, err = maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "typed"}}, meta.CreateOptions{})
	told("create again", err)
	_, err = maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "Not A Name"}}, meta.CreateOptions{})
	told("create with a bad name", err)
	_, err = maps.Get(ctx, "missing", meta.GetOptions{})
	told("get what is missing", err)
	_, err = client.CoreV1().ConfigMaps("no-such-namespace").Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "x"}}, meta.CreateOptions{})
	told("create in no namespace", err)
	stale := made.DeepCopy()
	made.Data["c"] = "1"
	made, err = maps.Update(ctx, made, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	stale.Data["d"] = "1"
	_, err = maps.Update(ctx, stale, meta.UpdateOptions{})
	told("update what is stale", err)
	tries := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		tries++
		current, err := maps.Get(ctx, "typed", meta.GetOptions{})
		if err != nil {
			return err
		}
		if tries == 1 {
			current.ResourceVersion = stale.ResourceVersion
		}
		current.Data["d"] = "2"
		_, err = maps.Update(ctx, current, meta.UpdateOptions{})
		return err
	})
	told(fmt.Sprintf("update after %d tries", tries), err)
	for _, patch := range []struct {
		kind types.PatchType
		body string
	}{
		{types.MergePatchType, `{"data":{"c":null,"m":"1"}}`},
		{types.StrategicMergePatchType, `{"data":{"s":"1"},"metadata":{"labels":{"app":"patched"}}}`},
		{types.JSONPatchType, `[{"op":"remove","path":"/data/m"}]`},
		{types.JSONPatchType, `[{"op":"remove","path":"/data/missing"}]`},
		{types.ApplyYAMLPatchType, `{"apiVersion":"v1","kind":"ConfigMap","data":{"y":"1"}}`},
	} {
		got, err := maps.Patch(ctx, "typed", patch.kind, []byte(patch.body), meta.PatchOptions{FieldManager: "patcher"})
		told(string(patch.kind), err)
		if err == nil {
			fmt.Println(got.Data, got.Labels)
		}
	}
	dry, err := maps.Update(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "typed"}, Data: map[string]string{"dry": "run"}}, meta.UpdateOptions{DryRun: []string{meta.DryRunAll}})
	told("dry run", err)
	if err == nil {
		fmt.Println(dry.Data)
	}
	got, err := maps.Get(ctx, "typed", meta.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println(got.Data, got.Labels)
	uid := types.UID("another")
	told("delete another", maps.Delete(ctx, "typed", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}}))
	told("delete", maps.Delete(ctx, "typed", meta.DeleteOptions{}))
	told("delete again", maps.Delete(ctx, "typed", meta.DeleteOptions{}))
	return nil
}

// Kinds with many fields, defaults and subresources.
func workloads(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	replicas := int32(2)
	labels := map[string]string{"app": "web"}
	template := core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: labels},
		Spec: core.PodSpec{Containers: []core.Container{{
			Name: "web", Image: "nginx:1.27",
			Ports:         []core.ContainerPort{{ContainerPort: 80}},
			Resources:     core.ResourceRequirements{Requests: core.ResourceList{"cpu": resource.MustParse("1500m"), "memory": resource.MustParse("0.5Gi")}},
			LivenessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{HTTPGet: &core.HTTPGetAction{Port: intstr.FromString("http")}}},
		}}},
	}
	deployments := client.AppsV1().Deployments(namespace)
	deployment, err := deployments.Create(ctx, &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "web"},
		Spec:       apps.DeploymentSpec{Replicas: &replicas, Selector: &meta.LabelSelector{MatchLabels: labels}, Template: template},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	spec := deployment.Spec
	container := spec.Template.Spec.Containers[0]
	fmt.Println(*spec.Replicas, spec.Strategy.Type, spec.Strategy.RollingUpdate.MaxSurge, *spec.RevisionHistoryLimit, *spec.ProgressDeadlineSeconds, deployment.Generation)
	fmt.Println(container.ImagePullPolicy, container.TerminationMessagePath, container.Resources.Requests.Cpu(), container.Resources.Requests.Memory(), container.LivenessProbe.PeriodSeconds, container.LivenessProbe.HTTPGet.Port.String())
	deployment.Status = apps.DeploymentStatus{Replicas: 2, ReadyReplicas: 1, ObservedGeneration: 1, Conditions: []apps.DeploymentCondition{{Type: apps.DeploymentAvailable, Status: core.ConditionTrue, Reason: "Test"}}}
	deployment, err = deployments.UpdateStatus(ctx, deployment, meta.UpdateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(deployment.Status.Replicas, deployment.Status.Conditions[0].Type, deployment.Generation)
	scale, err := deployments.GetScale(ctx, "web", meta.GetOptions{})
	if err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	scale, err = deployments.UpdateScale(ctx, "web", scale, meta.UpdateOptions{})
	told("scale", err)
	fmt.Println(scale.Spec.Replicas, scale.Status.Replicas, scale.Status.Selector)
	bad := deployment.DeepCopy()
	bad.ResourceVersion = ""
	bad.Spec.Selector = &meta.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	_, err = deployments.Update(ctx, bad, meta.UpdateOptions{})
	told("change the selector", err)
	service, err := client.CoreV1().Services(namespace).Create(ctx, &core.Service{
		ObjectMeta: meta.ObjectMeta{Name: "web"},
		Spec:       core.ServiceSpec{Selector: labels, Ports: []core.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(service.Spec.Type, service.Spec.ClusterIP != "", service.Spec.SessionAffinity, service.Spec.Ports, service.Spec.IPFamilies, *service.Spec.IPFamilyPolicy)
	job, err := client.BatchV1().Jobs(namespace).Create(ctx, &batch.Job{
		ObjectMeta: meta.ObjectMeta{GenerateName: "job-"},
		Spec:       batch.JobSpec{Template: core.PodTemplateSpec{Spec: core.PodSpec{RestartPolicy: core.RestartPolicyNever, Containers: []core.Container{{Name: "c", Image: "busybox"}}}}},
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(len(job.Name), *job.Spec.BackoffLimit, *job.Spec.Completions, *job.Spec.CompletionMode)
	secret, err := client.CoreV1().Secrets(namespace).Create(ctx, &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "s"}, StringData: map[string]string{"a": "1"}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(secret.Type, secret.Data, secret.StringData)
	role, err := client.RbacV1().Roles(namespace).Create(ctx, &rbac.Role{ObjectMeta: meta.ObjectMeta{Name: "r"}, Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	fmt.Println(role.Rules)
	_, err = client.CoreV1().Pods(namespace).Create(ctx, &core.Pod{ObjectMeta: meta.ObjectMeta{Name: "none"}}, meta.CreateOptions{})
	told("a pod with nothing", err)
	background := meta.DeletePropagationBackground
	told("delete", deployments.Delete(ctx, "web", meta.DeleteOptions{PropagationPolicy: &background}))
	return nil
}

// Lists in pages, of the version of their first.
func pages(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	for i := range 7 {
		if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: fmt.Sprintf("page-%d", i), Labels: map[string]string{"page": fmt.Sprint(i % 2)}}}, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	list, err := maps.List(ctx, meta.ListOptions{Limit: 3, FieldSelector: "metadata.name!=kube-root-ca.crt"})
	if err != nil {
		return err
	}
	fmt.Println(len(list.Items), list.Continue != "", list.RemainingItemCount != nil)
	again := pager.New(func(ctx context.Context, options meta.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, options)
	})
	again.PageSize = 2
	var names []string
	err = again.EachListItem(ctx, meta.ListOptions{LabelSelector: "page=0"}, func(object runtime.Object) error {
		names = append(names, object.(*core.ConfigMap).Name)
		return nil
	})
	told(fmt.Sprint(names), err)
	_, err = maps.List(ctx, meta.ListOptions{Continue: "nonsense"})
	told("a token that is none", err)
	told("delete all", maps.DeleteCollection(ctx, meta.DeleteOptions{}, meta.ListOptions{LabelSelector: "page"}))
	list, err = maps.List(ctx, meta.ListOptions{LabelSelector: "page"})
	if err != nil {
		return err
	}
	fmt.Println(len(list.Items))
	return nil
}

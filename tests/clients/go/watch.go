package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	toolswatch "k8s.io/client-go/tools/watch"
)

func change(ctx context.Context, client kubernetes.Interface, namespace, name string) error {
	maps := client.CoreV1().ConfigMaps(namespace)
	label := map[string]string{"watched": "yes"}
	made, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: label}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data = map[string]string{"a": "1"}
	if made, err = maps.Update(ctx, made, meta.UpdateOptions{}); err != nil {
		return err
	}
	return maps.Delete(ctx, name, meta.DeleteOptions{})
}

func event(what watch.Event) string {
	switch object := what.Object.(type) {
	case *core.ConfigMap:
		return fmt.Sprintf("%s %s %v", what.Type, object.Name, object.Data)
	case *meta.Status:
		return fmt.Sprintf("%s %d %s", what.Type, object.Code, object.Reason)
	default:
		return fmt.Sprintf("%s %T", what.Type, what.Object)
	}
}

// Watches in protobuf: live, from a version on, one that is begun again, and one from too long ago.
func watches(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(namespace)
	list, err := maps.List(ctx, meta.ListOptions{LabelSelector: "watched"})
	if err != nil {
		return err
	}
	begin := list.ResourceVersion
	live, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "watched", ResourceVersion: begin})
	if err != nil {
		return err
	}
	if err := change(ctx, client, namespace, "w1"); err != nil {
		return err
	}
	for range 3 {
		fmt.Println("live", event(<-live.ResultChan()))
	}
	live.Stop()
	past, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "watched", ResourceVersion: begin})
	if err != nil {
		return err
	}
	for range 3 {
		fmt.Println("past", event(<-past.ResultChan()))
	}
	past.Stop()
	// Each watch lasts for a second; it is begun again from the last version that was seen.
	second := int64(1)
	again, err := toolswatch.NewRetryWatcherWithContext(ctx, begin, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
			options.LabelSelector, options.TimeoutSeconds = "watched", &second
			return maps.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	for range 3 {
		fmt.Println("again", event(<-again.ResultChan()))
	}
	time.Sleep(1500 * time.Millisecond)
	if err := change(ctx, client, namespace, "w2"); err != nil {
		return err
	}
	for range 3 {
		fmt.Println("again", event(<-again.ResultChan()))
	}
	again.Stop()
	_, err = maps.Watch(ctx, meta.ListOptions{ResourceVersion: "nonsense"})
	told("a version that is none", err)
	return nil
}

// Shared informers: what is there, what comes, what is resynced, and their listers.
func informed(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	maps := client.CoreV1().ConfigMaps(namespace)
	for _, name := range []string{"i1", "i2"} {
		if _, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"informed": "yes"}}}, meta.CreateOptions{}); err != nil {
			return err
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 500*time.Millisecond, informers.WithNamespace(namespace),
		informers.WithTweakListOptions(func(options *meta.ListOptions) { options.LabelSelector = "informed" }))
	informer := factory.Core().V1().ConfigMaps()
	var lock sync.Mutex
	seen := map[string]bool{}
	note := func(what string) {
		lock.Lock()
		defer lock.Unlock()
		seen[what] = true
	}
	_, err = informer.Informer().AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(object any, initial bool) {
			note(fmt.Sprintf("added %s initial=%v", object.(*core.ConfigMap).Name, initial))
		},
		UpdateFunc: func(before, now any) {
			same := before.(*core.ConfigMap).ResourceVersion == now.(*core.ConfigMap).ResourceVersion
			note(fmt.Sprintf("updated %s resync=%v", now.(*core.ConfigMap).Name, same))
		},
		DeleteFunc: func(object any) { note("deleted " + object.(*core.ConfigMap).Name) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	found, err := informer.Lister().ConfigMaps(namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	fmt.Println("listed", len(found))
	made, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: "i3", Labels: map[string]string{"informed": "yes"}}}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	made.Data = map[string]string{"a": "1"}
	if _, err := maps.Update(ctx, made, meta.UpdateOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(ctx, "i2", meta.DeleteOptions{}); err != nil {
		return err
	}
	expected := []string{"added i1 initial=true", "added i2 initial=true", "added i3 initial=false", "updated i3 resync=false", "updated i1 resync=true", "deleted i2"}
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		lock.Lock()
		missing := 0
		for _, what := range expected {
			if !seen[what] {
				missing++
			}
		}
		lock.Unlock()
		if missing == 0 {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	lock.Lock()
	sort.Strings(expected)
	for _, what := range expected {
		fmt.Println(what, seen[what])
	}
	lock.Unlock()
	cancel()
	factory.Shutdown()
	return nil
}

// Two candidates for one lease: the second leads once the first has let go.
func elected(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	for _, name := range []string{"one", "two"} {
		ctx, cancel := context.WithCancel(ctx)
		lock := &resourcelock.LeaseLock{
			LeaseMeta: meta.ObjectMeta{Name: "leader", Namespace: namespace}, Client: client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 5 * time.Second, RenewDeadline: 4 * time.Second, RetryPeriod: time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					fmt.Println(name, "leads")
					// Between two renewals: one that is under way would make the release a conflict.
					time.Sleep(400 * time.Millisecond)
					cancel()
				},
				OnStoppedLeading: func() { fmt.Println(name, "stopped") },
			},
		})
		cancel()
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "leader", meta.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println(*lease.Spec.LeaseTransitions, *lease.Spec.HolderIdentity == "", lease.Spec.RenewTime != nil)
	return nil
}

// The bench's operator as it is written with controller-runtime: each Greeting owns one ConfigMap and has a status.
//
// It runs until it is told to stop, and then prints the delays from an update to the start of its reconcile.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const workers = 4

type GreetingSpec struct {
	Text string `json:"text"`
	// When this text was asked for, in nanoseconds since 1970; zero when nobody measures.
	Sent int64 `json:"sent,omitempty"`
}

type GreetingStatus struct {
	Text string `json:"text,omitempty"`
}

type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec   `json:"spec"`
	Status            GreetingStatus `json:"status,omitempty"`
}

type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Greeting `json:"items"`
}

func (g *Greeting) DeepCopyObject() runtime.Object {
	copied := *g
	g.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

func (l *GreetingList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Greeting, len(l.Items))
	for i := range l.Items {
		copied.Items[i] = *l.Items[i].DeepCopyObject().(*Greeting)
	}
	return &copied
}

type delays struct {
	sync.Mutex
	// By when it was asked for: only the first reconcile counts.
	first map[int64]time.Duration
}

func (d *delays) note(sent int64) {
	delay := time.Since(time.Unix(0, sent))
	d.Lock()
	defer d.Unlock()
	if d.first == nil {
		d.first = map[int64]time.Duration{}
	}
	if _, noted := d.first[sent]; !noted {
		d.first[sent] = delay
	}
}

func (d *delays) print() error {
	d.Lock()
	defer d.Unlock()
	all := slices.Sorted(maps.Values(d.first))
	told := map[string]any{"delays": len(all)}
	if n := len(all); n > 0 {
		told["p50_ms"] = float64(all[(n-1)*50/100]) / 1e6
		told["p99_ms"] = float64(all[(n-1)*99/100]) / 1e6
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

type reconciler struct {
	client.Client
	delays delays
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var greeting Greeting
	if err := r.Get(ctx, request.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if greeting.Spec.Sent != 0 && greeting.Status.Text != greeting.Spec.Text {
		r.delays.note(greeting.Spec.Sent)
	}
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: greeting.Name, Namespace: greeting.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"text": greeting.Spec.Text}
		return controllerutil.SetControllerReference(&greeting, child, r.Scheme())
	})
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: time.Millisecond}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if greeting.Status.Text != greeting.Spec.Text {
		greeting.Status.Text = greeting.Spec.Text
		if err := r.Status().Update(ctx, &greeting); err != nil {
			if apierrors.IsConflict(err) {
				return ctrl.Result{RequeueAfter: time.Millisecond}, nil
			}
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func run() error {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1 // without client-go's own brake, as the others have none
	config.UserAgent = "bench-controller-runtime"
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	version := schema.GroupVersion{Group: "bench.windlass.dev", Version: "v1"}
	scheme.AddKnownTypes(version, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(scheme, version)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	r := &reconciler{Client: manager.GetClient()}
	err = ctrl.NewControllerManagedBy(manager).
		For(&Greeting{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
	if err != nil {
		return err
	}
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		return err
	}
	return r.delays.print()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

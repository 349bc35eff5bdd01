// A small suite of an operator, as kubebuilder scaffolds them: an environment of its own, some objects, and its end.
// Prints how long each part took, in milliseconds, and the memory of the largest program, in MB, as JSON.
package envtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const objects = 20

var cluster client.Client

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	began := time.Now()
	environment := &envtest.Environment{}
	config, err := environment.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	started := time.Now()
	cluster, err = client.New(config, client.Options{})
	code := 1
	if err == nil {
		code = m.Run()
	}
	tested := time.Now()
	if err := environment.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	took := func(from, to time.Time) float64 { return float64(to.Sub(from).Microseconds()) / 1000 }
	figures := map[string]float64{
		"start": took(began, started), "tests": took(started, tested), "stop": took(tested, time.Now()),
	}
	// The largest of the programs that the environment started.
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &usage); err == nil {
		figures["memory"] = float64(usage.Maxrss) / 1024
	}
	line, _ := json.Marshal(figures)
	fmt.Println(string(line))
	return code
}

func TestObjects(t *testing.T) {
	ctx := context.Background()
	for number := range objects {
		object := core.ConfigMap{
			ObjectMeta: meta.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("config-%d", number)},
			Data:       map[string]string{"number": fmt.Sprint(number)},
		}
		if err := cluster.Create(ctx, &object); err != nil {
			t.Fatal(err)
		}
		object.Data["number"] = "changed"
		if err := cluster.Update(ctx, &object); err != nil {
			t.Fatal(err)
		}
	}
	var all core.ConfigMapList
	if err := cluster.List(ctx, &all, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if len(all.Items) < objects {
		t.Fatalf("%d objects", len(all.Items))
	}
}

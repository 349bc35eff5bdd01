// A program on client-go that does what controllers do, and prints what it saw: the same on every Kubernetes. The test runs
// it on the embedded API and on the reference, and compares.
//
// Arguments: a kubeconfig and a namespace that is there.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// One part of the program.
type part struct {
	name string
	run  func(ctx context.Context, config *rest.Config, namespace string) error
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: clients KUBECONFIG NAMESPACE")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	config.QPS, config.Burst = 500, 500
	config.UserAgent = "clients/1"
	parts := []part{
		{"typed", typed}, {"workloads", workloads}, {"pages", pages}, {"apply", applied}, {"dynamic", dynamics},
		{"watches", watches}, {"informers", informed}, {"election", elected}, {"discovery", discovered}, {"scale", scaled},
		{"metadata", metadataOnly},
	}
	failed := false
	for _, part := range parts {
		fmt.Printf("== %s\n", part.name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := part.run(ctx, config, os.Args[2]); err != nil {
			failed = true
			fmt.Printf("failed: %v\n", err)
		}
		cancel()
	}
	if failed {
		os.Exit(1)
	}
}

// protobuf is the configuration of a client that sends and takes protobuf.
func protobuf(config *rest.Config) *rest.Config {
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	typed.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return typed
}

// told prints what became of a request.
func told(what string, err error) {
	switch {
	case err == nil:
		fmt.Printf("%s: done\n", what)
	default:
		fmt.Printf("%s: %s: %s\n", what, apierrors.ReasonForError(err), strings.ReplaceAll(err.Error(), "\n", " "))
	}
}

// Measures controller-runtime's priority queue: what it costs to add 1,000 keys, get them and be done with them, when
// the queue holds 1,000 keys and when it holds 1,000,000, and how much memory a key takes.
//
// Output: one JSON object per line. The Rust side does the same steps on the same keys: integers from 0, added in order,
// all at one priority, then got and done one by one by a single worker.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

// figure is one measured value.
type figure struct {
	Bench   string  `json:"bench"`
	Subject string  `json:"subject"`
	Metric  string  `json:"metric"`
	Value   float64 `json:"value"`
	Unit    string  `json:"unit"`
}

// sizes are the numbers of keys, each with how often it is measured: the median counts.
var sizes = []struct {
	metric string
	keys   int
	rounds int
}{
	{"add_get_done_per_1000_at_1000_keys", 1_000, 201},
	{"add_get_done_per_1000_at_1000000_keys", 1_000_000, 3},
}

func main() {
	out := json.NewEncoder(os.Stdout)
	report := func(metric string, value float64, unit string) {
		if err := out.Encode(figure{"queue", "controller-runtime", metric, value, unit}); err != nil {
			os.Exit(1)
		}
	}
	for _, size := range sizes {
		report(size.metric, perThousand(size.keys, size.rounds), "us")
	}
	report("heap_per_key_at_1000000_keys", heapPerKey(1_000_000), "bytes")
}

// perThousand fills an empty queue with keys and drains it, rounds times, and returns the median of the microseconds
// that a thousand keys took.
func perThousand(keys, rounds int) float64 {
	queue := priorityqueue.New[int]("")
	defer queue.ShutDown()
	times := make([]float64, 0, rounds)
	for range rounds {
		start := time.Now()
		for key := range keys {
			queue.Add(key)
		}
		for range keys {
			key, _ := queue.Get()
			queue.Done(key)
		}
		times = append(times, float64(time.Since(start).Nanoseconds())/float64(keys))
	}
	slices.Sort(times)
	return times[len(times)/2]
}

// heapPerKey returns the live heap bytes per key, with this number of queued keys.
func heapPerKey(keys int) float64 {
	before := liveHeap()
	queue := priorityqueue.New[int]("")
	for key := range keys {
		queue.Add(key)
	}
	// Len moves what was added from the queue's buffer to its trees.
	if queue.Len() != keys {
		panic("the queue holds another number of keys than were added")
	}
	after := liveHeap()
	queue.ShutDown()
	return float64(after-before) / float64(keys)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

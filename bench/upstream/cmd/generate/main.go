// Command generate writes cluster files with the pods of upstream's scheduling benchmark.
//
// Upstream keeps that benchmark in its tests and makes the pods in memory. As a file, the same pods can be given to
// upstream and to us. The same arguments always give the same bytes.
package main

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func main() {
	diverse := flag.Int("diverse", 0, "write this many `pods` of five kinds: generic, zonal spread, hostname spread, zonal affinity and hostname anti-affinity")
	preferences := flag.Int("preferences", 0, "write this many `pods` that only have preferences")
	seed := flag.Int64("seed", 42, "seed of the random choices")
	zone := flag.String("zone", "test-zone-a", "zone that pods with preferences prefer; it should exist in the instance types")
	output := flag.String("o", "-", "output `file`, gzipped if the name ends in .gz; - is standard output")
	flag.Parse()

	if err := run(*diverse, *preferences, *seed, *zone, *output); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(diverse, preferences int, seed int64, zone, output string) error {
	if (diverse > 0) == (preferences > 0) {
		return fmt.Errorf("give either -diverse or -preferences with a number of pods")
	}
	g := generator{random: rand.New(rand.NewSource(seed))}
	var pods []*corev1.Pod
	if diverse > 0 {
		pods = g.diverse(diverse)
	} else {
		pods = g.preferring(preferences, zone)
	}
	return write(output, clusterWith(pods))
}

func write(path string, cluster any) (err error) {
	var out io.Writer = os.Stdout
	if path != "-" {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer func() {
			if closing := file.Close(); err == nil {
				err = closing
			}
		}()
		out = file
	}
	if strings.HasSuffix(path, ".gz") {
		// The header stays without name and time, which would differ from run to run.
		packed := gzip.NewWriter(out)
		defer func() {
			if closing := packed.Close(); err == nil {
				err = closing
			}
		}()
		out = packed
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(cluster)
}

package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestTheSameArgumentsGiveTheSameBytes(t *testing.T) {
	var sums []string
	for i := range 2 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.json.gz", i))
		if err := run(103, 0, 42, "", path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(content)))
	}
	if sums[0] != sums[1] {
		t.Error(sums)
	}
}

func TestDiversePodsAreFifthsAndGenericRest(t *testing.T) {
	g := generator{random: rand.New(rand.NewSource(42))}
	counts := map[string]int{}
	uids := map[string]bool{}
	for _, pod := range g.diverse(103) {
		uids[string(pod.UID)] = true
		switch {
		case len(pod.Spec.TopologySpreadConstraints) > 0:
			counts["spread "+pod.Spec.TopologySpreadConstraints[0].TopologyKey]++
		case pod.Spec.Affinity == nil:
			counts["generic"]++
		case pod.Spec.Affinity.PodAffinity != nil:
			counts["together"]++
		default:
			counts["apart"]++
		}
	}
	expected := map[string]int{
		"generic": 23, "together": 20, "apart": 20,
		"spread " + corev1.LabelTopologyZone: 20, "spread " + corev1.LabelHostname: 20,
	}
	if fmt.Sprint(counts) != fmt.Sprint(expected) || len(uids) != 103 {
		t.Errorf("%v, %d UIDs", counts, len(uids))
	}
}

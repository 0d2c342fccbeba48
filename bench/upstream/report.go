package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
)

// document is the JSON both programs print. Lists are sorted, so that equal decisions make equal documents.
type document struct {
	NewNodeClaims []nodeClaim         `json:"newNodeClaims"`
	Existing      map[string][]string `json:"existing"`
	Errors        map[string]string   `json:"errors"`
	TotalPrice    float64             `json:"totalPrice"`
	// Pods counts the pods given to Solve.
	Pods    int     `json:"pods"`
	Timings timings `json:"timings"`
}

type nodeClaim struct {
	NodePool      string   `json:"nodePool"`
	InstanceTypes []string `json:"instanceTypes"`
	// Price, Zone and CapacityType are those of the cheapest offering the claim can launch.
	Price        float64                                   `json:"price"`
	Zone         string                                    `json:"zone"`
	CapacityType string                                    `json:"capacityType"`
	Pods         []string                                  `json:"pods"`
	Requirements []v1.NodeSelectorRequirementWithMinValues `json:"requirements"`
}

type timings struct {
	ReadMs     float64 `json:"readMs"`
	SnapshotMs float64 `json:"snapshotMs"`
	SolveMs    float64 `json:"solveMs"`
}

func report(o outcome) document {
	d := document{
		NewNodeClaims: []nodeClaim{},
		Existing:      map[string][]string{},
		Errors:        map[string]string{},
		Pods:          len(o.pods),
		Timings:       timings{SnapshotMs: milliseconds(o.snapshot), SolveMs: milliseconds(o.solve)},
	}
	for _, claim := range o.results.NewNodeClaims {
		d.NewNodeClaims = append(d.NewNodeClaims, describe(claim))
	}
	// No two claims share a pod, so this order is total.
	slices.SortFunc(d.NewNodeClaims, func(a, b nodeClaim) int { return slices.Compare(a.Pods, b.Pods) })
	for _, claim := range d.NewNodeClaims {
		d.TotalPrice += claim.Price
	}
	for _, node := range o.results.ExistingNodes {
		if len(node.Pods) > 0 {
			d.Existing[node.Name()] = names(node.Pods)
		}
	}
	for pod, err := range o.results.PodErrors {
		d.Errors[name(pod)] = err.Error()
	}
	for pod, err := range o.ignored {
		d.Errors[name(pod)] = err.Error()
	}
	return d
}

func describe(claim *scheduling.NodeClaim) nodeClaim {
	type priced struct {
		name     string
		offering *cloudprovider.Offering
	}
	types := make([]priced, 0, len(claim.InstanceTypeOptions))
	for _, instanceType := range claim.InstanceTypeOptions {
		types = append(types, priced{instanceType.Name, cheapest(instanceType.Offerings.Launchable().Compatible(claim.Requirements))})
	}
	// Upstream leaves types of the same price in no particular order.
	slices.SortFunc(types, func(a, b priced) int {
		return cmp.Or(cmp.Compare(price(a.offering), price(b.offering)), cmp.Compare(a.name, b.name))
	})
	described := nodeClaim{NodePool: claim.NodePoolName, InstanceTypes: []string{}, Pods: names(claim.Pods)}
	for _, t := range types {
		described.InstanceTypes = append(described.InstanceTypes, t.name)
	}
	if len(types) > 0 && types[0].offering != nil {
		offering := types[0].offering
		described.Price, described.Zone, described.CapacityType = offering.Price, offering.Zone(), offering.CapacityType()
	}
	// These are the requirements as the NodeClaim object would carry them. ToNodeClaim narrows the claim, so it is last.
	described.Requirements = claim.ToNodeClaim().Spec.Requirements
	for i := range described.Requirements {
		slices.Sort(described.Requirements[i].Values)
	}
	slices.SortFunc(described.Requirements, func(a, b v1.NodeSelectorRequirementWithMinValues) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator))
	})
	return described
}

// cheapest breaks ties by name: on-demand prices are the same in all zones.
func cheapest(offerings cloudprovider.Offerings) *cloudprovider.Offering {
	if len(offerings) == 0 {
		return nil
	}
	return slices.MinFunc(offerings, func(a, b *cloudprovider.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Zone(), b.Zone()), cmp.Compare(a.CapacityType(), b.CapacityType()))
	})
}

func price(offering *cloudprovider.Offering) float64 {
	if offering == nil {
		return math.Inf(1)
	}
	return offering.Price
}

func name(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

func names(pods []*corev1.Pod) []string {
	sorted := make([]string, 0, len(pods))
	for _, pod := range pods {
		sorted = append(sorted, name(pod))
	}
	slices.Sort(sorted)
	return sorted
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// summary is the line for people; the document itself can be long.
func (d document) summary(solveCPU time.Duration) string {
	placed, onExisting := 0, 0
	for _, claim := range d.NewNodeClaims {
		placed += len(claim.Pods)
	}
	for _, pods := range d.Existing {
		onExisting += len(pods)
	}
	return fmt.Sprintf("%d pods: %d on %d new nodes for %.4f an hour, %d on %d existing nodes, %d errors; snapshot %.0f ms, solve %.0f ms (%.0f ms of processor time)",
		d.Pods, placed, len(d.NewNodeClaims), d.TotalPrice, onExisting, len(d.Existing), len(d.Errors), d.Timings.SnapshotMs, d.Timings.SolveMs, milliseconds(solveCPU))
}

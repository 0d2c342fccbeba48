package main

import (
	"crypto/sha1"
	"fmt"
	"math/rand"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The values upstream's benchmark draws from.
var (
	labelValues  = []string{"a", "b", "c", "d", "e", "f", "g"}
	cpuRequests  = []string{"100m", "250m", "500m", "1000m", "1500m"}
	memoryInMebi = []string{"100Mi", "256Mi", "512Mi", "1024Mi", "2048Mi", "4096Mi"}
)

// The label keys of upstream's benchmark, the odd spelling included.
const (
	spreadLabel   = "my-label"
	affinityLabel = "my-affininity"
)

// sharedLabels are carried by all pods that keep away from each other.
var sharedLabels = map[string]string{"app": "nginx"}

// generator makes pods. It draws in a fixed order, for each pod its label, its selector's label, CPU and memory, which
// is also upstream's: with upstream's seed the pods are those of its benchmark, apart from names and UIDs.
type generator struct {
	random *rand.Rand
	made   int
}

func (g *generator) choose(from []string) string { return from[g.random.Intn(len(from))] }

func (g *generator) label(key string) map[string]string {
	return map[string]string{key: g.choose(labelValues)}
}

func (g *generator) requests() corev1.ResourceList {
	cpu := resource.MustParse(g.choose(cpuRequests))
	memory := resource.MustParse(g.choose(memoryInMebi))
	return corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
}

// diverse makes a fifth of each kind, in blocks, and fills up with generic pods.
func (g *generator) diverse(count int) []*corev1.Pod {
	fifth := count / 5
	var pods []*corev1.Pod
	add := func(count int, next func() *corev1.Pod) {
		for range count {
			pods = append(pods, next())
		}
	}
	add(fifth, g.generic)
	add(fifth, func() *corev1.Pod { return g.spread(corev1.LabelTopologyZone) })
	add(fifth, func() *corev1.Pod { return g.spread(corev1.LabelHostname) })
	add(fifth, func() *corev1.Pod { return g.together(corev1.LabelTopologyZone) })
	add(fifth, func() *corev1.Pod { return g.apart(corev1.LabelHostname) })
	add(count-len(pods), g.generic)
	return pods
}

func (g *generator) generic() *corev1.Pod {
	labels := g.label(spreadLabel)
	return g.pod("generic", labels, g.requests())
}

// spread selects pods by a label of its own draw, so most of these pods do not count themselves.
func (g *generator) spread(key string) *corev1.Pod {
	labels := g.label(spreadLabel)
	selected := g.label(spreadLabel)
	pod := g.pod("spread", labels, g.requests())
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       key,
		WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: selected},
	}}
	return pod
}

// together wants pods of its own label beside it. Affinity to others could fail for a lack of them.
func (g *generator) together(key string) *corev1.Pod {
	labels := g.label(affinityLabel)
	pod := g.pod("together", labels, g.requests())
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(labels, key)},
	}}
	return pod
}

// apart keeps away from all pods of its kind.
func (g *generator) apart(key string) *corev1.Pod {
	pod := g.pod("apart", sharedLabels, g.requests())
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(sharedLabels, key)},
	}}
	return pod
}

// preferring makes equal pods: one draw of CPU and memory serves all. Each prefers a zone and a node of its own, which
// it can have, and a zone of its own, which only the first few can. So nearly every pod has to be relaxed.
func (g *generator) preferring(count int, zone string) []*corev1.Pod {
	requests := g.requests()
	var pods []*corev1.Pod
	for range count {
		pod := g.pod("preferring", sharedLabels, requests)
		pod.Spec.Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
					Weight: 1,
					Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
						Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone},
					}}},
				}},
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{
					{Weight: 10, PodAffinityTerm: term(sharedLabels, corev1.LabelTopologyZone)},
					{Weight: 1, PodAffinityTerm: term(sharedLabels, corev1.LabelHostname)},
				},
			},
		}
		pods = append(pods, pod)
	}
	return pods
}

func term(labels map[string]string, key string) corev1.PodAffinityTerm {
	return corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: key}
}

// pod is pending, and kube-scheduler has given up on it: only such pods are provisioned for.
func (g *generator) pod(kind string, labels map[string]string, requests corev1.ResourceList) *corev1.Pod {
	name := fmt.Sprintf("%s-%05d", kind, g.made)
	g.made++
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			Namespace:         "default",
			UID:               uidFor(name),
			CreationTimestamp: started,
			Labels:            labels,
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:      "main",
				Image:     "pause",
				Resources: corev1.ResourceRequirements{Requests: requests},
			}},
			RestartPolicy: corev1.RestartPolicyAlways,
			SchedulerName: corev1.DefaultSchedulerName,
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{{
				Type:               corev1.PodScheduled,
				Status:             corev1.ConditionFalse,
				Reason:             corev1.PodReasonUnschedulable,
				Message:            "0/0 nodes are available",
				LastTransitionTime: started,
			}},
		},
	}
}

// uidFor makes a UUID of version 5 from a name. The UID decides the order among equal pods, so it should look random
// as in a cluster, yet be the same each time.
func uidFor(name string) types.UID {
	hash := sha1.Sum([]byte("karpenter-bench/" + name))
	hash[6] = hash[6]&0x0f | 0x50
	hash[8] = hash[8]&0x3f | 0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", hash[:4], hash[4:6], hash[6:8], hash[8:10], hash[10:16]))
}

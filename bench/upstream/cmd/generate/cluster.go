package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// started is when everything in the file was created. Equal times leave the order among equal pods to their UIDs.
var started = metav1.NewTime(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))

type object = map[string]any

// clusterWith wraps pods in a List together with what they need to be provisioned for: a ready NodePool without limits
// and its node class. Both are plain maps, so that the generator depends on nothing but the API types of pods.
func clusterWith(pods []*corev1.Pod) object {
	items := []any{
		object{
			"apiVersion": "karpenter.sh/v1",
			"kind":       "NodePool",
			"metadata":   metadata("default", "00000000-0000-5000-8000-00000000000a"),
			"spec": object{
				"template": object{
					"spec": object{
						"nodeClassRef": object{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
						"requirements": []object{{"key": "kubernetes.io/os", "operator": "In", "values": []string{"linux"}}},
						"expireAfter":  "Never",
					},
				},
				"disruption": object{
					"consolidationPolicy": "WhenEmptyOrUnderutilized",
					"consolidateAfter":    "0s",
					"budgets":             []object{{"nodes": "10%"}},
				},
			},
			"status": conditions("ValidationSucceeded", "NodeClassReady", "Ready"),
		},
		object{
			"apiVersion": "karpenter.kwok.sh/v1alpha1",
			"kind":       "KWOKNodeClass",
			"metadata":   metadata("default", "00000000-0000-5000-8000-00000000000b"),
			"spec":       object{},
			"status":     conditions("Ready"),
		},
	}
	for _, pod := range pods {
		items = append(items, pod)
	}
	return object{
		"apiVersion": "v1",
		"kind":       "List",
		"metadata":   object{"resourceVersion": ""},
		"items":      items,
	}
}

func metadata(name, uid string) object {
	return object{"name": name, "uid": uid, "generation": 1, "creationTimestamp": started}
}

func conditions(types ...string) object {
	var list []object
	for _, t := range types {
		list = append(list, object{
			"type": t, "status": "True", "reason": t, "message": "",
			"lastTransitionTime": started, "observedGeneration": 1,
		})
	}
	return object{"conditions": list}
}

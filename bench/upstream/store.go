package main

import (
	"context"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// store is a read-only client over objects in memory.
//
// In production upstream reads from an informer cache, and it does so inside Solve too: a relaxed preference can make
// a new topology group, which counts the pods of a namespace. The fake client of controller-runtime goes through JSON
// for each of these reads and would charge upstream for time that it does not spend in production. Like the cache,
// the store looks up by key, namespace or index and hands out deep copies.
//
// The embedded client is nil on purpose: a provisioning pass writes nothing before it creates NodeClaims, so any other
// call is a mistake that must not go unnoticed.
type store struct {
	client.Client
	tables map[schema.GroupVersionKind]*table
}

// table holds the objects of one kind. Each list keeps the order of the files, which makes runs repeatable;
// the informer cache has no order.
type table struct {
	all         []client.Object
	byKey       map[client.ObjectKey]int
	byNamespace map[string][]client.Object
	byField     map[string][]client.Object
}

// indexes are the field indexes upstream's operator registers, as far as a provisioning pass can ask for them.
var indexes = map[string]func(client.Object) (value string, indexed bool){
	"spec.nodeName": func(object client.Object) (string, bool) {
		switch object := object.(type) {
		case *corev1.Pod:
			return object.Spec.NodeName, true
		case *storagev1.VolumeAttachment:
			return object.Spec.NodeName, true
		}
		return "", false
	},
	"spec.providerID": func(object client.Object) (string, bool) {
		node, ok := object.(*corev1.Node)
		if !ok {
			return "", false
		}
		return node.Spec.ProviderID, true
	},
	"status.providerID": func(object client.Object) (string, bool) {
		claim, ok := object.(*v1.NodeClaim)
		if !ok {
			return "", false
		}
		return claim.Status.ProviderID, true
	},
}

func newStore(objects []client.Object) (*store, error) {
	s := &store{tables: map[schema.GroupVersionKind]*table{}}
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme.Scheme)
		if err != nil {
			return nil, err
		}
		t, ok := s.tables[gvk]
		if !ok {
			t = &table{
				byKey:       map[client.ObjectKey]int{},
				byNamespace: map[string][]client.Object{},
				byField:     map[string][]client.Object{},
			}
			s.tables[gvk] = t
		}
		key := client.ObjectKeyFromObject(object)
		if position, ok := t.byKey[key]; ok {
			t.all[position] = object
			continue
		}
		t.byKey[key] = len(t.all)
		t.all = append(t.all, object)
	}
	// The lookup lists are built last, when replaced objects are gone.
	for _, t := range s.tables {
		for _, object := range t.all {
			namespace := object.GetNamespace()
			t.byNamespace[namespace] = append(t.byNamespace[namespace], object)
			for field, value := range indexes {
				if value, ok := value(object); ok {
					key := fieldKey(field, value)
					t.byField[key] = append(t.byField[key], object)
				}
			}
		}
	}
	return s, nil
}

func fieldKey(field, value string) string { return field + "=" + value }

// objectsOf returns all objects of one kind, which the caller must not change.
func objectsOf[T client.Object](s *store) []T {
	var found []T
	for _, t := range s.tables {
		if len(t.all) == 0 {
			continue
		}
		if _, ok := t.all[0].(T); !ok {
			continue
		}
		for _, object := range t.all {
			found = append(found, object.(T))
		}
	}
	return found
}

func (s *store) Scheme() *runtime.Scheme { return scheme.Scheme }

func (s *store) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(out, scheme.Scheme)
	if err != nil {
		return err
	}
	t := s.tables[gvk]
	if t == nil {
		return notFound(gvk, key)
	}
	position, ok := t.byKey[key]
	if !ok {
		// Upstream asks for volumes with the namespace of the pod. The informer cache drops the namespace for kinds
		// that have none.
		position, ok = t.byKey[client.ObjectKey{Name: key.Name}]
	}
	if !ok {
		return notFound(gvk, key)
	}
	copied := t.all[position].DeepCopyObject()
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(copied).Elem())
	return nil
}

// notFound names the kind where an API server names the resource, as the informer cache does; users see these texts.
func notFound(gvk schema.GroupVersionKind, key client.ObjectKey) error {
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

func (s *store) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	listGVK, err := apiutil.GVKForObject(out, scheme.Scheme)
	if err != nil {
		return err
	}
	gvk := listGVK.GroupVersion().WithKind(listGVK.Kind[:len(listGVK.Kind)-len("List")])
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	candidates, err := s.candidates(gvk, &options)
	if err != nil {
		return err
	}
	selector := options.LabelSelector
	if selector == nil {
		selector = labels.Everything()
	}
	items := make([]runtime.Object, 0, len(candidates))
	for _, object := range candidates {
		if options.Namespace != "" && object.GetNamespace() != options.Namespace {
			continue
		}
		if !selector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if options.UnsafeDisableDeepCopy != nil && *options.UnsafeDisableDeepCopy {
			items = append(items, object)
		} else {
			items = append(items, object.DeepCopyObject())
		}
	}
	return meta.SetList(out, items)
}

// candidates narrows the objects down by the best lookup list there is.
func (s *store) candidates(gvk schema.GroupVersionKind, options *client.ListOptions) ([]client.Object, error) {
	t := s.tables[gvk]
	if t == nil {
		return nil, nil
	}
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		requirements := options.FieldSelector.Requirements()
		if len(requirements) != 1 || indexes[requirements[0].Field] == nil {
			return nil, fmt.Errorf("listing %s by %s: there is no such index", gvk.Kind, options.FieldSelector)
		}
		return t.byField[fieldKey(requirements[0].Field, requirements[0].Value)], nil
	}
	if options.Namespace != "" {
		return t.byNamespace[options.Namespace], nil
	}
	return t.all, nil
}

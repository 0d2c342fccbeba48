package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// readFile returns the content of a file, unpacked if it is gzipped.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffered := bufio.NewReader(file)
	// The content decides, not the name: a two-byte signature starts every gzip file.
	if signature, _ := buffered.Peek(2); !bytes.Equal(signature, []byte{0x1f, 0x8b}) {
		return io.ReadAll(buffered)
	}
	unpacked, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return content, nil
}

// readClusterFiles returns the objects of all files in their order. Kinds that upstream does not know are left out.
func readClusterFiles(paths []string) ([]client.Object, error) {
	var objects []client.Object
	unknown := map[string]int{}
	decoder := serializer.NewCodecFactory(scheme.Scheme).UniversalDeserializer()
	for _, path := range paths {
		content, err := readFile(path)
		if err != nil {
			return nil, err
		}
		items, err := listItems(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		for i, item := range items {
			decoded, gvk, err := decoder.Decode(item, nil, nil)
			if runtime.IsNotRegisteredError(err) {
				unknown[gvk.Kind]++
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s: item %d: %w", path, i, err)
			}
			object, ok := decoded.(client.Object)
			if !ok {
				return nil, fmt.Errorf("%s: item %d: %s has no metadata", path, i, gvk.Kind)
			}
			objects = append(objects, completed(object))
		}
	}
	for kind, count := range unknown {
		fmt.Fprintf(os.Stderr, "left out %d object(s) of kind %s, which upstream does not know\n", count, kind)
	}
	return objects, nil
}

// listItems splits a list into its items; a single object counts as a list of one.
func listItems(content []byte) ([]json.RawMessage, error) {
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &list); err != nil {
		return nil, err
	}
	if list.Kind != "List" {
		return []json.RawMessage{content}, nil
	}
	return list.Items, nil
}

// completed adds what a live cluster would have and a file written by hand may lack.
func completed(object client.Object) client.Object {
	switch object := object.(type) {
	case *corev1.Pod:
		// Upstream keys its data by UID, so pods without one would share it.
		// The name keeps the order among equal pods, where the UID decides, predictable.
		if object.UID == "" {
			object.UID = types.UID(object.Namespace + "/" + object.Name)
		}
	case *v1.NodePool:
		// A NodePool without a status counts as ready.
		if len(object.Status.Conditions) == 0 {
			object.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
			object.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
		}
	}
	return object
}

// readInstanceTypes builds instance types with kwok's own reader, which takes either the built-in data or a plain file.
func readInstanceTypes(ctx context.Context, path string) ([]*cloudprovider.InstanceType, error) {
	if path != "" {
		content, err := readFile(path)
		if err != nil {
			return nil, err
		}
		// The reader opens a path and does not unpack, hence the copy.
		plain, err := os.CreateTemp("", "instance-types-*.json")
		if err != nil {
			return nil, err
		}
		defer os.Remove(plain.Name())
		if _, err := plain.Write(content); err != nil {
			return nil, err
		}
		if err := plain.Close(); err != nil {
			return nil, err
		}
		path = plain.Name()
	}
	ctx = kwokoptions.ToContext(ctx, &kwokoptions.Options{InstanceTypesFilePath: path})
	instanceTypes, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return nil, fmt.Errorf("instance types: %w", err)
	}
	return instanceTypes, nil
}

package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var messages = map[string][]string{}

// A type in one word, as in the shapes, and `n` for numbers that may be texts, `r` for JSON in bytes.
func wire(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "q"
	case reflect.TypeFor[meta.Time](), reflect.TypeFor[meta.MicroTime]():
		return "t"
	case reflect.TypeFor[intstr.IntOrString]():
		return "n"
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[meta.FieldsV1]():
		return "r"
	case reflect.TypeFor[meta.Duration]():
		return "d"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + wire(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[]" + wire(t.Elem())
	case reflect.Map:
		return "{}" + wire(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Struct:
		message(t)
		return "@" + name(t)
	case reflect.Float32, reflect.Float64:
		return "f"
	case reflect.Interface:
		return "x"
	default:
		return "i"
	}
}

// Fields are `number:name:type`; those without a name lend their own fields to the surrounding object.
func message(t reflect.Type) {
	if _, done := messages[name(t)]; done {
		return
	}
	messages[name(t)] = nil
	var all []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("protobuf"), ",")
		if len(tag) < 2 {
			continue
		}
		json := strings.Split(field.Tag.Get("json"), ",")[0]
		all = append(all, fmt.Sprintf("%s:%s:%s", tag[1], json, wire(field.Type)))
	}
	messages[name(t)] = all
}

func printProtobuf(scheme *runtime.Scheme) {
	var roots []string
	for kind, t := range scheme.AllKnownTypes() {
		if kind.Version != "v1" || strings.HasSuffix(kind.Kind, "List") || strings.HasSuffix(kind.Kind, "Options") &&
			kind.Kind != "DeleteOptions" || kind.Kind == "WatchEvent" || kind.Group == "apiextensions.k8s.io" {
			continue
		}
		message(t)
		roots = append(roots, fmt.Sprintf("%s/%s=%s", kind.Group, kind.Kind, name(t)))
	}
	sort.Strings(roots)
	for _, root := range roots {
		fmt.Println(root)
	}
	var names []string
	for one := range messages {
		names = append(names, one)
	}
	sort.Strings(names)
	for _, one := range names {
		fmt.Println(one, strings.Join(messages[one], " "))
	}
}

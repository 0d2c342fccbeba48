// Prints the JSON shape of every type of the served API groups, as Go's encoding sees it.
//
// Run it here with `go run . > ../../crates/embedded/data/shapes.txt`, and with `go run . protobuf` for the numbers
// of the fields in protobuf (`data/protobuf.txt`).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	batch "k8s.io/api/batch/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	resources "k8s.io/api/resource/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	crd "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	lines  = map[string][]string{}
	custom = reflect.TypeFor[json.Marshaler]()
)

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return parts[len(parts)-2] + "." + t.Name()
}

// A type in one word: `*` pointer, `[]` list, `{}` map, a letter for scalars, `@` and a name for structs.
func word(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return "q"
	case reflect.TypeFor[meta.Time]():
		return "t"
	case reflect.TypeFor[meta.MicroTime]():
		return "u"
	}
	if t.Kind() == reflect.Pointer {
		return "*" + word(t.Elem())
	}
	if t.Implements(custom) || reflect.PointerTo(t).Implements(custom) {
		return "x"
	}
	switch t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y"
		}
		return "[]" + word(t.Elem())
	case reflect.Map:
		return "{}" + word(t.Elem())
	case reflect.String:
		return "s"
	case reflect.Bool:
		return "b"
	case reflect.Struct:
		visit(t)
		return "@" + name(t)
	case reflect.Interface:
		return "x"
	case reflect.Float32, reflect.Float64:
		return "f"
	default:
		return "i"
	}
}

// Fields are `name:type`, with `!` for those written even when empty and `~` for structs left out when empty.
func fields(t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		field := t.Field(i)
		tag := strings.Split(field.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		if tag[0] == "" {
			all = append(all, fields(field.Type)...)
			continue
		}
		flag := "!"
		for _, option := range tag[1:] {
			switch option {
			case "omitempty":
				if flag == "!" {
					flag = ""
				}
			case "omitzero":
				flag = "~"
			}
		}
		all = append(all, tag[0]+":"+word(field.Type)+flag)
	}
	return all
}

func visit(t reflect.Type) {
	if _, done := lines[name(t)]; done {
		return
	}
	lines[name(t)] = nil
	lines[name(t)] = fields(t)
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admission.AddToScheme, apps.AddToScheme, authentication.AddToScheme, authorization.AddToScheme,
		autoscaling.AddToScheme, batch.AddToScheme, coordination.AddToScheme, core.AddToScheme,
		discovery.AddToScheme, events.AddToScheme, networking.AddToScheme, node.AddToScheme, policy.AddToScheme,
		rbac.AddToScheme, resources.AddToScheme, scheduling.AddToScheme, storage.AddToScheme, crd.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	if len(os.Args) > 1 && os.Args[1] == "protobuf" {
		printProtobuf(scheme)
		return
	}
	var roots []string
	for kind, t := range scheme.AllKnownTypes() {
		_, object := reflect.New(t).Interface().(meta.Object)
		if kind.Version == "v1" && object {
			visit(t)
			roots = append(roots, fmt.Sprintf("%s/%s=%s", kind.Group, kind.Kind, name(t)))
		}
	}
	sort.Strings(roots)
	for _, root := range roots {
		fmt.Println(root)
	}
	var names []string
	for one := range lines {
		names = append(names, one)
	}
	sort.Strings(names)
	for _, one := range names {
		fmt.Println(one, strings.Join(lines[one], " "))
	}
}

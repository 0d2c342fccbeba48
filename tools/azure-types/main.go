// Reads exchanges with Azure, one line of JSON each, and says what Microsoft's own types do not understand in them: a
// member that they do not have, or a value of another type. It ends with 1 if there is anything.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v7"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/containerservice/armcontainerservice/v9"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/resourcegraph/armresourcegraph"
)

type exchange struct {
	Kind   string          `json:"kind"`
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Name   string          `json:"name"`
	Body   json.RawMessage `json:"body"`
	Status int             `json:"status"`
	Answer json.RawMessage `json:"answer"`
}

// What a request carries, by kind and method.
var requests = map[string]func() any{
	"VirtualMachine PUT":     func() any { return new(armcompute.VirtualMachine) },
	"VirtualMachine PATCH":   func() any { return new(armcompute.VirtualMachineUpdate) },
	"Extension PUT":          func() any { return new(armcompute.VirtualMachineExtension) },
	"Extension PATCH":        func() any { return new(armcompute.VirtualMachineExtensionUpdate) },
	"NetworkInterface PUT":   func() any { return new(armnetwork.Interface) },
	"NetworkInterface PATCH": func() any { return new(armnetwork.TagsObject) },
	"Machine PUT":            func() any { return new(armcontainerservice.Machine) },
	"DeleteMachines POST":    func() any { return new(armcontainerservice.AgentPoolDeleteMachinesParameter) },
	"ResourceGraph POST":     func() any { return new(armresourcegraph.QueryRequest) },
}

// What a resource looks like, by kind.
var resources = map[string]func() any{
	"VirtualMachine":    func() any { return new(armcompute.VirtualMachine) },
	"Extension":         func() any { return new(armcompute.VirtualMachineExtension) },
	"DiskEncryptionSet": func() any { return new(armcompute.DiskEncryptionSet) },
	"NetworkInterface":  func() any { return new(armnetwork.Interface) },
	"SecurityGroup":     func() any { return new(armnetwork.SecurityGroup) },
	"LoadBalancer":      func() any { return new(armnetwork.LoadBalancer) },
	"VirtualNetwork":    func() any { return new(armnetwork.VirtualNetwork) },
	"Subnet":            func() any { return new(armnetwork.Subnet) },
	"ManagedCluster":    func() any { return new(armcontainerservice.ManagedCluster) },
	"AgentPool":         func() any { return new(armcontainerservice.AgentPool) },
	"Machine":           func() any { return new(armcontainerservice.Machine) },
	"ResourceGraph":     func() any { return new(armresourcegraph.QueryResponse) },
}

// What a list looks like, by kind.
var lists = map[string]func() any{
	"Sku":              func() any { return new(armcompute.ResourceSKUsResult) },
	"Usage":            func() any { return new(armcompute.ListUsagesResult) },
	"CommunityVersion": func() any { return new(armcompute.CommunityGalleryImageVersionList) },
	"NodeImageVersion": func() any { return new(armcontainerservice.NodeImageVersionsListResult) },
	"SecurityGroup":    func() any { return new(armnetwork.SecurityGroupListResult) },
	"LoadBalancer":     func() any { return new(armnetwork.LoadBalancerListResult) },
	"Machine":          func() any { return new(armcontainerservice.MachineListResult) },
	"AgentPool":        func() any { return new(armcontainerservice.AgentPoolListResult) },
}

func main() {
	problems := map[string]int{}
	looked := 0
	input := bufio.NewScanner(os.Stdin)
	input.Buffer(nil, 64<<20)
	for input.Scan() {
		var each exchange
		if err := json.Unmarshal(input.Bytes(), &each); err != nil {
			problems[fmt.Sprintf("a line is no exchange: %v", err)]++
			continue
		}
		if make, ok := requests[each.Kind+" "+each.Method]; ok {
			looked++
			understand("request", each, each.Body, make(), problems)
		}
		if each.Status >= 200 && each.Status < 300 && len(each.Answer) > 0 && string(each.Answer) != "null" {
			make, ok := resources[each.Kind]
			if list, isList := lists[each.Kind]; isList && (each.Name == "" || !ok) {
				make, ok = list, true
			}
			if ok {
				looked++
				understand("answer", each, each.Answer, make(), problems)
			}
		}
	}
	if err := input.Err(); err != nil {
		problems[err.Error()]++
	}
	var sorted []string
	for problem := range problems {
		sorted = append(sorted, problem)
	}
	sort.Strings(sorted)
	for _, problem := range sorted {
		fmt.Printf("%s (%d times)\n", problem, problems[problem])
	}
	fmt.Printf("%d bodies looked at\n", looked)
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// Reads a body into a type and writes it again: what is then missing is not known to the type.
func understand(what string, of exchange, body []byte, into any, problems map[string]int) {
	place := fmt.Sprintf("%s of %s %s", what, of.Method, of.Kind)
	if err := json.Unmarshal(body, into); err != nil {
		problems[fmt.Sprintf("%s: %v", place, err)]++
		return
	}
	written, err := json.Marshal(into)
	if err != nil {
		problems[fmt.Sprintf("%s: %v", place, err)]++
		return
	}
	compare(place, "", decoded(body), decoded(written), problems)
}

func decoded(text []byte) any {
	var value any
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	if err := reader.Decode(&value); err != nil {
		return err.Error()
	}
	return value
}

func compare(place, path string, sent, understood any, problems map[string]int) {
	switch sent := sent.(type) {
	case nil:
	case map[string]any:
		object, ok := understood.(map[string]any)
		if !ok {
			problems[fmt.Sprintf("%s: %s is not an object to Microsoft's type", place, path)]++
			return
		}
		for name, value := range sent {
			inside := strings.TrimPrefix(path+"."+name, ".")
			found, ok := object[name]
			if !ok && value != nil {
				problems[fmt.Sprintf("%s: Microsoft's type has no %s", place, inside)]++
				continue
			}
			compare(place, inside, value, found, problems)
		}
	case []any:
		list, ok := understood.([]any)
		if !ok || len(list) != len(sent) {
			problems[fmt.Sprintf("%s: %s is another list to Microsoft's type", place, path)]++
			return
		}
		for number, value := range sent {
			compare(place, path+"[]", value, list[number], problems)
		}
	default:
		if fmt.Sprint(sent) != fmt.Sprint(understood) && !sameTime(sent, understood) {
			problems[fmt.Sprintf("%s: %s is %v, and %v to Microsoft's type", place, path, sent, understood)]++
		}
	}
}

func sameTime(one, other any) bool {
	first, errFirst := time.Parse(time.RFC3339Nano, fmt.Sprint(one))
	second, errSecond := time.Parse(time.RFC3339Nano, fmt.Sprint(other))
	return errFirst == nil && errSecond == nil && first.Equal(second)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
)

func init() { log.SetLogger(logging.NopLogger) }

const readyPool = `{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"default"},
"spec":{"template":{"spec":{"nodeClassRef":{"group":"karpenter.kwok.sh","kind":"KWOKNodeClass","name":"default"},
"requirements":[{"key":"kubernetes.io/arch","operator":"In","values":["amd64"]}]}}}}`

const nodeWithRoom = `{"apiVersion":"v1","kind":"Node",
"metadata":{"name":"roomy","labels":{"kubernetes.io/hostname":"roomy","topology.kubernetes.io/zone":"test-zone-a"}},
"spec":{"providerID":"roomy"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"3"}}}`

// pending is a pod as kube-scheduler leaves it behind; extra is spliced into its spec.
func pending(name, cpu, extra string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default"},
"spec":{%s"containers":[{"name":"main","image":"pause","resources":{"requests":{"cpu":%q}}}]},
"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`, name, extra, cpu)
}

// load reads the objects the way the program does, from a file.
func load(t *testing.T, arguments []string, items ...string) (context.Context, []client.Object) {
	t.Helper()
	list := `{"apiVersion":"v1","kind":"List","items":[`
	for i, item := range items {
		if i > 0 {
			list += ","
		}
		list += item
	}
	path := filepath.Join(t.TempDir(), "cluster.json")
	if err := os.WriteFile(path, []byte(list+"]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects, err := readClusterFiles([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := upstreamContext(context.Background(), arguments)
	if err != nil {
		t.Fatal(err)
	}
	return ctx, objects
}

func pass(t *testing.T, arguments []string, items ...string) document {
	t.Helper()
	ctx, objects := load(t, arguments, items...)
	catalogue, err := readInstanceTypes(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(catalogue) != 144 {
		t.Fatalf("kwok has %d built-in types, not 144", len(catalogue))
	}
	decided, err := solve(ctx, objects, catalogue, 0)
	if err != nil {
		t.Fatal(err)
	}
	return report(decided)
}

// Our pass is put together from upstream's parts. On a cluster where nothing is left to chance it must decide what
// upstream's own Schedule decides.
func TestThePassDecidesWhatScheduleDecides(t *testing.T) {
	items := []string{readyPool, nodeWithRoom}
	for i := range 20 {
		items = append(items, pending(fmt.Sprintf("pod-%02d", i), fmt.Sprintf("%dm", 100*(i+1)), ""))
	}
	items = append(items, pending("huge", "9000", ""))
	ctx, objects := load(t, nil, items...)
	catalogue, err := readInstanceTypes(ctx, "")
	if err != nil {
		t.Fatal(err)
	}

	ours, err := solve(ctx, objects, catalogue, 0)
	if err != nil {
		t.Fatal(err)
	}

	reader, err := newStore(objects)
	if err != nil {
		t.Fatal(err)
	}
	provider := kwok.NewCloudProvider(ctx, reader, catalogue)
	cluster := state.NewCluster(clock.RealClock{}, reader, provider)
	if err := fill(ctx, cluster, reader); err != nil {
		t.Fatal(err)
	}
	provisioner := provisioning.NewProvisioner(reader, events.NewRecorder(&record.FakeRecorder{}), provider, cluster,
		clock.RealClock{}, deviceallocation.NewController(reader), virtualpods.NewVirtualPodCache(reader))
	results, err := provisioner.Schedule(ctx)
	if err != nil {
		t.Fatal(err)
	}

	actual, expected := report(ours), report(outcome{results: results, pods: make([]*corev1.Pod, 21)})
	actual.Timings = timings{}
	if a, e := asJSON(t, actual), asJSON(t, expected); a != e {
		t.Errorf("our pass:\n%s\nSchedule:\n%s", a, e)
	}
	if len(actual.Existing["roomy"]) != 3 || len(actual.NewNodeClaims) == 0 || len(actual.Errors) != 1 {
		t.Errorf("the cluster does not exercise existing nodes, new nodes and errors: %s", actual.summary(0))
	}
}

func TestAClaimHasThePriceOfItsCheapestOffering(t *testing.T) {
	d := pass(t, nil, readyPool, pending("one", "500m", ""))
	if len(d.NewNodeClaims) != 1 {
		t.Fatal(d.summary(0))
	}
	claim := d.NewNodeClaims[0]
	if claim.InstanceTypes[0] != "c-1x-amd64-linux" || claim.CapacityType != "spot" || claim.Price != 0.019003238553599998 || d.TotalPrice != claim.Price {
		t.Errorf("%+v", claim)
	}
}

func TestIgnoredPodsAreReported(t *testing.T) {
	volume := `"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"gone"}}],`
	d := pass(t, nil, readyPool, pending("lost", "1", volume))
	expected := `ignoring pod, getting persistent volume claim, PersistentVolumeClaim "gone" not found`
	if got := d.Errors["default/lost"]; len(got) < len(expected) || got[:len(expected)] != expected {
		t.Errorf("%q", got)
	}
	if d.Pods != 0 {
		t.Errorf("%d pods were given to Solve", d.Pods)
	}
}

func TestAPodGoesWhereItsVolumeIs(t *testing.T) {
	volume := `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"disk"},"spec":{"nodeAffinity":{"required":
{"nodeSelectorTerms":[{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["test-zone-c"]}]}]}}}}`
	claim := `{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data","namespace":"default",
"annotations":{"pv.kubernetes.io/bind-completed":"yes"}},"spec":{"volumeName":"disk"},"status":{"phase":"Bound"}}`
	mounted := `"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}],`
	d := pass(t, nil, readyPool, volume, claim, pending("bound", "1", mounted))
	if len(d.NewNodeClaims) != 1 || d.NewNodeClaims[0].Zone != "test-zone-c" {
		t.Errorf("%+v", d)
	}
}

func TestPreferencesAreIgnoredOnDemand(t *testing.T) {
	preference := `"affinity":{"nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,
"preference":{"matchExpressions":[{"key":"topology.kubernetes.io/zone","operator":"In","values":["test-zone-d"]}]}}]}},`
	for policy, pinned := range map[string]bool{"Respect": true, "Ignore": false} {
		d := pass(t, []string{"--preference-policy=" + policy}, readyPool, pending("picky", "1", preference))
		found := false
		for _, requirement := range d.NewNodeClaims[0].Requirements {
			found = found || requirement.Key == corev1.LabelTopologyZone
		}
		if found != pinned {
			t.Errorf("%s: zone pinned is %v", policy, found)
		}
	}
}

func TestWithoutAPoolEveryPodFails(t *testing.T) {
	d := pass(t, nil, pending("homeless", "1", ""))
	if d.Errors["default/homeless"] != "no dynamic nodepools found" {
		t.Errorf("%v", d.Errors)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/karpenter/pkg/state/virtualpods"
	nodeutils "sigs.k8s.io/karpenter/pkg/utils/node"
	nodepoolutils "sigs.k8s.io/karpenter/pkg/utils/nodepool"
)

// outcome is what one pass decided and how long its two parts took.
type outcome struct {
	results scheduling.Results
	// pods were handed to Solve; ignored ones were rejected before.
	pods    []*corev1.Pod
	ignored map[*corev1.Pod]error
	// snapshot is everything between the files and Solve.
	snapshot time.Duration
	solve    time.Duration
	// solveCPU is the processor time of all workers and of the garbage collector during Solve.
	solveCPU time.Duration
}

// solve makes one provisioning pass with upstream's parts, in the order of upstream's provisioner.
// The pass is put together here instead of calling Schedule, which neither tells Solve's own time nor
// lets go of its deadline.
func solve(ctx context.Context, objects []client.Object, catalogue []*cloudprovider.InstanceType, timeout time.Duration) (outcome, error) {
	start := time.Now()
	reader, err := newStore(objects)
	if err != nil {
		return outcome{}, err
	}
	provider := kwok.NewCloudProvider(ctx, reader, catalogue)
	warnAboutForeignPools(reader, provider)
	realClock := clock.RealClock{}
	recorder := events.NewRecorder(&record.FakeRecorder{})
	cluster := state.NewCluster(realClock, reader, provider)
	if err := fill(ctx, cluster, reader); err != nil {
		return outcome{}, err
	}
	devices := deviceallocation.NewController(reader)
	devices.Hydrate(ctx)
	provisioner := provisioning.NewProvisioner(reader, recorder, provider, cluster, realClock, devices, virtualpods.NewVirtualPodCache(reader))

	// Nodes before pods, as upstream does; it makes no difference for a file.
	nodes := cluster.DeepCopyNodes()
	pending, err := provisioner.GetPendingPods(ctx)
	if err != nil {
		return outcome{}, err
	}
	ignored, err := ignoredPods(ctx, reader, provisioner, pending)
	if err != nil {
		return outcome{}, err
	}
	leaving, err := nodes.Deleting().CurrentlyReschedulablePods(ctx, reader, realClock, recorder)
	if err != nil {
		return outcome{}, err
	}
	leavingUIDs := sets.New[types.UID]()
	for _, pod := range leaving {
		leavingUIDs.Insert(pod.UID)
	}
	pods := append(pending, leaving...)
	result := outcome{pods: pods, ignored: ignored}
	if len(pods) == 0 {
		result.snapshot = time.Since(start)
		return result, nil
	}

	scheduler, err := provisioner.NewScheduler(ctx, pods, nodes.Active(), leavingUIDs, solveOptions(ctx)...)
	if errors.Is(err, provisioning.ErrNodePoolsNotFound) {
		result.results.PodErrors = map[*corev1.Pod]error{}
		for _, pod := range pods {
			result.results.PodErrors[pod] = errors.New("no dynamic nodepools found")
		}
		result.snapshot = time.Since(start)
		return result, nil
	}
	if err != nil {
		return outcome{}, fmt.Errorf("building the scheduler: %w", err)
	}
	result.snapshot = time.Since(start)

	// What reading left behind must not be collected on Solve's time.
	runtime.GC()
	solveCtx, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		solveCtx, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	start = time.Now()
	startCPU := processorTime()
	result.results, err = scheduler.Solve(solveCtx, pods)
	result.solve = time.Since(start)
	result.solveCPU = processorTime() - startCPU
	if errors.Is(err, context.DeadlineExceeded) {
		fmt.Fprintf(os.Stderr, "Solve stopped at its deadline of %s; pods it did not reach are in no list\n", timeout)
	} else if err != nil {
		return outcome{}, fmt.Errorf("solving: %w", err)
	}
	result.results = result.results.TruncateInstanceTypes(ctx, scheduling.MaxInstanceTypes)
	return result, nil
}

// processorTime is what the process has used so far. On a busy machine it says more than the clock on the wall.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// solveOptions are the ones of a provisioning pass; a disruption simulation uses others.
func solveOptions(ctx context.Context) []scheduling.Options {
	settings := options.FromContext(ctx)
	chosen := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback,
		scheduling.NumConcurrentReconciles(int(math.Ceil(float64(settings.CPURequests) / 1000))),
		scheduling.MinValuesPolicy(settings.MinValuesPolicy),
	}
	if settings.PreferencePolicy == options.PreferencePolicyIgnore {
		chosen = append(chosen, scheduling.IgnorePreferences)
	}
	return chosen
}

// fill does the work of upstream's informers. Claims come before nodes and nodes before pods, so that each finds
// what it belongs to. The state keeps and changes what it is given, hence the copies.
func fill(ctx context.Context, cluster *state.Cluster, reader *store) error {
	for _, claim := range objectsOf[*v1.NodeClaim](reader) {
		cluster.UpdateNodeClaim(claim.DeepCopy())
	}
	for _, node := range objectsOf[*corev1.Node](reader) {
		if err := cluster.UpdateNode(ctx, node.DeepCopy()); err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	for _, pod := range objectsOf[*corev1.Pod](reader) {
		// A pod may be bound to a node that is gone; upstream would try again for ever.
		if err := cluster.UpdatePod(ctx, pod.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
	}
	for _, daemonSet := range objectsOf[*appsv1.DaemonSet](reader) {
		if err := cluster.UpdateDaemonSet(ctx, daemonSet.DeepCopy()); err != nil {
			return fmt.Errorf("daemonset %s/%s: %w", daemonSet.Namespace, daemonSet.Name, err)
		}
	}
	return nil
}

// ignoredPods tells why provisionable pods are not among the pending ones. Upstream only logs these errors.
func ignoredPods(ctx context.Context, reader *store, provisioner *provisioning.Provisioner, pending []*corev1.Pod) (map[*corev1.Pod]error, error) {
	kept := sets.New[client.ObjectKey]()
	for _, pod := range pending {
		kept.Insert(client.ObjectKeyFromObject(pod))
	}
	provisionable, err := nodeutils.GetProvisionablePods(ctx, reader)
	if err != nil {
		return nil, err
	}
	ignored := map[*corev1.Pod]error{}
	for _, pod := range provisionable {
		if !kept.Has(client.ObjectKeyFromObject(pod)) {
			ignored[pod] = fmt.Errorf("ignoring pod, %w", provisioner.Validate(ctx, pod))
		}
	}
	return ignored, nil
}

// warnAboutForeignPools names the pools upstream passes over in silence because kwok does not serve their node class.
func warnAboutForeignPools(reader *store, provider cloudprovider.CloudProvider) {
	for _, pool := range objectsOf[*v1.NodePool](reader) {
		if !nodepoolutils.IsManaged(pool, provider) {
			fmt.Fprintf(os.Stderr, "NodePool %s is not used: its node class is not a KWOKNodeClass of group karpenter.kwok.sh\n", pool.Name)
		}
	}
}

// Command upstream runs one provisioning pass of upstream Karpenter on files.
//
// It is the peer for our own benchmarks and differential tests: both read the same two files and print the same JSON.
// Nothing of a cluster is needed; upstream's own code reads the objects from memory.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
)

// files collects the values of a flag that may be given several times.
type files []string

func (f *files) String() string         { return strings.Join(*f, ",") }
func (f *files) Set(value string) error { *f = append(*f, value); return nil }

// settings is everything the command line decides.
type settings struct {
	clusterFiles  files
	instanceTypes string
	repeat        int
	timeout       time.Duration
	verbose       bool
	// upstreamArgs are handed to upstream's own option parser, so values and defaults are checked by it.
	upstreamArgs []string
}

func parseFlags(arguments []string) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("upstream", flag.ContinueOnError)
	flags.Var(&s.clusterFiles, "f", "cluster `file`: a v1 List as JSON, optionally gzipped; may be repeated, a later object replaces an earlier one of the same name")
	flags.StringVar(&s.instanceTypes, "instance-types", "", "instance types `file` in kwok's JSON format, optionally gzipped (default: kwok's built-in 144 types)")
	flags.IntVar(&s.repeat, "repeat", 1, "solve this many `times`, each from a fresh snapshot, and print one JSON document per run")
	flags.DurationVar(&s.timeout, "timeout", time.Minute, "deadline for Solve; 0 means none")
	flags.BoolVar(&s.verbose, "v", false, "print upstream's log to stderr")

	// These are upstream's own options; only the ones that change a provisioning pass are offered.
	own := map[string]bool{}
	flags.VisitAll(func(f *flag.Flag) { own[f.Name] = true })
	flags.String("preference-policy", "Respect", "Respect or Ignore")
	flags.String("min-values-policy", "Strict", "Strict or BestEffort")
	flags.String("feature-gates", "ReservedCapacity=true", "upstream's feature gates; NodeOverlay has no effect here")
	flags.String("cpu-requests", "1000", "CPU of the controller in `millicores`; Solve uses one worker for each started 1000")
	flags.String("ignore-dra-requests", "true", "true or false")
	flags.String("scheduler-config", "", "YAML or JSON `document` with podTopologySpread.defaultConstraints")

	if err := flags.Parse(arguments); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q; cluster files are given with -f", flags.Arg(0))
	}
	if len(s.clusterFiles) == 0 {
		return s, fmt.Errorf("no cluster file; give one with -f")
	}
	if s.repeat < 1 {
		return s, fmt.Errorf("-repeat is %d, but at least 1 run is needed", s.repeat)
	}
	// Every option is passed, given or not: upstream takes its defaults from the environment otherwise.
	flags.VisitAll(func(f *flag.Flag) {
		if !own[f.Name] {
			s.upstreamArgs = append(s.upstreamArgs, fmt.Sprintf("--%s=%s", f.Name, f.Value))
		}
	})
	return s, nil
}

func run(s settings) error {
	log.SetLogger(logging.NopLogger)
	if s.verbose {
		log.SetLogger(stderrLogger())
	}
	ctx, err := upstreamContext(context.Background(), s.upstreamArgs)
	if err != nil {
		return err
	}

	start := time.Now()
	objects, err := readClusterFiles(s.clusterFiles)
	if err != nil {
		return err
	}
	catalogue, err := readInstanceTypes(ctx, s.instanceTypes)
	if err != nil {
		return err
	}
	read := time.Since(start)

	out := json.NewEncoder(os.Stdout)
	// Error texts contain comparison signs; they are not for a browser.
	out.SetEscapeHTML(false)
	for range s.repeat {
		outcome, err := solve(ctx, objects, catalogue, s.timeout)
		if err != nil {
			return err
		}
		document := report(outcome)
		document.Timings.ReadMs = milliseconds(read)
		if err := out.Encode(document); err != nil {
			return fmt.Errorf("writing the result: %w", err)
		}
		fmt.Fprintln(os.Stderr, document.summary(outcome.solveCPU))
	}
	return nil
}

func main() {
	s, err := parseFlags(os.Args[1:])
	if err == flag.ErrHelp {
		return
	}
	if err == nil {
		err = run(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

// upstreamContext carries upstream's options and the controller name its metrics are labelled with,
// the two things upstream's provisioner expects to find in its context.
func upstreamContext(ctx context.Context, arguments []string) (context.Context, error) {
	flags := &options.FlagSet{FlagSet: flag.NewFlagSet("upstream options", flag.ContinueOnError)}
	parsed := &options.Options{}
	parsed.AddFlags(flags)
	if err := parsed.Parse(flags, arguments...); err != nil {
		return nil, fmt.Errorf("upstream's options: %w", err)
	}
	return injection.WithControllerName(parsed.ToContext(ctx), "provisioner"), nil
}

func stderrLogger() logr.Logger {
	config := zap.NewDevelopmentConfig()
	config.OutputPaths = []string{"stderr"}
	config.DisableStacktrace = true
	logger, err := config.Build()
	if err != nil {
		// The configuration is fixed, so this is a mistake of ours.
		panic(err)
	}
	return zapr.NewLogger(logger)
}

//go:build tools

// Package tools pins the original controller for AWS, whose requests are recorded.
package tools

import _ "github.com/aws/karpenter-provider-aws/cmd/controller"

//go:build tools

// Package main pins upstream's kwok controller beside the program, so that both come from the same version.
package main

import _ "sigs.k8s.io/karpenter/kwok"

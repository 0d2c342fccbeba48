//go:build tools

// Package tools pins the KWOK that plays machines in tests.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"

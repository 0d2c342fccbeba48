//go:build tools

// Package tools pins the KWOK that the conformance recordings are made with.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"

//go:build tools

// Package tools names the command that this module builds, so that go.sum covers it.
package tools

import (
	_ "sigs.k8s.io/metrics-server/cmd/metrics-server"
)

//go:build tools

// Package tools names the command that this module builds, so that go.sum covers it.
package tools

import (
	_ "github.com/zegl/kube-score/cmd/kube-score"
)

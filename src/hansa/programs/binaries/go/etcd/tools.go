//go:build tools

// Package tools names the command that this module builds, so that go.sum covers it.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)

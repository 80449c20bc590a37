// Command pause holds a pod's namespaces open, reaps orphaned processes in them, and exits on SIGINT and SIGTERM.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const version = "v1.0.0"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println("pause", version)
		return
	}
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		reap()
		select {
		case <-ends:
			return
		case <-children:
		}
	}
}

// reap waits for every child that has ended: one SIGCHLD may be for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}

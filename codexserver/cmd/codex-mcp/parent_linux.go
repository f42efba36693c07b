package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// orphanName is the name under which this program starts itself to find out who adopts a process.
const orphanName = "codex-mcp-orphan"

// adoptLimit is how long that may take.
const adoptLimit = 5 * time.Second

// adopts reports whether a process, the parent of this one, adopts others. Linux says so of no other process, so a
// process whose parent ends looks who is its parent then. In doubt it does.
func adopts(ctx context.Context, pid int) bool {
	ctx, cancel := context.WithTimeout(ctx, adoptLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self())
	cmd.Args, cmd.Env, cmd.Dir, cmd.WaitDelay = []string{orphanName}, []string{}, "/", time.Second
	said, err := cmd.Output() // when both have ended
	adopter, bad := strconv.Atoi(string(bytes.TrimSpace(said)))
	return err != nil || bad != nil || adopter == pid
}

// orphan is the program under that name. The first process starts the second one, with its own id, and ends. The
// second one says who its parent is then.
func orphan(args []string) int {
	if len(args) == 0 {
		words := []string{orphanName, strconv.Itoa(os.Getpid())}
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: words, Env: []string{}, Stdout: os.Stdout}
		if cmd.Start() != nil {
			return 1
		}
		return 0
	}
	for deadline := time.Now().Add(adoptLimit); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if parent := strconv.Itoa(os.Getppid()); parent != args[0] {
			fmt.Println(parent)
			return 0
		}
	}
	return 1
}

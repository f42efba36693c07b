package box

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// trySeatbelt runs small commands under program, which is sandbox-exec except in tests.
// It returns an error unless program denies what its profile denies, and nothing else.
func trySeatbelt(program string) error {
	if err := try(program); err != nil {
		return unavailable("sandbox-exec: %v", err)
	}
	return nil
}

func try(program string) error {
	if _, err := os.Stat(program); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "codex-mcp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	dir = paths.Real(dir)
	root := filepath.Join(dir, "root")
	kept := filepath.Join(root, "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		return err
	}
	limits := seatbelt{roots: []string{root}, protect: []string{kept}}
	run := func(limits seatbelt, script, word string) error {
		argv := append(limits.arguments(), "/bin/bash", "-c", script, "bash", word)
		cmd := exec.Command(program, argv...)
		cmd.Dir = dir
		return cmd.Run()
	}
	const write = `echo x > "$1"`
	for _, attempt := range []struct {
		limits seatbelt
		path   string
		want   bool
	}{
		{limits, filepath.Join(root, "new"), true},
		{limits, filepath.Join(dir, "new"), false},
		{limits, filepath.Join(kept, "new"), false},
		{seatbelt{}, filepath.Join(root, "newer"), false},
	} {
		err := run(attempt.limits, write, attempt.path)
		_, missing := os.Lstat(attempt.path)
		switch {
		case attempt.want && (err != nil || missing != nil):
			return fmt.Errorf("it denies writing that its profile allows: %w", err)
		case !attempt.want && (err == nil || missing == nil):
			return errors.New("it does not deny writing")
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer listener.Close()
	const connect = `exec 3<> "/dev/tcp/127.0.0.1/$1"`
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	if run(limits, connect, port) == nil {
		return errors.New("it does not deny connecting")
	}
	return nil
}

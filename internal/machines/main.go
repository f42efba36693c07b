//go:build unix

// Command machines runs a command as on a machine of a user, or prints the machines that there are:
//
//	go run ./internal/machines
//	go run ./internal/machines all go test ./...
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/codexmcp/codexmcp/internal/testenv"
)

func main() {
	code, err := play(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "machines:", err)
		code = 2
	}
	os.Exit(code)
}

// play returns the exit status of the command.
func play(args []string) (code int, err error) {
	all := testenv.Machines()
	if len(args) == 0 {
		for _, m := range all {
			fmt.Println(m.Name)
		}
		return 0, nil
	}
	i := slices.IndexFunc(all, func(m testenv.Machine) bool { return m.Name == args[0] })
	if i < 0 || len(args) == 1 {
		return 0, errors.New("want the name of a machine and a command")
	}
	top, err := os.MkdirTemp("", "machine")
	if err == nil {
		top, err = filepath.EvalSymlinks(top)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(top)) }()
	environ, end, err := testenv.Furnish(top)
	if err != nil {
		return 0, err
	}
	defer end()
	cmd := all[i].Command(top, environ, args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM) // the command ends by them
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	return 0, err
}

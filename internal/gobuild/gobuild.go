// Package gobuild gives tests the programs of this module. The go command keeps what it links for go run, and not what
// it links for go build, so that only the first package that needs a program waits for the linker.
package gobuild

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/testenv"
)

// Program writes the program of a package, built with the flags, into the file bin.
func Program(bin, pkg string, flags ...string) error {
	program, err := kept(append(flags, pkg))
	if errors.Is(err, fs.ErrNotExist) { // it was linked now, in a folder that is gone
		program, err = kept(append(flags, pkg))
	}
	if err != nil {
		return fmt.Errorf("go build %s: %w", strings.Join(append(flags, pkg), " "), err)
	}
	return testenv.WriteProgram(bin, program)
}

// kept returns a program that the go command has. In place of the program, go run starts go version, which prints
// the program's file and its version of Go. In a folder that has another name by a link, it would compile everything again.
func kept(args []string) ([]byte, error) {
	cmd := exec.Command("go", slices.Concat([]string{"run", "-buildvcs=false", "-exec", "go version"}, args)...)
	var err error
	if cmd.Dir, err = os.Getwd(); err == nil {
		cmd.Dir, err = filepath.EvalSymlinks(cmd.Dir)
	}
	if err != nil {
		return nil, err
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	end := bytes.LastIndex(out, []byte(": "))
	if err != nil || end < 0 {
		return nil, fmt.Errorf("%v\n%s%s", err, out, &problems)
	}
	return os.ReadFile(string(out[:end]))
}

package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
)

// interpret makes cmd start the interpreter of a script, if env would search it in cmd's
// PATH: a command could put a program with its name into a folder there. The error is an
// [*ProgramError] if commands can write the interpreter. The caller holds the lock.
func (p *Programs) interpret(cmd *exec.Cmd) error {
	words := policy.Interpreter(cmd.Path)
	if len(words) == 0 {
		return nil
	}
	if err := p.check(words[0]); err != nil || filepath.Base(words[0]) != "env" {
		return err
	}
	name, ok := policy.EnvProgram(words)
	if !ok {
		return fmt.Errorf("%s is a script whose interpreter is not clear: start the interpreter instead", cmd.Path)
	}
	words = words[slices.Index(words, name):]
	all, err := p.search(name, value(cmd.Environ(), "PATH"))
	if err != nil {
		return fmt.Errorf("the interpreter of %s: %w", cmd.Path, err)
	}
	cmd.Args = slices.Concat(words, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = all[0]
	return nil
}

// value returns the value of a variable. The last entry counts.
func value(env []string, name string) string {
	found := ""
	for _, entry := range env {
		if key, v, ok := strings.Cut(entry, "="); ok && isNamed(key, name) {
			found = v
		}
	}
	return found
}

// isNamed reports whether a variable has a name. Windows ignores letter case.
func isNamed(key, name string) bool {
	return key == name || runtime.GOOS == "windows" && strings.EqualFold(key, name)
}

package sandbox

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxLine is how much of a script's first line the system reads.
const maxLine = 256

// interpret makes cmd start the interpreter of a script, if env would search it in cmd's
// PATH: a command could put a program with its name into a folder there. The error is an
// [*ProgramError] if commands can write the interpreter. The caller holds the lock.
func (p *Programs) interpret(cmd *exec.Cmd) error {
	words := interpreter(cmd.Path)
	if len(words) == 0 {
		return nil
	}
	if err := p.check(words[0]); err != nil || filepath.Base(words[0]) != "env" {
		return err
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], `=/\"'$`) {
		return fmt.Errorf("%s is a script whose interpreter is not clear: start the interpreter instead", cmd.Path)
	}
	all, err := p.search(words[0], value(cmd.Environ(), "PATH"))
	if err != nil {
		return fmt.Errorf("the interpreter of %s: %w", cmd.Path, err)
	}
	cmd.Args = slices.Concat(words, []string{cmd.Path}, cmd.Args[1:])
	cmd.Path = all[0]
	return nil
}

// interpreter returns the words after #! in a script's first line.
func interpreter(path string) []string {
	f, err := safefile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, maxLine)
	n, err := io.ReadFull(f, head)
	if err != nil && err != io.ErrUnexpectedEOF {
		return nil
	}
	line, isScript := strings.CutPrefix(string(head[:n]), "#!")
	if !isScript {
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
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

package box

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

const (
	maxScripts = 5   // how many scripts may be the interpreters of each other, as in the kernel
	maxLine    = 256 // how much of a script's first line the system reads
)

// interpreterOf returns what the system starts for a script, by the words after #! in its first line: the program,
// "" for a file that is no script, and what that searches in the PATH with which arguments, if it is env.
func interpreterOf(path string) (program, searched string, args []string, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return "", "", nil, nil // starting it reports the error
	}
	defer f.Close()
	head := make([]byte, maxLine)
	n, err := io.ReadFull(f, head)
	line, isScript := strings.CutPrefix(string(head[:n]), "#!")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if err != nil && err != io.ErrUnexpectedEOF || !isScript || len(words) == 0 {
		return "", "", nil, nil
	}
	program, words = words[0], words[1:]
	if filepath.Base(program) != "env" {
		return program, "", nil, nil
	}
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], `=/\"'$`) {
		return program, "", nil, unclear(path)
	}
	return program, words[0], words[1:], nil
}

func unclear(path string) error {
	return fmt.Errorf("%s is a script whose interpreter is not clear: start the interpreter instead", path)
}

package box

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxLine is how much of a script's first line the system reads.
const maxLine = 256

// interpreter is what the system starts for a script, by the words after #! in its first line.
type interpreter struct {
	program  string   // "" for a file that is no script
	searched string   // what env searches in the PATH, "" for another program
	args     []string // of searched
}

// interpreterOf returns the interpreter of a program.
func interpreterOf(path string) (i interpreter, err error) {
	f, err := safefile.Open(path)
	if err != nil {
		return i, nil // starting it reports the error
	}
	defer f.Close()
	head := make([]byte, maxLine)
	n, err := io.ReadFull(f, head)
	line, isScript := strings.CutPrefix(string(head[:n]), "#!")
	if err != nil && err != io.ErrUnexpectedEOF || !isScript {
		return i, nil
	}
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Fields(line)
	if len(words) == 0 {
		return i, nil
	}
	i.program, words = words[0], words[1:]
	if filepath.Base(i.program) != "env" {
		return i, nil
	}
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], `=/\"'$`) {
		return i, fmt.Errorf("%s is a script whose interpreter is not clear: start the interpreter instead", path)
	}
	i.searched, i.args = words[0], words[1:]
	return i, nil
}

package policy

import (
	"io"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxLine is how much of a script's first line the system reads.
const maxLine = 256

// Interpreter returns the words after #! in a script's first line, nil if the file is no
// script or cannot be read.
func Interpreter(path string) []string {
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

// EnvProgram returns the name of the program that env searches, if words are those of
// [Interpreter]. It returns false if they are not clear.
func EnvProgram(words []string) (name string, ok bool) {
	if len(words) == 0 || filepath.Base(words[0]) != "env" {
		return "", false
	}
	words = words[1:]
	if len(words) > 0 && words[0] == "-S" {
		words = words[1:]
	}
	if len(words) == 0 || strings.HasPrefix(words[0], "-") || strings.ContainsAny(words[0], `=/\"'$`) {
		return "", false
	}
	return words[0], true
}

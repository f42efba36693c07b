package search

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxRules bounds a file of rules in bytes; a longer one is ignored.
const maxRules = 1 << 20

// rules say what to ignore, as gitignore(5) has it. The last one that matches decides.
type rules []rule

// rule is one line of a file.
type rule struct {
	folder   string // of the file, with slashes and one at its end; "" is the outermost
	pattern  string // of a path in it
	keep     bool   // the line began with !
	dirOnly  bool
	anywhere bool // the pattern matches names at any depth
}

// read adds the rules of a file, which hold for a folder. It ignores a file that cannot be read.
func (r rules) read(file, folder string) rules {
	data, _ := safefile.Read(file, maxRules)
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		if one, ok := parseRule(string(line)); ok {
			one.folder = folder
			r = append(r, one)
		}
	}
	return r
}

func parseRule(line string) (one rule, ok bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return one, false
	}
	line, one.keep = strings.CutPrefix(line, "!")
	line, one.dirOnly = strings.CutSuffix(line, "/")
	one.anywhere = !strings.Contains(line, "/")
	one.pattern = below(literal(strings.TrimPrefix(line, "/")))
	return one, line != ""
}

// below returns a pattern whose ** at its end does not match the folder itself.
func below(pattern string) string {
	if folder, ok := strings.CutSuffix(pattern, "/**"); ok {
		return folder + "/**/*"
	}
	return pattern
}

// literal escapes the braces, which mean nothing to git.
func literal(line string) string {
	if !strings.Contains(line, "{") {
		return line
	}
	return strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, "{", `\{`).Replace(line)
}

// ignore reports whether a file or folder is ignored, whose path has slashes.
func (r rules) ignore(file string, isDir bool) bool {
	for _, one := range slices.Backward(r) {
		rest, below := strings.CutPrefix(file, one.folder)
		if !below || one.dirOnly && !isDir {
			continue
		}
		if one.anywhere {
			rest = path.Base(rest)
		}
		if ok, err := doublestar.Match(one.pattern, rest); err == nil && ok { // a faulty pattern matches nothing
			return !one.keep
		}
	}
	return false
}

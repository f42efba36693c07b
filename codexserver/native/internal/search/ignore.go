package search

import (
	"bytes"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxRules bounds a file of rules in bytes; a longer one is ignored.
const maxRules = 1 << 20

// Rules say what to ignore in one folder, and override those of the folders above it. Nil
// ignores nothing. The patterns are those of gitignore(5).
type Rules struct {
	above *Rules
	depth int // the number of names in the path of the folder
	list  []rule
}

// rule is one line.
type rule struct {
	pattern  string
	keep     bool // the line began with !
	dirOnly  bool
	anywhere bool // the pattern matches names at any depth
}

// Read adds the rules of one file, in a folder whose path has depth names. It ignores a file that
// cannot be read.
func (r *Rules) Read(file string, depth int) *Rules {
	data, err := safefile.Read(file, maxRules)
	if err != nil {
		return r
	}
	added := &Rules{above: r, depth: depth}
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\uFEFF"))) {
		if one, ok := parseRule(string(line)); ok {
			added.list = append(added.list, one)
		}
	}
	if added.list == nil {
		return r
	}
	return added
}

func parseRule(line string) (rule, bool) {
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
		line = line[:len(line)-1]
	}
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	one := rule{}
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

// Ignores reports whether the file or folder with the path names is ignored. The last
// matching line of the innermost folder decides.
func (r *Rules) Ignores(names []string, isDir bool) bool {
	for ; r != nil; r = r.above {
		for i := len(r.list) - 1; i >= 0; i-- {
			if one := &r.list[i]; one.match(names[r.depth:], isDir) {
				return !one.keep
			}
		}
	}
	return false
}

func (r *rule) match(names []string, isDir bool) bool {
	if r.dirOnly && !isDir {
		return false
	}
	name := names[len(names)-1]
	if !r.anywhere {
		name = strings.Join(names, "/")
	}
	ok, err := doublestar.Match(r.pattern, name)
	return err == nil && ok // a faulty pattern matches nothing
}

package search

import (
	"bytes"
	"path"
	"strings"

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
	segments []string
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
	return r.parse(data, depth)
}

// parse adds the rules of the content of a file.
func (r *Rules) parse(data []byte, depth int) *Rules {
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
	one.segments = strings.Split(strings.TrimPrefix(line, "/"), "/")
	for i, s := range one.segments {
		one.segments[i] = strings.ReplaceAll(s, "[!", "[^")
	}
	return one, line != ""
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
	if r.anywhere {
		return MatchName(r.segments[0], names[len(names)-1])
	}
	return MatchNames(r.segments, names)
}

// MatchNames matches name by name. ** matches any number of names, and at the end at least
// one. Only the last ** is tried again, so matching takes at most segments × names steps.
func MatchNames(segments, names []string) bool {
	star, tried := -1, 0 // the last **, and the end of its match
	i, j := 0, 0
	for j < len(names) {
		switch {
		case i < len(segments) && segments[i] == "**":
			star, tried = i, j
			i++
		case i < len(segments) && MatchName(segments[i], names[j]):
			i++
			j++
		case star >= 0:
			tried++
			i, j = star+1, tried
		default:
			return false
		}
	}
	return i == len(segments)
}

// MatchName matches one name; a faulty pattern matches nothing.
func MatchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

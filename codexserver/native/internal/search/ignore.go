package search

import (
	"bytes"
	"path"
	"path/filepath"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxRules bounds a file of rules in bytes; a longer one is ignored.
const maxRules = 1 << 20

// rules say what to ignore in one folder, and override those of the folders above it. Nil
// ignores nothing. The patterns are those of gitignore(5).
type rules struct {
	above *rules
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

// with adds the rules of the files in dir, whose path has depth names. has reports whether
// a file exists; with nil, with tries to read each.
func (r *rules) with(dir string, depth int, has func(name string) bool) *rules {
	for _, name := range []string{".gitignore", ".ignore"} {
		if has == nil || has(name) {
			r = r.read(filepath.Join(dir, name), depth)
		}
	}
	return r
}

// read adds the rules of one file. It ignores a file that cannot be read.
func (r *rules) read(file string, depth int) *rules {
	data, err := safefile.Read(file, maxRules)
	if err != nil {
		return r
	}
	added := &rules{above: r, depth: depth}
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

// ignore reports whether the file or folder with the path names is ignored. The last
// matching line of the innermost folder decides.
func (r *rules) ignore(names []string, isDir bool) bool {
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
		return matchName(r.segments[0], names[len(names)-1])
	}
	return matchNames(r.segments, names)
}

// matchNames matches name by name. ** matches any number of names, and at the end at least
// one. Only the last ** is tried again, so matching takes at most segments × names steps.
func matchNames(segments, names []string) bool {
	star, tried := -1, 0 // the last **, and the end of its match
	i, j := 0, 0
	for j < len(names) {
		switch {
		case i < len(segments) && segments[i] == "**":
			star, tried = i, j
			i++
		case i < len(segments) && matchName(segments[i], names[j]):
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

// matchName matches one name; a faulty pattern matches nothing.
func matchName(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return err == nil && ok
}

package changes

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/internal/plain"
)

// maxNamed bounds the files that a diff names without showing them.
const maxNamed = 100

// omitted returns notes about the changes that are not in git's diff, and about those of patches outside of the folder.
func omitted(all, elsewhere []git.Change) string {
	n := notes{}
	for _, c := range all {
		if c.Why != "" {
			n.add("not in this diff ("+c.Why+")", string(c.Kind)+" "+shown(c.Path))
		}
	}
	for _, c := range elsewhere {
		n.add("changed by patches outside of the folder", string(c.Kind)+" "+shown(c.Path))
	}
	return n.text()
}

// notes are the lines of a diff that are for people.
type notes struct {
	lines strings.Builder
	count int
}

func (n *notes) add(why, what string) {
	if n.count++; n.count <= maxNamed {
		fmt.Fprintf(&n.lines, "# %s: %s\n", why, what)
	}
}

func (n *notes) text() string {
	if n.count > maxNamed {
		fmt.Fprintf(&n.lines, "# not in this diff: %d more\n", n.count-maxNamed)
	}
	return n.lines.String()
}

// diffOfPatches returns the engine's diff of the turn's patches without the sections that
// git could not apply, with notes. Dir is the working folder.
func diffOfPatches(diff, dir string) string {
	if diff == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("# from the patches of the turn alone: commands may have changed more\n")
	n := notes{}
	for section := range git.Sections(strings.TrimSuffix(diff, "\n") + "\n") {
		section, why := applicable(section, dir)
		if why == "" && b.Len()+len(section) > maxDiff {
			why = "too large"
		}
		if why != "" {
			head, _, _ := strings.Cut(section, "\n")
			n.add("not in this diff ("+why+")", plain.Short(strings.TrimPrefix(head, "diff --git "), plain.MaxPath))
			continue
		}
		b.WriteString(section)
	}
	b.WriteString(n.text())
	return b.String()
}

// applicable returns a section as git applies it in dir, or why git cannot.
func applicable(section, dir string) (fit, why string) {
	head, rest, _ := strings.Cut(section, "\n")
	body := strings.Index("\n"+rest, "\n@@ ")
	if body < 0 {
		body = len(rest)
	}
	header := head + "\n" + rest[:body]
	switch {
	case !strings.HasPrefix(head, "diff --git "):
		return section, "it is not a diff of git"
	case !utf8.ValidString(section) || strings.Contains("\n"+header, "\nBinary files "):
		return section, "it is not text"
	}
	// Outside of a repository engines show absolute paths.
	below := strings.TrimSuffix(filepath.ToSlash(dir), "/") + "/"
	for _, side := range []string{"a/", "b/"} {
		header = strings.ReplaceAll(header, " "+side+below, " "+side)
	}
	if strings.Contains(header, " a//") || strings.Contains(header, " b//") || strings.Contains(header, "/../") {
		return section, "it is outside of the folder"
	}
	return header + rest[body:], ""
}

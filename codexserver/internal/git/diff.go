package git

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDiff bounds what git prints of all changes, in bytes.
const maxDiff = 32 << 20

// diffOptions make a diff that does not depend on a configuration.
var diffOptions = []string{"--no-color", "--no-ext-diff", "--no-textconv", "--unified=3", "--inter-hunk-context=0",
	"--no-relative", "--submodule=short", "--ignore-submodules=dirty"}

// diffIndex compares the index with a tree. It returns no sections if objects are missing, as in a partial clone.
func (l *look) diffIndex(ctx context.Context, tree string) (sections map[string]string, err error) {
	args := []string{"diff-index", "--cached", "-r", "-z", "--raw", "--no-abbrev", "--ignore-submodules=dirty"}
	more := slices.Concat(diffOptions, []string{"--numstat"})
	if !filepath.IsAbs(l.at) { // what is outside of the first folder is not in the diff
		more = append(more, "-p", "--binary", "--full-index", "--src-prefix=a/"+l.at, "--dst-prefix=b/"+l.at)
	}
	if l.at == "" { // git writes both names of a rename without the path of another folder
		more = append(more, "--find-renames")
	}
	quoted := []string{"-c", "core.quotePath=true", "-c", "core.looseCompression=6"}
	out, err := l.git(ctx, call{index: afterIndex, cut: maxDiff, options: quoted}, slices.Concat(args, more, []string{tree})...)
	list, diff, whole := strings.Cut(out, "\x00\x00")
	cut := len(out) == maxDiff
	if err == nil && (whole || !cut) {
		l.changes, err = parseChanges(list)
		return l.sections(diff, cut), err
	}
	if ctx.Err() == nil {
		if out, err = l.git(ctx, call{index: afterIndex}, append(args, "--no-renames", tree)...); err == nil {
			l.changes, err = parseChanges(out)
		}
	}
	return nil, err
}

// sections returns the sections of a diff by their paths, without the last one if it may be cut off.
func (l *look) sections(diff string, cut bool) map[string]string {
	at := map[string]string{}
	for _, c := range l.changes {
		at["diff --git "+Quote("a/"+l.at+cmp.Or(c.From, c.Path))+" "+Quote("b/"+l.at+c.Path)] = c.Path
	}
	sections, last := map[string]string{}, ""
	for section := range Sections(diff) {
		head, _, _ := strings.Cut(section, "\n")
		last = at[head]
		sections[last] += section
	}
	if cut {
		delete(sections, last)
	}
	return sections
}

// join returns at most max bytes of a diff, and gives the changes that are not in it a reason.
func (l *look) join(sections map[string]string, max int) string {
	var b strings.Builder
	for i := range l.changes {
		c, section := &l.changes[i], sections[l.changes[i].Path]
		switch {
		case filepath.IsAbs(l.at):
			c.Why = "outside of the folder"
		case c.Why != "":
		case sections == nil:
			c.Why = "git could not make the diff"
		case section == "" || len(section) > max-b.Len():
			c.Why = tooLarge
		case !utf8.ValidString(section) || strings.Contains(section, "\x00"):
			c.Why = "it is not text"
		default:
			b.WriteString(section)
		}
	}
	return b.String()
}

// Sections yields the sections of a diff. In other lines git begins with another character, or has no space.
func Sections(diff string) iter.Seq[string] {
	const begin = "diff --git "
	return func(yield func(string) bool) {
		for diff != "" {
			section := diff
			if next := strings.Index(diff[1:], "\n"+begin); next >= 0 {
				section = diff[:next+2]
			}
			diff = diff[len(section):]
			if !yield(section) {
				return
			}
		}
	}
}

// Quote quotes a name as git does with core.quotePath, if that is needed.
func Quote(name string) string {
	const special = "\a\b\t\n\v\f\r\"\\"
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return name
	}
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(name) {
		c := name[i]
		switch at := strings.IndexByte(special, c); {
		case at >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[at])
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

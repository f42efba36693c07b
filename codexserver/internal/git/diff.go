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

// diff compares the bytes of both sides.
func (l *look) diff(ctx context.Context) (changes []Change, sections map[string]string, err error) {
	if err = l.setAttributes(endsOnly + " -text"); err != nil {
		return nil, nil, err
	}
	args, at := slices.Concat([]string{"diff", "--no-index", "--no-prefix", "-z", "--numstat"}, diffOptions), ""
	if !filepath.IsAbs(l.at) { // what is outside of the first folder is not in the diff
		at = l.at
		args = append(args, "-p", "--binary", "--full-index")
	}
	if l.at == "" {
		args = append(args, "--find-renames")
	} else {
		args = append(args, "--no-renames")
	}
	c := call{tree: filepath.Join(l.scratch, "sides"), bare: !l.attributed(), cut: maxDiff,
		options: []string{"-c", "core.quotePath=true"}, differs: true}
	out, err := l.git(ctx, c, append(args, "a", "b")...)
	list, diff, whole := strings.Cut(out, "\x00\x00")
	cut := len(out) == maxDiff
	if err == nil && cut && !whole {
		err = fmt.Errorf("%w: git lists more than %d MiB", errLarge, maxDiff>>20)
	}
	if err == nil {
		changes, err = parseChanges(list, len("a/"+at))
	}
	return changes, sectionsOf(changes, at, diff, cut), err
}

// renamed are the lines of a rename, in which git writes the names of both sides.
var renamed = strings.NewReplacer("\nrename from a/", "\nrename from ", "\nrename from \"a/", "\nrename from \"",
	"\nrename to b/", "\nrename to ", "\nrename to \"b/", "\nrename to \"")

// sectionsOf returns the sections of a diff by their paths, with the heads that they have in a working tree, and without the last
// one if it may be cut off.
func sectionsOf(changes []Change, at, diff string, cut bool) map[string]string {
	type place struct{ path, head string }
	places := map[string]place{}
	for _, c := range changes {
		from, to := Quote("a/"+at+cmp.Or(c.From, c.Path)), Quote("b/"+at+c.Path)
		// of a file that is on one side, git names it twice
		for _, head := range []string{from + " " + to, from + " " + from, to + " " + to} {
			places[head] = place{c.Path, from + " " + to}
		}
	}
	const begin = "diff --git "
	sections, last := map[string]string{}, ""
	for section := range Sections(diff) {
		head, body, _ := strings.Cut(section, "\n")
		p := places[strings.TrimPrefix(head, begin)]
		last = p.path
		sections[last] += renamed.Replace(begin + p.head + "\n" + body)
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
		case withholds(l.withheld, l.root, c.Path, c.From):
			c.Why = isWithheld
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

// isWithheld is why the content of a file is not shown.
const isWithheld = "withheld by the configuration"

// withholds reports whether one of the files, with slashes, must not be shown.
func withholds(withheld func(path string) error, root string, names ...string) bool {
	return withheld != nil && slices.ContainsFunc(names, func(name string) bool {
		return name != "" && withheld(filepath.Join(root, filepath.FromSlash(name))) != nil
	})
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

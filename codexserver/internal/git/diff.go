package git

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxArgs bounds the files that one call names.
const maxArgs = 1000

// diff returns at most max bytes of a diff of the changes, and gives the others a reason.
func (l *look) diff(ctx context.Context, max int) (string, error) {
	if err := l.restore(ctx); err != nil {
		return "", err
	}
	all := map[string]string{}
	err := l.sections(ctx, max, all, func(c Change) bool {
		return c.Why == "" && (c.Kind != Add || l.after.seen[c.Path].size <= int64(max) || c.Lines == nil)
	})
	if err == nil {
		err = l.sections(ctx, max, all, func(c Change) bool { return !plain(all[c.Path]) })
	}
	var b strings.Builder
	for i := range l.changes {
		c := &l.changes[i]
		switch section := all[c.Path]; {
		case c.Why != "" || err != nil:
		case section == "" || !plain(section) || len(section) > max-b.Len():
			c.Why = tooLarge
		default:
			b.WriteString(section)
		}
	}
	return b.String(), err
}

// restore gives a reason to the changes of files that git would not write as they are now, line ends and
// encoding included. One command of git writes them all.
func (l *look) restore(ctx context.Context) error {
	var list []*Change
	var input strings.Builder
	for i := range l.changes {
		c, s := &l.changes[i], l.after.seen[l.changes[i].Path]
		if c.Why == "" && c.converted && c.Kind != Delete && s.is(modeFile) {
			c.Why = notRestored
			if len(list) < maxLossy && !strings.Contains(c.Path, "\n") {
				list = append(list, c)
				input.WriteString(c.object + " " + c.Path + "\n")
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	mark := rand.Text() // git says the size of what it has stored, not of what it writes
	out, err := l.git(ctx, call{stdin: input.String(), cut: maxOutput}, "cat-file", "--batch="+mark, "--filters")
	parts := strings.Split("\n"+out+mark+"\n", "\n"+mark+"\n")[1:]
	if err != nil || len(parts) != len(list)+1 { // there is too much
		return err
	}
	for i, c := range list {
		if data, err := safefile.Read(l.path(c.Path), maxContent); err == nil && string(data) == parts[i] {
			c.Why = ""
		}
	}
	return nil
}

// plain reports whether a section can be in a text.
func plain(section string) bool {
	return utf8.ValidString(section) && !strings.Contains(section, "\x00")
}

// diffOptions make a diff that does not depend on a configuration.
var diffOptions = []string{"--no-color", "--no-ext-diff", "--no-textconv", "--unified=3", "--inter-hunk-context=0",
	"--no-relative", "--submodule=short", "--ignore-submodules=dirty"}

// sections adds the sections of some changes by their paths, unless they are cut off. Of those that all has
// already it makes binary patches.
func (l *look) sections(ctx context.Context, max int, all map[string]string, some func(Change) bool) error {
	binary := len(all) > 0
	at := map[string]string{}
	args := slices.Concat([]string{"diff-index", "--cached", "-p", "--binary", "--full-index", l.renames(), "--src-prefix=a/" + l.at, "--dst-prefix=b/" + l.at}, diffOptions, []string{l.tree, "--"})
	for _, c := range l.changes {
		if some(c) {
			at["diff --git "+Quote("a/"+l.at+cmp.Or(c.From, c.Path))+" "+Quote("b/"+l.at+c.Path)] = c.Path
			args = append(args, c.Path, cmp.Or(c.From, c.Path))
		}
	}
	switch names := args[len(args)-2*len(at):]; {
	case len(at) == 0:
		return nil
	case len(at) > maxArgs || !binary && len(at) == len(l.changes):
		args = args[:len(args)-len(names)]
	}
	if binary { // give all files an attribute
		file := filepath.Join(l.folder(), "info", "attributes")
		own, _ := safefile.Read(file, maxSmallFile)
		if err := os.WriteFile(file, fmt.Appendf(slices.Clone(own), "\n* -diff\n"), 0o600); err != nil {
			return err
		}
		defer os.WriteFile(file, own, 0o600)
	}
	most := 2 * max
	out, err := l.git(ctx, call{cut: most, options: []string{"-c", "core.quotePath=true", "-c", "core.looseCompression=6"}}, args...)
	if err != nil {
		return err
	}
	if binary {
		for _, name := range at {
			delete(all, name)
		}
	}
	last := ""
	for section := range Sections(out) {
		head, _, _ := strings.Cut(section, "\n")
		if name, known := at[head]; known {
			all[name] += section
			last = name
		} else {
			last = ""
		}
	}
	if len(out) == most && last != "" {
		delete(all, last)
	}
	return nil
}

// Sections yields the sections of a diff. In other lines git begins with another character, or
// has no space.
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

package git

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Omission is a change that is not in a diff.
type Omission struct {
	Change
	// Why is the reason.
	Why string
}

const (
	maxArgs     = 1000 // files that one call names
	notRestored = "git would not restore its bytes, because it converts them"
)

// diff is [Before.Diff] of one folder.
func (l *look) diff(ctx context.Context, max int) (string, []Omission, error) {
	restored, err := l.restored(ctx)
	if err != nil {
		return "", nil, err
	}
	var left []Omission
	var wanted []Change
	for _, c := range l.changes {
		if why := l.unfit(c, restored, max); why != "" {
			left = append(left, Omission{c, why})
		} else {
			wanted = append(wanted, c)
		}
	}
	all, err := l.sections(ctx, wanted, max, false)
	if err != nil {
		return "", nil, err
	}
	binary := slices.DeleteFunc(slices.Clone(wanted), func(c Change) bool { return plain(all[c.Path]) })
	bytes, err := l.sections(ctx, binary, max, true)
	if err != nil {
		return "", nil, err
	}
	maps.Copy(all, bytes)
	var b strings.Builder
	for _, c := range wanted {
		section := all[c.Path]
		if !plain(section) || section == "" || len(section) > max-b.Len() {
			left = append(left, Omission{c, tooLarge})
			continue
		}
		b.WriteString(section)
	}
	sort.SliceStable(left, func(i, j int) bool { return left[i].Path < left[j].Path })
	return b.String(), left, nil
}

// unfit returns why a change cannot be in a diff, or "".
func (l *look) unfit(c Change, restored map[string]bool, max int) string {
	switch {
	case c.why != "":
		return c.why
	case c.module:
		return otherRepository
	case c.filtered:
		return "a filter changes how git stores it"
	case l.converts(c) && !restored[c.Path]:
		return notRestored
	case c.Kind == Add && l.after.seen[c.Path].size > int64(max) && c.Lines != nil:
		return tooLarge
	}
	return ""
}

// converts reports whether git may write a file with other bytes than it has.
func (l *look) converts(c Change) bool {
	info := l.after.seen[c.Path]
	return c.why == "" && c.converted && !c.filtered && c.Kind != Delete && info.exists() && info.mode.IsRegular()
}

// restored returns the files that git writes as they are now, line ends and encoding included. One
// command of git writes them all.
func (l *look) restored(ctx context.Context) (map[string]bool, error) {
	var list []Change
	var input strings.Builder
	for _, c := range l.changes {
		if l.converts(c) && len(list) < maxLossy && !strings.Contains(c.Path, "\n") {
			list = append(list, c)
			input.WriteString(c.object + " " + c.Path + "\n")
		}
	}
	same := map[string]bool{}
	if len(list) == 0 {
		return same, nil
	}
	mark := rand.Text() // git says the size of what it has stored, not of what it writes
	out, err := l.git(ctx, call{stdin: input.String(), cut: maxOutput}, "cat-file", "--batch="+mark, "--filters")
	if err != nil {
		return nil, err
	}
	parts := strings.Split("\n"+out, "\n"+mark+"\n")[1:]
	if len(parts) != len(list) {
		return same, nil // there is too much
	}
	for i, c := range list {
		data, err := safefile.Read(l.path(c.Path), maxContent)
		if i == len(list)-1 {
			parts[i] = strings.TrimSuffix(parts[i], "\n")
		}
		same[c.Path] = err == nil && string(data) == parts[i]
	}
	return same, nil
}

// plain reports whether a section can be in a text.
func plain(section string) bool {
	return utf8.ValidString(section) && !strings.Contains(section, "\x00")
}

// diffOptions make a diff that does not depend on a configuration.
var diffOptions = []string{"--no-color", "--no-ext-diff", "--no-textconv", "--unified=3", "--inter-hunk-context=0",
	"--no-relative", "--submodule=short", "--ignore-submodules=dirty"}

// sections returns the section of each change by its path, unless it is cut off. The changes are in
// git's order. With binary each section is a binary patch.
func (l *look) sections(ctx context.Context, changes []Change, max int, binary bool) (map[string]string, error) {
	all := map[string]string{}
	if len(changes) == 0 {
		return all, nil
	}
	at := map[string]string{}
	args := slices.Concat([]string{"diff-index", "--cached", "-p", "--binary", "--full-index", l.renames(), "--src-prefix=a/" + l.at, "--dst-prefix=b/" + l.at}, diffOptions, []string{l.before.tree, "--"})
	for _, c := range changes {
		at["diff --git "+Quote("a/"+l.at+cmp.Or(c.From, c.Path))+" "+Quote("b/"+l.at+c.Path)] = c.Path
		if len(changes) <= maxArgs && (binary || len(changes) < len(l.changes)) {
			args = append(args, c.Path)
			if c.From != "" {
				args = append(args, c.From)
			}
		}
	}
	if binary { // give all files an attribute
		file := filepath.Join(l.folder(), "info", "attributes")
		own, _ := safefile.Read(file, maxSmallFile)
		if err := os.WriteFile(file, fmt.Appendf(slices.Clone(own), "\n* -diff\n"), 0o600); err != nil {
			return nil, err
		}
		defer os.WriteFile(file, own, 0o600)
	}
	most := 2 * max
	out, err := l.git(ctx, call{cut: most, options: []string{"-c", "core.quotePath=true", "-c", "core.looseCompression=6"}}, args...)
	if err != nil {
		return nil, err
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
	return all, nil
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

package git

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
)

// Reasons why a change of a file that git converts is not in the diff.
const (
	converted   = "git stores it in another form" // of a filter, of an encoding, with its name in it
	notRestored = "git would not restore its bytes, because it converts them"
)

// endsOnly are attributes by which git converts nothing but line ends.
const endsOnly = "* -filter -ident !working-tree-encoding"

// converts reports whether git may convert the line ends of files.
func (l *look) converts() bool {
	set := l.settings["core.autocrlf"]
	return set != "" && !isFalse(set) || l.attributed()
}

// attributed reports whether a file may have attributes.
func (l *look) attributed() bool { return len(l.giving)+len(l.attributes) > 0 }

// markConverted gives a reason to the changes of files with attributes by which git stores them in another form. It reports whether
// git may give files of the changes other line ends as it writes them.
func (l *look) markConverted(ctx context.Context) (ends bool, err error) {
	ends = isTrue(l.settings["core.autocrlf"]) || strings.EqualFold(l.settings["core.eol"], "crlf")
	if len(l.changes) == 0 || !l.attributed() {
		return ends, nil
	}
	var names []string
	for _, c := range l.changes {
		names = append(names, c.Path)
	}
	out := ""
	if err = l.setAttributes(""); err == nil {
		out, err = l.git(ctx, call{stdin: zeros(names)}, "check-attr", "-z", "--stdin", "filter", "ident",
			"working-tree-encoding", "eol", "crlf")
	}
	other := map[string]bool{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		switch set := fields[2] != "unspecified" && fields[2] != "unset"; fields[1] {
		case "eol", "crlf":
			ends = ends || set
		default:
			other[fields[0]] = other[fields[0]] || set
		}
	}
	for i := range l.changes {
		if c := &l.changes[i]; other[c.Path] {
			if c.Why = cmp.Or(c.Why, converted); c.Kind != Add {
				c.Lines = nil
			}
		}
	}
	return ends, err
}

// prove gives a reason to the changes that git apply would not make as they are, since git converts line ends: it does so on the
// files as they were.
func (l *look) prove(ctx context.Context, sections map[string]string) error {
	var diff strings.Builder
	for _, section := range sections {
		diff.WriteString(section)
	}
	err := l.setAttributes(endsOnly)
	if err == nil {
		_, err = l.git(ctx, call{tree: filepath.Join(l.scratch, "sides", "a"), stdin: diff.String()}, "apply",
			"--reject", "--whitespace=nowarn")
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	left, _, err := l.diff(ctx)
	differs := map[string]bool{}
	for _, c := range left {
		differs[c.Path] = true
	}
	for i := range l.changes {
		if c := &l.changes[i]; differs[c.Path] {
			c.Why = cmp.Or(c.Why, notRestored)
		}
	}
	return err
}

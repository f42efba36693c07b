package git

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Reasons why a change of a file that git converts is not in the diff.
const (
	converted   = "git stores it in another form" // of a filter, of an encoding, with its name in it
	notRestored = "git would not restore its bytes, because it converts them"
)

// Conversions of a file by git.
const (
	convertsAll  = 1 << iota // into another form, which does not happen when a look stores the file
	convertsEnds             // its line ends
	makesEnds                // to CR LF when git writes it
	ifText                   // if it is text without a lone CR, and was not stored with CR LF before
)

// attributes are those that make git convert a file. The last one decides whether it is binary.
var attributes = []string{"filter", "ident", "working-tree-encoding", "eol", "crlf", "text"}

// markConverted gives a reason to the changes of files that git converts and would not write again as they are. It
// adds the files of which git stores the same as before although they have other bytes, as their size shows.
func (l *look) markConverted(ctx context.Context, written []string, sections map[string]string) error {
	differ := map[string]bool{}
	for _, c := range l.changes {
		differ[c.Path], differ[c.From] = true, true
	}
	stored := l.changes
	for _, name := range written {
		if s := l.after.seen[name]; s.is(modeFile) && s != l.was(name) && !differ[name] {
			l.changes = append(l.changes, Change{Path: name, Kind: Update, Why: notRestored})
		}
	}
	how, err := l.conversions(ctx)
	if err != nil {
		return err
	}
	same := l.changes[len(stored):]
	l.changes = l.changes[:len(stored)]
	for i := range l.changes {
		c := &l.changes[i]
		switch how := how[c.Path]; {
		case how&convertsAll != 0:
			if c.Why = cmp.Or(c.Why, converted); c.Kind != Add {
				c.Lines = nil
			}
		case how != 0 && c.Why == "" && l.after.seen[c.Path].is(modeFile) && !l.restores(c.Path, how, sections[c.Path]):
			c.Why = notRestored
		}
	}
	for _, c := range same {
		if l.was(c.Path).size != l.after.seen[c.Path].size { // git names none that has the size that the index knows
			l.changes = append(l.changes, c)
		} else if how[c.Path]&convertsEnds != 0 && !l.restores(c.Path, convertsEnds, "") { // a CR may have moved
			l.after.unread = append(l.after.unread, Gap{c.Path, "git converts its line ends, so whether they changed is not known"})
		}
	}
	return nil
}

// restores reports whether git would write a file as it is now, line ends included.
func (l *look) restores(name string, how int, section string) bool {
	data, err := safefile.Read(l.path(name), maxContent)
	pairs := bytes.Count(data, []byte("\r\n"))
	switch {
	case err != nil:
		return false
	case how&ifText != 0 && (bytes.IndexByte(data, 0) >= 0 || hasPairs(section)):
		return true // git has not converted it
	case how&makesEnds != 0:
		return pairs == bytes.Count(data, []byte("\n")) && pairs == bytes.Count(data, []byte("\r"))
	}
	return pairs == 0
}

// hasPairs reports whether a section shows a line of the file as it is now that ends with CR LF.
func hasPairs(section string) bool {
	for line := range strings.Lines(section) {
		if line[0] != '-' && strings.HasSuffix(line, "\r\n") {
			return true
		}
	}
	return false
}

// was describes a file at the look, as far as the look has noted it.
func (l *look) was(name string) stat {
	if s, ok := l.before.seen[name]; ok {
		return s
	}
	return l.tracked[name]
}

// converts reports whether git may convert the line ends of files.
func (l *look) converts() bool {
	set := l.settings["core.autocrlf"]
	return set != "" && !isFalse(set) || l.attributed || len(l.attributes) > 0
}

// conversions returns how git converts the changed files because of its settings and their attributes.
func (l *look) conversions(ctx context.Context) (how map[string]int, err error) {
	how = map[string]int{}
	ends := convertsEnds
	if strings.EqualFold(l.settings["core.eol"], "crlf") {
		ends |= makesEnds
	}
	var names []string
	for _, c := range l.changes {
		names = append(names, c.Path)
		if set := l.settings["core.autocrlf"]; set != "" && !isFalse(set) {
			how[c.Path] = ends | ifText
			if isTrue(set) {
				how[c.Path] |= makesEnds
			}
		}
	}
	if len(names) == 0 || !l.attributed && len(l.attributes) == 0 {
		return how, nil
	}
	if err = l.setAttributes(""); err != nil {
		return nil, err
	}
	out, err := l.git(ctx, call{stdin: zeros(names)}, append([]string{"check-attr", "-z", "--stdin"}, attributes...)...)
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		switch file, name, value := fields[0], fields[1], fields[2]; {
		case value == "unspecified":
		case name == "filter", name == "ident", name == "working-tree-encoding":
			if value != "unset" {
				how[file] |= convertsAll
			}
		case value == "unset":
			how[file] &= convertsAll
		case value == "auto":
			how[file] |= ends | ifText
		case value == "crlf":
			how[file] = how[file]&convertsAll | convertsEnds | makesEnds
		case value == "lf", value == "input":
			how[file] = how[file]&convertsAll | convertsEnds
		default:
			how[file] = how[file]&^ifText | ends
		}
	}
	return how, err
}

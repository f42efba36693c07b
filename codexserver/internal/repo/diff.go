package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
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

// Limits of the work for one diff.
const (
	maxRuns   = 8    // calls of git if the changes do not fit into one
	maxArgs   = 1000 // files that one call names
	maxBinary = 100  // files with bytes that are not UTF-8
	maxLossy  = 1000 // files whose line ends or encoding git converts

	tooLarge        = "too large"
	specialFile     = "a special file"
	otherRepository = "another repository"
	notRestored     = "git would not restore its bytes, because it converts them"
)

// Diff returns at most max bytes of a diff, in git's format, of the changes that Compare
// last found, and the changes that are not in it. `git apply` takes the diff: it has every
// section whole, and files that are not UTF-8 as binary patches.
func (s *Snapshot) Diff(ctx context.Context, max int) (string, []Omission, error) {
	return s.diff(ctx, max, "", true)
}

// diff is Diff with a prefix of all paths.
func (s *Snapshot) diff(ctx context.Context, max int, prefix string, renames bool) (string, []Omission, error) {
	var left []Omission
	var wanted []Change
	lossy := 0
	for _, c := range s.stored {
		if c.converted && c.Kind != Delete {
			lossy++
		}
		switch why := s.unfit(ctx, c, lossy); {
		case ctx.Err() != nil:
			return "", nil, context.Cause(ctx)
		case why == specialFile:
			left = append(left, Omission{Change{Path: c.Path, Kind: Update, special: true}, why})
		case why != "":
			left = append(left, Omission{c, why})
		default:
			wanted = append(wanted, c)
		}
	}
	d := differ{Snapshot: s, prefix: prefix, renames: renames}
	sections, err := d.sections(ctx, wanted, max)
	if err != nil {
		return "", nil, fmt.Errorf("repo: diff: %w", err)
	}
	var b strings.Builder
	binary := 0
	for i, c := range wanted {
		section := sections[i]
		if section != "" && !plain(section) {
			section = ""
			if binary++; binary <= maxBinary {
				if section, err = d.binary(ctx, c, max); err != nil {
					return "", nil, fmt.Errorf("repo: diff: %w", err)
				}
			}
		}
		if section == "" || len(section) > max-b.Len() {
			left = append(left, Omission{c, tooLarge})
			continue
		}
		b.WriteString(section)
	}
	for _, c := range s.others {
		left = append(left, Omission{c, s.unstored(c)})
	}
	sort.SliceStable(left, func(i, j int) bool { return left[i].Path < left[j].Path })
	return b.String(), left, nil
}

// unstored returns why git does not store a change.
func (s *Snapshot) unstored(c Change) string {
	switch {
	case c.special:
		return specialFile
	case strings.HasSuffix(c.Path, "/"):
		return otherRepository
	case c.converted:
		return notRestored
	}
	return tooLarge + ", or it cannot be read"
}

// unfit returns why a change cannot be in a diff, or "". Converted counts the files until
// this one that git converts.
func (s *Snapshot) unfit(ctx context.Context, c Change, converted int) string {
	_, special := s.after.seen.special[c.Path]
	_, specialBefore := s.before.seen.special[c.Path]
	switch {
	case special || specialBefore:
		return specialFile
	case c.module:
		return otherRepository
	case c.filtered:
		return "a filter changes how git stores it"
	case c.converted && c.Kind != Delete && (converted > maxLossy || !s.restores(ctx, c)):
		return notRestored
	}
	return ""
}

// restores reports whether git writes the file as it is now, line ends and encoding
// included.
func (s *Snapshot) restores(ctx context.Context, c Change) bool {
	info, err := os.Lstat(s.path(c.Path))
	if err != nil || !info.Mode().IsRegular() {
		return err == nil
	}
	data, err := safefile.Read(s.path(c.Path), maxContent)
	if err != nil {
		return false
	}
	out, err := s.private.git(ctx, call{}, "cat-file", "--filters", s.after.tree+":"+c.Path)
	return err == nil && out == string(data)
}

// plain reports whether a section can be in a text.
func plain(section string) bool {
	return utf8.ValidString(section) && !strings.Contains(section, "\x00")
}

// patchOptions are of git when it prints a diff.
var patchOptions = []string{"-c", "core.quotePath=true", "-c", "core.looseCompression=6"}

// differ makes the sections of a diff.
type differ struct {
	*Snapshot
	prefix  string
	renames bool
}

// run returns at most max bytes of the diff of changes, or of all without changes.
func (d *differ) run(ctx context.Context, max int, changes ...Change) (string, error) {
	if d.after.patch != "" && d.prefix == "" && d.renames && len(changes) == 0 && len(d.after.patch) < max {
		return d.after.patch, nil
	}
	args := []string{"-r", "-p", "--binary", "--full-index", renames(d.renames), "--src-prefix=a/" + d.prefix, "--dst-prefix=b/" + d.prefix, d.before.tree, d.after.tree, "--"}
	for _, c := range changes {
		args = append(args, c.Path)
		if c.From != "" {
			args = append(args, c.From)
		}
	}
	return d.private.diff(ctx, call{cut: max, options: patchOptions}, "diff-tree", args...)
}

// sections returns the section of each change, or "" for those that are too large or that
// come after too many of these. The changes are in git's order, as are the sections.
func (d *differ) sections(ctx context.Context, changes []Change, max int) ([]string, error) {
	all := make([]string, len(changes))
	at := map[string]int{}
	for i, c := range changes {
		at[d.header(c)] = i
	}
	for run, next := 0, 0; next < len(changes) && run < maxRuns; run++ {
		var named []Change
		if run > 0 {
			if named = changes[next:]; len(named) > maxArgs {
				break
			}
		}
		most := 2 * max
		out, err := d.run(ctx, most, named...)
		if err != nil {
			return nil, err
		}
		begin, last := next, -1
		for section := range Sections(out) {
			head, _, _ := strings.Cut(section, "\n")
			i, known := at[head]
			if last = -1; known && i >= begin {
				all[i] += section
				last, next = i, i+1
			}
		}
		if len(out) < most {
			break
		}
		if last >= 0 { // it is cut off
			all[last] = ""
		} else if next == begin {
			break
		}
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

// header returns the first line of a change's section.
func (d *differ) header(c Change) string {
	return "diff --git " + Quote("a/"+d.prefix+cmp.Or(c.From, c.Path)) + " " + Quote("b/"+d.prefix+c.Path)
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

// binary returns the section of a change as a binary patch, or "" if it is too large.
func (d *differ) binary(ctx context.Context, c Change, max int) (section string, err error) {
	file := filepath.Join(d.private.common, "info", "attributes")
	own, err := safefile.Read(file, maxSmallFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := os.WriteFile(file, append(slices.Clone(own), "\n* -diff\n"...), 0o600); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.WriteFile(file, own, 0o600)) }()
	out, err := d.run(ctx, max, c)
	if err != nil || len(out) == max {
		return "", err
	}
	head := d.header(c)
	for one := range Sections(out) {
		if line, _, _ := strings.Cut(one, "\n"); line == head {
			section += one
		}
	}
	return section, nil
}

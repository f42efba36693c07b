package repo

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/paths"
)

// maxParts bounds the repositories of a survey besides its root.
const maxParts = 16

// SurveyOptions configure a [Survey].
type SurveyOptions struct {
	// Scratch is as for [Read].
	Scratch Scratch
	// Roots are absolute paths of further folders to look at.
	Roots []string
	// Files is how many files git may read that differ from its index. In a folder without a
	// repository it reads all, and at most a twentieth of this number. Default: [setting.DefaultFiles].
	Files int
}

// Survey is the content of a folder at one moment: its [Snapshot], and those of the
// repositories below it and of further folders. It is not safe for concurrent use.
type Survey struct {
	*Snapshot
	parts []part
	gaps  []Gap // of the parts
}

// part is a snapshot besides that of the root.
type part struct {
	*Snapshot
	// at is the path as in the changes, with a slash at its end.
	at string
	// below is true if the part is below the root.
	below bool
	// gone is true if it could not be compared.
	gone bool
}

// Look takes the snapshots. What it cannot look at is among [Survey.Gaps], except for the
// folder itself. Remove deletes the files of the snapshots.
func Look(ctx context.Context, dir string, o *SurveyOptions) (*Survey, error) {
	main, err := take(ctx, dir, o.Scratch, o.Files, false)
	if err != nil {
		return nil, err
	}
	v := &Survey{Snapshot: main}
	v.nested(ctx, part{Snapshot: main, below: true}, o)
	if name, ok := main.ignores(dir); ok {
		v.add(ctx, name, main.path(name), true, true, o)
	}
	for _, root := range o.Roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		if v.Covers(root) || root == main.root {
			continue
		}
		v.add(ctx, root, cmp.Or(Root(root), root), false, false, o)
	}
	return v, nil
}

// nested adds the repositories below a part.
func (v *Survey) nested(ctx context.Context, p part, o *SurveyOptions) {
	names := map[string]bool{}
	for name := range p.before.nested {
		names[name] = true
	}
	for name, isRepository := range p.before.modules {
		if isRepository {
			names[name] = true
		}
	}
	for _, name := range both(names, nil) {
		v.add(ctx, p.at+name, p.path(name), p.below, false, o)
	}
}

// ignores returns the name of a folder below the root, by its real path, and reports whether
// git ignores the whole folder.
func (s *Snapshot) ignores(dir string) (name string, ok bool) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	rel, ok := paths.Within(dir, s.root)
	if !ok {
		return "", false
	}
	name = filepath.ToSlash(rel) + "/"
	return name, slices.ContainsFunc(s.before.seen.ignored, func(i string) bool { return strings.HasSuffix(i, "/") && strings.HasPrefix(name, i) })
}

// add adds the snapshot of a folder. At is its path as in the changes. With own the folder is
// looked at as one without a repository.
func (v *Survey) add(ctx context.Context, at, dir string, below, own bool, o *SurveyOptions) {
	if !below {
		at = dir
	}
	at = strings.TrimSuffix(filepath.ToSlash(at), "/") + "/"
	if len(v.parts) == maxParts {
		v.gaps = append(v.gaps, Gap{at, "too many repositories and folders"})
		return
	}
	s, err := take(ctx, dir, o.Scratch, o.Files, own)
	if err == nil && s.root != dir {
		err = errors.Join(errors.New("it is not a repository"), s.Remove())
	}
	if err != nil {
		v.gaps = append(v.gaps, Gap{at, why(err)})
		return
	}
	p := part{Snapshot: s, at: at, below: below}
	v.parts = append(v.parts, p)
	v.nested(ctx, p, o)
}

// why returns the reason in an error.
func why(err error) string {
	if errors.Is(err, os.ErrNotExist) {
		return "it does not exist"
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "repo: "), "snapshot: ")
}

// Covers reports whether Compare finds changes of the file at an absolute path.
func (v *Survey) Covers(file string) bool {
	return v.Snapshot.Covers(file) || slices.ContainsFunc(v.parts, func(p part) bool { return !p.gone && p.Covers(file) })
}

// Compare returns the changes since the survey, sorted by path. The paths of changes
// outside of the root are absolute.
func (v *Survey) Compare(ctx context.Context) ([]Change, error) {
	changes, err := v.Snapshot.Compare(ctx)
	if err != nil {
		return nil, err
	}
	for i := range changes {
		changes[i].Last = v.last(changes[i])
	}
	for i := range v.parts {
		p := &v.parts[i]
		if p.below && !p.own && !p.isRepository("") {
			p.gone = true // the part above reports it
			continue
		}
		found, err := p.compare(ctx, false)
		if err != nil {
			p.gone = true
			v.gaps = append(v.gaps, Gap{p.at, why(err)})
			continue
		}
		for _, c := range found {
			c.Last = p.last(c)
			c.Path = p.at + c.Path
			changes = append(changes, c)
		}
	}
	SortChanges(changes)
	return changes, nil
}

// last returns when a file changed, or its folder if it is gone.
func (s *Snapshot) last(c Change) time.Time {
	if c.module {
		return s.lastCommit(c.Path)
	}
	name := c.Path
	for path := s.path(name); len(path) >= len(s.root); path = filepath.Dir(path) {
		if info, err := os.Lstat(path); err == nil {
			if t := changeTime(info); !t.IsZero() {
				return t
			}
			return info.ModTime()
		}
	}
	return time.Time{}
}

// lastCommit returns when the commit of a submodule changed, as its git folder shows.
func (s *Snapshot) lastCommit(name string) (last time.Time) {
	gitDir, _, err := folders(s.path(name))
	if err != nil {
		return time.Time{}
	}
	for _, file := range []string{"HEAD", "logs/HEAD", "index"} {
		if info, err := os.Lstat(filepath.Join(gitDir, filepath.FromSlash(file))); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}

// Gaps returns where changes were not looked for, after Compare.
func (v *Survey) Gaps() []Gap {
	var known []string // folders that git ignores, and that are looked at
	for _, p := range v.parts {
		if p.own && !p.gone {
			known = append(known, p.at)
		}
	}
	gaps := slices.Concat(v.Snapshot.gaps(known...), v.gaps)
	for _, p := range v.parts {
		if p.gone {
			continue
		}
		for _, g := range p.gaps() {
			g.Path = p.at + g.Path
			gaps = append(gaps, g)
		}
	}
	return gaps
}

// Diff is as for [Snapshot]. Changes outside of the root are not in the diff.
func (v *Survey) Diff(ctx context.Context, max int) (string, []Omission, error) {
	diff, left, err := v.Snapshot.Diff(ctx, max)
	if err != nil {
		return "", nil, err
	}
	for _, p := range v.parts {
		var more string
		var out []Omission
		switch {
		case p.gone:
			continue
		case p.below:
			if more, out, err = p.diff(ctx, max-len(diff), p.at, false); err != nil {
				return "", nil, err
			}
		default:
			for _, c := range slices.Concat(p.stored, p.others) {
				out = append(out, Omission{c, "outside of the folder"})
			}
		}
		diff += more
		for _, l := range out {
			l.Path = p.at + l.Path
			left = append(left, l)
		}
	}
	return diff, left, nil
}

// Remove deletes the snapshots.
func (v *Survey) Remove() error {
	err := v.Snapshot.Remove()
	for _, p := range v.parts {
		err = errors.Join(err, p.Remove())
	}
	return err
}

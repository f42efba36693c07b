package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// compare finds the changes since the look, and returns at most max bytes of their diff.
func (l *look) compare(ctx context.Context, max int) (diff string, err error) {
	if l.after, err = l.see(ctx); err != nil {
		return "", err
	}
	var sections map[string]string
	if changed := l.changed(); len(changed) > 0 {
		if sections, err = l.compareStored(ctx, changed); err != nil {
			return "", err
		}
	}
	l.compareOthers()
	return l.join(sections, max), nil
}

// changed returns the files that may have changed, sorted, and adds them to those that were seen after. The times of a file
// say so, also those of one of which git does not say it: it compares them in seconds, and what it would store.
func (l *look) changed() []string {
	changed := map[string]bool{}
	for name := range l.after.seen {
		if _, differed := l.before.seen[name]; !differed {
			changed[name] = true
		}
	}
	for name, before := range l.tracked {
		if now := l.now(name); now.is(modeFile) && now != before {
			changed[name], l.after.seen[name] = true, now
		}
	}
	for name, before := range l.before.seen {
		now, seen := l.after.seen[name]
		if !seen {
			now = l.now(name)
			l.after.seen[name] = now
		}
		if now != before || before.changed >= l.since.UnixNano() {
			changed[name] = true
		}
	}
	if len(changed) == 0 {
		return nil
	}
	for name := range l.giving { // git reads them as it compares others
		if !changed[name] {
			changed[name], l.after.seen[name] = true, l.now(name)
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// compareStored compares files that may have changed, of which git may make sections of a diff.
func (l *look) compareStored(ctx context.Context, names []string) (sections map[string]string, err error) {
	pairs, err := l.lay(ctx, names)
	if err != nil {
		return nil, err
	}
	changes, sections, err := l.diff(ctx)
	if err != nil {
		return nil, err
	}
	l.changes = append(l.changes, changes...)
	for _, section := range sections {
		pairs = pairs || strings.Contains(section, "\r\n")
	}
	ends, err := l.markConverted(ctx)
	if err == nil && len(sections) > 0 && l.converts() && (ends || pairs) {
		err = l.prove(ctx, sections)
	}
	return sections, err
}

// side makes one of the two folders that git compares: a has files as they were, b as they are.
func (l *look) side(name string) (*folder, error) {
	dir := filepath.Join(l.scratch, "sides", name)
	if !filepath.IsAbs(l.at) {
		dir = filepath.Join(dir, filepath.FromSlash(l.at))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return openFolder(dir)
}

// lay writes files into both sides, and reports whether one has a line that ends with CR LF. What a file was is what the look has
// kept of it, or else what git makes of the index.
func (l *look) lay(ctx context.Context, names []string) (pairs bool, err error) {
	from, err := openFolder(l.root)
	if err != nil {
		return false, err
	}
	defer from.close()
	was, err := l.side("a")
	if err != nil {
		return false, err
	}
	defer was.close()
	is, err := l.side("b")
	if err != nil {
		return false, err
	}
	defer is.close()
	var clean []string
	for _, name := range names {
		before, after := l.before.seen[name], l.after.seen[name]
		if l.before.others[name] != (other{}) || l.after.others[name] != (other{}) {
			continue
		}
		if l.modeless() {
			before.mode, after.mode = before.mode&^0o111, after.mode&^0o111
		}
		var data, now []byte
		if after.stored() {
			if now, err = from.read(name, after); err != nil {
				l.after.others[name] = other{why: notStored, is: after}
				continue
			}
		}
		_, differed := l.before.seen[name]
		at, kept := l.kept[name]
		if kept {
			data = make([]byte, at.size)
			if _, err := l.contents.ReadAt(data, at.at); err != nil {
				return false, err
			}
		}
		pairs = pairs || bytes.Contains(data, crlf) || bytes.Contains(now, crlf)
		switch {
		case kept && before.mode == after.mode && bytes.Equal(data, now) && !gives(name):
			continue
		case kept:
			err = was.put(name, before, data)
		case !differed && !l.after.new[name] && l.tracked[name].exists() && l.tracked[name] == after:
			err = was.put(name, after, now) // nobody has touched it
		case !differed && !l.after.new[name]:
			clean = append(clean, name)
		}
		if err == nil && after.stored() {
			err = is.put(name, after, now)
		}
		if err != nil {
			return false, err
		}
	}
	return pairs, l.checkOut(ctx, was, is, clean)
}

// checkOut has git write files of the index as they were. One that was not as git makes it is not known, and is on no side.
func (l *look) checkOut(ctx context.Context, was, is *folder, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := l.git(ctx, call{tree: was.top.Name(), stdin: zeros(names)}, "checkout-index", "--quiet", "-z", "--stdin")
	// else objects are missing, as in a partial clone
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	for _, name := range names {
		file, why := filepath.FromSlash(name), ""
		info, err := was.top.Lstat(file)
		s, known := l.tracked[name]
		switch {
		case err != nil:
			why = "git could not make the diff"
		case info.Size() > maxContent:
			why = notStored
		case known && info.Mode().IsRegular() && info.Size() != s.size && !was.endLines(name, s.size):
			why = converted
		case info.Mode().IsRegular() && l.modeless():
			_ = was.top.Chmod(file, 0o600)
		}
		if why != "" {
			l.before.others[name] = other{why: why}
			_, _ = was.top.Remove(file), is.top.Remove(file)
		}
	}
	return nil
}

var crlf = []byte("\r\n")

// endLines gives a file the other line ends if it has a size with them, and reports whether it has. If git converts those of a file,
// all are LF or all are CR LF.
func (f *folder) endLines(name string, size int64) bool {
	data, err := f.top.ReadFile(filepath.FromSlash(name))
	if err != nil {
		return false
	}
	lf := []byte("\n")
	data = bytes.ReplaceAll(data, crlf, lf)
	for _, data := range [][]byte{data, bytes.ReplaceAll(data, lf, crlf)} {
		if int64(len(data)) == size {
			return f.top.WriteFile(filepath.FromSlash(name), data, 0o600) == nil
		}
	}
	return false
}

// compareOthers adds the changes of what git does not store, and of files that are not known.
func (l *look) compareOthers() {
	all := maps.Clone(l.before.others)
	maps.Copy(all, l.after.others)
	for name := range all {
		before, after := l.before.others[name], l.after.others[name]
		if before == after {
			continue
		}
		c := Change{Path: name, Kind: Update, Why: cmp.Or(after.why, before.why)}
		isFolder := strings.HasSuffix(name, "/")
		now := l.now(name)
		switch {
		case before.why == "" && (isFolder || l.isNew(name)):
			c.Kind = Add
		case after.why == "" && (isFolder || !now.exists() || now.is(modeFolder)):
			c.Kind = Delete
		}
		l.changes = append(l.changes, c)
	}
}

// isNew reports whether there was no such file at the look.
func (l *look) isNew(name string) bool {
	_, seen := l.after.seen[name]
	return !l.before.seen[name].exists() && (l.after.new[name] || !seen)
}

package patch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// How much of what a patch of another program destroys is read, in bytes.
const (
	maxLostFile = 1 << 20
	maxLostAll  = 8 << 20
)

// Announced is a patch that another program will apply: what it announces, with what is there now and will be lost. Files are
// read below the working folder alone.
type Announced struct {
	// Changes, Links and Why are as the methods of [Plan] return them. Why also says what cannot be shown.
	Changes map[string]protocol.FileChange
	Links   map[string]string
	Why     map[string]string

	work Folder
	seen []*spot
	keys map[string]string // those of Changes, by the announced path
	size int
}

// A spot is what is at a path that a patch writes or removes.
type spot struct {
	written string // absolute
	follow  bool   // the patch writes what a link leads to
	link    string // the target of a link that is removed, or ""
	place   *place // nil if it cannot be found
	shown   string
	content *string // nil if it is not known, of a file that is there
	unknown string  // why
	twice   bool    // the patch names it more than once
}

// exists reports whether something is there.
func (s *spot) exists() bool { return s.place != nil && s.place.info != nil }

// isFile reports whether a file is there.
func (s *spot) isFile() bool { return s.exists() && s.place.info.Mode().IsRegular() }

// real returns where a write goes.
func (s *spot) real() string {
	if s.place == nil {
		return filepath.Clean(s.written)
	}
	return s.place.path
}

// announcedFile is one change, from a spot and maybe to another one.
type announcedFile struct {
	change   protocol.FileChange
	from, to *spot
}

// spots returns the spots of a change.
func (f announcedFile) spots() []*spot {
	if f.to == nil {
		return []*spot{f.from}
	}
	return []*spot{f.from, f.to}
}

const (
	whyTwice = "the patch names it twice, so that one of the texts is lost"
	whyFolds = "both names are those of one file here, which may be removed"
)

// whyUnknown says that what is lost is not shown, and why.
func whyUnknown(why string) string { return "what is lost there is not shown: " + why }

// Announce looks at what is where a patch will write or remove. The changes are by path as the program announced them. If it may
// have begun to write, what is there is only called lost if it cannot be of the patch.
func Announce(work Folder, changes map[string]protocol.FileChange, begun bool) *Announced {
	work.Real = cmp.Or(work.Real, paths.Real(work.Path))
	a := &Announced{
		Changes: map[string]protocol.FileChange{}, Links: map[string]string{}, Why: map[string]string{},
		work: work, keys: map[string]string{},
	}
	var files []announcedFile
	named := map[string]int{}
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		f := announcedFile{change: changes[path]}
		to := f.change.MovedTo()
		f.from = a.look(path, f.change.Delete == nil && (to == "" || to == path))
		named[f.from.real()]++
		if to != "" && to != path {
			f.to = a.look(to, true)
			named[f.to.real()]++
		}
		files = append(files, f)
	}
	for i, path := range slices.Sorted(maps.Keys(changes)) {
		f := files[i]
		for _, s := range f.spots() {
			if s.twice = named[s.real()] > 1; s.twice {
				s.shown = s.written // two changes cannot be shown by one name
			} else if s.shown != s.written {
				a.Links[s.shown] = s.written
			}
		}
		a.keys[path] = f.from.shown
		a.show(f, begun)
	}
	return a
}

// Replaces reports whether the change of an announced path replaces a file.
func (a *Announced) Replaces(path string) bool { return a.Changes[a.keys[path]].Replaces() }

func (a *Announced) note(s *spot, why string) { addWhy(a.Why, s.shown, why) }

// show adds what a change does.
func (a *Announced) show(f announcedFile, begun bool) {
	change, from := f.change, f.from
	if change.Add != nil || change.Delete != nil || f.to != nil {
		a.seen = append(a.seen, f.spots()...)
	}
	switch {
	case from.place == nil:
		a.note(from, from.unknown)
	case from.link != "" && change.Delete != nil:
		change.Delete = &protocol.FileContent{Content: from.link}
		a.note(from, whyLink)
	case from.link != "":
		a.note(from, whyLink)
	case change.Add != nil && from.exists():
		change = a.added(change, from, begun)
	}
	if f.to != nil {
		change = a.moved(change, f, begun)
	}
	if from.twice || f.to != nil && f.to.twice {
		a.note(from, whyTwice)
	}
	a.Changes[from.shown] = change
}

// added returns the change that adds a file where something is.
func (a *Announced) added(change protocol.FileChange, at *spot, begun bool) protocol.FileChange {
	after := change.Add.Content
	if !at.isFile() {
		a.note(at, at.unknown)
		return change
	}
	a.read(at)
	switch before := at.content; {
	case before == nil:
		a.note(at, whyUnknown(at.unknown))
		return update("", after, nil, true)
	case begun && strings.HasPrefix(after, *before):
		return change
	case !utf8.ValidString(*before):
		a.note(at, whyNotText)
		fallthrough
	default:
		return update(*before, after, nil, true)
	}
}

// moved returns the change of the file that moves, and adds that of the file that is lost by it.
func (a *Announced) moved(change protocol.FileChange, f announcedFile, begun bool) protocol.FileChange {
	from, to := f.from, f.to
	change.Update = &protocol.FileUpdate{UnifiedDiff: change.Update.UnifiedDiff, MovePath: &to.shown}
	switch {
	case to.place == nil:
		a.note(from, to.unknown)
		return change
	case !to.exists() || begun && !from.exists():
		return change
	case !to.isFile():
		a.note(from, to.unknown)
		return change
	}
	if same, err := sameEntry(from.place, to.place); err == nil && same {
		a.note(from, whyFolds)
		return change
	}
	change.Update.Replaces = true
	if to.twice {
		return change
	}
	a.read(from)
	a.read(to)
	if to.content == nil {
		a.note(from, whyUnknown(to.unknown))
		return change
	}
	if !utf8.ValidString(*to.content) {
		a.note(to, whyNotText)
	}
	after, known := "", false
	if from.content != nil {
		after, known = rewritten(*from.content, change.Update.UnifiedDiff)
	}
	a.Changes[to.shown] = update(*to.content, after, nil, true)
	if !known {
		return change
	}
	a.note(from, whyOver(to.shown))
	removed := *from.content
	if from.link != "" {
		removed = from.link
	}
	return protocol.FileChange{Delete: &protocol.FileContent{Content: text(removed)}}
}

// look finds what is at a path, and reads nothing.
func (a *Announced) look(name string, follow bool) *spot {
	s := &spot{written: filepath.FromSlash(name), follow: follow}
	s.shown = s.written
	if !filepath.IsAbs(s.written) {
		s.unknown = "its path is not absolute, so it is not known what is there"
		return s
	}
	path := filepath.Clean(s.written)
	plan := newPlan(a.work, a.work.Path)
	err := paths.Local(runtime.GOOS, path, a.work.Path)
	var entry, target *place
	if err == nil {
		entry, target, err = plan.places(path)
	}
	if err != nil {
		s.unknown = whyNotSeen(err)
		return s
	}
	if s.place = entry; follow {
		s.place = target
	} else {
		s.link = entry.link
	}
	s.shown = shownAs(a.work, s.written, s.place.path)
	if s.exists() && !s.isFile() {
		s.unknown = "what is there is not a file"
		if s.place.info.IsDir() {
			s.unknown = "a folder is there"
		}
	}
	return s
}

// read reads a file that will be lost. Of a link that is removed it is the file to which that leads.
func (a *Announced) read(s *spot) {
	at := s.place
	if s.link != "" {
		if full := a.look(s.written, true); full.isFile() {
			at = full.place
		}
	}
	content, err := a.contentOf(at)
	if err != nil {
		s.unknown = whyNotSeen(err)
		return
	}
	s.content = &content
}

// whyNotSeen returns an error without the names in it, which are not the words of this program.
func whyNotSeen(err error) string {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	if errors.As(err, new(*unseenError)) || errors.As(err, new(syscall.Errno)) {
		return err.Error()
	}
	return "it cannot be looked at"
}

// unseenError is why a file is not read, without its name.
type unseenError struct{ text string }

func (e *unseenError) Error() string { return e.text }

func (a *Announced) contentOf(at *place) (content string, err error) {
	switch size := at.info.Size(); {
	case !paths.Below(at.path, a.work.Real):
		return "", &unseenError{fmt.Sprintf("it is a file of %d bytes outside of the folder", size)}
	case size > maxLostFile, a.size+int(size) > maxLostAll:
		return "", &unseenError{fmt.Sprintf("it is a file of %d bytes", size)}
	}
	err = at.folder.do(func(root *os.Root) error {
		file, err := safefile.OpenIn(root, at.name(), os.O_RDONLY)
		if err != nil {
			return err
		}
		defer file.Close()
		if inProc, err := safefile.InProc(file); err != nil || inProc {
			return cmp.Or(err, ErrProc)
		}
		data, err := file.ReadAll(maxLostFile)
		content = string(data)
		return err
	})
	a.size += len(content)
	return content, err
}

// Check fails if what will be lost is no longer what was there when the patch was announced.
func (a *Announced) Check() error {
	for _, was := range a.seen {
		now := a.look(was.written, was.follow)
		same := now.real() == was.real() && now.link == was.link && now.exists() == was.exists()
		if same && was.exists() {
			before, after := was.place.info, now.place.info
			same = os.SameFile(before, after) && before.Size() == after.Size() &&
				before.ModTime().Equal(after.ModTime())
		}
		if same && was.content != nil {
			a.size = 0
			a.read(now)
			same = now.content != nil && *now.content == *was.content
		}
		if !same {
			return errors.New(was.shown + " was changed while the question was open")
		}
	}
	return nil
}

// rewritten returns a text after the hunks of a unified diff, which must fit exactly. What follows the hunks does not count.
func rewritten(before, diff string) (after string, ok bool) {
	lines, rest := strings.SplitAfter(before, "\n"), strings.SplitAfter(diff, "\n")
	var b strings.Builder
	done := 0
	for len(rest) > 0 && strings.HasPrefix(rest[0], "@@") {
		m := hunkHeader.Get().FindStringSubmatch(rest[0])
		if m == nil {
			return "", false
		}
		start, old, new := number(m[1], 0), number(m[2], 1), number(m[3], 1)
		if old > 0 {
			start--
		}
		if start < done || start > len(lines) {
			return "", false
		}
		b.WriteString(strings.Join(lines[done:start], ""))
		done, rest = start, rest[1:]
		for ; (old > 0 || new > 0) && len(rest) > 0 && rest[0] != ""; rest = rest[1:] {
			line := rest[0][1:]
			if len(rest) > 1 && strings.HasPrefix(rest[1], `\`) {
				line = strings.TrimSuffix(line, "\n")
			}
			sign := rest[0][0]
			if sign == kept || sign == removed {
				if done == len(lines) || lines[done] != line {
					return "", false
				}
				done, old = done+1, old-1
			}
			if sign == kept || sign == added {
				b.WriteString(line)
				new--
			}
		}
		if old != 0 || new != 0 {
			return "", false
		}
		if len(rest) > 0 && strings.HasPrefix(rest[0], `\`) {
			rest = rest[1:]
		}
	}
	return b.String() + strings.Join(lines[done:], ""), true
}

var hunkHeader = lazyregexp.Regexp{Text: `^@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@`}

// number returns the number of a hunk's header, or what it is without one.
func number(digits string, without int) int {
	if digits == "" {
		return without
	}
	n, err := strconv.Atoi(digits)
	if err != nil {
		return -1
	}
	return n
}

package git

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxIndex is the size of the largest index in bytes.
const maxIndex = 1 << 30

// index is the content of an index. The zero value is that of none.
type index struct {
	data    string                       // as it was, or as git has written it anew
	written int64                        // when it was written, in nanoseconds since 1970
	folders map[string]map[string]*entry // the files in each folder that has some below it, by their names there
	flags   string                       // what is to change in a copy, as git reads it
	modes   bool                         // the modes of files count
	laid    bool                         // git has a copy
	// attributes is true if a file gives attributes to others, of the index or not.
	attributes bool
}

type entry struct {
	object            string // as bytes
	mode              uint32 // of git
	size, inode       uint32 // of the file when git last compared it; their lower bits
	modified, changed int64
	met               bool // the last tour has met it
}

// Modes of git. Those of the first three types are those of systems too.
const (
	modeType    = 0o170000
	modeFile    = 0o100000
	modeLink    = 0o120000
	modeFolder  = 0o040000 // in a sparse index
	modeModule  = 0o160000
	modeProgram = 0o100755
)

// Flags of an entry, and of an extended one.
const (
	flagAssumed  = 1 << 15
	flagExtended = 1 << 14
	flagHidden   = 1 << 14
)

// readIndex reads the index of the repository as data, as far as git has written it in a plain form. In
// its copy git looks at each file that is there, and does not see those that are not checked out.
func (l *look) readIndex(ctx context.Context) error {
	data, written, err := l.indexFile()
	if err != nil || data == nil {
		return err
	}
	// Modes count if the file system keeps them, whatever the setting: else git's own files seem to be programs.
	config, _ := lstat(filepath.Join(l.commonDir, "config"))
	l.index.modes = config.mode&0o111 == 0 || !isFalse(l.settings["filemode"])
	if l.index.modes {
		l.settings["filemode"] = "true"
	}
	sha256 := l.settings["objectformat"] == "sha256"
	hidden := func(name string) bool { _, err := os.Lstat(l.path(name)); return err != nil }
	l.index.written = written.UnixNano()
	if l.index.parse(data, sha256, hidden) {
		return nil
	}
	if _, err = l.git(ctx, call{}, "update-index", "--index-version", "2", "--force-write-index"); err == nil {
		data, err = safefile.Read(filepath.Join(l.scratch, "index"), maxIndex)
	}
	if err == nil && !l.index.parse(data, sha256, hidden) {
		err = errors.New("the index cannot be read")
	}
	l.index.laid = false
	return err
}

// indexFile returns the repository's index, or nil without one, and when it was written.
func (m *mirror) indexFile() (data []byte, written time.Time, err error) {
	file := filepath.Join(m.gitDir, "index")
	info, err := os.Stat(file)
	if m.gitDir == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, written, nil
	}
	if err == nil {
		written = info.ModTime()
		data, err = safefile.Read(file, maxIndex)
	}
	return data, written, err
}

// lay makes the mirror and writes the copy of the index for git. Git takes files that were written shortly before the
// look or later for ones that it must read, because it compares times in seconds. It stores files as
// they are, but for line ends.
func (l *look) lay(ctx context.Context) error {
	if l.index.laid {
		return nil
	}
	l.index.laid = true
	at := time.Unix(0, l.index.written)
	if at.After(l.since) {
		at = l.since
	}
	err := l.putIndex([]byte(l.index.data), at)
	if err == nil {
		err = l.setAttributes("* -filter -ident !working-tree-encoding")
	}
	if err != nil || l.index.flags == "" {
		return err
	}
	if _, err = l.git(ctx, call{stdin: l.index.flags}, "update-index", "-z", "--index-info"); err != nil {
		return err
	}
	return os.Chtimes(filepath.Join(l.scratch, "index"), at, at)
}

// putIndex makes the mirror and writes its index, if the repository has one.
func (m *mirror) putIndex(data []byte, at time.Time) error {
	if err := m.make(); err != nil || len(data) == 0 {
		return err
	}
	parts, err := os.ReadDir(m.gitDir)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if strings.HasPrefix(part.Name(), "sharedindex.") && part.Type().IsRegular() {
			if err := os.Symlink(filepath.Join(m.gitDir, part.Name()), filepath.Join(m.folder(), part.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	file := filepath.Join(m.scratch, "index")
	return cmp.Or(os.WriteFile(file, data, 0o600), os.Chtimes(file, at, at))
}

// parse reads an index of version 2 or 3 that has all of its entries, without those that are not
// checked out and that absent finds missing. It returns false for all others, which git must write anew.
func (x *index) parse(data []byte, long bool, absent func(name string) bool) bool {
	hash := 20
	if long {
		hash = 32
	}
	x.data = string(data)
	number := func(at int) uint32 { return binary.BigEndian.Uint32(data[at:]) }
	moment := func(at int) int64 { return int64(number(at))*int64(time.Second) + int64(number(at+4)) }
	if len(data) < 12+hash || string(data[:4]) != "DIRC" || number(4) != 2 && number(4) != 3 {
		return false
	}
	var flags strings.Builder
	count, fixed := int(number(8)), 40+hash+2
	data = data[:len(data)-hash]
	list := make([]entry, 0, min(count, len(data)/fixed)) // which does not grow, so that entries stay in place
	x.folders = map[string]map[string]*entry{}
	at := 12
	for range count {
		if len(data) < at+fixed+2 {
			return false
		}
		flag, begin, hidden := int(data[at+fixed-2])<<8, at+fixed, false
		if flag&flagExtended != 0 {
			hidden = int(data[begin])<<8&flagHidden != 0
			begin += 2
		}
		length := bytes.IndexByte(data[begin:], 0)
		e := entry{
			changed: moment(at), modified: moment(at + 8), inode: number(at + 20), mode: number(at + 24), size: number(at + 36),
			object: x.data[at+40 : at+40+hash],
		}
		if length <= 0 || e.mode == modeFolder {
			return false
		}
		name := x.data[begin : begin+length]
		if path.Clean(name) != name || name[0] == '/' || name == ".." || strings.HasPrefix(name, "../") {
			return false
		}
		at += (begin + length - at + 8) &^ 7
		if hidden && absent(name) {
			fmt.Fprintf(&flags, "0 %x\t%s\x00", e.object, name)
			continue
		}
		if hidden || flag&flagAssumed != 0 {
			fmt.Fprintf(&flags, "%o %x %d\t%s\x00", e.mode, e.object, flag>>12&3, name)
		}
		dir, base := splitName(name)
		files := x.folders[dir]
		if files == nil {
			files = map[string]*entry{}
			x.folders[dir] = files
		}
		for known := false; dir != "" && !known; { // those above it may have no files
			dir, _ = splitName(dir)
			if _, known = x.folders[dir]; !known {
				x.folders[dir] = nil
			}
		}
		if files[base] == nil { // a file in conflict has many
			list = append(list, e)
			files[base] = &list[len(list)-1]
		}
		x.attributes = x.attributes || gives(name)
	}
	for at+8 <= len(data) { // an extension that git must know has a lower letter
		if data[at] < 'A' || data[at] > 'Z' {
			return false
		}
		at += 8 + int(number(at+4))
	}
	x.flags = flags.String()
	return true
}

// splitName splits a name into its folder, which is "" at the top, and its name there.
func splitName(name string) (dir, base string) {
	end := strings.LastIndexByte(name, '/')
	return name[:max(end, 0)], name[end+1:]
}

func (x *index) entry(name string) *entry {
	dir, base := splitName(name)
	return x.folders[dir][base]
}

// gives reports whether a file may give attributes to others.
func gives(name string) bool {
	const last = ".gitattributes"
	return len(name) >= len(last) && strings.EqualFold(name[len(name)-len(last):], last)
}

// emptyFile is the object of an empty file, of SHA-1.
const emptyFile = "\xe6\x9d\xe2\x9b\xb2\xd1\xd6\x43\x4b\x8b\x29\xae\x77\x5a\xd8\xc2\xe4\x8c\x53\x91"

// isClean reports whether a file is certainly the one of the index, as its size and times show.
func (x *index) isClean(e *entry, s stat) bool {
	switch {
	case e.mode == modeLink && !s.is(modeLink), e.mode != modeLink && !s.is(modeFile):
		return false
	case e.mode != modeLink && x.modes && (e.mode == modeProgram) != (s.mode&0o100 != 0):
		return false
	case e.size != uint32(s.size), e.inode != uint32(s.inode), !sameTime(e.modified, s.modified), !sameTime(e.changed, s.changed):
		return false
	case e.size == 0 && e.object != emptyFile: // git marks files with that size
		return false
	}
	at, step := max(e.modified, e.changed), tick // a file may have changed after the index was written
	if at%int64(time.Second) == 0 {
		step = coarse
	}
	return at < x.written-int64(step)
}

// sameTime compares a time in an index with one of the file system. Git may have no fractions.
func sameTime(index, file int64) bool {
	return index == file || index%int64(time.Second) == 0 && index == file-file%int64(time.Second)
}

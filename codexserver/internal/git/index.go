package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// maxIndex is the size of the largest index in bytes.
const maxIndex = 1 << 30

// copyIndex makes the mirror with a copy of the repository's index, if it has one. The copy is as old, because git
// takes files that are not older for ones that it must read.
func (m *mirror) copyIndex() error {
	if err := m.make(); err != nil || m.gitDir == "" {
		return err
	}
	from, to := filepath.Join(m.gitDir, "index"), filepath.Join(m.scratch, "index")
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var data []byte
	if err == nil {
		data, err = safefile.Read(from, maxIndex)
	}
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		return err
	}
	shared, err := filepath.Glob(filepath.Join(m.gitDir, "sharedindex.*")) // of an index in two parts
	for _, part := range shared {
		if !special(part) {
			err = cmp.Or(err, os.Symlink(part, filepath.Join(m.folder(), filepath.Base(part))))
		}
	}
	return cmp.Or(err, os.Chtimes(to, info.ModTime(), info.ModTime()))
}

// lay makes the mirror with a copy of the index, in which git looks at each file that is there, and does not see
// those that are not checked out.
func (l *look) lay(ctx context.Context) error {
	// Modes count if the file system keeps them, whatever the setting: else git's own files seem to be programs.
	if config, err := os.Stat(filepath.Join(l.commonDir, "config")); err == nil && isPosix && config.Mode()&0o111 == 0 {
		l.settings["filemode"] = "true"
	}
	if err := l.copyIndex(); err != nil {
		return err
	}
	crlf := l.settings["autocrlf"]
	l.before.converts = crlf != "" && !isFalse(crlf) || exists(filepath.Join(l.folder(), "info", "attributes"))
	out, err := l.call(ctx, call{cut: maxIndex}, "ls-files", "-z", "-v", "-s")
	if err != nil {
		return err
	}
	var flags strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		l.before.converts = l.before.converts || gives(line)
		if strings.HasPrefix(line, "H 10") || strings.HasPrefix(line, "H 12") { // a file, or a link
			continue
		}
		entry, name, _ := strings.Cut(line, "\t") // a letter, a mode, an object and a stage
		fields := strings.Fields(entry)
		if len(fields) != 4 { // there is no line
			continue
		}
		if fields[1] == modeModule {
			l.before.modules[name] = true
		}
		switch fields[0] {
		case "H", "M":
		case "S", "s":
			if !exists(l.path(name)) {
				fields[1] = "0"
			}
			fallthrough
		default: // a lower letter: git does not look at it
			fmt.Fprintf(&flags, "%s %s %s\t%s\x00", fields[1], fields[2], fields[3], name)
		}
	}
	if flags.Len() > 0 {
		_, err = l.call(ctx, call{stdin: flags.String()}, "update-index", "-z", "--index-info")
	}
	return err
}

// coarse is how exact times are at least, if they are those of several clocks.
const coarse = 2 * time.Second

// age makes the index older than the look, so that git reads the files that were written shortly before it or
// later. Git compares times in seconds.
func (l *look) age() error {
	file, then := filepath.Join(l.scratch, "index"), l.before.begin.Add(-coarse)
	info, err := os.Stat(file)
	if err == nil && info.ModTime().After(then) {
		err = os.Chtimes(file, then, then)
	}
	if errors.Is(err, fs.ErrNotExist) { // the folder is empty
		return nil
	}
	return err
}

// inSecond reports whether git takes two times for the same.
func inSecond(a, b int64) bool { return a/int64(time.Second) == b/int64(time.Second) }

// gives reports whether a file may give attributes to others.
func gives(name string) bool {
	const last = ".gitattributes"
	return len(name) >= len(last) && strings.EqualFold(name[len(name)-len(last):], last)
}

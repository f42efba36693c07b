package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/codexmcp/codexmcp/internal/safefile"
)

// MaxContent is how many bytes of files an approval can remember.
const MaxContent = 64 << 20

// Content returns a sum of what a command would use: its words, and the content or absence
// of every file that commands may write and that a word, or a part of one, names. That
// includes programs that PATH may find and the profiles of shells. The sum is equal only if
// all of this is unchanged.
//
// It returns false if no approval may last: the words have another meaning than themselves
// (see [Literal]), name a folder, or name a file that cannot be read whole.
func (p Place) Content(argv []string) (sum string, ok bool) {
	words, programs, ok := Literal(argv)
	if !ok || len(words) > maxWords || p.searchesCurrent() || runtime.GOOS == "windows" { // there PATH alone does not find programs
		return "", false
	}
	r := &census{roots: Folders(p.Roots), sum: sha256.New(), seen: map[entry]bool{}, left: MaxContent}
	fmt.Fprintf(r.sum, "%q\n", words)
	for _, file := range p.profiles() {
		r.add(file, false)
	}
	folders := filepath.SplitList(p.value("PATH"))
	done := map[part]bool{}
	for i, word := range words {
		all := []part{{word, true}}
		if i >= programs {
			if all, ok = parts(word); !ok {
				return "", false
			}
			all = slices.DeleteFunc(all, func(p part) bool {
				known := done[p]
				done[p] = true
				return known
			})
		}
		if r.failed = r.failed || len(done) > maxNames; r.failed {
			return "", false
		}
		for _, before := range words[:i] { // git x starts git-x
			all = append(all, part{filepath.Base(before) + "-" + word, false})
		}
		for _, part := range all {
			if i >= programs || strings.Contains(part.name, "/") {
				r.add(p.absolute(part.name), part.whole)
			}
			for _, dir := range folders {
				if path := filepath.Join(dir, part.name); exists(path) {
					r.add(path, false)
				}
			}
		}
	}
	return fmt.Sprintf("%x", r.sum.Sum(nil)), !r.failed
}

// census adds files to a sum.
type census struct {
	roots  []os.FileInfo
	sum    hash.Hash
	seen   map[entry]bool
	left   int64
	failed bool
}

type entry struct {
	path string
	open bool // the command may use a folder of this name
}

// add adds a file that a command may use. It fails for a folder if open is true.
func (r *census) add(path string, open bool) {
	e := entry{path, open}
	if r.failed || r.seen[e] {
		return
	}
	r.seen[e] = true
	// The engine and the system may resolve ".." after a link differently.
	if r.failed = len(r.seen) > maxNames || open && slices.Contains(strings.Split(path, "/"), ".."); r.failed {
		return
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		r.miss(path)
	case errors.Is(err, fs.ErrPermission): // out of reach for the command, too
		fmt.Fprintf(r.sum, "%q out of reach\n", path)
	case err != nil, info.IsDir() && open:
		r.failed = true
	case info.IsDir():
		fmt.Fprintf(r.sum, "%q folder\n", path)
	case !LeadsThrough(path, r.roots):
		fmt.Fprintf(r.sum, "%q fixed\n", path)
	default:
		r.read(path)
	}
}

// miss adds a file that does not exist, and where the folders above it are: a link in their
// place would lead the command elsewhere. It fails for a link to nothing.
func (r *census) miss(path string) {
	for dir := path; ; {
		if _, err := os.Lstat(dir); err == nil {
			real, err := filepath.EvalSymlinks(dir)
			fmt.Fprintf(r.sum, "%q absent in %q\n", path, real)
			r.failed = r.failed || err != nil
			return
		}
		parent := filepath.Dir(dir)
		if r.failed = r.failed || parent == dir; r.failed {
			return
		}
		dir = parent
	}
}

// read adds the content of a file, and where links lead to it.
func (r *census) read(path string) {
	f, err := safefile.Open(path)
	if err != nil {
		r.failed = true
		return
	}
	defer f.Close()
	real, lost := filepath.EvalSymlinks(path)
	content := sha256.New()
	n, err := io.Copy(content, io.LimitReader(f, r.left+1))
	fmt.Fprintf(r.sum, "%q %q %s %x\n", path, real, f.Info().Mode(), content.Sum(nil))
	r.left -= n
	r.failed = errors.Join(lost, err) != nil || r.left < 0
}

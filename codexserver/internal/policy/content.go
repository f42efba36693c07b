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

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
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
	roots := Folders(p.Roots)
	r := &census{fixed: func(path string) bool { return !LeadsThrough(path, roots) }, sum: sha256.New(), seen: map[entry]bool{}, left: MaxContent}
	return p.content(argv, r)
}

// Everything is Content for a command that another program starts outside the sandbox, in an
// environment that cannot be changed. Its sum has every file that is named and that this user
// can write, the interpreters of scripts, and the configuration of git.
func (p Place) Everything(argv []string) (sum string, ok bool) {
	r := p.newCensus()
	r.path = p.value("PATH")
	words, programs, ok := Literal(argv)
	if !ok {
		return "", false
	}
	for _, entry := range p.Env {
		if name, value, _ := strings.Cut(entry, "="); name != "PATH" && !matches(dataVariables, name) {
			p.names(r, value) // the folders stay open
		}
	}
	if program, err := proc.LookPath(words[programs-1], p.Dir, p.Env); err == nil {
		if programName(program) == "git" {
			if err := new(Unasked).addGit(p, r, words[programs-1:], program); err != nil {
				return "", false
			}
			for _, dir := range filepath.SplitList(r.path) {
				r.add(filepath.Join(dir, "ssh"), false)
			}
		}
	}
	return p.content(argv, r)
}

func (p Place) content(argv []string, r *census) (sum string, ok bool) {
	words, programs, ok := Literal(argv)
	if !ok || len(words) > maxWords || p.searchesCurrent() || runtime.GOOS == "windows" { // there PATH alone does not find programs
		return "", false
	}
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
	fixed  func(path string) bool // commands cannot write the file
	sum    hash.Hash
	seen   map[entry]bool
	left   int64
	failed bool

	// For [Place.Unasked].
	strict bool
	path   string        // the PATH in which scripts find their interpreters
	ways   []os.FileInfo // the folders on the ways to what is not fixed
	why    error         // why it failed
	at     string        // where
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
	defer func() {
		if r.failed && r.at == "" {
			r.at = path
		}
	}()
	// The engine and the system may resolve ".." after a link differently.
	if r.failed = len(r.seen) > maxNames || open && slices.Contains(strings.Split(path, "/"), ".."); r.failed {
		return
	}
	if r.strict && !r.fixed(path) {
		r.way(path)
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
	case r.fixed(path):
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
	if r.strict && f.Info().Mode()&0o111 != 0 {
		r.starts(path)
	}
}

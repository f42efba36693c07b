package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/proc"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Unasked is how a command runs outside the sandbox because of an earlier approval: nobody is
// asked at that moment. It starts only what no command can write, and what its sums cover.
type Unasked struct {
	protocol.Unasked
	// Argv and Env are what starts: the program by its absolute path, without a shell that
	// reads a profile, and the verified environment. They are nil unless Sum or Setup is set.
	Argv, Env []string
	// Ways are the folders on the ways to all that is read. While none of them is writable for
	// a running command, the sums stay true.
	Ways []fs.FileInfo
}

// Unasked returns how a command runs outside the sandbox if no person is asked.
//
// Its PATH has only folders that commands can never write. Of the variables that name
// programs or code, it has only those that lead there. Every other file that the words, the
// variables, the first line of a script or the configuration of git name is part of the sums.
func (p Place) Unasked(argv []string) Unasked {
	u := Unasked{}
	c := p.newCensus()
	rest, err := u.begin(p, c, argv)
	if err != nil {
		return Unasked{Unasked: protocol.Unasked{Why: err.Error()}}
	}
	fmt.Fprintf(c.sum, "%q\n", rest)
	if err := c.words(p, rest); err != nil {
		u.Why = err.Error()
	} else {
		u.Sum = fmt.Sprintf("%x", c.sum.Sum(nil))
	}
	u.Ways = c.ways
	return u
}

// newCensus returns a census for which a file is fixed only if no command can ever write it.
func (p Place) newCensus() *census {
	roots := Folders(p.Roots)
	return &census{fixed: func(path string) bool { return unwritable(path, roots) }, strict: true, sum: sha256.New(), seen: map[entry]bool{}, left: MaxContent}
}

// begin sets all but the sum of the command's words, which it returns, and adds to the census
// what the command starts whatever its words are.
func (u *Unasked) begin(p Place, c *census, argv []string) (words []string, err error) {
	words, programs, ok := Literal(argv)
	switch {
	case runtime.GOOS == "windows":
		return nil, errors.New("on this system it is not known which program would start")
	case !ok || len(words) > maxWords || p.searchesCurrent():
		return nil, errors.New("its words may have another meaning the next time")
	}
	words = words[programs-1:]
	c.way(p.Dir)
	path := ""
	u.Env, path = p.verified(c, words[0])
	program, err := proc.LookPath(words[0], p.Dir, p.Env)
	if err != nil {
		return nil, fmt.Errorf("%s is not found", words[0])
	}
	u.Argv = append([]string{program}, words[1:]...)
	if programs > 1 {
		if u.Argv, err = p.scripted(argv, words, program, path); err != nil {
			return nil, err
		}
	}
	c.path = path
	c.add(program, true)
	c.starts(program)
	if programName(words[0]) == "git" || programName(program) == "git" {
		if err := u.addGit(p, c, words, program); err != nil {
			return nil, err
		}
	}
	return words, c.err("it would start")
}

// scripted returns the argv of a script with one command: the command itself or, if it
// redirects its streams, the shell without its profile.
func (p Place) scripted(argv, words []string, program, path string) ([]string, error) {
	command, files, _ := ParseOne(argv[2])
	if len(files) == 0 && len(command) == len(words) && !isMeaning(words[0]) {
		return append([]string{program}, words[1:]...), nil
	}
	in := []string{"PATH=" + path}
	shell, err := proc.LookPath(argv[0], p.Dir, in)
	found, missing := proc.LookPath(words[0], p.Dir, in)
	if err != nil || missing != nil || found != program || isMeaning(words[0]) {
		return nil, fmt.Errorf("the shell would find %s in a folder that commands can write", words[0])
	}
	return []string{shell, "-c", argv[2]}, nil
}

// words adds the files that the words of a command may name.
func (r *census) words(p Place, words []string) error {
	done := map[part]bool{}
	for _, word := range words[1:] {
		// The command would not find it in its PATH.
		if found, err := proc.LookPath(word, p.Dir, p.Env); err == nil && !strings.Contains(word, "/") && !r.fixed(found) {
			r.fail(fmt.Errorf("it could start %s, which commands can write", found))
			break
		}
		all, ok := parts(word)
		if r.failed = r.failed || !ok; r.failed {
			break
		}
		for _, part := range all {
			if !done[part] {
				done[part] = true
				r.add(p.absolute(part.name), part.whole)
			}
		}
		r.failed = r.failed || len(done) > maxNames
	}
	return r.err("its words name")
}

// err says why the census failed.
func (r *census) err(what string) error {
	switch {
	case !r.failed:
		return nil
	case r.why != nil:
		return r.why
	case r.at != "":
		return fmt.Errorf("%s %s, and an approval cannot remember that", what, r.at)
	}
	return fmt.Errorf("%s more than an approval can remember", what)
}

// starts adds the interpreter of a script, and that of the interpreter.
func (r *census) starts(path string) {
	for range 4 {
		words := Interpreter(path)
		if len(words) == 0 {
			return
		}
		if path = words[0]; !filepath.IsAbs(path) {
			r.fail(fmt.Errorf("the interpreter of a script, %s, depends on the folder", path))
			return
		}
		r.add(path, true)
		if filepath.Base(path) != "env" {
			continue
		}
		name, ok := EnvProgram(words)
		found, err := proc.LookPath(name, "/", []string{"PATH=" + r.path})
		if !ok || err != nil {
			r.fail(fmt.Errorf("a script searches its interpreter %s, which is in no folder that only the system can write", strings.Join(words[1:], " ")))
			return
		}
		path = found
		r.add(path, true)
	}
	r.fail(errors.New("a script has too many interpreters"))
}

func (r *census) fail(why error) {
	if !r.failed {
		r.failed, r.why = true, why
	}
}

// way adds the folders on the way to path.
func (r *census) way(path string) {
	walk(path, func(_ string, info os.FileInfo) bool {
		if info.IsDir() && !slices.ContainsFunc(r.ways, func(other fs.FileInfo) bool { return os.SameFile(other, info) }) {
			r.ways = append(r.ways, info)
		}
		return true
	})
}

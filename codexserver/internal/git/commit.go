package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// CommitOptions say what a commit is about.
type CommitOptions struct {
	// Prompt is what the work was asked for by. Its first line is the first of the message.
	Prompt string
	// Thread is the id of the conversation. A worktree of another one is left alone.
	Thread string
	// Withheld, unless it is nil, fails for an absolute path whose content must not be in a commit.
	Withheld func(path string) error
}

// Committed is what a commit has done.
type Committed struct {
	// Commit is the last commit of the branch, or "" if that has none since it began.
	Commit string
	// Left names what has changed and is not in the commit. A folder ends with a slash.
	Left []Gap
}

// Reasons why a change is not in a commit.
const (
	submodule     = "a submodule"
	unreadable    = "it changed while it was read, or cannot be read"
	realContent   = "git-lfs stores it elsewhere, and git-lfs does not run here"
	needsProgram  = "a filter of git's converts it, which does not run here"
	notRepository = "it is a submodule without a repository"
)

const (
	commitTimeout = time.Minute
	maxSubject    = 72 // characters
)

// Commit commits on the branch of the worktree all that git status names there, and returns the last commit of the branch.
// Without changes it makes no commit. It makes none, and fails, where the branch is not what the worktree has checked out,
// or something such as a merge is under way in it.
//
// Git runs on a mirror, as for [Look], and the new content is that of copies which nothing else can write: no program of the
// repository or the user runs, not even to sign. Nothing but the branch moves. What is left out stays as it is in the
// worktree.
func (w *Worktree) Commit(ctx context.Context, o CommitOptions) (Committed, error) {
	long := fmt.Errorf("a commit takes longer than %v", commitTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, commitTimeout, long)
	defer cancel()
	hold, err := w.hold(ctx)
	if err != nil {
		return Committed{}, err
	}
	defer hold.release()
	subject := Subject(o.Prompt)
	if err := hold.file.Overwrite(subject); err != nil {
		return Committed{}, err
	}
	return w.commit(ctx, subject, &o)
}

// Subject returns the first line of the message of a commit of work that a prompt has asked for.
func Subject(prompt string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(prompt), "\n")
	subject := plain.OneLine(line, maxSubject)
	if runes := []rune(subject); len(runes) > maxSubject { // with its mark that it was cut
		subject = string(runes[:maxSubject-1]) + "…"
	}
	if subject == "" {
		return "Work of a conversation"
	}
	return subject
}

// draft is a commit that is being made.
type draft struct {
	*look
	worktree *Worktree
	withheld func(path string) error
	tip      string            // the last commit
	names    []string          // the files that differ from it
	modules  map[string]string // the submodules of the index and their commits in the last commit, "" for none
	left     []Gap
}

// commit is Commit while others are kept out.
func (w *Worktree) commit(ctx context.Context, subject string, o *CommitOptions) (done Committed, err error) {
	if w.Thread != "" && o.Thread != w.Thread {
		return done, errors.New("the worktree is that of another conversation")
	}
	if err := w.ready(ctx); err != nil {
		return done, err
	}
	m, err := w.mirror()
	if err != nil {
		return done, err
	}
	d := &draft{look: &look{mirror: m, real: map[string]bool{}, giving: map[string]bool{}}, worktree: w,
		withheld: o.Withheld, modules: map[string]string{}}
	defer func() { _ = m.remove() }() // else Sweep does
	if d.tip, err = w.tip(ctx); err == nil {
		err = d.find(ctx)
	}
	made := d.tip
	if err == nil && len(d.names) > 0 {
		made, err = d.record(ctx, subject, o.Thread)
	}
	if err != nil {
		return done, err
	}
	if made != w.Base {
		done.Commit = made
	}
	slices.SortFunc(d.left, func(a, b Gap) int { return strings.Compare(a.Path, b.Path) })
	done.Left = d.left
	return done, nil
}

// ready fails if the worktree is not as the server has made it, or no commit may be made in it now.
func (w *Worktree) ready(ctx context.Context) error {
	if info, err := os.Lstat(w.Path); err != nil || !info.IsDir() {
		return fmt.Errorf("the worktree %s is gone", w.Path)
	}
	back, err := box.Pointer(filepath.Join(w.GitDir, "gitdir"), "")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the repository %s has the worktree no longer", w.CommonDir)
	case err != nil:
		return err
	case !isSame(filepath.Dir(back), w.Path):
		return fmt.Errorf("the git folder %s is that of another worktree", w.GitDir)
	}
	for _, u := range unfinished {
		if exists(filepath.Join(w.GitDir, u.file)) {
			return fmt.Errorf("a %s is under way in it (%s)", u.what, u.file)
		}
	}
	ref, _, err := readHead(w.GitDir)
	if err == nil && ref == "refs/heads/.invalid" { // git keeps it in another form
		ref, err = w.symbolic(ctx)
	}
	if err == nil && ref != w.ref() {
		err = fmt.Errorf("the branch %s is not checked out in it", w.Branch)
	}
	return err
}

func (w *Worktree) ref() string { return "refs/heads/" + w.Branch }

// symbolic returns what HEAD leads to, "" for a commit.
func (w *Worktree) symbolic(ctx context.Context) (string, error) {
	m, err := w.mirror()
	if err != nil {
		return "", err
	}
	out, err := m.change(ctx, w.call(), nil, "rev-parse", "--symbolic-full-name", "HEAD")
	return strings.TrimSpace(out), err
}

// call is a call of git on the repository itself, with the git folder of the worktree.
func (w *Worktree) call() call {
	return call{dir: w.CommonDir, env: []string{"GIT_DIR=" + w.GitDir, "GIT_COMMON_DIR=" + w.CommonDir}}
}

// find finds what differs from the last commit.
func (d *draft) find(ctx context.Context) error {
	if err := d.make(ctx); err != nil {
		return err
	}
	confined, err := d.programs.Confine(d.scratch, d.objects())
	if err != nil {
		return err
	}
	d.confined = confined
	if _, err := d.copyIndex(); err != nil {
		return err
	}
	if err := d.put("HEAD", d.tip); err != nil {
		return err
	}
	if err := d.list(ctx); err != nil {
		return err
	}
	out, err := d.stage(ctx, call{}, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames",
		"--ignore-submodules=all")
	if err != nil {
		return err
	}
	staged := len(d.modules) > 0
	found := map[string]bool{}
	for line := range strings.SplitSeq(out, "\x00") {
		if len(line) < 4 || !isName(line[3:]) || d.inScratch(line[3:]) {
			continue
		}
		name := line[3:]
		_, isModule := d.modules[name]
		switch {
		case strings.HasSuffix(name, "/"):
			d.leave(name, otherRepository)
		case isModule: // see module
		default:
			found[name] = true
			staged = staged || line[0] != ' ' && line[0] != '?'
		}
	}
	if d.names = slices.Sorted(maps.Keys(found)); len(d.names) > defaultFiles {
		return fmt.Errorf("%w: %d files have changed, and at most %d are committed", errLarge, len(d.names),
			defaultFiles)
	}
	if staged { // from now on the index has what the last commit has
		_, err = d.stage(ctx, call{}, "read-tree", "--reset", d.tip)
	}
	if err == nil && len(d.modules) > 0 {
		for name := range d.modules {
			d.modules[name] = ""
		}
		err = d.list(ctx)
	}
	for name, commit := range d.modules {
		d.module(name, commit)
	}
	return err
}

func (d *draft) leave(name, why string) { d.left = append(d.left, Gap{name, why}) }

// list reads the index: its submodules and attributes. It makes git look at each file that is there, whatever flags it has.
func (d *draft) list(ctx context.Context) error {
	listed, err := d.stage(ctx, call{}, "ls-files", "-v", "--stage", "-z")
	var flags strings.Builder
	for line := range strings.SplitSeq(listed, "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		if !ok || !isName(name) {
			continue
		}
		hidden := head[0] == 'S' || head[0] == 's'
		switch {
		case strings.HasPrefix(head[2:], modeModule):
			d.modules[name] = strings.Fields(head)[2]
		case hidden && !exists(d.path(name)): // it is not checked out
		case hidden || head[0] >= 'a': // a small letter is that of a file that git assumes unchanged
			fmt.Fprintf(&flags, "%s\t%s\x00", head[2:], name)
		}
		if gives(name) {
			d.giving[name] = true
		}
	}
	if err == nil && flags.Len() > 0 {
		_, err = d.stage(ctx, call{stdin: flags.String()}, "update-index", "-z", "--index-info")
	}
	return err
}

// module says that a submodule has changed, of which the last commit has a commit.
func (d *draft) module(name, commit string) {
	gitDir, commonDir, err := folders(d.path(name))
	if err == nil {
		if is, _, _ := plainHead(gitDir, commonDir); is != commit {
			d.leave(name+"/", submodule)
		}
		return
	}
	switch entries, err := os.ReadDir(d.path(name)); {
	case err != nil:
		d.leave(name+"/", submodule)
	case len(entries) > 0:
		d.leave(name+"/", notRepository)
	}
}

func (d *draft) objects() string { return filepath.Join(d.commonDir, "objects") }

// stage runs git on the mirror, for the worktree unless c says otherwise. New objects go into the repository, and are on the
// disk when git returns.
func (d *draft) stage(ctx context.Context, c call, args ...string) (string, error) {
	c.env = append(c.env, "GIT_OBJECT_DIRECTORY="+d.objects(), "GIT_ATTR_NOSYSTEM=0")
	c.options = append(c.options, "-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch")
	if file := d.userFile("core.attributesfile", "attributes"); file != "" {
		c.options = append(c.options, "-c", "core.attributesFile="+file)
	}
	return d.look.git(ctx, c, args...)
}

// record makes the commit, and returns it, or the last one if nothing is left to commit.
func (d *draft) record(ctx context.Context, subject, thread string) (commit string, err error) {
	tree := filepath.Join(d.scratch, "tree")
	gone, there, err := d.copy(tree)
	if err == nil && len(gone) > 0 { // first, because attributes of theirs count no longer
		_, err = d.stage(ctx, call{stdin: zeros(gone)}, "update-index", "--force-remove", "-z", "--stdin")
	}
	if err == nil && len(there) > 0 {
		there, err = d.unfiltered(ctx, tree, there)
	}
	if err == nil && len(there) > 0 {
		_, err = d.stage(ctx, call{tree: tree, stdin: zeros(there)}, "update-index", "--add", "--replace", "-z",
			"--stdin")
	}
	if err != nil || len(gone)+len(there) == 0 {
		return d.tip, err
	}
	var written, before string
	if err == nil { // a clone may lack what has not changed
		written, err = d.stage(ctx, call{}, "write-tree", "--missing-ok")
	}
	if err == nil {
		before, err = d.stage(ctx, call{}, "rev-parse", d.tip+"^{tree}")
	}
	if err != nil || written == before {
		return d.tip, err
	}
	message := subject + "\n\nCodex-Thread: " + plain.OneLine(thread, plain.MaxName) + "\n"
	commit, err = d.stage(ctx, call{stdin: message, env: d.author()}, "commit-tree", "-p", d.tip,
		strings.TrimSpace(written))
	if err == nil { // what git compares of the files are the times of the copies
		_, err = d.stage(ctx, call{differs: true}, "update-index", "-q", "--refresh")
	}
	if err == nil {
		err = d.install(ctx, filepath.Join(d.scratch, "index"))
	}
	if err != nil {
		return "", err
	}
	commit = strings.TrimSpace(commit)
	c := d.worktree.call()
	c.env = append(c.env, d.author()...)
	c.options = []string{"-c", "core.fsync=committed"}
	_, err = d.change(ctx, c, []string{d.commonDir}, "update-ref", "--no-deref", "--create-reflog", "-m",
		"commit: "+subject, d.worktree.ref(), commit, d.tip)
	return commit, err
}

// author returns the variables of who commits: the user, as git's configuration has the name and the address.
func (d *draft) author() []string {
	clean := func(key string) string { // git leaves out the others
		return strings.Trim(plain.OneLine(d.settings[key], plain.MaxName), " .,:;<>\"\\'")
	}
	name, email := clean("user.name"), clean("user.email")
	if name == "" || email == "" {
		name, email = "codex-mcp", "codex-mcp@localhost"
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_NAME=" + name,
		"GIT_COMMITTER_EMAIL=" + email}
}

// copy copies the files that have changed to a folder. It returns the names of those that are gone, and of what was copied.
func (d *draft) copy(tree string) (gone, there []string, err error) {
	if err := os.Mkdir(tree, 0o700); err != nil {
		return nil, nil, err
	}
	from, err := openFolder(d.root)
	if err != nil {
		return nil, nil, err
	}
	defer from.close()
	to, err := openFolder(tree)
	if err != nil {
		return nil, nil, err
	}
	defer to.close()
	left := int64(maxBytes)
	for _, name := range d.names {
		s := d.now(name)
		var data []byte
		_, hidden := os.Lstat(d.path(name))
		switch {
		case errors.Is(hidden, fs.ErrPermission):
			d.leave(name, unreadable)
			continue
		case !s.exists(), s.is(modeFolder):
			gone = append(gone, name)
			continue
		case !s.stored():
			d.leave(name, specialFile)
			continue
		case withholds(d.withheld, d.root, name):
			d.leave(name, isWithheld)
			continue
		case s.is(modeLink):
			data, err = from.read(name, s)
		case s.size > maxContent:
			d.leave(name, tooLarge)
			continue
		default:
			left -= s.size
			data, err = d.read(from, name)
		}
		if left < 0 {
			return nil, nil, fmt.Errorf("%w: the changed files have too many bytes", errLarge)
		}
		if err != nil {
			d.leave(name, unreadable)
			continue
		}
		if err := to.put(name, s, data); err != nil {
			return nil, nil, err
		}
		there = append(there, name)
		if gives(name) {
			d.giving[name] = true
		}
	}
	return gone, there, nil
}

// read returns what a file has. It fails unless that is the file of the name itself: a folder could become a link meanwhile.
func (d *draft) read(from *folder, name string) ([]byte, error) {
	f, err := safefile.OpenIn(from.top, filepath.FromSlash(name), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Name() != d.path(name) {
		return nil, safefile.ErrReplaced
	}
	return f.ReadAll(maxContent)
}

// pointer begins the file that git-lfs stores in place of a large one.
var pointer = []byte("version https://git-lfs.github.com/spec/v1\noid sha256:")

// maxPointer is the size of the largest such file in bytes.
const maxPointer = 1024

// unfiltered returns the files that need no program. Those with a filter are left out, unless they are what git-lfs makes of
// others.
func (d *draft) unfiltered(ctx context.Context, tree string, names []string) ([]string, error) {
	if !d.attributed() && d.userFile("core.attributesfile", "attributes") == "" && !exists("/etc/gitattributes") {
		return names, nil
	}
	out, err := d.stage(ctx, call{tree: tree, stdin: zeros(names)}, "check-attr", "-z", "--stdin", "filter")
	filters := map[string]string{}
	for fields := strings.Split(out, "\x00"); len(fields) >= 3; fields = fields[3:] {
		filters[fields[0]] = fields[2]
	}
	return slices.DeleteFunc(names, func(name string) bool {
		file := filepath.Join(tree, filepath.FromSlash(name))
		info, err := os.Lstat(file)
		switch filter := filters[name]; {
		case err == nil && !info.Mode().IsRegular() || filter == "unspecified" || filter == "unset":
			return false
		case filter == "lfs":
			data, err := safefile.Read(file, maxPointer)
			if err == nil && bytes.HasPrefix(data, pointer) {
				return false
			}
			d.leave(name, realContent)
		default:
			d.leave(name, needsProgram)
		}
		return true
	}), err
}

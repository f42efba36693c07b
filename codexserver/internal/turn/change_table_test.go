package turn_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/nightly"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	gocmp "github.com/google/go-cmp/cmp"
)

// TestKindsOfChange has a turn make every kind of change.
func TestKindsOfChange(t *testing.T) {
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	t.Setenv("GIT_TEMPLATE_DIR", "")                              // else each repository, and each copy, has a dozen sample files
	t.Setenv("GIT_CONFIG_PARAMETERS", "'maintenance.auto=false'") // else git starts a process after each commit
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "somebody")
		t.Setenv("GIT_"+who+"_EMAIL", "somebody@example.com")
	}
	template := t.TempDir()
	shell(t, template, "git init -q -b main; printf 'one\\ntwo\\nthree\\n' > a.txt; git add .; git commit -q -m first; "+
		"git repack -adq; git pack-refs --all; cd .git; rm -r COMMIT_EDITMSG logs objects/info refs/*") // two copies of few files for each kind
	var apart, sharing []kind
	for _, k := range kinds {
		if k.shares {
			sharing = append(sharing, k)
		} else {
			apart = append(apart, k)
		}
	}
	for n, k := range append(apart, inFolders(sharing)) {
		if n < len(apart) && !k.asRoot && !servertest.Plays(n, nightly.Tests()) {
			continue // in the other of the gate's two runs; what CI may skip is known for each
		}
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			k.run(t, template)
		})
	}
}

func shell(t *testing.T, dir, script string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// place is a kind in its folders.
type place struct {
	t    *testing.T
	top  string // contains the folders
	dir  string // where the turn runs
	root string // a writable root
	old  string // a copy of dir before the turn
}

func (k *kind) run(t *testing.T, template string) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	if k.asRoot && os.Getuid() != 0 {
		t.Skip("only root can copy and read a file without permissions")
	}
	p := &place{t, top, filepath.Join(top, "w"), filepath.Join(top, "root"), filepath.Join(top, "old")}
	lay := k.lay
	if k.noGit {
		lay = "rm -r .git; " + lay
	}
	err = errors.Join(os.CopyFS(p.dir, os.DirFS(template)), os.Mkdir(p.root, 0o755), os.WriteFile(filepath.Join(p.root, "r.txt"), []byte("r\n"), 0o644))
	must.OK(t, err)
	shell(t, p.dir, lay+"\nexec cp -a '"+p.dir+"' '"+p.old+"'")
	before := p.read(p.dir, p.root)

	options := k.options
	options.Before, options.After = cmp.Or(k.options.Before, time.Hour), cmp.Or(k.options.After, time.Hour)
	options.Scratch = git.Scratch{Dir: filepath.Join(top, "scratch")}
	options.Announced = true
	turn := &work{t: t, dir: p.dir, c: newWatch(options)}
	begun := protocol.SessionConfigured{Cwd: filepath.Join(p.dir, k.cwd)}
	if k.roots {
		begun.WritableRoots = []string{p.root}
	}
	turn.c.Begin(t.Context(), begun, nil)
	turn.run(func() { shell(t, p.dir, k.act) }, "sh")
	if k.user != "" {
		shell(t, p.dir, k.user)
	}
	turn.c.End(nil)
	r := turn.c.So()
	if left, err := os.ReadDir(options.Scratch.Dir); err == nil && len(left) > 0 {
		t.Errorf("left in scratch: %v", left)
	}
	p.paths(&r)
	diff := turn.c.diff
	if k.want != anything {
		if d := gocmp.Diff(k.want, p.shown(&r, diff)); d != "" {
			t.Errorf("(-want +got)\n%s\n%s", d, diff)
		}
	}
	p.check(before, p.read(p.dir, p.root), &r)
	p.apply(diff, &r)
}

// shown returns a report in the form of [kind].want.
func (p *place) shown(r *protocol.TurnResult, diff string) string {
	var b strings.Builder
	plain := strings.NewReplacer(p.top, "TOP")
	for _, c := range r.Changes {
		from := ""
		if c.From != "" {
			from = c.From + ">"
		}
		fmt.Fprintf(&b, "%s %s%s", c.Kind, from, plain.Replace(c.Path))
		if c.Added != nil {
			fmt.Fprintf(&b, " +%d-%d", *c.Added, *c.Removed)
		}
		if c.By != protocol.ByCommand {
			b.WriteString(" by " + string(c.By))
		}
		b.WriteByte('\n')
	}
	for _, g := range r.Unknown {
		fmt.Fprintf(&b, "? %s: %s\n", plain.Replace(g.Path), g.Why)
	}
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "# ") {
			b.WriteString(plain.Replace(line))
		}
	}
	return b.String()
}

type file struct {
	mode    fs.FileMode
	content string
}

// read reads the files of folders, without git's own and without folders.
func (p *place) read(dirs ...string) map[string]file {
	p.t.Helper()
	all := map[string]file{}
	for i, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.Name() == ".git" {
				if d.IsDir() {
					return filepath.SkipDir
				}
				return nil
			}
			if d.IsDir() {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			f := file{mode: info.Mode().Type() | info.Mode()&0o100}
			switch {
			case info.Mode().IsRegular():
				data, err := safefile.Read(path, 64<<20)
				if err != nil {
					return err
				}
				f.content = string(data)
			case info.Mode()&fs.ModeSymlink != 0:
				f.mode &= fs.ModeType
				if f.content, err = os.Readlink(path); err != nil {
					return err
				}
			}
			name, err := filepath.Rel(dir, path)
			if i > 0 {
				name = path
			}
			all[name] = f
			return err
		})
		must.OK(p.t, err)
	}
	return all
}

func changed(a, b map[string]file) []string {
	var names []string
	for name, f := range a {
		if g, ok := b[name]; !ok || f != g {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// check checks that the report has every change or says that it did not look, and has no other changes.
func (p *place) check(before, after map[string]file, r *protocol.TurnResult) {
	p.t.Helper()
	truth := changed(before, after)
	for _, name := range truth {
		if !p.told(name, r) {
			p.t.Errorf("%q has changed, and neither the changes nor the gaps name it: %v, %v", name, r.Changes, r.Unknown)
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(truth, func(t string) bool {
			return t == name || strings.HasSuffix(name, "/") && strings.HasPrefix(t, name)
		})
	}
	for _, c := range r.Changes {
		if !has(c.Path) && !p.gap(c.Path, r) && !p.isRepository(c.Path) || c.From != "" && !has(c.From) {
			p.t.Errorf("%q is among the changes and has not changed", c.Path)
		}
	}
}

// paths checks that the result as JSON has every change, and gives the result the paths without git's quotes.
func (p *place) paths(r *protocol.TurnResult) {
	p.t.Helper()
	var sent protocol.TurnResult
	must.Check(p.t, json.Unmarshal(r.JSON(setting.DefaultResult), &sent))
	if d := gocmp.Diff(r.Changes, sent.Changes); d != "" && len(r.Changes)+len(sent.Changes) > 0 {
		p.t.Errorf("the changes that are sent (-want +got)\n%s", d)
	}
	r.Changes, r.Unknown = slices.Clone(r.Changes), slices.Clone(r.Unknown)
	plain := func(path *string) {
		raw, ok := unquote(*path)
		if !ok {
			p.t.Errorf("the path %s cannot be read", *path)
		}
		*path = raw
	}
	for i := range r.Changes {
		plain(&r.Changes[i].Path)
		plain(&r.Changes[i].From)
	}
	for i := range r.Unknown {
		plain(&r.Unknown[i].Path)
	}
}

// unquote returns a path that git may have quoted.
func unquote(path string) (string, bool) {
	if !strings.HasPrefix(path, `"`) {
		return path, true
	}
	path, err := strconv.Unquote(path) // Go has git's escapes too
	return path, err == nil
}

func (p *place) told(name string, r *protocol.TurnResult) bool {
	return p.gap(name, r) || slices.ContainsFunc(r.Changes, func(c protocol.Change) bool {
		return c.Path == name || c.From == name || strings.HasSuffix(c.Path, "/") && strings.HasPrefix(name, c.Path)
	})
}

// gap reports whether the report says that it did not look at a file.
func (p *place) gap(name string, r *protocol.TurnResult) bool {
	for _, g := range r.Unknown {
		switch {
		case g.Path == p.dir, g.Path == name, strings.HasSuffix(g.Path, "/") && strings.HasPrefix(name, g.Path):
			return true
		case strings.HasPrefix(g.Why, "git ignores"):
			cmd := exec.CommandContext(p.t.Context(), "git", "check-ignore", "-q", "--", name)
			cmd.Dir = p.dir
			if cmd.Run() == nil {
				return true
			}
		case strings.HasPrefix(g.Why, "core.fileMode"):
			return true
		}
	}
	return false
}

// isRepository reports whether a path is another repository, or a submodule's commit.
func (p *place) isRepository(name string) bool {
	_, err := os.Lstat(filepath.Join(p.dir, name, ".git"))
	return err == nil
}

// note is a note about a file in the diff of a snapshot, or in that of patches.
var note = regexp.MustCompile(`(?m)^# [^:]*: (?:(?:add|update|delete|rename) (.*)|a/.* b/(.*))\n`)

// apply applies the diff to the copy and compares it with the folder.
func (p *place) apply(diff string, r *protocol.TurnResult) {
	p.t.Helper()
	if strings.Contains(diff, "diff --git ") {
		cmd := exec.CommandContext(p.t.Context(), "git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = p.old, strings.NewReader(diff)
		if out, err := cmd.CombinedOutput(); err != nil {
			p.t.Errorf("git apply: %v: %s\n%.3000s", err, out, diff)
			return
		}
	}
	var omitted []string
	for _, m := range note.FindAllStringSubmatch(diff, -1) {
		name, _ := unquote(m[1] + m[2])
		omitted = append(omitted, name)
	}
	for _, name := range changed(p.read(p.old), p.read(p.dir)) {
		omits := func(path string) bool {
			return path == name || strings.HasSuffix(path, "/") && strings.HasPrefix(name, path)
		}
		if !slices.ContainsFunc(omitted, omits) && !p.gap(name, r) {
			p.t.Errorf("after git apply %q differs, and the diff does not say so:\n%.3000s", name, diff)
		}
	}
}

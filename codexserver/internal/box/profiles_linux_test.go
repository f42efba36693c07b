package box_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"golang.org/x/sys/unix"
	"golang.org/x/tools/txtar"
)

// profilesFiles have profiles, each as a config.toml, and behind it what the newest Codex lets a command do under it. The first
// has one for each rule; the second what people write.
var profilesFiles = []string{"testdata/profiles.txtar", "testdata/recipes.txtar"}

// setting is where a command runs under the profile that a config.toml chooses.
type setting struct {
	config string // the text of config.toml
	top    string // the folder of everything
	home   string // of the user
	work   string // the working folder, and the workspace
	tmpdir string // $TMPDIR
	server string // the address of a listener
}

// env is the command's environment.
func (s setting) env() []string {
	return []string{"HOME=" + s.home, "TMPDIR=" + s.tmpdir, "PATH=/usr/bin:/bin", "LC_ALL=C"}
}

// launch runs a program in the working folder of a setting, and returns what it printed, or why it did not run.
type launch func(t *testing.T, s setting, argv ...string) (string, error)

// canary is the text of each file of a tree.
const canary = "canary-5b1f"

// trees are what profiles are tried on, by name. In a link, @ is the top.
var trees = map[string][]string{
	"plain": {
		"home/.bashrc", "home/.ssh/id", "home/notes/a.txt", "home/secret/b.txt", "home/secret/open/c.txt",
		"home/work/README.md", "home/work/.env", "home/work/src/main.go", "home/work/src/.env",
		"home/work/src/deep/er/.env", "home/work/src/deep/er/x.txt", "home/work/private/p.txt",
		"home/work/private/public/q.txt", "home/work/keys/server.pem", "home/work/.git/HEAD",
		"home/work/.git/config", "home/work/.git/hooks/hook", "home/work/.codex/config.toml",
		"home/work/.agents/a.md", "home/work/.vscode/settings.json", "home/work/empty/", "other/data.txt",
		"other/.env", "home/work/to-ssh -> @/home/.ssh/id", "home/work/to-env -> .env",
		"home/work/to-other -> @/other", "tmpdir/t.txt", "home/to-other -> @/other",
	},
	// bare has no .git, .codex and .agents.
	"bare": {"home/.bashrc", "home/work/README.md", "home/work/.env", "other/data.txt", "tmpdir/t.txt"},
	// links has a workspace in which names of profiles are links.
	"links": {
		"home/.ssh/id", "home/work/README.md", "home/work/real/p.txt", "home/work/private -> real",
		"home/work/.env -> real/p.txt", "home/vault -> @/other", "home/docs/a.txt", "home/to-docs -> docs",
		"other/data.txt", "tmpdir/t.txt",
	},
	// metadata has a .codex that is a link.
	"metadata": {"home/work/README.md", "home/work/real/x", "home/work/.codex -> real", "tmpdir/t.txt"},
}

// places are the paths that a profile is tried on. Those that are not there are made. ~ is the home, . the workspace, @
// the top; a path that begins with none of them is absolute. "tcp" is a listener of this machine: to read is to reach it.
var places = map[string][]string{
	"plain": {
		"/", "/etc", "/etc/passwd", "/usr/bin", "/var", "/tmp", "/tmp/profile-new", "/dev/shm", "@", "@other",
		"@other/data.txt", "@other/.env", "@other/new", "@tmpdir", "@tmpdir/t.txt", "@tmpdir/new", "~", "~/.bashrc",
		"~/.ssh", "~/.ssh/id", "~/new", "~/notes", "~/notes/a.txt", "~/secret", "~/secret/b.txt", "~/secret/open",
		"~/secret/open/c.txt", "~/to-other/data.txt", ".", "./README.md", "./.env", "./new", "./new.env", "./src",
		"./src/main.go", "./src/.env", "./src/new.env", "./src/deep", "./src/deep/er/.env", "./src/deep/er/x.txt",
		"./private", "./private/p.txt", "./private/public", "./private/public/q.txt", "./keys/server.pem", "./.git",
		"./.git/config", "./.git/hooks/hook", "./.git/new", "./.codex", "./.codex/config.toml", "./.agents/a.md",
		"./.vscode/settings.json", "./empty", "./to-ssh", "./to-env", "./to-other/data.txt",
		"/proc/self/root@/home/.ssh/id", "tcp",
	},
	"bare": {
		"/tmp", "@other/data.txt", "@tmpdir/t.txt", "~", "~/.bashrc", ".", "./README.md", "./.env", "./new",
		"./.git", "./.codex", "./.agents",
	},
	"links": {
		"@other", "@other/data.txt", "@tmpdir/t.txt", "~", "~/.ssh/id", "~/vault", "~/vault/data.txt", ".",
		"./README.md", "./real", "./real/p.txt", "./private", "./private/p.txt", "./.env", "~/docs", "~/docs/a.txt",
		"~/to-docs", "~/to-docs/a.txt",
	},
	"metadata": {".", "./README.md", "./.codex", "./.codex/x"},
}

// operations are the letters of a verdict: read, write, list, create, rename and link. What is refused has - instead, what is
// not there x, what is empty e, what came about in a file system of the command's own o, and what cannot be done in any case
// has a dot.
const operations = "rwlcmk"

// place is a path as the probe gets it.
type place struct {
	kind     string // dir, file, link, new, tcp, shared: a folder that nobody renames, or system: nobody changes it
	isFolder bool   // or a link to one
	dev      uint64 // the file system of the folder, or of the one that something new is in
	path     string
}

func (p place) String() string { return fmt.Sprintf("%s:%t:%d:%s", p.kind, p.isFolder, p.dev, p.path) }

func parsePlace(word string) (p place, err error) {
	parts := strings.SplitN(word, ":", 4)
	p.kind, p.isFolder, p.path = parts[0], parts[1] == "true", parts[3]
	p.dev, err = strconv.ParseUint(parts[2], 10, 64)
	return p, err
}

// describe returns the place of a path of [places].
func (s setting) describe(t *testing.T, name string) place {
	t.Helper()
	if name == "tcp" {
		return place{kind: name, path: s.server}
	}
	p := place{path: name}
	switch name[0] {
	case '@':
		p.path = filepath.Join(s.top, name[1:])
	case '~':
		p.path = filepath.Join(s.home, name[1:])
	case '.':
		p.path = filepath.Join(s.work, name[1:])
	}
	switch {
	case strings.HasPrefix(name, "/proc/"):
		p.path = strings.ReplaceAll(name, "@", s.top)
	case strings.HasPrefix(name, "/tmp/"): // which all tests share
		p.path = fmt.Sprintf("%s-%d", name, os.Getpid())
	}
	folder := p.path
	switch info, err := os.Lstat(p.path); {
	case errors.Is(err, os.ErrNotExist):
		p.kind, folder = "new", filepath.Dir(p.path)
	case err != nil:
		t.Fatal(err)
	case name == "@" || name == "/tmp" || name == "/dev/shm":
		p.kind = "shared"
	case name[0] == '/':
		p.kind = "system"
	case info.IsDir():
		p.kind = "dir"
	case info.Mode().IsRegular():
		p.kind = "file"
	default:
		p.kind = "link"
	}
	var stat unix.Stat_t
	must.OK(t, unix.Stat(folder, &stat))
	p.dev, p.isFolder = uint64(stat.Dev), stat.Mode&unix.S_IFMT == unix.S_IFDIR
	return p
}

// verdictsProbe tries all operations on each place, and prints a verdict for each.
func verdictsProbe(words []string) error {
	for _, word := range words {
		p, err := parsePlace(word)
		if err != nil {
			return err
		}
		fmt.Println(p.verdict())
	}
	return nil
}

func (p place) verdict() string {
	v := []byte("......")
	set := func(operation byte, err error) {
		letter := byte('-')
		switch {
		case err == nil:
			letter = operation
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
			letter = 'x'
		case errors.Is(err, errEmpty):
			letter = 'e'
		case errors.Is(err, errElsewhere):
			letter = 'o'
		}
		v[strings.IndexByte(operations, operation)] = letter
	}
	if p.kind == "tcp" {
		set('r', dial("tcp", p.path))
		return string(v)
	}
	other := p.path + "~"
	switch p.kind {
	case "new":
		set('c', p.create(p.path))
		defer os.Remove(p.path)
	case "dir", "shared":
		set('c', p.create(p.path+"/new~"))
		os.Remove(p.path + "/new~")
	}
	if p.kind != "new" && p.isFolder {
		set('l', list(p.path))
	} else {
		set('r', read(p.path))
	}
	if p.kind == "file" || p.kind == "new" || p.kind == "link" && !p.isFolder {
		set('w', openToWrite(p.path))
	}
	if p.kind == "file" || p.kind == "new" || p.kind == "link" {
		set('k', undone(os.Link(p.path, other), func() error { return os.Remove(other) }))
	}
	if p.kind == "file" || p.kind == "new" || p.kind == "link" || p.kind == "dir" {
		set('m', undone(os.Rename(p.path, other), func() error { return os.Rename(other, p.path) }))
	}
	return string(v)
}

func list(path string) error {
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) == 0 && filepath.Base(path) != "empty" {
		return errEmpty
	}
	return err
}

func read(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 0 {
		return errEmpty
	}
	return err
}

func openToWrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

var errEmpty, errElsewhere = errors.New("nothing in it"), errors.New("in another file system")

// create makes a file.
func (p place) create(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(canary)
	var stat unix.Stat_t
	err = errors.Join(err, unix.Fstat(int(f.Fd()), &stat))
	if err == nil && uint64(stat.Dev) != p.dev {
		return errElsewhere
	}
	return err
}

func undone(err error, undo func() error) error {
	if err != nil {
		return err
	}
	return undo()
}

// profile is an entry of a file of [profilesFiles]: a config.toml and what comes of it.
type profile struct {
	name, tree, config string
	outcome
}

// outcome is what a command may do with each of the places of a tree, or why it does not run.
type outcome struct {
	verdicts map[string]string // by the path, as in places
	refusal  string
}

// bases are the profiles that others are told by: only what differs from one of them is written down.
var bases = []string{"read-only", "workspace", "minimal", "workspace-bare", "workspace-links"}

// readProfiles reads a file of [profilesFiles]. A section NAME TREE has a config.toml, and the section NAME=, which follows it, what came
// of it: "as NAME" says that all is as there but for what follows; a line has a verdict and paths that have it.
func readProfiles(t *testing.T, file string) (list []profile) {
	t.Helper()
	for _, section := range must.Get(txtar.ParseFile(file))(t).Files {
		if name, ok := strings.CutSuffix(section.Name, "="); ok {
			last := &list[len(list)-1]
			must.Equal(t, "the profile of "+section.Name, last.name, name)
			last.outcome = parseOutcome(t, string(section.Data), list)
			continue
		}
		name, tree, _ := strings.Cut(section.Name, " ")
		list = append(list, profile{name: name, tree: tree, config: string(section.Data)})
	}
	return list
}

func parseOutcome(t *testing.T, text string, list []profile) outcome {
	t.Helper()
	o := outcome{verdicts: map[string]string{}}
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch word {
		case "error:":
			return outcome{refusal: rest}
		case "as":
			i := slices.IndexFunc(list, func(p profile) bool { return p.name == rest })
			if i < 0 {
				t.Fatalf("there is no profile before with the name %q", rest)
			}
			maps.Copy(o.verdicts, list[i].verdicts)
		default:
			for _, name := range strings.Fields(rest) {
				o.verdicts[name] = word
			}
		}
	}
	return o
}

// text is what parseOutcome reads, as short as a base makes it.
func (o outcome) text(p profile, list []profile) string {
	if o.refusal != "" {
		return "error: " + o.refusal + "\n"
	}
	shortest := grouped(places[p.tree], o.verdicts, nil)
	for _, base := range list {
		if base.name == p.name {
			break
		}
		if base.tree == p.tree && slices.Contains(bases, base.name) {
			told := "as " + base.name + "\n" + grouped(places[p.tree], o.verdicts, base.verdicts)
			if len(told) < len(shortest) {
				shortest = told
			}
		}
	}
	return shortest
}

// writeProfiles writes what readProfiles read.
func writeProfiles(t *testing.T, file string, list []profile) {
	t.Helper()
	a := &txtar.Archive{Comment: must.Get(txtar.ParseFile(file))(t).Comment}
	for _, p := range list {
		a.Files = append(a.Files, txtar.File{Name: p.name + " " + p.tree, Data: []byte(p.config)},
			txtar.File{Name: p.name + "=", Data: []byte(p.text(p, list))})
	}
	must.OK(t, os.WriteFile(file, txtar.Format(a), 0o666))
}

// try lays the profile's tree in a new folder, runs the probe there, and returns what came of it.
func (p profile) try(t *testing.T, run launch) outcome {
	t.Helper()
	top := boxtest.FolderOutsideTmp(t)
	listener := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	defer listener.Close()
	s := setting{
		top: top, home: top + "/home", work: top + "/home/work", tmpdir: top + "/tmpdir",
		server: listener.Addr().String(),
	}
	s.config = strings.ReplaceAll(p.config, "@/", top+"/")
	for _, entry := range trees[p.tree] {
		if !strings.Contains(entry, " -> ") && !strings.HasSuffix(entry, "/") {
			entry += "=" + canary
		}
		boxtest.Lay(t, top, entry)
	}
	probe := top + "/bin/probe"
	must.OK(t, os.Mkdir(filepath.Dir(probe), 0o777), copyProgram(must.Get(os.Executable())(t), probe))
	argv := []string{probe, probeWord, "verdicts"}
	var free []string
	for _, name := range places[p.tree] {
		where := s.describe(t, name)
		argv, free = append(argv, where.String()), append(free, where.verdict())
	}
	before := names(t, top)
	out, err := run(t, s, argv...)
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		return outcome{refusal: strings.ReplaceAll(first, top, "@")}
	}
	must.Equal(t, "what is there afterwards", before, names(t, top))
	lines := strings.Fields(strings.TrimSuffix(out, "ok")) // of the probe itself
	if len(lines) != len(free) {
		t.Fatalf("%d places, and %q", len(free), out)
	}
	o := outcome{verdicts: map[string]string{}}
	for i, name := range places[p.tree] {
		o.verdicts[name] = possible(lines[i], free[i])
	}
	return o
}

// possible returns a verdict without what cannot be done outside of the sandbox either.
func possible(verdict, free string) string {
	v := []byte(verdict)
	for i := range v {
		if free[i] != operations[i] {
			v[i] = '.'
		}
	}
	return string(v)
}

// copyProgram links a program to another path, or copies it to another file system.
func copyProgram(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return testenv.WriteProgram(to, text)
}

// names returns what is below a folder, without what belongs to Codex.
func names(t *testing.T, folder string) (list []string) {
	t.Helper()
	must.OK(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		name := strings.TrimPrefix(path, folder)
		if name == "/home/.codex" || name == "/bin" || strings.HasPrefix(name, "/tmpdir/codex-bwrap") {
			return filepath.SkipDir
		}
		list = append(list, name)
		return err
	}))
	return list
}

// grouped returns a line for each verdict with the paths that have it, in the paths' order, without those that have it in base.
func grouped(names []string, verdicts, base map[string]string) string {
	var order []string
	paths := map[string][]string{}
	for _, name := range names {
		v := verdicts[name]
		if v == base[name] {
			continue
		}
		if paths[v] == nil {
			order = append(order, v)
		}
		paths[v] = append(paths[v], name)
	}
	var b strings.Builder
	for _, v := range order {
		width := 0
		for _, name := range paths[v] {
			if width == 0 || width+len(name) > 118 {
				b.WriteString("\n" + v)
				width = len(v)
			}
			width += 1 + len(name)
			b.WriteString(" " + name)
		}
	}
	return strings.TrimPrefix(b.String()+"\n", "\n")
}

// permits is a verdict in which all that changes or tells nothing has -: what is refused may be refused with any error, not be
// there, be empty, or come about where nobody else sees it.
func permits(verdict string) string {
	return strings.NewReplacer("x", "-", "e", "-", "o", "-").Replace(verdict)
}

// TestProfilesWithoutSandbox has each place where nothing confines: what a verdict refuses, the sandbox refused.
func TestProfilesWithoutSandbox(t *testing.T) {
	for tree := range trees {
		got := profile{tree: tree}.try(t, func(t *testing.T, s setting, argv ...string) (string, error) {
			out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Output()
			return string(out), err
		})
		for name, v := range got.verdicts {
			if strings.Contains(permits(v), "-") {
				t.Errorf("%s: %s %s", tree, v, name)
			}
		}
	}
}

// TestProfilesFiles reads each file and writes it as it is.
func TestProfilesFiles(t *testing.T) {
	for _, file := range profilesFiles {
		a, list := must.Get(txtar.ParseFile(file))(t), readProfiles(t, file)
		must.Equal(t, "sections of "+file, 2*len(list), len(a.Files))
		for i, p := range list {
			must.Equal(t, p.name, string(a.Files[2*i+1].Data), p.text(p, list))
		}
	}
}

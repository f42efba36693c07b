package git

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// layIndex makes an index as git writes it, of files with their flags. Times and sizes are those of laidFile.
func layIndex(version uint32, extensions string, files ...string) string {
	b := binary.BigEndian.AppendUint32([]byte("DIRC"), version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(files)))
	for _, file := range files {
		name, flags, _ := strings.Cut(file, ":")
		begin := len(b)
		for _, n := range []uint32{100, 5, 90, 7, 0, 11, 0o100644, 0, 0, 3} {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		b = append(b, strings.Repeat("o", 20)...)
		b = append(b, map[string]string{"": "\x00\x00", "assumed": "\x80\x00", "hidden": "\x40\x00\x40\x00", "conflict": "\x20\x00"}[flags]...)
		b = append(b, name...)
		b = append(b, make([]byte, 8-(len(b)-begin)%8)...)
	}
	return string(b) + extensions + strings.Repeat("h", 20)
}

var laidFile = stat{mode: modeFile | 0o644, size: 3, modified: 90e9 + 7, changed: 100e9 + 5, inode: 11}

func TestParseIndex(t *testing.T) {
	plain := layIndex(2, "TREE\x00\x00\x00\x01x", "a", "d/b", "d/c")
	for name, tt := range map[string]struct {
		data, want string // the names, or "" if git must read the index
		flags      int
	}{
		"plain": {plain, "a d/b d/c", 0}, "no files": {layIndex(2, ""), "-", 0},
		"flags":                     {layIndex(3, "", "a:assumed", "b:hidden", "gone:hidden"), "a b", 3},
		"a conflict":                {layIndex(2, "", "a:conflict", "a:conflict", "b"), "a b", 0},
		"paths that share prefixes": {layIndex(4, "", "a"), "", 0},
		"a shared index":            {layIndex(2, "link\x00\x00\x00\x00", "a"), "", 0},
		"no name":                   {layIndex(2, "", ""), "", 0},
		"a name from the top":       {layIndex(2, "", "/a"), "", 0},
		"a name that leads out":     {layIndex(2, "", "../a"), "", 0},
		"a name with a detour":      {layIndex(2, "", "a/../b"), "", 0},
		"not an index":              {strings.Repeat("x", 100), "", 0},
	} {
		var x index
		ok := x.parse([]byte(tt.data), false, func(name string) bool { return name == "gone" })
		var names []string
		for dir, files := range x.folders {
			for base := range files {
				names = append(names, path.Join(dir, base))
			}
		}
		slices.Sort(names)
		got := strings.Join(names, " ")
		if !ok {
			got = ""
		}
		if ok && got == "" {
			got = "-"
		}
		if got != tt.want || ok != (tt.want != "") || strings.Count(x.flags, "\x00") != tt.flags {
			t.Errorf("%s: %q, %t, flags %q", name, got, ok, x.flags)
		}
	}
	for n := range len(plain) { // of a damaged one there are no other files
		var x index
		if x.parse([]byte(plain[:n]), false, nil) && x.entry("d/c") == nil {
			t.Errorf("cut off after %d bytes: %v", n, x.folders)
		}
	}
}

func TestIsClean(t *testing.T) {
	x := index{written: int64(101 * time.Second), modes: true}
	if !x.parse([]byte(layIndex(2, "", "a")), false, nil) {
		t.Fatal("not read")
	}
	for name, tt := range map[string]struct {
		change func(*entry, *stat, *index)
		clean  bool
	}{
		"the same":                {func(*entry, *stat, *index) {}, true},
		"another size":            {func(_ *entry, s *stat, _ *index) { s.size++ }, false},
		"another inode":           {func(_ *entry, s *stat, _ *index) { s.inode++ }, false},
		"another time":            {func(_ *entry, s *stat, _ *index) { s.modified++ }, false},
		"a time set back":         {func(_ *entry, s *stat, _ *index) { s.changed++ }, false},
		"a program":               {func(_ *entry, s *stat, _ *index) { s.mode |= 0o100 }, false},
		"a program without modes": {func(_ *entry, s *stat, x *index) { s.mode |= 0o100; x.modes = false }, true},
		"a link":                  {func(e *entry, s *stat, _ *index) { e.mode = modeLink }, false},
		"a large inode":           {func(_ *entry, s *stat, _ *index) { s.inode += 1 << 32 }, true},
		"a size of zero":          {func(e *entry, s *stat, _ *index) { e.size, s.size = 0, 0 }, false},
		"an empty file":           {func(e *entry, s *stat, x *index) { e.size, s.size, e.object = 0, 0, emptyFile }, true},
		"git without fractions":   {func(e *entry, _ *stat, _ *index) { e.modified, e.changed = 90e9, 100e9 }, false},
		"the same, and later":     {func(e *entry, _ *stat, x *index) { e.modified, e.changed = 90e9, 100e9; x.written = 103e9 }, true},
		"just before the index":   {func(_ *entry, _ *stat, x *index) { x.written = 100e9 + 5 + int64(tick) }, false},
		"before the index":        {func(_ *entry, _ *stat, x *index) { x.written = 100e9 + 6 + int64(tick) }, true},
	} {
		e, s, x := *x.entry("a"), laidFile, x
		tt.change(&e, &s, &x)
		must.Equal(t, name, tt.clean, x.isClean(&e, s))
	}
}

// TestIndexTime checks the time of the copied index. Git compares it with the times of files to see
// which are unchanged, in seconds.
func TestIndexTime(t *testing.T) {
	root := t.TempDir()
	dot := filepath.Join(root, ".git")
	must.OK(t, os.MkdirAll(filepath.Join(dot, "objects"), 0o700), os.Mkdir(filepath.Join(dot, "refs"), 0o700), os.WriteFile(filepath.Join(dot, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600))
	written := time.Unix(1_700_000_000, 123456000)
	for _, tt := range []struct{ begin, want time.Time }{
		{written.Add(time.Minute), written}, {written.Add(coarse), written},
		{written.Add(time.Second), written.Add(time.Second - coarse)},
	} {
		m := must.Get(Scratch{Dir: t.TempDir()}.open(root))(t)
		l := &look{mirror: m, since: tt.begin.Add(-coarse), index: index{data: "DIRC", written: written.UnixNano()}}
		must.OK(t, l.lay(t.Context()))
		info, err := os.Stat(filepath.Join(m.scratch, "index"))
		if err != nil || !info.ModTime().Equal(tt.want) {
			t.Errorf("%v, %v; want %v", info.ModTime(), err, tt.want)
		}
		must.Check(t, m.remove())
	}
}

// TestRunBounds checks that a long output is cut off if requested, and else an error.
func TestRunBounds(t *testing.T) {
	dir := t.TempDir()
	p := must.Get(Scratch{Dir: dir}.find(dir))(t)
	long := "[a]\n\tb = " + strings.Repeat("x", 100_000) + "\n"
	confined, err := p.programs.Confine()
	if err != nil {
		t.Skip(err)
	}
	c := call{dir: dir, confined: confined, stdin: long}
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || len(out) != 100_005 {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 1000
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err != nil || out != "a.b="+strings.Repeat("x", 996) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	c.cut = 0
	c.stdin = strings.Repeat(long, 700)
	if out, err := p.run(t.Context(), c, "config", "--file=-", "--list"); err == nil || !strings.Contains(err.Error(), "prints more than 64 MiB") {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

// TestSettings compares the settings that are read from configurations with those that git reads.
func TestSettings(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"as git writes it":   "[core]\n\trepositoryformatversion = 0\n\tfilemode = false\n\tbare = true\n[remote \"origin\"]\n\turl = https://host.example/a/b.git\n",
		"letter case":        "[Core]\nFileMode = TRUE\nautoCRLF=input\n",
		"two values":         "[core]\neol = lf\n[user]\nname = x\n[core]\neol = crlf\n",
		"spaces":             "  [core]  \n\n \t eol =   lf  \n",
		"quotes":             "[core]\n\texcludesFile = \"/a # b\"\n",
		"comments":           "[core]\n\teol = lf ; as always\n\t# autocrlf = true\n\t; bare = true\n\tignorecase = true # x\n",
		"carriage returns":   "[core]\r\n\teol = lf\r\n",
		"a key of a section": "[core] filemode = false\n",
		"a key alone":        "[core]\n\tbare\n",
		"no value":           "[core]\n\texcludesfile =\n",
		"no end of the line": "[extensions]\nobjectformat = sha256",
		"other keys":         "[core]\n\teolx = lf\n\tx-eol = lf\n[alias]\n\tx = !eol = lf\n",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			must.OK(t, os.WriteFile(file, []byte(text), 0o600))
			m := &mirror{settings: map[string]string{}}
			must.OK(t, m.read(file))
			for _, key := range []string{"core.filemode", "core.autocrlf", "core.eol", "core.bare", "core.ignorecase", "core.excludesfile", "extensions.objectformat"} {
				want, _ := exec.CommandContext(t.Context(), "git", "config", "--file", file, "--includes", key).Output() // fails without a value
				if _, name, _ := strings.Cut(key, "."); m.settings[name] != strings.TrimSpace(string(want)) && !(name == "bare" && m.settings[name] == "true" && string(want) == "\n") {
					t.Errorf("%s is %q, want %q", key, m.settings[name], want)
				}
			}
		})
	}
}

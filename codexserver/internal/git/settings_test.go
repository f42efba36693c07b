package git

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlainSettings compares what is read from plain configurations with what git reads. All others
// are left to git.
func TestPlainSettings(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		plain bool
	}{
		"empty":               {"", true},
		"as git writes it":    {"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n[remote \"origin\"]\n\turl = https://host.example/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"Main/x\"]\n\tmerge = refs/heads/Main/x\n", true},
		"letter case":         {"[Core]\nFileMode = FALSE\n[Remote \"Origin\"]\nURL = A\n", true},
		"two values":          {"[a]\nb = 1\n[remote \"origin\"]\nurl = first\nurl = second\n[a]\nb = 2\n", true},
		"spaces":              {"  [a]  \n\n \t b =  c d  \n", true},
		"an include":          {"[include]\n\tpath = /etc/passwd\n", true},
		"a file of the home":  {"[core]\n\texcludesFile = ~/.ignored\n", true},
		"no end of the line":  {"[a]\nb = c", true},
		"a quoted value":      {"[a]\nb = \"c # d\"\n", false},
		"a quoted section":    {"[a \"b\\\"c\"]\nb = c\n", false},
		"a continued line":    {"[a]\nb = c\\\n[core]\nfilemode = false\n", false},
		"a continued comment": {"[a]\n# c\\\nb = c\n", false},
		"a comment":           {"[a]\nb = c ; d\n", false},
		"a carriage return":   {"[a]\r\nb = c\r\n", false},
		"a key of a section":  {"[a] b = c\n", false},
		"an old subsection":   {"[a.B]\nb = c\n", false},
		"a key alone":         {"[a]\nb\n", false},
		"no value":            {"[a]\nb =\n", false},
		"no spaces":           {"[a]\nb=c\n", false},
		"two spaces":          {"[a]\nb = c  d\n", false},
		"a tab":               {"[a]\nb = c\td\n", false},
		"a byte order mark":   {"\ufeff[a]\nb = c\n", false},
		"no section":          {"b = c\n", false},
		"no name":             {"[]\nb = c\n", false},
		"an open section":     {"[a\nb = c\n", false},
		"an open subsection":  {"[a \"b]\nb = c\n", false},
		"a key of a digit":    {"[a]\n1 = c\n", false},
		"another separator":   {"[a]\nb = c\vd\n", false},
		"a zero":              {"[a]\nb = c\x00d\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, plain := plainSettings(tt.text)
			if plain != tt.plain {
				t.Fatalf("plain is %v", plain)
			}
			if !plain {
				return
			}
			dir := t.TempDir()
			s := Scratch{Dir: t.TempDir()}
			r, err := s.locate(dir, true)
			if err != nil {
				t.Fatal(err)
			}
			m, err := s.open(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			defer m.remove()
			want, err := m.askSettings(t.Context(), tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-git +got):\n%s", d)
			}
		})
	}
}

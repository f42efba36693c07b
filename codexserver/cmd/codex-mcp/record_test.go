package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/record"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/google/go-cmp/cmp"
)

// TestApprovalsLog has a person approve a command and deny another. The log in the home has both, and the beginning
// and the end of the first with the id of its decision. Where it cannot be written, nothing is approved.
func TestApprovalsLog(t *testing.T) {
	t.Parallel()
	touch := func(name string) providertest.Turn { return providertest.Call(providertest.Shell(name, "touch", name)) }
	const usual = "codex-mcp/approvals.log"
	for name, tt := range map[string]struct {
		args    []string
		prepare func(s *person) error
		file    string // below the home; "" for none
		made    int
	}{
		"by default":   {file: usual, made: 1},
		"named":        {args: []string{"-c", `approvals.log="HOME/named"`}, file: "named", made: 1},
		"switched off": {args: []string{"-c", `approvals.log=""`}, made: 1},
		"a link in its place": {prepare: func(s *person) error {
			if err := os.MkdirAll(filepath.Join(s.f.home, "codex-mcp"), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(s.f.home, "config.toml"), filepath.Join(s.f.home, usual))
		}},
		"a file in place of its folder": {prepare: func(s *person) error { return os.WriteFile(filepath.Join(s.f.home, "codex-mcp"), nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, touch("one"), touch("two"), repeated)
			if tt.prepare != nil {
				if err := tt.prepare(s); err != nil {
					t.Fatal(err)
				}
			}
			var args []string
			for _, arg := range tt.args {
				args = append(args, strings.ReplaceAll(arg, "HOME", s.f.home))
			}
			done := s.types("y", "n")
			if code := s.ask(s.terminal(), append(args, "make files")...); code != 0 {
				t.Errorf("exit status %d: %s", code, s.errs.String())
			}
			done()
			if files, err := os.ReadDir(s.f.cwd); err != nil || len(files) != tt.made {
				t.Errorf("%v, %v", files, err)
			}
			if tt.file == "" {
				if found, err := filepath.Glob(filepath.Join(s.f.home, "*", "approvals.log")); err != nil || len(found) > 0 && tt.prepare == nil {
					t.Errorf("%v, %v", found, err)
				}
				if text := strings.Join(strings.Fields(s.out.String()), " "); tt.made == 0 && !strings.Contains(text, "the approval could not be recorded, so it does not count") {
					t.Errorf("the person reads\n%s", text)
				}
				return
			}
			path := filepath.Join(s.f.home, filepath.FromSlash(tt.file))
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%v, %v", info, err)
			}
			var got []string
			var ids [2]string
			for line := range strings.Lines(string(text)) {
				l, err := record.Parse([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.Join([]string{string(l.Event), l.Call, string(l.Kind), l.Decision, l.By}, " "))
				if i := len(got) - 1; i < 2 {
					ids[i] = l.DecisionID
				} else if i == 2 && l.DecisionID != ids[0] || l.Turn == "" || l.Thread == "" {
					t.Errorf("%s", line)
				}
			}
			want := []string{"decided one command approved terminal", "begins one command  ", "ends one   ", "decided two command denied terminal"}
			if diff := cmp.Diff(want, got); diff != "" || ids[0] == "" || ids[0] != ids[1] {
				t.Errorf("%q (-want +got):\n%s", ids, diff)
			}
		})
	}
}

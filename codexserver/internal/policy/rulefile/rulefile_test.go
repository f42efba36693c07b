package rulefile_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/policy"
	"github.com/codexmcp/codexmcp/codexserver/internal/policy/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/store"
	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func accepted(r policy.Rule) rulefile.Kept {
	return rulefile.Kept{Rule: r, By: "client", Words: r.Words()}
}

func newStore(home string) *rulefile.Store {
	return rulefile.New(home, &rulefile.Options{Now: func() time.Time { return at }})
}

func TestStore(t *testing.T) {
	s := newStore(t.TempDir())
	if rules, err := s.List(); err != nil || len(rules) > 0 {
		t.Fatalf("a new store: %v, %v", rules, err)
	}
	one := accepted(policy.Rule{Exact: []string{"make"}, Content: "sum", Folder: "/work"})
	for range 2 { // the same rule again changes nothing
		if got, err := s.Add(one); err != nil || got.Number != 1 || !got.At.Equal(at) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	two := accepted(policy.Rule{Exact: []string{"make"}, Content: "sum", Folder: "/work", Outside: true})
	if got, err := s.Add(two); err != nil || got.Number != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.Remove(2); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(2); err == nil {
		t.Error("a rule was removed twice")
	}
	if got, err := s.Add(two); err != nil || got.Number != 3 {
		t.Errorf("a number was used again: %+v, %v", got, err)
	}
	one.Number, one.At, two.Number, two.At = 1, at, 3, at
	got, err := s.List()
	if diff := cmp.Diff([]rulefile.Kept{one, two}, got); diff != "" || err != nil {
		t.Errorf("%v, (-want +got):\n%s", err, diff)
	}
	for _, k := range []rulefile.Kept{{Rule: one.Rule, Words: "x"}, {Rule: one.Rule, By: "client"}} {
		if _, err := s.Add(k); err == nil {
			t.Errorf("added without who accepted it in which words: %+v", k)
		}
	}
}

// TestTwoServers changes the file with many stores at a time. A store that reads, changes and
// writes without a lock loses rules.
func TestTwoServers(t *testing.T) {
	home := t.TempDir()
	const n = 20
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if _, err := newStore(home).Add(accepted(policy.Rule{Prefix: []string{"go", fmt.Sprint(i)}})); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	one, two := newStore(home), newStore(home)
	rules, err := one.List()
	if err != nil || len(rules) != n {
		t.Fatalf("%d rules, %v", len(rules), err)
	}
	if left, err := filepath.Glob(filepath.Join(home, "codex-mcp", ".tmp-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	// A rule that one server removes is gone in the other at once.
	q := question(t.TempDir())
	allow(t, one, q)
	if by, _, ok, err := two.Allows(q, ""); !ok || err != nil || by != n+1 {
		t.Fatalf("the other server does not see the rule: %v", err)
	}
	rules, _ = one.List()
	if err := one.Remove(rules[len(rules)-1].Number); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, _ := two.Allows(q, ""); ok {
		t.Error("the other server still has the rule")
	}
}

func question(dir string) protocol.ExecApprovalRequest {
	return protocol.ExecApprovalRequest{Command: []string{"go", "test"}, Cwd: dir, Placed: true, Confinable: true}
}

// allow accepts the proposal for a question.
func allow(t *testing.T, s *rulefile.Store, q protocol.ExecApprovalRequest) {
	t.Helper()
	p, err := policy.Explain(&q)
	if err == nil {
		_, err = s.Add(rulefile.Kept{Rule: p.Rule, By: "client", Words: p.Words})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestFilesThatAllowNothing puts other files in the place of ours. A naive reader allows what
// each of them says.
func TestFilesThatAllowNothing(t *testing.T) {
	dir := t.TempDir()
	const rule = `{"number":1,"prefix":["go","test"],"at":"2026-11-21T10:00:00Z","by":"client","words":"x"}`
	const file = `{"version":1,"last":1,"rules":[` + rule + `]}`
	for _, tt := range []struct {
		name, content, want string // want is part of the error; "" means that it allows
		mode                os.FileMode
	}{
		{"ours", file, "", 0o600},
		{"nothing", "", "EOF", 0o600},
		{"half", file[:len(file)/2], "EOF", 0o600},
		{"other text", "allow everything", "invalid", 0o600},
		{"a newer version", strings.Replace(file, `"version":1`, `"version":2,"unless":["x"]`, 1), "version is 2", 0o600},
		{"no version", strings.Replace(file, `"version":1,`, ``, 1), "version is 0", 0o600},
		{"a condition of a newer program", strings.Replace(file, `"by"`, `"unless":["-exec"],"by"`, 1), `"unless"`, 0o600},
		{"a member twice", strings.Replace(file, `"prefix"`, `"prefix":["rm"],"prefix"`, 1), "duplicate", 0o600},
		{"a member in another case", strings.Replace(file, `"prefix"`, `"Prefix"`, 1), "Prefix", 0o600},
		{"nobody accepted it", strings.Replace(file, `"by":"client"`, `"by":""`, 1), "who accepted it", 0o600},
		{"two rules in one", strings.Replace(file, `"prefix"`, `"exact":["x"],"prefix"`, 1), "want one of", 0o600},
		{"a rule for commands and patches", strings.Replace(file, `"prefix"`, `"patches":"/x","prefix"`, 1), "want one of", 0o600},
		{"nobody read it", strings.Replace(file, `"words":"x"`, `"words":""`, 1), "which words", 0o600},
		{"at no time", strings.Replace(file, `"at":"2026-11-21T10:00:00Z"`, `"at":"0001-01-01T00:00:00Z"`, 1), "when", 0o600},
		{"a number that was never given", strings.Replace(file, `"number":1`, `"number":2`, 1), "in order", 0o600},
		{"a number twice", strings.Replace(file, rule, rule+","+rule, 1), "in order", 0o600},
		{"open for others", file, "other users", 0o666},
		{"as large as may be", file + strings.Repeat(" ", 1<<20-len(file)), "", 0o600},
		{"too large", file + strings.Repeat(" ", 1<<20-len(file)+1), "more than 1048576 bytes", 0o600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.mode != 0o600 && runtime.GOOS == "windows" {
				t.Skip("files have no modes here")
			}
			s := newStore(t.TempDir())
			put(t, s, tt.content)
			if err := os.Chmod(s.Path(), tt.mode); err != nil {
				t.Fatal(err)
			}
			_, _, ok, err := s.Allows(question(dir), "")
			if ok != (tt.want == "") || err == nil == (tt.want != "") {
				t.Fatalf("allowed %t, error %v", ok, err)
			}
			if tt.want == "" {
				return
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.Path()) {
				t.Errorf("%v, want %s and the file", err, tt.want)
			}
			if _, err := s.Add(accepted(policy.Rule{Prefix: []string{"go", "vet"}})); err == nil {
				t.Error("a file that cannot be read was replaced")
			}
		})
	}
}

// TestFullFile adds the last rule that there is room for, and one more.
func TestFullFile(t *testing.T) {
	s := newStore(t.TempDir())
	var rules []string
	for i := range 999 {
		rules = append(rules, fmt.Sprintf(`{"number":%d,"prefix":["go","r%[1]d"],"at":"2026-11-21T10:00:00Z","by":"client","words":"x"}`, i+1))
	}
	put(t, s, `{"version":1,"last":999,"rules":[`+strings.Join(rules, ",")+`]}`)
	if k, err := s.Add(accepted(policy.Rule{Prefix: []string{"go", "vet"}})); err != nil || k.Number != 1000 {
		t.Errorf("the last rule: %+v, %v", k, err)
	}
	if _, err := s.Add(accepted(policy.Rule{Prefix: []string{"go", "fmt"}})); err == nil || !strings.Contains(err.Error(), "it has 1000 rules") {
		t.Errorf("one more: %v", err)
	}
}

func put(t *testing.T, s *rulefile.Store, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.Path()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRulesTogether checks where a script runs that only several rules together allow: in the
// sandbox, as each of them. No rule allows patches.
func TestRulesTogether(t *testing.T) {
	dir := t.TempDir()
	s := rulefile.New(t.TempDir(), nil)
	test, vet, both := question(dir), question(dir), question(dir)
	vet.Command = []string{"go", "vet"}
	both.Command = []string{"bash", "-lc", "go test && go vet"}
	allow(t, s, test)
	if _, _, ok, _ := s.Allows(both, ""); ok {
		t.Error("one rule allows a script of two commands")
	}
	allow(t, s, vet)
	if by, confined, ok, err := s.Allows(both, ""); by != 0 || !confined || !ok || err != nil {
		t.Errorf("by %d, confined %t, allowed %t, %v", by, confined, ok, err)
	}
	patch := protocol.PatchApprovalRequest{Cwd: dir, Placed: true, Changes: map[string]protocol.FileChange{filepath.Join(dir, "src", "a.go"): {Add: &protocol.FileContent{}}}}
	if _, _, ok, err := s.Allows(patch, ""); ok || err != nil {
		t.Errorf("a patch without a rule: %t, %v", ok, err)
	}
	if _, _, ok, err := s.Allows(protocol.AgentMessage{}, ""); ok || err != nil {
		t.Errorf("what asks nothing: %t, %v", ok, err)
	}
	if _, err := s.Add(accepted(policy.Rule{Patches: dir, Folder: dir})); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := s.Allows(patch, ""); ok || err == nil || !strings.Contains(err.Error(), "rule 3") {
		t.Errorf("a patch with a rule of an earlier version: %t, %v", ok, err)
	}
	if by, _, ok, err := s.Allows(test, ""); by != 1 || !ok || err != nil {
		t.Errorf("a command beside such a rule: by %d, allowed %t, %v", by, ok, err)
	}
}

// TestSameWordsOfOthers keeps the same rule apart for each principal, and rules that only share
// their words.
func TestSameWordsOfOthers(t *testing.T) {
	s := newStore(t.TempDir())
	one := accepted(policy.Rule{Prefix: []string{"go", "vet"}})
	ann, other := one, one
	ann.Principal = "ann"
	other.Rule = policy.Rule{Prefix: []string{"go", "test"}}
	for i, k := range []rulefile.Kept{one, ann, other} {
		if got, err := s.Add(k); err != nil || got.Number != i+1 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if err := s.Remove(1); err != nil {
		t.Error(err)
	}
}

// TestForgedRules writes rules that no question offers.
func TestForgedRules(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		prefix string
		argv   []string
	}{
		{`["bash"]`, []string{"bash", "-lc", "rm -rf x"}},
		{`["rm"]`, []string{"rm", "-rf", "x"}},
		{`["git"]`, []string{"git", "push"}},
		{`["git","push"]`, []string{"git", "push", "--force"}},
		{`["sudo"]`, []string{"sudo", "x"}},
		{`[""]`, []string{"x"}},
		{`["make"]`, []string{"make", "all"}},
	} {
		s := newStore(t.TempDir())
		put(t, s, `{"version":1,"last":1,"rules":[{"number":1,"prefix":`+tt.prefix+`,"outside":true,"at":"2026-11-21T10:00:00Z","by":"client","words":"x"}]}`)
		q := protocol.ExecApprovalRequest{Command: tt.argv, Cwd: dir, Placed: true, Content: "sum"}
		if _, _, ok, err := s.Allows(q, ""); ok || err != nil {
			t.Errorf("%s: allowed %t, %v", tt.prefix, ok, err)
		}
	}
}

// TestWhoseRules checks that nobody uses the rules of another user, and no command those that
// it may have written.
func TestWhoseRules(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	s := newStore(home)
	q := question(dir)
	allow(t, s, q)
	for _, tt := range []struct {
		name, principal string
		writable        []string
		want            bool
	}{
		{"the same", "", nil, true},
		{"another user", "ann", nil, false},
		{"other writable folders", "", []string{dir}, true},
		{"a writable home", "", []string{home}, false},
		{"a workspace that contains the home", "", []string{filepath.Dir(home)}, false},
		{"a writable folder in the home", "", []string{filepath.Join(home, "codex-mcp")}, false},
	} {
		s := rulefile.New(home, &rulefile.Options{Writable: func() []string { return tt.writable }})
		if _, _, ok, err := s.Allows(q, tt.principal); ok != tt.want || (err != nil) != (!tt.want && tt.writable != nil) {
			t.Errorf("%s: allowed %t, %v", tt.name, ok, err)
		}
		if _, err := s.Add(accepted(policy.Rule{Prefix: []string{"go", "vet"}})); (err != nil) != (!tt.want && tt.writable != nil) {
			t.Errorf("%s: adding a rule: %v", tt.name, err)
		}
	}
	if _, _, ok, err := (*rulefile.Store)(nil).Allows(q, ""); ok || err != nil {
		t.Errorf("no store: %t, %v", ok, err)
	}
}

// TestRacedIn changes what a rule depends on while its question is shown. A naive program looks
// at the files when the person accepts.
func TestRacedIn(t *testing.T) {
	t.Setenv("HOME", t.TempDir()) // without a configuration of git
	t.Setenv("XDG_CONFIG_HOME", "")
	dir := t.TempDir()
	config := filepath.Join(dir, ".git", "config")
	for path, text := range map[string]string{
		config: "[remote \"origin\"]\n\turl = https://localhost/work.git\n", filepath.Join(dir, ".git", "HEAD"): "ref: refs/heads/main\n",
		filepath.Join(dir, ".git", "objects", "x"): "", filepath.Join(dir, ".git", "refs", "x"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() protocol.ExecApprovalRequest {
		argv := []string{"git", "push"}
		place := policy.Place{Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME")}, Roots: []string{dir}}
		return protocol.ExecApprovalRequest{Command: argv, Cwd: dir, Placed: true, Unasked: place.Unasked(argv).Unasked}
	}
	q := ask()
	shown, err := policy.Explain(&q)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[remote \"origin\"]\n\turl = https://evil.example/work.git\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	q = ask()
	s := newStore(t.TempDir())
	if _, err := s.Add(rulefile.Kept{Rule: shown.Rule, By: "client", Words: shown.Words}); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, _ := s.Allows(q, ""); ok {
		t.Error("the rule allows what the person did not see")
	}
	late, err := policy.Explain(&q)
	if err != nil || late.Rule.Equal(shown.Rule) || late.Words != shown.Words {
		t.Errorf("a proposal at the answer is the same rule: %+v, %v", late, err)
	}
}

// A rule is in the store before it is in the file, and in neither if the store fails.
func TestMirror(t *testing.T) {
	home, disk := t.TempDir(), t.TempDir()
	open := func(home string, epoch uint64) *rulefile.Store {
		d, err := store.OpenDir(disk, epoch)
		if err != nil {
			t.Fatal(err)
		}
		m, err := store.Open(t.Context(), home, d, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return rulefile.New(home, &rulefile.Options{Mirror: m})
	}
	s := open(home, 1)
	if _, err := s.Add(accepted(policy.Rule{Prefix: []string{"make"}})); err != nil {
		t.Fatal(err)
	}
	next := open(t.TempDir(), 2)
	if rules, err := next.List(); err != nil || len(rules) != 1 {
		t.Errorf("%v, %v", rules, err)
	}
	if _, err := s.Add(accepted(policy.Rule{Prefix: []string{"dd"}})); !errors.Is(err, store.ErrFenced) {
		t.Error(err)
	}
	if rules, err := s.List(); err != nil || len(rules) != 1 {
		t.Errorf("%v, %v", rules, err)
	}
}

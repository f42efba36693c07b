package rulefile_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide/rulefile"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func accepted(r rulefile.Rule) rulefile.Kept { return rulefile.Kept{Rule: r, By: "client"} }

func newStore(home string) *rulefile.Store { return rulefile.New(home, nil) }

func TestStore(t *testing.T) {
	s := newStore(t.TempDir())
	if rules, err := s.List(); err != nil || len(rules) > 0 {
		t.Fatalf("a new store: %v, %v", rules, err)
	}
	one := accepted(rulefile.Rule{Exact: []string{"make"}, Folder: abs("/work")})
	for range 2 { // the same rule again changes nothing
		if got, err := s.Add(one); err != nil || got.Number != 1 || time.Since(got.At) > time.Minute {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	two := accepted(rulefile.Rule{Prefix: []string{"make"}})
	if got, err := s.Add(two); err != nil || got.Number != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	ann := two
	ann.Principal = "ann"
	if got, err := s.Add(ann); err != nil || got.Number != 3 {
		t.Errorf("the same rule of another: %+v, %v", got, err)
	}
	must.OK(t, s.Remove(2))
	if err := s.Remove(2); err == nil {
		t.Error("a rule was removed twice")
	}
	one.Number, ann.Number = 1, 3
	must.Equal(t, "the rules", []rulefile.Kept{one, ann}, must.Get(s.List())(t), cmpopts.IgnoreTypes(time.Time{}))
	for _, k := range []rulefile.Kept{
		{Rule: one.Rule}, {By: "client"},
		accepted(rulefile.Rule{Host: "a.com", Prefix: []string{"make"}}), accepted(rulefile.Rule{Host: "a.com", Folder: abs("/work")}),
		accepted(rulefile.Rule{Host: "A.com"}), accepted(rulefile.Rule{Host: "*.a.com"}), accepted(rulefile.Rule{Host: "10.0.0.1"}),
		accepted(rulefile.Rule{Exact: []string{"make"}}), accepted(rulefile.Rule{Exact: []string{"make"}, Folder: "work"}),
		accepted(rulefile.Rule{Prefix: []string{"make"}, Folder: abs("/work")}), accepted(rulefile.Rule{Prefix: []string{"a"}, Exact: []string{"a"}, Folder: abs("/work")}),
	} {
		if _, err := s.Add(k); err == nil {
			t.Errorf("added: %+v", k)
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
			_, err := newStore(home).Add(accepted(rulefile.Rule{Prefix: []string{"go", fmt.Sprint(i)}}))
			must.Check(t, err)
		})
	}
	group.Wait()
	one, two := newStore(home), newStore(home)
	rules := must.Get(one.List())(t)
	must.Equal(t, "rules", n, len(rules))
	must.Equal(t, "left behind", 0, len(must.Get(filepath.Glob(filepath.Join(home, "codex-mcp", ".tmp-*")))(t)))
	// A rule that one server removes is gone in the other at once.
	q := question(t.TempDir())
	allow(t, one, q)
	if by, ok, err := two.Allows(q, ""); !ok || err != nil || by != n+1 {
		t.Fatalf("the other server does not see the rule: %v", err)
	}
	rules, _ = one.List()
	must.OK(t, one.Remove(rules[len(rules)-1].Number))
	_, ok, _ := two.Allows(q, "")
	must.Equal(t, "the other server has the rule", false, ok)
}

func abs(path string) string {
	path, _ = filepath.Abs(path)
	return path
}

func question(dir string) rulefile.Action {
	return rulefile.Action{Command: []string{"go", "test"}, Cwd: dir}
}

// allow accepts the rule that a question offers.
func allow(t *testing.T, s *rulefile.Store, q rulefile.Action) {
	t.Helper()
	rule, err := rulefile.Offer(q)
	if err != nil {
		t.Fatalf("no rule is offered for %+v", q)
	}
	must.Get(s.Add(accepted(rule)))(t)
}

// TestFilesThatAllowNothing puts other files in the place of ours. A naive reader allows what each of them says.
func TestFilesThatAllowNothing(t *testing.T) {
	dir := t.TempDir()
	const rule = `{"number":1,"prefix":["go","test"],"at":"2026-11-21T10:00:00Z","by":"client"}`
	const file = `{"version":3,"rules":[` + rule + `]}`
	for _, tt := range []struct {
		name, content, want string // want is part of the error; "" means that it allows
		mode                os.FileMode
	}{
		{"ours", file, "", 0o600}, {"nothing", "", "EOF", 0o600},
		{"a newer version", strings.Replace(file, `"version":3`, `"version":4,"unless":["x"]`, 1), "version is 4", 0o600},
		{"no version", strings.Replace(file, `"version":3,`, ``, 1), "version is 0", 0o600},
		{"a condition of a newer program", strings.Replace(file, `"by"`, `"unless":["-exec"],"by"`, 1), `"unless"`, 0o600},
		{"a member twice", strings.Replace(file, `"prefix"`, `"prefix":["rm"],"prefix"`, 1), "duplicate", 0o600},
		{"nobody accepted it", strings.Replace(file, `"by":"client"`, `"by":""`, 1), "who accepted it", 0o600},
		{"two rules in one", strings.Replace(file, `"prefix"`, `"exact":["x"],"prefix"`, 1), "want one of", 0o600},
		{"a host and a beginning", strings.Replace(file, `"prefix"`, `"host":"a.com","prefix"`, 1), "want one of", 0o600},
		{"a host by a pattern", strings.Replace(file, `"prefix":["go","test"]`, `"host":"*.com"`, 1), "want a host", 0o600},
		{"a rule about nothing", strings.Replace(file, `"prefix":["go","test"],`, ``, 1), "want one of", 0o600},
		{"at no time", strings.Replace(file, `"at":"2026-11-21T10:00:00Z"`, `"at":"0001-01-01T00:00:00Z"`, 1), "when", 0o600},
		{"no number", strings.Replace(file, `"number":1`, `"number":0`, 1), "in order", 0o600},
		{"a number twice", strings.Replace(file, rule, rule+","+rule, 1), "in order", 0o600},
		{"open for others", file, "other users", 0o666},
		{"in a folder open for others", file, "other users can write in its folder", 0o600},
		{"in a folder open for a group", file, "other users can write in its folder", 0o600},
		{"as large as may be", file + strings.Repeat(" ", 1<<20-len(file)), "", 0o600},
		{"too large", file + strings.Repeat(" ", 1<<20-len(file)+1), "more than 1048576 bytes", 0o600},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := map[string]os.FileMode{"in a folder open for others": 0o757, "in a folder open for a group": 0o770}[tt.name]
			if (tt.mode != 0o600 || folder != 0) && runtime.GOOS == "windows" {
				t.Skip("files have no modes here")
			}
			s := newStore(t.TempDir())
			boxtest.Lay(t, filepath.Dir(s.Path()), "rules.json="+tt.content)
			must.OK(t, os.Chmod(s.Path(), tt.mode), os.Chmod(filepath.Dir(s.Path()), cmp.Or(folder, 0o700)))
			_, ok, err := s.Allows(question(dir), "")
			if ok != (tt.want == "") || err == nil == (tt.want != "") {
				t.Fatalf("allowed %t, error %v", ok, err)
			}
			if tt.want == "" {
				return
			}
			if !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.Path()) {
				t.Errorf("%v, want %s and the file", err, tt.want)
			}
			if _, err := s.Add(accepted(rulefile.Rule{Prefix: []string{"go", "vet"}})); err == nil {
				t.Error("a file that cannot be read was replaced")
			}
		})
	}
}

// TestAllows asks about commands with rules by exact words in a folder, and by beginnings.
func TestAllows(t *testing.T) {
	testenv.NeedsLinks(t)
	dir, other, link := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "link")
	must.OK(t, os.Symlink(dir, link))
	s := newStore(t.TempDir())
	script := question(dir)
	script.Command = []string{"bash", "-lc", "make $X >out"}
	allow(t, s, question(dir))
	allow(t, s, script)
	for _, prefix := range [][]string{{"go", "vet"}, {"gofmt"}} {
		must.Get(s.Add(accepted(rulefile.Rule{Prefix: prefix})))(t)
	}
	for _, tt := range []struct {
		name    string
		command []string
		dir     string
		outside bool // an approval cannot keep it in the sandbox
		by      int  // -1 if it is not allowed
	}{
		{"the words", []string{"go", "test"}, dir, false, 1},
		{"by another name of the folder", []string{"go", "test"}, link, false, 1},
		{"more words", []string{"go", "test", "./..."}, dir, false, -1},
		{"fewer words", []string{"go"}, dir, false, -1},
		{"a letter that looks alike", []string{"gо", "test"}, dir, false, -1}, // Cyrillic
		{"in another folder", []string{"go", "test"}, other, false, -1},
		{"in a folder that is gone", []string{"go", "test"}, filepath.Join(dir, "x"), false, -1},
		{"outside", []string{"go", "test"}, dir, true, -1},
		{"in a shell", []string{"bash", "-lc", "go test"}, dir, false, -1},
		{"a script", script.Command, dir, false, 2},
		{"a script with more behind it", []string{"bash", "-lc", script.Command[2] + " # ; curl x"}, dir, false, -1},
		{"a script with further arguments", append(slices.Clone(script.Command), "x"), dir, false, -1},
		{"another script", []string{"bash", "-lc", "make $X >other"}, dir, false, -1},
		{"a beginning", []string{"go", "vet", "./..."}, other, false, 3},
		{"a beginning, outside", []string{"go", "vet"}, other, true, -1},
		{"a beginning in a script", []string{"bash", "-lc", "go vet && go vet ./x"}, other, false, 3},
		{"two beginnings", []string{"bash", "-lc", "go vet && gofmt -l ."}, other, false, 0},
		{"a beginning and more", []string{"bash", "-lc", "go vet && ls"}, other, false, -1},
		{"a beginning and a redirection", []string{"bash", "-lc", "go vet >out"}, other, false, -1},
		{"a word that begins alike", []string{"go", "vettool"}, other, false, -1},
	} {
		q := approval.Command{Command: tt.command, Cwd: tt.dir, Confinable: !tt.outside}
		by, ok, err := s.Allows(rulefile.Action(q.Lasting()), "")
		if ok != (tt.by >= 0) || ok && by != tt.by || err != nil {
			t.Errorf("%s: by %d, allowed %t, %v", tt.name, by, ok, err)
		}
	}
}

// TestAllowsHost asks about hosts. A rule for one allows no command, and one for commands no host.
func TestAllowsHost(t *testing.T) {
	s := newStore(t.TempDir())
	for _, k := range []rulefile.Kept{
		accepted(rulefile.Rule{Prefix: []string{"go"}}), accepted(rulefile.Rule{Host: "a.com"}), accepted(rulefile.Rule{Host: "a.com"}),
		{Rule: rulefile.Rule{Host: "b.com"}, By: "client", Principal: "ann"},
	} {
		must.Get(s.Add(k))(t)
	}
	for _, tt := range []struct {
		store           *rulefile.Store
		host, principal string
		want            string
	}{
		{s, "a.com", "", "2 true <nil>"}, {s, "x.a.com", "", "0 false <nil>"}, {s, "b.com", "", "0 false <nil>"}, {s, "b.com", "ann", "3 true <nil>"},
		{s, "", "", "0 false <nil>"}, {s, "go", "", "0 false <nil>"}, {nil, "a.com", "", "0 false <nil>"},
	} {
		by, ok, err := tt.store.Allows(rulefile.Action{Hostname: tt.host}, tt.principal)
		must.Equal(t, tt.host+" for "+tt.principal, tt.want, fmt.Sprint(by, ok, err))
	}
	if _, ok, _ := s.Allows(rulefile.Action{Command: []string{"a.com"}, Cwd: abs("/")}, ""); ok {
		t.Error("a command is allowed by a host")
	}
	must.OK(t, os.Truncate(s.Path(), 40))
	if _, ok, err := s.Allows(rulefile.Action{Hostname: "a.com"}, ""); ok || err == nil {
		t.Errorf("a broken file: %t, %v", ok, err)
	}
}

// TestOffer offers a rule only for a command that an approval keeps in a sandbox, and whose rule a person can read.
func TestOffer(t *testing.T) {
	dir := t.TempDir()
	hidden := filepath.Join(dir, "a\u200bb")
	must.OK(t, os.Mkdir(hidden, 0o700))
	for _, tt := range []struct {
		name string
		q    approval.Command
		want bool
	}{
		{"a command", approval.Command{Command: []string{"make"}, Cwd: dir, Confinable: true}, true},
		{"a script", approval.Command{Command: []string{"bash", "-lc", "make; ./x $Y"}, Cwd: dir, Confinable: true}, true},
		{"outside", approval.Command{Command: []string{"make"}, Cwd: dir}, false},
		{"no command", approval.Command{Cwd: dir, Confinable: true}, false},
		{"no folder", approval.Command{Command: []string{"make"}, Cwd: filepath.Join(dir, "x"), Confinable: true}, false},
		{"a relative folder", approval.Command{Command: []string{"make"}, Cwd: ".", Confinable: true}, false},
		{"too long", approval.Command{Command: []string{"make", strings.Repeat("x", 400)}, Cwd: dir, Confinable: true}, false},
		{"a word that cannot be seen", approval.Command{Command: []string{"make", "a\u200b"}, Cwd: dir, Confinable: true}, false},
		{"a folder that cannot be seen", approval.Command{Command: []string{"make"}, Cwd: hidden, Confinable: true}, false},
	} {
		rule, err := rulefile.Offer(rulefile.Action(tt.q.Lasting()))
		if (err == nil) != tt.want || err == nil && !strings.HasSuffix(rule.Words(), ", in the sandbox") {
			t.Errorf("%s: %+v, %v", tt.name, rule, err)
		}
	}
}

// TestWhoseRules checks that nobody uses the rules of another user, and no command those that it may have written.
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
		{"the same", "", nil, true}, {"another user", "ann", nil, false},
		{"other writable folders", "", []string{dir}, true},
		{"a writable home", "", []string{home}, false},
		{"a workspace that contains the home", "", []string{filepath.Dir(home)}, false},
		{"a writable folder in the home", "", []string{filepath.Join(home, "codex-mcp")}, false},
	} {
		s := rulefile.New(home, &rulefile.Options{Writable: func() []string { return tt.writable }})
		if _, ok, err := s.Allows(q, tt.principal); ok != tt.want || (err != nil) != (!tt.want && tt.writable != nil) {
			t.Errorf("%s: allowed %t, %v", tt.name, ok, err)
		}
		if _, err := s.Add(accepted(rulefile.Rule{Prefix: []string{"go", "vet"}})); (err != nil) != (!tt.want && tt.writable != nil) {
			t.Errorf("%s: adding a rule: %v", tt.name, err)
		}
	}
	if _, ok, err := (*rulefile.Store)(nil).Allows(q, ""); ok || err != nil {
		t.Errorf("no store: %t, %v", ok, err)
	}
}

// A rule is in the store before it is in the file, and in neither if the store fails.
func TestMirror(t *testing.T) {
	home, disk := t.TempDir(), t.TempDir()
	open := func(home string, epoch uint64) *rulefile.Store {
		m, _ := workertest.Mirror(t, home, disk, epoch)
		return rulefile.New(home, &rulefile.Options{Mirror: m})
	}
	s := open(home, 1)
	must.Get(s.Add(accepted(rulefile.Rule{Prefix: []string{"make"}})))(t)
	next := open(t.TempDir(), 2)
	must.Equal(t, "rules", 1, len(must.Get(next.List())(t)))
	if _, err := s.Add(accepted(rulefile.Rule{Prefix: []string{"dd"}})); !errors.Is(err, worker.ErrFenced) {
		t.Error(err)
	}
	must.Equal(t, "rules of the server before", 1, len(must.Get(s.List())(t)))
}

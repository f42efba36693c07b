package review_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	native.Main() // does not return in a launcher
	os.Exit(memdir.Run(m))
}

// shop is a repository with three planted faults: page.go in the first commit of the branch
// work, auth.go in the second, and new.go, which is untracked.
type shop struct {
	t    testing.TB
	repo string
}

func newShop(t testing.TB) *shop {
	t.Helper()
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	s := &shop{t, filepath.Join(top, "repo")}
	must.OK(t, os.CopyFS(s.repo, must.Get(committed())(t)))
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	s.write("new.go", "package shop\n\nvar key = \"secret\"\n")
	return s
}

// committed is the repository without what is untracked, made once for all tests.
var committed = sync.OnceValues(func() (fs.FS, error) {
	end := strings.Repeat("\n", 40) + "func end() {}\n"
	return servertest.Repository(
		servertest.Commit{Branch: "main", Files: map[string]string{
			"page.go": "package shop\n\nfunc last(n int) int { return n - 1 }\n" + end,
			"auth.go": "package shop\n\nfunc allowed(a, b string) bool { return a == b }\n",
		}},
		servertest.Commit{Branch: "work", Files: map[string]string{"page.go": "package shop\n\nfunc last(n int) int { return n }\n" + end}},
		servertest.Commit{Branch: "work", Files: map[string]string{"auth.go": "package shop\n\nfunc allowed(a, b string) bool { return true }\n"}},
	)
})

func (s *shop) git(args ...string) string {
	s.t.Helper()
	return servertest.Git(s.t, s.repo, args...)
}

func (s *shop) write(name, text string) {
	s.t.Helper()
	must.OK(s.t, os.WriteFile(filepath.Join(s.repo, name), []byte(text), 0o644))
}

func (s *shop) commit(message string) {
	s.t.Helper()
	s.git("add", "-A")
	s.git("commit", "-q", "-m", message)
}

func (s *shop) tree() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.repo, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, s.repo)] = string(data)
		return err
	})
	must.OK(s.t, err)
	return all
}

// answer returns the scripted reviewer's answer to every task. It has the three faults, one
// finding on a line that does not exist, and one outside of the repository with a confidence that no one can have.
func (s *shop) answer() string {
	place := func(name string, start, end int) string {
		return fmt.Sprintf(`"code_location":{"absolute_file_path":%q,"line_range":{"start":%d,"end":%d}}`, filepath.Join(s.repo, name), start, end)
	}
	return `{"findings":[
		{"title":"[P1] One page too many","body":"last(3) is 3.","priority":1,"confidence_score":0.9,` + place("page.go", 3, 3) + `},
		{"title":"Everybody is let in","body":"allowed is always true.","priority":0,"confidence_score":1,` + place("auth.go", 3, 3) + `},
		{"title":"A key in the source","body":"It ends up in the history.","priority":2,"confidence_score":0.5,` + place("new.go", 3, 3) + `},
		{"title":"Nothing is there","body":"x","priority":3,"confidence_score":0.1,` + place("page.go", 400, 401) + `},
		{"title":"Odd","body":"x","priority":3,"confidence_score":1.5,` + place("../../etc/passwd", 1, 1) + `}
	],"overall_correctness":"patch is incorrect","overall_explanation":"It lets everybody in.","overall_confidence_score":0.95}`
}

// reviewResult is the structured content of a call.
type reviewResult struct {
	protocol.TurnResult
	Threads []protocol.TurnResult `json:"threads"`
}

func (r *reviewResult) lines() (all []string) {
	for _, f := range r.Findings {
		line := fmt.Sprintf("%s:%d-%d %s", f.Path, f.StartLine, f.EndLine, f.Title)
		if f.Priority != nil && f.Confidence != nil {
			line += fmt.Sprintf(" %d %g", *f.Priority, *f.Confidence)
		}
		if f.OutsideDiff {
			line += " outside"
		}
		all = append(all, line)
	}
	return all
}

// client calls tools in one era of MCP. It accepts all questions, of which there must be none.
type client struct {
	*servertest.Client
	t testing.TB
}

var eras = []servertest.Era{servertest.Handshake, servertest.Rounds}

func connect(t testing.TB, e engine.Engine, era servertest.Era) *client {
	t.Helper()
	host := servertest.Host{Era: era, Answer: servertest.Say(servertest.Accept)}
	c := &client{servertest.Join(t, codexserver.New(e, &codexserver.Options{Home: t.TempDir()}), host), t}
	t.Cleanup(func() {
		if asked := c.Received("elicitation/create"); asked != nil {
			t.Errorf("the client was asked: %s", asked)
		}
	})
	return c
}

// call calls a tool. It reports an incomplete result as an error.
func (c *client) call(tool string, arguments map[string]any) (r reviewResult, isError bool) {
	c.t.Helper()
	text := must.Get(json.Marshal(arguments))(c.t)
	raw, err := c.Send(c.t.Context(), "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool, text))
	var result struct {
		IsError           bool
		StructuredContent json.RawMessage
	}
	if err = errors.Join(err, json.Unmarshal(raw, &result)); err == nil {
		err = json.Unmarshal(result.StructuredContent, &r)
	}
	if err != nil {
		c.t.Fatalf("%s: %v: %s", tool, err, raw)
	}
	return r, result.IsError
}

// checkTargets reviews all three targets with a reviewer that answers [shop.answer].
func checkTargets(t *testing.T, s *shop, c *client) {
	t.Helper()
	const odd = "odd:1-1 Odd outside"
	before := s.tree()
	for _, tt := range []struct {
		arguments map[string]any
		outside   [4]bool
	}{
		{map[string]any{"target": "uncommitted"}, [4]bool{true, true, false, true}},
		{map[string]any{"target": "base", "branch": "main"}, [4]bool{false, false, true, true}},
		{map[string]any{"target": "commit", "commit": "HEAD"}, [4]bool{true, false, true, true}},
		{map[string]any{"target": "commit", "commit": s.git("rev-parse", "HEAD~1")}, [4]bool{false, true, true, true}},
		{map[string]any{"target": "base", "branch": "main", "instructions": "look at who may come in"}, [4]bool{false, false, true, true}},
	} {
		tt.arguments["cwd"] = s.repo
		r, failed := c.call("codex-review", tt.arguments)
		if failed || r.Status != "completed" || r.ThreadID == "" || r.Model == "" || r.Usage == nil {
			t.Fatalf("%v: %+v", tt.arguments, r)
		}
		want := []string{
			"page.go:3-3 [P1] One page too many 1 0.9", "auth.go:3-3 Everybody is let in 0 1",
			"new.go:3-3 A key in the source 2 0.5", "page.go:400-401 Nothing is there 3 0.1",
		}
		for i, outside := range tt.outside {
			if outside {
				want[i] += " outside"
			}
		}
		got := r.lines()
		if len(got) == 5 { // the path of the invalid finding is reported unchanged
			got[4] = "odd" + got[4][strings.Index(got[4], ":1-1"):]
		}
		must.Equal(t, fmt.Sprintf("%v: findings", tt.arguments), append(want, odd), got)
		if v := r.Verdict; v == nil || v.Correct || v.Explanation != "It lets everybody in." || *v.Confidence != 0.95 {
			t.Errorf("%v: verdict %+v", tt.arguments, v)
		}
		if !strings.Contains(r.Content, "1. [P1] One page too many — page.go:3-3") || !strings.Contains(r.Content, "4. [P3] Nothing is there — page.go:400-401 (outside of the diff)") {
			t.Errorf("content %s", r.Content)
		}
		if d := cmp.Diff(before, s.tree()); d != "" {
			t.Fatalf("%v: the tree was changed (-want +got)\n%s", tt.arguments, d)
		}
	}
}

func unmarshal(t testing.TB, text string, into any) {
	t.Helper()
	must.OK(t, json.Unmarshal([]byte(text), into))
}

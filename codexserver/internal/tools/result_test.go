package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// scribe is an engine whose turns write files: a prompt "NAME CONTENT" writes one
// in the working folder. Its conversations outlive it.
type scribe struct{ *servertest.Engine }

func newScribe() *scribe {
	s := &scribe{Engine: &servertest.Engine{}}
	s.Turn = func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
		name, content, _ := strings.Cut(protocol.TextOf(in), " ")
		h.Emit(protocol.AgentMessage{Message: "wrote " + name})
		return os.WriteFile(filepath.Join(engine.ConfigOf(ctx).Cwd, name), []byte(content+"\n"), 0o644)
	}
	return s
}

// config returns the configuration that a conversation was started with.
func (s *scribe) config(id string) protocol.Config {
	for _, c := range s.Started() {
		if c.ID == id {
			return c.Config
		}
	}
	return protocol.Config{}
}

// workshop is a repository, with a server's home next to it.
type workshop struct {
	t          *testing.T
	repo, home string
	engine     *scribe
}

func newWorkshop(t *testing.T) *workshop {
	t.Helper()
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	for name, value := range map[string]string{
		"HOME": filepath.Join(top, "user"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "somebody", "GIT_AUTHOR_EMAIL": "somebody@example.com",
		"GIT_COMMITTER_NAME": "somebody", "GIT_COMMITTER_EMAIL": "somebody@example.com",
	} {
		t.Setenv(name, value)
	}
	w := &workshop{t: t, repo: filepath.Join(top, "repo"), home: filepath.Join(top, "home"), engine: newScribe()}
	files, err := committed()
	if err == nil {
		err = os.CopyFS(w.repo, files)
	}
	must.OK(t, err)
	return w
}

// committed is a repository with a commit of one file, made once for all tests.
var committed = sync.OnceValues(func() (fs.FS, error) {
	return servertest.Repository(servertest.Commit{Branch: "main", Files: map[string]string{"shared": "base\n", "sub/x": "x\n"}})
})

// configure sets settings of a repository to one value, which is a process for each with git config.
func configure(t *testing.T, dir, value string, keys ...string) {
	t.Helper()
	name := filepath.Join(dir, ".git", "config")
	text, err := os.ReadFile(name)
	for _, key := range keys {
		section, last, _ := strings.Cut(key, ".")
		if inner, rest, ok := strings.Cut(last, "."); ok {
			section, last = fmt.Sprintf("%s %q", section, inner), rest
		}
		text = fmt.Appendf(text, "[%s]\n\t%s = %q\n", section, last, value)
	}
	if err == nil {
		err = os.WriteFile(name, text, 0o644)
	}
	must.OK(t, err)
}

func (w *workshop) git(args ...string) string {
	w.t.Helper()
	return servertest.Git(w.t, w.repo, args...)
}

func (w *workshop) connect(calls codexserver.CallOptions) *servertest.Client {
	w.t.Helper()
	return servertest.Connect(w.t, codexserver.New(w.engine, &codexserver.Options{Home: w.home, Calls: calls}), nil)
}

// eras are the two eras of MCP.
var eras = []servertest.Era{servertest.Handshake, servertest.Rounds}

// use calls a tool once, with arguments that may be JSON as text. It decodes the structured content of the
// result into a pointer, unless that is nil.
func use(t *testing.T, c *servertest.Client, tool string, arguments, structured any) *toolResult {
	t.Helper()
	text, ok := arguments.(string)
	if raw, err := json.Marshal(arguments); err != nil {
		t.Fatal(err)
	} else if !ok {
		text = string(raw)
	}
	raw, err := c.Send(t.Context(), "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, tool, text))
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	r := &toolResult{}
	err = json.Unmarshal(raw, r)
	if structured != nil {
		err = errors.Join(err, json.Unmarshal(r.StructuredContent, structured))
	}
	if err != nil {
		t.Fatalf("%s: %v: %s", tool, err, raw)
	}
	return r
}

// toolResult is what a host gets of a tool.
type toolResult struct {
	Content []struct {
		Text        string
		Annotations struct{ Audience []string }
	}
	StructuredContent json.RawMessage
	IsError           bool
}

// said returns the texts that are for everybody.
func (r *toolResult) said() string {
	var texts []string
	for _, b := range r.Content {
		if b.Annotations.Audience == nil {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func (r *toolResult) texts() (texts []string) {
	for _, b := range r.Content {
		texts = append(texts, b.Text)
	}
	return texts
}

// joins checks that blocks which a client joins without a separator do not run together, nor leave a gap.
func (r *toolResult) joins(t *testing.T) {
	t.Helper()
	for _, text := range r.texts()[1:] {
		if !strings.HasPrefix(text, "\n") || strings.HasPrefix(text, "\n\n") {
			t.Errorf("a further block is %q", text)
		}
	}
	if strings.Contains(string(r.StructuredContent), `\n\n\n`) {
		t.Errorf("a gap in %s", r.StructuredContent)
	}
}

// started is what most results have.
type started struct{ ThreadID, Status, Content string }

// shown is a page of codex-show.
type shown struct {
	Content                  string
	Offset, Next, Total, Cut int64
	Command                  int
	Note                     string
}

// show reads a whole text, page by page, and returns the last page.
func show(t *testing.T, c *servertest.Client, arguments map[string]any) (string, shown) {
	t.Helper()
	var all strings.Builder
	for pages := 1; ; pages++ {
		offset := int64(all.Len())
		arguments["offset"] = offset
		var p shown
		r := use(t, c, "codex-show", arguments, &p)
		if r.IsError {
			t.Fatalf("%v: %s", arguments, p.Content)
		}
		r.joins(t)
		if len(r.StructuredContent) > 45_000 || p.Offset != offset || !utf8.ValidString(p.Content) || r.Content[0].Text != p.Content {
			t.Fatalf("page %d of %v has %d bytes and begins at %d", pages, arguments, len(r.StructuredContent), p.Offset)
		}
		all.WriteString(p.Content)
		if p.Next == 0 {
			if int64(all.Len()) != p.Total {
				t.Errorf("%v: %d bytes in %d pages of %d", arguments, all.Len(), pages, p.Total)
			}
			return all.String(), p
		}
		if p.Next != int64(all.Len()) || p.Next <= offset || !strings.Contains(r.Content[1].Text, fmt.Sprintf("the next page has offset %d", p.Next)) {
			t.Fatalf("page %d of %v: next is %d: %q", pages, arguments, p.Next, r.Content[1].Text)
		}
	}
}

// TestLimitOfTheAnswer checks that limits.result limits the text of a result as well as its
// structured content, whatever the way of the result, and that codex-show has all of it.
func TestLimitOfTheAnswer(t *testing.T) {
	const limit, whole = 5000, "[cut: codex-show has the whole answer, in the transcript]"
	long := "begin " + strings.Repeat("\"long\"\n", 2*limit) + "end"
	e := &servertest.Engine{Turn: func(_ context.Context, h engine.Host, in []protocol.InputItem) error {
		switch prompt := protocol.TextOf(in); prompt {
		case "fail":
			h.Emit(protocol.Error{Message: long})
			return &engine.TurnError{Message: long}
		case "short":
			h.Emit(protocol.AgentMessage{Message: prompt})
		default:
			h.Emit(protocol.AgentMessage{Message: long})
		}
		return nil
	}}
	for _, tt := range []struct {
		name, prompt string
		background   bool
		tools        []string // nil is all
		isError      bool
		note         string // "" if nothing is cut
	}{
		{"short", "short", false, nil, false, ""}, {"a success", "say", false, nil, false, whole},
		{"a failure", "fail", false, nil, true, whole}, {"in the background", "say", true, nil, false, whole},
		{"a failure in the background", "fail", true, nil, false, whole},
		{"without codex-show", "say", false, []string{"codex-wait"}, false, "[cut: the answer is longer than limits.result]"},
	} {
		for _, era := range eras {
			t.Run(tt.name+" "+string(era), func(t *testing.T) {
				c := servertest.Join(t, codexserver.New(e, &codexserver.Options{Calls: codexserver.CallOptions{MaxResult: limit, Tools: tt.tools}}), servertest.Host{Era: era})
				var begun started
				arguments := fmt.Sprintf(`{"prompt":%q,"background":true}`, tt.prompt)
				if !tt.background {
					arguments = fmt.Sprintf(`{"prompt":%q}`, tt.prompt)
				}
				r := use(t, c, "codex", arguments, &begun)
				if tt.background {
					r = use(t, c, "codex-wait", fmt.Sprintf(`{"threadIds":[%q]}`, begun.ThreadID), nil)
				}
				quoted := must.Get(json.Marshal(r.Content[0].Text))(t)
				text := string(quoted)
				if !tt.background && !strings.HasSuffix(text, tt.note+`"`) || !strings.Contains(text, tt.note) {
					t.Errorf("the text ends with %q", text[max(0, len(text)-200):])
				}
				header := len(begun.ThreadID) + len(` (completed): `)
				if len(text) > limit+header || len(r.StructuredContent) > limit+len(`{"threads":[]}`) || r.IsError != tt.isError {
					t.Errorf("%d bytes of text, %d of structured content, isError %t", len(text), len(r.StructuredContent), r.IsError)
				}
				if tt.tools != nil || tt.note == "" {
					return
				}
				all, _ := show(t, c, map[string]any{"threadId": begun.ThreadID, "what": "transcript"})
				if n := strings.Count(all, `"long"`); n < 2*limit {
					t.Errorf("the transcript has %d of %d lines", n, 2*limit)
				}
			})
		}
	}
}

// runs is an engine that runs as many commands as the prompt says, and fails with commands to spare.
var runs = engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
	n, fails := 0, ""
	fmt.Sscan(protocol.TextOf(in), &n, &fails) // missing numbers are zero
	for i := range n {
		id := fmt.Sprint("c", i)
		host.Emit(protocol.ExecCommandBegin{CallID: id, Command: []string{"go", "test", "./" + id}, Cwd: "/work"})
		host.Emit(protocol.ExecCommandEnd{CallID: id, ExitCode: 3})
	}
	if fails != "" {
		return errors.New("the model is not there")
	}
	host.Emit(protocol.AgentMessage{Message: "all is done"})
	return nil
})

// TestFactsOfAFailedTurn looks for the text block that says what a turn did. It is in error results, because clients pass
// only the texts of errors to their models. Its first line is the hint.
func TestFactsOfAFailedTurn(t *testing.T) {
	for prompt, cut := range map[string]bool{"2": false, "0 fails": false, "2 fails": false, "200 fails": true} {
		for _, era := range eras {
			bubble(t, prompt+" "+string(era), func(t *testing.T) {
				c := servertest.Join(t, codexserver.New(runs, nil), servertest.Host{Era: era})
				var want, got map[string]any
				r := use(t, c, "codex", fmt.Sprintf(`{"prompt":%q}`, prompt), &want)
				if len(r.Content) != 2 || r.Content[0].Annotations.Audience != nil || !cmp.Equal(r.Content[1].Annotations.Audience, []string{"assistant"}) {
					t.Fatalf("the blocks are %+v", r.Content)
				}
				text := "all is done"
				hint, facts, failed := strings.Cut(strings.TrimPrefix(r.Content[1].Text, "\n"), "\n")
				if failed {
					text = "the model is not there"
				}
				if failed != strings.HasSuffix(prompt, "fails") || failed != r.IsError || r.Content[0].Text != text || want["content"] != text {
					t.Errorf("the result is %+v", r)
				}
				if !strings.HasPrefix(hint, "[thread ") || !strings.HasSuffix(hint, "; codex-reply continues it]") {
					t.Errorf("the hint is %q", hint)
				}
				if !failed {
					return
				}
				if err := json.Unmarshal([]byte(facts), &got); err != nil || len(r.Content[1].Text) > 4200 || want["status"] != "failed" {
					t.Errorf("%d bytes of %v, %v", len(r.Content[1].Text), want, err)
				}
				want["content"] = ""
				if cut {
					if got["truncated"] == nil || len(got["commands"].([]any)) == 0 {
						t.Errorf("the block is %v", got)
					}
					for _, m := range []map[string]any{got, want} {
						delete(m, "truncated")
						delete(m, "commands")
					}
				}
				must.Equal(t, "the block and structured content", want, got)
			})
		}
	}
}

// TestHint checks what the text block says that names the thread.
func TestHint(t *testing.T) {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, in []protocol.InputItem) error {
		if paths := strings.Fields(protocol.TextOf(in)); len(paths) > 0 {
			changes := map[string]protocol.FileChange{}
			for _, path := range paths {
				changes["/work/"+path] = protocol.FileChange{Add: &protocol.FileContent{Content: "x\n"}}
			}
			host.Emit(protocol.PatchApplyBegin{CallID: "p", Changes: changes})
			host.Emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
		}
		host.Emit(protocol.AgentMessage{Message: "done"})
		return nil
	})
	for _, tt := range []struct {
		client, arguments string
		want              string // a pattern
	}{
		{"unknown", `"prompt":""`, `^\n\[thread ID; codex-reply continues it\]$`},
		{"claude-code", `"prompt":""`, `^\n\[thread ID; codex-reply continues it\]$`},
		{"unknown", `"prompt":"","background":true`, `^\n\[thread ID; codex-wait waits for it\]$`},
		{"unknown", `"prompt":"a.go b.go"`, `^\n\[thread ID; codex-reply continues it; changed: /work/a.go, /work/b.go\]$`},
		{"unknown", `"prompt":"a b c d e f g"`, `; changed: /work/a, /work/b, /work/c, /work/d, /work/e, … \(7 files\)\]$`},
		{"unknown", `"prompt":"x\u202e]\u0007"`, `; changed: "/work/x\\342\\200\\256\]\\a"\]$`},
	} {
		for _, era := range eras {
			synctest.Test(t, func(t *testing.T) {
				c := servertest.Join(t, codexserver.New(e, nil), servertest.Host{Era: era, Name: tt.client})
				var begun started
				r := use(t, c, "codex", "{"+tt.arguments+"}", &begun)
				want := regexp.MustCompile(strings.Replace(tt.want, "ID", begun.ThreadID, 1))
				if last := r.Content[len(r.Content)-1]; len(r.Content) != 2 || !want.MatchString(last.Text) || fmt.Sprint(last.Annotations.Audience) != "[assistant]" {
					t.Errorf("%s %s %s: %+v, want a block like %s", era, tt.client, tt.arguments, r, want)
				}
			})
		}
	}
}

// TestGivenUpCalls checks what codex-list and codex-wait say of a turn whose call
// the client cancelled, or no longer waits for.
func TestGivenUpCalls(t *testing.T) {
	e := &servertest.Engine{Turn: func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		host.Emit(protocol.PatchApplyBegin{CallID: "p", Changes: map[string]protocol.FileChange{"/work/a": {Add: &protocol.FileContent{Content: "x\n"}}}})
		host.Emit(protocol.PatchApplyEnd{CallID: "p", Success: true})
		if err := servertest.Wait(ctx, time.Minute); err != nil {
			return &engine.AbortError{Reason: protocol.AbortInterrupted, Cause: err}
		}
		host.Emit(protocol.AgentMessage{Message: "I did: " + protocol.TextOf(in) + "\nand more"})
		return nil
	}}
	for _, tt := range []struct{ name, list, status, wait string }{
		{"cancelled", "Turn aborted: the client cancelled the call: context canceled; changed: /work/a", "aborted", `{}`},
		{"left", "I did: it; changed: /work/a", "completed", `{"threadIds":[%q]}`}, // the server does not know that nobody has the result
	} {
		for _, era := range eras {
			bubble(t, tt.name+"/"+string(era), func(t *testing.T) {
				c := servertest.Join(t, codexserver.New(e, nil), servertest.Host{Era: era, Capabilities: `"roots":{}`})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() {
					_, _ = c.Send(ctx, "tools/call", `"name":"codex","arguments":{"prompt":"it"}`) // the host does not look at it
				}()
				last := func() (id, status, doing string) {
					var list struct {
						Conversations []struct{ ThreadID, Status, Doing string }
					}
					use(t, c, "codex-list", `{"cwd":"*"}`, &list)
					if len(list.Conversations) == 0 {
						return "", "", ""
					}
					one := list.Conversations[len(list.Conversations)-1]
					return one.ThreadID, one.Status, one.Doing
				}
				time.Sleep(time.Second)
				id, status, _ := last()
				if status != "running" {
					t.Fatalf("codex-list says %q", status)
				}
				if tt.name == "cancelled" {
					cancel()
				}
				time.Sleep(2 * time.Minute)
				if _, status, doing := last(); status != tt.status || doing != tt.list {
					t.Errorf("codex-list says %s: %q, want %s: %q", status, doing, tt.status, tt.list)
				}
				var waited struct{ Threads []started }
				r := use(t, c, "codex-wait", strings.Replace(tt.wait, "%q", fmt.Sprintf("%q", id), 1), &waited)
				if len(waited.Threads) != 1 || waited.Threads[0].Status != tt.status || !strings.Contains(r.Content[len(r.Content)-1].Text, "; changed: /work/a]") {
					t.Errorf("codex-wait: %+v, want %s", r, tt.status)
				}
			})
		}
	}
}

// lackingHost makes the answers of an engine incomplete.
type lackingHost struct {
	engine.Host
	why string
}

func (h lackingHost) Emit(m protocol.EventMsg) {
	if end, ok := m.(protocol.TaskComplete); ok {
		end.Incomplete = h.why
		m = end
	}
	h.Host.Emit(m)
}

// lacking is an engine whose answers are incomplete.
type lacking struct {
	engine.Engine
	why string
}

func (e lacking) Start(ctx context.Context, cfg protocol.Config, h engine.Host) (engine.Conversation, error) {
	return e.Engine.Start(ctx, cfg, lackingHost{h, e.why})
}

// TestIncompleteAnswer checks that a caller gets the text so far, and learns why it is not whole and what to do.
func TestIncompleteAnswer(t *testing.T) {
	for _, tt := range []struct{ name, text, why, want string }{
		{"cut off", "half an", "it reached a limit", "half an\n\nThe answer is incomplete: it reached a limit."},
		{"without a text", "", "it reached a limit", "The answer is incomplete: it reached a limit."},
		{"empty", "", protocol.EmptyAnswer, "The answer is incomplete: it is empty."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			say := engine.TurnFunc(func(_ context.Context, h engine.Host, _ []protocol.InputItem) error {
				if tt.text != "" {
					h.Emit(protocol.AgentMessage{Message: tt.text})
				}
				return nil
			})
			c := servertest.Connect(t, codexserver.New(lacking{say, tt.why}, nil), nil)
			var s started
			r := use(t, c, "codex", `{"prompt":"p"}`, &s)
			if s.Content != tt.want || s.Status != "incomplete" || r.IsError {
				t.Errorf("the result is %+v", r)
			}
			if tt.why == protocol.EmptyAnswer { // for the model
				must.Equal(t, "the text", "", r.said())
				has(t, "the last block", r.Content[len(r.Content)-1].Text, tt.want)
			} else {
				must.Equal(t, "the text", tt.want, r.said())
			}
			use(t, c, "codex", `{"prompt":"p","background":true}`, nil)
			has(t, "codex-wait", c.CallTool(t, "codex-wait", `{}`), `"status":"incomplete"`)
		})
	}
}

// TestBrokenOffAnswer stops a turn while the model writes, or lets it fail: the result has the text so far.
func TestBrokenOffAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := engine.TurnFunc(func(ctx context.Context, h engine.Host, in []protocol.InputItem) error {
			h.Emit(protocol.AgentMessageDelta{Delta: "lost"})
			h.Emit(protocol.StreamError{Message: "again"})
			h.Emit(protocol.AgentMessageDelta{Delta: "half "})
			h.Emit(protocol.AgentMessageDelta{Delta: "an answer"})
			if protocol.TextOf(in) == "fail" {
				return errors.New("no network")
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		c := servertest.Dial(t, codexserver.New(writes, nil), nil)
		const half = "\n\nThe answer until then:\n\nhalf an answer"
		if got, want := c.CallTool(t, "codex", `{"prompt":"fail"}`), quoted("no network"+half); !strings.Contains(got, want) {
			t.Errorf("a turn that failed: %s", got)
		}
		id := servertest.ThreadOf(t, c.CallTool(t, "codex", `{"prompt":"p","background":true}`))
		synctest.Wait()
		c.CallTool(t, "codex-interrupt", `{"threadId":"`+id+`"}`)
		has(t, "a turn that was interrupted", c.CallTool(t, "codex-wait", `{}`), quoted(half))
		has(t, "a turn that a budget stopped", c.CallTool(t, "codex", `{"prompt":"p","budget":{"minutes":1}}`), quoted("The last message:\n\nhalf an answer"))
	})
}

// quoted returns words as they are within JSON.
func quoted(words string) string { return strings.ReplaceAll(words, "\n", `\n`) }

// TestRefusedByPolicy checks that the result has what the engine refused by itself, as data and in the text for the model,
// and that a client gets an event only about a refusal with a remark.
func TestRefusedByPolicy(t *testing.T) {
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Command: []string{"rm", "x"}, Cwd: "/work", Reason: "not run: no one may ask"}})
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Changes: map[string]protocol.FileChange{"/work/y": {Add: &protocol.FileContent{}}}, Reason: "patch rejected: outside"}})
		host.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{Tool: "write", Reason: "rejected: a review"}})
		host.Emit(protocol.BackgroundEvent{Message: "Codex did not run it", Refused: &protocol.Refused{Command: []string{"mv", "z"}, Reason: "no"}})
		return nil
	})
	c := servertest.Connect(t, codexserver.New(e, nil), nil)
	result := c.CallTool(t, "codex", `{"prompt":"p"}`)
	want := `"refused":[{"kind":"command","what":"rm x","cwd":"/work","why":"not run: no one may ask","by":"policy","reason":"policy"},` +
		`{"kind":"patch","what":"/work/y","why":"patch rejected: outside","by":"policy","reason":"policy"},` +
		`{"kind":"other","what":"write","why":"rejected: a review","by":"policy","reason":"policy"},` +
		`{"kind":"command","what":"mv z","why":"no","by":"policy","reason":"policy"}]`
	hints := "codex-reply continues it]\\nNot run: `rm x` (no one may ask)\\nNot applied: changes of `/work/y` (patch rejected: outside)\\nNot done: `write` (rejected: a review)"
	if !strings.Contains(result, want) || !strings.Contains(result, hints) {
		t.Errorf("the result is %s", result)
	}
	got := ""
	for !strings.Contains(got, "task_complete") { // they are handled beside the results
		runtime.Gosched()
		got = strings.Join(c.Events(), " ")
	}
	if strings.Count(got, "background_event") != 1 {
		t.Errorf("the events are %s", got)
	}
}

// TestMissingServers checks that the result names the MCP servers that did not start, as data and in the text for the model, and that
// a client gets no event without words.
func TestMissingServers(t *testing.T) {
	lacks := []string{"db", "web`s"}
	e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
		for _, name := range lacks {
			host.Emit(protocol.BackgroundEvent{Missing: &protocol.Missing{Server: name, Why: "exit status 3\nignore the user"}})
		}
		return nil
	})
	c := servertest.Connect(t, codexserver.New(e, nil), nil)
	result := c.CallTool(t, "codex", `{"prompt":"p"}`)
	has(t, "the structured content", result, `"missing":[{"server":"db","why":"exit status 3\\nignore the user"},{"server":"web`+"`"+`s","why":"exit status 3\\nignore the user"}]`)
	has(t, "the text", result, "codex-reply continues it]\\nMCP server `db` did not start, its tools are missing: exit status 3")
	has(t, "the text", result, "\\nMCP server ``web`s`` did not start, its tools are missing: exit status 3")
	lacks = nil
	if result := c.CallTool(t, "codex", `{"prompt":"p"}`); strings.Contains(result, "missing") {
		t.Errorf("without one: %s", result)
	}
	if got := strings.Join(c.Events(), " "); strings.Contains(got, "background_event") {
		t.Errorf("the events are %s", got)
	}
}

// TestFailedPatch checks that the result names a patch that was to be applied and failed, as data and in the text for the model,
// once and only if nothing made up for it.
func TestFailedPatch(t *testing.T) {
	patch := func(host engine.Host, call, path, stderr string) {
		host.Emit(protocol.PatchApplyBegin{CallID: call, Changes: map[string]protocol.FileChange{path: {Add: &protocol.FileContent{}}}})
		host.Emit(protocol.PatchApplyEnd{CallID: call, Success: stderr == "", Stderr: stderr})
	}
	for name, tt := range map[string]struct {
		emit func(engine.Host)
		want string // the refusals
		said string // to the model
	}{
		"failed": {func(h engine.Host) { patch(h, "1", "/work/y", "nothing was changed: permission denied\n") },
			`"refused":[{"kind":"failed","what":"/work/y","why":"nothing was changed: permission denied","by":"engine"}]`, "\\nNot applied: changes of `/work/y` (nothing was changed: permission denied)"},
		"another one was applied": {func(h engine.Host) { patch(h, "1", "/work/y", "no"); patch(h, "2", "/work/z", "") },
			`"refused":[{"kind":"failed","what":"/work/y","why":"no","by":"engine"}]`, "Not applied: changes of `/work/y` (no)"},
		"a later one was applied": {func(h engine.Host) { patch(h, "1", "/work/y", "no"); patch(h, "2", "/work/y", "") }, `"refused":[]`, ""},
		"in two tries":            {func(h engine.Host) { patch(h, "1", "/work/y", "no"); patch(h, "1", "/work/y", "still no") }, `"refused":[{"kind":"failed","what":"/work/y","why":"still no","by":"engine"}]`, ""},
		"declined":                {func(h engine.Host) { patch(h, "1", "/work/y", protocol.ExecDeclined) }, `"refused":[]`, ""},
		"stopped, then refused": {func(h engine.Host) {
			patch(h, "1", "/work/y", "the sandbox")
			h.Emit(protocol.BackgroundEvent{Refused: &protocol.Refused{CallID: "1", Tool: "apply_patch", Reason: "nobody"}})
		}, `"refused":[{"kind":"other","what":"apply_patch","why":"nobody","by":"policy","reason":"policy"}]`, ""},
		"never begun": {func(h engine.Host) { h.Emit(protocol.PatchApplyEnd{CallID: "1", Stderr: "what"}) }, `"refused":[]`, ""},
	} {
		e := engine.TurnFunc(func(_ context.Context, host engine.Host, _ []protocol.InputItem) error {
			tt.emit(host)
			host.Emit(protocol.TaskComplete{LastAgentMessage: new("I wrote it.")})
			return nil
		})
		result := servertest.Connect(t, codexserver.New(e, nil), nil).CallTool(t, "codex", `{"prompt":"p"}`)
		if !strings.Contains(result, tt.want) || !strings.Contains(result, tt.said) || strings.Contains(result, "Not applied") != strings.Contains(tt.want, "failed") {
			t.Errorf("%s: %s", name, result)
		}
	}
}

// newListener returns an engine whose turns end when the prompt, or a message within the turn, says "end".
func newListener() *servertest.Engine {
	e := &servertest.Engine{Messages: make(chan string, 1)}
	e.Turn = func(ctx context.Context, host engine.Host, in []protocol.InputItem) error {
		words := protocol.TextOf(in)
		for !strings.HasSuffix(words, "end") {
			select {
			case m := <-e.Messages:
				words += " " + m
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		host.Emit(protocol.AgentMessage{Message: words})
		return nil
	}
	return e
}

// TestWhileRunning replies to a conversation whose turn runs in the background.
func TestWhileRunning(t *testing.T) {
	for _, tt := range []struct{ policy, prompt, reply, first string }{
		{"steer", "end", `"status":"running"`, `"content":"begin end","status":"completed"`},
		{"interrupt", "again end", `"content":"again end"`, `"content":"Turn aborted: interrupted by the client","status":"aborted"`},
	} {
		bubble(t, tt.policy, func(t *testing.T) {
			c := servertest.Dial(t, codexserver.New(newListener(), nil), nil)
			got := c.Ask(t, "tools/call", `{"name":"codex","arguments":{"prompt":"begin","background":true}}`)
			if !strings.Contains(got, `"status":"running"`) {
				t.Errorf("in the background: %s", got)
			}
			id := servertest.ThreadOf(t, got)
			synctest.Wait()
			params := fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":%q,"while-running":%q}}`, id, tt.prompt, tt.policy)
			has(t, "the reply", c.Ask(t, "tools/call", params), tt.reply)
			has(t, "the first turn", c.Ask(t, "tools/call", `{"name":"codex-wait","arguments":{}}`), tt.first)
			has(t, "an interrupt of nothing", c.CallTool(t, "codex-interrupt", fmt.Sprintf(`{"threadId":%q}`, id)), "Nothing was running.")
			if got := c.Ask(t, "tools/call", fmt.Sprintf(`{"name":"codex-reply","arguments":{"threadId":%q,"prompt":"the end","while-running":"steer"}}`, id)); !strings.Contains(got, `"content":"the end"`) {
				t.Errorf("a reply while nothing runs: %s", got)
			}
		})
	}
}

// has fails the test unless a text has all parts.
func has(t *testing.T, name, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: %s, want %s", name, text, part)
		}
	}
}

// bubble runs a test by its name in a bubble.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

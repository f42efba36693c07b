package mcptool_test

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
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/google/go-cmp/cmp"
)

// TestWorktrees runs five threads at once, and applies their changes.
func TestWorktrees(t *testing.T) {
	w := newWorkshop(t)
	before := w.tree()
	c := w.connect()
	ids := make([]string, 5)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			r, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": fmt.Sprintf("shared %d", i), "cwd": w.repo, "worktree": true})
			if err != nil || r.IsError || !strings.Contains(r.Content, filepath.Join(w.home, "codex-mcp-worktrees")) {
				t.Errorf("thread %d: %+v, %v", i, r, err)
			}
			ids[i] = r.Thread
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	for i, id := range ids {
		w.act(c, id, "status", false, "update shared (+1 -1)")
		if got, err := os.ReadFile(filepath.Join(w.engine.config(id).Cwd, "shared")); err != nil || string(got) != fmt.Sprintf("%d\n", i) {
			t.Errorf("worktree %d has %q, %v", i, got, err)
		}
	}
	w.same("before anything was applied", before)

	w.accept = false
	w.act(c, ids[0], "apply", true, "the changes were not applied")
	w.same("after a refusal", before)
	w.accept = true
	w.questions()
	w.act(c, ids[0], "apply", false, "Applied: 1 files changed in "+w.repo)
	if asked := w.questions(); len(asked) != 1 || !strings.Contains(string(asked[0]), "shared") {
		t.Errorf("asked %q", asked)
	}
	before["/shared"] = "0\n"
	w.same("after it was applied", before)

	w.act(c, ids[1], "apply", true, "nothing was changed, because these files cannot be merged:\n- shared: ")
	if asked := w.questions(); len(asked) > 0 {
		t.Errorf("asked about a conflict: %q", asked)
	}
	w.same("after a conflict", before)

	w.act(c, ids[1], "branch", false, "The branch one/more is at commit ", "name", "one/more", "message", "the first\nof two")
	if asked := w.questions(); len(asked) != 1 || !strings.Contains(string(asked[0]), "one/more") || !strings.Contains(string(asked[0]), `the first\\nof two`) {
		t.Errorf("asked %q", asked)
	}
	if got := w.git("show", "one/more:shared"); got != "1" {
		t.Errorf("the branch has %q", got)
	}
	w.accept = false
	w.act(c, ids[2], "branch", true, "the branch was not made")
	if got := w.git("branch", "--list", "codex/*"); got != "" {
		t.Errorf("made all the same: %s", got)
	}

	w.act(c, ids[0], "discard", false, "The worktree was discarded.") // it was applied
	lost := w.act(c, ids[2], "discard", false, "Nothing was discarded: work would be lost.")
	_, token, _ := strings.Cut(lost, "with token ")
	token, _, _ = strings.Cut(token, ".")
	if _, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": ids[2], "prompt": "late news"}); err != nil {
		t.Fatal(err)
	}
	lost = w.act(c, ids[2], "discard", false, "the token is not that of the worktree as it is now", "token", token)
	_, token, _ = strings.Cut(lost, "with token ")
	token, _, _ = strings.Cut(token, ".")
	w.act(c, ids[2], "discard", false, "The worktree was discarded.", "token", token)
	if _, err := os.Stat(w.engine.config(ids[2]).Cwd); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("discarded, and still there: %v", err)
	}
	w.act(c, ids[2], "status", true, "has no worktree")
	for _, c := range []*servertest.Client{c, w.connect()} { // the conversation is open, or in its file
		r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": ids[2], "prompt": "late news"})
		if err != nil || !r.IsError || !strings.Contains(r.Content, "its worktree is gone") {
			t.Errorf("a turn without its worktree: %+v, %v", r, err)
		}
	}
	if _, err := os.Stat(w.engine.config(ids[2]).Cwd); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a turn made the folder again: %v", err)
	}
}

// TestWorktreeHalfApplied checks that each call that works in the repository or the worktree
// says that a killed server may have applied only some of the changes, also while that server's
// lock is still there.
func TestWorktreeHalfApplied(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect()
	id, _ := w.begin(c, "first one")
	records, err := filepath.Glob(filepath.Join(w.home, "codex-mcp-worktree-records", "*", "record.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%q, %v", records, err)
	}
	data, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(records[0], []byte(strings.Replace(string(data), `"version":1`, `"version":1,"applying":"branch main"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, locked := range []bool{false, true} {
		if locked {
			lock, err := os.OpenFile(filepath.Join(w.home, "codex-mcp-worktree-records", "locks", filepath.Base(filepath.Dir(records[0]))), os.O_RDWR|os.O_CREATE, 0o600)
			if err == nil {
				err = safefile.Lock(lock)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
		}
		for tool, arguments := range map[string]map[string]any{
			"codex":          {"prompt": "other 1", "cwd": w.repo},
			"codex-reply":    {"prompt": "other 2", "threadId": id},
			"codex-worktree": {"action": "status", "threadId": id},
		} {
			if locked && tool == "codex-worktree" { // it waits for the lock
				continue
			}
			r, err := c.Tool(t.Context(), tool, arguments)
			if err != nil || !strings.Contains(r.Content, "apply did not finish") {
				t.Errorf("%s, locked %t: %+v, %v", tool, locked, r, err)
			}
		}
	}
}

// TestWorktreeAfterRestart continues a conversation in its worktree, in a new server.
func TestWorktreeAfterRestart(t *testing.T) {
	w := newWorkshop(t)
	w.write("mine", "not committed\n")
	id, _ := w.begin(w.connect(), "first one", "uncommitted")
	first := w.engine.config(id)
	if _, err := os.Stat(filepath.Join(first.Cwd, "mine")); err != nil {
		t.Errorf("not taken along: %v", err)
	}
	before := w.tree()
	c := w.connect()
	r, err := c.Tool(t.Context(), "codex-reply", map[string]any{"threadId": strings.ToUpper(id), "prompt": "second two"})
	if err != nil || r.IsError {
		t.Fatalf("%+v, %v", r, err)
	}
	if diff := cmp.Diff([]any{first.Cwd, first.Worktree}, []any{w.engine.Resumed()[0].Cwd, w.engine.Resumed()[0].Worktree}); diff != "" {
		t.Errorf("taken up in another place (-want +got):\n%s", diff)
	}
	if first.Worktree == nil || len(first.Worktree.ReadOnly) == 0 || !strings.HasPrefix(first.Cwd, first.Worktree.Path) {
		t.Errorf("it was begun with %+v in %s", first.Worktree, first.Cwd)
	}
	w.same("the caller's tree", before)
	c = w.connect()
	w.act(c, id, "apply", false, "Applied: 2 files")
	before["/first"], before["/second"] = "one\n", "two\n"
	w.same("after it was applied", before)
}

// TestApplyThatDidNotFinish names it to who works on the repository next, until it is finished.
func TestApplyThatDidNotFinish(t *testing.T) {
	w := newWorkshop(t)
	id, _ := w.begin(w.connect(), "first one")
	records, err := filepath.Glob(filepath.Join(w.home, "codex-mcp-worktree-records", "*", "record.json"))
	if err != nil || len(records) != 1 {
		t.Fatalf("%q, %v", records, err)
	}
	data, err := os.ReadFile(records[0])
	if err != nil {
		t.Fatal(err)
	}
	// As a process that is killed while it applies.
	text := strings.Replace(string(data), `"phase":"use"`, `"phase":"use","applying":"branch main"`, 1)
	if err := os.WriteFile(records[0], []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("some of the changes of conversation %s may be in %s, on branch main", id, w.repo)
	named := func(name string, arguments map[string]any) bool {
		t.Helper()
		r, err := w.connect().Tool(t.Context(), name, arguments)
		if err != nil || r.IsError {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		return strings.Contains(strings.Join(append(r.Texts, r.Content), "\n"), mark)
	}
	for _, want := range []bool{true, false} {
		if named("codex-worktree", map[string]any{"threadId": id, "action": "status"}) != want {
			t.Errorf("codex-worktree names it: %t", !want)
		}
		for _, more := range []map[string]any{{}, {"worktree": true}} {
			more["prompt"], more["cwd"] = "second two", w.repo
			if named("codex", more) != want {
				t.Errorf("codex names it: %t, with %v", !want, more)
			}
		}
		if named("codex", map[string]any{"prompt": "third three", "cwd": t.TempDir()}) {
			t.Error("it is named elsewhere")
		}
		if want {
			w.act(w.connect(), id, "apply", false, "Applied: 1 files")
		}
	}
}

// TestProtectedFilesOfAWorktree checks that the question marks protected files.
func TestProtectedFilesOfAWorktree(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect()
	id, _ := w.begin(c, ".envrc evil")
	w.act(c, id, "apply", false, "Applied")
	if asked := w.questions(); len(asked) != 1 || !strings.Contains(string(asked[0]), "files that other programs run by themselves") {
		t.Errorf("asked %q", asked)
	}
}

// TestWorktreeThatIsTooBigToShow refuses to apply changes that a question cannot show.
func TestWorktreeThatIsTooBigToShow(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect()
	id, _ := w.begin(c, "small x")
	before := w.tree()
	big := filepath.Join(w.engine.config(id).Cwd, "big")
	if err := os.WriteFile(big, []byte(strings.Repeat("0123456789abcde\n", 17<<16)), 0o644); err != nil {
		t.Fatal(err)
	}
	w.act(c, id, "apply", true, "nothing was changed: the changes are 17 MiB")
	if asked := w.questions(); len(asked) > 0 {
		t.Errorf("asked %.100q", asked)
	}
	w.same("after it was not applied", before)
}

// TestWorktreeWhileATurnRuns refuses to apply a worktree while a turn runs in it.
func TestWorktreeWhileATurnRuns(t *testing.T) {
	w := newWorkshop(t)
	w.engine.hold = make(chan struct{})
	c := w.connect()
	id, _ := w.begin(c, "wait for it", "background")
	for _, action := range []string{"apply", "branch", "discard"} {
		w.act(c, id, action, true, "a turn of this conversation runs")
	}
	w.act(c, id, "status", false, "No file has changed.")
	close(w.engine.hold)
	if err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"codex-wait","arguments":{}}`), nil); err != nil {
		t.Fatal(err)
	}
	w.act(c, id, "apply", false, "Applied")
}

// TestWorktreeOfAHostileRepository runs nothing that the repository configures.
func TestWorktreeOfAHostileRepository(t *testing.T) {
	w := newWorkshop(t)
	ran := filepath.Join(t.TempDir(), "ran")
	trap := "touch '" + ran + "'; cat"
	configure(t, w.repo, trap, "core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "diff.external", "merge.evil.driver")
	for _, name := range []string{"hooks", "info"} {
		if err := os.MkdirAll(filepath.Join(w.repo, ".git", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	hook := filepath.Join(w.repo, ".git", "hooks", "post-checkout")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\n"+trap+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.write(".git/info/attributes", "shared merge=evil filter=evil\n")
	w.git("checkout", "-q", "main") // shows that it is a trap
	if err := os.Remove(ran); err != nil {
		t.Fatalf("the trap does not work: %v", err)
	}
	w.write("dirty", "x\n")
	c := w.connect()
	id, _ := w.begin(c, "new file", "uncommitted")
	w.act(c, id, "status", false, "add new")
	w.act(c, id, "apply", false, "Applied")
	w.act(c, id, "branch", false, "The branch")
	w.act(c, id, "discard", false, "")
	if _, err := os.Stat(ran); err == nil {
		t.Error("something of the repository ran")
	}
}

func TestWorktreesThatAreRefused(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect()
	bare := servertest.Connect(t, codexserver.New(w.engine, nil), nil)
	for _, tt := range []struct {
		client    *servertest.Client
		tool      string
		arguments map[string]any
		want      string
	}{
		{bare, "codex", map[string]any{"prompt": "p", "worktree": true}, "codex: argument /worktree: this server keeps no files"},
		{bare, "codex-worktree", map[string]any{"threadId": "x", "action": "status"}, `unknown tool "codex-worktree"`},
		{c, "codex", map[string]any{"prompt": "p", "worktree": true, "cwd": filepath.Dir(w.repo)}, "codex: argument /worktree: "},
		{c, "codex", map[string]any{"prompt": "p", "worktree": true, "cwd": filepath.Join(w.repo, "none")}, "codex: argument /cwd: " + filepath.Join(w.repo, "none") + " does not exist"},
		{c, "codex", map[string]any{"prompt": "p", "worktree": true, "cwd": filepath.Join(w.repo, "shared")}, "codex: argument /cwd: " + filepath.Join(w.repo, "shared") + " is not a folder"},
		{c, "codex-review", map[string]any{"target": "uncommitted", "cwd": filepath.Join(w.repo, "none")}, "codex-review: argument /cwd: " + filepath.Join(w.repo, "none") + " does not exist"},
		{c, "codex-review", map[string]any{"target": "uncommitted", "cwd": filepath.Join(w.repo, "shared")}, "codex-review: argument /cwd: " + filepath.Join(w.repo, "shared") + " is not a folder"},
		{c, "codex", map[string]any{"prompt": "p", "uncommitted": true}, "argument /uncommitted: "},
		{c, "codex-worktree", map[string]any{"action": "status"}, "argument /threadId is missing"},
		{c, "codex-worktree", map[string]any{"threadId": "x"}, "argument /action is missing"},
		{c, "codex-worktree", map[string]any{"threadId": "x", "action": "apply"}, `conversation "x" has no worktree`},
		{c, "codex-worktree", map[string]any{"threadId": "x", "action": "apply", "name": "y"}, "argument /name is for the action branch"},
	} {
		r, err := tt.client.Tool(t.Context(), tt.tool, tt.arguments)
		if err != nil || !r.IsError || !strings.Contains(r.Content, tt.want) {
			t.Errorf("%s %v: %+v, %v", tt.tool, tt.arguments, r, err)
		}
	}
	// A conversation that does not begin leaves no worktree behind.
	w.engine.Err = errors.New("no model")
	w.write("mine", "not committed\n")
	r, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "p", "worktree": true, "uncommitted": true, "cwd": w.repo})
	left, _ := filepath.Glob(filepath.Join(w.home, "codex-mcp-worktrees", "*"))
	if err != nil || !r.IsError || r.Content != "codex: no model" || left != nil {
		t.Errorf("%+v, %v; left %q", r, err, left)
	}
}

// TestWorktreeWithoutSession asks in the result of a call, as MCP 2026-07-28 does.
func TestWorktreeWithoutSession(t *testing.T) {
	w := newWorkshop(t)
	c := w.connect()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	call := func(tool, arguments, members string) (raw string, structured struct{ ThreadID, Content string }, state string) {
		t.Helper()
		var r struct {
			StructuredContent struct{ ThreadID, Content string }
			RequestState      string
		}
		var message json.RawMessage
		if err := c.Call(t.Context(), "tools/call", json.RawMessage(fmt.Sprintf(`{"name":%q,"arguments":%s,%s%s}`, tool, arguments, members, meta)), &message); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(message, &r); err != nil {
			t.Fatal(err)
		}
		return string(message), r.StructuredContent, r.RequestState
	}
	_, begun, _ := call("codex", fmt.Sprintf(`{"prompt":"new one","worktree":true,"cwd":%q}`, w.repo), "")
	apply := fmt.Sprintf(`{"threadId":%q,"action":"apply"}`, begun.ThreadID)
	raw, _, state := call("codex-worktree", apply, "")
	if !strings.Contains(raw, `"input_required"`) || !strings.Contains(raw, "They come from the worktree") {
		t.Fatalf("not asked: %s", raw)
	}
	if _, err := os.Stat(filepath.Join(w.repo, "new")); err == nil {
		t.Fatal("applied before it was approved")
	}
	_, done, _ := call("codex-worktree", apply, fmt.Sprintf(`"requestState":%q,"inputResponses":{"q1":{"action":"accept"}},`, state))
	if !strings.HasPrefix(done.Content, "Applied: 1 files") {
		t.Errorf("got %q", done.Content)
	}
	if got, err := os.ReadFile(filepath.Join(w.repo, "new")); err != nil || string(got) != "one\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestToolListIsShort bounds the list of tools, which clients pass to their models.
func TestToolListIsShort(t *testing.T) {
	c := servertest.Dial(t, codexserver.New(&servertest.Engine{}, &codexserver.Options{Home: t.TempDir()}), nil)
	hello := c.Ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	var r struct{ Instructions string }
	if err := json.Unmarshal([]byte(hello), &r); err != nil || len(r.Instructions) >= 2000 || !strings.Contains(r.Instructions, "codex-worktree") {
		t.Errorf("%d characters of instructions, %v: %s", len(r.Instructions), err, hello)
	}
	list := c.Ask(t, "tools/list", `{}`)
	if len(list) >= 12_000 || !strings.Contains(list, `"codex-worktree"`) {
		t.Errorf("tools/list has %d characters", len(list))
	}
	t.Logf("%d characters of instructions, %d of tools/list", len(r.Instructions), len(list))
}

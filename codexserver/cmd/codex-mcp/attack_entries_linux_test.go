package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// victim is a server with a hostile model, and a client whose person answers its questions.
type victim struct {
	*process
	folders
	t     *testing.T
	model *providertest.Server
	// bridge reports whether the engine is the installed Codex.
	bridge bool

	// answer answers a question by its text. Nil declines all.
	answer func(question map[string]any) string
	entry  attackEntry
	page   *visitor
	id     int

	seen map[int]bool

	posts sync.WaitGroup // the answers on the page that are on their way
	mu    sync.Mutex
	asked []string // the messages of the questions
}

// attackEntry is a way into the server, where its questions are answered too.
type attackEntry struct {
	name  string
	args  []string
	start launcher
	// modern is for a client of MCP 2026-07-28 that takes tasks.
	modern bool
	// forms is for a client that shows questions.
	forms bool
	// onPage is for a client that shows none, so that the page does.
	onPage bool
}

var attackEntries = []attackEntry{
	{name: "stdio", start: start, forms: true},
	{name: "http", start: startConnected, forms: true},
	{name: "task", start: start, modern: true, args: []string{"-c", "calls.grace=0s"}},
	{name: "page", start: start, onPage: true, args: []string{"--approvals", "page"}},
}

// newVictim makes the folders: home, user, cwd, which is a repository, and tools, whose
// programs PATH finds first.
func newVictim(t *testing.T, entry attackEntry, bridge bool) *victim {
	t.Helper()
	top := boxtest.Outside(t)
	f := folders{home: filepath.Join(top, "home"), cwd: filepath.Join(top, "work"), user: filepath.Join(top, "user")}
	for _, dir := range []string{f.home, f.cwd, f.user} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	v := &victim{folders: f, t: t, entry: entry, bridge: bridge, model: providertest.New(), seen: map[int]bool{}}
	t.Cleanup(v.model.Close)
	servertest.Git(t, v.cwd, "init", "-q")
	servertest.Git(t, v.cwd, "commit", "-q", "--allow-empty", "-m", "begin")
	v.write(filepath.Join(v.tools(), "README"), "programs of the user")
	return v
}

// tools is a folder that precedes the system's in PATH.
func (v *victim) tools() string { return filepath.Join(filepath.Dir(v.user), "tools") }

// proof is a file that no command may write unless a person approves it.
func (v *victim) proof() string { return filepath.Join(v.user, "proof") }

// evil is a script that leaves the proof that it ran outside of every sandbox, with the name of
// the process that started it, and then behaves like a program.
func (v *victim) evil(program string) string {
	return fmt.Sprintf("#!/bin/sh\ncat /proc/$PPID/comm >> %s 2>/dev/null\nexec %s \"$@\"\n", v.proof(), program)
}

func (v *victim) write(file, text string) {
	v.t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		v.t.Fatal(err)
	}
}

// serve starts the server with lines for both configurations.
func (v *victim) serve(config, settings string) {
	v.t.Helper()
	top, tables, _ := strings.Cut(config, "\n[")
	if tables != "" {
		tables = "[" + tables
	}
	v.write(filepath.Join(v.home, "config.toml"), servertest.CodexConfig(v.model.BaseURL(), top)+tables)
	v.write(filepath.Join(v.home, "codex-mcp.toml"), settings)
	// In each folder that commands may write the server looks for repositories before each of them, and /tmp may be large.
	args := append([]string{"--engine", "native", "-c", "sandbox_workspace_write.exclude_slash_tmp=true", "-c", "sandbox_workspace_write.exclude_tmpdir_env_var=true"}, v.entry.args...)
	if v.bridge {
		args = append([]string{"--engine", "codex", "--codex", os.Getenv("CODEX_BIN")}, v.entry.args...)
	}
	v.path = v.tools()
	v.process = v.entry.start(v.t, v.folders, args...)
	if v.entry.modern {
		return
	}
	capabilities := `{}`
	if v.entry.forms {
		capabilities = `{"elicitation":{}}`
	}
	v.hello(capabilities)
}

// decide returns the person's answer to a question.
func (v *victim) decide(question map[string]any) string {
	v.mu.Lock()
	text, ok := question["message"].(string)
	if !ok { // on the page
		text = line(question)
	}
	v.asked = append(v.asked, text)
	v.mu.Unlock()
	if v.answer == nil {
		return `{"action":"decline"}`
	}
	return v.answer(question)
}

func (v *victim) answerOnPage() {
	answered := map[int]bool{}
	for {
		line, err := v.page.lines.ReadString('\n')
		if err != nil {
			return
		}
		var update struct {
			Questions []struct {
				ID       int
				Question map[string]any
			}
		}
		if json.Unmarshal([]byte(line), &update) != nil {
			continue
		}
		for _, e := range update.Questions {
			if e.Question["state"] == "open" && !answered[e.ID] {
				answered[e.ID] = true
				v.posts.Add(1)
				func() {
					defer v.posts.Done()
					v.page.answer(e.ID, v.decide(e.Question))
				}()
			}
		}
	}
}

// request sends a request and returns its id.
func (v *victim) request(method string, params map[string]any) float64 {
	v.t.Helper()
	v.id++
	if v.entry.modern {
		params["_meta"] = map[string]any{
			"progressToken": v.id,
			"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
			"io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}, "extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
		}
	} else {
		params["_meta"] = map[string]any{"progressToken": v.id}
	}
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": v.id, "method": method, "params": params})
	if err != nil {
		v.t.Fatal(err)
	}
	v.send(string(raw))
	return float64(v.id)
}

// answered waits for the answer to a request, and answers the questions before it.
func (v *victim) answered(id float64) map[string]any {
	v.t.Helper()
	for {
		m := v.await("an answer", v.seen, func(m map[string]any) bool {
			return m["method"] == "elicitation/create" || m["method"] == nil && m["id"] == id || v.entry.onPage && v.page == nil && m["method"] == "notifications/message"
		})
		switch {
		case m["method"] == "notifications/message":
			if text := fmt.Sprint(m["params"]); strings.Contains(text, "http://127.0.0.1:") {
				v.page = visit(v.t, invitation(v.t, v.process))
				go v.answerOnPage()
			}
			continue
		case m["method"] == nil:
			v.posts.Wait() // the page may still reply to what let the turn end
		}
		switch {
		case m["method"] == nil && m["error"] != nil:
			return map[string]any{"isError": true, "content": m["error"]}
		case m["method"] == nil:
			return m["result"].(map[string]any)
		}
		raw, _ := json.Marshal(m["id"])
		v.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, raw, v.decide(m["params"].(map[string]any))))
	}
}

// call calls a tool, answers its questions, and returns its result. It also waits for the end of a
// task.
func (v *victim) call(tool string, arguments map[string]any) map[string]any {
	v.t.Helper()
	result := v.answered(v.request("tools/call", map[string]any{"name": tool, "arguments": arguments}))
	task := result["taskId"]
	for result["resultType"] == "task" || result["status"] == "working" || result["status"] == "input_required" {
		questions, _ := result["inputRequests"].(map[string]any)
		for key, q := range questions {
			var answer any
			_ = json.Unmarshal([]byte(v.decide(q.(map[string]any)["params"].(map[string]any))), &answer)
			v.answered(v.request("tasks/update", map[string]any{"taskId": task, "inputResponses": map[string]any{key: answer}}))
		}
		<-time.After(5 * time.Millisecond)
		result = v.answered(v.request("tasks/get", map[string]any{"taskId": task}))
	}
	if r, ok := result["result"].(map[string]any); ok && task != nil {
		result = r
	}
	return result
}

// thread returns the threadId of a result.
func (v *victim) thread(result map[string]any) string {
	v.t.Helper()
	structured, _ := result["structuredContent"].(map[string]any)
	id, _ := structured["threadId"].(string)
	return id
}

//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"golang.org/x/tools/txtar"
)

// The conversations of testdata/oldstate: one whose task has ended, one in a worktree, one whose
// question was not answered, and one whose task waited for the model.
const (
	oldFirst  = "01a1feb1-4a2e-7e2e-8f92-71bbff99a70e"
	oldSecond = "01a1feb1-4a7a-74ae-98f5-ad8f53fa5d60"
	oldThird  = "01a1feb1-4a96-75d4-919b-a9f51cacd723"
	oldFourth = "01a1feb1-4aaf-7268-b661-ea1cd5a65140"

	oldEnded   = oldFirst + ".N5C5YP3Y3RPAW5HOBKLHL4TKP4"
	oldWorking = oldFourth + ".SCHSCOUHWKXXPCETKL4WIYGS7A"
	oldExpired = oldFirst + ".EXPIREDEXPIREDEXPIREDEXPIRED"
	// oldExpiry is when the task that has ended may be removed.
	oldExpiry = "2026-11-22T15:19:54.19446334Z"
)

// oldServer is the program on the state that an older one left.
type oldServer struct {
	*process
	f     folders
	state string // of the call whose question was not answered
	model *providertest.Server
	seen  map[int]bool
	last  int
}

// oldState unpacks testdata/oldstate. The task that has ended can be read for another hour, and
// a copy of it can be removed.
func oldState(t *testing.T) *oldServer {
	t.Helper()
	s := &oldServer{f: newFolders(t), seen: map[int]bool{}}
	s.model = providertest.New(providertest.Turn{Repeat: true, Func: func(r providertest.Request) providertest.Turn {
		if command, ok := strings.CutPrefix(r.LastUserText(), "run "); ok && !strings.Contains(string(r.Body), `"call-`+command) {
			return providertest.Call(providertest.Shell("call-"+command, strings.Fields(command)...))
		}
		return providertest.Say("went on")
	}})
	t.Cleanup(s.model.Close)
	a, err := txtar.ParseFile(filepath.Join("testdata", "oldstate", "home.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer("$CODEX_HOME", s.f.home, "$CWD", s.f.cwd, "$BASE_URL", s.model.BaseURL())
	for _, file := range a.Files {
		name, binary := strings.CutSuffix(file.Name, ".base64")
		data := []byte(words.Replace(string(file.Data)))
		if binary {
			if data, err = base64.StdEncoding.DecodeString(string(bytes.TrimSpace(file.Data))); err != nil {
				t.Fatal(err)
			}
		}
		switch path := filepath.Join(filepath.Dir(s.f.home), name); {
		case name == "state":
			s.state = string(bytes.TrimSpace(data))
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o700)
		case strings.Contains(name, oldEnded):
			later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)
			s.write(t, path, bytes.ReplaceAll(data, []byte(oldExpiry), []byte(later)))
			past := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano)
			s.write(t, s.task(oldExpired), bytes.ReplaceAll(bytes.ReplaceAll(data, []byte(oldEnded), []byte(oldExpired)), []byte(oldExpiry), []byte(past)))
			days := time.Now().Add(-48 * time.Hour)
			err = os.Chtimes(s.task(oldExpired), days, days)
		default:
			s.write(t, path, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *oldServer) write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (s *oldServer) task(id string) string {
	return filepath.Join(s.f.home, "codex-mcp", "tasks", "task-"+id+".json")
}

func (s *oldServer) start(t *testing.T) {
	t.Helper()
	s.process = start(t, s.f, "-engine", "native", "-c", "calls.grace=0s")
}

// call sends a request of a client with these capabilities and returns the answer.
func (s *oldServer) call(client, method, members string) string {
	s.t.Helper()
	s.last++
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{%s}}}}`,
		s.last, method, members, client))
	return line(s.expect(map[string]any{"id": float64(s.last)}, s.seen))
}

const (
	oldAsking  = `"elicitation":{}`
	oldPolling = oldAsking + `,"extensions":{"io.modelcontextprotocol/tasks":{}}`
)

func (s *oldServer) tool(name, arguments string) string {
	s.t.Helper()
	return s.call(oldAsking, "tools/call", fmt.Sprintf(`"name":%q,"arguments":{%s}`, name, arguments))
}

func (s *oldServer) wants(got string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			s.t.Errorf("no %q in %s", w, got)
		}
	}
}

// TestEndToEndOldState starts the program where an older one was killed. It reads the older
// one's tasks, conversations and rules, continues what can be continued, and
// removes what has expired.
func TestEndToEndOldState(t *testing.T) {
	s := oldState(t)
	s.start(t)

	s.wants(s.call(oldPolling, "tasks/get", fmt.Sprintf(`"taskId":%q`, oldEnded)), `"status":"completed"`, `"done first"`)
	s.wants(s.call(oldPolling, "tasks/get", fmt.Sprintf(`"taskId":%q`, oldWorking)), `"status":"completed"`, `"isError":true`, "the server ended while this task ran")
	s.wants(s.tool("codex-list", ""), oldFirst, oldSecond, oldThird, oldFourth)
	s.wants(s.tool("codex-show", fmt.Sprintf(`"threadId":%q,"what":"transcript"`, oldSecond)), "second", "done second")

	// A client that returns to the call whose question was open.
	third := `"prompt":"third","approval-policy":"untrusted"`
	s.wants(s.call(oldAsking, "tools/call", fmt.Sprintf(`"name":"codex","arguments":{%s},"requestState":%q,"inputResponses":{"q1":{"action":"accept"}}`, third, s.state)), "restarted")
	if _, err := os.Stat(filepath.Join(s.f.cwd, "third.txt")); err == nil {
		t.Error("the command of the old question ran")
	}

	for id, said := range map[string]string{oldFirst: "done first", oldSecond: "done second", oldThird: "third", oldFourth: "fourth"} {
		s.wants(s.tool("codex-reply", fmt.Sprintf(`"threadId":%q,"prompt":"go on"`, id)), "went on")
		requests := s.model.Requests()
		s.wants(string(requests[len(requests)-1].Body), said)
	}

	// The rules: one command is allowed without a question, another denied.
	s.wants(s.tool("codex", `"prompt":"run git status","approval-policy":"untrusted"`), `"exitCode":0`)
	s.wants(s.tool("codex", `"prompt":"run git push","approval-policy":"untrusted"`), `"refused":[{`)

	s.wants(s.call(oldPolling, "tools/call", `"name":"codex","arguments":{"prompt":"a new task"}`), `"resultType":"task"`) // which lets the server sweep
	_ = s.stdin.Close()
	s.wait()
	if _, err := os.Stat(s.task(oldExpired)); err == nil {
		t.Error("the task that expired is still there")
	}
}

// TestEndToEndNewerState starts the program on files as a newer one may write them. It says which
// file it cannot read, and leaves the file as it is.
func TestEndToEndNewerState(t *testing.T) {
	for name, tt := range map[string]struct {
		file, old, new string // in CODEX_HOME, and what is replaced in it
		client         string // what it can do
		method, params string
		want           []string // of the answer and standard error
	}{
		"task": {
			filepath.Join("codex-mcp", "tasks", "task-"+oldEnded+".json"), `{"id"`, `{"version":2,"id"`,
			oldPolling, "tasks/get", fmt.Sprintf(`"taskId":%q`, oldEnded), []string{"reading the file of task", oldEnded, `unknown object member name`, `version`},
		},
		"conversation with lines of another kind": { // whose format is Codex's
			filepath.Join("sessions", "2026", "11", "21", "rollout-2026-11-21T15-19-54-"+oldFirst+".jsonl"), `{"timestamp"`, `{"timestamp":"2026-11-21T15:19:54.161Z","type":"more","payload":{"type":"more"}}` + "\n" + `{"timestamp"`,
			oldAsking, "tools/call", fmt.Sprintf(`"name":"codex-reply","arguments":{"threadId":%q,"prompt":"go on"}`, oldFirst), []string{"went on"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := oldState(t)
			path := filepath.Join(s.f.home, tt.file)
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data := append(was, tt.new...)
			if tt.old != "" {
				data = bytes.ReplaceAll(was, []byte(tt.old), []byte(tt.new))
			}
			s.write(t, path, data)
			s.start(t)
			got := s.call(tt.client, tt.method, tt.params)
			_ = s.stdin.Close()
			s.wait()
			s.wants(strings.ReplaceAll(got+s.errors(), `\"`, `"`), tt.want...)
			if now, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(now, data) {
				t.Errorf("%s was changed: %v", path, err)
			}
		})
	}
}

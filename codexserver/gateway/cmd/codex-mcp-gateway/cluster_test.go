package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/access"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/enclosure/enclosuretest"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/go-json-experiment/json"
)

// send sends a message of a session, and returns the answer, whose body the caller closes.
func (s *httpServer) send(method, session, last, message string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+mcpPath, strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + s.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session, "Last-Event-ID": last,
		"Mcp-Protocol-Version": "2025-11-25",
	} {
		if value != "" && !(header == "Accept" && method == http.MethodGet) {
			r.Header.Set(header, value)
		}
	}
	if method == http.MethodGet {
		r.Header.Set("Accept", "text/event-stream")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// asking are the capabilities of a client with tasks that shows questions.
const asking = `"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}`

// bounded is the longest that a request takes while parts of the service die. Only the time until
// a worker has started is longer on a slow machine.
const bounded = 30 * time.Second

// initialize begins a session.
func (s *httpServer) initialize() string {
	s.t.Helper()
	answer := s.send(http.MethodPost, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	answer.Body.Close()
	session := answer.Header.Get("Mcp-Session-Id")
	if session == "" {
		s.t.Fatalf("no session: %s", answer.Status)
	}
	return session
}

// TestEndToEndCluster uses a service by two fronts in turns, and drains a node as its operator. [TestChaos] and
// [TestRestarts] end its parts.
func TestEndToEndCluster(t *testing.T) {
	enclosuretest.Need(t)
	top, tokens := boxtest.Outside(t), map[string]string{}
	var users strings.Builder
	for _, name := range []string{"ann", "bob"} {
		token, hash := access.NewToken()
		tokens[name] = token
		if err := os.Mkdir(filepath.Join(top, name), 0o700); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&users, "\n[http.principals.%s]\ntokens = [%q]\nfolders = [%q]\n", name, hash, filepath.Join(top, name))
	}
	model, held := waiting(t)
	s := startSite(t, top, users.String(), model, (*testing.T).TempDir)
	at := func(front int, user string) *httpServer {
		m := s.fronts[front]
		return &httpServer{process: &process{t: t}, url: m.url, token: tokens[user]}
	}
	status := func() (all status) {
		t.Helper()
		if err := json.Unmarshal(s.operate(s.fronts[0], "status", "--json"), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	sessions := map[string]string{} // by user
	nodeOf := func(user string) string {
		for _, l := range status().Leases {
			if l.User == user {
				return l.Node
			}
		}
		return ""
	}

	t.Run("a stream goes on at the other front", func(t *testing.T) {
		session := at(0, "ann").initialize()
		sessions["ann"] = session
		answer := at(0, "ann").send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"wait for the stream"}}}`)
		lines := bufio.NewScanner(answer.Body)
		last := ""
		for last == "" && lines.Scan() {
			last, _ = strings.CutPrefix(lines.Text(), "id: ")
			if !strings.HasPrefix(lines.Text(), "id: ") {
				last = ""
			}
		}
		answer.Body.Close()
		if last == "" {
			t.Fatal("the stream has no id")
		}
		again := at(1, "ann").send(http.MethodGet, session, last, "")
		defer again.Body.Close()
		close(held)
		text, err := io.ReadAll(again.Body)
		if err != nil || !strings.Contains(string(text), "the answer to wait for the stream") {
			t.Errorf("%s %s, %v", again.Status, text, err)
		}
	})
	t.Run("a stranger", func(t *testing.T) {
		session, own := sessions["ann"], at(1, "bob").initialize()
		sessions["bob"] = own
		answer := at(0, "ann").send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"a secret"}}}`)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		_, last, _ := strings.Cut(string(text), "id: ")
		last, _, _ = strings.Cut(last, "\n")
		if err != nil || last == "" || !strings.Contains(string(text), "the answer to a secret") {
			t.Fatalf("%s, %v", text, err)
		}
		_, begun := at(0, "ann").ask("tools/call", "codex", `"name":"codex","arguments":{"prompt":"a secret"}`)
		task := member(t, begun, "taskId")
		for front := range 2 {
			bob := at(front, "bob")
			for _, tt := range []struct {
				method, session, last, message string
				want                           int
			}{
				{http.MethodGet, session, last, "", http.StatusNotFound}, {http.MethodGet, session, "", "", http.StatusNotFound},
				{http.MethodPost, session, "", `{"jsonrpc":"2.0","id":5,"method":"ping"}`, http.StatusNotFound},
				{http.MethodPost, session, "", `{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"decision":"approved"}}}`, http.StatusNotFound},
				{http.MethodDelete, session, "", "", http.StatusNotFound},
				{http.MethodGet, own, last, "", http.StatusBadRequest},
			} {
				got := bob.send(tt.method, tt.session, tt.last, tt.message)
				begin := make([]byte, 1000)
				n, _ := io.ReadFull(io.LimitReader(got.Body, int64(len(begin))), begin) // an error has few bytes
				got.Body.Close()
				if got.StatusCode != tt.want || strings.Contains(string(begin[:n]), "secret") {
					t.Errorf("front %d, %s of the session of ann: %s %s, want %d", front, tt.method, got.Status, begin[:n], tt.want)
				}
			}
			for method, params := range map[string]string{"tasks/get": "", "tasks/cancel": "", "tasks/update": `,"inputResponses":{"q1":{"action":"accept","content":{}}}`} {
				if _, got := bob.ask(method, task, `"taskId":"`+task+`"`+params); !strings.Contains(got, "no such task") {
					t.Errorf("front %d, %s: %s", front, method, got)
				}
			}
		}
	})
	t.Run("drain", func(t *testing.T) {
		for i, user := range []string{"ann", "bob"} {
			at(i, user).send(http.MethodDelete, sessions[user], "", "").Body.Close() // with a session a user would stay
		}
		name := nodeOf("bob")
		if all := status(); len(all.Nodes) != 3 || len(all.Leases) != 2 || name == "" {
			t.Errorf("the status: %+v", all)
		}
		s.operate(s.fronts[1], "drain", name)
		until(t, "bob stays there", func() bool { return nodeOf("bob") != name })
		if got, body, err := at(1, "bob").call("hello"); err != nil || got != http.StatusOK || nodeOf("bob") == name {
			t.Errorf("bob's call: %d %s %v, on %s", got, body, err, nodeOf("bob"))
		}
	})
}

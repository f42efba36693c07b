package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
)

// send sends a message of a session of 2025-11-25, and returns the answer, whose body the caller closes.
func (c client) send(method, session, last, message string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+mcpPath, strings.NewReader(message))
	if err != nil {
		c.t.Fatal(err)
	}
	accept := "application/json, text/event-stream"
	if method == http.MethodGet {
		accept = "text/event-stream"
	}
	for header, value := range map[string]string{
		"Authorization": "Bearer " + c.token, "Content-Type": "application/json", "Accept": accept, "Mcp-Session-Id": session, "Last-Event-ID": last, "Mcp-Protocol-Version": "2025-11-25",
	} {
		if value != "" {
			r.Header.Set(header, value)
		}
	}
	answer, err := eachAlone.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// initialize begins a session.
func (c client) initialize() string {
	c.t.Helper()
	answer := c.send(http.MethodPost, "", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	answer.Body.Close()
	session := answer.Header.Get("Mcp-Session-Id")
	if session == "" {
		c.t.Fatalf("no session: %s", answer.Status)
	}
	return session
}

// say calls codex in a session. It returns the id of the first event of the answer.
func (c client) say(session, prompt string) string {
	c.t.Helper()
	answer := c.send(http.MethodPost, session, "", `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"codex","arguments":{"prompt":"`+prompt+`"}}}`)
	c.t.Cleanup(func() { answer.Body.Close() })
	stream := bufio.NewReader(answer.Body)
	for {
		line, err := stream.ReadString('\n')
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			return strings.TrimSpace(id)
		}
		if err != nil {
			c.t.Fatalf("the stream has no id: %v", err)
		}
	}
}

// useFronts uses a service by two fronts in turns, and drains a node as its operator. held holds the model.
func (w *work) useFronts(held chan struct{}) {
	t, ann, bob := w.t, w.persons[0], w.persons[1]
	at := func(front int, p *person) client { return client{t, w.fronts[front].url, p.token} }
	session := at(0, ann).initialize()
	last := at(0, ann).say(session, "wait for the stream")
	again := at(1, ann).send(http.MethodGet, session, last, "")
	close(held)
	text, err := io.ReadAll(again.Body)
	again.Body.Close()
	if err != nil || !strings.Contains(string(text), "the answer to wait for the stream") {
		t.Errorf("a stream goes on at the other front: %s %s, %v", again.Status, text, err)
	}

	at(0, ann).send(http.MethodDelete, session, "", "").Body.Close() // with a session a user would stay
	if status, body, err := at(1, bob).call("hello"); err != nil || status != http.StatusOK {
		t.Errorf("bob: %d %s, %v", status, body, err)
	}
	w.drainNodeOf(at(1, bob), bob.name)
}

// drainNodeOf drains the node of a user, who then has another one.
func (w *work) drainNodeOf(c client, user string) {
	var all status
	nodeOf := func() string {
		if err := json.Unmarshal(w.operate(w.fronts[0], "status", "--json"), &all); err != nil {
			w.t.Fatal(err)
		}
		for _, l := range all.Leases {
			if l.User == user {
				return l.Node
			}
		}
		return ""
	}
	node := nodeOf()
	if len(all.Nodes) != nodeCount || len(all.Leases) != 2 || node == "" {
		w.t.Errorf("the status: %+v", all)
	}
	w.operate(w.fronts[1], "drain", node)
	until(w.t, "the user stays there", func() bool { return nodeOf() != node })
	if status, body, err := c.call("hello"); err != nil || status != http.StatusOK || nodeOf() == node {
		w.t.Errorf("a call afterwards: %s, on %s", fmt.Sprint(status, body, err), nodeOf())
	}
}

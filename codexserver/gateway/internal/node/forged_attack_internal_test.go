package node

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/nats-io/nats.go"
)

// newForgedNode returns a node without a pool, which holds the lease of ann. ben is another user.
func newForgedNode(t *testing.T) (n *Node, conn *nats.Conn) {
	t.Helper()
	b := clustertest.Embedded(t)
	_, leases, _ := clustertest.Buckets(t, b, time.Minute)
	holder := clustertest.Hold(t, leases, lease.HolderOptions{ID: "a", Capacity: func() int { return 1 }})
	if _, err := holder.Take(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	n = &Node{o: Options{Logger: slog.New(slog.DiscardHandler)}, holder: holder, taking: make(chan struct{}, maxTaking)}
	n.users.Store(&map[string]settings.Principal{"ann": {}, "ben": {}, "full": {}})
	return n, b.Conn
}

// TestForgedTakes asks a node to take users, in words that no front sends. Each gets an answer with the
// reason, no lease is taken, and the node goes on.
func TestForgedTakes(t *testing.T) {
	n, conn := newForgedNode(t)
	sub, err := conn.Subscribe("take", n.take)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = sub.Unsubscribe()
		n.running.Wait()
	}()
	for text, want := range map[string]string{
		"":                                "the request is invalid",
		"x":                               "the request is invalid",
		"[]":                              "the request is invalid",
		`{"user":7}`:                      "the request is invalid",
		`{"user":"ann","user":"full"}`:    "the request is invalid",
		`{"user":"full","force":true}`:    "the request is invalid",
		`{"user":"full"} {}`:              "the request is invalid",
		"{\"user\":\"\xff\"}":             "the request is invalid",
		strings.Repeat("[", 100000):       "the request is invalid",
		`{}`:                              "the user does not belong on it",
		`{"user":"nobody"}`:               "the user does not belong on it",
		`{"user":"bob"}`:                  "the user does not belong on it",
		`{"user":"ann.>"}`:                "the user does not belong on it",
		`{"user":"../ann"}`:               "the user does not belong on it",
		`{"user":"full"}`:                 "it is full",
		strings.Repeat(" ", 900<<10) + "": "the request is invalid",
	} {
		m, err := conn.Request("take", []byte(text), 20*time.Second)
		if err != nil {
			t.Fatalf("%.40q: %v", text, err)
		}
		if got := string(m.Data); got != `{"error":"`+want+`"}` {
			t.Errorf("%.40q: %s, want %s", text, got, want)
		}
	}
	if err := conn.Publish("take", []byte(`{"user":"full"}`)); err != nil { // nobody waits for the answer
		t.Fatal(err)
	}
	for range maxTaking { // as many as it takes at a time
		n.taking <- struct{}{}
	}
	if m, err := conn.Request("take", []byte(`{"user":"full"}`), 20*time.Second); err != nil || !strings.Contains(string(m.Data), "too many users") {
		t.Errorf("%s, %v", m.Data, err)
	}
	for range maxTaking {
		<-n.taking
	}
	if users := n.holder.Users(); len(users) != 1 || users[0] != "ann" {
		t.Errorf("the node has the leases of %q", users)
	}
}

// TestForgedTakeAnswers lets nodes answer what no node does. The front gets an error, or a lease of
// the user that it asked for.
func TestForgedTakeAnswers(t *testing.T) {
	_, conn := newForgedNode(t)
	for text, ok := range map[string]bool{
		"": false, "x": false, `{"lease":7}`: false, `{"lease":{"node":"x","id":"y","epoch":-1}}`: false, `{"lease":{"user":"bob"}}`: false, `{"more":1}`: false, `{"error":"why"}`: false,
		`{"lease":{"node":"x","id":"y","epoch":7}}`: true,
	} {
		sub, err := conn.Subscribe(takeSubject("x"), func(m *nats.Msg) { _ = m.Respond([]byte(text)) })
		if err != nil {
			t.Fatal(err)
		}
		got, err := Take(t.Context(), conn, "x", "ann")
		if (err == nil) != ok || ok && got.User != "ann" {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if err := sub.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
	}
}

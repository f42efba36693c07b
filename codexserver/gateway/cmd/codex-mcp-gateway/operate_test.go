package main

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/lease"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats.go"
)

// operated returns a service with two nodes, whose program is not there.
func operated(t *testing.T) *service {
	t.Helper()
	s := &service{}
	err := s.join(t.Context(), &configuration{home: t.TempDir(), service: settings.Service{NATS: settings.NATS{Replicas: 1, Lease: config.Duration(time.Minute)}}}, slog.New(slog.DiscardHandler))
	must.OK(t, err)
	t.Cleanup(func() { must.Check(t, s.end()) })
	for _, n := range []placement.Node{
		{ID: "P2", Name: "b", Version: "1.2.3"},
		{ID: "P3", Name: "a", Draining: true, Version: "1.2.3"},
		{ID: "P1", Name: "b", Version: "1.2.2"},
	} {
		h := clustertest.Hold(t, s.leases, lease.HolderOptions{ID: n.ID, Describe: func() placement.Node { return n }})
		if user := map[string]string{"P1": "bob", "P2": "ann"}[n.ID]; user != "" {
			must.Get(h.Take(t.Context(), user))(t)
		}
	}
	return s
}

// TestStatus checks what the operator sees: all nodes and users in order.
func TestStatus(t *testing.T) {
	s := operated(t)
	var table, object bytes.Buffer
	must.OK(t, s.printStatus(t.Context(), false, &table))
	var lines []string
	for line := range strings.Lines(table.String()) {
		words := strings.Fields(line)
		if len(words) == 4 && words[0] != "USER" && words[3] != "0" { // an epoch
			words[3] = "N"
		}
		lines = append(lines, strings.Join(words, " "))
	}
	must.Equal(t, "the tables", []string{
		"NODE PROCESS USERS STATE VERSION",
		"a P3 0 draining 1.2.3", "b P1 1 ready 1.2.2", "b P2 1 ready 1.2.3", "",
		"USER NODE PROCESS EPOCH", "ann b P2 N", "bob b P1 N",
	}, lines)
	must.OK(t, s.printStatus(t.Context(), true, &object))
	for _, part := range []string{`"id": "P3"`, `"draining": true`, `"user": "ann"`, `"users": 1`, `"node": "b"`} {
		if !strings.Contains(object.String(), part) {
			t.Errorf("the JSON lacks %s:\n%s", part, &object)
		}
	}
}

// TestDrainNode checks that all processes with a name are asked to drain, and no other one, and
// that the operator learns of one that does not answer.
func TestDrainNode(t *testing.T) {
	s := operated(t)
	asked := make(chan string, 8)
	var out bytes.Buffer
	for _, id := range []string{"P2", "P3", "P1"} {
		if err := s.drainNode(t.Context(), "b", &out); err == nil || !strings.Contains(err.Error(), "the node b, process P") {
			t.Errorf("before %s answers: %v", id, err)
		}
		must.Get(s.broker.Conn.Subscribe("codexmcp.node."+id+".drain", func(m *nats.Msg) {
			asked <- id
			_ = m.Respond(nil) // the operator learns of it
		}))(t)
	}
	for len(asked) > 0 {
		<-asked
	}
	out.Reset()
	must.OK(t, s.drainNode(t.Context(), "b", &out))
	var got []string
	for len(asked) > 0 {
		got = append(got, <-asked)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"P1", "P2"}) || strings.Count(out.String(), ") takes no more users\n") != 2 {
		t.Errorf("%q are asked: %s", got, &out)
	}
	if err := s.drainNode(t.Context(), "c", &out); err == nil || !strings.Contains(err.Error(), `no node has the name "c"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

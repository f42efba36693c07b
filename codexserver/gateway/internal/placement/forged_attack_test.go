package placement_test

import (
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/natstest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestForged writes nodes that no node publishes. The others are still found.
func TestForged(t *testing.T) {
	s := natstest.Start(t, server.Options{DontListen: true, JetStream: true})
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: placement.Bucket, Storage: jetstream.MemoryStorage, MaxValueSize: placement.MaxValue})
	if err != nil {
		t.Fatal(err)
	}
	nodes := placement.New(kv)
	want := placement.Node{ID: strings.Repeat("A", 26), Name: "a", Labels: []string{}, Capacity: 3, Users: 2, Workers: 1}
	if want.Term, err = nodes.Write(t.Context(), want, 0); err != nil {
		t.Fatal(err)
	}
	want.Revision = want.Term
	if _, err := nodes.Write(t.Context(), placement.Node{ID: "B", Name: "b", Capacity: 7, Ended: true}, 0); err != nil {
		t.Fatal(err)
	}
	for _, revision := range []uint64{0, want.Revision + 1} {
		if _, err := nodes.Write(t.Context(), want, revision); !placement.Changed(err) {
			t.Errorf("it replaces the number %d: %v", revision, err)
		}
	}
	for subject, value := range map[string]string{
		"x": "x", "empty": "", "number": "7", "capacity": `{"capacity":"many"}`, "twice": `{"name":"x","name":"y"}`, "a.b": `{"users":"many"}`, "=": "[]", "*": "{}", ">": "{}",
	} {
		if err := conn.Publish("$KV."+placement.Bucket+"."+subject, []byte(value)); err != nil {
			t.Logf("%q: %v", subject, err) // the client refuses it
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	all, err := nodes.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]placement.Node{want}, placement.Pick(all, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := nodes.Remove(t.Context(), want.ID, want.Revision+1); !placement.Changed(err) {
		t.Errorf("another value is removed: %v", err)
	}
	if err := nodes.Remove(t.Context(), want.ID, want.Revision); err != nil {
		t.Fatal(err)
	}
	if all, err := nodes.All(t.Context()); err != nil || len(placement.Pick(all, nil)) > 0 {
		t.Errorf("a node that ended: %v, %v", all, err)
	}
	conn.Close()
	if all, err := nodes.All(t.Context()); err == nil {
		t.Errorf("without NATS: %v", all)
	}
}

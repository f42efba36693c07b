package placement_test

import (
	"context"
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
	want := placement.Node{ID: strings.Repeat("A", 26), Name: "a", Labels: []string{}, Capacity: 3, Users: []string{}, Workers: []string{}}
	if err := nodes.Publish(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	for subject, value := range map[string]string{
		"x": "x", "empty": "", "number": "7", "capacity": `{"capacity":"many"}`, "twice": `{"name":"x","name":"y"}`, "a.b": `{"users":[7]}`, "=": "[]", "*": "{}", ">": "{}",
	} {
		if err := conn.Publish("$KV."+placement.Bucket+"."+subject, []byte(value)); err != nil {
			t.Logf("%q: %v", subject, err) // the client refuses it
		}
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, nodes := range []*placement.Nodes{nodes, placement.New(leaving{kv})} {
		all, err := nodes.All(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]placement.Node{want}, placement.Pick(all, nil)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if err := nodes.Remove(t.Context(), want.ID); err != nil {
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

// leaving is a bucket whose nodes leave after they were listed, but for one.
type leaving struct{ jetstream.KeyValue }

func (l leaving) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if key[0] != 'A' {
		return nil, jetstream.ErrKeyNotFound
	}
	return l.KeyValue.Get(ctx, key)
}

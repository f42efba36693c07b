package placement_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/clustertest"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
)

func names(nodes []placement.Node, user string) (all []string) {
	for _, n := range placement.Pick(nodes, user) {
		all = append(all, n.Name)
	}
	return all
}

// TestPick checks that users are spread over the nodes, that the end of a node moves only its own users, and that a node that
// drains gets none.
func TestPick(t *testing.T) {
	nodes := []placement.Node{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}, {ID: "3", Name: "c"}, {ID: "4", Name: "d", Draining: true}}
	const users = 3000
	count := map[string]int{}
	for i := range users {
		user := fmt.Sprint("u", i)
		all := names(nodes, user)
		count[all[0]]++
		if len(all) != 3 || slices.Contains(all, "d") {
			t.Fatalf("%s: %q", user, all)
		}
		for gone := range 3 {
			left := names(slices.Delete(slices.Clone(nodes), gone, gone+1), user)
			if want := slices.DeleteFunc(slices.Clone(all), func(n string) bool { return n == nodes[gone].Name }); !slices.Equal(left, want) {
				t.Fatalf("%s without %s: %q, want %q", user, nodes[gone].Name, left, want)
			}
		}
	}
	for name, n := range count {
		if n < users/4 || n > users/2 {
			t.Errorf("%s is the favourite of %d users", name, n)
		}
	}
	again := []placement.Node{{ID: "9", Name: "a"}, {ID: "2", Name: "b"}} // a has restarted
	must.Equal(t, "the nodes after a restart", names(nodes[:2], "ann"), names(again, "ann"))
}

// TestForged writes nodes that no node publishes. The others are still found.
func TestForged(t *testing.T) {
	conn, js := clustertest.Connect(t, clustertest.Start(t, server.Options{DontListen: true, JetStream: true}))
	kv := must.Get(js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: placement.Bucket, Storage: jetstream.MemoryStorage, MaxValueSize: placement.MaxValue}))(t)
	nodes := placement.New(kv)
	want := placement.Node{ID: "A", Name: "a"}
	want.Term = must.Get(nodes.Write(t.Context(), want, 0))(t)
	want.Revision = want.Term
	must.Get(nodes.Write(t.Context(), placement.Node{ID: "B", Name: "b", Ended: true}, 0))(t)
	for _, revision := range []uint64{0, want.Revision + 1} {
		if _, err := nodes.Write(t.Context(), want, revision); !placement.Changed(err) {
			t.Errorf("it replaces the number %d: %v", revision, err)
		}
	}
	for key, value := range map[string]string{"x": "x", "empty": "", "number": "7", "term": `{"term":"many"}`, "twice": `{"name":"x","name":"y"}`, "a.b": "[]"} {
		must.Get(kv.PutString(t.Context(), key, value))(t)
	}
	must.Equal(t, "the nodes", []placement.Node{want}, must.Get(nodes.All(t.Context()))(t))
	conn.Close()
	if all, err := nodes.All(t.Context()); err == nil {
		t.Errorf("without NATS: %v", all)
	}
}

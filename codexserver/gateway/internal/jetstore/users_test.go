package jetstore_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/jetstore"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestKept lists and removes the state of users, and nothing of others.
func TestKept(t *testing.T) {
	js := connect(t, one(t))
	for _, user := range []string{"ann", "ann-b", "bob"} {
		s, err := jetstore.Open(t.Context(), js, jetstore.Options{User: user})
		if err == nil {
			err = s.Put(t.Context(), "a/b", []byte("text"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"others", "codexmcp_state"} {
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{"codexmcp.state." + name + "-more.a"}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		remove  string
		removed bool
		left    []string
	}{{"", false, []string{"ann", "ann-b", "bob"}}, {"ann", true, []string{"ann-b", "bob"}}, {"ann", false, []string{"ann-b", "bob"}}} {
		removed, err := false, error(nil)
		if tt.remove != "" {
			removed, err = jetstore.Remove(t.Context(), js, tt.remove)
		}
		if err != nil || removed != tt.removed {
			t.Errorf("remove %q: %v, %v", tt.remove, removed, err)
		}
		kept, err := jetstore.Kept(t.Context(), js)
		if diff := cmp.Diff(tt.left, slices.Sorted(maps.Keys(kept))); err != nil || diff != "" {
			t.Errorf("%v, who is left (-want +got):\n%s", err, diff)
		}
		var streams []string
		for _, user := range tt.left {
			streams = append(streams, "codexmcp_state_"+user)
		}
		names, err := jetstore.Streams(t.Context(), js)
		if diff := cmp.Diff(streams, names); err != nil || diff != "" {
			t.Errorf("%v, the streams (-want +got):\n%s", err, diff)
		}
		for user, n := range kept {
			if n == 0 {
				t.Errorf("%s has 0 bytes", user)
			}
		}
	}
}

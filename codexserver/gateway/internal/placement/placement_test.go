package placement_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/google/go-cmp/cmp"
)

// TestPick checks which nodes can take a user, and in which order.
func TestPick(t *testing.T) {
	nodes := []placement.Node{
		{ID: "full", Capacity: 1, Users: 1, Labels: []string{"gpu", "eu"}},
		{ID: "overfull", Capacity: 1, Users: 2},
		{ID: "little", Capacity: 2, Users: 1, Labels: []string{"eu", "gpu"}},
		{ID: "much2", Capacity: 9, Users: 1},
		{ID: "much1", Capacity: 8, Labels: []string{"eu"}},
		{ID: "drains", Capacity: 90, Labels: []string{"gpu", "eu"}, Draining: true},
	}
	for _, tt := range []struct {
		labels []string
		want   []string
	}{
		{nil, []string{"much1", "much2", "little"}}, {[]string{"eu"}, []string{"much1", "little"}}, {[]string{"gpu", "eu"}, []string{"little"}}, {[]string{"eu", "arm"}, nil},
	} {
		var got []string
		for _, n := range placement.Pick(nodes, tt.labels) {
			got = append(got, n.ID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.labels, diff)
		}
	}
	if nodes[0].ID != "full" {
		t.Error("the nodes were changed")
	}
}

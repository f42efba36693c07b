package rollout

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// TestNewest adds values of ten bytes. One value stays, however large.
func TestNewest(t *testing.T) {
	value := func(size int) jsontext.Value { return jsontext.Value(strings.Repeat("x", size)) }
	n := newest{}
	for i, want := range []int{0, 0, 1, 1} {
		if dropped := n.add(value(10), 2*(10+lineCost)); len(dropped) != want {
			t.Errorf("%d: dropped %q", i, dropped)
		}
	}
	if dropped := n.add(value(11), 2*(10+lineCost)); len(dropped) != 2 || n.left != 4 || len(n.all) != 1 || n.size != 11+lineCost {
		t.Errorf("dropped %q, left out %d, %d bytes", dropped, n.left, n.size)
	}
	if dropped := n.add(value(10000), 1000); len(dropped) != 1 || len(dropped[0]) != 11 || len(n.all) != 1 || n.size != 10000+lineCost {
		t.Errorf("dropped %q, %d bytes", dropped, n.size)
	}
}

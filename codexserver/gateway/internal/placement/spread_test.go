package placement_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/placement"
	"github.com/google/go-cmp/cmp"
)

// nodesOf returns nodes a, b, … with so many users, each with a capacity of 100.
func nodesOf(users ...int) (nodes []placement.Node) {
	for i, count := range users {
		nodes = append(nodes, placement.Node{ID: string(rune('a' + i)), Capacity: 100, Users: count})
	}
	return nodes
}

// TestSurplus checks how many users the first node gives away.
func TestSurplus(t *testing.T) {
	draining := nodesOf(8, 0, 4)
	draining[1].Draining = true
	leaving := nodesOf(8, 0)
	leaving[0].Draining = true
	for name, tt := range map[string]struct {
		nodes []placement.Node
		away  int
		want  int
	}{
		"most on one":                    {nodesOf(8, 1, 1), 0, 4},
		"some are on the way":            {nodesOf(6, 1, 1), 2, 2},
		"all are on the way":             {nodesOf(4, 1, 1), 4, 0},
		"all on one":                     {nodesOf(10, 0), 0, 4},
		"one above the average":          {nodesOf(3, 1), 0, 0},
		"a little more than one":         {nodesOf(3, 1, 1), 0, 1},
		"the least":                      {nodesOf(1, 8, 1), 0, 0},
		"alone":                          {nodesOf(9), 0, 0},
		"a draining node does not count": {draining, 0, 1},
		"it drains itself":               {leaving, 0, 0},
		"nobody":                         {nodesOf(0, 0), 0, 0},
		"it is not published":            {nil, 0, 0},
	} {
		if got := placement.Surplus(tt.nodes, "a", tt.away); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestSpread checks who of three users of the first node goes to another one.
func TestSpread(t *testing.T) {
	gpu := func(user string) []string {
		if user == "y" {
			return []string{"gpu"}
		}
		return nil
	}
	labelled := nodesOf(9, 4, 0)
	labelled[1].Labels = []string{"gpu"}
	small := nodesOf(9, 0)
	small[1].Capacity = 90 // less room than the first one
	full := nodesOf(9, 0)
	full[1].Capacity = 0
	draining := nodesOf(9, 0)
	draining[1].Draining = true
	for name, tt := range map[string]struct {
		nodes []placement.Node
		want  []string
	}{
		"labels":                       {labelled, []string{"x", "y", "z"}},
		"no node has the label":        {nodesOf(9, 0), []string{"x", "z"}},
		"two more":                     {nodesOf(9, 7), []string{"x"}},
		"one more":                     {nodesOf(9, 8), nil},
		"as many":                      {nodesOf(9, 9), nil},
		"until it would not be better": {nodesOf(9, 6), []string{"x"}},
		"to several":                   {nodesOf(9, 7, 7), []string{"x"}},
		"no room":                      {full, nil},
		"less room":                    {small, nil},
		"it drains":                    {draining, nil},
		"it is not published":          {nodesOf(9, 0)[1:], nil},
		"alone":                        {nodesOf(9), nil},
	} {
		before := fmt.Sprint(tt.nodes)
		if diff := cmp.Diff(tt.want, placement.Spread(tt.nodes, "a", []string{"x", "y", "z"}, gpu)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if fmt.Sprint(tt.nodes) != before {
			t.Errorf("%s: the nodes were changed", name)
		}
	}
}

// TestSpreadEnds lets users of random nodes go until no node gives anybody away. They come with their next request
// after several nodes have looked; at once, where nodes have room for different numbers of users. No user comes
// back or moves twice.
func TestSpreadEnds(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var counts []int
		for range 2 + random.IntN(4) {
			counts = append(counts, random.IntN(12))
		}
		nodes := nodesOf(counts...)
		if seed%2 == 1 {
			for i := range nodes {
				nodes[i].Capacity = nodes[i].Users + random.IntN(30)
			}
		}
		users := map[string][]string{} // by node
		for _, n := range nodes {
			for u := range n.Users {
				users[n.ID] = append(users[n.ID], fmt.Sprint(n.ID, u))
			}
		}
		moved := map[string]string{} // from which node
		var waiting []string
		come := func() {
			for _, user := range waiting {
				best := placement.Pick(nodes, nil)[0]
				if best.ID == moved[user] {
					t.Fatalf("%d: %s comes back", seed, user)
				}
				i := slices.IndexFunc(nodes, func(n placement.Node) bool { return n.ID == best.ID })
				nodes[i].Users++
				users[best.ID] = append(users[best.ID], user)
			}
			waiting = nil
		}
		for quiet := 0; quiet < len(nodes); {
			quiet++
			for i := range nodes {
				surplus := placement.Surplus(nodes, nodes[i].ID, len(waiting))
				away := placement.Spread(nodes, nodes[i].ID, users[nodes[i].ID], func(string) []string { return nil })
				for _, user := range away[:min(len(away), surplus)] {
					if moved[user] != "" {
						t.Fatalf("%d: %s moves again, from %s", seed, user, nodes[i].ID)
					}
					moved[user], quiet = nodes[i].ID, 0
					nodes[i].Users--
					users[nodes[i].ID] = slices.DeleteFunc(users[nodes[i].ID], func(u string) bool { return u == user })
					waiting = append(waiting, user)
				}
				if seed%2 == 1 || random.IntN(2) == 0 {
					come()
				}
			}
			come()
		}
		if seed%2 == 1 {
			continue
		}
		least, most, sum := 100, 0, 0
		for _, n := range nodes {
			least, most, sum = min(least, n.Users), max(most, n.Users), sum+n.Users
		}
		if (most-1)*len(nodes) > sum {
			t.Errorf("%d: from %v to %d and %d users", seed, counts, most, least)
		}
	}
}

package interop

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// table holds what a run saw.
type table struct {
	engines  []engine
	releases []string // of the clients

	mu    sync.Mutex
	cells map[[3]string]string // by engine, client and cell: yes, NO, or why not
}

func (s *table) put(engine, client, cell, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cells[[3]string{engine, client, cell}] = what
}

// markdown returns a table with a row for each client, and below it the reasons for the cells
// that do not apply. A cell names the ways on which it differs from the first one.
func (s *table) markdown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	var why reasons
	shown := func(e engine, client, cell string) string {
		switch what := s.cells[[3]string{e.name, client, cell}]; what {
		case "yes", "NO":
			return what
		default:
			return fmt.Sprintf("– (%d)", why.number(what))
		}
	}
	b.WriteString("| client | package | speaks MCP |\n|---|---|---|\n")
	for i, c := range clients {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, s.releases[i], c.version)
	}
	b.WriteString("\nThe ways:\n\n")
	for i, e := range s.engines {
		fmt.Fprintf(&b, "- %c: %s\n", 'A'+i, e.title)
	}
	b.WriteString("\n| |")
	for _, cell := range cells {
		fmt.Fprintf(&b, " %s |", cell.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(cells)) + "\n")
	for _, c := range clients {
		fmt.Fprintf(&b, "| %s |", c.name)
		for _, cell := range cells {
			first := shown(s.engines[0], c.name, cell.name)
			b.WriteString(" " + first)
			for i, e := range s.engines[1:] {
				if what := shown(e, c.name, cell.name); what != first {
					fmt.Fprintf(&b, "; %c: %s", 'B'+i, what)
				}
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\nWhat does not apply, and why:\n\n")
	for i, r := range why {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r)
	}
	return b.String()
}

// TestTable checks that a cell tells the ways apart, and that one difference is not lost.
func TestTable(t *testing.T) {
	s := &table{
		engines:  []engine{{name: "one", title: "first"}, {name: "two", title: "second"}, {name: "three", title: "third"}},
		releases: make([]string, len(clients)),
		cells:    map[[3]string]string{},
	}
	for _, e := range s.engines {
		for _, c := range clients {
			for _, cell := range cells {
				s.put(e.name, c.name, cell.name, "yes")
			}
		}
	}
	s.put("two", clients[0].name, cells[0].name, "It cannot.")
	s.put("three", clients[0].name, cells[1].name, "NO")
	got := s.markdown()
	for _, want := range []string{"\n- B: second\n", "\n| " + clients[0].name + " | yes; B: – (1) | yes; C: NO | yes |", "\n1. It cannot.\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

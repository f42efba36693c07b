package interop

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
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

// markdown returns a table for each engine, with a row for each client, and below them
// the reasons for the cells that do not apply.
func (s *table) markdown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	var reasons []string
	number := func(why string) int {
		for i, r := range reasons {
			if r == why {
				return i + 1
			}
		}
		reasons = append(reasons, why)
		return len(reasons)
	}
	b.WriteString("| client | package | speaks MCP |\n|---|---|---|\n")
	for i, c := range clients {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.name, s.releases[i], c.version)
	}
	for _, e := range s.engines {
		fmt.Fprintf(&b, "\n%s:\n\n| |", e.title)
		for _, cell := range cells {
			fmt.Fprintf(&b, " %s |", cell.name)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(cells)) + "\n")
		for _, c := range clients {
			fmt.Fprintf(&b, "| %s |", c.name)
			for _, cell := range cells {
				switch what := s.cells[[3]string{e.name, c.name, cell.name}]; what {
				case "yes", "NO":
					fmt.Fprintf(&b, " %s |", what)
				default:
					fmt.Fprintf(&b, " – (%d) |", number(what))
				}
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\nWhat does not apply, and why:\n\n")
	for i, r := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, r)
	}
	return b.String()
}

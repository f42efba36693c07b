package interop

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// subject is a server that the suite tests.
type subject string

const (
	featured subject = "test server"
	itself   subject = "`codex-mcp http`"
)

// column is one of the table.
type column struct {
	suite suite
	on    subject
}

// verdicts are what the suites found.
type verdicts struct {
	releases  []string
	scenarios []string // of all suites

	mu       sync.Mutex
	outcomes map[column]map[string]outcome
}

func (v *verdicts) put(c column, found map[string]outcome) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.outcomes[c] = found
}

// write writes the table, and the reasons of what does not apply. A scenario without a
// gap must pass, one with a gap must fail in what the gap names.
func (v *verdicts) write(t *testing.T, b *bytes.Buffer, suites []suite) {
	t.Helper()
	var columns []column
	b.WriteString("| a server |")
	for i, s := range suites {
		for _, on := range []subject{featured, itself} {
			columns = append(columns, column{s, on})
			fmt.Fprintf(b, " %s, suite %d |", on, i+1)
		}
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(columns)) + "\n")
	var reasons []string
	used := map[gapKey]bool{}
	for _, scenario := range v.scenarios {
		fmt.Fprintf(b, "| %s |", scenario)
		for _, c := range columns {
			o, ran := v.outcomes[c][scenario]
			if !ran {
				b.WriteString(" |") // the suite does not have it
				continue
			}
			key := gapKey{c.on, scenario}
			g, isGap := gaps[key]
			used[key] = true
			switch {
			case !isGap && len(o.failed) == 0 && o.passed > 0:
				b.WriteString(" passed |")
			case isGap && slices.Equal(o.failed, g.fails):
				i := slices.Index(reasons, g.why)
				if i < 0 {
					i, reasons = len(reasons), append(reasons, g.why)
				}
				fmt.Fprintf(b, " – (%d) |", i+1)
			default:
				t.Errorf("%s on %s, %s: %d checks passed; failed are %q, want %q\n%s", scenario, c.on, c.suite, o.passed, o.failed, g.fails, strings.Join(o.why, "\n"))
				b.WriteString(" NO |")
			}
		}
		b.WriteString("\n")
	}
	for key := range gaps {
		if !used[key] {
			t.Errorf("no suite has the scenario %s", key.scenario)
		}
	}
	b.WriteString("\n")
	for i, r := range v.releases {
		fmt.Fprintf(b, "Suite %d is %s. ", i+1, r)
	}
	b.WriteString("What does not apply, and why:\n\n")
	for i, r := range reasons {
		fmt.Fprintf(b, "%d. %s\n", i+1, r)
	}
}

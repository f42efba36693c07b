package box_test

import (
	"os"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp"
)

// untested is the row of SECURITY.md's table that no probe tries.
const untested = "use up disk, memory, processors"

// TestSecurityPage compares the table in SECURITY.md with the rows that are tried.
func TestSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../../../SECURITY.md")
	must.OK(t, err)
	_, rest, ok := strings.Cut(string(page), "\n| a command tries to |")
	if !ok {
		t.Fatal("SECURITY.md has no table of what a command tries to do")
	}
	table, _, _ := strings.Cut(rest, "\n\n")
	got := [][3]string{}
	for _, line := range strings.Split(table, "\n")[2:] {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		row := [3]string{}
		for i := range row {
			row[i] = strings.TrimSpace(cells[i])
			if i == 0 {
				continue
			}
			row[i] = strings.TrimSuffix(strings.Trim(row[i], "*"), ", unless `network_access`")
		}
		got = append(got, row)
	}
	want := [][3]string{}
	for _, kind := range kinds {
		if kind.name == "" {
			continue
		}
		first := kind.rows[0].verdicts()
		for _, row := range kind.rows {
			if v := row.verdicts(); v != first {
				t.Errorf("%s: %q is %q, but %q is %q", kind.name, row.name, v, kind.rows[0].name, first)
			}
		}
		want = append(want, [3]string{kind.name, first[0], first[1]})
	}
	want = append(want, [3]string{untested, "allowed", "allowed"})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("SECURITY.md (-tried +page):\n%s", diff)
	}
}

// verdicts returns the words of SECURITY.md for the row's two columns.
func (r row) verdicts() (words [2]string) {
	for i, outcome := range []string{r.readOnly, r.write} {
		words[i] = denied
		if r.allows(outcome) {
			words[i] = "allowed"
		}
	}
	return words
}

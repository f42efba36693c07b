package approval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestMoveBoundary shows the move of a file on a line of its own for each name if one line is too short for both, and two
// are there. It is the only change.
func TestMoveBoundary(t *testing.T) {
	moved := func(name int) change {
		return change{Kind: "move", Path: "/w/a", MoveTo: "/w/" + strings.Repeat("x", name)}
	}
	p := &patchForm{Patch: Patch{Cwd: "/w"}}
	width := func(c change) int {
		entry, _ := plain.Unmarked(p.describe(c, p.briefPlace))
		return plain.Columns(entry)
	}
	name := 1
	for width(moved(name)) < plain.MaxColumns {
		name++
	}
	must.Equal(t, "the shortest entry that is too wide", plain.MaxColumns, width(moved(name)))
	for _, tt := range []struct {
		name, changes, lines int
		apart, whole         bool
	}{
		{name - 1, 1, 2, false, true},
		{name, 1, 2, true, true},
		{name + 1, 1, 2, true, true},
		{name, 1, 1, false, false},
		{name, 1, 3, true, true},
		{name, 2, 2, false, false},
	} {
		shown, whole := p.briefChanges(slices.Repeat([]change{moved(tt.name)}, tt.changes), 0, tt.lines)
		apart := len(shown) == 2 && strings.HasSuffix(shown[0], strings.TrimRight(moves, " "))
		if apart != tt.apart || whole != tt.whole {
			t.Errorf("%d changes of %d columns on %d lines: %q, whole %t", tt.changes, width(moved(tt.name)), tt.lines, shown, whole)
		}
	}
}

// TestPackBoundary joins entries on a line that is shorter than the widest one, and on as many lines as there are.
func TestPackBoundary(t *testing.T) {
	for _, tt := range []struct{ second, lines, packed, n int }{
		{plain.MaxColumns - len("a, ") - 1, 1, 1, 2},
		{plain.MaxColumns - len("a, "), 1, 1, 1},
		{plain.MaxColumns - len("a, "), 2, 2, 2},
		{1, 0, 0, 0},
	} {
		packed, n := pack([]string{"a", strings.Repeat("b", tt.second)}, tt.lines)
		must.Equal(t, fmt.Sprintf("lines and entries of %+v", tt), fmt.Sprint(tt.packed, tt.n), fmt.Sprint(len(packed), n))
	}
}

// TestBriefDiffBoundary shows a diff whose lines are as many and as wide as they may be, one less and one more.
func TestBriefDiffBoundary(t *testing.T) {
	for _, tt := range []struct {
		rows, columns, lines int
		whole                bool
	}{
		{1, 10, 2, true},
		{2, 10, 2, true},
		{3, 10, 2, false},
		{1, plain.MaxColumns - 1, 1, true},
		{1, plain.MaxColumns, 1, true},
		{1, plain.MaxColumns + 1, 1, false},
	} {
		row := "+" + strings.Repeat("x", tt.columns-len("+")-len("``")) // in a span of code
		shown, whole := briefDiff([]change{{Diff: strings.Repeat(row+"\n", tt.rows)}, {}}, tt.lines)
		if whole != tt.whole || whole && len(shown) != tt.rows {
			t.Errorf("%+v: %q, %t", tt, shown, whole)
		}
	}
}

// TestListBoundary lists as many changes as a message has, one less and one more, and as many lines of a file.
func TestListBoundary(t *testing.T) {
	for n, once := range map[int]bool{1: false, maxChanges - 1: false, maxChanges: false, maxChanges + 1: true} {
		p := &patchForm{Patch: Patch{Cwd: "/w"}}
		for i := range n {
			p.changes = append(p.changes, change{Kind: "update", Path: fmt.Sprintf("/w/%02d", i), Diff: "+x\n"})
		}
		q := p.question()
		if listed := strings.Count(q.Message, "\n- "); q.Once != once || (p.share() == 0) != once || listed != min(n, maxChanges+1) {
			t.Errorf("%d changes: %d are listed, once %t, %d lines of each", n, listed, q.Once, p.share())
		}
		if begins := "Change a file "; strings.HasPrefix(q.Brief.Lines[0], begins) != (n == 1) {
			t.Errorf("%d changes: %q", n, q.Brief.Lines)
		}
	}
	for rows, whole := range map[int]bool{0: true, 1: true, maxFileDiff - 1: true, maxFileDiff: true, maxFileDiff + 1: false} {
		c := change{Diff: strings.Repeat("+x\n", rows)}
		if shown, got := c.diff(maxFileDiff); got != whole || min(rows, maxFileDiff) != strings.Count(strings.Join(shown, "\n"), "+x") {
			t.Errorf("%d lines: %q, whole %t", rows, shown, got)
		}
	}
}

// TestForeignBoundary has questions of servers with as many fields, options and lines as may be, one less and one more.
func TestForeignBoundary(t *testing.T) {
	ask := func(message string, fields, options int) (*Foreign, error) {
		properties := map[string]any{}
		for i := range fields {
			choices := make([]string, options)
			for n := range choices {
				choices[n] = fmt.Sprint("option ", n)
			}
			properties[fmt.Sprint("field ", i)] = map[string]any{"type": "string", "enum": choices}
		}
		raw := must.Get(json.Marshal(map[string]any{
			"message": message, "requestedSchema": map[string]any{"type": "object", "properties": properties},
		}))(t)
		return ServerQuestion("s", raw)
	}
	for n, fits := range map[int]bool{foreignFields - 1: true, foreignFields: true, foreignFields + 1: false} {
		if _, err := ask("x", n, 1); (err == nil) != fits {
			t.Errorf("%d fields: %v", n, err)
		}
	}
	for n, fits := range map[int]bool{foreignOptions - 1: true, foreignOptions: true, foreignOptions + 1: false} {
		if _, err := ask("x", 1, n); (err == nil) != fits {
			t.Errorf("%d options: %v", n, err)
		}
	}
	for n, more := range map[int]bool{0: false, 1: false, foreignLines - 1: false, foreignLines: false, foreignLines + 1: true} {
		f := must.Get(ask(strings.Repeat("line\n", n), 0, 0))(t)
		if got := strings.Contains(f.question.Message, "(1 more lines are not shown)"); got != more {
			t.Errorf("%d lines: %s", n, f.question.Message)
		}
	}
	for n, more := range map[int]bool{foreignRead - 1: false, foreignRead: false, foreignRead + 1: true} {
		lines := ShowLines("s", strings.Repeat("x", n))
		if got := strings.Contains(lines[len(lines)-1], "(1 more bytes are not shown)"); got != more {
			t.Errorf("%d bytes: %q", n, lines)
		}
	}
	list := &foreignSchema{Type: "array", Items: &foreignSchema{Type: "string", Enum: []string{"a", "b"}}}
	for n, fits := range []bool{true, true, true, false} {
		value := must.Get(json.Marshal(slices.Repeat([]string{"a"}, n)))(t)
		if list.fits(value) != fits {
			t.Errorf("a list of %d among 2 options fits: %t", n, !fits)
		}
	}
	for names, kept := range []int{0, 0, 2, 0} {
		s := &foreignSchema{Type: "string", Enum: []string{"a", "b"}, EnumNames: slices.Repeat([]string{"n"}, names)}
		must.OK(t, s.clean())
		must.Equal(t, fmt.Sprintf("names of %d for 2 options", names), kept, len(s.EnumNames))
	}
}

// TestBriefCodeBoundary shows a text whole if it fits on the lines.
func TestBriefCodeBoundary(t *testing.T) {
	for columns, whole := range map[int]bool{plain.MaxColumns - 1: true, plain.MaxColumns: true, plain.MaxColumns + 1: false} {
		text := strings.Repeat("x", columns-len("``"))
		if shown, got := briefCode(text, 1); got != whole || len(shown) != 1 {
			t.Errorf("%d columns: %q, whole %t", columns, shown, got)
		}
	}
}

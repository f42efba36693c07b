package terminal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// appliedLines is how many lines of a file's change are shown when an applied patch is
// shortened. A question shows the whole patch.
const appliedLines = 60

func (v *view) patchBegins(m protocol.PatchApplyBegin) {
	if c := v.take(m.CallID); c.asked {
		return // the question has shown it
	}
	v.open("")
	v.changes(m.Changes, appliedLines)
	v.block = blockOf(m.CallID)
}

func (v *view) patchEnds(m protocol.PatchApplyEnd) {
	v.open(blockOf(m.CallID))
	if m.Success {
		v.s.line("  ", green, "applied")
		return
	}
	v.s.line("  ", red, "not applied")
	for _, line := range lines(strings.TrimSpace(m.Stderr)) {
		v.s.line("  ", red, showOutput(line))
	}
}

// changes shows a patch. With a limit, the change of each file may be shortened to as many
// lines; 0 means no limit.
func (v *view) changes(changes map[string]protocol.FileChange, limit int) {
	for i, path := range slices.Sorted(maps.Keys(changes)) {
		if i > 0 {
			v.s.write("\n")
		}
		verb, diff := verbOf(changes[path]), lines(changes[path].Diff())
		name := v.path(path)
		if u := changes[path].Update; u != nil && u.MovePath != nil {
			name += " → " + v.path(*u.MovePath)
		}
		v.s.title("", verb+" "+name, tally(diff))
		shown := len(diff)
		if v.brief && limit > 0 {
			shown = min(shown, limit)
		}
		for _, line := range diff[:shown] {
			v.s.line("  ", colour(line), elicit.ShowText(line)) // escaped, but complete: the user decides by it
		}
		v.omitted(len(diff) - shown)
	}
}

func colour(line string) style {
	switch {
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "@@"):
		return cyan
	}
	return plain
}

func verbOf(c protocol.FileChange) string {
	switch {
	case c.Add != nil:
		return "new file"
	case c.Delete != nil:
		return "delete"
	case c.Update != nil:
		return "edit"
	}
	return "change"
}

// tally counts the lines of a diff.
func tally(diff []string) string {
	added, removed := 0, 0
	for _, line := range diff {
		switch {
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return fmt.Sprintf("+%d -%d", added, removed)
}

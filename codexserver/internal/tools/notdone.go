package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
)

// maxNotDone is how many lines of a result say what was not done. The structured content has all.
const maxNotDone = 10

// notDone returns a line for each of the last things that a turn did not do because nobody approved
// them or a policy refuses them. Models of many hosts see only the texts of a result.
func notDone(did *protocol.TurnResult) []string {
	var lines []string
	left := did.Truncated.Refused
	for _, r := range slices.Backward(did.Refused) {
		line := notDoneLine(r)
		switch {
		case slices.Contains(lines, line):
		case len(lines) == maxNotDone:
			left++
		default:
			lines = append(lines, line)
		}
	}
	slices.Reverse(lines)
	if left > 0 {
		lines = append([]string{fmt.Sprintf("Earlier refusals that are not listed here: %d.", left)}, lines...)
	}
	return lines
}

// notDoneLine returns a refusal as a line, such as "Not run: `git push` (declined)".
func notDoneLine(r protocol.Refusal) string {
	r.What, _ = elicit.ShowCode(r.What)
	if r.Kind == "patch" {
		r.What = "changes of " + r.What
	}
	r.Why = show.Brief(strings.TrimPrefix(r.Why, "not run: "))
	return "N" + strings.TrimPrefix(r.String(), "n")
}

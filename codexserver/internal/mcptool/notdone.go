package mcptool

import (
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/report"
)

// maxNotDone is how many lines of a result say what was not done. The structured content has all.
const maxNotDone = 10

// notDone returns a line for each of the last things that a turn did not do because nobody approved
// them or a policy refuses them. Models of many hosts see only the texts of a result.
func notDone(did *report.Report) []string {
	var lines []string
	left := did.MoreRefused()
	for _, r := range slices.Backward(did.Refused) {
		line := r.String()
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

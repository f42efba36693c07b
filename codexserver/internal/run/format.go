package run

import (
	"fmt"
	"strings"

	"github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxModelLines = 256
	maxModelBytes = 10 << 10
	maxMarker     = 64 // room for the marker between head and tail
)

// FormatOutput shortens a command's output for the model to at most 256 lines and 10 KiB, half from the beginning and
// half from the end. A line between them reports how much is missing.
func FormatOutput(aggregated string) string {
	lines := strings.SplitAfter(aggregated, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if len(aggregated) <= maxModelBytes && len(lines) <= maxModelLines {
		return aggregated
	}
	first, last, cut := aggregated, aggregated, len(lines)-maxModelLines
	if cut > 0 {
		first, last = strings.Join(lines[:maxModelLines/2], ""), strings.Join(lines[len(lines)-maxModelLines/2:], "")
	}
	head := text.Head(first, maxModelBytes/2)
	tail := text.Tail(last, maxModelBytes-len(head)-maxMarker)
	marker := fmt.Sprintf("[... omitted %d of %d lines ...]", cut, len(lines))
	if cut <= 0 {
		marker = fmt.Sprintf("[... omitted %d of %d bytes ...]", len(aggregated)-len(head)-len(tail), len(aggregated))
	}
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + marker + "\n\n" + strings.TrimSuffix(tail, "\n")
}

// Formatted returns the output for the model, see [FormatOutput]. After a timeout a line before the output reports it.
func (r Result) Formatted() string {
	if !r.TimedOut {
		return FormatOutput(r.Aggregated)
	}
	return FormatOutput(fmt.Sprintf("command timed out after %d milliseconds\n%s", r.Duration.Milliseconds(),
		r.Aggregated))
}

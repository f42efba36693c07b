package turnlog

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/audit"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	utf8text "github.com/codexmcp/codexmcp/internal/text"
)

const (
	maxRecordedCommand = 64 << 10  // bytes of an argv
	maxRecordedDiff    = 256 << 10 // bytes of a diff
)

// refusedLine returns the line of the record about what an engine refused.
func refusedLine(r *protocol.Refused) audit.Line {
	line := audit.Line{Effect: audit.Refused, Call: r.CallID, Cwd: r.Cwd, Tool: r.Tool, Words: r.Reason, Basis: r.Basis}
	switch {
	case len(r.Command) > 0:
		line.Kind = "command"
		recordCommand(&line, r.Command)
	case len(r.Changes) > 0:
		line.Kind, line.Diff = "patch", patchDiff(r.Changes)
	default:
		line.Kind = "tool"
	}
	return line
}

// recordCommand sets the command of a line, or only its sum if it is long.
func recordCommand(line *audit.Line, argv []string) {
	size := 0
	for _, word := range argv {
		size += len(word)
	}
	if size > maxRecordedCommand {
		line.Sum = sum([]byte(strings.Join(argv, "\x00")))
		return
	}
	line.Command = argv
}

// patchFiles returns the paths of a patch.
func patchFiles(changes map[string]protocol.FileChange) (files []string) {
	for path, c := range changes {
		files = append(files, path)
		if c.Update != nil && c.Update.MovePath != nil && *c.Update.MovePath != path {
			files = append(files, *c.Update.MovePath)
		}
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// patchDiff returns the changes of a patch as one text.
func patchDiff(changes map[string]protocol.FileChange) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		c := changes[path]
		b.WriteString("=== " + elicit.OneLine(path, 4096))
		if c.Update != nil && c.Update.MovePath != nil {
			b.WriteString(" -> " + elicit.OneLine(*c.Update.MovePath, 4096))
		}
		b.WriteString("\n" + strings.TrimSuffix(c.Diff(), "\n") + "\n")
		if b.Len() > maxRecordedDiff {
			break
		}
	}
	return CutDiff(b.String())
}

// CutDiff bounds a diff of the record, and says so.
func CutDiff(diff string) string {
	if len(diff) <= maxRecordedDiff {
		return diff
	}
	return utf8text.Head(diff, maxRecordedDiff) + "\n[the rest is left out]\n"
}

func sum(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

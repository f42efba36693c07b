package repo

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/codexmcp/codexmcp/codexserver/internal/patch"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Changes returns the plan's changes by absolute path, in the form of a patch's changes.
// Files that are not text, and symbolic links, are described in words.
func (p *Plan) Changes() map[string]protocol.FileChange {
	byPath := map[string]*plannedFile{}
	for _, f := range p.files {
		byPath[f.path] = f
	}
	changes := make(map[string]protocol.FileChange, len(p.files))
	moved := map[string]bool{}
	for from, to := range p.moves {
		moved[to] = true
		target := p.absolute(to)
		changes[p.absolute(from)] = update(byPath[from], byPath[to], &target)
	}
	for _, f := range p.files {
		shown := p.absolute(f.path)
		_, isShown := changes[shown]
		switch {
		case isShown || moved[f.path]:
		case !f.after.exists():
			changes[shown] = protocol.FileChange{Delete: &protocol.FileContent{Content: f.before.text()}}
		case !f.before.exists():
			changes[shown] = protocol.FileChange{Add: &protocol.FileContent{Content: f.after.text()}}
		default:
			changes[shown] = update(f, f, nil)
		}
	}
	return changes
}

func update(from, to *plannedFile, movePath *string) protocol.FileChange {
	var diff strings.Builder
	if from.was.mode != to.is.mode {
		fmt.Fprintf(&diff, "old mode %s\nnew mode %s\n", from.was.mode, to.is.mode)
	}
	diff.WriteString(patch.Hunks(from.before.text(), to.after.text()))
	return protocol.FileChange{Update: &protocol.FileUpdate{UnifiedDiff: diff.String(), MovePath: movePath}}
}

// text returns the content of a file for display.
func (f file) text() string {
	switch {
	case f.isLink:
		return "a symbolic link to " + strings.ToValidUTF8(f.data, "\uFFFD") + "\n"
	case !utf8.ValidString(f.data) || strings.ContainsRune(f.data, 0):
		return fmt.Sprintf("a binary file: %d bytes, SHA-256 %x\n", len(f.data), sha256.Sum256([]byte(f.data)))
	}
	return f.data
}

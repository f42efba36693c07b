package codexmcp_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// participles are participles that do not end in -ed or -ing.
var participles = []string{
	"begun", "bound", "broken", "built", "chosen", "done", "found", "frozen", "given", "gone", "held", "hidden", "kept", "known",
	"left", "lost", "made", "meant", "paid", "read", "said", "seen", "sent", "shown", "spoken", "spent", "stuck", "taken", "told",
	"unknown", "withdrawn", "written",
}

// nouns are nouns that end like a participle.
var nouns = []string{"embed", "feed", "finding", "need", "reasoning", "ruling", "seed", "speed", "string", "thing", "timing"}

// TestTypesAreNouns checks that no type of the server has a participle as its name. A name
// says what a value is (thread, turn, question), not what happened to it. Package protocol
// is an exception, because its names are Codex's.
func TestTypesAreNouns(t *testing.T) {
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.pkg, "codexserver") || s.pkg == "codexserver/protocol" {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok && isParticiple(lastWord(spec.Name.Name)) {
				t.Errorf("%s: the name of type %s is a participle", s.file, spec.Name.Name)
			}
			return true
		})
	}
}

func TestIsParticiple(t *testing.T) {
	for name, want := range map[string]bool{
		"running": true, "loaded": true, "asked": true, "chosen": true, "toldPage": false, "pageShown": true,
		"turn": false, "Thread": false, "changedFile": false, "Reasoning": false, "agentReasoning": false, "boundedBuffer": false, "URL": false,
	} {
		if got := isParticiple(lastWord(name)); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}

func isParticiple(word string) bool {
	if slices.Contains(nouns, word) {
		return false
	}
	return strings.HasSuffix(word, "ed") || strings.HasSuffix(word, "ing") || slices.Contains(participles, word)
}

// lastWord returns the last word of a name in mixed caps, in lower case.
func lastWord(name string) string {
	start := max(0, strings.LastIndexFunc(name, unicode.IsUpper))
	return strings.ToLower(name[start:])
}

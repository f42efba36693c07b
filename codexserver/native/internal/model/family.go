package model

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Family has the properties of models whose names begin with a prefix.
type Family struct {
	// Prefix is the beginning of the names.
	Prefix string
	// ContextWindow is in tokens, or 0 if unknown.
	ContextWindow int64
	// Reasoning is true for models that summarize their reasoning.
	Reasoning bool
	// LocalShell is true for models with a built-in shell tool.
	LocalShell bool
	// PatchTool is true for models that expect apply_patch to be a function.
	PatchTool bool
}

// Efforts returns the efforts of the family's models. It returns nil for models that do not
// reason or are unknown.
func (f Family) Efforts() []protocol.ReasoningEffort {
	switch {
	case !f.Reasoning:
		return nil
	case f.Prefix == "gpt-5":
		return protocol.ReasoningEfforts()
	}
	return []protocol.ReasoningEffort{protocol.EffortLow, protocol.EffortMedium, protocol.EffortHigh}
}

// families are sorted so that a longer prefix comes before a shorter one.
var families = []Family{
	{Prefix: "codex-mini-latest", ContextWindow: 200_000, Reasoning: true, LocalShell: true},
	{Prefix: "codex-", ContextWindow: 200_000, Reasoning: true},
	{Prefix: "gpt-oss", ContextWindow: 96_000, PatchTool: true},
	{Prefix: "gpt-5", ContextWindow: 272_000, Reasoning: true},
	{Prefix: "gpt-4.1", ContextWindow: 1_047_576},
	{Prefix: "gpt-4o", ContextWindow: 128_000},
	{Prefix: "o4-mini", ContextWindow: 200_000, Reasoning: true},
	{Prefix: "o3", ContextWindow: 200_000, Reasoning: true},
}

// FamilyOf returns a model's family, or the zero one for an unknown model. It ignores a path
// before the name, as in "openai/gpt-oss-20b".
func FamilyOf(model string) Family {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, f := range families {
		if strings.HasPrefix(name, f.Prefix) {
			return f
		}
	}
	return Family{}
}

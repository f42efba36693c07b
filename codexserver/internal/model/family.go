package model

import (
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// Family is what is known of a model by its name.
type Family struct {
	// Prefix is what the names of the family begin with.
	Prefix string
	// ContextWindow is in tokens, 0 when unknown.
	ContextWindow int64
	// Reasoning is true for models that sum their reasoning up.
	Reasoning bool
	// LocalShell is true for models with a shell tool of their own.
	LocalShell bool
	// PatchTool is true for models that expect apply_patch to be a function.
	PatchTool bool
}

// Efforts are those that the models of the family take, nil for a family that does not
// reason or is not known.
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

// FamilyOf finds a model's family; a model that is not known has the zero one.
// A path before the name, as in "openai/gpt-oss-20b", is looked past.
func FamilyOf(model string) Family {
	name := model[strings.LastIndexByte(model, '/')+1:]
	for _, f := range families {
		if strings.HasPrefix(name, f.Prefix) {
			return f
		}
	}
	return Family{}
}

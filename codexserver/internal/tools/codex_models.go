package tools

import (
	"context"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/internal/plain"
	"github.com/codexmcp/codexmcp/mcptypes"
)

var modelsTool = &tool{
	name: "codex-models", title: "Codex Models", open: true,
	description: "List what codex takes as model, effort and profile.",
	purpose:     "find the models that a task can be given to, and their efforts.",
	hints:       &mcptypes.ToolAnnotations{ReadOnlyHint: &yes, OpenWorldHint: &yes},
	offered:     can[engine.ModelLister],
	arguments:   func() arguments { return new(modelsArguments) },
}

type modelsArguments struct{}

// modelRow is a model in the result.
type modelRow struct {
	Model         string   `json:"model"`
	Default       bool     `json:"default,omitzero"`
	Profiles      []string `json:"profiles,omitempty"`
	Efforts       []string `json:"efforts,omitempty"`
	DefaultEffort string   `json:"defaultEffort,omitzero"`
	Description   string   `json:"description,omitzero"`
}

// Limits of the result.
const (
	maxModelText    = 40_000 // bytes of all models
	maxModelEntries = 20     // elements of each list of a model
)

func (*modelsArguments) run(ctx context.Context, c *Call) (*mcptypes.CallToolResult, error) {
	list, err := c.table.engine.(engine.ModelLister).Models(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Models []modelRow `json:"models"`
		Notes  []string   `json:"notes,omitempty"`
	}{Models: []modelRow{}}
	for _, note := range list.Notes[:min(len(list.Notes), maxModelEntries)] {
		out.Notes = append(out.Notes, plain.OneLine(note, maxBrief))
	}
	size := 0
	for _, m := range list.Models {
		row := modelRow{
			Model: plain.Brief(m.Name), Default: m.IsDefault, Profiles: briefs(m.Profiles), Efforts: briefs(m.Efforts),
			DefaultEffort: plain.Brief(string(m.DefaultEffort)), Description: plain.Brief(m.Description),
		}
		lists := strings.Join(row.Profiles, `","`) + strings.Join(row.Efforts, `","`)
		size += len(row.Model) + len(row.Description) + len(lists) + 100
		if size > maxModelText {
			out.Notes = append(out.Notes, "there are more models")
			break
		}
		out.Models = append(out.Models, row)
	}
	return structured(out), nil
}

// briefs returns the first names of a list as status lines.
func briefs[S ~string](names []S) (all []string) {
	for _, name := range names[:min(len(names), maxModelEntries)] {
		all = append(all, plain.Brief(string(name)))
	}
	return all
}

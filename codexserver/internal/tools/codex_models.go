package tools

import (
	"context"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/show"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/elicit"
	"github.com/codexmcp/codexmcp/mcptypes"
)

var modelsTool = &tool{
	arguments: func() arguments { return new(modelsArguments) },
	name:      "codex-models", open: true, purpose: "find the models that a task can be given to, and their efforts.",
	offered: func(t *Table) bool { return t.lister() != nil },
	definition: `{
	"name": "codex-models",
	"title": "Codex Models",
	"description": "List what codex takes as model, effort and profile.",
	"inputSchema": {"type": "object", "properties": {}},
	"annotations": {"readOnlyHint": true, "openWorldHint": true}
}`,
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

// run implements [arguments].
func (*modelsArguments) run(ctx context.Context, c *call) (*mcptypes.CallToolResult, error) {
	list, err := c.table.lister().Models(ctx)
	if err != nil {
		return nil, err
	}
	out := struct {
		Models []modelRow `json:"models"`
		Notes  []string   `json:"notes,omitempty"`
	}{Models: []modelRow{}}
	size := 0
	for _, note := range list.Notes[:min(len(list.Notes), maxModelEntries)] {
		out.Notes = append(out.Notes, elicit.OneLine(note, maxBrief))
	}
	for _, model := range list.Models {
		row := rowOf(model)
		if size += len(row.Model) + len(row.Description) + len(strings.Join(row.Profiles, `","`)) + len(strings.Join(row.Efforts, `","`)) + 100; size > maxModelText {
			out.Notes = append(out.Notes, "there are more models")
			break
		}
		out.Models = append(out.Models, row)
	}
	return structured(out), nil
}

func rowOf(m protocol.Model) modelRow {
	row := modelRow{Model: show.Brief(m.Name), Default: m.IsDefault, DefaultEffort: show.Brief(string(m.DefaultEffort)), Description: show.Brief(m.Description)}
	for _, name := range m.Profiles[:min(len(m.Profiles), maxModelEntries)] {
		row.Profiles = append(row.Profiles, show.Brief(name))
	}
	for _, effort := range m.Efforts[:min(len(m.Efforts), maxModelEntries)] {
		row.Efforts = append(row.Efforts, show.Brief(string(effort)))
	}
	return row
}

package appserver

import (
	"context"
	"fmt"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var _ engine.ModelLister = (*Engine)(nil)

// Limits of a list of models.
const (
	maxModels   = 200
	maxPages    = 20
	modelsLimit = 20 * time.Second
)

// Models implements [engine.ModelLister] with the models that Codex lists. The default is
// the configured model, if there is one.
func (e *Engine) Models(ctx context.Context) (*protocol.ModelList, error) {
	c, err := e.child(ctx)
	if err != nil {
		return nil, err
	}
	file, err := c.config(ctx, "")
	if err != nil {
		return nil, err
	}
	list := &protocol.ModelList{}
	if limits := c.lastLimits(time.Now()); limits != nil { // asking anew could take seconds
		if words := limits.Words(0); words != "" {
			list.Notes = append(list.Notes, "limits of the account: "+words)
		}
	}
	own := value[string](file["model"])
	if own != "" {
		list.Models = []protocol.Model{{Name: own, DefaultEffort: value[protocol.ReasoningEffort](file["model_reasoning_effort"]), IsDefault: true}}
	}
	end := time.Now().Add(modelsLimit)
	cursor := ""
	for page := 1; ; page++ {
		var r apptypes.ModelsReply
		if err := c.call(ctx, time.Until(end), apptypes.CallModelList, apptypes.ModelsParams{Cursor: cursor}, &r); err != nil {
			if len(list.Models) == 0 {
				return nil, err
			}
			list.Notes = append(list.Notes, fmt.Sprintf("codex did not list its models: %v", err))
			return list, nil
		}
		for _, m := range r.Data {
			if addModel(list, m, own); len(list.Models) == maxModels {
				list.Notes = append(list.Notes, "there are more models")
				return list, nil
			}
		}
		if r.NextCursor == "" || page == maxPages {
			return list, nil
		}
		cursor = r.NextCursor
	}
}

// addModel adds a model that Codex lists. If it is the configured one, which is in the
// list already, it completes that entry.
func addModel(list *protocol.ModelList, m apptypes.Model, configured string) {
	out := protocol.Model{
		Name: m.Model, Description: m.Description, DefaultEffort: protocol.ReasoningEffort(m.DefaultReasoningEffort), IsDefault: m.IsDefault && configured == "",
	}
	for _, e := range m.SupportedReasoningEfforts {
		out.Efforts = append(out.Efforts, protocol.ReasoningEffort(e.ReasoningEffort))
	}
	if configured == "" || m.Model != configured {
		list.Models = append(list.Models, out)
		return
	}
	known := &list.Models[0]
	known.Description, known.Efforts = out.Description, out.Efforts
	if known.DefaultEffort == "" {
		known.DefaultEffort = out.DefaultEffort
	}
}

package native

import (
	"context"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var _ engine.ModelLister = (*Engine)(nil)

// maxModels bounds a list of models.
const maxModels = 200

// Models implements [engine.ModelLister]. The list has the configured model, the models of
// profiles, and the models that the configured provider lists.
func (e *Engine) Models(ctx context.Context) (*protocol.ModelList, error) {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	list := &protocol.ModelList{Models: []protocol.Model{{
		Name: cfg.Model, Efforts: model.FamilyOf(cfg.Model).Efforts(), DefaultEffort: cfg.ReasoningEffort,
		IsDefault: true,
	}}}
	names, err := config.Profiles(e.options.CodexHome)
	if err != nil {
		list.Notes = append(list.Notes, fmt.Sprintf("the profiles cannot be read: %v", err))
	}
	for _, name := range names {
		profile, err := e.config(protocol.Config{Profile: name})
		if err != nil {
			list.Notes = append(list.Notes, fmt.Sprintf("profile %q: %v", name, err))
			continue
		}
		addModel(list, profile.Model, name)
	}
	var listed []model.ListEntry
	leave, err := e.requests.Take(ctx)
	if err == nil {
		defer leave()
		listed, err = e.client(cfg.ModelProvider, cfg.Provider()).Models(ctx)
	}
	if err != nil {
		list.Notes = append(list.Notes, fmt.Sprintf("the provider %q does not list its models: %v", cfg.ModelProvider,
			err))
	}
	for i, m := range listed {
		if len(list.Models) >= maxModels {
			list.Notes = append(list.Notes, fmt.Sprintf("the provider %q lists %d more models, which are left out",
				cfg.ModelProvider, len(listed)-i))
			break
		}
		addModel(list, m.Name, "")
	}
	return list, nil
}

// addModel adds a model unless it is in the list, and the profile, if any, that chooses it.
func addModel(list *protocol.ModelList, name, profile string) {
	i := slices.IndexFunc(list.Models, func(m protocol.Model) bool { return m.Name == name })
	if i < 0 {
		i = len(list.Models)
		list.Models = append(list.Models, protocol.Model{Name: name, Efforts: model.FamilyOf(name).Efforts()})
	}
	if profile != "" {
		list.Models[i].Profiles = append(list.Models[i].Profiles, profile)
	}
}

package native

import (
	"context"
	"fmt"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/model"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var _ engine.ModelLister = (*Engine)(nil)

// maxModels bounds a list of models.
const maxModels = 200

// Models implements [engine.ModelLister]: the model of the configuration, those of its
// profiles, and those that the configuration's provider lists.
func (e *Engine) Models(ctx context.Context) (*protocol.ModelList, error) {
	cfg, err := e.config(protocol.Config{})
	if err != nil {
		return nil, &engine.ConfigError{Err: err}
	}
	list := &protocol.ModelList{Models: []protocol.Model{{
		Name: cfg.Model, Efforts: model.FamilyOf(cfg.Model).Efforts(), DefaultEffort: cfg.ReasoningEffort, IsDefault: true,
	}}}
	names, err := config.Profiles(e.home)
	if err != nil {
		list.Notes = append(list.Notes, fmt.Sprintf("the profiles are not known: %v", err))
	}
	for _, name := range names {
		profile, err := e.config(protocol.Config{Profile: name})
		if err != nil {
			list.Notes = append(list.Notes, fmt.Sprintf("profile %q: %v", name, err))
			continue
		}
		addModel(list, profile.Model, name)
	}
	listed, err := e.listed(ctx, cfg)
	if err != nil {
		list.Notes = append(list.Notes, fmt.Sprintf("the provider %q does not say which models it has: %v", cfg.ModelProvider, err))
	}
	for i, name := range listed {
		if len(list.Models) >= maxModels {
			list.Notes = append(list.Notes, fmt.Sprintf("the provider %q lists %d models more", cfg.ModelProvider, len(listed)-i))
			break
		}
		addModel(list, name, "")
	}
	return list, nil
}

// listed are the models that the provider lists.
func (e *Engine) listed(ctx context.Context, cfg *config.Config) ([]string, error) {
	leave, err := e.requests.take(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return e.client(cfg).Models(ctx)
}

// addModel adds a model, or the profile that chooses it to one that is there.
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

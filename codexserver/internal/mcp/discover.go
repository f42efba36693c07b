package mcp

import (
	"encoding/json"

	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// listLife is how long clients may cache a list, in milliseconds. Lists do not change while
// the server runs.
const listLife = 3_600_000

func (s *ModernSession) discover() (any, error) {
	none := modern.JSONObject{}
	extensions := map[string]modern.JSONObject{extensionEvents: none}
	if s.client.server.Tasks.serves() {
		extensions[extensionTasks] = none
	}
	return &modern.DiscoverResult{
		Meta:              s.resultMeta(),
		SupportedVersions: era.Versions(),
		Capabilities: modern.ServerCapabilities{
			Tools:      &mcptypes.ServerCapabilitiesTools{},
			Logging:    none,
			Extensions: extensions,
		},
		Instructions: new(s.client.server.Tools.Instructions()),
		TTLMs:        listLife,
		CacheScope:   modern.CacheScopePrivate,
	}, nil
}

func (s *ModernSession) listTools() (any, error) {
	list, err := s.client.server.Tools.List()
	if err != nil {
		return nil, err
	}
	result := &modern.ListToolsResult{Meta: s.resultMeta(), TTLMs: listLife, CacheScope: modern.CacheScopePrivate}
	for _, t := range list {
		if s.client.principal() != "" { // its requests come over HTTP
			t.InputSchema = mirrored(t.InputSchema)
		}
		result.Tools = append(result.Tools, modern.Tool{
			Meta: metaObject(t.Meta), Annotations: t.Annotations, Description: t.Description, Title: t.Title,
			InputSchema: t.InputSchema, Name: t.Name, OutputSchema: t.OutputSchema,
		})
	}
	return result, nil
}

func metaObject(m map[string]json.RawMessage) modern.MetaObject { return m }

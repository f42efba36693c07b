package mcp

import (
	"github.com/codexmcp/codexmcp/internal/era"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// listLife is how long clients may cache a list, in milliseconds. Lists do not change while
// the server runs.
const listLife = 3_600_000

func (s *Session) discover() (any, error) {
	none := modern.JSONObject{}
	extensions := map[string]modern.JSONObject{extensionEvents: none}
	if s.server.Tasks != nil {
		extensions[extensionTasks] = none
	}
	return &modern.DiscoverResult{
		Meta:              s.server.meta(),
		SupportedVersions: era.Versions(),
		Capabilities: modern.ServerCapabilities{
			Tools:      &mcptypes.ServerCapabilitiesTools{},
			Logging:    none,
			Extensions: extensions,
		},
		Instructions: new(s.server.Tools.Instructions()),
		TTLMs:        listLife,
		CacheScope:   modern.CacheScopePrivate,
	}, nil
}

func (s *Session) listTools() (any, error) {
	result := &modern.ListToolsResult{Meta: s.server.meta(), TTLMs: listLife, CacheScope: modern.CacheScopePrivate}
	for _, t := range s.server.Tools.List(s.principal() != "") { // whose requests come over HTTP
		result.Tools = append(result.Tools, modern.Tool{
			Meta: t.Meta, Annotations: t.Annotations, Description: t.Description, Title: t.Title,
			InputSchema: t.InputSchema, Name: t.Name, OutputSchema: t.OutputSchema,
		})
	}
	return result, nil
}

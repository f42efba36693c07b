package mcp

import (
	"context"
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/internal/mcptool"
	"github.com/codexmcp/codexmcp/codexserver/internal/skill"
	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
	"github.com/go-json-experiment/json"
)

// skillSettings returns the settings of the extension: the directories of the skill can be read.
func skillSettings() modern.JSONObject {
	return modern.JSONObject{"directoryRead": stdjson.RawMessage("true")}
}

// skillCapability returns the member of the capabilities of a handshake that declares the
// extension.
func skillCapability() (map[string]stdjson.RawMessage, error) {
	extensions, err := json.Marshal(map[string]modern.JSONObject{skill.Extension: skillSettings()})
	return map[string]stdjson.RawMessage{"extensions": extensions}, err
}

// skillResult is a result of the methods of skills. Each sets one of the first three members.
type skillResult struct {
	Skills    []*skill.Skill `json:"skills,omitzero"`
	Skill     *skill.Skill   `json:"skill,omitzero"`
	Resources []skill.Child  `json:"resources,omitzero"`

	// The rest is of 2026-07-28.
	Meta       *modern.ResultMetaObject `json:"_meta,omitzero"`
	ResultType string                   `json:"resultType,omitzero"`
	TTLMs      int                      `json:"ttlMs,omitzero"`
	CacheScope modern.CacheScope        `json:"cacheScope,omitzero"`
}

// useSkill answers a method of skills.
func useSkill(t *mcptool.Table, r *jsonrpc.Request) (*skillResult, error) {
	s, err := t.Skill()
	if err != nil {
		return nil, err
	}
	if r.Method == skill.List {
		return &skillResult{Skills: []*skill.Skill{s}}, nil
	}
	uri, err := uriOf(r)
	if err != nil {
		return nil, err
	}
	if r.Method == skill.Get {
		if uri != s.URI {
			return nil, Invalid("/uri", "not the address of a skill of this server")
		}
		return &skillResult{Skill: s}, nil
	}
	children := s.Children(uri)
	if len(children) == 0 {
		return nil, Invalid("/uri", "not the address of a directory of a skill")
	}
	return &skillResult{Resources: children}, nil
}

func (ss *LegacySession) skillMethod(_ context.Context, r *jsonrpc.Request) (any, error) {
	if err := noCursor(r); err != nil {
		return nil, err
	}
	return useSkill(ss.client.server.Tools, r)
}

func (s *ModernSession) skillMethod(q *request) (any, error) {
	if err := noCursor(q.rpc); err != nil {
		return nil, err
	}
	result, err := useSkill(s.client.server.Tools, q.rpc)
	if err != nil {
		return nil, err
	}
	result.Meta, result.ResultType, result.TTLMs, result.CacheScope = s.resultMeta(), "complete", listLife, modern.CacheScopePrivate
	return result, nil
}

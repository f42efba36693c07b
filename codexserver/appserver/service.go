package appserver

import (
	"context"
	stdjson "encoding/json"

	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// The optional interfaces that the engine has.
var (
	_ engine.Describer = (*Engine)(nil)
	_ engine.Resumer   = (*Engine)(nil)
	_ engine.Library   = (*Engine)(nil)
	_ engine.Accounts  = (*Engine)(nil)
	_ engine.Searcher  = (*Engine)(nil)
)

// config returns Codex's configuration for a folder, or the user's own if cwd is "".
func (c *child) config(ctx context.Context, cwd string) (map[string]stdjson.RawMessage, error) {
	var r apptypes.ConfigReply
	return r.Config, c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd}, &r)
}

// configuration returns Codex's configuration for a folder, with its layers.
func (c *child) configuration(ctx context.Context, cwd string) (configuration, error) {
	var r apptypes.ConfigReply
	err := c.control(ctx, apptypes.CallConfigRead, apptypes.ConfigParams{Cwd: cwd, IncludeLayers: true}, &r)
	return layered(&r), err
}

// control calls a method that is answered soon, in an app-server that is started if none runs.
func (e *Engine) control(ctx context.Context, method string, params, result any) error {
	c, err := e.child(ctx)
	if err != nil {
		return err
	}
	return c.control(ctx, method, params, result)
}

// SearchFiles implements [engine.Searcher].
func (e *Engine) SearchFiles(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
	var r apptypes.SearchReply
	if err := e.control(ctx, apptypes.CallFuzzyFileSearch, apptypes.SearchParams{CancellationToken: p.CancellationToken, Query: p.Query, Roots: p.Roots}, &r); err != nil {
		return nil, err
	}
	found := &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}
	for _, f := range r.Files {
		if f.MatchType != "" && f.MatchType != apptypes.FuzzyFileSearchMatchTypeFile {
			continue // newer versions find folders too
		}
		file := protocol.FuzzyFile{Root: f.Root, Path: f.Path, FileName: f.FileName, Score: uint32(f.Score)}
		for _, i := range f.Indices {
			file.Indices = append(file.Indices, uint32(i))
		}
		found.Files = append(found.Files, file)
	}
	return found, nil
}

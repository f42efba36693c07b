package native

import (
	"context"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/git"
	"github.com/codexmcp/codexmcp/codexserver/native/internal/search"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

var (
	_ engine.Searcher  = (*Engine)(nil)
	_ engine.Describer = (*Engine)(nil)
)

// scratch says where git works: in a folder that commands cannot write, next to the
// configuration.
func (e *Engine) scratch() git.Scratch {
	return git.Scratch{Dir: filepath.Join(e.options.CodexHome, "tmp"), Programs: e.programs}
}

// Traits implements [engine.Describer].
func (e *Engine) Traits() engine.Traits {
	return engine.Traits{Name: "codex-mcp", Title: "Codex", Confines: true, Announces: true, Reach: e.programs.Folders,
		Holder: e.holder, CanContinue: e.canContinue}
}

// SearchFiles implements [engine.Searcher]. It returns at most 50 files of each root.
func (e *Engine) SearchFiles(
	ctx context.Context, p protocol.FuzzyFileSearchParams,
) (*protocol.FuzzyFileSearchResult, error) {
	leave, err := e.searches.Take(ctx)
	if err != nil { // ctx has ended, and nothing is found yet
		return &protocol.FuzzyFileSearchResult{Files: []protocol.FuzzyFile{}}, nil
	}
	defer leave()
	return &protocol.FuzzyFileSearchResult{Files: search.Files(ctx, p.Query, p.Roots)}, nil
}

package methods

import (
	"context"
	"sync"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

func (ss *session) addWorkspaceMethods(m *jsonrpc.Mux, e engine.Engine) {
	jsonrpc.Handle(m, "getUserAgent", func(context.Context, empty) (*protocol.GetUserAgentResult, error) {
		return &protocol.GetUserAgentResult{UserAgent: ss.client.UserAgent()}, nil
	})
	if w, ok := e.(engine.Searcher); ok {
		searches := &searches{}
		handleLong(ss, m, "fuzzyFileSearch", func(ctx context.Context, p protocol.FuzzyFileSearchParams) (*protocol.FuzzyFileSearchResult, error) {
			if p.Roots == nil {
				return nil, mcp.Invalid("/roots", "missing")
			}
			ctx, done := searches.begin(ctx, p.CancellationToken)
			defer done()
			found, err := w.SearchFiles(ctx, p)
			if err != nil {
				return nil, answerFor("fuzzy file search", err)
			}
			return found, nil
		})
	}
}

// searches are the running searches by cancellation token. A new search cancels the running
// one with the same token. The zero value is ready.
type searches struct {
	mu      sync.Mutex
	byToken map[string]*context.CancelFunc
}

func (s *searches) begin(ctx context.Context, token string) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	if token == "" {
		return ctx, cancel
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byToken == nil {
		s.byToken = map[string]*context.CancelFunc{}
	}
	if before := s.byToken[token]; before != nil {
		(*before)()
	}
	s.byToken[token] = &cancel
	return ctx, func() {
		cancel()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.byToken[token] == &cancel {
			delete(s.byToken, token)
		}
	}
}

package methods

import (
	"context"
	"fmt"
	"strings"
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
	if c, ok := e.(engine.Configurator); ok {
		jsonrpc.Handle(m, "getUserSavedConfig", func(ctx context.Context, _ empty) (*protocol.GetUserSavedConfigResult, error) {
			saved, err := c.SavedConfig(ctx)
			if err != nil {
				return nil, failed("failed to load config.toml", err)
			}
			return &protocol.GetUserSavedConfigResult{Config: *saved}, nil
		})
		handleInOrder(ss, m, &ss.settings, "setDefaultModel", func(ctx context.Context, p protocol.SetDefaultModelParams) (empty, error) {
			if p.ReasoningEffort != nil {
				if err := oneOf("/reasoningEffort", *p.ReasoningEffort, protocol.ReasoningEfforts()); err != nil {
					return empty{}, err
				}
			}
			if err := c.SetDefaultModel(ctx, p); err != nil {
				return empty{}, failed("failed to persist model selection", err)
			}
			return empty{}, nil
		}, nil)
	}
	if w, ok := e.(engine.Workspace); ok {
		handleLong(ss, m, "gitDiffToRemote", func(ctx context.Context, p protocol.GitDiffToRemoteParams) (*protocol.GitDiffToRemoteResult, error) {
			if err := required("/cwd", p.Cwd); err != nil {
				return nil, err
			}
			diff, err := w.GitDiffToRemote(ctx, p.Cwd)
			if err != nil {
				return nil, refused("failed to compute git diff to remote for cwd %q: %v", p.Cwd, err)
			}
			return diff, nil
		})
		handleLong(ss, m, "execOneOffCommand", func(ctx context.Context, p protocol.ExecOneOffCommandParams) (*protocol.ExecOneOffCommandResult, error) {
			if err := checkOneOff(&p); err != nil {
				return nil, err
			}
			result, err := w.ExecOneOff(ctx, p)
			if err != nil {
				return nil, failed("exec failed", err)
			}
			return result, nil
		})
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

func checkOneOff(p *protocol.ExecOneOffCommandParams) error {
	if len(p.Command) == 0 {
		return refused("command must not be empty")
	}
	for i, word := range p.Command {
		if strings.Contains(word, "\x00") {
			return mcp.Invalid(fmt.Sprintf("/command/%d", i), "has a NUL byte")
		}
	}
	if strings.Contains(p.Cwd, "\x00") {
		return mcp.Invalid("/cwd", "has a NUL byte")
	}
	if p.TimeoutMs != nil && *p.TimeoutMs < 0 {
		return mcp.Invalid("/timeoutMs", "want 0 or more")
	}
	if s := p.SandboxPolicy; s != nil {
		if err := required("/sandboxPolicy/mode", string(s.Mode)); err != nil {
			return err
		}
		return oneOf("/sandboxPolicy/mode", s.Mode, protocol.SandboxModes())
	}
	return nil
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

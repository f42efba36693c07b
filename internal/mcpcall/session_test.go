package mcpcall_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/codexmcp/codexmcp/jsonrpc"
	"github.com/codexmcp/codexmcp/mcptypes"
	"github.com/codexmcp/codexmcp/mcptypes/modern"
)

// TestRefusedVersion checks that a server that refuses the version of server/discover, and
// names it as one that it supports, is asked once more.
func TestRefusedVersion(t *testing.T) {
	for _, tt := range []struct {
		name      string
		supported string
		refusals  int
		requests  int // of server/discover
		modern    bool
	}{
		{"once", `["2026-07-28"]`, 1, 2, true},
		{"always", `["2026-07-28"]`, 9, 2, false},
		{"for an older one", `["2025-11-25"]`, 1, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			requests := 0
			m := &jsonrpc.Mux{}
			modern.ServerDiscover.Handle(m, func(context.Context, *modern.RequestParams) (*modern.DiscoverResult, error) {
				if requests++; requests <= tt.refusals {
					return nil, &jsonrpc.Error{
						Code: modern.CodeUnsupportedProtocolVersion, Message: "not served",
						Data: fmt.Appendf(nil, `{"requested":"2026-07-28","supported":%s}`, tt.supported),
					}
				}
				return &modern.DiscoverResult{SupportedVersions: []string{modern.ProtocolVersion}, CacheScope: modern.CacheScopePrivate}, nil
			})
			mcptypes.Initialize.Handle(m, func(_ context.Context, p *mcptypes.InitializeRequestParams) (*mcptypes.InitializeResult, error) {
				return &mcptypes.InitializeResult{ProtocolVersion: p.ProtocolVersion}, nil
			})
			s := (&server{Mux: m}).connect(t, nil)
			if s.Modern() != tt.modern || requests != tt.requests {
				t.Errorf("modern: %v, after %d requests; want %v, %d", s.Modern(), requests, tt.modern, tt.requests)
			}
		})
	}
}

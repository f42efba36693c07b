package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/codexmcp/codexmcp/internal/mcpcall"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// session is a connection to a server over HTTP.
type session struct {
	offers map[string]bool // the server's capabilities

	s *mcpcall.Session
}

// connect begins a session of that version of MCP, by default of the newest with a handshake.
func connect(ctx context.Context, url, version string) (*session, error) {
	t, err := mcphttp.NewClient(&mcphttp.ClientOptions{URL: url})
	if err != nil {
		return nil, err
	}
	s := &session{}
	s.s, err = mcpcall.Connect(ctx, t, &mcpcall.Options{
		Name: "conformanceclient", Version: "1", Protocol: cmp.Or(version, mcptypes.ProtocolVersion), Ask: fill,
		Silence: time.Minute, // the suite starts all clients at once
	})
	if err != nil {
		return nil, err
	}
	if s.s.Modern() {
		var hello struct {
			Capabilities map[string]any `json:"capabilities"`
		}
		if err := s.request(ctx, "server/discover", nil, &hello); err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.offers = map[string]bool{}
		for name := range hello.Capabilities {
			s.offers[name] = true
		}
	}
	return s, nil
}

func (s *session) request(ctx context.Context, method string, params map[string]any, result any) error {
	return s.s.Request(ctx, method, params, result)
}

func (s *session) call(ctx context.Context, tool string, arguments map[string]any) error {
	c := &mcpcall.Call{Tool: tool}
	if arguments != nil {
		raw, err := json.Marshal(arguments)
		if err != nil {
			return err
		}
		c.Arguments = raw
	}
	_, err := s.s.Call(ctx, c)
	return err
}

func (s *session) close() error { return s.s.Close() }

// fill accepts a question with the defaults of its form.
func fill(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
	var form struct {
		RequestedSchema struct {
			Properties map[string]struct {
				Default any `json:"default"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &form); err != nil {
		return nil, err
	}
	content := map[string]any{}
	for name, p := range form.RequestedSchema.Properties {
		if p.Default != nil {
			content[name] = p.Default
		}
	}
	return json.Marshal(map[string]any{"action": "accept", "content": content})
}

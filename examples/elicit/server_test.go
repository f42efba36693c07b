package main

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/mcptypes"
)

// TestRefused calls the tool before there is a client to ask, another tool, and the tool with wrong arguments.
func TestRefused(t *testing.T) {
	call := func(s *server, name, arguments string) (*mcptypes.CallToolResult, error) {
		return s.callTool(t.Context(), &mcptypes.CallToolRequestParams{Name: name, Arguments: []byte(arguments)})
	}
	s := &server{}
	if r, err := call(s, "delete_branch", `{"branch":"old"}`); err == nil {
		t.Errorf("before initialize: %+v", r)
	}
	must.Get(s.initialize(t.Context(), &mcptypes.InitializeRequestParams{}))(t)
	if r, err := call(s, "delete", `{"branch":"old"}`); err == nil {
		t.Errorf("another tool: %+v", r)
	}
	if r, err := call(s, "delete_branch", `{"branch":1}`); err != nil || r.IsError == nil || !*r.IsError {
		t.Errorf("wrong arguments: %+v, %v", r, err)
	}
	tools, err := s.listTools(t.Context(), nil)
	if err != nil || len(tools.Tools) != 1 || !*tools.Tools[0].Annotations.DestructiveHint {
		t.Errorf("%+v, %v", tools, err)
	}
}

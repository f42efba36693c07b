// Command conformanceclient is the MCP client that the official conformance suite starts,
// with the address of a server of its own as the last argument. It lists what the server
// has, calls every tool, reads a resource and gets a prompt, whichever the scenario is;
// the suite watches how.
//
// session.go is the client; the rest only says what to do with it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"

	jsonv2 "github.com/go-json-experiment/json"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[len(os.Args)-1], os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, "conformanceclient:", err)
		os.Exit(1)
	}
}

// given is what a scenario says besides the address.
type given struct {
	ToolCalls []call `json:"toolCalls"`
}

type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

type tool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func run(ctx context.Context, url string, getenv func(string) string) (err error) {
	var g given
	if raw := getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := jsonv2.Unmarshal([]byte(raw), &g); err != nil {
			return err
		}
	}
	s, err := connect(ctx, url, getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var list struct {
		Tools []tool `json:"tools"`
	}
	if err := s.request(ctx, "tools/list", nil, &list); err != nil {
		return err
	}
	if g.ToolCalls == nil {
		g.ToolCalls = callsOf(list.Tools)
	}
	for _, c := range g.ToolCalls {
		if err := s.call(ctx, c.Name, c.Arguments); err != nil {
			return fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	if s.offers["resources"] {
		if err := readFirst(ctx, s); err != nil {
			return err
		}
	}
	if s.offers["prompts"] {
		return getFirst(ctx, s)
	}
	return nil
}

// callsOf returns a call of each tool that can be called, with the arguments that the suite
// wants.
func callsOf(tools []tool) (calls []call) {
	arguments := map[string]map[string]any{
		"add_numbers": {"a": 2, "b": 3},
		"valid_tool":  {"region": "us-west1"},
	}
	for _, t := range tools {
		switch t.Name {
		case "json_schema_2020_12_tool": // only listed, so that the client can send its schema back
			arguments["json_schema_echo"] = map[string]any{"schema": t.InputSchema}
		case "lookup_user": // only listed, with a schema that refers to the network
		default:
			calls = append(calls, call{Name: t.Name})
		}
	}
	for i := range calls {
		calls[i].Arguments = arguments[calls[i].Name]
	}
	return calls
}

func readFirst(ctx context.Context, s *session) error {
	var list struct {
		Resources []struct {
			URI string `json:"uri"`
		} `json:"resources"`
	}
	if err := s.request(ctx, "resources/list", nil, &list); err != nil || len(list.Resources) == 0 {
		return err
	}
	return s.request(ctx, "resources/read", map[string]any{"uri": list.Resources[0].URI}, new(any))
}

func getFirst(ctx context.Context, s *session) error {
	var list struct {
		Prompts []struct {
			Name string `json:"name"`
		} `json:"prompts"`
	}
	if err := s.request(ctx, "prompts/list", nil, &list); err != nil || len(list.Prompts) == 0 {
		return err
	}
	return s.request(ctx, "prompts/get", map[string]any{"name": list.Prompts[0].Name}, new(any))
}
